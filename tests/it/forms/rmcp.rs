//! The scenario by the official Rust client.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use pretty_assertions::assert_eq;
use rmcp::model::{
    CallToolRequestParams, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Map, Value, json};

use super::{Road, expected, world};
use crate::support::DEADLINE;
use crate::support::world::World;

/// Longer than pml's shortest reading time of a person.
const READING: Duration = Duration::from_millis(500);

/// What a person does with a form.
#[derive(Debug, Clone, PartialEq)]
enum Reply {
    Accept(Value),
    DeclineAtOnce,
    ReadAndDecline,
}

/// Fills in forms in the order it was told to, and remembers them.
#[derive(Default)]
struct Person {
    replies: Mutex<VecDeque<Reply>>,
    forms: Mutex<Vec<Value>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::from_value(json!({ "elicitation": { "form": {} } })).unwrap();
        ClientConfig::new(capabilities, Implementation::new("interop", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let form = json!(request);
        let fields = form["requestedSchema"]["properties"].as_object().unwrap();
        let fields: Map<String, Value> = fields
            .iter()
            .map(|(name, field)| (name.clone(), choices(field)))
            .collect();
        let line = form["message"].as_str().unwrap().lines().next().unwrap();
        self.forms.lock().unwrap().push(json!([line, fields]));
        let reply = self.replies.lock().unwrap().pop_front();
        match reply.expect("a form that was not expected") {
            Reply::Accept(content) => {
                return Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content));
            }
            Reply::ReadAndDecline => tokio::time::sleep(READING).await,
            Reply::DeclineAtOnce => {}
        }
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }
}

/// The words a field takes; none where it takes any text.
fn choices(field: &Value) -> Value {
    let titled = [&field["oneOf"], &field["items"]["anyOf"]];
    let titled = titled.into_iter().find_map(Value::as_array);
    titled
        .into_iter()
        .flatten()
        .map(|choice| choice["const"].clone())
        .collect()
}

struct Client(RunningService<RoleClient, Person>);

impl Client {
    async fn connect(world: &World, lifecycle: ClientLifecycleMode) -> Self {
        let command = tokio::process::Command::from(world.command(&["stdio"]));
        let transport = TokioChildProcess::new(command).unwrap();
        let connected = Person::default().serve_with_lifecycle(transport, lifecycle);
        Self(connected.await.unwrap())
    }

    async fn call<const N: usize>(&self, tool: &str, arguments: Value, replies: [Reply; N]) -> Value {
        let Value::Object(arguments) = arguments else {
            panic!("not an object: {arguments}");
        };
        let person = self.0.service();
        *person.replies.lock().unwrap() = replies.into();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = json!(self.0.call_tool(params).await.unwrap());
        assert_eq!(
            *person.replies.lock().unwrap(),
            [],
            "{tool} did not ask: {result}"
        );
        result
    }
}

fn decide(word: &str) -> [Reply; 1] {
    fill(json!({ "decision": word }))
}

fn fill(content: Value) -> [Reply; 1] {
    [Reply::Accept(content)]
}

fn text(result: &Value) -> &Value {
    &result["content"][0]["text"]
}

async fn scenario(client: &Client) -> Value {
    let structured = json!({});
    let tool = "fake__structured";
    let aborted = client.call(tool, structured.clone(), decide("abort")).await;
    let declined = client
        .call(tool, structured.clone(), [Reply::ReadAndDecline])
        .await;
    let unavailable = client
        .call(tool, structured.clone(), [Reply::DeclineAtOnce])
        .await;
    let continued = client.call(tool, structured.clone(), decide("continue")).await;
    let again = client.call(tool, structured, []).await;

    let tool = "fake__closed";
    let narrower = client.call(tool, json!({ "a": "x" }), decide("continue")).await;
    let session = client.call(tool, json!({ "a": "x" }), decide("session")).await;
    let in_session = client.call(tool, json!({ "a": "y" }), []).await;

    let options = json!([{ "label": "Left", "description": "shorter" }, { "label": "Right" }]);
    let which = json!({ "question": "Which way?", "options": options });
    let tool = "ask_user";
    let chosen = client
        .call(tool, which.clone(), fill(json!({ "answer1": "Right" })))
        .await;
    let other = client
        .call(
            tool,
            which.clone(),
            [
                Reply::Accept(json!({ "answer1": "Other…" })),
                Reply::Accept(json!({ "answer1_other": "Back" })),
            ],
        )
        .await;
    let name = json!({ "question": "Your name?" });
    let plain = client.call(tool, name, fill(json!({ "answer1": "Ada" }))).await;
    let empty = client.call(tool, which.clone(), fill(json!({}))).await;
    let unasked = client.call(tool, which, [Reply::DeclineAtOnce]).await;

    let options =
        json!([{ "label": "A", "description": "first" }, { "label": "B", "description": "second" }]);
    let questions = json!({ "questions": [
        { "question": "One of them?", "header": "One", "options": options, "multiSelect": false },
        { "question": "Some of them?", "header": "Some", "options": options, "multiSelect": true },
    ]});
    let replies = [
        Reply::Accept(json!({ "answer1": "A", "answer2": ["A", "B", "Other…"] })),
        Reply::Accept(json!({ "answer2_other": "C" })),
    ];
    let several = client.call("ask_user_questions", questions, replies).await;
    json!({
        "aborted": text(&aborted),
        "declined": text(&declined),
        "unavailable": unavailable["structuredContent"]["approval_required"],
        "continued": continued["structuredContent"],
        "again": again["structuredContent"],
        "narrower": text(&narrower),
        "session": text(&session),
        "in_session": text(&in_session),
        "chosen": [text(&chosen), chosen["structuredContent"]["by"]],
        "other": text(&other),
        "plain": text(&plain),
        "empty": empty["structuredContent"]["status"],
        "unasked": unasked["structuredContent"]["status"],
        "several": several["structuredContent"]["answers"],
        "forms": *client.0.service().forms.lock().unwrap(),
    })
}

async fn drive(world: &World, lifecycle: ClientLifecycleMode) -> Value {
    let client = Client::connect(world, lifecycle).await;
    let seen = scenario(&client).await;
    client.0.cancel().await.unwrap();
    seen
}

fn assert_rmcp_answers(road: Road, lifecycle: ClientLifecycleMode) {
    let world = world();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seen = runtime.block_on(async { tokio::time::timeout(DEADLINE, drive(&world, lifecycle)).await });
    assert_eq!(seen.unwrap(), expected(road));
    world.assert_no_survivor("after the client closed");
}

#[test]
fn the_rust_client_answers_forms_in_the_legacy_era() {
    assert_rmcp_answers(Road::Elicitation, ClientLifecycleMode::Initialize);
}

#[test]
fn the_rust_client_answers_forms_in_the_modern_era() {
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    assert_rmcp_answers(Road::Dialog, lifecycle);
}
