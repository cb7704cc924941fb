//! The proxy between one client and its servers: the only module that sees permissions, workflow and loader together.
//!
//! Every call passes the same steps, also when its server runs already: the rules, the approval of the launch, the
//! installation, the start, then the forwarding. The proxy does not speak JSON-RPC, does not print, and stores no
//! decision of its own.

pub mod approval;
mod ask;
mod ask_reason;
mod authority;
mod background_starts;
mod call;
mod changes;
mod client_scope;
mod client_tools;
mod clock;
mod continuation;
mod current_view;
mod decision;
mod deliveries;
mod desk;
mod dialog;
mod door;
mod grants;
mod introduction;
mod late_answers;
mod launch_approvals;
mod list;
mod list_changes;
mod named_channel;
mod notifier;
mod offers;
mod outcome;
mod owner;
mod permitted_call;
mod person_asks;
mod presence;
mod progress;
mod project_trust;
mod read_only;
mod relayed_questions;
mod route;
mod route_lookup;
mod rule_error;
mod rule_place;
mod run_asks;
mod server_pins;
mod shared_asks;
mod status;
mod surface;
mod template;
mod view;

pub use authority::{
    AGENT_MARK, AnswerWeight, Effect, NotEntitled, PersonalRoad, Relation, Runner, Terminal, may_answer,
    stricter,
};
pub use call::{ClientRequest, WaitMode};
pub use client_scope::Claim;
pub use client_tools::ClientToolRuling;
pub use clock::{history, moment, now, release_age};
pub use continuation::{Carrier, DecisionSource};
pub use deliveries::ChannelStanding;
pub use desk::{AskingProgram, ChangedCards, Desk, Snapshot};
pub use door::Recorded;
pub use introduction::Introduction;
pub use late_answers::LateAnswer;
pub use list::ListBasis;
pub use named_channel::Unreached;
pub use offers::ListedItem;
pub use outcome::{AskOwnership, AskPossibility, ListedTool, Outcome, PendingAsk, Refusal};
pub use person_asks::{QuestionStatus, came_second};
pub use presence::{presence_of, process_name};
pub use progress::Progress;
pub use read_only::tools as read_only_tools;
pub use route::{ReadyRequest, RequestedItem, ResumedRoute, Route, UnknownItem};
pub use server_pins::{ServerDifference, ServerPins};
pub use status::{PendingStatus, ServerState, ServerStatus, Status};
pub use surface::{ChannelKeeper, OpenSurface};

// What a conversation needs of the loader, so that it need not see the loader itself.
pub use crate::loader::process::supervisor::program as supervisor_program;
pub use crate::loader::{Caller, Client, Declared, Failure, Inquiry, OfferResult, Reply, Session, Urgency};
// What a host needs to start its agent as a server is started.
pub use crate::loader::process::{
    Exit, LaunchLine, Pipes, Process as AgentProcess, SpawnError, Stderr, find_users_program, spawn,
};
pub use crate::permissions::Ruling;
pub use crate::relay::RelayError;
pub use crate::workflow::{Answer, Arguments, Ask, Provenance, Road, State, UseReach, Workflow, WorkflowId};
pub use crate::workflow::{ChannelReport, ChannelState, Delivery, DeliveryKey, DeliveryState, ShownStanding};

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::config::{self, Environment, FileChoice, Files, Locations, WatchedConfig};
use crate::history::History;
use crate::loader::Loader;
use crate::protocol::{ListChanges, ToolName};
use crate::relay::Relay;
use crate::workflow::{Place, Workflows};

use client_scope::ClientScope;
use current_view::CachedView;
use grants::Grants;
use notifier::Notifier;
use shared_asks::SharedAsks;
use view::View;

/// The time within which an urgent close ends every server: clients kill pml 500 ms after their first signal.
const AT_ONCE: Duration = Duration::from_millis(300);

/// The time within which a gentle close ends every server: pml should end within a second after its client.
const GENTLE: Duration = Duration::from_millis(700);

/// Everything between the calls of one client and the answers of its servers; clones share it.
///
/// One process may serve several clients ([`Proxy::for_another_client`]). They share the configuration's files, the store
/// of asks and approvals, the installed packages and what is known of servers. What one of them declared, was granted
/// for its session, asked, subscribed to or started is its own.
#[derive(Clone)]
pub struct Proxy(Arc<Shared>);

struct Shared {
    environment: Environment,
    locations: Locations,
    files: Files,
    view: Mutex<CachedView>,
    /// Held by the one call that reads the configuration again: the others that came meanwhile find what it read.
    reading: tokio::sync::Mutex<()>,
    loader: Loader,
    workflows: Workflows,
    /// Calls the person where nothing shows what is asked.
    notifier: Arc<Notifier>,
    /// Where rules, trust and refusals are recorded.
    history: History,
    /// What the user accepted of each server.
    pins: Arc<ServerPins>,
    /// The host that shows questions instead, where one started this conversation.
    relay: Arc<Relay>,
    /// The name under which this client asks, and the asks that its calls wait for.
    scope: Arc<ClientScope>,
    /// The asks that calls of this client share.
    open_asks: SharedAsks,
    /// What a person granted to this client for its session.
    grants: Arc<Grants>,
    /// Whether the files that decide what may run are watched.
    watching: AtomicBool,
    /// Work that must end well even if the call that started it is cancelled.
    tasks: TaskTracker,
    /// The asks that are being withdrawn because their call is gone.
    withdrawals: TaskTracker,
}

