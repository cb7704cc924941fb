//! The `requestState` that a Modern client brings back: it says what its request goes on with.
//!
//! It is the client's own word: it only finds something, and what is found must be about the very same call.

use uuid::Uuid;

/// What a client brings back in `requestState`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// A call that goes on at a Legacy server.
    Parked(Uuid),
    /// A question of a Modern server, with the server's own state.
    OfServer(Uuid, Option<String>),
    /// A question of pml's own: the id of a workflow, if it is one.
    Own(String),
}

impl RequestState {
    /// Reads a state; what is neither form of pml's is taken for the id of a workflow.
    pub(crate) fn read(text: &str) -> Self {
        let parked = || Some(Self::Parked(text.strip_prefix("parked.")?.parse().ok()?));
        let owned = || {
            let rest = text.strip_prefix("owned.")?;
            let (id, state) = match rest.split_once('.') {
                Some((id, state)) => (id, Some(state.to_owned())),
                None => (rest, None),
            };
            Some(Self::OfServer(id.parse().ok()?, state))
        };
        parked()
            .or_else(owned)
            .unwrap_or_else(|| Self::Own(text.to_owned()))
    }

    /// Writes it down.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Parked(id) => format!("parked.{id}"),
            Self::OfServer(id, None) => format!("owned.{id}"),
            Self::OfServer(id, Some(state)) => format!("owned.{id}.{state}"),
            Self::Own(text) => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let id = Uuid::new_v4();
        for state in [
            RequestState::Parked(id),
            RequestState::OfServer(id, None),
            RequestState::OfServer(id, Some("a.b\n\"ü".to_owned())),
            RequestState::OfServer(id, Some(String::new())),
            RequestState::Own(id.to_string()),
            RequestState::Own("parked.x".to_owned()),
        ] {
            assert_eq!(RequestState::read(&state.text()), state);
        }
    }
}
