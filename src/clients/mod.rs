//! The clients of people: where each keeps its servers, how it writes one there, and how pml stands in their place.
//!
//! A client is a line of data ([`CLIENTS`]). A file is read once ([`ClientFile`]) and edited as text, so that every byte
//! around the servers stays; it is replaced only while it is still what was read. What a server of a client becomes in
//! `.pml.json` is worked out by [`translate`], which is pure. The [`Journal`] holds what every file said before and after,
//! so that an import can be taken back.

mod clear_secret;
mod clear_text;
mod client;
mod edit;
mod entry_variables;
mod error;
mod file;
mod format;
mod journal;
mod own_entry;
mod place;
mod reference;
mod secret;
mod table;
mod translation;
mod variables_file;

pub use clear_secret::{ClearSecret, clear_address, clear_header, clear_variable, clear_word};
pub use client::{Client, Editing, Scope, Shape};
pub use edit::Edit;
pub use entry_variables::{HandedVariable, HandedVariables};
pub use error::ClientError;
pub use file::{ClientFile, ClientServer};
pub use journal::{ClaudeChange, ConfigurationChange, FileChange, Journal, Restored};
pub use own_entry::{
    OWN_NAME, is_for_the_person, is_pml, own_entry, program_of, renewed_entry, standing_variables,
};
pub use place::{ClientPlace, place_of, places};
pub use reference::{Handover, NeededVariable, variable_name, with_names};
pub use table::{CLIENTS, client};
pub use translation::{Translation, Untakeable, translate};
pub use variables_file::values_in_file;
