//! One line of the session carried to the server, and what comes back for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};

use super::agreement::headers_of;
use super::bridge::Bridge;
use super::events::StreamEvent;
use super::http::{HttpRefusal, HttpRequest, LAST_EVENT};
use super::messages::{Messages, is_stream};
use super::outcome::LineOutcome;
use super::outgoing_line::{OutgoingLine, answers};
use super::renewal::forgot_session;
use super::resumption::Resumption;
use crate::loader::session::{EndReason, Violation};
use crate::protocol::{Era, Remains};

/// How long a stream may stay open after its answer: read to its end, its connection can be used again.
const STREAM_END_LIMIT: Duration = Duration::from_millis(500);

impl Bridge {
    /// Carries one line to the server.
    pub(super) async fn carry(
        self: Arc<Self>,
        line: Bytes,
        spoken: OutgoingLine,
        mirrored: HeaderMap,
    ) -> LineOutcome {
        match (spoken, self.endpoint.get()) {
            (OutgoingLine::Initialize { id } | OutgoingLine::Request { id, .. }, Some(endpoint)) => {
                self.post(endpoint, &line, id).await
            }
            (OutgoingLine::Initialize { id }, None) => {
                *self.opening.lock().await = Some(line.clone());
                let opened = self.open(&line, &mirrored, &id).await;
                self.finished(line, &id, opened).await
            }
            (OutgoingLine::Request { id, era }, None) => {
                if era == Era::Legacy {
                    self.standing().note(&line);
                    drop(self.in_order.lock().await);
                }
                let asked = self.ask(&line, &mirrored, &id, era).await;
                match self.finished(line, &id, asked).await {
                    LineOutcome::Delivered => LineOutcome::Answered(id),
                    done => done,
                }
            }
            (OutgoingLine::Initialized | OutgoingLine::Notice, _) => {
                let _turn = self.in_order.lock().await;
                self.post_notice(&line, mirrored).await;
                LineOutcome::Delivered
            }
            // What is cancelled may be what the others wait for.
            (OutgoingLine::Cancelled { .. }, _) => {
                self.post_notice(&line, mirrored).await;
                LineOutcome::Delivered
            }
        }
    }

    async fn finished(&self, line: Bytes, id: &str, outcome: Result<(), EndReason>) -> LineOutcome {
        let failure = match outcome {
            Ok(()) => {
                self.answered.store(true, Ordering::Relaxed);
                return LineOutcome::Delivered;
            }
            Err(failure) => failure,
        };
        if self.answered.load(Ordering::Relaxed) {
            self.deliver_failure(id, &failure).await;
            return LineOutcome::Delivered;
        }
        let is_old = matches!(
            &failure,
            EndReason::Status {
                status: StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED,
                ..
            } | EndReason::Gone {
                status: StatusCode::NOT_FOUND,
                ..
            }
        );
        if is_old {
            LineOutcome::NeedsSse {
                first: line,
                refused: failure,
            }
        } else {
            LineOutcome::ConnectionEnded(failure)
        }
    }

    /// Opens a session and hands its answer on.
    async fn open(&self, line: &Bytes, mirrored: &HeaderMap, id: &str) -> Result<(), EndReason> {
        let response = self.http.send(HttpRequest::Message(line), mirrored).await?;
        match self.accepted(response, id).await? {
            None => Ok(()),
            Some(response) => {
                let answer = self.opening_answer(response, id).await?;
                self.deliver(answer).await;
                Ok(())
            }
        }
    }

