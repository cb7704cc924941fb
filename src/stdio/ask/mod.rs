//! How a person is asked through the client: one ladder, its dialogs and forms, and the words of both.
//!
//! What servers ask their client takes the same rungs, as the bytes it is (`forwarded.rs`).

pub(crate) mod answer_collection;
pub(crate) mod approval;
mod dialog;
mod form;
pub(crate) mod forwarded;
pub(crate) mod heartbeat;
pub(crate) mod in_words;
mod input_required;
pub(crate) mod ladder;
mod open_form;
mod open_request;
pub(crate) mod parking;
pub(crate) mod retry;
pub(crate) mod server_question;
pub(crate) mod subject;
pub(crate) mod wording;
