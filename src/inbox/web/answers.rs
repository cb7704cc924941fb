//! Records what was said to an ask, and makes the reply of what came of it.

use axum::http::StatusCode;
use axum::response::Response;

use super::app::App;
use super::reply;
use crate::card::{Card, CardState, Said};
use crate::proxy::Refusal;
use crate::workflow::{Provenance, WorkflowError, WorkflowId};

/// Records what was said; where another was first, the reply is the card that says who.
pub(super) async fn record(app: &App, id: WorkflowId, said: Said, by: Provenance) -> Response {
    let error = match app.desk.say(id, said, by).await {
        Ok(card) => return reply::json(StatusCode::OK, &card),
        Err(error) => error,
    };
    // What stands now counts more than why this was not recorded: an ask that is over takes no answer.
    if let Ok(card) = find(app, id).await
        && let Some(status) = over(card.state)
    {
        return reply::json(status, &card);
    }
    refused(&error)
}

/// Returns the card of an ask, or the reply that says why there is none.
pub(super) async fn find(app: &App, id: WorkflowId) -> Result<Card, Response> {
    match app.desk.find(id).await {
        Ok(workflow) => Ok(app.desk.card(&workflow)),
        Err(refusal) => Err(refused(&refusal)),
    }
}

/// Tells with which status an ask that is over takes no answer.
fn over(state: CardState) -> Option<StatusCode> {
    match state {
        CardState::Pending => None,
        CardState::Answered | CardState::Used | CardState::Refused => Some(StatusCode::CONFLICT),
        CardState::Expired | CardState::Withdrawn => Some(StatusCode::GONE),
    }
}

/// Makes a reply of a refusal.
pub(super) fn refused(refusal: &Refusal) -> Response {
    let text = crate::report::render(refusal, None);
    match refusal {
        Refusal::NotEntitled { .. } | Refusal::NeedsPerson { .. } => {
            reply::error(StatusCode::FORBIDDEN, &text)
        }
        Refusal::Unfit { complaint, .. } => reply::unfit(&complaint.field(), &complaint.to_string()),
        Refusal::Workflow(WorkflowError::Unknown { .. }) => {
            reply::error(StatusCode::NOT_FOUND, "there is no such ask")
        }
        Refusal::Workflow(WorkflowError::Unfit { wanted, .. }) => {
            reply::unfit("decision", &format!("this asks for {wanted}"))
        }
        Refusal::Workflow(WorkflowError::Full { .. }) => reply::error(StatusCode::TOO_MANY_REQUESTS, &text),
        Refusal::Workflow(WorkflowError::Refused { .. }) | Refusal::Expired => {
            reply::error(StatusCode::GONE, &text)
        }
        refusal => {
            let error = crate::report::render_hinted(refusal);
            tracing::warn!(%error, "a request of the inbox failed");
            reply::error(StatusCode::INTERNAL_SERVER_ERROR, &text)
        }
    }
}
