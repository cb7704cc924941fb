//! A server on the official Rust SDK, with something of everything: `tests/interop/differential.mjs` drives it.
//!
//! Its tools, resources and prompts are those of `tests/interop/server.py`. With `--modern` it refuses `initialize`.
//! What it says is written as JSON and read into the types of the SDK, which check it.

#![expect(
    clippy::unwrap_used,
    deprecated,
    reason = "a server for tests alone, of both eras"
)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig, ServerNotification,
    ServerRequest, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How long a step of `work` takes.
const STEP: Duration = Duration::from_millis(20);

/// What completion knows.
const KNOWN: [&str; 4] = ["Paris", "Prague", "Evora", "3"];

/// Characters that an echo must not touch.
const STATE: &str = "st.ate/with+special=chars and spaces \"quotes\"\n\ttab \u{1f980}";

struct Everything {
    versions: Vec<ProtocolVersion>,
    level: Mutex<LoggingLevel>,
    subscribed: Mutex<BTreeSet<String>>,
    listening: Mutex<Vec<SubscriptionSink>>,
    /// Subscriptions that are accepted and not yet in `listening`: the SDK acknowledges them in between.
    opening: watch::Sender<usize>,
}

/// What a tool comes to.
enum Outcome {
    Result(Value),
    Questions(BTreeMap<&'static str, Value>),
}

type Context = RequestContext<RoleServer>;

fn main() {
    let versions = if std::env::args().any(|argument| argument == "--modern") {
        vec![ProtocolVersion::V_2026_07_28]
    } else {
        ProtocolVersion::KNOWN_VERSIONS.to_vec()
    };
    let everything = Everything {
        versions,
        level: Mutex::new(LoggingLevel::Debug),
        subscribed: Mutex::default(),
        listening: Mutex::default(),
        opening: watch::Sender::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let transport = (tokio::io::stdin(), tokio::io::stdout());
        let running = everything.serve(transport).await.unwrap();
        running.waiting().await.unwrap();
    });
    // Tokio reads stdin on a thread that nothing interrupts.
    runtime.shutdown_background();
}

/// Reads a result, which is complete; the SDK takes that word away again where the era has no such word.
fn complete<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    result["resultType"] = json!("complete");
    read(result)
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Whether a request is of the Legacy era, where a server may ask and log by itself.
fn is_legacy(context: &Context) -> bool {
    context
        .protocol_version()
        .is_none_or(|version| version.has_initialize())
}

fn text(text: impl Into<String>) -> Outcome {
    Outcome::Result(json!({ "content": [{ "type": "text", "text": text.into() }] }))
}

fn form(message: &str) -> Value {
    let age = json!({ "type": "integer", "title": "Age", "description": "In years", "default": 36, "minimum": 0, "maximum": 200 });
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string", "title": "Name" }, "age": age },
        "required": ["name"],
    });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
}

/// The questions that a tool asks in the middle of a call.
fn questions(tool: &str, arguments: &Value) -> BTreeMap<&'static str, Value> {
    let string = |name: &str| arguments[name].as_str().unwrap_or_default();
    let roots = json!({ "method": "roots/list" });
    match tool {
        "ask" => BTreeMap::from([("person", form(string("question")))]),
        "sample" => {
            let content = json!({ "type": "text", "text": string("prompt") });
            let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 9 });
            BTreeMap::from([(
                "said",
                json!({ "method": "sampling/createMessage", "params": params }),
            )])
        }
        "roots" => BTreeMap::from([("found", roots)]),
        "ask_everything" => BTreeMap::from([("a_person", form(string("question"))), ("found", roots)]),
        _ => BTreeMap::new(),
    }
}

