//! What the fake server offers beside its tools, and how it speaks the Modern era.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

/// Prompts and resources under a name of their own, and whether their changes are told.
pub(crate) struct Offers {
    pub(crate) name: String,
    pub(crate) tells: bool,
}

/// Whether the Modern era is spoken, and no other.
pub(crate) static MODERN: AtomicBool = AtomicBool::new(false);
/// The id of the subscription that wants to hear of changes.
static SUBSCRIPTION: Mutex<Option<Value>> = Mutex::new(None);
/// How many subscriptions are still acknowledged.
pub(crate) static ACKNOWLEDGEMENTS: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Whether there is one prompt and one resource more.
static MORE: AtomicBool = AtomicBool::new(false);

/// What every Modern request must carry.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What every Modern notification of a subscription carries.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Answers what belongs to the Modern era or to lists; `None` is for the others.
pub(crate) fn answer(
    offers: Option<&Offers>,
    id: &Value,
    method: &str,
    params: &Value,
) -> Option<(&'static str, Value)> {
    let refused = |code: i64, message: &str| Some(("error", json!({ "code": code, "message": message })));
    if MODERN.load(Ordering::SeqCst) {
        if method == "initialize" {
            let supported = json!({ "supported": ["2026-07-28"], "requested": params["protocolVersion"] });
            let error = json!({ "code": -32022, "message": "unsupported version", "data": supported });
            return Some(("error", error));
        }
        if params["_meta"][VERSION] != "2026-07-28" {
            return refused(-32602, "the envelope is missing");
        }
    }
    match method {
        "server/discover" if MODERN.load(Ordering::SeqCst) => {
            let mut result = introduction(offers);
            result["supportedVersions"] = json!(["2026-07-28"]);
            Some(("result", result))
        }
        "subscriptions/listen" if MODERN.load(Ordering::SeqCst) => {
            *SUBSCRIPTION.lock().unwrap() = Some(id.clone());
            let left = |left: usize| left.checked_sub(1);
            ACKNOWLEDGEMENTS
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
                .ok()?;
            let params =
                json!({ "notifications": params["notifications"], "_meta": { SUBSCRIPTION_ID: id } });
            super::notify("notifications/subscriptions/acknowledged", &params);
            None
        }
        "prompts/list" => {
            let mut prompts = vec![prompt("greet"), prompt(&format!("{}.only", offers?.name))];
            if MORE.load(Ordering::SeqCst) {
                prompts.push(prompt("more"));
            }
            Some(("result", json!({ "prompts": prompts })))
        }
        // Two pages, so that whoever reads one has not read all.
        "resources/list" if params["cursor"].is_null() => {
            let resources = [resource("shared://one")];
            offers?;
            Some(("result", json!({ "resources": resources, "nextCursor": "2" })))
        }
        "resources/list" if params["cursor"] == "2" => {
            let mut resources = vec![resource(&format!("{}://own", offers?.name))];
            if MORE.load(Ordering::SeqCst) {
                resources.push(resource("more://one"));
            }
            Some(("result", json!({ "resources": resources })))
        }
        "resources/list" => refused(-32602, "no such cursor"),
        // Also what it does not list, if it is its own.
        "resources/read" => {
            let uri = params["uri"].as_str()?;
            if !uri.ends_with(&offers?.name) && !uri.starts_with(&offers?.name) {
                return refused(-32002, "Resource not found");
            }
            let contents = json!([{ "uri": uri, "text": offers?.name }]);
            Some(("result", json!({ "contents": contents })))
        }
        "resources/subscribe" | "resources/unsubscribe" => offers.map(|_offers| ("result", json!({}))),
        "resources/templates/list" => {
            let own = format!("{}://{{id}}", offers?.name);
            let template = |uri: &str| json!({ "uriTemplate": uri, "name": uri });
            let templates = [template("shared://by/{id}"), template(&own)];
            Some(("result", json!({ "resourceTemplates": templates })))
        }
        _ => None,
    }
}

