//! `pml sample-server`: a small MCP server on stdio, for the demo and for pml's own tests.
//!
//! Written by hand and of the Legacy era, as most servers are. It shares no code with the proxy on purpose: what
//! the demo shows is pml in front of a stranger.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use serde_json::{Map, Value, json};

/// The versions it speaks, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// Answers line by line until the end of stdin.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        if let Some(answer) = answer(&line?) {
            writeln!(stdout, "{answer}")?;
            stdout.flush()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the answer to one line; notifications and answers get none.
fn answer(line: &str) -> Option<Value> {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Some(refusal(&Value::Null, PARSE_ERROR, "this is not JSON"));
    };
    let id = message.get("id")?;
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        let is_answer = message.get("result").or(message.get("error")).is_some();
        return (!is_answer).then(|| refusal(id, INVALID_REQUEST, "a request needs a `method`"));
    };
    let params = message.get("params").unwrap_or(&Value::Null);
    let result = match method {
        "initialize" => initialize(params),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools() }),
        "tools/call" => match call(params) {
            Ok(result) => result,
            Err(refused) => return Some(refusal(id, INVALID_PARAMS, &refused)),
        },
        _ => {
            return Some(refusal(
                id,
                METHOD_NOT_FOUND,
                &format!("there is no method `{method}`"),
            ));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn refusal(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn initialize(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = VERSIONS
        .into_iter()
        .find(|version| Some(*version) == asked)
        .unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "pml-sample", "title": "Sample", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "A sample: greets, echoes, rolls dice and adds.",
    })
}

fn tools() -> Value {
    json!([
        {
            "name": "greet",
            "title": "Greet",
            "description": "Greets somebody by name.",
            "inputSchema": {
                "type": "object",
                "properties": { "name": { "type": "string", "description": "Who is greeted" } },
                "required": ["name"],
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        {
            "name": "echo",
            "title": "Echo",
            "description": "Returns its arguments as they came.",
            "inputSchema": { "type": "object", "additionalProperties": true },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        {
            "name": "roll_dice",
            "title": "Roll dice",
            "description": "Rolls one die.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "sides": { "type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 6 },
                },
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": true, "idempotentHint": false, "openWorldHint": false },
        },
        {
            "name": "add",
            "title": "Add",
            "description": "Adds two numbers.",
            "inputSchema": {
                "type": "object",
                "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
                "required": ["a", "b"],
            },
            "outputSchema": {
                "type": "object",
                "properties": { "sum": { "type": "number" } },
                "required": ["sum"],
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
    ])
}

/// Runs a tool; a tool that does not exist is the request's fault, bad arguments are the tool's own answer.
fn call(params: &Value) -> Result<Value, String> {
    let none = Map::new();
    let arguments = params
        .get("arguments")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let called = match name {
        "greet" => greet(arguments),
        "echo" => Ok(echo(arguments)),
        "roll_dice" => roll_dice(arguments),
        "add" => add(arguments),
        _ => return Err(format!("there is no tool `{name}`")),
    };
    Ok(called.unwrap_or_else(
        |trouble| json!({ "content": [{ "type": "text", "text": trouble }], "isError": true }),
    ))
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn structured(shown: &str, structured: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": shown }], "structuredContent": structured })
}

fn greet(arguments: &Map<String, Value>) -> Result<Value, String> {
    let name = arguments.get("name").and_then(Value::as_str);
    let name = name.ok_or("`name` must be a string")?;
    Ok(text(&format!("Hello, {name}!")))
}

fn echo(arguments: &Map<String, Value>) -> Value {
    let arguments = Value::Object(arguments.clone());
    structured(&arguments.to_string(), &arguments)
}

fn roll_dice(arguments: &Map<String, Value>) -> Result<Value, String> {
    let sides = match arguments.get("sides") {
        None => Some(6),
        Some(sides) => sides.as_u64(),
    };
    let sides = sides
        .filter(|sides| (1..=1_000_000).contains(sides))
        .ok_or("`sides` must be an integer from 1 to 1000000")?;
    // The upper half of a random UUID has 60 random bits: far more than the sides of a die.
    let (chance, _) = uuid::Uuid::new_v4().as_u64_pair();
    Ok(text(&format!("Rolled {} of {sides}", chance % sides + 1)))
}

fn add(arguments: &Map<String, Value>) -> Result<Value, String> {
    let number = |name: &str| {
        let number = arguments.get(name).and_then(Value::as_f64);
        number.ok_or_else(|| format!("`{name}` must be a number"))
    };
    let sum = json!({ "sum": number("a")? + number("b")? });
    Ok(structured(&sum.to_string(), &sum))
}
