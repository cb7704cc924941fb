//! The conversation with the client: eras, ids, progress, cancellation, how an outcome is presented.
//!
//! stdout is the wire: nothing but JSON-RPC is ever written there, and only by the one writer of the client's
//! outbox. Requests run concurrently; none of them can hold up the reader.

mod calling;
mod conversation;
mod dialog;
mod era;
mod form;
mod greeting;
mod listing;
mod offered;
mod own;
mod permission_prompt;
mod present;
mod progress;
mod promises;
mod prompts;
mod requests;
mod serve;
mod status;
pub mod streams;
mod told;

pub use serve::{Shutdown, serve};
