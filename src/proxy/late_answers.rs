//! Answers that came after their call had returned: told to whichever conversation of the project asks how things stand.

use super::{Proxy, now};
use crate::protocol::question::{Question, QuestionAnswer};
use crate::workflow::{Answer, Ask, Event, Provenance, State, Workflow, WorkflowId, is_left_by_its_owner};

/// More than a person answers between two looks; what is left comes with the next.
const AT_ONCE: usize = 20;

/// An answer that no call had taken.
#[derive(Debug)]
pub struct LateAnswer {
    /// The ask.
    pub id: WorkflowId,
    /// The name by which people speak of it.
    pub code: String,
    /// What was asked.
    pub questions: Vec<Question>,
    /// What they said, in the same order.
    pub answers: Vec<QuestionAnswer>,
    /// Where it came from.
    pub by: Provenance,
}

impl Proxy {
    /// Takes the answers to questions of this project that no call waits for, the oldest first.
    ///
    /// An answer that was taken here can still be asked for by the id of its question.
    pub(super) async fn take_late_answers(&self) -> Vec<LateAnswer> {
        let kept = self.0.workflows.recent(usize::MAX).await.unwrap_or_default();
        let late = kept.into_iter().rev().filter(|workflow| self.is_late(workflow));
        let mut taken = Vec::new();
        for workflow in late.take(AT_ONCE) {
            // Where another process was faster, it has told the answer.
            let Ok(workflow) = self.0.workflows.apply(workflow.id, Event::Take).await else {
                continue;
            };
            if let (
                Ask::Questions { questions },
                State::Taken {
                    answer: Answer::Answers { answers },
                    by,
                    ..
                },
            ) = (workflow.ask, workflow.state)
            {
                taken.push(LateAnswer {
                    id: workflow.id,
                    code: workflow.code.to_string(),
                    questions,
                    answers,
                    by,
                });
            }
        }
        taken
    }

    fn is_late(&self, workflow: &Workflow) -> bool {
        let now = now();
        let answered = matches!(
            &workflow.state,
            State::Answered {
                answer: Answer::Answers { .. },
                ..
            }
        );
        answered
            && matches!(workflow.ask, Ask::Questions { .. })
            // A run that is put aside comes for its answers itself.
            && workflow.origin.client.run.is_none()
            && workflow.project == self.project()
            && workflow.is_live_at(now)
            && is_left_by_its_owner(workflow, now)
    }
}
