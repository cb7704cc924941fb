//! Two clients of one process, each with a loader of its own, over a real server on the loopback interface.

mod ends;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::*;
use crate::config::{Environment, FilePosition, Files, Launch, Locations, Server, Startup};
use crate::history::History;
use crate::loader::loopback::{DEADLINE, LoopbackServer};
use crate::loader::plan::{Plan, plan};
use crate::loader::process::Urgency;
use crate::loader::session::{Client, Declared, Inquiry, Reply, Session};
use crate::loader::{Content, Known, ReleaseAge};
use crate::protocol::{ListKind, Payload};
use crate::wire::{DrainPolicy, Outbox};

struct World {
    _home: tempfile::TempDir,
    server: LoopbackServer,
    declared: Server,
    plan: Arc<Plan>,
    loader: Loader,
}

impl World {
    async fn new() -> Self {
        let server = LoopbackServer::open().await;
        let url = format!("http://{}/mcp", server.address());
        Self::at(server, url)
    }

    /// Declares a server at `url`.
    fn at(server: LoopbackServer, url: String) -> Self {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::new([("HOME", home.path())], home.path());
        let declared = Server {
            launch: Launch::Remote {
                url,
                headers: BTreeMap::new(),
            },
            env: BTreeMap::new(),
            variables_file: None,
            directory: "/".into(),
            cwd: "/".into(),
            disabled: false,
            allow_scripts: false,
            startup: Startup::Lazy,
            opened_in: None,
            start_timeout: DEADLINE,
            call_timeout: None,
            idle: None,
            tools: Vec::new(),
            source: FilePosition {
                file: "/.pml.json".into(),
                line: 1,
                column: 1,
            },
        };
        let plan = plan(&"web".parse().unwrap(), &declared, &environment).unwrap();
        let locations = Locations::of(&environment).unwrap();
        let files = Files::new(home.path().join(".pml.json"), &locations);
        let release_age = ReleaseAge::new(files.clone(), || 0);
        let history = History::new(&locations, files, || 0);
        Self {
            _home: home,
            server,
            declared,
            plan: Arc::new(plan),
            loader: Loader::new(&environment, &locations, history, release_age, TaskTracker::new()),
        }
    }

    async fn start(&self, loader: &Loader) -> Result<Started, Arc<LoadError>> {
        let content = Content::default();
        let starting = loader.start(
            &self.plan,
            &self.declared,
            1 << 20,
            &content,
            Lease::Standing,
            None,
        );
        tokio::time::timeout(DEADLINE, starting).await.unwrap()
    }

    fn tools(&self, loader: &Loader) -> Vec<String> {
        let known: Arc<Known> = loader.known(&self.plan).unwrap();
        known.tools.iter().map(|tool| tool.name().to_owned()).collect()
    }
}

/// A client that notes what servers ask it.
struct RecordingClient {
    outbox: Outbox,
    asked: Mutex<mpsc::UnboundedSender<String>>,
}

impl RecordingClient {
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (asked, heard) = mpsc::unbounded_channel();
        let client = Self {
            outbox: Outbox::open(tokio::io::sink(), DrainPolicy::UntilItIsGone, &TaskTracker::new()),
            asked: Mutex::new(asked),
        };
        (Arc::new(client), heard)
    }
}

impl Client for RecordingClient {
    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn opened(&self, _session: &Session) {}

    fn asked(&self, session: &Session, inquiry: Arc<Inquiry>) {
        let _ = self.asked.lock().unwrap().send(inquiry.method.clone());
        session.answer(&inquiry.id, Bytes::from_static(b"{}"));
    }

    fn withdrawn(&self, _session: &Session, _id: &str) {}

    fn watches(&self, _session: &Session) -> bool {
        false
    }

