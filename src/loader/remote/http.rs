//! Requests to one server: its headers, its proxies, its redirects, and what a failure may say.
//!
//! The headers hold secrets and go to the origin that a person approved and to no other: a redirect elsewhere is
//! refused. What a server says of a failure is cut, escaped and has the secrets taken out.

use std::error::Error as _;
use std::io::ErrorKind;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Method, Response, StatusCode, Url};

use crate::config::Environment;
use crate::http_client::{self, ClientError, root};
use crate::loader::plan::Address;
use crate::loader::session::{EndReason, UnreachableCause, Violation};
use crate::protocol::{Secrets, Shown};

/// A slash that is missing, a path that moved: more hops than these are a circle.
const HOPS: usize = 3;

/// Enough of the body of a failure to find its JSON-RPC error, or its first words.
const FAILURE_BODY: usize = 64 * 1024;

/// The first words of a failure that are told; the rest is markup.
const FAILURE_WORDS: usize = 200;

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The header that takes up a broken stream.
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The way to one server.
pub(super) struct Http {
    client: Client,
    address: Address,
    secrets: Secrets,
}

/// What a request carries besides what every request carries.
pub(super) enum HttpRequest<'a> {
    /// A message for the address itself, which is answered as JSON or as a stream.
    Message(&'a Bytes),
    /// A message for the endpoint of an old server, which answers on its stream.
    PostToEndpoint(&'a Url, &'a Bytes),
    /// Nothing: what the server says unasked is wanted.
    OpenStream,
    /// Nothing: the session is over.
    EndSession,
}

impl Http {
    /// Makes ready to speak to `address`; nothing is sent yet.
    pub(super) async fn new(
        address: Address,
        secrets: Secrets,
        environment: &Environment,
    ) -> Result<Self, EndReason> {
        let client = match http_client::to(address.url(), environment).await {
            Ok(client) => client,
            Err(ClientError::Settings(error)) => return Err(unreachable(&address, error, &secrets)),
            Err(error @ ClientError::Tls) => {
                return Err(EndReason::Unreachable {
                    origin: address.origin(),
                    cause: UnreachableCause::Tls,
                    reason: error.reason(&secrets),
                });
            }
            Err(error @ ClientError::Proxy { .. }) => {
                return Err(EndReason::Unreachable {
                    origin: address.origin(),
                    cause: UnreachableCause::Other,
                    reason: error.reason(&secrets),
                });
            }
        };
        Ok(Self {
            client,
            address,
            secrets,
        })
    }

    /// Returns the address of an endpoint that an old server names, if it is at the same origin.
    pub(super) fn endpoint(&self, named: &str) -> Result<Url, EndReason> {
        let url = self.address.url();
        url.join(named)
            .ok()
            .filter(|endpoint| endpoint.origin() == url.origin())
            .ok_or_else(|| Violation::EndpointElsewhere(self.address.origin()).into())
    }

    /// Sends a request and returns the response, of any status; follows redirects within the origin.
    pub(super) async fn send(
        &self,
        carried: HttpRequest<'_>,
        own: &HeaderMap,
    ) -> Result<Response, EndReason> {
        let (method, accept, endpoint, body) = match carried {
            HttpRequest::Message(body) => (Method::POST, BOTH, self.address.url(), Some(body)),
            HttpRequest::PostToEndpoint(endpoint, body) => (Method::POST, BOTH, endpoint, Some(body)),
            HttpRequest::OpenStream => (Method::GET, EVENTS, self.address.url(), None),
            HttpRequest::EndSession => (Method::DELETE, BOTH, self.address.url(), None),
        };
        let mut url = endpoint.clone();
        for _ in 0..=HOPS {
            let mut request = self
                .client
                .request(method.clone(), url.clone())
                .headers(self.address.headers().clone())
                .headers(own.clone())
                .header(ACCEPT, accept.clone());
            if let Some(body) = body {
                request = request.header(CONTENT_TYPE, JSON).body(body.clone());
            }
            let sent = request.send().await;
            let response = sent.map_err(|error| unreachable(&self.address, error, &self.secrets))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            url = redirected(&url, &response, &self.secrets)?;
        }
        Err(Violation::RedirectedInCircle.into())
    }

