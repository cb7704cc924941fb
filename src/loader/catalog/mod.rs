//! What servers offer, as they defined it: learned while they run, kept in files, bounded in size.

mod capabilities;
mod collection;
mod definition;
mod files;
mod known;

pub use capabilities::Capabilities;
pub(in crate::loader) use collection::Collection;
pub use definition::{
    ByName, ByTemplate, ByUri, Definition, Identity, KnownPrompt, KnownResource, KnownTemplate, KnownTool,
    Nameless,
};
pub use files::Catalog;
pub(in crate::loader) use known::ToolDigests;
pub use known::{Known, LeftOut};
