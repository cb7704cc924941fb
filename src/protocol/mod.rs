//! The pure data of the protocol: messages on the wire, their parts and their names.
//!
//! Nothing here does IO, reads a clock or knows a module of pml other than its own.

mod batch;
mod canonical;
mod command_words;
mod digest;
mod envelope;
mod era;
mod excerpt;
#[cfg(test)]
pub(crate) mod growth;
mod imitation;
mod json;
mod kind;
mod launch_approval;
mod lexer;
mod line;
mod mended_definition;
mod message_remains;
mod name;
mod nearest;
mod object;
mod pattern;
mod removal;
mod reserved_words;
mod scan;
mod secrets;
mod shown;
mod tree;
mod twins;
mod uri;

pub use batch::elements;
pub use canonical::canonical;
pub use command_words::CommandWords;
pub use digest::Digest;
pub use envelope::{EnvelopeError, Message, Payload, ResponseOutcome};
pub use era::Era;
pub use excerpt::{Excerpt, Extent, fold, is_secret_name, lines_of_json, repeated, shortened, wrap};
pub use imitation::{Imitation, without_imitation};
pub use json::{Json, escaped, quoted, text};
pub use kind::{ListChanges, ListKind};
pub use launch_approval::LaunchApproval;
pub use line::{Line, LineDecoder};
pub use mended_definition::{DefinitionKind, mended_definition, mended_json};
pub use message_remains::{MessageSkim, Remains};
pub use name::{DependencyName, NameError, ToolName, WIRE_NAME_LIMIT, wire_name};
pub(crate) use nearest::distance;
pub use nearest::nearest;
pub use object::{Object, Splice};
pub use pattern::{CoveredTools, Pattern, PatternError, Specificity};
pub use reserved_words::{RESERVED, may_continue, may_hold_reserved, own_tool};
pub use secrets::Secrets;
pub use shown::Shown;
pub use tree::JsonTree;
pub use twins::Twin;
pub use uri::{Spellings, UriError, check_uri};

pub mod approval;
pub mod continuation;
pub mod hook;
pub mod question;
pub mod shell;