    /// Reads a refusal: its JSON-RPC error object where it has one, or else what can be told of it.
    pub(super) async fn refusal(&self, response: Response) -> HttpRefusal {
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let challenges = response.headers().get_all(WWW_AUTHENTICATE);
            let challenges = challenges
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            return HttpRefusal::Reason(EndReason::Unauthorized {
                status,
                challenges: challenges.collect(),
            });
        }
        let body = self.collect(response, FAILURE_BODY).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        let error = crate::protocol::Object::parse(&text).and_then(|object| object.value("error"));
        if let Some(error) = error.filter(|error| error.get().starts_with('{')) {
            let error = self.secrets.hide_json(error.get()).into_owned();
            return HttpRefusal::ErrorObject(String::from_utf8_lossy(&flat(error.into())).into_owned());
        }
        // Hidden before it is cut: half a secret would not be found.
        let words: String = self
            .secrets
            .hide(text.trim())
            .chars()
            .take(FAILURE_WORDS)
            .collect();
        let said = if words.is_empty() || words.starts_with('<') {
            String::new()
        } else {
            format!(": {}", Shown::line(&words))
        };
        HttpRefusal::Reason(match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => EndReason::Gone { status, said },
            status => EndReason::Status { status, said },
        })
    }

    /// Reads a whole body of at most `limit` bytes.
    pub(super) async fn collect(&self, mut response: Response, limit: usize) -> Result<Bytes, EndReason> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk(&mut response).await? {
            if body.len() + chunk.len() > limit {
                return Err(EndReason::Violation(Violation::AnswerTooLong));
            }
            if body.is_empty() && response.content_length() == u64::try_from(chunk.len()).ok() {
                return Ok(chunk);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// Reads the next bytes of a body.
    pub(super) async fn chunk(&self, response: &mut Response) -> Result<Option<Bytes>, EndReason> {
        let chunk = response.chunk().await;
        chunk.map_err(|error| EndReason::BrokenOff(root(error, &self.secrets)))
    }
}

/// Returns where a redirect leads, if that is within the origin.
fn redirected(from: &Url, response: &Response, secrets: &Secrets) -> Result<Url, EndReason> {
    let location = response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .and_then(|location| from.join(location).ok());
    match location {
        Some(to) if to.origin() == from.origin() => Ok(to),
        Some(to) => {
            let origin = to.origin().ascii_serialization();
            let origin = Shown::line(&secrets.hide(&origin)).to_string();
            Err(Violation::RedirectedElsewhere(origin).into())
        }
        None => Err(EndReason::Status {
            status: response.status(),
            said: String::new(),
        }),
    }
}

/// What a server says where it does not answer.
pub(super) enum HttpRefusal {
    /// A JSON-RPC error object, on one line.
    ErrorObject(String),
    /// Words about it.
    Reason(EndReason),
}

/// Returns a text that is JSON on one line: outside of strings a line break is white space, inside there is none.
pub(super) fn flat(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let mut text = BytesMut::from(text);
    for byte in text.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    text.freeze()
}

/// Makes an error of a request that found no way to the server.
fn unreachable(address: &Address, error: reqwest::Error, secrets: &Secrets) -> EndReason {
    EndReason::Unreachable {
        origin: address.origin(),
        cause: cause(&error),
        reason: root(error, secrets),
    }
}

/// Finds what kind of trouble an error is.
fn cause(error: &reqwest::Error) -> UnreachableCause {
    let mut causes = std::iter::successors(error.source(), |error| (*error).source());
    let known = causes.find_map(|error| {
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        match kind {
            _ if is_tls(error) => Some(UnreachableCause::Tls),
            Some(ErrorKind::ConnectionRefused) => Some(UnreachableCause::Refused),
            Some(ErrorKind::TimedOut) => Some(UnreachableCause::Timeout),
            // The connector's error has no type that could be named here, only these words.
            _ => (error.to_string() == "dns error").then_some(UnreachableCause::Name),
        }
    });
    match known {
        Some(cause) => cause,
        None if error.is_timeout() => UnreachableCause::Timeout,
        None => UnreachableCause::Other,
    }
}

/// Tells whether an error is one of TLS, also inside errors of the operating system, which are no sources of it.
fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    error.is::<rustls::Error>()
        || io
            .and_then(std::io::Error::get_ref)
            .is_some_and(|inside| is_tls(inside))
}
