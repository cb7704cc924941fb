//! Reads the body of a request: bounded in size and in time.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

use super::reply;

/// How large a body may be, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The most bytes of it.
    length: usize,
    /// How long it may take, also where it is thrown away.
    patience: Duration,
}

impl Bounds {
    /// Four answers of 20,000 characters, each written as an escape of twelve bytes, are just below this.
    const ANSWER: Self = Self {
        length: 1 << 20,
        patience: Duration::from_secs(10),
    };

    /// The images and the text of a message at their own limits, the text with escapes; a telephone sends them slowly.
    pub(super) const MESSAGE: Self = Self {
        length: 22 << 20,
        patience: Duration::from_mins(1),
    };

    /// What a service delivers at once: WhatsApp says 3 MB at most.
    pub(super) const HOOK: Self = Self {
        length: 3 << 20,
        patience: Duration::from_secs(10),
    };

    /// How much is read and thrown away beyond the limit: a peer that is still writing does not see the refusal.
    fn drained(self) -> usize {
        self.length + (15 << 20)
    }
}

/// Reads a body as JSON, or returns the reply that refuses it.
pub(super) async fn json(headers: &HeaderMap, body: Body) -> Result<Value, Response> {
    let text = bytes(headers, body, Bounds::ANSWER).await?;
    serde_json::from_slice(&text).map_err(|_| reply::unfit("body", "it is no JSON"))
}

/// Reads a body that says it is JSON, or returns the reply that refuses it.
pub(super) async fn bytes(headers: &HeaderMap, body: Body, bounds: Bounds) -> Result<Vec<u8>, Response> {
    // A form of another site can post text and fields of forms, but not this.
    let media_type = headers.get(header::CONTENT_TYPE);
    let media_type = media_type
        .and_then(|media_type| media_type.to_str().ok())
        .unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        let text = "the body must be `application/json`";
        return Err(reply::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let late = || reply::error(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
    tokio::time::timeout(bounds.patience, read(body, bounds))
        .await
        .map_err(|_| late())?
}

async fn read(mut body: Body, bounds: Bounds) -> Result<Vec<u8>, Response> {
    let limit = bounds.length;
    let mut text = Vec::new();
    let mut length = 0;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let cut = |_| reply::error(StatusCode::BAD_REQUEST, "the body was cut off");
        let Ok(data) = frame.map_err(cut)?.into_data() else {
            continue;
        };
        length += data.len();
        if length <= limit {
            text.extend_from_slice(&data);
        } else if length > bounds.drained() {
            break;
        }
    }
    if length > limit {
        let text = format!("the body is longer than {limit} bytes");
        return Err(reply::error(StatusCode::PAYLOAD_TOO_LARGE, &text));
    }
    Ok(text)
}
