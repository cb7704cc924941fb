//! The runs of the user: what they are, what happens in one as it happens, and what a person says to it.
//!
//! A run is driven by a process of its own. It is followed by its log and spoken to by files in its directory
//! ([`Runs::put_input`]), so whether this server or the run was there first does not matter. All of that blocks, and is done
//! off the runtime's thread.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::app::{App, SharedApp};
use super::body::Bounds;
use super::connections::ConnectionHandle;
use super::events::{self, EventWriter, HEARTBEAT, Wake};
use super::guard::{Reader, Writer};
use super::{body, reply};
use crate::host::{EventTail, Message, RunError, RunId, RunInput, RunRecord, Runs, TailedEvents};
use crate::protocol::Shown;

/// How often a log is looked at while a page follows it: a person sees a stream.
const LOOK: Duration = Duration::from_millis(150);

/// How often the record is read beside it: it tells what stands in no event, as that the process was killed.
const RECORD_LOOK: Duration = Duration::from_secs(1);

/// How long a client that finds too many messages under way should wait.
const MESSAGE_AGAIN: Duration = Duration::from_secs(2);

/// Routes what is asked of runs and said to them.
pub(super) fn routes() -> Router<SharedApp> {
    Router::new()
        .route("/api/runs", get(list))
        .route("/api/runs/{id}", get(run))
        .route("/api/runs/{id}/events", get(follow))
        .route("/api/runs/{id}/messages", post(message))
        .route("/api/runs/{id}/interrupt", post(interrupt))
        .route("/api/runs/{id}/stop", post(stop))
}

/// What is told of a run. Not its arguments, nor where its agent keeps the conversation.
fn shown(run: &RunRecord) -> Value {
    let asks: Vec<_> = run.asks.iter().map(|ask| ask.workflow).collect();
    json!({
        "id": run.id,
        "title": Shown::line(&run.title).to_string(),
        "project": *Shown::path(&run.directory),
        "state": run.state.word(),
        "driven": run.state.is_driven(),
        "model": run.model.as_deref().map(|model| Shown::line(model).to_string()),
        "cost": run.cost,
        "trouble": run.trouble.as_deref().map(|trouble| Shown::line(trouble).to_string()),
        "asks": asks,
        "createdAt": run.created_at,
        "changedAt": run.changed_at,
    })
}

async fn list(State(app): State<SharedApp>, _reader: Reader) -> Response {
    let runs = app.runs.clone();
    let listed = tokio::task::spawn_blocking(move || runs.list()).await;
    let listed: Vec<Value> = listed.unwrap_or_default().iter().map(shown).collect();
    reply::json(StatusCode::OK, &json!({ "runs": listed }))
}

async fn run(State(app): State<SharedApp>, _reader: Reader, Path(id): Path<String>) -> Response {
    match find(&app, &id).await {
        Ok(run) => reply::json(StatusCode::OK, &shown(&run)),
        Err(reply) => reply,
    }
}

/// Reads the record of a run, or returns the reply that says why there is none.
async fn find(app: &App, id: &str) -> Result<RunRecord, Response> {
    let id: RunId = id.parse().map_err(|_| reply::not_found())?;
    let runs = app.runs.clone();
    blocking(move || runs.read(&id)).await
}

/// Does something with the files of runs, off the thread; a failure is a reply.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, Response> {
    let failed = |error: &dyn std::fmt::Display| {
        tracing::warn!(%error, "a request about a run failed");
        reply::error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the files of the run cannot be used",
        )
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(RunError::Unknown { .. })) => Err(reply::error(StatusCode::NOT_FOUND, "there is no such run")),
        Ok(Err(RunError::File { source, .. })) if source.kind() == io::ErrorKind::StorageFull => {
            Err(reply::too_many(MESSAGE_AGAIN))
        }
        Ok(Err(error)) => Err(failed(&crate::report::render(&error, None))),
        Err(error) => Err(failed(&error)),
    }
}

async fn message(
    State(app): State<SharedApp>,
    _writer: Writer,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Ok(_place) = app.messages.try_acquire() else {
        return reply::too_many(MESSAGE_AGAIN);
    };
    let done = async {
        driven(&app, &id).await?;
        let text = body::bytes(&headers, body, Bounds::MESSAGE).await?;
        // Millions of bytes take a while to read.
        let read = tokio::task::spawn_blocking(move || read_message(&text)).await;
        let read = read.unwrap_or_else(|_| Err(("body", "it cannot be read".to_owned())));
        let message = read.map_err(|(field, reason)| reply::unfit(field, &reason))?;
        put(&app, &id, RunInput::Message(message)).await
    };
    done.await.unwrap_or_else(|reply| reply)
}