/// What a tool makes of its answers.
fn told(tool: &str, answers: &BTreeMap<String, Value>) -> String {
    let named = |key: &str| match answers[key]["action"].as_str() {
        Some("accept") => {
            let content = &answers[key]["content"];
            format!(
                "{} is {}",
                content["name"].as_str().unwrap_or_default(),
                content["age"]
            )
        }
        other => format!("{other:?}"),
    };
    let roots = || answers["found"]["roots"].as_array().cloned().unwrap_or_default();
    match tool {
        "ask" => named("person"),
        "sample" => {
            let said = &answers["said"];
            format!(
                "{}: {}",
                said["model"].as_str().unwrap_or_default(),
                said["content"]["text"].as_str().unwrap_or_default()
            )
        }
        "roots" => {
            let uris = roots()
                .iter()
                .filter_map(|root| root["uri"].as_str().map(str::to_owned))
                .collect::<Vec<_>>();
            uris.join(" ")
        }
        _ => format!("{} with {} roots", named("a_person"), roots().len()),
    }
}

impl Everything {
    async fn run(&self, call: &CallToolRequestParams, context: &Context) -> Result<Outcome, ErrorData> {
        let arguments = json!(call.arguments);
        let string = |name: &str| {
            arguments[name].as_str().ok_or_else(|| {
                ErrorData::invalid_params(format!("`{name}` must be a string"), Some(arguments.clone()))
            })
        };
        Ok(match call.name.as_ref() {
            "echo" => text(string("message")?),
            "add" => {
                let number = |name: &str| {
                    arguments[name]
                        .as_f64()
                        .ok_or_else(|| ErrorData::invalid_params(format!("`{name}` must be a number"), None))
                };
                let sum = json!({ "sum": number("a")? + number("b")? });
                let blocks = json!([{ "type": "text", "text": sum.to_string() }]);
                Outcome::Result(json!({ "content": blocks, "structuredContent": sum, "isError": false }))
            }
            "fail" => {
                let blocks = json!([{ "type": "text", "text": "it went wrong" }]);
                Outcome::Result(json!({ "content": blocks, "isError": true }))
            }
            "content" => Outcome::Result(content()),
            "work" => {
                self.work(arguments["steps"].as_u64().unwrap_or_default(), context)
                    .await
            }
            "log" => {
                for (level, data) in [("info", "of no importance"), ("error", "of importance")] {
                    let params = json!({ "level": level, "data": data });
                    let wanted = is_legacy(context)
                        && (level == "error" || *self.level.lock().unwrap() == LoggingLevel::Debug);
                    if wanted {
                        let message = read(params)?;
                        let _ = context.peer.notify_logging_message(message).await;
                    }
                }
                text("logged")
            }
            "touch" => self.touch(string("uri")?, context).await?,
            tool @ ("ask" | "sample" | "roots" | "ask_everything") => {
                let asked = questions(tool, &arguments);
                match self.answers(call, &asked, context).await? {
                    Some(answers) => text(told(tool, &answers)),
                    None => Outcome::Questions(asked),
                }
            }
            other => {
                return Err(ErrorData::invalid_params(
                    format!("there is no tool {other}"),
                    None,
                ));
            }
        })
    }

    /// Asks by requests in the Legacy era; in the Modern one the answers are in the call, or it must be made again.
    async fn answers(
        &self,
        call: &CallToolRequestParams,
        asked: &BTreeMap<&'static str, Value>,
        context: &Context,
    ) -> Result<Option<BTreeMap<String, Value>>, ErrorData> {
        if !is_legacy(context) {
            let Some(given) = &call.input_responses else {
                return Ok(None);
            };
            if call.request_state.as_deref() != Some(STATE) {
                return Err(ErrorData::invalid_params("the state is not what it was", None));
            }
            let answers: BTreeMap<String, Value> = read(json!(given))?;
            return Ok(asked
                .keys()
                .all(|key| answers.contains_key(*key))
                .then_some(answers));
        }
        let mut answers = BTreeMap::new();
        for (key, question) in asked {
            let request: ServerRequest = read(question.clone())?;
            let answer = context
                .peer
                .send_request(request)
                .await
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            answers.insert((*key).to_owned(), json!(answer));
        }
        Ok(Some(answers))
    }

