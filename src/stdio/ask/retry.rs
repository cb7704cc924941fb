//! The retry of a Modern client after a question, of pml itself or of a server.
//!
//! | state | who asked | what it finds |
//! |---|---|---|
//! | the id of a workflow | pml | the form that was shown (`ladder.rs`) |
//! | `parked.ID` | a Legacy server | the call that waits for the answers |
//! | `owned.ID.STATE` | a Modern server | that the call was let through; `STATE` is the server's own |
//!
//! What is found is kept in a [`Parking`](super::parking::Parking): for the very same call, once, for a while.

use crate::protocol::{Json, Object};
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::to_server::{RESPONSES, STATE};

/// A Modern request that goes on after a question.
pub(crate) struct Retry<'a> {
    /// What says which question that was.
    pub(crate) state: RequestState,
    responses: Option<Json<'a>>,
}

impl<'a> Retry<'a> {
    /// Reads what parameters bring back; `None` where they answer no question.
    pub(crate) fn read(params: &Object<'a>) -> Option<Self> {
        Some(Self {
            state: RequestState::read(&params.text(STATE)?),
            responses: params.value(RESPONSES),
        })
    }

    /// Returns the raw answers by the names of their questions.
    pub(crate) fn responses(&self) -> Option<Object<'a>> {
        self.responses.and_then(|raw| Object::parse(raw.get()))
    }
}
