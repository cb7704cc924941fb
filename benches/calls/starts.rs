//! How long it takes from the start of pml to its first list of tools, with more and more servers known.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;

use crate::home::{self, Home};
use crate::peer::{Call, Link, Peer};
use crate::process::{self, Promise};
use crate::statistics::median;
use crate::{Effort, TOOLS};

/// Fresh starts of each.
const STARTS: usize = 25;

/// So many servers with so many tools each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowd {
    pub(crate) servers: usize,
    pub(crate) tools: usize,
}

impl Crowd {
    /// One usual server: what the others are compared with.
    pub(crate) const ONE: Self = Self {
        servers: 1,
        tools: TOOLS,
    };
    /// Fifty servers, a thousand tools in all.
    pub(crate) const FIFTY: Self = Self {
        servers: 50,
        tools: TOOLS,
    };
    /// The last shows what is due to the tools alone.
    const ALL: [Self; 4] = [
        Self::ONE,
        Self {
            servers: 10,
            tools: TOOLS,
        },
        Self::FIFTY,
        Self {
            servers: 1,
            tools: 50 * TOOLS,
        },
    ];
}

/// The starts with one crowd.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) crowd: Crowd,
    /// From the start of the process to the list of tools.
    pub(crate) listed: Duration,
    /// The size of the list's JSON.
    pub(crate) bytes: usize,
    /// The most memory pml held until then.
    pub(crate) memory: u64,
}

/// All starts, and that of the bare server for comparison.
#[derive(Debug)]
pub(crate) struct Starts {
    pub(crate) bare: Duration,
    pub(crate) crowds: Vec<Started>,
}

impl Starts {
    pub(crate) fn with(&self, crowd: Crowd) -> Option<&Started> {
        self.crowds.iter().find(|started| started.crowd == crowd)
    }
}

/// Measures starts in turns.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Starts> {
    let mut homes = Vec::new();
    for crowd in Crowd::ALL {
        homes.push((crowd, known(crowd)?, Vec::new()));
    }
    let mut bare = Vec::new();
    let mut last = Vec::new();
    for _ in 0..effort.rounds(STARTS) {
        last.clear();
        let (took, _, _) = start(process::server(TOOLS, Promise::Nothing)?)?;
        bare.push(took);
        for (crowd, home, samples) in &mut homes {
            let (took, bytes, memory) = start(home.pml())?;
            samples.push(took);
            last.push((*crowd, bytes, memory));
        }
    }
    let crowds = homes.iter().zip(last);
    Ok(Starts {
        bare: median(&bare),
        crowds: crowds
            .map(|((_, _, samples), (crowd, bytes, memory))| Started {
                crowd,
                listed: median(samples),
                bytes,
                memory,
            })
            .collect(),
    })
}

/// A home whose catalog knows every tool of the crowd, because each server was called once.
fn known(crowd: Crowd) -> anyhow::Result<Home> {
    let names = (0..crowd.servers).map(|number| format!("s{number:02}"));
    let servers: Vec<_> = names
        .map(|name| home::entry(&name, crowd.tools, Promise::Nothing))
        .collect::<anyhow::Result<_>>()?;
    let home = Home::with_servers(&servers)?;
    let mut pml = Peer::start(home.pml(), Link::Pipes)?;
    pml.open()?;
    for (name, _) in &servers {
        let call = Call::new(&format!("{name}__small"), r#"{"path":"a"}"#);
        pml.check(&call, r#""type":"text""#)?;
    }
    drop(pml);
    let mut fresh = Peer::start(home.pml(), Link::Pipes)?;
    fresh.open()?;
    let listed = fresh.request("tools/list", &json!({}))?;
    let count = listed["tools"].as_array().map_or(0, Vec::len);
    let wanted = crowd.servers * crowd.tools;
    ensure!(count >= wanted, "{count} tools are listed instead of {wanted}");
    Ok(home)
}

/// One fresh start: how long until the list, how long the list is, and the most memory held.
fn start(command: Command) -> anyhow::Result<(Duration, usize, u64)> {
    let begin = Instant::now();
    let mut peer = Peer::start(command, Link::Pipes)?;
    peer.open()?;
    let bytes = peer.measure("tools/list")?;
    let took = begin.elapsed();
    Ok((took, bytes, process::peak_memory(peer.process())?))
}
