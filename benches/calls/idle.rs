//! What an idle pml with one running server costs: the memory it holds, and how often it wakes up.

use std::time::Duration;

use crate::home::{self, Home};
use crate::payload::Case;
use crate::peer::{Call, Link, Peer};
use crate::process::{self, Promise};
use crate::{Effort, TOOLS};

/// Until threads that wait for more work have given up: tokio keeps them for ten seconds.
const SETTLING: Duration = Duration::from_secs(15);

/// How long wake-ups are counted.
pub(crate) const COUNTED: Duration = Duration::from_mins(1);

/// What an idle pml costs.
#[derive(Debug)]
pub(crate) struct Idle {
    /// The memory of pml and of the server's supervisor; of what they share with other processes their part alone.
    pub(crate) memory: u64,
    /// How often any thread of pml woke up within [`COUNTED`]; `None` in a quick run.
    pub(crate) wake_ups: Option<u64>,
}

/// Measures a pml after a hundred calls.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Idle> {
    let home = Home::with_servers(&[home::entry("bench", TOOLS, Promise::Nothing)?])?;
    let mut pml = Peer::start(home.pml(), Link::Pipes)?;
    pml.open()?;
    pml.measure("tools/list")?;
    let call = Call::new("bench__small", &Case::Small.arguments());
    for _ in 0..100 {
        pml.call(&call)?;
    }
    std::thread::sleep(SETTLING);
    let wake_ups = match effort {
        Effort::Full => {
            let before = process::switches(pml.process())?;
            std::thread::sleep(COUNTED);
            Some(process::switches(pml.process())?.saturating_sub(before))
        }
        Effort::Quick => None,
    };
    // Its child is the supervisor, whose child is the server.
    let mut memory = process::held_memory(pml.process())?;
    for supervisor in process::children(pml.process())? {
        memory += process::held_memory(supervisor)?;
    }
    Ok(Idle { memory, wake_ups })
}
