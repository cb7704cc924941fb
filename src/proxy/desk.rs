//! The desk: where a person answers the asks of every project of theirs, outside any client.
//!
//! A terminal, a page and a chat sit here. The desk records answers and runs nothing: the process that suspended a call
//! sees the answer in the store and goes on, or the next identical call does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::authority::{Effect, Relation, Runner, Terminal};
use super::door::{self, Reach, Recorded, Source};
use super::notifier::Notifier;
use super::person_asks::{self, QuestionStatus};
use super::surface::OpenSurface;
use super::{Refusal, history, moment, presence};
use crate::card::{Card, CardState, Said};
use crate::config::{self, By, Environment, Files, Locations};
use crate::history::History;
use crate::protocol::question::Question;
use crate::workflow::{
    Asker, AskingClient, ChangedWorkflows, Event, Origin, Place, Provenance, Suspension, Workflow,
    WorkflowError, WorkflowId, Workflows,
};

/// How many asks that do not wait any more a surface begins with.
const RECENT: usize = 200;

/// What a surface begins with.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The revision up to which this tells everything.
    pub revision: u64,
    /// What waits, the oldest first.
    pub pending: Vec<Card>,
    /// What does not wait any more, the newest first.
    pub recent: Vec<Card>,
}

/// The cards that changed after a revision.
#[derive(Debug, Clone)]
pub enum ChangedCards {
    /// These, the newest change last.
    These {
        /// The revision up to which this tells everything.
        latest: u64,
        /// The cards as they are now.
        cards: Vec<Card>,
    },
    /// It cannot be told: a surface must begin anew.
    ReadAnew,
}

/// A program that asks and is no client of pml.
#[derive(Debug, Clone)]
pub struct AskingProgram {
    /// The conversation that its questions belong to.
    pub asker: Asker,
    /// The directory of the project that it asks for.
    pub project: PathBuf,
    /// The project's file of the configuration that it asks under.
    pub config: PathBuf,
    /// What people are told of it.
    pub client: AskingClient,
}

/// Answers asks of every project, under the configuration that each of them was asked under.
#[derive(Debug, Clone)]
pub struct Desk {
    pub(super) workflows: Workflows,
    history: History,
    /// Calls the person where nothing shows what a program asks.
    notifier: Arc<Notifier>,
    /// The user's directories, with the configuration file that counts in every project.
    pub(super) locations: Locations,
    /// The configuration of the place where the desk stands.
    here: Files,
    runner: Runner,
}

impl Desk {
    /// Names the store and the configuration of this place; opens and reads nothing yet.
    #[must_use]
    pub fn new(environment: &Environment, locations: &Locations, here: Files, terminal: Terminal) -> Self {
        let history = history(locations, here.clone());
        let workflows = Workflows::with_history(Place::of(locations), Arc::new(moment), history.clone());
        Self {
            notifier: Notifier::new(environment, locations.state(), &workflows),
            workflows,
            history,
            locations: locations.clone(),
            here,
            runner: Runner::of(environment, terminal),
        }
    }

    /// Finds the ask that a person means by a code or by the beginning of an id.
    pub async fn named(&self, text: &str) -> Result<Workflow, Refusal> {
        Ok(self.workflows.find_by_code_or_prefix(text).await?)
    }

    /// Finds an ask by its id.
    pub async fn find(&self, id: WorkflowId) -> Result<Workflow, Refusal> {
        Ok(self.workflows.find(id).await?)
    }

    /// Draws the card of an ask as it stands now.
    #[must_use]
    pub fn card(&self, workflow: &Workflow) -> Card {
        presence::card(workflow)
    }

    /// Returns what every surface begins with: what waits, what happened lately, and the revision that this tells.
    pub async fn snapshot(&self) -> Result<Snapshot, Refusal> {
        // The revision is read first: what changes meanwhile is told again, and nothing is missed.
        let revision = self.workflows.latest_revision().await?;
        let recent = self.workflows.recent(RECENT).await?;
        let cards: Vec<Card> = recent.iter().map(|workflow| self.card(workflow)).collect();
        let (mut pending, recent): (Vec<_>, Vec<_>) = cards
            .into_iter()
            .partition(|card| card.state == CardState::Pending);
        // A question may wait for weeks: what waits is listed whole, whatever came after it.
        let known = pending.len();
        for workflow in self.workflows.pending().await? {
            if pending[..known].iter().all(|card| card.id != workflow.id) {
                pending.push(self.card(&workflow));
            }
        }
        pending.sort_by_key(|card| (card.created_at, card.id));
        Ok(Snapshot {
            revision,
            pending,
            recent,
        })
    }

    /// Returns the cards that changed after a revision, the newest change last.
    pub async fn changed_since(&self, revision: u64) -> Result<ChangedCards, Refusal> {
        Ok(match self.workflows.changed_since(revision).await? {
            ChangedWorkflows::ReadAnew => ChangedCards::ReadAnew,
            ChangedWorkflows::These { latest, workflows } => ChangedCards::These {
                latest,
                cards: workflows.iter().map(|workflow| self.card(workflow)).collect(),
            },
        })
    }

