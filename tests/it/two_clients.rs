//! Two clients of one process: what one declares, is granted, is asked or starts is not the other's.

use std::collections::VecDeque;
use std::time::Duration;

use pml::config::{self, Environment, Locations};
use pml::proxy::Proxy;
use pml::stdio::streams::Streams;
use pml::stdio::{Shutdown, serve};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::support::web::Web;
use crate::support::world::{World, texts};

/// Longer than anything here takes on a busy machine; reaching it is a failure.
const DEADLINE: Duration = Duration::from_mins(1);

/// A client of a pml in this process.
struct LocalClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
    serving: JoinHandle<Shutdown>,
    /// What came while something else was waited for.
    unread: VecDeque<Value>,
    next: u64,
}

impl LocalClient {
    /// Opens a Legacy conversation that shows forms.
    async fn open(proxy: Proxy, name: &str) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (source, sink) = tokio::io::split(theirs);
        let streams = Streams::unwatched(source, sink);
        let serving = tokio::spawn(serve(proxy, streams, TaskTracker::new(), std::future::pending()));
        let (output, input) = tokio::io::split(ours);
        let mut client = Self {
            lines: BufReader::new(output).lines(),
            input,
            serving,
            unread: VecDeque::new(),
            next: 0,
        };
        let opening = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": name, "version": "1" },
        });
        let id = client.send("initialize", &opening).await;
        client.answer(id).await;
        client
    }

    async fn write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.write(&message).await;
        self.next
    }

    /// Calls the tool of the server.
    async fn call(&mut self, text: &str) -> u64 {
        let params = json!({ "name": "web__echo", "arguments": { "text": text } });
        self.send("tools/call", &params).await
    }

    async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.unread.iter().position(&wanted) {
            return self.unread.remove(place).unwrap();
        }
        loop {
            let line = tokio::time::timeout(DEADLINE, self.lines.next_line()).await;
            let line = line.expect("pml says nothing").unwrap().expect("pml has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    async fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    async fn form(&mut self) -> Value {
        self.find(|message| message["method"] == "elicitation/create")
            .await
    }

    async fn decide(&mut self, form: &Value, decision: &str) {
        let result = json!({ "action": "accept", "content": { "decision": decision } });
        self.write(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": result }))
            .await;
    }

    /// Asserts that nothing was said to the client but answers; a `ping` is answered after what came before it.
    async fn assert_asked_nothing(&mut self) {
        let id = self.send("ping", &json!({})).await;
        self.answer(id).await;
        let asked: Vec<&Value> = self
            .unread
            .iter()
            .filter(|message| message["method"] == "elicitation/create")
            .collect();
        assert!(asked.is_empty(), "{asked:?}");
    }

    async fn close(self) -> Shutdown {
        drop((self.input, self.lines));
        tokio::time::timeout(DEADLINE, self.serving)
            .await
            .unwrap()
            .unwrap()
    }
}

/// A project whose server is asked for before each call, and the proxy of its first client.
fn project(web: &Web) -> (World, Proxy) {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "ask": ["web:echo"] },
        "mcpServers": { "web": { "type": "http", "url": web.url("/mcp") } },
    }));
    let environment = Environment::new([("HOME", world.home())], world.project());
    let locations = Locations::of(&environment).unwrap();
    let files = config::find(None, &environment, &locations);
    let proxy = Proxy::new(environment, &locations, files, TaskTracker::new());
    (world, proxy)
}

/// The clients that introduced themselves to the server, in the order in which they did.
fn introduced(web: &Web) -> Vec<String> {
    let opened = web
        .asked()
        .into_iter()
        .filter(|request| request.rpc() == "initialize");
    opened
        .map(|request| {
            request.body["params"]["clientInfo"]["name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn what_is_granted_and_asked_is_one_clients_alone() {
    let web = Web::mcp(|_| None);
    let (_world, proxy) = project(&web);
    let mut one = LocalClient::open(proxy.clone(), "one").await;
    let mut two = LocalClient::open(proxy.for_another_client(), "two").await;

    let first = one.call("a").await;
    let form = one.form().await;
    two.assert_asked_nothing().await;
    one.decide(&form, "session").await;
    let mut answered = one
        .find(|message| message["id"] == first || message["method"] == "elicitation/create")
        .await;
    if answered["method"] == "elicitation/create" {
        one.decide(&answered, "session").await;
        answered = one.answer(first).await;
    }
    assert_eq!(texts(&answered["result"]), [r#"{"text":"a"}"#], "{answered}");
    let again = one.call("b").await;
    assert_eq!(texts(&one.answer(again).await["result"]), [r#"{"text":"b"}"#]);
    assert_eq!(introduced(&web), ["one"]);

    // A grant for the session of one client is none for the other.
    let other = two.call("c").await;
    let form = two.form().await;
    one.assert_asked_nothing().await;
    two.decide(&form, "abort").await;
    let refused = two.answer(other).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(introduced(&web), ["one"], "nothing was started for the other");
}

#[tokio::test]
async fn each_client_has_servers_of_its_own_and_leaves_the_others_running() {
    let web = Web::mcp(|_| None);
    let (world, proxy) = project(&web);
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    config["permissions"] = json!({ "allow": ["web:*"] });
    world.configure(&config);
    let mut one = LocalClient::open(proxy.clone(), "one").await;
    let mut two = LocalClient::open(proxy.for_another_client(), "two").await;
    for (client, text) in [(&mut one, "a"), (&mut two, "b")] {
        let id = client.call(text).await;
        let expected = json!({ "text": text }).to_string();
        assert_eq!(texts(&client.answer(id).await["result"]), [expected.as_str()]);
    }
    assert_eq!(introduced(&web), ["one", "two"], "each is declared to its own");
    assert_eq!(one.close().await, Shutdown::EndOfInput);
    let id = two.call("c").await;
    assert_eq!(texts(&two.answer(id).await["result"]), [r#"{"text":"c"}"#]);
    assert_eq!(introduced(&web), ["one", "two"], "the other's connection went on");
}
