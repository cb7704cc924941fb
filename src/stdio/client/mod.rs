//! The client's end of the wire: its requests that are under way, and ours that it has not answered.

pub(crate) mod in_flight;
pub(crate) mod outstanding;
