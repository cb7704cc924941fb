//! `pml serve`: the page of a person's inbox, the API behind it, and the questions of agents that speak HTTP.
//!
//! Threats: any web page can send requests to a port of this machine (cross-site posts, DNS rebinding), any process can
//! connect to it, and a peer may send slowly or without end. So the server listens on the loopback interface alone;
//! every request names a known host and comes from no other origin (`guard.rs`); every answer needs a token, or a cookie
//! together with a value that only the page itself can read; connections, bodies, streams and rates are bounded.
//! Tokens, bodies and answers reach no log.

mod access;
mod agent_host;
mod answers;
mod app;
mod body;
mod client;
mod connections;
mod device;
mod error;
mod events;
mod guard;
mod hooks;
mod hosts;
mod limits;
mod only_server;
mod page;
mod reply;
mod routes;
mod runs;
mod secret;
mod server;
mod stream_questions;
mod streams;

pub use app::WhatsappHook;
pub use client::fresh_key;
pub use error::ServeError;
pub use only_server::{Claim, OnlyServer, RunningServer, ServerCommand};
pub use server::{ServeOptions, Server};
pub use streams::{StreamToken, StreamTokens};
