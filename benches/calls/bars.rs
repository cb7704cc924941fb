//! The bars the project sets itself, all of them ratios of one run, and whether they hold.

use std::time::Duration;

use crate::Results;
use crate::idle;
use crate::lists::{self, Relisted};
use crate::payload::Case;
use crate::peer::Link;
use crate::process::Promise;
use crate::rounds::{Arm, Load, Measured};
use crate::starts::Crowd;
use crate::statistics::{megabytes, ratio, shown, thousands};

/// One bar.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) what: String,
    pub(crate) limit: String,
    pub(crate) found: String,
    pub(crate) verdict: Verdict,
}

/// How a bar stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Missed,
    NotMeasured,
}

impl Bar {
    fn at_most(what: String, limit: f64, found: f64, unit: &str) -> Self {
        Self {
            what,
            limit: format!("≤ {limit} × {unit}"),
            found: format!("{found:.2}"),
            verdict: Verdict::of(found <= limit),
        }
    }

    fn at_least(what: String, limit: f64, found: f64, unit: &str) -> Self {
        Self {
            what,
            limit: format!("≥ {limit} × {unit}"),
            found: format!("{found:.2}"),
            verdict: Verdict::of(found >= limit),
        }
    }

    fn not_measured(what: &str, limit: &str) -> Self {
        Self {
            what: what.to_owned(),
            limit: limit.to_owned(),
            found: "not measurable here".to_owned(),
            verdict: Verdict::NotMeasured,
        }
    }
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Missed }
    }
}

/// All bars, in the order of the tables.
pub(crate) fn of(results: &Results) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (link, measured) in &results.links {
        bars.extend(of_link(*link, measured));
    }
    bars.extend(of_starts(results));
    bars
}

fn of_link(link: Link, measured: &Measured) -> Vec<Bar> {
    let mut bars = Vec::new();
    let link = link.title();
    for case in [Case::Small, Case::Medium] {
        let load = Load::OneAtATime(case);
        let direct = measured.of(Arm::Direct, load).p50();
        let added = |arm| measured.of(arm, load).p50().saturating_sub(direct);
        let what = format!(
            "added p50, {}, {link}: pml {}, relay {}",
            case.title(),
            shown(added(Arm::Pml)),
            shown(added(Arm::Relay))
        );
        // On a busy machine `direct` may come out slower than the relay: there is nothing to compare with then.
        bars.push(if added(Arm::Relay).is_zero() {
            Bar::not_measured(&what, "≤ 1.5 × relay")
        } else {
            Bar::at_most(what, 1.5, ratio(added(Arm::Pml), added(Arm::Relay)), "relay")
        });
    }
    let flight = Load::InFlight(Case::Small);
    let rate = |arm| measured.of(arm, flight).rate();
    let what = |other| format!("calls per second, 64 in flight, 100 B, {link}, against {other}");
    bars.push(Bar::at_least(
        what("relay"),
        0.5,
        rate(Arm::Pml) / rate(Arm::Relay),
        "relay",
    ));
    bars.push(Bar::at_least(
        what("rmcp"),
        5.0,
        rate(Arm::Pml) / rate(Arm::Rmcp),
        "rmcp",
    ));
    for load in Load::ALL {
        let cost = |arm| measured.of(arm, load).cost();
        let crowd = match load {
            Load::OneAtATime(_) => "one at a time",
            Load::InFlight(_) => "64 in flight",
        };
        let what = format!(
            "processor time per call, {}, {crowd}, {link}: pml {}, relay {}",
            load.case().title(),
            shown(cost(Arm::Pml)),
            shown(cost(Arm::Relay))
        );
        bars.push(Bar::at_most(
            what,
            2.0,
            ratio(cost(Arm::Pml), cost(Arm::Relay)),
            "relay",
        ));
    }
    bars
}

/// What pml may hold at most with fifty servers and a thousand tools.
const MEMORY: u64 = 12_000_000;

/// What an idle pml may hold at most.
const IDLE_MEMORY: u64 = 6_000_000;

/// How much longer a first call may take than starting its server directly.
const FIRST_CALL: Duration = Duration::from_millis(5);

fn of_starts(results: &Results) -> Vec<Bar> {
    let mut bars = Vec::new();
    if let (Some(one), Some(fifty)) = (results.starts.with(Crowd::ONE), results.starts.with(Crowd::FIFTY)) {
        let what = format!(
            "start to `tools/list` with 50 servers and {} tools: {}, with one server: {}",
            thousands(1_000),
            shown(fifty.listed),
            shown(one.listed)
        );
        let found = ratio(fifty.listed, one.listed);
        bars.push(Bar::at_most(what, 3.0, found, "one server"));
        bars.push(Bar {
            what: "peak memory in that state".to_owned(),
            limit: "≤ 12 MB".to_owned(),
            found: megabytes(fifty.memory),
            verdict: Verdict::of(fifty.memory <= MEMORY),
        });
    }
    let first = &results.first_call;
    bars.push(Bar {
        what: format!(
            "first call of a server that does not run: through pml {}, starting it directly {}",
            shown(first.pml),
            shown(first.direct)
        ),
        limit: format!("≤ {} more", shown(FIRST_CALL)),
        found: shown(first.added()),
        verdict: Verdict::of(first.added() <= FIRST_CALL),
    });
    bars.extend(results.lists.iter().map(of_list));
    bars.push(Bar {
        what: "memory of an idle pml with one running server, its supervisor included (PSS)".to_owned(),
        limit: "≤ 6 MB".to_owned(),
        found: megabytes(results.idle.memory),
        verdict: Verdict::of(results.idle.memory <= IDLE_MEMORY),
    });
    let what = format!("wake-ups of an idle pml in {} s", idle::COUNTED.as_secs());
    bars.push(match results.idle.wake_ups {
        Some(count) => Bar {
            what,
            limit: "0".to_owned(),
            found: count.to_string(),
            verdict: Verdict::of(count == 0),
        },
        None => Bar::not_measured(&what, "0"),
    });
    let what = "first call of a managed install, from nothing running";
    bars.push(match &results.real {
        Some(real) => managed(what, real.started.pml, real.started.npx),
        None => Bar::not_measured(what, "≤ 0.5 × `npx -y`"),
    });
    bars
}

fn of_list(list: &Relisted) -> Bar {
    let server = match list.promise {
        Promise::TellsChanges => "a server that tells changes",
        Promise::Nothing => "a server that has to be asked",
    };
    let what = format!(
        "`tools/list` again, {} tools of {server}: pml {}, relay {}",
        thousands(lists::TOOLS as u64),
        shown(list.pml),
        shown(list.relay)
    );
    Bar::at_most(what, 1.5, ratio(list.pml, list.relay), "relay")
}

fn managed(what: &str, pml: Duration, npx: Duration) -> Bar {
    let what = format!("{what}: pml {}, `npx -y` {}", shown(pml), shown(npx));
    Bar::at_most(what, 0.5, ratio(pml, npx), "`npx -y`")
}
