//! The questions of streams: one waits at a time, and a newer one withdraws it unless a person was faster.

use std::collections::{BTreeSet, HashMap};

use tokio::sync::Mutex;

use super::streams::StreamToken;
use crate::protocol::question::Question;
use crate::proxy::{AskingProgram, Desk, Refusal};
use crate::workflow::{Answer, State, WorkflowId};

/// How many streams are remembered; what is forgotten is found in the store.
const REMEMBERED: usize = 1_000;

/// How many asks are looked through for the question of a stream that is not remembered.
const LOOKED_THROUGH: usize = 1_000;

/// The newest question of each stream; held while one is put, so that two at once do not both stay.
#[derive(Debug, Default)]
pub(super) struct StreamQuestions(Mutex<HashMap<StreamToken, WorkflowId>>);

/// A question that was put.
pub(super) struct PutQuestion {
    /// Its id.
    pub(super) id: WorkflowId,
    /// The earlier questions of the stream whose answers were not fetched: a person answered before they were withdrawn.
    pub(super) answered: Vec<WorkflowId>,
}

impl StreamQuestions {
    /// Puts a question to the person and withdraws those before it, unless it is the same or they are answered.
    pub(super) async fn put(
        &self,
        desk: &Desk,
        token: StreamToken,
        program: AskingProgram,
        question: Question,
    ) -> Result<PutQuestion, Refusal> {
        let mut newest = self.0.lock().await;
        let before = match newest.get(&token) {
            Some(id) => Some(*id),
            None => find(desk, &program).await?,
        };
        let asker = program.asker;
        let id = desk.ask(program, question).await?.id;
        // More than one waits where a server was killed in the middle of this.
        let pending = desk.pending().await?.into_iter();
        let pending = pending.filter(|workflow| workflow.origin.asker == asker);
        let mut earlier: BTreeSet<_> = pending.map(|workflow| workflow.id).chain(before).collect();
        earlier.remove(&id);
        let mut answered = Vec::new();
        for id in earlier {
            // Either it is withdrawn or it is answered: the store decides which came first.
            let withdrawn = desk.withdraw(id).await?;
            if let State::Answered {
                answer: Answer::Answers { .. },
                ..
            } = withdrawn.state
            {
                answered.push(id);
            }
        }
        if newest.len() >= REMEMBERED {
            newest.clear();
        }
        newest.insert(token, id);
        Ok(PutQuestion { id, answered })
    }

    /// Returns the newest question of a stream.
    pub(super) async fn newest(
        &self,
        desk: &Desk,
        token: StreamToken,
        program: &AskingProgram,
    ) -> Result<Option<WorkflowId>, Refusal> {
        let mut newest = self.0.lock().await;
        if let Some(id) = newest.get(&token) {
            return Ok(Some(*id));
        }
        // It was put before this server was started.
        let found = find(desk, program).await?;
        if let Some(id) = found {
            newest.insert(token, id);
        }
        Ok(found)
    }
}

async fn find(desk: &Desk, program: &AskingProgram) -> Result<Option<WorkflowId>, Refusal> {
    let recent = desk.recent(LOOKED_THROUGH).await?;
    let own = recent
        .iter()
        .find(|workflow| workflow.origin.asker == program.asker);
    Ok(own.map(|workflow| workflow.id))
}
