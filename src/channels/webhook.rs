//! The webhook: each card as signed JSON to an address of the user's choice. Answers come by the API of `pml serve`.
//!
//! The body is signed as it is sent: `X-PML-Signature: sha256=` and the HMAC-SHA256 of it under the secret, in hex. No
//! redirect is followed, so a card goes where the user said and nowhere else.

use reqwest::{StatusCode, Url};
use serde_json::json;

use super::channel::{
    Channel, ChannelError, Heard, MessageRef, OutcomeNotice, Pending, ReplyTo, Unsupported,
};
use super::notice::{Notice, Standing};
use super::open_error::OpenError;
use super::service::{REQUEST_LIMIT, Service, ServiceAnswer, Settings};
use crate::card::Card;
use crate::config::{ChannelName, Environment, WebhookSettings};

/// The longest body; what takes cards rarely takes more.
const BODY_LIMIT: usize = 1 << 20;

/// Where it is signed.
const SIGNATURE: &str = "X-PML-Signature";

/// An address that takes cards.
pub(super) struct Webhook {
    service: Service,
    url: Url,
    key: ring::hmac::Key,
}

impl Webhook {
    /// Makes ready to send; nothing is sent yet.
    pub(super) async fn open(
        settings: &WebhookSettings,
        environment: &Environment,
    ) -> Result<Self, OpenError> {
        let mut expanded = Settings::of(ChannelName::Webhook, environment);
        let secret = expanded.secret("secret", &settings.secret)?;
        let (service, url) = expanded.connect(&settings.url).await?;
        Ok(Self {
            service,
            url,
            key: ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes()),
        })
    }

    async fn post(&self, notice: &Notice) -> Result<(), ChannelError> {
        let body = body(notice);
        let refused = |reason: &str| Err(self.service.refused("", reason));
        if body.len() > BODY_LIMIT {
            return refused(&format!("an ask of more than {BODY_LIMIT} bytes is not sent"));
        }
        let signature = signature(&self.key, &body);
        let request = self.service.post_text(self.url.clone(), body);
        let request = request.header(SIGNATURE, signature);
        // What it answers beside the status is not read.
        let response = self.service.open(request.timeout(REQUEST_LIMIT)).await?;
        let answer = ServiceAnswer::of_head(&response);
        match answer.status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => {
                refused("it leads elsewhere, and redirects are not followed: write the new address as `url`")
            }
            StatusCode::TOO_MANY_REQUESTS => Err(self.service.too_fast(answer.retry_after)),
            status if status.is_server_error() => Err(self.service.failed(&answer, "", "")),
            status => refused(&format!("it answered with status {}", status.as_u16())),
        }
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

    fn outcome_notice(&self) -> OutcomeNotice {
        OutcomeNotice::OwnMessage
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
