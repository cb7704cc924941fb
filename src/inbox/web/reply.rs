//! The replies of the API: JSON with a status, never kept by a cache.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::json;

/// Writes a value as the reply.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let (status, text) = match serde_json::to_vec(value) {
        Ok(text) => (status, text),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, b"{}".to_vec()),
    };
    let mut reply = Response::new(Body::from(text));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Says why there is no other reply.
pub(super) fn error(status: StatusCode, text: &str) -> Response {
    json(status, &json!({ "error": text }))
}

/// Says which field of a request is wrong, and why.
pub(super) fn unfit(field: &str, reason: &str) -> Response {
    let body = json!({ "error": "this is no answer", "field": field, "reason": reason });
    json(StatusCode::UNPROCESSABLE_ENTITY, &body)
}

/// Says that requests come too fast, and after how long one may come again.
pub(super) fn too_many(after: Duration) -> Response {
    let mut reply = error(StatusCode::TOO_MANY_REQUESTS, "too many requests");
    let seconds = after.as_secs().saturating_add(1);
    reply
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    reply
}

/// Says that nothing is here.
pub(super) fn not_found() -> Response {
    error(StatusCode::NOT_FOUND, "nothing is here")
}
