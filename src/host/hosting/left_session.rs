//! Sessions of Claude Code that their person began without pml and left with an open question, which was answered since.
//!
//! Where the user's own file says `"lateAnswers": "resume"`, such a session becomes a run that was lost while it asked, and
//! goes on like one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Hosting, title};
use crate::card::Presence;
use crate::config::{self, LateAnswers};
use crate::host::claude;
use crate::host::error::RunError;
use crate::host::record::{KeptAsk, RunRecord, RunState};
use crate::host::runs::RunLock;
use crate::proxy::{Desk, Workflow, now, presence_of};
use crate::workflow::{Answer, Ask, ProcessName, State, Timestamp, WorkflowId, is_left_by_its_owner};

/// A session whose questions were answered after it had ended.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::host) struct LeftSession {
    session: Uuid,
    /// Where it was begun.
    directory: PathBuf,
    /// What it asked first, for lists.
    question: String,
    asks: Vec<KeptAsk>,
}

/// Finds the sessions that left questions, which were answered and told to none, and that are no runs.
///
/// Only questions: a call that was approved late belongs to the conversation that made it, and runs when it comes again.
pub(in crate::host) fn left_sessions(kept: &[Workflow], runs: &[RunRecord]) -> Vec<LeftSession> {
    found(kept, runs, now(), presence_of)
}

fn found(
    kept: &[Workflow],
    runs: &[RunRecord],
    now: Timestamp,
    presence: impl Fn(Option<ProcessName>) -> Presence,
) -> Vec<LeftSession> {
    let is_adopted = |id: WorkflowId| {
        let mut asks = runs.iter().flat_map(|run| run.asks.iter().chain(&run.answered));
        asks.any(|ask| ask.workflow == id)
    };
    let mut found: BTreeMap<Uuid, LeftSession> = BTreeMap::new();
    // The newest come first there.
    for workflow in kept.iter().rev() {
        let client = &workflow.origin.client;
        let (Ask::Questions { questions }, None, Some(directory)) =
            (&workflow.ask, &client.run, &client.directory)
        else {
            continue;
        };
        let Some(Ok(session)) = client.session.as_deref().map(str::parse::<Uuid>) else {
            continue;
        };
        // The person was shown the project, and nothing is begun elsewhere for their answer.
        let is_in_project = Path::new(directory).starts_with(&workflow.project);
        let is_answered = matches!(
            workflow.state,
            State::Answered {
                answer: Answer::Answers { .. },
                ..
            }
        );
        if !is_answered
            || !is_in_project
            || !workflow.is_live_at(now)
            || !is_left_by_its_owner(workflow, now)
            || presence(client.process) == Presence::Running
            || is_adopted(workflow.id)
        {
            continue;
        }
        let question = questions.first().map_or("", |first| first.question.as_str());
        let left = found.entry(session).or_insert_with(|| LeftSession {
            session,
            directory: directory.into(),
            question: title(question),
            asks: Vec::new(),
        });
        left.asks.push(KeptAsk::orphan(workflow));
    }
    found.into_values().collect()
}

impl Hosting {
    /// Tells what becomes of answers to sessions that are no runs, as the user's own file says now. It blocks.
    pub(in crate::host) fn late_answers(&self) -> LateAnswers {
        let files = config::find(None, &self.environment, &self.locations);
        // A file that cannot be read starts nothing.
        config::read(&files).map_or(LateAnswers::Keep, |config| config.run.late_answers)
    }