    /// Sends a request and hands on what comes back, up to its answer.
    async fn ask(
        self: &Arc<Self>,
        line: &Bytes,
        mirrored: &HeaderMap,
        id: &str,
        era: Era,
    ) -> Result<(), EndReason> {
        let opened = self.opened.borrow().clone();
        let headers = headers_of(mirrored.clone(), opened.as_ref(), era);
        let mut response = self.http.send(HttpRequest::Message(line), &headers).await?;
        if let Some(opened) = opened.filter(|opened| opened.session.is_some() && era == Era::Legacy)
            && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
        {
            let status = response.status();
            let refusal = self.http.refusal(response).await;
            if !forgot_session(status, &refusal) {
                return self.refused(refusal, id).await;
            }
            // Nothing was done, so the request may be sent again in a new session.
            self.renew(&opened).await?;
            let headers = headers_of(mirrored.clone(), self.opened.borrow().as_ref(), era);
            response = self.http.send(HttpRequest::Message(line), &headers).await?;
        }
        match self.accepted(response, id).await? {
            None => Ok(()),
            Some(response) => {
                self.answered_in_session.store(true, Ordering::Relaxed);
                self.relay_answer(response, id, era).await
            }
        }
    }

    /// Returns a response that may hold an answer; a refusal in the words of JSON-RPC is the answer.
    async fn accepted(&self, response: Response, id: &str) -> Result<Option<Response>, EndReason> {
        if response.status().is_success() {
            return Ok(Some(response));
        }
        let refusal = self.http.refusal(response).await;
        self.refused(refusal, id).await.map(|()| None)
    }

    async fn refused(&self, refusal: HttpRefusal, id: &str) -> Result<(), EndReason> {
        match refusal {
            HttpRefusal::Reason(failure) => Err(failure),
            HttpRefusal::ErrorObject(error) => {
                self.deliver_error(id, &error).await;
                Ok(())
            }
        }
    }

    /// Hands on what a response holds up to the answer; takes it up again where it breaks off.
    async fn relay_answer(&self, response: Response, id: &str, era: Era) -> Result<(), EndReason> {
        let mut messages = Messages::new(&self.http, response, self.line_limit);
        let mut resumption = Resumption::default();
        loop {
            let broken = match self.relay_until_answer(&mut messages, id).await {
                Ok(()) => return Ok(()),
                Err(EndReason::Violation(Violation::AnswerTooLong)) => {
                    return Err(EndReason::Violation(Violation::AnswerTooLong));
                }
                Err(failure) => failure,
            };
            let brought = messages.take_brought();
            let next = resumption.next(messages.last_id(), messages.retry(), brought);
            let Some((event, pause)) = next.filter(|_| era == Era::Legacy) else {
                return Err(broken);
            };
            tokio::time::sleep(pause).await;
            let mut headers = headers_of(HeaderMap::new(), self.opened.borrow().as_ref(), era);
            headers.insert(LAST_EVENT, event);
            match self.http.send(HttpRequest::OpenStream, &headers).await {
                Ok(response) if response.status().is_success() && is_stream(&response) => {
                    messages = Messages::new(&self.http, response, self.line_limit);
                }
                Ok(_) => return Err(broken),
                // It may be on its way back.
                Err(_) => {}
            }
        }
    }

    async fn relay_until_answer(&self, messages: &mut Messages<'_>, id: &str) -> Result<(), EndReason> {
        while let Some(event) = messages.next().await? {
            match event {
                StreamEvent::Message(message) => {
                    let is_answer = answers(&message, id);
                    if is_answer {
                        self.parameters().learn(&message);
                    }
                    self.deliver(message).await;
                    if is_answer {
                        let rest = async { while let Ok(Some(_)) = messages.next().await {} };
                        let _ = tokio::time::timeout(STREAM_END_LIMIT, rest).await;
                        return Ok(());
                    }
                }
                // What cannot be told apart from the answer is taken for it: no other caller waits here.
                StreamEvent::TooLong(Remains::Nothing) => {
                    return Err(EndReason::Violation(Violation::AnswerTooLong));
                }
                StreamEvent::TooLong(Remains::Answer(found) | Remains::Either(found)) if found == id => {
                    return Err(EndReason::Violation(Violation::AnswerTooLong));
                }
                StreamEvent::TooLong(remains) => self.report_overlong(remains).await,
                StreamEvent::Endpoint(_) => {}
            }
        }
        Err(EndReason::Unanswered)
    }
}
