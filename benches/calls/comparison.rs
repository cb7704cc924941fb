//! This build against another one of pml, in one interleaved run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;

use crate::Effort;
use crate::peer::Link;
use crate::rounds::{self, Arm, Lineup, Load, Measured};
use crate::statistics::{ratio, shown};

/// Measures both and prints a table for each kind of link.
pub(crate) fn run(earlier: &Path) -> anyhow::Result<()> {
    for link in Link::ALL {
        let measured = rounds::measure(link, Effort::Full, Lineup::Earlier(earlier))
            .with_context(|| format!("over {}", link.title()))?;
        std::io::stdout().write_all(table(link, &measured).as_bytes())?;
    }
    Ok(())
}

fn table(link: Link, measured: &Measured) -> String {
    let mut text = format!(
        "## Over {}\n\n| | time, earlier | time, now | now : earlier | processor, earlier | processor, now | now : \
         earlier |\n|---|---|---|---|---|---|---|\n",
        link.title()
    );
    for load in Load::ALL {
        let [earlier, now] = [Arm::Earlier, Arm::Pml].map(|arm| measured.of(arm, load));
        let (title, [time_earlier, time_now]) = match load {
            Load::OneAtATime(case) => (case.title().to_owned(), [earlier.p50(), now.p50()]),
            Load::InFlight(case) => (
                format!("{}, 64 in flight", case.title()),
                [earlier.pace(), now.pace()],
            ),
        };
        let _ = writeln!(
            text,
            "| {title} | {} | {} | {:.2} | {} | {} | {:.2} |",
            shown(time_earlier),
            shown(time_now),
            ratio(time_now, time_earlier),
            shown(earlier.cost()),
            shown(now.cost()),
            ratio(now.cost(), earlier.cost()),
        );
    }
    text.push('\n');
    text
}