    async fn work(&self, steps: u64, context: &Context) -> Outcome {
        let token = json!(context.meta)["progressToken"].clone();
        for step in 1..=steps {
            if !token.is_null() {
                let params = json!({ "progressToken": token, "progress": step, "total": steps, "message": format!("step {step}") });
                let _ = context.peer.notify_progress(read(params).unwrap()).await;
            }
            tokio::select! {
                () = context.ct.cancelled() => break,
                () = tokio::time::sleep(STEP) => {}
            }
        }
        text("worked")
    }

    async fn touch(&self, uri: &str, context: &Context) -> Result<Outcome, ErrorData> {
        if self.subscribed.lock().unwrap().contains(uri) {
            let notification: ServerNotification = read(json!({
                "method": "notifications/resources/updated", "params": { "uri": uri },
            }))?;
            let _ = context.peer.send_notification(notification).await;
        }
        // Whoever was told that it is subscribed hears of this change.
        let _ = self.opening.subscribe().wait_for(|opening| *opening == 0).await;
        let listening = self.listening.lock().unwrap().clone();
        for sink in listening {
            let _ = sink.notify_resource_updated(uri).await;
        }
        Ok(text("touched"))
    }
}

fn content() -> Value {
    json!({
        "content": [
            { "type": "text", "text": "annotated", "annotations": { "audience": ["user"], "priority": 0.5 }, "_meta": { "x/y": 1 } },
            { "type": "image", "data": "aW1hZ2U=", "mimeType": "image/png" },
            { "type": "audio", "data": "YXVkaW8=", "mimeType": "audio/wav" },
            { "type": "resource_link", "uri": "demo://text", "name": "text", "mimeType": "text/plain" },
            { "type": "resource", "resource": { "uri": "demo://text", "mimeType": "text/plain", "text": "embedded" } },
        ],
        "_meta": { "x/result": [1, null] },
    })
}

fn tools() -> Value {
    let needs = |names: &[&str], kind: &str| {
        let properties: BTreeMap<&str, Value> = names
            .iter()
            .map(|name| (*name, json!({ "type": kind })))
            .collect();
        json!({ "type": "object", "properties": properties, "required": names })
    };
    let tool = |name: &str, description: &str, schema: Value| json!({ "name": name, "description": description, "inputSchema": schema });
    let nothing = json!({ "type": "object", "properties": {} });
    let mut add = tool("add", "Adds", needs(&["a", "b"], "number"));
    add["title"] = json!("Addition");
    add["outputSchema"] = needs(&["sum"], "number");
    add["annotations"] = json!({ "readOnlyHint": true });
    add["icons"] = json!([{ "src": "data:,", "mimeType": "image/png", "sizes": ["48x48"] }]);
    json!([
        tool("echo", "Says it again", needs(&["message"], "string")),
        add,
        tool("fail", "Fails", nothing.clone()),
        tool("content", "Every kind of content", nothing.clone()),
        tool("ask", "Asks by a form", needs(&["question"], "string")),
        tool("sample", "Asks a model", needs(&["prompt"], "string")),
        tool("roots", "Asks for the roots", nothing.clone()),
        tool(
            "ask_everything",
            "Asks for several things",
            needs(&["question"], "string")
        ),
        tool("work", "Tells its progress", needs(&["steps"], "integer")),
        tool("log", "Logs at two levels", nothing),
        tool(
            "touch",
            "Tells that a resource changed",
            needs(&["uri"], "string")
        ),
    ])
}

/// A page of a list, two items long; the cursor is the place of the first item.
fn page(key: &str, items: &Value, request: Option<&PaginatedRequestParams>) -> Value {
    let items = items.as_array().unwrap();
    let first: usize = request
        .and_then(|request| request.cursor.as_ref()?.parse().ok())
        .unwrap_or_default();
    let last = (first + 2).min(items.len());
    let mut page = json!({ key: items[first..last] });
    if last < items.len() {
        page["nextCursor"] = json!(last.to_string());
    }
    page
}

