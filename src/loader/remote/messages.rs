//! The messages of one HTTP response, one at a time: of a JSON body or of a stream of events.
//!
//! Nothing is read before it is asked for: a client that reads slowly holds up the server, not pml's memory.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

use super::events::{EventDecoder, StreamEvent};
use super::http::Http;
use super::resumption::Brought;
use crate::loader::session::EndReason;
use crate::protocol::elements;

/// The messages of one response.
pub(super) struct Messages<'a> {
    http: &'a Http,
    form: Form,
    limit: usize,
    brought: Brought,
}

enum Form {
    /// A body that is one JSON text; `None` once it was read.
    Body(Option<Response>, VecDeque<Bytes>),
    Stream(Response, EventDecoder),
}

/// Tells whether a response is a stream of events.
pub(super) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| {
        kind.as_bytes()
            .to_ascii_lowercase()
            .starts_with(b"text/event-stream")
    })
}

impl<'a> Messages<'a> {
    /// Reads messages of at most `limit` bytes from a response.
    pub(super) fn new(http: &'a Http, response: Response, limit: usize) -> Self {
        let form = if is_stream(&response) {
            Form::Stream(response, EventDecoder::new(limit))
        } else {
            Form::Body(Some(response), VecDeque::new())
        };
        Self {
            http,
            form,
            limit,
            brought: Brought::Nothing,
        }
    }

    /// Returns the next event; `None` at the end. After [`Violation::AnswerTooLong`] a stream goes on.
    pub(super) async fn next(&mut self) -> Result<Option<StreamEvent>, EndReason> {
        match &mut self.form {
            Form::Body(response, waiting) => {
                if let Some(response) = response.take() {
                    *waiting = parts(self.http.collect(response, self.limit).await?);
                }
                Ok(waiting.pop_front().map(StreamEvent::Message))
            }
            Form::Stream(response, decoder) => loop {
                if let Some(event) = decoder.next_event() {
                    self.brought = Brought::Messages;
                    return Ok(Some(event));
                }
                match self.http.chunk(response).await? {
                    Some(chunk) => decoder.push(&chunk),
                    None => return Ok(None),
                }
            },
        }
    }

    /// Tells whether any message came since this was last asked.
    pub(super) fn take_brought(&mut self) -> Brought {
        std::mem::replace(&mut self.brought, Brought::Nothing)
    }

    /// Returns the id by which the stream can be taken up again where it broke.
    pub(super) fn last_id(&self) -> Option<&str> {
        match &self.form {
            Form::Body(..) => None,
            Form::Stream(_, decoder) => decoder.last_id(),
        }
    }

    /// Returns how long the server wants to be left alone before that.
    pub(super) fn retry(&self) -> Option<Duration> {
        match &self.form {
            Form::Body(..) => None,
            Form::Stream(_, decoder) => decoder.retry(),
        }
    }
}

/// Servers of before 2025-06-18 may answer with a list of messages.
fn parts(body: Bytes) -> VecDeque<Bytes> {
    if body.trim_ascii().is_empty() {
        return VecDeque::new();
    }
    elements(&body).map_or_else(|| VecDeque::from([body]), VecDeque::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_messages_is_taken_apart_and_each_stays_the_bytes_it_was() {
        let read = |text: &'static str| parts(Bytes::from_static(text.as_bytes()));
        assert_eq!(read(" \n"), VecDeque::<Bytes>::new());
        assert_eq!(read("{ }"), ["{ }"]);
        assert_eq!(
            read(r#" [ {"a": 1.0}, {"b":[2]} ]"#),
            [r#"{"a": 1.0}"#, r#"{"b":[2]}"#]
        );
        assert_eq!(read("[broken"), ["[broken"]);
    }
}
