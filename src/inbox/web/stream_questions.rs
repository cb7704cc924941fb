//! The questions of streams: one waits at a time, and a newer one withdraws it.

use std::collections::HashMap;

use tokio::sync::Mutex;

use super::streams::StreamToken;
use crate::protocol::question::Question;
use crate::proxy::{AskingProgram, Desk, Refusal};
use crate::workflow::{State, Workflow, WorkflowId};

/// How many streams are remembered; what is forgotten is found in the store.
const REMEMBERED: usize = 1_000;

/// How many asks are looked through for the question of a stream that is not remembered.
const LOOKED_THROUGH: usize = 1_000;

/// The newest question of each stream; held while one is put, so that two at once do not both stay.
#[derive(Debug, Default)]
pub(super) struct StreamQuestions(Mutex<HashMap<StreamToken, WorkflowId>>);

impl StreamQuestions {
    /// Puts a question to the person and withdraws the one before it, unless it is the same.
    pub(super) async fn put(
        &self,
        desk: &Desk,
        token: StreamToken,
        program: AskingProgram,
        question: Question,
    ) -> Result<WorkflowId, Refusal> {
        let mut newest = self.0.lock().await;
        let before = match newest.get(&token) {
            Some(id) => Some(*id),
            None => find(desk, &program).await?,
        };
        let id = desk.ask(program, question).await?.id;
        if let Some(before) = before.filter(|before| *before != id)
            && let Ok(Workflow {
                state: State::Pending,
                ..
            }) = desk.find(before).await
        {
            desk.withdraw(before).await;
        }
        if newest.len() >= REMEMBERED {
            newest.clear();
        }
        newest.insert(token, id);
        Ok(id)
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