    /// Tells the newest revision, and each newer one for as long as the receiver is kept.
    pub async fn revisions(&self) -> Result<watch::Receiver<u64>, Refusal> {
        Ok(self.workflows.revisions().await?)
    }

    /// Takes note that the asks are shown here, for as long as what is returned is kept: nobody is called meanwhile.
    pub async fn open_surface(&self) -> Option<OpenSurface> {
        let state = self.locations.state().to_owned();
        let registered = tokio::task::spawn_blocking(move || OpenSurface::register(&state)).await;
        match registered.unwrap_or_else(|panicked| Err(panicked.into())) {
            Ok(surface) => surface,
            Err(error) => {
                tracing::debug!(%error, "what is open here cannot be told to others");
                None
            }
        }
    }

    /// Makes an answer of what a person said to an ask, and records it if it counts.
    pub async fn say(&self, id: WorkflowId, said: Said, by: Provenance) -> Result<Card, Refusal> {
        let recorded = self.record(&self.find(id).await?, said, by).await?;
        Ok(self.card(&recorded.workflow))
    }

    /// Makes an answer of what a person said to an ask, and records it with everything that it grants, if it counts.
    pub async fn record(&self, workflow: &Workflow, said: Said, by: Provenance) -> Result<Recorded, Refusal> {
        let source = self.source(workflow).await;
        let answer = door::answer(&source, workflow, said, &by)?;
        // What was shown is what is granted: the launch is bound to the digest that the ask was made with.
        let reach = Reach::AsShown { package: None };
        let recorded = door::record(
            &self.workflows,
            &self.history,
            &source,
            workflow,
            answer,
            by,
            reach,
        )
        .await?;
        // A refusal erases the arguments, and the log of the store must not keep them. A process that is reading the
        // log now shortens it later.
        let _ = self.workflows.erase_traces().await;
        Ok(recorded)
    }

    /// Lists what waits for an answer, the oldest first.
    pub async fn pending(&self) -> Result<Vec<Workflow>, Refusal> {
        Ok(self.workflows.pending().await?)
    }

    /// Lists every ask that is still kept, the newest first.
    pub async fn recent(&self, limit: usize) -> Result<Vec<Workflow>, Refusal> {
        Ok(self.workflows.recent(limit).await?)
    }

    /// Takes an answer for one who tells it to its agent; only one of several that try at once succeeds.
    pub async fn take(&self, id: WorkflowId) -> Result<Workflow, Refusal> {
        Ok(self.workflows.apply(id, Event::Take).await?)
    }

    /// Checks before anything is said that an answer with this effect would count.
    pub async fn check(&self, workflow: &Workflow, effect: Effect, by: &Provenance) -> Result<(), Refusal> {
        door::check(&self.source(workflow).await, workflow, effect, by)
    }

    /// Puts a question of a program to the person; the very same question is put once.
    pub async fn ask(&self, program: AskingProgram, question: Question) -> Result<Workflow, Refusal> {
        let files = Files::new(program.config.clone(), &self.locations);
        let read = tokio::task::spawn_blocking(move || config::read(&files)).await;
        let read = read.map_err(|panicked| Refusal::NotRecorded(panicked.into()))?;
        let config = read.map_err(|error| Refusal::Config(Arc::new(error)))?;
        let origin = Origin {
            config: program.config,
            by: config.approvals.by,
            asker: program.asker,
            client: program.client,
        };
        let new = person_asks::new_question(
            "ask_user",
            vec![question],
            config.ask_user.kept,
            program.project,
            origin,
        );
        let suspension = self.workflows.create(new).await?;
        if let Suspension::New(workflow) = &suspension {
            self.notifier.announce(workflow.id, config.notify.as_ref());
        }
        Ok(suspension.workflow())
    }

    /// Returns how the question of a program stands; an answer that is returned counts as taken.
    pub async fn question_status(&self, id: WorkflowId) -> Result<QuestionStatus, Refusal> {
        person_asks::read_status(&self.workflows, id, Duration::ZERO).await
    }

    /// Withdraws the question of a program that asks something else now, and returns it as it stands then: one that a
    /// person answered first stays answered.
    pub async fn withdraw(&self, id: WorkflowId) -> Result<Workflow, Refusal> {
        match self.workflows.apply(id, Event::Withdraw).await {
            Err(WorkflowError::Refused { .. }) => self.find(id).await,
            withdrawn => Ok(withdrawn?),
        }
    }

    /// Closes the store.
    pub async fn close(&self) {
        self.notifier.close().await;
        self.workflows.close().await;
    }

    /// Tells where an answer from this desk comes from. The strictest of three policies counts: the one of the ask, the
    /// one that stands in its configuration now, and the one of this place; an agent chooses where it stands.
    async fn source(&self, workflow: &Workflow) -> Source {
        let asking = Files::new(workflow.origin.config.clone(), &self.locations);
        let (read, here, asked) = (asking.clone(), self.here.clone(), workflow.origin.by);
        let read = tokio::task::spawn_blocking(move || door::policy(&read, Some(&here), asked));
        Source {
            policy: read.await.unwrap_or(By::Human),
            asking,
            here: Some(self.here.clone()),
            // What is said outside a client counts for every ask of the user, so it has no project of its own.
            relation: Relation::OtherProject,
            runner: self.runner,
        }
    }
}
