//! The way to a server over HTTP, raw: lines in, lines out, as if it were a process.
//!
//! The transport of the SDK is typed and would lose bytes, so this is one of our own: each line that the session
//! writes is a POST, each message that comes back is a line that it reads. Must not look into messages further than
//! the transport itself demands (`id`, `method`, the version). The non-obvious thing: until the server has answered
//! once, a failure is that of the connection and ends it; afterwards it is that of one request, which gets an error.

mod agreement;
mod bridge;
mod connection;
mod events;
mod exchange;
mod http;
mod initialization;
mod messages;
mod notification_stream;
mod outcome;
mod outgoing_line;
mod parameters;
mod renewal;
mod resumption;
mod session_requests;
mod sse_transport;

pub(super) use connection::connect;
