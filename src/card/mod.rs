//! The card: what a person is shown of an ask, what they may say to it, and the answer that this is.
//!
//! Pure. Every surface shows the same card (a terminal, a page, a chat, `pml pending`) and turns what was pressed or
//! typed into a [`Said`]; [`decide`] is the only place that makes an [`Answer`](crate::workflow::Answer) of it. So what
//! is shown is what is granted, and a slip is told in the same words everywhere.

mod choices;
mod content;
mod facts;
mod notification;
mod outlook;
mod said;

pub use choices::{AlwaysRule, Choice, Decision};
pub use content::{Card, CardAnswer, CardAsker, CardQuestion, CardState, DIALOG_COLUMNS};
pub use facts::{Fact, FilePast, Line, LineStyle, Subject};
pub use notification::Notification;
pub use outlook::{Outlook, Presence};
pub use said::{Complaint, Said, SaidAnswer, SaidAnswers, SaidDecision, decide};

/// Cards for the tests of surfaces, which do not see the workflows themselves.
#[cfg(test)]
pub(crate) mod samples {
    use super::{Card, Presence};
    use crate::workflow::samples::{self, NOON};
    use crate::workflow::{Ask, Workflow};

    /// An ask that waits.
    pub(crate) fn workflow(ask: Ask) -> Workflow {
        samples::workflow(ask)
    }

    /// Its card.
    pub(crate) fn card(workflow: &Workflow) -> Card {
        Card::of(workflow, Presence::Running, NOON)
    }
}
