//! The webhook: each card as signed JSON to an address of the user's choice. Answers come by the API of `pml serve`.
//!
//! The body is signed as it is sent: `X-PML-Signature: sha256=` and the HMAC-SHA256 of it under the secret, in hex. No
//! redirect is followed, so a card goes where the user said and nowhere else.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url};
use serde_json::json;

use super::channel::{Channel, ChannelError, Heard, MessageRef, Pending, ReplyTo, Unsupported};
use super::notice::{Notice, Standing};
use crate::card::Card;
use crate::config::{ChannelName, Environment, WebhookSettings, expand};
use crate::http_client::{self, ClientError, root};
use crate::protocol::Secrets;

/// How people know it.
const TITLE: &str = "the webhook";

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The longest body; what takes cards rarely takes more.
const BODY_LIMIT: usize = 1 << 20;

/// Where it is signed.
const SIGNATURE: &str = "X-PML-Signature";

/// An address that takes cards.
pub(super) struct Webhook {
    client: Client,
    url: Url,
    key: ring::hmac::Key,
    secrets: Secrets,
}

impl Webhook {
    /// Makes ready to send; an error says what is wrong with the settings, without the secret.
    pub(super) async fn open(settings: &WebhookSettings, environment: &Environment) -> Result<Self, String> {
        let secret = expand(&settings.secret, environment)
            .map_err(|error| format!("`secret` of `webhook` cannot be used: {error}"))?
            .text;
        if secret.trim().is_empty() {
            return Err("`secret` of `webhook` is empty".to_owned());
        }
        let url: Url = settings
            .url
            .parse()
            .map_err(|_| "`url` of `webhook` is not an address".to_owned())?;
        let secrets = Secrets::new([("secret", secret.as_str())]);
        let client = http_client::to(&url, environment).await;
        let client = client.map_err(|error| match error {
            ClientError::Settings(error) => {
                format!("the webhook cannot be spoken to: {}", root(error, &secrets))
            }
            ClientError::Tls => "the webhook cannot be spoken to: TLS cannot be set up".to_owned(),
        })?;
        Ok(Self {
            client,
            url,
            key: ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes()),
            secrets,
        })
    }

    async fn post(&self, notice: &Notice) -> Result<(), ChannelError> {
        let body = body(notice);
        if body.len() > BODY_LIMIT {
            return Err(refused(&format!(
                "an ask of more than {BODY_LIMIT} bytes is not sent"
            )));
        }
        let request = self
            .client
            .post(self.url.clone())
            .timeout(LIMIT)
            .header(CONTENT_TYPE, "application/json")
            .header(SIGNATURE, signature(&self.key, &body))
            .body(body);
        let unreachable = |error: reqwest::Error| ChannelError::Unreachable {
            channel: TITLE,
            reason: if error.is_timeout() {
                "it did not answer in time".to_owned()
            } else {
                root(error, &self.secrets)
            },
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let wait = response.headers().get(reqwest::header::RETRY_AFTER);
        let wait = wait.and_then(|value| value.to_str().ok()?.parse().ok());
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS => Err(ChannelError::TooFast {
                channel: TITLE,
                after: Duration::from_secs(wait.unwrap_or(30)),
            }),
            status if status.is_server_error() => Err(ChannelError::Unreachable {
                channel: TITLE,
                reason: format!("it answered with status {}", status.as_u16()),
            }),
            status if status.is_redirection() => Err(refused(
                "it leads elsewhere, and redirects are not followed: write the new address as `url`",
            )),
            status => Err(refused(&format!("it answered with status {}", status.as_u16()))),
        }
    }
}

fn refused(reason: &str) -> ChannelError {
    ChannelError::Refused {
        channel: TITLE,
        reason: reason.to_owned(),
    }
}

/// Writes what is posted: the card, and how it stands.
fn body(notice: &Notice) -> String {
    let closed = match &notice.standing {
        Standing::Open { .. } => None,
        Standing::Closed(line) => Some(line),
    };
    json!({ "card": notice.card, "closed": closed, "inbox": notice.inbox }).to_string()
}

fn signature(key: &ring::hmac::Key, body: &str) -> String {
    use std::fmt::Write as _;
    let mut text = "sha256=".to_owned();
    for byte in ring::hmac::sign(key, body.as_bytes()).as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Channel for Webhook {
    fn name(&self) -> ChannelName {
        ChannelName::Webhook
    }

    fn fits(&self, _card: &Card) -> Result<(), Unsupported> {
        Ok(())
    }

    fn send<'a>(&'a self, notice: &'a Notice, _to: &'a str) -> Pending<'a, MessageRef> {
        Box::pin(async move {
            self.post(notice).await?;
            Ok(MessageRef(json!({})))
        })
    }

    fn update<'a>(&'a self, _at: &'a MessageRef, notice: &'a Notice) -> Pending<'a, ()> {
        Box::pin(self.post(notice))
    }

    /// Hears nothing: answers come by the API.
    fn heard(&self) -> Pending<'_, Heard> {
        Box::pin(std::future::pending())
    }

    fn reply<'a>(&'a self, _to: &'a ReplyTo, _text: &'a str) -> Pending<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::press::Nonce;
    use crate::channels::samples::question;

    #[test]
    fn a_body_is_signed_as_openssl_signs_it() {
        // printf '{"a":1}' | openssl dgst -sha256 -hmac key
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"key");
        assert_eq!(signature(&key, "{\"a\":1}"), OPENSSL);
    }

    const OPENSSL: &str = "sha256=88a67f24bbcdaed0e6c997404bb79a743baf44c6bab2f4c27328e3009d22e342";

    #[test]
    fn what_is_posted_is_the_card_and_how_it_stands() {
        let mut notice = Notice {
            card: question(),
            nonce: Nonce::fresh(),
            standing: Standing::Open { choices: Vec::new() },
            inbox: None,
        };
        let posted: serde_json::Value = serde_json::from_str(&body(&notice)).unwrap();
        assert_eq!(posted["card"]["questions"][0]["question"], "Which db?");
        assert_eq!(posted["closed"], serde_json::Value::Null);
        notice.standing = Standing::Closed("Answered in Slack: pg · 14:03".to_owned());
        let posted: serde_json::Value = serde_json::from_str(&body(&notice)).unwrap();
        assert_eq!(posted["closed"], "Answered in Slack: pg · 14:03");
    }
}
