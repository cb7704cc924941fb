//! The results as a page of Markdown: the machine, the bars, the tables.

use std::fmt::Write as _;

use crate::bars::{self, Verdict};
use crate::payload::Case;
use crate::peer::Link;
use crate::process::{self, Promise};
use crate::rounds::{Arm, Load, Measured};
use crate::statistics::{megabytes, ratio, shown, thousands};
use crate::{Effort, Results, lists, real};

/// Writes the page.
pub(crate) fn page(results: &Results, effort: Effort) -> String {
    let mut page = String::new();
    let mut say = |text: &str| {
        page.push_str(text);
        page.push('\n');
    };
    say("# Benchmarks\n");
    say("What stands between a client and a server, measured in one interleaved run:\n");
    say("- **direct**: nothing;");
    say("- **relay**: a byte copier of two blocking threads, the physical limit of any proxy;");
    say("- **pml**: this project, the server running, the call allowed by a rule;");
    say("- **rmcp**: a minimal proxy on the handlers of the official Rust SDK, without rules or catalog.\n");
    say(&machine(&results.load));
    say("```sh\ncargo bench --bench calls               # prints this page");
    say("cargo bench --bench calls -- --quick    # fewer rounds, no idle minute");
    say("cargo bench --bench calls -- --write    # writes this page\n```\n");
    if effort == Effort::Quick {
        say("**A quick run: few rounds. Do not compare these figures with others.**\n");
    }
    say("## Bars\n");
    say(&bar_table(results));
    for (link, measured) in &results.links {
        say(&link_tables(*link, measured));
    }
    say(&start_tables(results));
    say(&list_table(results));
    say(METHOD);
    page
}

const METHOD: &str = "\
## How it is measured

- Client, proxy and server share the machine's processors; the client is one thread with blocking reads and writes. The
  server answers prepared results, reads and writes in blocks, and parses no arguments.
- Arms take turns within each round, in changing order; p50 is the median of the rounds' medians, p99 is over all calls,
  rates and processor times are medians of rounds. A first round warms up and is not kept.
- `pipes` and `socket pairs` are what lies between client and proxy (shells and Python give pipes, Node gives sockets);
  the proxies talk to the server over pipes in both.
- Every call carries a progress token, which a proxy has to translate.
- The memory of an idle pml is what `/proc/PID/smaps_rollup` calls PSS, of pml and of the supervisor of its server, after
  a hundred calls and fifteen seconds of rest.
- Processor time is that of the proxy's process alone (`/proc/PID/task/*/schedstat`); for `direct` it is the server's own.
- Text has an escape every 40 bytes and letters outside ASCII; `nested` is many small members.
- With many small calls in flight a relay copies dozens of messages per system call and looks at none, so its processor
  time per call is next to nothing; pml reads every message. Calls per second say what that costs.
- Every byte of a result is checked to be JSON before a client sees it, so that a server which breaks off breaks its own
  call only: several gigabytes per second in long text, about one where members are many and small (`nested`).";

fn bar_table(results: &Results) -> String {
    let mut table = "| bar | limit | found | |\n|---|---|---|---|\n".to_owned();
    for bar in bars::of(results) {
        let verdict = match bar.verdict {
            Verdict::Holds => "pass",
            Verdict::Missed => "**fail**",
            Verdict::NotMeasured => "",
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {verdict} |",
            bar.what, bar.limit, bar.found
        );
    }
    table
}

fn link_tables(link: Link, measured: &Measured) -> String {
    let mut text = format!("## Over {}\n\n", link.title());
    let arms = Arm::ALL.map(Arm::title).join(" | ");
    let _ = writeln!(
        text,
        "One call at a time, p50 / p99:\n\n| | {arms} | pml : direct | added, pml : relay |\n|---|---|---|---|---|---|---|"
    );
    for case in Case::ALL {
        let load = Load::OneAtATime(case);
        let p50 = |arm| measured.of(arm, load).p50();
        let cells =
            Arm::ALL.map(|arm| format!("{} / {}", shown(p50(arm)), shown(measured.of(arm, load).p99())));
        let direct = p50(Arm::Direct);
        let added = |arm| p50(arm).saturating_sub(direct);
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} |",
            case.title(),
            cells.join(" | "),
            ratio(p50(Arm::Pml), direct),
            ratio(added(Arm::Pml), added(Arm::Relay)),
        );
    }
    let _ = writeln!(
        text,
        "\nCalls per second, 64 in flight:\n\n| | {arms} | pml : relay | pml : rmcp |\n|---|---|---|---|---|---|---|"
    );
    for case in [Case::Small, Case::Medium] {
        let rate = |arm| measured.of(arm, Load::InFlight(case)).rate();
        let cells = Arm::ALL.map(|arm| whole(rate(arm)));
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} |",
            case.title(),
            cells.join(" | "),
            rate(Arm::Pml) / rate(Arm::Relay),
            rate(Arm::Pml) / rate(Arm::Rmcp),
        );
    }
    let _ = writeln!(
        text,
        "\nProcessor time per call:\n\n| | {arms} | pml : relay |\n|---|---|---|---|---|---|"
    );
    for load in Load::ALL {
        let cost = |arm| measured.of(arm, load).cost();
        let cells = Arm::ALL.map(|arm| shown(cost(arm)));
        let title = match load {
            Load::OneAtATime(case) => case.title().to_owned(),
            Load::InFlight(case) => format!("{}, 64 in flight", case.title()),
        };
        let _ = writeln!(
            text,
            "| {title} | {} | {:.2} |",
            cells.join(" | "),
            ratio(cost(Arm::Pml), cost(Arm::Relay))
        );
    }
    let memory = Arm::ALL.map(|arm| megabytes(measured.memory(arm))).join(" | ");
    let _ = writeln!(
        text,
        "\nPeak memory after all of these:\n\n| {arms} |\n|---|---|---|---|\n| {memory} |"
    );
    text
}

