//! One line of the session carried to the server, and what comes back for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};

use super::agreement::headers_of;
use super::bridge::Bridge;
use super::events::Event;
use super::http::{Carried, LAST_EVENT, Refusal};
use super::messages::{Messages, is_stream};
use super::outcome::Done;
use super::outgoing_line::{Spoken, answers};
use super::renewal::forgets;
use super::resumption::Resumption;
use crate::loader::session::{EndReason, Violation};
use crate::protocol::{Era, Remains};

/// How long a stream may stay open after its answer: read to its end, its connection can be used again.
const LINGERING: Duration = Duration::from_millis(500);

impl Bridge {
    /// Carries one line to the server.
    pub(super) async fn carry(self: Arc<Self>, line: Bytes, spoken: Spoken, mirrored: HeaderMap) -> Done {
        match (spoken, self.endpoint.get()) {
            (Spoken::Opening { id } | Spoken::Request { id, .. }, Some(endpoint)) => {
                self.post(endpoint, &line, id).await
            }
            (Spoken::Opening { id }, None) => {
                *self.opening.lock().await = Some(line.clone());
                let opened = self.open(&line, &mirrored, &id).await;
                self.finished(line, &id, opened).await
            }
            (Spoken::Request { id, era }, None) => {
                if era == Era::Legacy {
                    self.standing().note(&line);
                    drop(self.in_order.lock().await);
                }
                let asked = self.ask(&line, &mirrored, &id, era).await;
                match self.finished(line, &id, asked).await {
                    Done::Line => Done::Request(id),
                    done => done,
                }
            }
            (Spoken::Opened | Spoken::Told, _) => {
                let _turn = self.in_order.lock().await;
                self.tell(&line, mirrored).await;
                Done::Line
            }
            // What is cancelled may be what the others wait for.
            (Spoken::Cancelled { .. }, _) => {
                self.tell(&line, mirrored).await;
                Done::Line
            }
        }
    }

    async fn finished(&self, line: Bytes, id: &str, outcome: Result<(), EndReason>) -> Done {
        let failure = match outcome {
            Ok(()) => {
                self.answered.store(true, Ordering::Relaxed);
                return Done::Line;
            }
            Err(failure) => failure,
        };
        if self.answered.load(Ordering::Relaxed) {
            self.deliver_failure(id, &failure).await;
            return Done::Line;
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
            Done::Old {
                first: line,
                refused: failure,
            }
        } else {
            Done::Over(failure)
        }
    }

    /// Opens a session and hands its answer on.
    async fn open(&self, line: &Bytes, mirrored: &HeaderMap, id: &str) -> Result<(), EndReason> {
        let response = self.http.send(Carried::Message(line), mirrored).await?;
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
        let mut response = self.http.send(Carried::Message(line), &headers).await?;
        if let Some(opened) = opened.filter(|opened| opened.session.is_some() && era == Era::Legacy)
            && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
        {
            let status = response.status();
            let refusal = self.http.refusal(response).await;
            if !forgets(status, &refusal) {
                return self.refused(refusal, id).await;
            }
            // Nothing was done, so the request may be sent again in a new session.
            self.renew(&opened).await?;
            let headers = headers_of(mirrored.clone(), self.opened.borrow().as_ref(), era);
            response = self.http.send(Carried::Message(line), &headers).await?;
        }
        match self.accepted(response, id).await? {
            None => Ok(()),
            Some(response) => {
                self.answered_in_session.store(true, Ordering::Relaxed);
                self.hear(response, id, era).await
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

    async fn refused(&self, refusal: Refusal, id: &str) -> Result<(), EndReason> {
        match refusal {
            Refusal::Told(failure) => Err(failure),
            Refusal::Error(error) => {
                self.deliver_error(id, &error).await;
                Ok(())
            }
        }
    }

    /// Hands on what a response holds up to the answer; takes it up again where it breaks off.
    async fn hear(&self, response: Response, id: &str, era: Era) -> Result<(), EndReason> {
        let mut messages = Messages::new(&self.http, response, self.line_limit);
        let mut resumption = Resumption::default();
        loop {
            let broken = match self.hear_out(&mut messages, id).await {
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
            match self.http.send(Carried::Listening, &headers).await {
                Ok(response) if response.status().is_success() && is_stream(&response) => {
                    messages = Messages::new(&self.http, response, self.line_limit);
                }
                Ok(_) => return Err(broken),
                // It may be on its way back.
                Err(_) => {}
            }
        }
    }

    async fn hear_out(&self, messages: &mut Messages<'_>, id: &str) -> Result<(), EndReason> {
        while let Some(event) = messages.next().await? {
            match event {
                Event::Message(message) => {
                    let is_answer = answers(&message, id);
                    if is_answer {
                        self.parameters().learn(&message);
                    }
                    self.deliver(message).await;
                    if is_answer {
                        let rest = async { while let Ok(Some(_)) = messages.next().await {} };
                        let _ = tokio::time::timeout(LINGERING, rest).await;
                        return Ok(());
                    }
                }
                // What cannot be told apart from the answer is taken for it: nobody else waits here.
                Event::TooLong(Remains::Nothing) => {
                    return Err(EndReason::Violation(Violation::AnswerTooLong));
                }
                Event::TooLong(Remains::Answer(found) | Remains::Either(found)) if found == id => {
                    return Err(EndReason::Violation(Violation::AnswerTooLong));
                }
                Event::TooLong(remains) => self.overlong(remains).await,
                Event::Endpoint(_) => {}
            }
        }
        Err(EndReason::Unanswered)
    }
}
