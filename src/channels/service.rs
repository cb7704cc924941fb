//! The HTTP of a chat service: one client, bounded answers, and errors without an address.
//!
//! Addresses hold tokens (those of Telegram), answers may repeat them, and both are from outside: what is told of a failure
//! is escaped and has the tokens taken out.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;

use super::channel::ChannelError;
use super::open_error::OpenError;
use crate::config::{ChannelName, Environment, expand};
use crate::http_client::{self, root};
use crate::protocol::{Excerpt, Secrets, Shown};

/// A request that is no long poll: a person waits for what it does.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// What a service answers to what is sent is a few kilobytes.
pub(super) const ANSWER_LIMIT: usize = 256 * 1024;

/// A service that names no time is asked again after this.
pub(super) const USUAL_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause that a service can ask for: what it wants beyond is asked for again.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// The columns of what a service says that are told.
const TOLD: usize = 200;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The settings of a service, expanded one by one while a channel is opened.
pub(super) struct Settings<'a> {
    channel: ChannelName,
    environment: &'a Environment,
    secrets: Vec<(&'static str, String)>,
}

impl<'a> Settings<'a> {
    /// Begins with the settings of a channel.
    pub(super) fn of(channel: ChannelName, environment: &'a Environment) -> Self {
        Self {
            channel,
            environment,
            secrets: Vec::new(),
        }
    }

    /// Expands a secret setting; from now on no error tells its value.
    pub(super) fn secret(&mut self, key: &'static str, written: &str) -> Result<String, OpenError> {
        let channel = self.channel;
        let expanded = expand(written, self.environment);
        let expanded = expanded.map_err(|problem| OpenError::Variable {
            channel,
            key,
            problem,
        })?;
        let text = expanded.text.trim().to_owned();
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(OpenError::Empty { channel, key });
        }
        self.secrets.push((key, text.clone()));
        Ok(text)
    }

    /// Reads the address of the service: secrets leave this machine by TLS alone.
    pub(super) fn address(&self, address: &str) -> Result<Url, OpenError> {
        let channel = self.channel;
        let url = Url::parse(address).ok().filter(|url| {
            let is_safe =
                url.scheme() == "https" || (url.scheme() == "http" && http_client::is_loopback(url));
            is_safe && !url.cannot_be_a_base()
        });
        url.ok_or(OpenError::Address { channel })
    }

    /// Returns the secrets that were expanded.
    pub(super) fn secrets(self) -> Secrets {
        Secrets::new(self.secrets)
    }

    /// Makes ready to speak to the service; nothing is sent yet.
    pub(super) async fn connect(self, address: &str) -> Result<(Service, Url), OpenError> {
        let (channel, environment) = (self.channel, self.environment);
        let url = self.address(address)?;
        let secrets = self.secrets();
        let client = http_client::to(&url, environment).await;
        let client = client.map_err(|error| OpenError::Client {
            channel,
            reason: error.reason(&secrets),
        })?;
        let service = Service {
            channel: channel.title(),
            client,
            secrets,
        };
        Ok((service, url))
    }
}

/// A way to a chat service.
pub(super) struct Service {
    channel: &'static str,
    client: Client,
    secrets: Secrets,
}

/// What a service answered, whatever its status is.
pub(super) struct ServiceAnswer {
    pub(super) status: StatusCode,
    /// How long the service wants to be left alone.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

impl ServiceAnswer {
    /// Takes what stands before the body.
    pub(super) fn of_head(response: &Response) -> Self {
        Self {
            status: response.status(),
            retry_after: retry_after(response),
            body: Vec::new(),
        }
    }
}

impl Service {
    /// Begins a request with a JSON body.
    pub(super) fn post(&self, url: Url, body: &Value) -> RequestBuilder {
        self.post_text(url, body.to_string())
    }

    /// Begins a request with JSON that is written already.
    pub(super) fn post_text(&self, url: Url, body: String) -> RequestBuilder {
        self.client.post(url).header(CONTENT_TYPE, JSON).body(body)
    }

    /// Begins a request without a body.
    pub(super) fn get(&self, url: Url) -> RequestBuilder {
        self.client.get(url)
    }

    /// Sends a request and collects what is answered, up to `most` bytes.
    pub(super) async fn send(
        &self,
        request: RequestBuilder,
        limit: Duration,
        most: usize,
    ) -> Result<ServiceAnswer, ChannelError> {
        let mut response = self.open(request.timeout(limit)).await?;
        let mut answer = ServiceAnswer::of_head(&response);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if answer.body.len() + chunk.len() > most {
                return Err(self.unreadable(&format!("its answer has more than {most} bytes")));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    /// Sends a request whose answer is read piece by piece.
    pub(super) async fn open(&self, request: RequestBuilder) -> Result<Response, ChannelError> {
        request.send().await.map_err(|error| self.unreachable(error))
    }

    /// Makes an error of a request that failed on its way.
    pub(super) fn unreachable(&self, error: reqwest::Error) -> ChannelError {
        let channel = self.channel;
        // Where there was no connection yet, nothing was sent.
        if error.is_timeout() && !error.is_connect() {
            return ChannelError::Silent { channel };
        }
        ChannelError::Unreachable {
            channel,
            reason: root(error, &self.secrets),
        }
    }

    /// Makes an error of an answer that is none.
    pub(super) fn unreadable(&self, reason: &str) -> ChannelError {
        ChannelError::Unreadable {
            channel: self.channel,
            reason: reason.to_owned(),
        }
    }

    /// Makes an error of what the service said, with what a person can do about it.
    pub(super) fn refused(&self, said: &str, advice: &str) -> ChannelError {
        let said = self.told(said);
        let reason = match (said.as_str(), advice) {
            (_, "") => said,
            ("", _) => advice.to_owned(),
            (_, _) => format!("{said}; {advice}"),
        };
        ChannelError::Refused {
            channel: self.channel,
            reason,
        }
    }

    /// Makes an error of a status that says it all, and of what stands beside it.
    pub(super) fn failed(&self, answer: &ServiceAnswer, said: &str, advice: &str) -> ChannelError {
        let status = answer.status;
        if status == StatusCode::TOO_MANY_REQUESTS {
            return self.too_fast(answer.retry_after);
        }
        if status.is_server_error() {
            return ChannelError::Unreachable {
                channel: self.channel,
                reason: format!("it answers with status {}", status.as_u16()),
            };
        }
        if status.is_redirection() {
            return self.unreadable("it answers with a redirect, which is not followed");
        }
        if said.is_empty() {
            return self.refused(&format!("status {}", status.as_u16()), advice);
        }
        self.refused(said, advice)
    }

    /// Makes an error of a service that wants to be left alone.
    pub(super) fn too_fast(&self, after: Option<Duration>) -> ChannelError {
        let after = after.unwrap_or(USUAL_PAUSE);
        ChannelError::TooFast {
            channel: self.channel,
            after: after.clamp(Duration::from_secs(1), LONGEST_PAUSE),
        }
    }

    /// Makes an error of another program with the same token.
    pub(super) fn contested(&self) -> ChannelError {
        ChannelError::Contested {
            channel: self.channel,
        }
    }

    /// Escapes what the service said, without a secret and without an end.
    fn told(&self, said: &str) -> String {
        let shown = Shown::line(&self.secrets.hide(said)).to_string();
        Excerpt::of_text(&shown, TOLD).text
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(seconds.trim().parse().ok()?))
}
