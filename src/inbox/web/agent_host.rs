//! The questions of agents that speak HTTP and no MCP: relay a question, poll its answer, submit one.
//!
//! The token of a stream is the right to ask and to fetch the answer; answering takes a cookie or the server's token, as
//! everywhere. What is asked here is an ask as any other: it stands on the page, in `pml pending` and in every chat.

use std::collections::HashMap;
use std::io;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, SharedApp};
use super::connections::ConnectionHandle;
use super::events::{self, EventWriter, Wake};
use super::guard::Writer;
use super::stream_questions::PutQuestion;
use super::streams::StreamToken;
use super::{answers, body, reply};
use crate::card::{Card, CardState, Presence, Said, SaidAnswer};
use crate::protocol::question::{Question, QuestionAnswer, Selection};
use crate::proxy::{AskingProgram, QuestionStatus, came_second, presence_of};
use crate::workflow::{State as AskState, WorkflowId};

/// Members of a relayed question that are not part of it.
const ADDRESS: [&str; 3] = ["streamToken", "csrfToken", "timeout"];

/// Routes the requests of agents, and the answer that the page of an agent's host submits.
pub(super) fn routes() -> Router<SharedApp> {
    Router::new()
        .route("/claude/relay-question", post(relay))
        .route("/claude/poll-answer", get(poll))
        .route("/claude/submit-answer", post(submit))
        .route("/claude/stream", get(stream))
}

/// A stream whose process lives.
struct LivingStream {
    token: StreamToken,
    program: AskingProgram,
}

impl LivingStream {
    /// Finds the stream of a token, or returns the reply that refuses it.
    async fn of(app: &App, token: Option<&str>) -> Result<Self, Response> {
        let now = Instant::now();
        let token = token.and_then(|token| token.parse::<StreamToken>().ok());
        let tokens = app.tokens.clone();
        let found = match token {
            // The file of the token is read, and the process table.
            Some(token) => {
                let living = tokio::task::spawn_blocking(move || tokens.living(token)).await;
                living.ok().flatten().map(|program| Self { token, program })
            }
            None => None,
        };
        match found {
            Some(stream) => {
                app.limits.agents.take(now).map_err(reply::too_many)?;
                Ok(stream)
            }
            None => Err(match app.limits.strangers.take(now) {
                Ok(()) => reply::error(
                    StatusCode::FORBIDDEN,
                    "this stream is not known, or its process is gone",
                ),
                Err(after) => reply::too_many(after),
            }),
        }
    }

    /// Returns the id of its newest question, or of the one that is named, if it is its own.
    async fn question(&self, app: &App, named: Option<&str>) -> Result<Option<WorkflowId>, Response> {
        let Some(named) = named else {
            let newest = app.questions.newest(&app.desk, self.token, &self.program).await;
            return newest.map_err(|refusal| answers::refused(&refusal));
        };
        let not_own = || reply::error(StatusCode::NOT_FOUND, "this stream has not asked that");
        let id: WorkflowId = named.parse().map_err(|_| not_own())?;
        match app.desk.find(id).await {
            Ok(workflow) if workflow.origin.asker == self.program.asker => Ok(Some(id)),
            Ok(_) | Err(_) => Err(not_own()),
        }
    }
}

/// Puts the question of an agent to the person.
async fn relay(State(app): State<SharedApp>, headers: HeaderMap, body: Body) -> Response {
    let done = async {
        let Value::Object(mut members) = body::json(&headers, body).await? else {
            return Err(reply::unfit("body", "it is no object"));
        };
        let token = members.get("streamToken").and_then(Value::as_str);
        let stream = LivingStream::of(&app, token).await?;
        members.retain(|name, value| !ADDRESS.contains(&name.as_str()) && !value.is_null());
        let question =
            Question::single(&members).map_err(|error| reply::unfit(error.field(), &error.to_string()))?;
        let put = app
            .questions
            .put(&app.desk, stream.token, stream.program, question)
            .await;
        put.map_err(|refusal| answers::refused(&refusal))
    };
    match done.await {
        Ok(PutQuestion { id, answered }) => {
            let mut put = json!({ "questionId": id });
            if !answered.is_empty() {
                put["answered"] = json!(answered);
            }
            reply::json(StatusCode::OK, &put)
        }
        Err(reply) => reply,
    }
}

/// Gives an agent the answer to its question, once; again where it names the question.
async fn poll(State(app): State<SharedApp>, Query(query): Query<HashMap<String, String>>) -> Response {
    let text = |name: &str| query.get(name).map(String::as_str);
    let waiting = || reply::json(StatusCode::ACCEPTED, &json!({ "status": "waiting" }));
    let found = async {
        let stream = LivingStream::of(&app, text("streamToken")).await?;
        stream.question(&app, text("questionId")).await
    };
    let id = match found.await {
        Ok(Some(id)) => id,
        Ok(None) => return waiting(),
        Err(reply) => return reply,
    };
    let delivered = match app.desk.find(id).await {
        Ok(workflow) => matches!(workflow.state, AskState::Taken { .. }),
        Err(refusal) => return answers::refused(&refusal),
    };
    // The answer was given to this stream before; the next question is still to come.
    if delivered && text("questionId").is_none() {
        return waiting();
    }
    let gone = |status: &str, reason: Option<String>| {
        reply::json(StatusCode::GONE, &json!({ "status": status, "reason": reason }))
    };
    match app.desk.question_status(id).await {
        Ok(QuestionStatus::Pending(_)) => waiting(),
        Ok(QuestionStatus::Answered {
            questions, answers, ..
        }) => reply::json(StatusCode::OK, &answered(&questions, &answers)),
        Ok(QuestionStatus::Rejected { reason }) => gone("refused", reason),
        Ok(QuestionStatus::TimedOut) => gone("expired", None),
        Ok(QuestionStatus::Withdrawn) => gone("withdrawn", None),
        // Another poll of this stream was faster and has the answer.
        Err(refusal) if came_second(&refusal) => waiting(),
        Err(refusal) => answers::refused(&refusal),
    }
}