impl ServerHandler for Everything {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {}, "prompts": {}, "completions": {}, "logging": {}, "resources": { "subscribe": true },
        });
        let mut config = ServerConfig::new(read(capabilities).unwrap());
        config.instructions = Some("A server for tests".to_owned());
        config
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Owned(self.versions.clone())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        complete(page("tools", &tools(), request.as_ref()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.run(&call, &context).await? {
            Outcome::Result(result) => {
                let result: rmcp::model::CallToolResult = complete(result)?;
                Ok(result.into())
            }
            Outcome::Questions(asked) => {
                let asked = read(json!(asked))?;
                Ok(InputRequiredResult::new(Some(asked), Some(STATE.to_owned())).into())
            }
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |name: &str, kind: &str| json!({ "uri": format!("demo://{name}"), "name": name, "mimeType": kind });
        let mut first = resource("text", "text/plain");
        first["title"] = json!("A text");
        first["size"] = json!(7);
        let all = json!([
            first,
            resource("blob", "application/octet-stream"),
            resource("last", "text/plain")
        ]);
        complete(page("resources", &all, request.as_ref()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all =
            json!([{ "uriTemplate": "demo://items/{item}", "name": "items", "mimeType": "text/plain" }]);
        complete(page("resourceTemplates", &all, request.as_ref()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let contents = match uri.strip_prefix("demo://") {
            Some("blob") => {
                json!({ "uri": uri, "mimeType": "application/octet-stream", "blob": "AAECAwQFBgcICQ==" })
            }
            Some("text" | "last") => json!({ "uri": uri, "mimeType": "text/plain", "text": "a text\n" }),
            Some(item) if item.starts_with("items/") && item != "items/nothing" => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": item })
            }
            _ => {
                let named = Some(json!({ "uri": uri }));
                return Err(ErrorData::resource_not_found("there is no such resource", named));
            }
        };
        let result: rmcp::model::ReadResourceResult = complete(json!({ "contents": [contents] }))?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = json!([{ "name": "name", "required": true }, { "name": "city" }]);
        let all = json!([
            { "name": "greet", "title": "A greeting", "arguments": arguments },
            { "name": "plain", "description": "Without arguments" },
            { "name": "picture", "description": "With an image" },
        ]);
        complete(page("prompts", &all, request.as_ref()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = json!(request.arguments);
        let content = match request.name.as_str() {
            "greet" => {
                let Some(name) = given["name"].as_str() else {
                    return Err(ErrorData::invalid_params("`name` is missing", None));
                };
                let city = given["city"].as_str().unwrap_or("Paris");
                json!({ "type": "text", "text": format!("Greet {name} of {city}.") })
            }
            "plain" => json!({ "type": "text", "text": "Plain." }),
            "picture" => json!({ "type": "image", "data": "aW1hZ2U=", "mimeType": "image/png" }),
            other => {
                return Err(ErrorData::invalid_params(
                    format!("there is no prompt {other}"),
                    None,
                ));
            }
        };
        let result: rmcp::model::GetPromptResult =
            complete(json!({ "messages": [{ "role": "user", "content": content }] }))?;
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values: Vec<&str> = KNOWN
            .into_iter()
            .filter(|known| known.starts_with(&request.argument.value))
            .collect();
        complete(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        *self.level.lock().unwrap() = request.level;
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap().insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap().remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.opening.send_modify(|opening| *opening += 1);
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listening.lock().unwrap().push(context.sink().clone());
        self.opening.send_modify(|opening| *opening -= 1);
        context.cancelled().await;
        let id = context.sink().id().clone();
        self.listening.lock().unwrap().retain(|sink| *sink.id() != id);
        Ok(())
    }
}
