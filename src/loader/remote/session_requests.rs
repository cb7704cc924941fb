//! The requests that hold for a whole session of a Legacy server: the log level and the subscriptions. Pure.
//!
//! A server that forgets its session forgets these with it, and the session would not notice: so the bridge asks for them
//! again in the next session.

use bytes::Bytes;

use crate::protocol::{Message, Payload};

/// The session writes the method before the parameters, so a request that stands is known by its first bytes.
const HEAD: usize = 128;

/// The requests that stand for as long as a session, in their order.
#[derive(Debug, Default)]
pub(super) struct SessionRequests(Vec<(What, Bytes)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Level,
    /// The resource of this address is watched.
    Watched(String),
}

impl SessionRequests {
    /// Takes note of a request to the server. One that it refuses is refused again, which harms nothing.
    pub(super) fn note(&mut self, line: &Bytes) {
        let head = &line[..line.len().min(HEAD)];
        let may_stand = |method: &str| memchr::memmem::find(head, method.as_bytes()).is_some();
        if !["logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
            .into_iter()
            .any(may_stand)
        {
            return;
        }
        let Ok(Message::Request { method, params, .. }) = Message::parse(line) else {
            return;
        };
        let watched = || {
            let object = params.as_ref().and_then(Payload::object)?;
            Some(What::Watched(object.text("uri")?.into_owned()))
        };
        let (what, stands) = match method.as_ref() {
            "logging/setLevel" => (Some(What::Level), Some(line)),
            "resources/subscribe" => (watched(), Some(line)),
            "resources/unsubscribe" => (watched(), None),
            _ => (None, None),
        };
        if let Some(what) = what {
            self.0.retain(|(standing, _)| *standing != what);
            self.0.extend(stands.map(|line| (what, line.clone())));
        }
    }

    /// Returns the lines to be sent again.
    pub(super) fn lines(&self) -> Vec<Bytes> {
        self.0.iter().map(|(_, line)| line.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_level_and_what_is_still_watched_stand() {
        let line = |id: u64, method: &str, params: &str| {
            Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
            ))
        };
        let lines = [
            line(1, "logging/setLevel", r#"{"level":"info"}"#),
            line(2, "resources/subscribe", r#"{"uri":"x://1"}"#),
            line(3, "resources/subscribe", r#"{"uri":"x://2"}"#),
            line(4, "tools/call", r#"{"name":"resources/subscribe"}"#),
            line(5, "resources/unsubscribe", r#"{"uri":"x://1"}"#),
            line(6, "logging/setLevel", r#"{"level":"debug"}"#),
        ];
        let mut standing = SessionRequests::default();
        for line in &lines {
            standing.note(line);
        }
        assert_eq!(standing.lines(), [lines[2].clone(), lines[5].clone()]);
    }
}
