//! What pml costs: one interleaved run of `direct`, `relay`, `pml` and `rmcp`, and the bars the project sets itself.
//!
//!     cargo bench --bench calls [-- --quick | --write | --against PML]
//!
//! `--against` compares this build with another one of pml, which is named by its path, and measures nothing else.
//! The program starts itself again as the server, the relay and the proxy on the SDK, so that nothing else must be
//! built. It fails only where something broke; a bar that is missed is told and is no failure. Linux only: what a
//! process costs is read from `/proc`.

mod bars;
mod comparison;
mod first_calls;
mod home;
mod idle;
mod lists;
mod payload;
mod peer;
mod process;
mod real;
mod relay;
mod report;
mod rounds;
mod sdk_proxy;
mod server;
mod starts;
mod statistics;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use first_calls::FirstCall;
use idle::Idle;
use lists::Relisted;
use peer::Link;
use process::Promise;
use rounds::{Lineup, Measured};
use starts::Starts;

/// How many tools a usual server has.
const TOOLS: usize = 20;

/// Something hangs when even the longest run has not ended by then.
const PATIENCE: Duration = Duration::from_mins(30);

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Full,
    /// For a first look: a fifth of the rounds, and no minute of idleness.
    Quick,
}

impl Effort {
    fn rounds(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => full / 5,
        }
    }
}

/// Where the page goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    Screen,
    File,
}

/// Everything that was measured.
#[derive(Debug)]
struct Results {
    /// How busy the machine was before anything was measured.
    load: String,
    links: Vec<(Link, Measured)>,
    starts: Starts,
    first_call: FirstCall,
    lists: Vec<Relisted>,
    idle: Idle,
    /// `None` without npm.
    real: Option<real::Real>,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        // The last word is only there to tell servers apart.
        [process::ROLE, role @ ("server" | "relay"), tools, promise, ..] => {
            let promise = Promise::read(promise).with_context(|| format!("no server `{promise}`"))?;
            let run = if *role == "relay" { relay::run } else { server::run };
            run(tools.parse()?, promise)
        }
        [process::ROLE, "rmcp"] => sdk_proxy::run(),
        ["--against", earlier] | ["--against", earlier, "--bench"] => comparison::run(Path::new(earlier)),
        words => {
            let (mut effort, mut destination) = (Effort::Full, Destination::Screen);
            for word in words {
                match *word {
                    "--quick" => effort = Effort::Quick,
                    "--write" => destination = Destination::File,
                    // What cargo adds.
                    "--bench" => {}
                    other => bail!(
                        "unknown argument `{other}`; known are `--quick`, `--write` and `--against PML`"
                    ),
                }
            }
            benchmark(effort, destination)
        }
    }
}

fn benchmark(effort: Effort, destination: Destination) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        std::thread::sleep(PATIENCE);
        tell("error: something hangs");
        std::process::abort();
    });
    let load = process::load_average();
    let mut links = Vec::new();
    for link in Link::ALL {
        tell(&format!("calls over {} …", link.title()));
        let measured =
            rounds::measure(link, effort, Lineup::Peers).with_context(|| format!("over {}", link.title()))?;
        links.push((link, measured));
    }
    tell("starts …");
    let starts = starts::measure(effort).context("measuring starts")?;
    tell("first calls …");
    let first_call = first_calls::measure(effort).context("measuring first calls")?;
    tell("lists …");
    let lists = lists::measure(effort).context("measuring lists")?;
    tell("real servers …");
    let real = real::measure(effort).context("measuring real servers")?;
    tell("idleness …");
    let idle = idle::measure(effort).context("measuring an idle pml")?;
    let results = Results {
        load,
        links,
        starts,
        first_call,
        lists,
        idle,
        real,
    };
    let page = report::page(&results, effort);
    match destination {
        Destination::Screen => std::io::stdout().write_all(page.as_bytes())?,
        Destination::File => write(&page)?,
    }
    Ok(())
}

/// Where the figures of other measurements begin in the page.
const OTHERS: &str = "\n## The inbox\n";

#[expect(clippy::disallowed_methods, reason = "the page is the benchmark's own file")]
fn write(page: &str) -> anyhow::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("BENCHMARKS.md");
    // What other measurements wrote stays below.
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let others = before.find(OTHERS).map_or("", |at| &before[at..]);
    std::fs::write(path, format!("{}\n{others}", page.trim_end()))?;
    tell("docs/BENCHMARKS.md is written");
    Ok(())
}

fn tell(line: &str) {
    // Nobody may be looking.
    let _ = writeln!(std::io::stderr(), "{line}");
}
