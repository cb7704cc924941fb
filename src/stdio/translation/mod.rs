//! Pure translation: a request as its server may see it, and an answer as the client may.

pub(crate) mod impersonation;
pub(crate) mod request;
pub(crate) mod request_state;
pub(crate) mod server_label;
pub(crate) mod to_client;
pub(crate) mod to_server;
