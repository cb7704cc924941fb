//! The HTTP of a host: one address of this machine, no redirects, no proxies, bounded bodies.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::{Value, json};

use super::RelayError;
use super::answer::{self, Polled};
use super::settings::HostSettings;
use crate::protocol::Shown;
use crate::protocol::question::{Question, Selection};

/// A host of this machine accepts at once or not at all.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// A name of this machine is found in a file; a name server that is asked for it may never answer.
const RESOLVE_LIMIT: Duration = Duration::from_secs(5);

/// The longest free answer has 20,000 characters, which JSON may write in six bytes each, twice where it is outside the
/// basic plane.
const BODY_LIMIT: usize = 256 * 1024;

/// Longer than the id of a question in any format.
const QUESTION_ID_LIMIT: usize = 128;

const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The way to the host of one conversation. Has no `Debug`, as its settings have none.
pub(super) struct Host {
    client: Client,
    settings: HostSettings,
}

/// The host's own name of a question, where it gives one: an answer whose response was lost can be read again by it.
pub(super) struct QuestionId(String);

impl Host {
    /// Finds the addresses of a host, off the runtime's thread.
    pub(super) async fn addresses(settings: &HostSettings) -> Result<Vec<SocketAddr>, RelayError> {
        let port = settings.api_url.port_or_known_default().unwrap_or_default();
        let name = match settings.api_url.host() {
            Some(url::Host::Ipv4(ip)) => return Ok(vec![SocketAddr::from((ip, port))]),
            Some(url::Host::Ipv6(ip)) => return Ok(vec![SocketAddr::from((ip, port))]),
            Some(url::Host::Domain(name)) => name,
            None => "",
        };
        let unknown = |reason: String| RelayError::Unreachable {
            origin: origin(&settings.api_url),
            reason,
        };
        match tokio::time::timeout(RESOLVE_LIMIT, tokio::net::lookup_host((name, port))).await {
            Ok(Ok(found)) => Ok(found.collect()),
            Ok(Err(error)) => Err(unknown(Shown::line(&error.to_string()).to_string())),
            Err(_elapsed) => Err(unknown("its name could not be resolved in time".to_owned())),
        }
    }

    /// Makes ready to speak to a host at exactly these addresses; nothing is sent yet.
    ///
    /// A host with any address outside this machine is refused: the next connection could go there.
    pub(super) async fn at(settings: HostSettings, addresses: Vec<SocketAddr>) -> Result<Self, RelayError> {
        let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        if addresses.is_empty() || !addresses.iter().all(is_local) {
            return Err(RelayError::Field {
                path: settings.file,
                field: "apiUrl",
                problem:
                    "leads to an address that is not of this machine; only 127.0.0.0/8 and ::1 are spoken to"
                        .to_owned(),
            });
        }
        let url = settings.api_url.clone();
        // The certificates of the machine are read from its disk.
        let built = tokio::task::spawn_blocking(move || client(&url, &addresses)).await;
        match built {
            Ok(Ok(client)) => Ok(Self { client, settings }),
            Ok(Err(error)) => Err(unreachable(&settings.api_url, error)),
            Err(_panicked) => Err(RelayError::Unreachable {
                origin: origin(&settings.api_url),
                reason: "TLS cannot be set up".to_owned(),
            }),
        }
    }

    /// Gives the host a question to show.
    pub(super) async fn relay(
        &self,
        question: &Question,
        limit: Duration,
    ) -> Result<Option<QuestionId>, RelayError> {
        let body = json!({
            "streamToken": self.settings.stream_token,
            "question": question.question,
            "options": question.options,
            "multiSelect": question.selection == Selection::Several,
        });
        let mut request = self
            .client
            .post(self.url("claude/relay-question"))
            .header(CONTENT_TYPE, JSON)
            .body(body.to_string());
        if let Some(token) = &self.settings.csrf_token {
            request = request.header(CSRF, token.clone());
        }
        let response = self.send(request, limit).await?;
        if !response.status().is_success() {
            return Err(refusal(response.status()));
        }
        let body = self.collect(response).await?;
        Ok(question_id(&body))
    }

    /// Asks the host once for the answer.
    pub(super) async fn poll(
        &self,
        question: &Question,
        id: Option<&QuestionId>,
        limit: Duration,
    ) -> Result<Polled, RelayError> {
        let mut url = self.url("claude/poll-answer");
        url.query_pairs_mut()
            .append_pair("streamToken", &self.settings.stream_token);
        if let Some(QuestionId(id)) = id {
            url.query_pairs_mut().append_pair("questionId", id);
        }
        let response = self.send(self.client.get(url), limit).await?;
        match response.status() {
            StatusCode::OK => answer::read(&self.collect(response).await?, question),
            // Its body says the same.
            StatusCode::ACCEPTED => Ok(Polled::Waiting),
            status => Err(refusal(status)),
        }
    }

    /// Returns how long a person has, by the word of the host.
    pub(super) fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// Returns the address of one of the host's endpoints, for the project of this conversation.
    fn url(&self, endpoint: &str) -> Url {
        let mut url = self.settings.api_url.clone();
        let path = format!("{}/{endpoint}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.query_pairs_mut()
            .append_pair("p", &self.settings.project_id.to_string());
        url
    }

    async fn send(&self, request: RequestBuilder, limit: Duration) -> Result<Response, RelayError> {
        let sent = request.header(ACCEPT, JSON).timeout(limit).send().await;
        sent.map_err(|error| unreachable(&self.settings.api_url, error))
    }

    async fn collect(&self, mut response: Response) -> Result<Vec<u8>, RelayError> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| unreachable(&self.settings.api_url, error))?
        {
            if body.len() + chunk.len() > BODY_LIMIT {
                return Err(RelayError::TooLong { limit: BODY_LIMIT });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// Builds a client that reaches the host of `url` at `addresses` and nowhere else.
fn client(url: &Url, addresses: &[SocketAddr]) -> reqwest::Result<Client> {
    // Another part of this process may have chosen already, and that is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = match url.scheme() {
        "https" => Client::builder(),
        // No TLS is spoken, and a machine without certificates can do as much.
        _ => Client::builder().tls_backend_preconfigured(
            rustls::ClientConfig::builder()
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        ),
    };
    let builder = match url.domain() {
        Some(name) => builder.resolve_to_addrs(name, addresses),
        None => builder,
    };
    builder
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .user_agent(concat!("pml/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Reads the host's own name of a question; a host that follows the contract and no more gives none.
fn question_id(body: &[u8]) -> Option<QuestionId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Accepted {
        question_id: Option<Value>,
    }
    let accepted: Accepted = serde_json::from_slice(body).ok()?;
    match accepted.question_id? {
        Value::String(id) if id.len() <= QUESTION_ID_LIMIT => Some(QuestionId(id)),
        Value::Number(id) => Some(QuestionId(id.to_string())),
        _ => None,
    }
}

fn refusal(status: StatusCode) -> RelayError {
    match status {
        StatusCode::FORBIDDEN => RelayError::Forbidden,
        status if status.is_redirection() => RelayError::Redirected(status),
        status => RelayError::Status(status),
    }
}

/// Makes an error of a request that failed on its way; its words name no address, which holds the token.
fn unreachable(url: &Url, error: reqwest::Error) -> RelayError {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    RelayError::Unreachable {
        origin: origin(url),
        reason: Shown::line(&cause.to_string()).to_string(),
    }
}

fn origin(url: &Url) -> String {
    Shown::line(&url.origin().ascii_serialization()).to_string()
}
