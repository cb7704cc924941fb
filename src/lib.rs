//! pml: one MCP server in front of many, every install gated by a rule or a person.
//!
//! ```text
//! main -> cli -+-> stdio -+
//!              +-> inbox -+-> proxy -+-> permissions -+
//!                                    +-> card -> workflow -> config, protocol   (report, disk, history: usable by all)
//!                                    +-> loader    ---+
//!                                    +-> relay     ---+
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`protocol`] | pure data: lines, envelopes, names, patterns, the JSON shapes that are pml's own |
//! | [`config`] | finding, reading and checking `.pml.json` |
//! | [`permissions`] | rules to verdicts; the one writer of `.pml.json`; what a person has approved |
//! | [`card`] | what a person is shown of an ask, what they may say, and the answer that this is |
//! | [`workflow`] | the state machine of a suspended call, and its store |
//! | [`loader`] | plan, install, spawn, session; the catalog of known tools |
//! | [`pins`] | what a server was when it was accepted: its package, its contents, its tools; and what differs |
//! | [`relay`] | questions that the host of a conversation shows, and their answers |
//! | [`proxy`] | the conductor: the only place that sees permissions, workflow and loader |
//! | [`wire`] | one line reader and one bounded writer per peer |
//! | [`stdio`] | the conversation with the client |
//! | [`inbox`] | the surfaces on which a person answers outside any client: the screen of `pml inbox`, the page of `pml serve` |
//! | [`clients`] | the files in which clients keep their servers: reading, lossless edits, the journal of imports |
//! | `http_client` | how an address elsewhere is reached: proxies, certificates, nothing of what is said there |
//! | [`channels`] | the chat services on which a person answers; in `pml serve` only |
//! | [`cli`] | one file per command; the only place that prints |
//! | [`disk`] | every way in which files are replaced, locked, compared and removed |
//! | [`history`] | the record of what was asked, answered, granted, installed and started, as a chain of lines |
//! | [`report`] | how errors speak |
//! | `footprint` | what a process keeps mapped while it has nothing to do |
//!
//! `permissions`, `workflow` and `loader` do not see one another; `tests/it/architecture.rs` holds that.

pub mod card;
pub mod channels;
pub mod cli;
pub mod clients;
pub mod config;
pub mod disk;
mod footprint;
pub mod history;
pub mod host;
mod http_client;
pub mod inbox;
pub mod loader;
pub mod permissions;
pub mod pins;
pub mod protocol;
pub mod proxy;
pub mod relay;
pub mod report;
pub mod stdio;
pub mod wire;
pub mod workflow;
