//! The conversation with the client: eras, ids, progress, cancellation, how an outcome is presented.
//!
//! stdout is the wire: nothing but JSON-RPC is ever written there, and only by the one writer of the client's
//! outbox. Requests run concurrently; none of them can hold up the reader.

mod approval_result;
mod calling;
mod carrying;
mod conversation;
mod crossing;
mod deadline;
mod dialog;
mod disguise;
mod era;
mod form;
mod greeting;
mod guessing;
mod incoming;
mod inquiries;
mod label;
mod listing;
mod modern_questions;
mod offered;
mod open_call;
mod open_forms;
mod outgoing;
mod own;
mod parking;
mod permission_prompt;
mod present;
mod progress;
mod promises;
mod prompts;
mod question_forms;
mod readings;
mod relaying;
mod request;
mod requests;
mod serve;
mod status;
pub mod streams;
mod subscriptions;
mod told;
mod unread;
mod upward;
mod watching;

pub use serve::{Shutdown, serve};