fn answered(questions: &[Question], answers: &[QuestionAnswer]) -> Value {
    let (options, answer) = match (questions, answers) {
        ([question], [answer]) => (question.options.as_slice(), answer.clone()),
        _ => (&[][..], QuestionAnswer::default()),
    };
    let chosen = options.iter().enumerate();
    let chosen = chosen.filter(|(_, option)| answer.labels.contains(&option.label));
    let chosen: Vec<usize> = chosen.map(|(index, _)| index).collect();
    json!({ "status": "answered", "answer": answer.values().join(", "), "selectedOptions": chosen })
}

/// What the page of an agent's host submits.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Submitted {
    stream_token: String,
    #[serde(default)]
    answer: String,
    #[serde(default)]
    selected_options: Option<Vec<usize>>,
    /// The question that was in sight; the newest of the stream where it is not named.
    #[serde(default)]
    question_id: Option<String>,
}

/// Records the answer of a person to a question of a stream.
async fn submit(State(app): State<SharedApp>, writer: Writer, headers: HeaderMap, body: Body) -> Response {
    let done = async {
        let given = body::json(&headers, body).await?;
        let given: Submitted = serde_json::from_value(given).map_err(|_| {
            reply::unfit(
                "body",
                "it must hold `streamToken`, `answer` and `selectedOptions`",
            )
        })?;
        let stream = LivingStream::of(&app, Some(&given.stream_token)).await?;
        let nothing = || reply::error(StatusCode::GONE, "this stream asks nothing");
        let shown = given.question_id.as_deref();
        let id = stream.question(&app, shown).await?.ok_or_else(nothing)?;
        let card = answers::find(&app, id).await?;
        let said = said(&card, given).map_err(|reason| reply::unfit("selectedOptions", &reason))?;
        Ok(answers::record(&app, id, said, writer.by).await)
    };
    done.await.unwrap_or_else(|reply: Response| reply)
}

/// Makes labels of the numbers that were chosen; what was written and is none of them is free text.
fn said(card: &Card, given: Submitted) -> Result<Said, String> {
    let options = card
        .questions
        .first()
        .map(|question| question.shown.options.as_slice());
    let options = options.unwrap_or_default();
    let mut labels = Vec::new();
    for number in given.selected_options.unwrap_or_default() {
        let reason = || format!("there is no option {number}; they are counted from 0");
        let option = options.get(number).ok_or_else(reason)?;
        labels.push(option.label.clone());
    }
    let written = given.answer.trim();
    if labels.is_empty() && options.iter().any(|option| option.label == written) {
        labels.push(written.to_owned());
    }
    let repeats = written == labels.join(", ");
    let text = (!written.is_empty() && !repeats).then(|| written.to_owned());
    Ok(Said::answers(vec![SaidAnswer { labels, text }]))
}

/// Tells each question of a stream as it is put, and what becomes of it.
async fn stream(
    State(app): State<SharedApp>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    match LivingStream::of(&app, query.get("streamToken").map(String::as_str)).await {
        Ok(stream) => events::open(&app, &connection, |writer| tell(app.clone(), stream, writer)),
        Err(reply) => reply,
    }
}

async fn tell(app: SharedApp, stream: LivingStream, mut events: EventWriter) -> io::Result<()> {
    let mut revisions = app.desk.revisions().await.map_err(io::Error::other)?;
    let mut told: Option<Card> = None;
    events.comment().await?;
    loop {
        revisions.borrow_and_update();
        let newest = app
            .questions
            .newest(&app.desk, stream.token, &stream.program)
            .await;
        let newest = newest.map_err(io::Error::other)?;
        // What became of the one before is told first: a newer question has withdrawn it.
        let shown = told.as_ref().map(|card| card.id);
        for id in shown.into_iter().chain(newest.filter(|id| Some(*id) != shown)) {
            let workflow = app.desk.find(id).await.map_err(io::Error::other)?;
            let card = app.desk.card(&workflow);
            let (name, event) = match (card.state, &told) {
                (state, Some(told)) if told.id == id && told.state == state => continue,
                (CardState::Pending, _) => ("ask_user_question", question_event(&card, stream.token)),
                _ => ("ask_user_question_state", state_event(&card, stream.token)),
            };
            events.event(card.rev, name, &event).await?;
            told = Some(card);
        }
        let ended = matches!(events.wait(&mut revisions).await?, Wake::Ended);
        if ended || presence_of(stream.program.client.process) == Presence::Gone {
            return Ok(());
        }
    }
}

fn question_event(card: &Card, token: StreamToken) -> Value {
    let question = card.questions.first().map(|question| &question.shown);
    json!({
        "type": "ask_user_question",
        "data": {
            "question": question.map(|question| &question.question),
            "options": question.map(|question| &question.options),
            "multiSelect": question.is_some_and(|question| question.selection == Selection::Several),
            "streamToken": token,
            "questionId": card.id,
        },
    })
}

fn state_event(card: &Card, token: StreamToken) -> Value {
    json!({
        "type": "ask_user_question_state",
        "data": { "questionId": card.id, "state": card.state, "streamToken": token },
    })
}
