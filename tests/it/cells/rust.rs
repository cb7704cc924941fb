//! The scenario by the official Rust client.

#![expect(
    deprecated,
    reason = "sampling and roots are on their way out of the protocol, and still in use"
)]

use std::sync::Mutex;
use std::time::Duration;

use pretty_assertions::assert_eq;
use rmcp::model::{
    CallToolRequestParams, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ErrorData, ListRootsResult, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Server, expected};
use crate::support::DEADLINE;
use crate::support::world::World;

/// The era of the client.
#[derive(Debug, Clone, Copy)]
pub(super) enum Era {
    Legacy,
    Modern,
}

impl Era {
    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Legacy => ClientLifecycleMode::Initialize,
            Self::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        }
    }
}

/// Answers always alike, and remembers what was asked and told.
#[derive(Default)]
struct Answers {
    asked: Mutex<Vec<[String; 2]>>,
    steps: Mutex<Vec<f64>>,
}

impl Answers {
    fn note(&self, method: &str, what: &Value) {
        let what = what.as_str().unwrap_or_default().to_owned();
        self.asked.lock().unwrap().push([method.to_owned(), what]);
    }
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

impl ClientHandler for Answers {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {} } });
        let mut config = ClientConfig::default();
        config.capabilities = read(capabilities);
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.note("elicitation/create", &json!(request)["message"]);
        Ok(read(
            json!({ "action": "accept", "content": { "name": "Ada", "age": 36 } }),
        ))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let request = json!(request);
        let content = &request["messages"][0]["content"];
        let content = content.get(0).unwrap_or(content);
        self.note("sampling/createMessage", &content["text"]);
        let content = json!({ "type": "text", "text": "sampled" });
        Ok(read(
            json!({ "role": "assistant", "content": content, "model": "fixed", "stopReason": "endTurn" }),
        ))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.note("roots/list", &json!(""));
        Ok(read(
            json!({ "roots": [{ "uri": "file:///one" }, { "uri": "file:///two" }] }),
        ))
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.steps.lock().unwrap().push(step.progress);
    }
}

struct Client(RunningService<RoleClient, Answers>);

impl Client {
    async fn connect(world: &World, era: Era) -> Self {
        let command = tokio::process::Command::from(world.command(&["stdio"]));
        let transport = TokioChildProcess::new(command).unwrap();
        let answers = Answers::default();
        Self(
            answers
                .serve_with_lifecycle(transport, era.lifecycle())
                .await
                .unwrap(),
        )
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = CallToolRequestParams::new(format!("server__{tool}")).with_arguments(read(arguments));
        let result = self
            .0
            .call_tool(params)
            .await
            .unwrap_or_else(|error| panic!("{tool}: {error}"));
        json!(result)["content"][0]["text"].clone()
    }
}

async fn scenario(client: &Client) -> Value {
    let tools = client.0.peer().list_all_tools().await.unwrap();
    let wanted = ["ask", "ask_everything", "echo", "roots", "sample", "work"];
    let has = |name: &&str| tools.iter().any(|tool| tool.name == format!("server__{name}"));
    let listed: Vec<&str> = wanted.into_iter().filter(has).collect();
    let ask = client
        .call("ask", json!({ "question": "What is your name?" }))
        .await;
    let sample = client.call("sample", json!({ "prompt": "Say something" })).await;
    let roots = client.call("roots", json!({})).await;
    let everything = client
        .call("ask_everything", json!({ "question": "All of it?" }))
        .await;
    let worked = client.call("work", json!({ "steps": 3 })).await;
    let answers = client.0.service();
    let long = client.call("work", json!({ "steps": 100_000 }));
    // Letting go of a call cancels it.
    let cancelled = tokio::time::timeout(Duration::from_millis(500), long)
        .await
        .is_err();
    let echo = client.call("echo", json!({ "message": "still here" })).await;
    // This client hears each notification on a task of its own, so in any order and also a little later.
    while answers.steps.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut asked = answers.asked.lock().unwrap().clone();
    asked.sort();
    json!({
        "listed": listed, "ask": ask, "sample": sample, "roots": roots, "ask_everything": everything,
        "worked": worked, "rises": true, "cancelled": cancelled, "echo": echo, "asked": asked,
    })
}

pub(super) fn assert_sees(era: Era, server: Server) {
    let world = server.world();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seen = runtime.block_on(async {
        let scenario = async {
            let client = Client::connect(&world, era).await;
            let seen = scenario(&client).await;
            client.0.cancel().await.unwrap();
            seen
        };
        tokio::time::timeout(DEADLINE, scenario).await
    });
    let seen =
        seen.unwrap_or_else(|_| panic!("rust {era:?} and {server:?}: nothing came within {DEADLINE:?}"));
    assert_eq!(seen, expected(), "rust {era:?} and {server:?}");
    world.assert_no_survivor("after the client closed");
}
