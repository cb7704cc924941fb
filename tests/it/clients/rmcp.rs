//! The scenario by the official Rust client.

use std::path::PathBuf;
use std::sync::Mutex;

use pretty_assertions::assert_eq;
use rmcp::model::{
    CallToolRequestParams, ProgressNotificationParam, ProtocolVersion, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{expected, world};
use crate::support::DEADLINE;
use crate::support::world::World;

/// What a client hears besides answers.
struct Ears {
    steps: Mutex<Vec<String>>,
    every_step_was_seen: PathBuf,
    tools_changed: Notify,
}

impl ClientHandler for Ears {
    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let (progress, total) = (step.progress, step.total.unwrap());
        let mut steps = self.steps.lock().unwrap();
        steps.push(format!("{progress}/{total} {}", step.message.unwrap()));
        // This client hears each notification on a task of its own, so in any order.
        steps.sort();
        if steps.len() == 3 {
            std::fs::write(&self.every_step_was_seen, "").unwrap();
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

struct Client(RunningService<RoleClient, Ears>);

impl Client {
    async fn connect(world: &World, lifecycle: ClientLifecycleMode) -> Self {
        let ears = Ears {
            steps: Mutex::default(),
            every_step_was_seen: world.path("every-step-was-seen"),
            tools_changed: Notify::new(),
        };
        let transport =
            TokioChildProcess::new(tokio::process::Command::from(world.command(&["stdio"]))).unwrap();
        Self(ears.serve_with_lifecycle(transport, lifecycle).await.unwrap())
    }

    async fn tools(&self) -> Vec<Value> {
        let tools = self.0.peer().list_all_tools().await.unwrap();
        tools.iter().map(|tool| json!(tool)).collect()
    }

    async fn try_call(&self, tool: &str, arguments: Value) -> Result<Value, ServiceError> {
        let Value::Object(arguments) = arguments else {
            panic!("not an object: {arguments}");
        };
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.0.call_tool(params).await.map(|result| json!(result))
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.try_call(tool, arguments).await.unwrap()
    }

    /// Decides by the tool that was called, or by `pml_continue`.
    async fn proceed(&self, tool: &str, asked: &Value, decision: Value) -> Value {
        let mut decision = decision;
        decision["workflow_id"] = asked["structuredContent"]["approval_context"]["workflow_id"].clone();
        let arguments = match tool {
            "pml_continue" => decision,
            _ => json!({ "continue_workflow": decision }),
        };
        self.call(tool, arguments).await
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.filter(|name| !name.starts_with("asked__")).collect()
}

fn promising(tools: &[Value]) -> Vec<&str> {
    let promising = tools.iter().filter(|tool| tool.get("outputSchema").is_some());
    promising.map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn question(asked: &Value) -> Value {
    let structured = &asked["structuredContent"];
    let context = &structured["approval_context"];
    assert_ne!(asked["isError"], true, "{asked}");
    assert_eq!(text(asked), structured["message"]);
    assert_eq!(asked["content"][1]["text"], structured["instructions"]);
    json!([
        structured["approval_required"],
        context["type"],
        context["tool"],
        structured["message"]
    ])
}

async fn scenario(world: &World, client: &Client) -> Value {
    let tools = client.tools().await;
    let sum = client.call("free__add", json!({ "a": 2, "b": 3.5 })).await;

    let asked = client.call("asked__structured", json!({})).await;
    let continued = client
        .proceed("asked__structured", &asked, json!({ "approved": true }))
        .await;
    let tools_once_approved = client.tools().await;
    let again = client.call("asked__structured", json!({})).await;

    let narrower = client.call("asked__closed", json!({ "a": "x" })).await;
    let closed = client
        .proceed("asked__closed", &narrower, json!({ "approved": true }))
        .await;

    let until = &client.0.service().every_step_was_seen;
    client
        .call("asked__progress", json!({ "steps": 3, "until": until }))
        .await;

    let unwanted = client.call("fresh__connect", json!({})).await;
    let aborted = client
        .proceed("pml_continue", &unwanted, json!({ "approved": false }))
        .await;
    let wanted = client.call("fresh__connect", json!({})).await;
    let connected = client
        .proceed("pml_continue", &wanted, json!({ "approved": true }))
        .await;
    client.0.service().tools_changed.notified().await;
    let tools_once_connected = client.tools().await;

    assert!(world.run(&["uninstall", "asked"]).status.success());
    let despite = client.call("asked__structured", json!({})).await;
    let instructions = despite["content"][1]["text"].as_str().unwrap();
    let (_, rest) = instructions.split_once("\"workflow_id\":\"").unwrap();
    let refusal = json!({ "workflow_id": rest[..36], "approved": false });
    let aborted_despite = client
        .call("asked__structured", json!({ "continue_workflow": refusal }))
        .await;

    let denied = client.call("free__roll_dice", json!({})).await;
    let Err(ServiceError::McpError(unknown)) = client.try_call("free__nothing", json!({})).await else {
        panic!("a tool that does not exist is a JSON-RPC error");
    };
    json!({
        "server": "pml",
        "names": names(&tools),
        "promising": promising(&tools),
        "sum": sum["structuredContent"],
        "question": question(&asked),
        "continued": continued["structuredContent"],
        "promising_once_approved": promising(&tools_once_approved),
        "again": again["structuredContent"],
        "narrower": question(&narrower),
        "closed": text(&closed),
        "progress": *client.0.service().steps.lock().unwrap(),
        "aborted": text(&aborted),
        "connected": connected["structuredContent"]["tools"],
        "names_once_connected": names(&tools_once_connected),
        "question_despite_a_promise": [despite["isError"], text(&despite)],
        "aborted_despite_a_promise": text(&aborted_despite),
        "denied": [denied["isError"], text(&denied).lines().next().unwrap()],
        "unknown": unknown.code.0,
    })
}

/// Goes through the scenario; a Modern client hears of changed tools by a subscription.
async fn drive(world: &World, lifecycle: ClientLifecycleMode) -> Value {
    let is_modern = lifecycle != ClientLifecycleMode::Initialize;
    let client = Client::connect(world, lifecycle).await;
    let seen = if is_modern {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = client.0.peer().listen(filter).await.unwrap();
        let hear = async {
            while let Some(notification) = subscription.next().await.unwrap() {
                if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                    client.0.service().tools_changed.notify_one();
                }
            }
            panic!("the subscription ended");
        };
        tokio::select! {
            seen = scenario(world, &client) => seen,
            seen = hear => seen,
        }
    } else {
        scenario(world, &client).await
    };
    client.0.cancel().await.unwrap();
    seen
}

fn assert_rmcp_sees(lifecycle: ClientLifecycleMode) {
    let world = world();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seen = runtime.block_on(async { tokio::time::timeout(DEADLINE, drive(&world, lifecycle)).await });
    assert_eq!(seen.unwrap(), expected());
    world.assert_no_survivor("after the client closed");
}

#[test]
fn the_rust_client_lists_and_calls_in_the_legacy_era() {
    assert_rmcp_sees(ClientLifecycleMode::Initialize);
}

#[test]
fn the_rust_client_lists_and_calls_in_the_modern_era() {
    assert_rmcp_sees(ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    });
    assert_rmcp_sees(ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    });
}
