//! The interleaved run: the same calls through every arm, in turns, so that noise hits all alike.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::home::{self, Home};
use crate::payload::Case;
use crate::peer::{Call, Link, Peer};
use crate::process::{self, Promise};
use crate::statistics::{median, percentile};
use crate::{Effort, TOOLS};

/// Calls in flight when calls per second are counted.
pub(crate) const WINDOW: u64 = 64;

/// Rounds of the whole run; figures are medians over them. Many short ones: noise comes and goes within a second.
const ROUNDS: usize = 60;

/// What stands between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Arm {
    /// Nothing.
    Direct,
    /// A byte copier.
    Relay,
    Pml,
    /// A minimal proxy on the SDK.
    Rmcp,
    /// Another build of pml.
    Earlier,
}

/// Who takes part in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lineup<'a> {
    /// Pml among what else could stand there.
    Peers,
    /// Pml and another build of it.
    Earlier(&'a Path),
}

impl Lineup<'_> {
    fn arms(self) -> &'static [Arm] {
        match self {
            Self::Peers => &Arm::ALL,
            Self::Earlier(_) => &[Arm::Direct, Arm::Earlier, Arm::Pml],
        }
    }

    fn command(self, arm: Arm, home: &Home) -> anyhow::Result<Command> {
        Ok(match (arm, self) {
            (Arm::Direct, _) => home.at_home(process::server(TOOLS, Promise::Nothing)?),
            (Arm::Relay, _) => home.at_home(process::relay(TOOLS, Promise::Nothing)?),
            (Arm::Rmcp, _) => home.at_home(process::role("rmcp")?),
            (Arm::Earlier, Self::Earlier(program)) => home.pml_of(program),
            (Arm::Pml | Arm::Earlier, _) => home.pml(),
        })
    }
}

impl Arm {
    /// Those of the page.
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::Relay, Self::Pml, Self::Rmcp];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::Pml => "pml",
            Self::Rmcp => "rmcp",
            Self::Earlier => "earlier",
        }
    }

    /// How the client of this arm calls the tool of a case.
    fn call(self, case: Case) -> Call {
        let tool = match self {
            Self::Pml | Self::Earlier => format!("bench__{}", case.tool()),
            Self::Direct | Self::Relay | Self::Rmcp => case.tool().to_owned(),
        };
        Call::new(&tool, &case.arguments())
    }
}

/// One at a time, or many in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Load {
    OneAtATime(Case),
    InFlight(Case),
}

impl Load {
    /// All of them, in the order in which they are measured.
    pub(crate) const ALL: [Self; 7] = [
        Self::OneAtATime(Case::Small),
        Self::OneAtATime(Case::Medium),
        Self::OneAtATime(Case::LargeText),
        Self::OneAtATime(Case::LargeNested),
        Self::OneAtATime(Case::LargeArguments),
        Self::InFlight(Case::Small),
        Self::InFlight(Case::Medium),
    ];

    /// How many calls one round makes: enough over all rounds for a p99 of small ones, and no longer than needed.
    fn calls(self) -> u64 {
        match self {
            Self::OneAtATime(Case::Small | Case::Medium) => 40,
            Self::OneAtATime(_) => 1,
            Self::InFlight(Case::Small) => 1_000,
            Self::InFlight(_) => 400,
        }
    }

    pub(crate) fn case(self) -> Case {
        match self {
            Self::OneAtATime(case) | Self::InFlight(case) => case,
        }
    }
}

/// The samples of one load on one arm.
#[derive(Debug, Default, Clone)]
pub(crate) struct Samples {
    /// Every call that was alone.
    calls: Vec<Duration>,
    /// The median of each round.
    medians: Vec<Duration>,
    /// The time per call of each round, for calls in flight.
    paces: Vec<Duration>,
    /// The processor time per call of each round.
    costs: Vec<Duration>,
}

impl Samples {
    pub(crate) fn p50(&self) -> Duration {
        median(&self.medians)
    }

    pub(crate) fn p99(&self) -> Duration {
        percentile(&self.calls, 99)
    }

    /// Calls per second.
    pub(crate) fn rate(&self) -> f64 {
        1.0 / self.pace().as_secs_f64()
    }

    /// The time per call, many being in flight.
    pub(crate) fn pace(&self) -> Duration {
        median(&self.paces)
    }

    /// Processor time of the process between client and server, per call.
    pub(crate) fn cost(&self) -> Duration {
        median(&self.costs)
    }
}

/// Everything one link brought.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    samples: HashMap<(Arm, Load), Samples>,
    memory: HashMap<Arm, u64>,
}

impl Measured {
    pub(crate) fn of(&self, arm: Arm, load: Load) -> Samples {
        self.samples.get(&(arm, load)).cloned().unwrap_or_default()
    }

    /// The most memory the process of an arm ever held, after all loads.
    pub(crate) fn memory(&self, arm: Arm) -> u64 {
        self.memory.get(&arm).copied().unwrap_or_default()
    }
}

struct Runner {
    arm: Arm,
    peer: Peer,
    calls: HashMap<Load, Call>,
}

/// Measures the arms of a lineup under all loads over one kind of link.
pub(crate) fn measure(link: Link, effort: Effort, lineup: Lineup<'_>) -> anyhow::Result<Measured> {
    let home = Home::with_servers(&[home::entry("bench", TOOLS, Promise::Nothing)?])?;
    let mut runners = Vec::new();
    for &arm in lineup.arms() {
        let mut peer = Peer::start(lineup.command(arm, &home)?, link)?;
        peer.open()?;
        let mut calls = HashMap::new();
        for load in Load::ALL {
            let call = arm.call(load.case());
            peer.check(&call, &expected(arm, load.case()))?;
            calls.insert(load, call);
        }
        runners.push(Runner { arm, peer, calls });
    }
    let mut measured = Measured::default();
    // The first round warms everything and is not kept.
    for round in 0..=effort.rounds(ROUNDS) {
        for load in Load::ALL {
            let first = round % runners.len();
            runners.rotate_left(first);
            for runner in &mut runners {
                let samples = measured.samples.entry((runner.arm, load)).or_default();
                runner.run(load, samples)?;
            }
        }
        if round == 0 {
            measured.samples.clear();
        }
    }
    for runner in &runners {
        let memory = process::peak_memory(runner.peer.process())?;
        measured.memory.insert(runner.arm, memory);
    }
    Ok(measured)
}

/// What an answer must hold: the typed proxy writes the same values, in an order of its own.
fn expected(arm: Arm, case: Case) -> String {
    match (arm, case) {
        (Arm::Rmcp, Case::LargeNested) => r#"{"line":5,"column":7}"#.to_owned(),
        _ => case.result().trim_matches(['{', '}']).to_owned(),
    }
}

impl Runner {
    fn run(&mut self, load: Load, samples: &mut Samples) -> anyhow::Result<()> {
        let call = &self.calls[&load];
        let count = load.calls();
        let before = process::processor_time(self.peer.process())?;
        match load {
            Load::OneAtATime(_) => {
                let mut round = Vec::new();
                for _ in 0..count {
                    round.push(self.peer.call(call)?);
                }
                samples.medians.push(median(&round));
                samples.calls.extend(round);
            }
            Load::InFlight(_) => {
                let took = self.peer.call_many(call, count, WINDOW)?;
                samples.paces.push(took / u32::try_from(count)?);
            }
        }
        let used = process::processor_time(self.peer.process())?.saturating_sub(before);
        samples.costs.push(used / u32::try_from(count)?);
        Ok(())
    }
}
