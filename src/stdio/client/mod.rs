//! The client's end of the wire: the link to it, its requests that are under way, and ours that it has not answered.

pub(crate) mod answer;
pub(crate) mod in_flight;
pub(crate) mod link;
pub(crate) mod outstanding;
