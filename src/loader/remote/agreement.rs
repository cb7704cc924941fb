//! What `initialize` agreed on: the session of the server and the version of the protocol.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::outgoing_line::VERSION;
use crate::protocol::Era;

/// The header that names a session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What `initialize` agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Agreement {
    /// The session, if the server keeps one.
    pub(super) session: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
}

impl Agreement {
    /// Returns the headers by which a request belongs to it; a Modern one belongs to nothing.
    pub(super) fn headers(&self, era: Era) -> HeaderMap {
        let own = [(SESSION, &self.session), (VERSION, &self.version)];
        own.into_iter()
            .filter(|_| era == Era::Legacy)
            .filter_map(|(name, value)| Some((name, value.clone()?)))
            .collect()
    }
}

/// Headers of a request of the session that belongs to what was opened.
pub(super) fn headers_of(mirrored: HeaderMap, opened: Option<&Agreement>, era: Era) -> HeaderMap {
    let mut headers = opened.map_or_else(HeaderMap::new, |opened| opened.headers(era));
    headers.extend(mirrored);
    headers
}