/// Reads a message, or says which field of it is wrong and why.
fn read_message(text: &[u8]) -> Result<Message, (&'static str, String)> {
    let form = "it must hold `uuid` and `text`, maybe `images` and `priority`, and nothing that is not known";
    let message: Message = serde_json::from_slice(text).map_err(|_| ("body", form.to_owned()))?;
    if message.uuid.parse::<Uuid>().is_err() {
        return Err(("uuid", "it is no UUID".to_owned()));
    }
    message.check().map_err(|error| ("message", error.to_string()))?;
    Ok(message)
}

async fn interrupt(State(app): State<SharedApp>, _writer: Writer, Path(id): Path<String>) -> Response {
    put(&app, &id, RunInput::Interrupt)
        .await
        .unwrap_or_else(|reply| reply)
}

async fn stop(State(app): State<SharedApp>, _writer: Writer, Path(id): Path<String>) -> Response {
    put(&app, &id, RunInput::Stop).await.unwrap_or_else(|reply| reply)
}

/// Refuses what is said to a run that no process drives: it would be read a day later, or never.
async fn driven(app: &App, id: &str) -> Result<RunId, Response> {
    let run = find(app, id).await?;
    if run.state.is_driven() {
        return Ok(run.id);
    }
    let text = format!(
        "no process drives this run; to go on: pml run --resume {}",
        run.id
    );
    Err(reply::error(StatusCode::CONFLICT, &text))
}

/// Leaves what a person says for the process that drives the run.
async fn put(app: &App, id: &str, input: RunInput) -> Result<Response, Response> {
    let id = driven(app, id).await?;
    let runs = app.runs.clone();
    blocking(move || runs.put_input(&id, &input)).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &json!({})))
}

async fn follow(
    State(app): State<SharedApp>,
    _reader: Reader,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let run = match find(&app, &id).await {
        Ok(run) => run,
        Err(reply) => return reply,
    };
    let since = events::begin(&headers, query.get("since").map(String::as_str));
    let runs = app.runs.clone();
    events::open(&app, &connection, |writer| {
        tell(runs, run.id, since.unwrap_or(0), writer)
    })
}

/// An event of the log, as a page is told it.
#[derive(Serialize)]
struct ToldEvent {
    at: Option<i64>,
    line: Box<RawValue>,
}

/// Writes each event after a number as it is logged, and the run itself whenever it changes; first once all events are told.
async fn tell(runs: Runs, id: RunId, since: u64, mut events: EventWriter) -> io::Result<()> {
    let mut tail = EventTail::after(&runs.directory(&id), since);
    let (mut told, mut record_read_at) = (Value::Null, None::<Instant>);
    let mut written_at = Instant::now();
    events.comment().await?;
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            let found = tail.look();
            (tail, found)
        });
        let (followed, found) = looked.await?;
        tail = followed;
        let TailedEvents {
            reset,
            events: new,
            more,
        } = found?;
        if let Some(number) = reset {
            events.event(number, "reset", &json!({})).await?;
        }
        let moved = new.iter().any(|event| event.line.contains(r#""event":"state""#));
        if !new.is_empty() {
            written_at = Instant::now();
        }
        for event in new {
            let line = RawValue::from_string(event.line)?;
            let event_told = ToldEvent { at: event.at, line };
            events.event(event.number, "line", &event_told).await?;
        }
        if more {
            continue;
        }
        if moved || record_read_at.is_none_or(|read_at| read_at.elapsed() >= RECORD_LOOK) {
            record_read_at = Some(Instant::now());
            let (runs, id) = (runs.clone(), id.clone());
            let read = tokio::task::spawn_blocking(move || runs.read(&id)).await?;
            let record = match read {
                Ok(record) => shown(&record),
                // It was removed; a page that comes back is told so.
                Err(RunError::Unknown { .. }) => return Ok(()),
                Err(_) => told.clone(),
            };
            if record != told {
                events.unnumbered("run", &record).await?;
                told = record;
                written_at = Instant::now();
            }
        }
        if written_at.elapsed() >= HEARTBEAT {
            events.comment().await?;
            written_at = Instant::now();
        }
        // A run that no process drives stands still until one takes it up again.
        let pause = if told["driven"] == true { LOOK } else { RECORD_LOOK };
        if let Wake::Ended = events.pause(pause).await {
            return Ok(());
        }
    }
}