    fn notified(&self, _session: &Session, _method: &str, _line: &Bytes, _params: Option<&Payload<'_>>) {}
}

#[tokio::test]
async fn each_client_has_a_session_of_its_own_and_is_declared_to_it_alone() {
    let world = World::new().await;
    let (one, two) = (&world.loader, world.loader.for_another_client());
    one.declare(Declared::new(Some(r#"{"roots":{}}"#), Some(r#"{"name":"one"}"#)));
    two.declare(Declared::new(
        Some(r#"{"sampling":{}}"#),
        Some(r#"{"name":"two"}"#),
    ));
    let (first, second) = (world.start(one).await.unwrap(), world.start(&two).await.unwrap());
    assert!(!first.session.is(&second.session));
    let introduced: Vec<(String, Value, Value)> = world
        .server
        .received("initialize")
        .into_iter()
        .map(|(session, params)| {
            (
                session,
                params["capabilities"].clone(),
                params["clientInfo"].clone(),
            )
        })
        .collect();
    assert_eq!(
        introduced,
        [
            ("s1".to_owned(), json!({ "roots": {} }), json!({ "name": "one" })),
            (
                "s2".to_owned(),
                json!({ "sampling": {} }),
                json!({ "name": "two" })
            ),
        ]
    );
    // Started once per client, not once per call.
    assert!(world.start(one).await.unwrap().session.is(&first.session));
    assert!(world.start(&two).await.unwrap().session.is(&second.session));
    assert_eq!((one.sessions().len(), two.sessions().len()), (1, 1));
}

#[tokio::test]
async fn a_server_asks_the_client_it_was_started_for_and_no_other() {
    let world = World::new().await;
    let (one, two) = (&world.loader, world.loader.for_another_client());
    let (first, mut asked_first) = RecordingClient::new();
    let (second, mut asked_second) = RecordingClient::new();
    let weak: std::sync::Weak<RecordingClient> = Arc::downgrade(&first);
    one.serve(weak);
    let weak: std::sync::Weak<RecordingClient> = Arc::downgrade(&second);
    two.serve(weak);
    world.start(one).await.unwrap();
    world.start(&two).await.unwrap();
    let question = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    world.server.say("s1", &question(1, "roots/list")).await;
    world.server.say("s2", &question(2, "elicitation/create")).await;
    let heard = |asked: &mut mpsc::UnboundedReceiver<String>| asked.try_recv().ok();
    assert_eq!(asked_first.recv().await.as_deref(), Some("roots/list"));
    assert_eq!(asked_second.recv().await.as_deref(), Some("elicitation/create"));
    assert_eq!((heard(&mut asked_first), heard(&mut asked_second)), (None, None));
}

#[tokio::test]
async fn a_list_change_of_one_client_is_not_told_to_another() {
    let world = World::new().await;
    let (one, two) = (&world.loader, world.loader.for_another_client());
    world.start(one).await.unwrap();
    world.start(&two).await.unwrap();
    let (mut seen_by_one, mut seen_by_two) = (one.list_changes(), two.list_changes());
    seen_by_one.mark_unchanged();
    seen_by_two.mark_unchanged();
    world.server.rename_tool("second");
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    world.server.say("s1", &changed).await;
    tokio::time::timeout(DEADLINE, seen_by_one.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(world.tools(one), ["second"]);
    assert!(!seen_by_two.has_changed().unwrap());
    assert_eq!(world.tools(&two), ["first"]);
    two.lists_changed(&[ListKind::Prompts]);
    assert!(!seen_by_one.has_changed().unwrap());
}

#[tokio::test]
async fn closing_the_servers_of_one_client_leaves_those_of_another_running() {
    let world = World::new().await;
    let (one, two) = (&world.loader, world.loader.for_another_client());
    let first = world.start(one).await.unwrap();
    let second = world.start(&two).await.unwrap();
    one.close(Urgency::Gentle).await;
    assert!(!first.session.is_open());
    assert_eq!((one.sessions().len(), two.sessions().len()), (0, 1));
    let reply = tokio::time::timeout(DEADLINE, second.session.request("ping", "{}"))
        .await
        .unwrap();
    assert!(matches!(reply, Reply::Result(result) if result == "{}"));
    // Nor can the closed one start anything any more, while the other can.
    assert!(matches!(*world.start(one).await.unwrap_err(), LoadError::Closing));
    two.retire(world.plan.dependency(), world.plan.digest());
    assert!(!world.start(&two).await.unwrap().session.is(&second.session));
    two.close(Urgency::AtOnce).await;
    assert_eq!(two.sessions().len(), 0);
}

#[tokio::test]
async fn what_may_no_longer_run_is_stopped_for_one_client_at_a_time() {
    let world = World::new().await;
    let (one, two) = (&world.loader, world.loader.for_another_client());
    world.start(one).await.unwrap();
    world.start(&two).await.unwrap();
    one.dismiss(world.plan.dependency(), world.plan.digest(), "a rule denies it");
    assert_eq!((one.occupied().len(), two.occupied().len()), (0, 1));
    assert!(two.is_running(&world.plan) && !one.is_running(&world.plan));
    tokio::time::timeout(Duration::from_secs(5), two.close(Urgency::AtOnce))
        .await
        .unwrap();
}