    /// Makes a lost run of a session, with the answers that this process was the first to take.
    pub(in crate::host) async fn adopt_session(
        &self,
        desk: &Desk,
        left: LeftSession,
    ) -> Result<(), RunError> {
        let hosting = self.clone();
        let made = tokio::task::spawn_blocking(move || hosting.left_run(&left)).await;
        let Ok(made) = made else { return Ok(()) };
        let (mut record, lock) = made?;
        let mut taken = Vec::new();
        for ask in std::mem::take(&mut record.asks) {
            // Another process, or a conversation of the project that asked for it, may have been faster.
            if desk.take(ask.workflow).await.is_ok() {
                taken.push(ask);
            }
        }
        record.asks = taken;
        let runs = self.runs.clone();
        let kept = tokio::task::spawn_blocking(move || {
            if record.asks.is_empty() {
                runs.forget(&record.id, lock);
                return Ok(());
            }
            runs.write(&record)
        });
        kept.await.unwrap_or(Ok(()))
    }

    /// Makes the run of a session, unless that is open somewhere. It blocks.
    fn left_run(&self, left: &LeftSession) -> Result<(RunRecord, RunLock), RunError> {
        let settings = self.surroundings(&left.directory, None).settings;
        let make = |id| RunRecord {
            session: left.session,
            title: left.question.clone(),
            state: RunState::Lost,
            asks: left.asks.clone(),
            ..RunRecord::new(id, left.directory.clone(), settings.patience, now())
        };
        let (record, lock) = self.runs.create(make)?;
        match claude::process_with_session(&self.environment, &record) {
            None => Ok((record, lock)),
            Some(pid) => {
                self.runs.forget(&record.id, lock);
                Err(RunError::SessionOpen {
                    id: record.id.to_string(),
                    agent: claude::NAME,
                    pid,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::record::tests::record;
    use crate::protocol::question::QuestionAnswer;
    use crate::workflow::{Road, samples};

    const SESSION: Uuid = Uuid::from_u128(9);

    fn answered() -> Workflow {
        let mut workflow = samples::workflow(Ask::Questions {
            questions: vec![samples::choice("Which db?", &["pg", "sqlite"])],
        });
        workflow.state = State::Answered {
            answer: Answer::Answers {
                answers: vec![QuestionAnswer {
                    labels: vec!["pg".to_owned()],
                    text: None,
                }],
            },
            by: Road::Web.into(),
            at: samples::NOON,
        };
        workflow.project = "/work".into();
        workflow.origin.client.session = Some(SESSION.to_string());
        workflow.origin.client.directory = Some("/work".to_owned());
        workflow
    }

    fn found_for(workflow: Workflow, runs: &[RunRecord], presence: Presence) -> Vec<LeftSession> {
        let later = samples::NOON.plus(std::time::Duration::from_mins(1));
        found(&[workflow], runs, later, |_| presence)
    }

    #[test]
    fn a_session_that_is_gone_is_found_with_what_was_answered_since() {
        let workflow = answered();
        let kept = KeptAsk::orphan(&workflow);
        let expected = LeftSession {
            session: SESSION,
            directory: "/work".into(),
            question: "Which db?".to_owned(),
            asks: vec![kept],
        };
        assert_eq!(found_for(workflow, &[], Presence::Gone), [expected]);
    }

    #[test]
    fn what_another_one_looks_after_is_left_alone() {
        let workflow = answered();
        let mut of_run = workflow.clone();
        of_run.origin.client.run = Some("abcde".to_owned());
        let mut without_session = workflow.clone();
        without_session.origin.client.session = None;
        let mut elsewhere = workflow.clone();
        elsewhere.origin.client.directory = Some("/works".to_owned());
        let mut open = workflow.clone();
        open.state = State::Pending;
        let mut refused = workflow.clone();
        refused.state = State::Answered {
            answer: Answer::Refuse { reason: None },
            by: Road::Web.into(),
            at: samples::NOON,
        };
        for other in [of_run, without_session, elsewhere, open, refused] {
            assert_eq!(found_for(other, &[], Presence::Gone), []);
        }
        let adopted = RunRecord {
            answered: vec![KeptAsk::orphan(&workflow)],
            ..record()
        };
        assert_eq!(found_for(workflow.clone(), &[adopted], Presence::Gone), []);
        assert_eq!(found_for(workflow, &[], Presence::Running), []);
    }
}
