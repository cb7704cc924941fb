//! Counts how often an idle pml wakes up.

use std::time::Duration;

use crate::home::{self, Home};
use crate::payload::Case;
use crate::peer::{Call, Link, Peer};
use crate::{TOOLS, process};

/// Until threads that wait for more work have given up: tokio keeps them for ten seconds.
const SETTLING: Duration = Duration::from_secs(15);

/// How long is counted.
pub(crate) const COUNTED: Duration = Duration::from_mins(1);

/// Returns how often any thread of a pml with one running server woke up within [`COUNTED`].
pub(crate) fn wake_ups() -> anyhow::Result<u64> {
    let home = Home::with_servers(&[home::entry("bench", TOOLS)?])?;
    let mut pml = Peer::start(home.pml(), Link::Pipes)?;
    pml.open()?;
    pml.measure("tools/list")?;
    let call = Call::new("bench__small", &Case::Small.arguments());
    for _ in 0..100 {
        pml.call(&call)?;
    }
    std::thread::sleep(SETTLING);
    let before = process::switches(pml.process())?;
    std::thread::sleep(COUNTED);
    Ok(process::switches(pml.process())?.saturating_sub(before))
}
