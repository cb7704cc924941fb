//! A long reply that a server gives again and again: known by its bytes, and not read once more.
//!
//! A server that does not tell when its tools change is asked for them each time a client lists them, and mostly says
//! what it said before. Comparing half a megabyte takes a tenth of the time that reading it as JSON does.

use std::ops::Range;

use bytes::Bytes;

/// Shorter replies are read as fast as they are compared.
pub(super) const LONG: usize = 16 * 1024;

/// The reply to a request that is made again and again.
#[derive(Debug, Default)]
pub(in crate::loader) enum RepeatedReply {
    /// None was waited for yet.
    #[default]
    Unknown,
    /// The reply to the request with this id is to be known again.
    Awaited(u64),
    /// It was this.
    Known(KnownReply),
}

/// A line that was read as a reply with a result.
#[derive(Debug)]
pub(in crate::loader) struct KnownReply {
    line: Bytes,
    /// Where its id stands.
    id: Range<usize>,
    /// Where its result stands.
    result: Range<usize>,
}

impl RepeatedReply {
    /// Takes note that the reply to a request is to be known again; one that is known already stays.
    pub(super) fn await_reply(&mut self, id: u64) {
        if !matches!(self, Self::Known(_)) {
            *self = Self::Awaited(id);
        }
    }

    /// Takes note of a line that was read as the reply to a request, if that is the one.
    pub(super) fn learn(&mut self, line: &Bytes, id: u64, raw_id: &str, result: &str) {
        let is_awaited = matches!(self, Self::Awaited(awaited) if *awaited == id);
        if !is_awaited || raw_id != id.to_string() {
            return;
        }
        let place = |part: &str| {
            let start = part.as_ptr().addr().checked_sub(line.as_ptr().addr())?;
            let range = start..start + part.len();
            (line.get(range.clone())? == part.as_bytes()).then_some(range)
        };
        if let (Some(id), Some(result)) = (place(raw_id), place(result)) {
            *self = Self::Known(KnownReply {
                line: line.clone(),
                id,
                result,
            });
        }
    }

    /// Forgets the reply: the server says something else now.
    pub(super) fn forget(&mut self) {
        *self = Self::Unknown;
    }

    /// Reads a line that is the known one but for its id: returns that id, and the result as a part of the line.
    pub(super) fn recognise(&self, line: &Bytes) -> Option<(u64, Bytes)> {
        let Self::Known(known) = self else { return None };
        let (head, tail) = (&known.line[..known.id.start], &known.line[known.id.end..]);
        let rest = line.strip_prefix(head)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if &rest[digits..] != tail {
            return None;
        }
        let id: u64 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        // Another spelling of a number, such as `007`, is not what pml wrote.
        if id.to_string().len() != digits {
            return None;
        }
        let shifted = |place: usize| {
            if place < known.id.end {
                place
            } else {
                place + digits - known.id.len()
            }
        };
        Some((
            id,
            line.slice(shifted(known.result.start)..shifted(known.result.end)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Message, ResponseOutcome};
    use proptest::prelude::*;

    fn long() -> String {
        format!(r#"{{"tools":["{}"]}}"#, "x".repeat(LONG))
    }

    fn known(line: &str, id: u64) -> RepeatedReply {
        let line = Bytes::copy_from_slice(line.as_bytes());
        let mut reply = RepeatedReply::default();
        reply.await_reply(id);
        match Message::parse(&line).unwrap() {
            Message::Response {
                id: raw,
                outcome: ResponseOutcome::Result(result),
            } => reply.learn(&line, id, raw.get(), result.get()),
            other => panic!("{other:?}"),
        }
        reply
    }

    fn recognised(reply: &RepeatedReply, line: &str) -> Option<(u64, String)> {
        let (id, result) = reply.recognise(&Bytes::copy_from_slice(line.as_bytes()))?;
        Some((id, String::from_utf8(result.to_vec()).unwrap()))
    }

    #[test]
    fn the_same_reply_to_another_request_is_known_wherever_its_id_stands() {
        let result = long();
        for shape in [
            r#"{"jsonrpc":"2.0","id":ID,"result":R}"#,
            r#"{ "result" : R , "id": ID ,"jsonrpc":"2.0"}"#,
        ] {
            let line = |id: &str| shape.replace("ID", id).replace('R', &result);
            let reply = known(&line("9"), 9);
            for id in ["7", "10", "18446744073709551615"] {
                let expected = Some((id.parse().unwrap(), result.clone()));
                assert_eq!(recognised(&reply, &line(id)), expected, "{shape}");
            }
            for other in ["007", "-1", "1.0", "\"7\"", "null", "", "18446744073709551616"] {
                assert_eq!(recognised(&reply, &line(other)), None, "{other}");
            }
        }
    }

    #[test]
    fn what_was_not_awaited_is_not_kept_and_what_is_known_stays_until_it_is_forgotten() {
        let line = format!(r#"{{"id":2,"result":{}}}"#, long());
        let mut reply = RepeatedReply::default();
        reply.await_reply(1);
        reply.learn(&Bytes::from(line.clone()), 2, "2", "");
        assert!(matches!(reply, RepeatedReply::Awaited(1)));
        let mut reply = known(&line, 2);
        reply.await_reply(3);
        assert!(recognised(&reply, &line).is_some());
        reply.forget();
        assert!(recognised(&reply, &line).is_none());
    }

    proptest! {
        /// Whatever one byte is changed to, the line is read as it would have been, or not recognised.
        #[test]
        fn a_line_with_another_byte_is_never_taken_for_the_known_one(at in 0_usize..16_450, byte: u8) {
            let line = format!(r#"{{"jsonrpc":"2.0","id":42,"result":{}}}"#, long());
            let reply = known(&line, 42);
            let mut other = line.clone().into_bytes();
            let at = at % other.len();
            other[at] = byte;
            let other = Bytes::from(other);
            if let Some((id, result)) = reply.recognise(&other) {
                let Ok(Message::Response { id: read, outcome: ResponseOutcome::Result(read_result) }) = Message::parse(&other) else {
                    return Err(TestCaseError::fail("it is no reply"));
                };
                prop_assert_eq!(read.get(), id.to_string());
                prop_assert_eq!(read_result.get().as_bytes(), &result[..]);
            }
        }
    }
}
