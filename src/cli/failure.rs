//! The report of a failed command: `error:`, its causes, a blank line, `hint:`.
//!
//! Commands return [`anyhow::Result`] and use `?`. An error type that implements [`crate::report::Hint`] and is
//! listed in [`own_hint`] brings its hint by itself; [`hinted`] takes it from the type of a command, and `.hint("…")`
//! attaches one to any other error.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use owo_colors::OwoColorize as _;

use super::output;
use crate::loader::{InstallError, LoadError};
use crate::report::Hint;
use crate::workflow::WorkflowError;

/// A command that was understood and declined: nothing was changed, and the exit code is 1.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// Returns the exit code of a failed command.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    if error.chain().any(negative) { 1 } else { 2 }
}

/// Tells a no from a failure.
fn negative(cause: &(dyn Error + 'static)) -> bool {
    if let Some(with) = cause.downcast_ref::<WithHint>() {
        return with.error.chain().any(negative);
    }
    // The start of a server is shared by all who wait for it, and so is its error.
    let load = cause.downcast_ref::<LoadError>();
    let load = load.or_else(|| cause.downcast_ref::<Arc<LoadError>>().map(|error| &**error));
    let install = load.and_then(|error| match error {
        LoadError::Install(error) => Some(error),
        _ => None,
    });
    let install = install.or_else(|| cause.downcast_ref::<InstallError>());
    cause.is::<Refused>()
        || matches!(
            cause.downcast_ref::<crate::clients::ClientError>(),
            Some(crate::clients::ClientError::Overtaken { .. })
        )
        || matches!(
            install,
            Some(
                InstallError::Malicious { .. }
                    | InstallError::ChangedFiles { .. }
                    | InstallError::OtherLock { .. }
            )
        )
        || cause.is::<super::person::NotAPerson>()
        || matches!(
            cause.downcast_ref::<WorkflowError>(),
            Some(
                WorkflowError::NoMatch { .. }
                    | WorkflowError::Ambiguous { .. }
                    | WorkflowError::Refused { .. }
                    | WorkflowError::Unfit { .. }
            )
        )
}

/// Attaches the next step to an error.
pub(crate) trait Hinted<T> {
    /// Attaches lines that tell what to do, best a command that can be pasted.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> Hinted<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| {
            anyhow::Error::new(WithHint {
                error: error.into(),
                hint: hint.into(),
            })
        })
    }
}

/// Attaches the hint that an error type of a command brings; those of the crate bring theirs by themselves.
pub(crate) fn hinted<E: Hint + Error + Send + Sync + 'static>(error: E) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow::Error::new(WithHint {
            error: error.into(),
            hint,
        }),
        None => error.into(),
    }
}

#[derive(Debug)]
struct WithHint {
    error: anyhow::Error,
    hint: String,
}

impl fmt::Display for WithHint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(formatter)
    }
}

impl Error for WithHint {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Returns what failed, its causes and its hint.
pub(crate) fn text(error: &anyhow::Error) -> String {
    crate::report::render(error.as_ref(), hint(error).as_deref())
}

/// Prints what failed to stderr, coloured on a terminal only.
pub(crate) fn print(error: &anyhow::Error) {
    let text = crate::report::render(error.as_ref(), None);
    output::say(&format!("{} {text}", "error:".red().bold()));
    if let Some(hint) = hint(error) {
        output::say(&format!("\n{} {hint}", "hint:".cyan().bold()));
    }
}

/// Tells whether a command failed only because the reader of stdout went away; other pipes break as well.
pub(crate) fn has_no_reader(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<output::StdoutError>())
        .any(output::StdoutError::has_no_reader)
}

/// The outermost hint counts: the code that wrapped the error knew more.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        cause
            .downcast_ref::<WithHint>()
            .map(|with| with.hint.clone())
            .or_else(|| own_hint(cause))
    })
}

/// Asks every error type of pml that knows a next step.
fn own_hint(error: &(dyn Error + 'static)) -> Option<String> {
    macro_rules! first_of {
        ($($kind:ty),+ $(,)?) => {
            None $(.or_else(|| error.downcast_ref::<$kind>().and_then(<$kind>::hint)))+
        };
    }
    // The start of a server is shared by all who wait for it, and so is its error.
    if let Some(shared) = error.downcast_ref::<Arc<LoadError>>() {
        return shared.hint();
    }
    first_of![
        crate::clients::ClientError,
        crate::config::ConfigError,
        crate::config::ExpandError,
        crate::inbox::web::ServeError,
        crate::loader::AdvisoryError,
        crate::loader::InstallError,
        crate::loader::LoadError,
        crate::loader::PlanError,
        crate::permissions::writer::WriteError,
        crate::pins::AcceptedError,
        crate::pins::PinError,
        crate::proxy::Refusal,
        crate::workflow::WorkflowError,
        super::person::NotAPerson,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ExpandError;
    use anyhow::Context as _;

    #[test]
    fn what_was_refused_exits_with_one_and_everything_else_with_two() {
        let refused = || Err::<(), _>(Refused("no".to_owned()));
        assert_eq!(code(&refused().hint("say yes").unwrap_err()), 1);
        assert_eq!(code(&refused().context("while adding").unwrap_err()), 1);
        assert_eq!(code(&anyhow::anyhow!("broken")), 2);
        assert_eq!(
            code(
                &Err::<(), _>(anyhow::anyhow!("broken"))
                    .hint("mend it")
                    .unwrap_err()
            ),
            2
        );
    }

    #[test]
    fn only_a_broken_stdout_is_no_failure() {
        let broken = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let stdout = || Err::<(), _>(output::StdoutError::from(broken()));
        assert!(has_no_reader(&stdout().context("while listing").unwrap_err()));
        assert!(!has_no_reader(&anyhow::Error::new(broken())));
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(!has_no_reader(&output::StdoutError::from(full).into()));
    }

    #[test]
    fn the_outermost_hint_counts_and_causes_keep_theirs() {
        let unset = || ExpandError::Unset {
            variable: "TOKEN".to_owned(),
        };
        let plain = anyhow::Error::new(unset());
        assert_eq!(hint(&plain), unset().hint());
        let wrapped = Err::<(), _>(unset()).context("cannot start `x`").unwrap_err();
        assert_eq!(hint(&wrapped), unset().hint());
        let hinted = Err::<(), _>(wrapped).hint("to see it: pml list").unwrap_err();
        assert_eq!(hint(&hinted).as_deref(), Some("to see it: pml list"));
        assert_eq!(
            crate::report::render(hinted.as_ref(), None),
            "cannot start `x`\n  caused by: the environment variable `TOKEN` is not set"
        );
    }
}
