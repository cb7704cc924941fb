//! Relays a question to the host that started this conversation, and brings its answer back.
//!
//! A host names a file in `ASK_USER_CONFIG`: its address on this machine, the token of the conversation, the time that a
//! person has. Each question is posted there and its answer polled for. The host owns a relayed question: it stands in
//! no store of pml.
//!
//! The file is written by a program and the host is a stranger. So every field is checked, only an address of this
//! machine is spoken to, bodies are bounded, and neither the token nor anything that the host says stands in an error.

mod answer;
mod error;
mod exchange;
mod host;
mod settings;
#[cfg(test)]
mod tests;

pub use error::RelayError;
pub use exchange::Relay;