impl Proxy {
    /// Names the places and reads the configuration; installs, starts and creates nothing.
    #[must_use]
    pub fn new(environment: Environment, locations: &Locations, files: Files, tasks: TaskTracker) -> Self {
        let watched = WatchedConfig::new(files.clone());
        let history = clock::history(locations, files.clone());
        let workflows = Workflows::with_history(Place::of(locations), Arc::new(moment), history.clone());
        Self(Arc::new(Shared {
            loader: Loader::new(
                &environment,
                locations,
                history.clone(),
                clock::release_age(files.clone()),
                tasks.clone(),
            ),
            notifier: Notifier::new(&environment, locations.state(), &workflows),
            workflows,
            history,
            pins: Arc::new(ServerPins::new(locations)),
            relay: Arc::new(Relay::of(&environment)),
            scope: ClientScope::new(),
            open_asks: SharedAsks::default(),
            grants: Arc::default(),
            watching: AtomicBool::new(false),
            view: Mutex::new(CachedView::new(watched)),
            reading: tokio::sync::Mutex::default(),
            environment,
            locations: locations.clone(),
            files,
            tasks,
            withdrawals: TaskTracker::new(),
        }))
    }

    /// Tells whether pml was started where no project can be meant, and was given none.
    #[must_use]
    pub fn is_outside_projects(&self) -> bool {
        self.0.files.chosen == FileChoice::Found && config::is_outside_projects(&self.0.environment)
    }

    /// Returns a proxy for a client that works in these folders, to be used instead of this one, which has run nothing.
    pub async fn working_in(&self, folders: Vec<PathBuf>) -> Self {
        let Shared {
            environment,
            locations,
            tasks,
            ..
        } = &*self.0;
        let (around, places) = (environment.clone(), locations.clone());
        let searching = move || config::find_in(&folders, &around, &places);
        let Ok(files) = tokio::task::spawn_blocking(searching).await else {
            return self.clone();
        };
        if let Some(unreached) = &files.unreached {
            tracing::warn!("{unreached}");
        }
        let environment = match files.project.parent() {
            Some(directory) => environment.clone().in_project(directory),
            None => environment.clone(),
        };
        Self::new(environment, locations, files, tasks.clone())
    }

    /// Returns a proxy for another client of the same process, to which nothing was granted and for which nothing runs.
    #[must_use]
    pub fn for_another_client(&self) -> Self {
        let Shared {
            environment,
            locations,
            files,
            loader,
            workflows,
            notifier,
            history,
            pins,
            relay,
            tasks,
            ..
        } = &*self.0;
        Self(Arc::new(Shared {
            loader: loader.for_another_client(),
            workflows: workflows.clone(),
            notifier: Arc::clone(notifier),
            history: history.clone(),
            pins: Arc::clone(pins),
            relay: Arc::clone(relay),
            scope: ClientScope::new(),
            open_asks: SharedAsks::default(),
            grants: Arc::default(),
            watching: AtomicBool::new(false),
            view: Mutex::new(CachedView::new(WatchedConfig::new(files.clone()))),
            reading: tokio::sync::Mutex::default(),
            environment: environment.clone(),
            locations: locations.clone(),
            files: files.clone(),
            tasks: tasks.clone(),
            withdrawals: TaskTracker::new(),
        }))
    }

    /// Takes note of what the client says of itself: what is started from now on sees exactly that.
    pub fn declare(&self, declared: Declared) {
        self.0.loader.declare(declared);
    }

    /// Tells how often the list of each kind may have changed.
    #[must_use]
    pub fn list_changes(&self) -> watch::Receiver<ListChanges> {
        self.0.loader.list_changes()
    }

    /// Returns the longest line to read from the client.
    #[must_use]
    pub fn line_limit(&self) -> usize {
        self.view().map_or_else(
            |_error| crate::config::LineLimit::default().0,
            |view| view.config.line_limit.0,
        )
    }

    /// Ends every running dependency and closes the store, within what a client grants.
    pub async fn close(&self, urgency: Urgency) {
        let patience = match urgency {
            Urgency::AtOnce => AT_ONCE,
            Urgency::Gentle => GENTLE,
        };
        let store = async {
            // The asks of cancelled calls are withdrawn first: no call could use an answer to them.
            self.0.withdrawals.close();
            self.0.withdrawals.wait().await;
            self.0.notifier.close().await;
            self.0.workflows.close().await;
        };
        let closing = async { tokio::join!(self.0.loader.close(urgency), store) };
        let _ = tokio::time::timeout(patience, closing).await;
    }

    /// Names the client that the dependencies talk to.
    pub fn serve(&self, client: Weak<dyn Client>) {
        self.0.loader.serve(client);
    }

    /// Returns every dependency that answers calls.
    #[must_use]
    pub fn sessions(&self) -> Vec<Session> {
        self.0.loader.sessions()
    }

    /// Returns what the rules say of a call that came; a refusal is recorded.
    fn ruled(&self, view: &View, tool: &ToolName) -> Result<Ruling, Refusal> {
        self.noted(tool, view.ruling(tool))
    }

    /// Records a refusal.
    fn noted(&self, tool: &ToolName, ruling: Result<Ruling, Refusal>) -> Result<Ruling, Refusal> {
        if let Err(Refusal::Denied { rule, .. } | Refusal::NotOffered { rule, .. }) = &ruling {
            self.0.history.note_refusal(tool, rule.pattern.as_str());
        }
        ruling
    }

    /// Returns the project's file, into which rules are written.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.0.files.project
    }

    fn project(&self) -> &Path {
        self.0
            .files
            .project
            .parent()
            .unwrap_or_else(|| self.0.environment.working_directory())
    }
}
