//! Puts questions to a person by forms, in either era: the choices first, then their own words where they chose those.

use serde_json::Map;

use crate::protocol::question::Question;
use crate::proxy::{Answer, Provenance, Refusal, Workflow, came_second};
use crate::stdio::ask::dialog::Ended;
use crate::stdio::ask::form::{self, Filled};
use crate::stdio::ask::ladder::{Calling, ModernForm, Retry};
use crate::stdio::conversation::Conversation;

/// What a person did with the forms of questions.
pub(crate) enum Reply {
    /// They answered, or refused to.
    Said(Answer),
    /// The form reached no person, or what came back is no answer; it may have been answered on another road.
    Nothing,
    /// They want to write something: the next form.
    Next(ModernForm),
}

impl Conversation {
    /// Shows questions at a Legacy client, one form after the other.
    pub(crate) async fn show_questions(
        &self,
        calling: &Calling<'_>,
        workflow: &Workflow,
        questions: &[Question],
        patience: std::time::Duration,
    ) -> Reply {
        let code = workflow.code.to_string();
        let first = form::questions(questions, &code);
        let mut content = match self.show(calling, workflow.id, first, patience).await {
            Ended::Filled(Filled::Accepted(content)) => content,
            Ended::Filled(Filled::Refused) => return Reply::Said(Answer::Refuse { reason: None }),
            Ended::Filled(Filled::Unreadable) | Ended::Unavailable | Ended::Elsewhere(_) => {
                return Reply::Nothing;
            }
        };
        if let Some(second) = form::own_words(questions, &content, &code) {
            match self.show(calling, workflow.id, second, patience).await {
                Ended::Filled(Filled::Accepted(words)) => content.extend(words),
                Ended::Filled(Filled::Refused) => return Reply::Said(Answer::Refuse { reason: None }),
                Ended::Filled(Filled::Unreadable) | Ended::Unavailable | Ended::Elsewhere(_) => {
                    return Reply::Nothing;
                }
            }
        }
        said(questions, &content)
    }

    /// Returns the first form of questions for a Modern client.
    pub(crate) fn question_form(workflow: &Workflow, questions: &[Question]) -> ModernForm {
        let params = form::questions(questions, &workflow.code.to_string());
        ModernForm::new(workflow.id, params)
    }

    /// Reads the form of questions that a Modern client brings back.
    pub(crate) fn question_reply(workflow: &Workflow, questions: &[Question], retry: &Retry) -> Reply {
        let (Some(filled), Some(form)) = (retry.filled.as_ref(), retry.take_form()) else {
            return Reply::Next(Self::question_form(workflow, questions));
        };
        match filled {
            Filled::Accepted(content) => {
                let is_first = form.earlier.is_empty();
                let mut all = form.earlier;
                all.extend(content.clone());
                let next = form::own_words(questions, &all, &workflow.code.to_string());
                match next.filter(|_| is_first) {
                    Some(params) => Reply::Next(ModernForm {
                        earlier: all,
                        ..ModernForm::new(workflow.id, params)
                    }),
                    // Not asked again: what accepts forms without filling them in would do so for ever.
                    None => said(questions, &all),
                }
            }
            Filled::Refused if form.was_read() => Reply::Said(Answer::Refuse { reason: None }),
            Filled::Refused | Filled::Unreadable => Reply::Nothing,
        }
    }

    /// Records what a person said in a dialog; where another answer was first, that one counts.
    pub(crate) async fn record(
        &self,
        workflow: &Workflow,
        answer: Answer,
        by: Provenance,
    ) -> Result<(), Refusal> {
        match self.0.proxy.answer(workflow.id, answer, by).await {
            Ok(_) => Ok(()),
            Err(refusal) if came_second(&refusal) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }
}

fn said(questions: &[Question], content: &Map<String, serde_json::Value>) -> Reply {
    match form::answers(questions, content) {
        Some(answers) => Reply::Said(Answer::Answers { answers }),
        None => Reply::Nothing,
    }
}
