//! Lines of the client that cannot be read: what waits for one gets an error instead, so that nothing waits for ever.

use bytes::Bytes;

use crate::protocol::{Json, Remains, ResponseOutcome};
use crate::stdio::client::link::Link;
use crate::stdio::era::RpcError;

/// Takes what is left of a line that cannot be read, and what is wrong with it.
///
/// A request is answered with the fault. An answer is that to a request of a server or of pml, which gets the error; the
/// client, which asked nothing, gets no word.
pub(super) fn take(link: &Link, remains: Remains, fault: RpcError) {
    match remains {
        Remains::Answer(id) => answered_badly(link, &id, &fault),
        Remains::Either(id) if link.outstanding().is_open(&id) => answered_badly(link, &id, &fault),
        Remains::Request(id) | Remains::Either(id) => link.respond(&id, fault.into()),
        Remains::Notification | Remains::Nothing => link.respond("null", fault.into()),
    }
}

fn answered_badly(link: &Link, id: &str, fault: &RpcError) {
    let message = format!("the client's answer cannot be used: {}", fault.message);
    let error = Bytes::from(RpcError::new(RpcError::INTERNAL, message).to_json());
    if let Some(raw) = std::str::from_utf8(&error).ok().and_then(Json::parse) {
        link.answered(&error, id, &ResponseOutcome::Error(raw));
    }
}
