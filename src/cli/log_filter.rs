//! Logs to stderr what pml itself has to say, as much of it as `PML_LOG` asks for.
//!
//! `PML_LOG` is a list of levels (`debug`) and of parts of pml with a level each (`pml::workflow=trace`). It is read
//! without regular expressions, which would stay in memory for as long as a client is served.

use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::output;
use crate::config::Environment;
use crate::protocol::Shown;

/// What libraries log was not looked through for secrets: only targets below this one are written.
const OWN: &str = "pml";

/// Logs to stderr from now on: stdout is data, or the wire.
pub(super) fn to_stderr(environment: &Environment, usual: &str) {
    let wanted = environment.variable("PML_LOG").unwrap_or_default();
    let LogFilter { targets, unreadable } = LogFilter::read(&wanted.to_string_lossy(), usual);
    let own = filter_fn(|event| is_own(event.target()));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // It would write of a full stderr to stderr, and panic.
        .log_internal_errors(false)
        .with_ansi(rustix::termios::isatty(std::io::stderr()));
    // Only the first call of a process counts; there is only one.
    let _ = tracing_subscriber::registry()
        .with(targets)
        .with(own)
        .with(lines)
        .try_init();
    for directive in unreadable {
        let directive = Shown::line(&directive);
        output::note(&format!(
            "`{directive}` in `PML_LOG` is ignored: neither a level (off, error, warn, info, debug, trace) nor a part \
             of pml with a level (pml::workflow=debug)"
        ));
    }
}

/// What is logged, and what of `PML_LOG` could not be read.
#[derive(Debug, PartialEq)]
struct LogFilter {
    targets: Targets,
    unreadable: Vec<String>,
}

impl LogFilter {
    /// Reads a list of directives; where it holds none that can be read, `usual` counts.
    fn read(wanted: &str, usual: &str) -> Self {
        let mut found = Self {
            targets: Targets::new(),
            unreadable: Vec::new(),
        };
        let mut count = 0;
        for directive in directives(wanted) {
            match Directive::read(directive) {
                Some(directive) => {
                    found.add(directive);
                    count += 1;
                }
                None => found.unreadable.push(directive.to_owned()),
            }
        }
        if count == 0 {
            directives(usual)
                .filter_map(Directive::read)
                .for_each(|directive| found.add(directive));
        }
        found
    }

    fn add(&mut self, directive: Directive<'_>) {
        let targets = std::mem::take(&mut self.targets);
        self.targets = match directive {
            Directive::Everything(level) => targets.with_default(level),
            Directive::Part(target, level) => targets.with_target(target, level),
        };
    }
}

/// One entry of `PML_LOG`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive<'a> {
    Everything(LevelFilter),
    Part(&'a str, LevelFilter),
}

impl<'a> Directive<'a> {
    /// Reads `LEVEL`, `TARGET=LEVEL`, or a part of pml, of which everything is logged then.
    fn read(text: &'a str) -> Option<Self> {
        match text.split_once('=') {
            Some((target, level)) => {
                let is_target = !target.is_empty() && !target.contains(['[', ']', '{', '}']);
                let level = level.parse().ok().filter(|_| is_target)?;
                Some(Self::Part(target, level))
            }
            None => match text.parse() {
                Ok(level) => Some(Self::Everything(level)),
                Err(_) => is_own(text).then_some(Self::Part(text, LevelFilter::TRACE)),
            },
        }
    }
}

fn directives(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|text| !text.is_empty())
}

fn is_own(target: &str) -> bool {
    target
        .strip_prefix(OWN)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn read(wanted: &str) -> LogFilter {
        LogFilter::read(wanted, "warn,pml::workflow=info")
    }

    #[test]
    fn a_level_alone_counts_for_everything() {
        let filter = read("debug");
        assert!(filter.targets.would_enable("pml::loader", &Level::DEBUG));
        assert!(!filter.targets.would_enable("pml::loader", &Level::TRACE));
        assert!(!read("OFF").targets.would_enable("pml::loader", &Level::ERROR));
    }

    #[test]
    fn a_part_of_pml_has_its_own_level() {
        let filter = read("pml::workflow=debug, error");
        assert!(
            filter
                .targets
                .would_enable("pml::workflow::keeper", &Level::DEBUG)
        );
        assert!(!filter.targets.would_enable("pml::loader", &Level::WARN));
        assert!(filter.targets.would_enable("pml::loader", &Level::ERROR));
        let whole = read("pml::loader");
        assert!(whole.targets.would_enable("pml::loader", &Level::TRACE));
        assert!(!whole.targets.would_enable("pml::workflow", &Level::ERROR));
    }

    #[test]
    fn what_is_usual_counts_where_nothing_else_can_be_read() {
        for wanted in [
            "",
            " , ",
            "verbose",
            "pml=loud",
            "=debug",
            "pml[call]=debug",
            "pmlx",
        ] {
            let filter = read(wanted);
            assert_eq!(
                filter.targets,
                read("warn,pml::workflow=info").targets,
                "{wanted}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_rest_counts() {
        let filter = read("pml=debug,verbose,pml::proxy=loud,a=b=c");
        assert_eq!(filter.targets, read("pml=debug").targets);
        assert_eq!(filter.unreadable, ["verbose", "pml::proxy=loud", "a=b=c"]);
        assert!(read("hyper=debug,info").unreadable.is_empty());
    }
}
