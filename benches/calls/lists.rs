//! How long a list of a thousand tools takes that was asked for before.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::Effort;
use crate::home::{self, Home};
use crate::peer::{Call, Link, Peer};
use crate::process::{self, Promise};
use crate::statistics::median;

/// How many tools the server has.
pub(crate) const TOOLS: usize = 1_000;

/// Lists of each arm; figures are medians.
const LISTS: usize = 200;

/// A list that was asked for again, in medians.
#[derive(Debug)]
pub(crate) struct Relisted {
    /// What the server promises: pml asks one that does not tell changes again each time.
    pub(crate) promise: Promise,
    pub(crate) direct: Duration,
    pub(crate) relay: Duration,
    pub(crate) pml: Duration,
}

/// Measures both kinds of servers.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Relisted>> {
    Promise::ALL
        .map(|promise| relisted(effort, promise))
        .into_iter()
        .collect()
}

fn relisted(effort: Effort, promise: Promise) -> anyhow::Result<Relisted> {
    let home = Home::with_servers(&[home::entry("bench", TOOLS, promise)?])?;
    let commands = [
        home.at_home(process::server(TOOLS, promise)?),
        home.at_home(process::relay(TOOLS, promise)?),
        home.pml(),
    ];
    let mut arms = Vec::new();
    for (command, tool) in commands.into_iter().zip(["small", "small", "bench__small"]) {
        let mut peer = Peer::start(command, Link::Pipes)?;
        peer.open()?;
        // The server behind pml is started by this; the first list is made after it.
        peer.check(&Call::new(tool, r#"{"path":"a"}"#), r#""type":"text""#)?;
        let bytes = peer.measure("tools/list")?;
        ensure!(bytes > TOOLS * 100, "{bytes} bytes are no list of {TOOLS} tools");
        arms.push((peer, Vec::new()));
    }
    for _ in 0..effort.rounds(LISTS) {
        for (peer, samples) in &mut arms {
            let begin = Instant::now();
            peer.measure("tools/list")?;
            samples.push(begin.elapsed());
        }
    }
    let medians: Vec<Duration> = arms.iter().map(|(_, samples)| median(samples)).collect();
    Ok(Relisted {
        promise,
        direct: medians[0],
        relay: medians[1],
        pml: medians[2],
    })
}
