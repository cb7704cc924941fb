//! The conversation with the client: eras, ids, progress, cancellation, how an outcome is presented.
//!
//! stdout is the wire: nothing but JSON-RPC is ever written there, and only by the one writer of the client's
//! outbox. Requests run concurrently; none of them can hold up the reader.
//!
//! | folder | is |
//! |---|---|
//! | `conversation` | the loop over the client's lines, its handshake, and the dispatch of its requests |
//! | `call` | a request that a server is answering, and what is asked in the middle of it |
//! | `own_tools` | the tools and prompts of pml itself |
//! | `ask` | how the client is asked, for pml and for servers: the ladder, dialogs, forms, retries, and their words |
//! | `lists` | what is listed to the client |
//! | `subscriptions` | which changes the client wants to hear of |
//! | `client` | the client's end of the wire: what is under way, and what it has not answered |
//! | `translation` | pure: a request as a server may see it, a result as the client may |

mod ask;
mod call;
mod client;
mod conversation;
mod era;
mod lists;
mod own_tools;
mod present;
mod serve;
pub mod streams;
mod subscriptions;
mod translation;

pub use serve::{Shutdown, serve};
