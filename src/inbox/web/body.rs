//! Reads the body of a request: bounded in size and in time.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

use super::reply;

/// Four answers of 20,000 characters, each written as an escape of twelve bytes, are just below this.
const LIMIT: usize = 1 << 20;

/// How much of a body that is too long is read and thrown away: a peer that is still writing does not see the refusal.
const DRAINED: usize = 16 << 20;

/// How long a body may take, also one that is thrown away.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a body as JSON, or returns the reply that refuses it.
pub(super) async fn json(headers: &HeaderMap, body: Body) -> Result<Value, Response> {
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
    let text = tokio::time::timeout(PATIENCE, read(body))
        .await
        .map_err(|_| late())?;
    serde_json::from_slice(&text?).map_err(|_| reply::unfit("body", "it is no JSON"))
}

async fn read(mut body: Body) -> Result<Vec<u8>, Response> {
    let mut text = Vec::new();
    let mut length = 0;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let cut = |_| reply::error(StatusCode::BAD_REQUEST, "the body was cut off");
        let Ok(data) = frame.map_err(cut)?.into_data() else {
            continue;
        };
        length += data.len();
        if length <= LIMIT {
            text.extend_from_slice(&data);
        } else if length > DRAINED {
            break;
        }
    }
    if length > LIMIT {
        let text = format!("the body is longer than {LIMIT} bytes");
        return Err(reply::error(StatusCode::PAYLOAD_TOO_LARGE, &text));
    }
    Ok(text)
}
