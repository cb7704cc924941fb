//! The API of the inbox: what waits, one ask, what changes, and an answer.

use std::collections::HashMap;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json;

use super::app::SharedApp;
use super::connections::ConnectionHandle;
use super::guard::{Reader, Script, Writer, guard};
use super::secret::Secret;
use super::{agent_host, answers, body, events, hooks, page, reply, runs};
use crate::card::Said;
use crate::workflow::WorkflowId;

/// Routes every request, each behind the guard.
pub(super) fn routes(app: &SharedApp) -> Router {
    let api = Router::new()
        .route("/api/inbox", get(inbox))
        .route("/api/events", get(follow))
        .route("/api/asks/{id}", get(ask))
        .route("/api/asks/{id}/answer", post(answer))
        .route("/api/keys", post(key));
    page::routes()
        .merge(api)
        .merge(agent_host::routes())
        .merge(runs::routes())
        .fallback(|| async { reply::not_found() })
        .method_not_allowed_fallback(|| async {
            reply::error(StatusCode::METHOD_NOT_ALLOWED, "this is not done that way")
        })
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app.clone())
        // Not behind the guard: its requests come by another name, and count by their signature.
        .merge(hooks::routes(app))
}

async fn inbox(State(app): State<SharedApp>, reader: Reader) -> Response {
    let snapshot = match app.desk.snapshot().await {
        Ok(snapshot) => snapshot,
        Err(refusal) => return answers::refused(&refusal),
    };
    let csrf = reader.csrf.as_ref().map(Secret::text);
    let body = json!({
        "rev": snapshot.revision,
        "pending": snapshot.pending,
        "recent": snapshot.recent,
        "csrf": csrf,
    });
    reply::json(StatusCode::OK, &body)
}

async fn ask(State(app): State<SharedApp>, _reader: Reader, Path(id): Path<String>) -> Response {
    let Ok(id) = id.parse::<WorkflowId>() else {
        return reply::not_found();
    };
    match answers::find(&app, id).await {
        Ok(card) => reply::json(StatusCode::OK, &card),
        Err(reply) => reply,
    }
}

async fn answer(
    State(app): State<SharedApp>,
    writer: Writer,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Ok(id) = id.parse::<WorkflowId>() else {
        return reply::not_found();
    };
    let said = match body::json(&headers, body).await {
        Ok(said) => said,
        Err(reply) => return reply,
    };
    match serde_json::from_value::<Said>(said) {
        Ok(said) => answers::record(&app, id, said, writer.by).await,
        Err(_) => reply::unfit(
            "body",
            "it must hold `decision` or `answers`, and nothing that is not known",
        ),
    }
}

async fn follow(
    State(app): State<SharedApp>,
    _reader: Reader,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let since = events::begin(&headers, query.get("since").map(String::as_str));
    events::open(&app, &connection, |writer| {
        events::follow(app.clone(), since, writer)
    })
}

async fn key(State(app): State<SharedApp>, _script: Script) -> Response {
    let key = app.access.hand_out_key(Instant::now());
    reply::json(StatusCode::OK, &json!({ "key": key.text() }))
}