fn start_tables(results: &Results) -> String {
    let mut text = "## Starts\n\nFrom the start of the process to the answer of the first `tools/list`, the servers \
        known and none running:\n\n| servers | tools in all | time | length of the list | peak memory |\n|---|---|---|---|---|\n"
        .to_owned();
    for started in &results.starts.crowds {
        let crowd = started.crowd;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            crowd.servers,
            thousands((crowd.servers * crowd.tools) as u64),
            shown(started.listed),
            megabytes(started.bytes as u64),
            megabytes(started.memory),
        );
    }
    let _ = writeln!(
        text,
        "\nThe server of the benchmark itself, without pml: {}.\n",
        shown(results.starts.bare)
    );
    let first = &results.first_call;
    let _ = writeln!(
        text,
        "The first call of a server that is known and does not run: {} through a pml that runs; {} from the start of the \
        server's process without pml.\n",
        shown(first.pml),
        shown(first.direct)
    );
    let Some(real) = &results.real else {
        text.push_str("Real servers were not measured: there is no npm.\n");
        return text;
    };
    let (started, echoed) = (&real.started, &real.echoed);
    let _ = writeln!(
        text,
        "From the start of the process to the answer of a first call, `{}`:\n\n\
        | `npx -y`, cache warm | through pml, installed | `node` on the installed program | pml : npx |\n|---|---|---|---|\n\
        | {} | {} | {} | {:.2} |\n",
        real::FILESYSTEM,
        shown(started.npx),
        shown(started.pml),
        shown(started.node),
        ratio(started.pml, started.npx)
    );
    let _ = writeln!(
        text,
        "One call of `echo` on a Node server, `{}`: direct {}, through pml {}, ratio {:.2}.\n",
        real::EVERYTHING,
        shown(echoed.direct),
        shown(echoed.pml),
        ratio(echoed.pml, echoed.direct)
    );
    text
}

fn list_table(results: &Results) -> String {
    let mut text = format!(
        "## Lists\n\n`tools/list` asked again, {} tools, over pipes, p50:\n\n\
        | the server | direct | relay | pml | pml : relay |\n|---|---|---|---|---|\n",
        thousands(lists::TOOLS as u64)
    );
    for list in &results.lists {
        let server = match list.promise {
            Promise::TellsChanges => "tells changes",
            Promise::Nothing => "has to be asked each time",
        };
        let _ = writeln!(
            text,
            "| {server} | {} | {} | {} | {:.2} |",
            shown(list.direct),
            shown(list.relay),
            shown(list.pml),
            ratio(list.pml, list.relay)
        );
    }
    text
}

fn whole(number: f64) -> String {
    // Below a billion: exact.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of calls fits, and is not negative"
    )]
    thousands(number.round() as u64)
}

/// The machine, the date and what was built.
fn machine(load: &str) -> String {
    let told = |program: &str, arguments: &[&str]| {
        let output = process::command(program).args(arguments).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        text.unwrap_or_default()
    };
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |name| name.trim_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {processor}, {cores} cores, load average {load} before the run, {}, {}, node {}; release build, commit {}. \
         Where the load is not near zero, other work shared the machine: look at ratios, and trust none by itself.\n",
        told("date", &["-u", "+%F"]),
        told("uname", &["-srm"]),
        told("rustc", &["--version"]),
        told("node", &["--version"]),
        told("git", &["rev-parse", "--short", "HEAD"]),
    )
}
