//! The one path that services elsewhere may post to: `/hooks/whatsapp`, behind the user's own tunnel.
//!
//! It takes any host name, no cookie and no token: what comes counts by its signature alone, which the channel checks. No
//! other path does, so a tunnel that leads here opens nothing else: the guard refuses its host name.

use std::collections::HashMap;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;

use super::app::SharedApp;
use super::body::{self, Bounds};
use super::connections::ConnectionHandle;
use super::reply;
use crate::protocol::hook::{HookReply, HookRequest};

/// The header that WhatsApp signs in.
const SIGNATURE: &str = "x-hub-signature-256";

/// The longest challenge that is sent back.
const CHALLENGE: usize = 200;

pub(super) fn routes(app: &SharedApp) -> Router {
    let path = get(verify)
        .post(deliver)
        .fallback(|| async { reply::not_found() });
    Router::new()
        .route("/hooks/whatsapp", path)
        .with_state(app.clone())
}

async fn verify(
    State(app): State<SharedApp>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let _serving = connection.serve();
    answer(&app, HookRequest::Verification(query.into_iter().collect()))
}

async fn deliver(
    State(app): State<SharedApp>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let _serving = connection.serve();
    let Some(signature) = headers.get(SIGNATURE).and_then(|value| value.to_str().ok()) else {
        // Nothing unsigned is read.
        return text(StatusCode::UNAUTHORIZED, "");
    };
    if let Err(after) = app.limits.hooks.take(Instant::now()) {
        return reply::too_many(after);
    }
    let body = match body::bytes(&headers, body, Bounds::HOOK).await {
        Ok(body) => body,
        Err(reply) => return reply,
    };
    let signature = Some(signature.to_owned());
    answer(&app, HookRequest::Delivery { signature, body })
}

fn answer(app: &SharedApp, request: HookRequest) -> Response {
    if let HookRequest::Verification(_) = &request
        && let Err(after) = app.limits.hooks.take(Instant::now())
    {
        return reply::too_many(after);
    }
    let answered = app
        .whatsapp
        .get()
        .map_or(HookReply::Missing, |hook| hook(request));
    match answered {
        HookReply::Challenge(challenge) if challenge.len() <= CHALLENGE => text(StatusCode::OK, &challenge),
        HookReply::Challenge(_) | HookReply::Refused => text(StatusCode::FORBIDDEN, ""),
        HookReply::Received => text(StatusCode::OK, ""),
        HookReply::Busy => text(StatusCode::SERVICE_UNAVAILABLE, ""),
        HookReply::Missing => reply::not_found(),
    }
}

/// Writes a reply that no browser takes for a page.
fn text(status: StatusCode, text: &str) -> Response {
    let mut reply = Response::new(Body::from(text.to_owned()));
    *reply.status_mut() = status;
    let fixed = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}
