//! The stream on which a Legacy server speaks unasked.
//!
//! Servers need not have one. A stream that breaks is taken up where it broke, after pauses that grow while nothing
//! comes, so that a server that is gone costs next to nothing.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;

use super::agreement::Agreement;
use super::bridge::Bridge;
use super::events::StreamEvent;
use super::http::{HttpRequest, LAST_EVENT};
use super::messages::{Messages, is_stream};
use super::outcome::LineOutcome;
use crate::protocol::Era;

/// The first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause: a server that comes back is heard again within a minute.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

impl Bridge {
    /// Listens for as long as the connection lives, in whichever session is the current one.
    pub(super) async fn listen(self: Arc<Self>) -> LineOutcome {
        // `initialized` is on its way: a server may refuse what comes before it.
        drop(self.in_order.lock().await);
        let mut sessions = self.opened.subscribe();
        loop {
            let opened = sessions.borrow_and_update().clone();
            if let Some(opened) = opened {
                tokio::select! {
                    () = self.listen_in(&opened) => {}
                    _ = sessions.changed() => continue,
                }
            }
            if sessions.changed().await.is_err() {
                return LineOutcome::Delivered;
            }
        }
    }

    /// Hands on what the server says unasked, until it says that there is no such stream.
    async fn listen_in(&self, opened: &Agreement) {
        let mut last_id: Option<HeaderValue> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let mut headers = opened.headers(Era::Legacy);
            headers.extend(last_id.clone().map(|id| (LAST_EVENT, id)));
            let mut wanted = None;
            match self.http.send(HttpRequest::OpenStream, &headers).await {
                Ok(response) if response.status().is_success() && is_stream(&response) => {
                    let mut messages = Messages::new(&self.http, response, self.line_limit);
                    loop {
                        match messages.next().await {
                            Ok(Some(StreamEvent::Message(message))) => {
                                pause = FIRST_PAUSE;
                                self.deliver(message).await;
                            }
                            Ok(Some(StreamEvent::TooLong(remains))) => self.report_overlong(remains).await,
                            Ok(Some(StreamEvent::Endpoint(_))) => {}
                            Ok(None) | Err(_) => break,
                        }
                    }
                    wanted = messages.retry();
                    let found = messages.last_id().and_then(|id| HeaderValue::from_str(id).ok());
                    last_id = found.or(last_id);
                }
                Ok(response) if !response.status().is_server_error() => return,
                Ok(_) | Err(_) => {}
            }
            // Never faster than a server asks, and slower where it does not live.
            tokio::time::sleep(wanted.unwrap_or_default().max(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
