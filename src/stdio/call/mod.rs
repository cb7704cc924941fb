//! A request of the client that a server is answering, and what is asked in the middle of it.

mod deadline;
mod era_bridge;
pub(crate) mod in_result;
mod modern_questions;
pub(crate) mod open_call;
pub(crate) mod parked;
pub(crate) mod progress;
mod server_requests;