/// Whether a client has been asked.
pub(crate) enum Asked {
    /// Just now: this call has no answer yet, or no other.
    Now,
    /// Before, and this call brings its answer.
    Before,
}

/// Asks the client by a form: a Legacy one by a request, after which the call is never answered.
pub(crate) fn ask(id: &Value, params: &Value) -> Asked {
    let property = match params["arguments"]["for"].as_str() {
        Some(kind) => json!({ "type": kind }),
        None => json!({ "type": "string" }),
    };
    let schema = json!({ "type": "object", "properties": { "name": property } });
    let form = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
    if !params["inputResponses"].is_null() {
        return Asked::Before;
    }
    if MODERN.load(Ordering::SeqCst) {
        let question = json!({ "person": { "method": "elicitation/create", "params": form } });
        let result =
            json!({ "resultType": "input_required", "inputRequests": question, "requestState": "theirs" });
        super::reply_raw(id, "result", &result.to_string());
    } else {
        let request =
            json!({ "jsonrpc": "2.0", "id": "asked", "method": "elicitation/create", "params": form });
        super::write_line(&request.to_string());
    }
    Asked::Now
}

/// Asks the client by forms, one after the other and without waiting for an answer.
pub(crate) fn ask_often(times: u64, bytes: u64) {
    let message = "x".repeat(usize::try_from(bytes).unwrap());
    let schema = json!({ "type": "object", "properties": {} });
    let form = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    for time in 0..times {
        let id = format!("asked-{time}");
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form });
        super::write_line(&request.to_string());
    }
}

/// What the server says of itself.
pub(crate) fn introduction(offers: Option<&Offers>) -> Value {
    let mut capabilities = json!({ "tools": { "listChanged": true } });
    let mut result = json!({ "serverInfo": { "name": "fake", "version": "1.0.0" } });
    if let Some(offers) = offers {
        capabilities["prompts"] = json!({ "listChanged": offers.tells });
        capabilities["resources"] = json!({ "listChanged": offers.tells, "subscribe": true });
        capabilities["x-fake"] = json!({ "name": offers.name });
        result["instructions"] = json!(format!("Speak softly to {}.", offers.name));
    }
    result["capabilities"] = capabilities;
    result
}

/// Adds what a Modern result must have.
pub(crate) fn completed(result: &Value) -> Value {
    let mut result = result.clone();
    if let (true, Some(members)) = (MODERN.load(Ordering::SeqCst), result.as_object_mut()) {
        members.insert("resultType".to_owned(), json!("complete"));
        members.insert("ttlMs".to_owned(), json!(0));
        members.insert("cacheScope".to_owned(), json!("private"));
    }
    result
}

/// Offers more, and says so where it tells changes at all.
pub(crate) fn more(offers: Option<&Offers>) {
    MORE.store(true, Ordering::SeqCst);
    if offers.is_some_and(|offers| offers.tells) {
        for list in ["prompts", "resources"] {
            tell(&format!("notifications/{list}/list_changed"));
        }
    }
}

/// Offers more once a file exists.
pub(crate) fn more_when(file: String, name: String) {
    std::thread::spawn(move || {
        super::wait_for(Path::new(&file));
        more(Some(&Offers { name, tells: true }));
    });
}

fn tell(method: &str) {
    let subscription = SUBSCRIPTION.lock().unwrap().clone();
    match subscription {
        Some(id) => super::notify(method, &json!({ "_meta": { SUBSCRIPTION_ID: id } })),
        None if MODERN.load(Ordering::SeqCst) => {}
        None => super::notify(method, &json!({})),
    }
}

fn prompt(name: &str) -> Value {
    json!({ "name": name, "x-long": 1.5, "description": format!("Fake: {name}") })
}

fn resource(uri: &str) -> Value {
    json!({ "uri": uri, "name": uri, "mimeType": "text/plain" })
}
