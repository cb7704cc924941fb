//! Trust in the project's file: which calls need it, what a person is shown of it, and what accepting it does.
//!
//! Once a person has accepted a file, the suspended call is decided anew under everything that the file says: see
//! [`super::continuation`].

use super::{Refusal, View};
use crate::config::{self, DeclaredParts, Server, TrustMark, TrustMarks, UnacceptedFile};
use crate::history::History;
use crate::permissions::Ruling;
use crate::permissions::trust::{self, TrustError};
use crate::protocol::approval::ShownProjectFile;
use crate::protocol::{Shown, ToolName};
use crate::workflow::{Answer, Ask, State, Workflow};

impl View {
    /// Tells whether a call that a person would have to decide about needs what only an accepted file may grant.
    pub(super) fn needs_trust(&self, tool: &ToolName, server: &Server) -> bool {
        let Some(wished) = &self.wished else {
            return false;
        };
        let reaches_for_more = || self.config.is_from_outside(server) && server.takes_from_the_user();
        wished.check(tool).ruling == Ruling::Allow || reaches_for_more()
    }
}

/// Returns what a person is shown of a file.
pub(super) fn shown_file(file: &UnacceptedFile) -> ShownProjectFile {
    let changes = if file.accepted_before.is_empty() {
        Vec::new()
    } else {
        file.difference()
    };
    ShownProjectFile {
        path: Shown::path(&file.file),
        origin: file.origin.in_words(),
        content: file.content.clone(),
        wants: file.wants.clone(),
        changes,
    }
}

/// Records that a file is accepted, where that was asked and answered; off the thread, it waits for the disk.
///
/// Whoever records the answer does this and whoever takes it does it again: a process may end between the two.
pub(super) async fn accept_answered(
    marks: &TrustMarks,
    workflow: &Workflow,
    history: &History,
) -> Result<(), Refusal> {
    let Some(mut mark) = mark_of(workflow) else {
        return Ok(());
    };
    let (marks, history) = (marks.clone(), history.clone());
    let written = tokio::task::spawn_blocking(move || {
        // Their values are in no ask; where another text stands there by now, they are not known.
        mark.parts = config::parts_of(&mark.file, &mark.content);
        let is_new = !marks.accepts(&mark.content);
        trust::accept(&marks, &mark)?;
        if is_new {
            history.note_now(&[trust::record(&mark)]);
        }
        Ok::<_, TrustError>(())
    })
    .await;
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Refusal::TrustNotKept(Box::new(error))),
        Err(panicked) => Err(Refusal::TrustNotKept(panicked.into())),
    }
}

fn mark_of(workflow: &Workflow) -> Option<TrustMark> {
    let Ask::Trust { file } = &workflow.ask else {
        return None;
    };
    let (answer, by) = match &workflow.state {
        State::Answered { answer, by, .. } | State::Taken { answer, by, .. } => (answer, by),
        State::Pending | State::Expired | State::Withdrawn => return None,
    };
    matches!(answer, Answer::Approve { .. }).then(|| TrustMark {
        file: workflow.origin.config.clone(),
        content: file.content.clone(),
        wants: file.wants.clone(),
        parts: DeclaredParts::default(),
        by: by.to_string(),
    })
}
