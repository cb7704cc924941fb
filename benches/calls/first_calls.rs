//! How long the first call of a server takes that is known but does not run, against starting it directly.

use std::time::{Duration, Instant};

use crate::home::{self, Home};
use crate::peer::{Call, Link, Peer};
use crate::process::{self, Promise};
use crate::statistics::median;
use crate::{Effort, TOOLS};

/// First calls of each kind; figures are medians.
const CALLS: usize = 50;

/// A first call, in medians.
#[derive(Debug)]
pub(crate) struct FirstCall {
    /// From the start of the server's process to the answer.
    pub(crate) direct: Duration,
    /// From the call to the answer, by a pml that runs.
    pub(crate) pml: Duration,
}

impl FirstCall {
    /// How much longer it takes through pml.
    pub(crate) fn added(&self) -> Duration {
        self.pml.saturating_sub(self.direct)
    }
}

/// Measures both in turns.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<FirstCall> {
    let home = Home::with_servers(&[home::entry("bench", TOOLS, Promise::Nothing)?])?;
    let (mut direct, mut pml) = (Vec::new(), Vec::new());
    // The first round makes the server known and is not kept.
    for round in 0..=effort.rounds(CALLS) {
        let (one, other) = (started(&home)?, called(&home)?);
        if round > 0 {
            direct.push(one);
            pml.push(other);
        }
    }
    Ok(FirstCall {
        direct: median(&direct),
        pml: median(&pml),
    })
}

fn started(home: &Home) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let mut server = Peer::start(
        home.at_home(process::server(TOOLS, Promise::Nothing)?),
        Link::Pipes,
    )?;
    server.open()?;
    server.check(&call("small"), r#""type":"text""#)?;
    Ok(begin.elapsed())
}

fn called(home: &Home) -> anyhow::Result<Duration> {
    let mut pml = Peer::start(home.pml(), Link::Pipes)?;
    pml.open()?;
    pml.measure("tools/list")?;
    let begin = Instant::now();
    pml.check(&call("bench__small"), r#""type":"text""#)?;
    Ok(begin.elapsed())
}

fn call(tool: &str) -> Call {
    Call::new(tool, r#"{"path":"a"}"#)
}
