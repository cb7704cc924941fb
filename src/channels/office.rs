//! The office: carries asks to the channels of the user for as long as `pml serve` runs.
//!
//! It looks whenever an ask, a setting or the time changed, plans (`plan.rs`), and hands the steps to the outbox of each
//! channel. Every channel sends and hears in tasks of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::books::Books;
use super::line::{Line, Surroundings};
use super::local_time::LocalTime;
use super::opener::{Opener, opener};
use super::outbox::{Done, Order};
use super::plan::{Known, Plan, Step, plan};
use super::switchboard::Switchboard;
use crate::config::{ChannelName, ChannelSettings, Environment, Files, Locations, WatchedConfig};
use crate::proxy::{Delivery, DeliveryKey, DeliveryState, Desk, Refusal, ShownStanding, now};
use crate::workflow::kept_error;

/// How often the user's file is looked at: a person who was paired is heard soon after.
const LOOK: Duration = Duration::from_secs(1);

/// How soon another look follows where an outbox is full, or the store was not to be read.
const SOON: Duration = Duration::from_secs(1);

/// Carries asks to channels.
pub struct Office {
    desk: Desk,
    environment: Environment,
    locations: Locations,
    /// The page of the inbox, for what does not fit into a chat.
    inbox: Option<String>,
    switchboard: Switchboard,
    opener: Opener,
    ending: CancellationToken,
}

impl Office {
    /// Names everything; opens nothing yet.
    #[must_use]
    pub fn new(
        desk: Desk,
        environment: &Environment,
        locations: &Locations,
        inbox: Option<String>,
        ending: CancellationToken,
    ) -> Self {
        Self {
            desk,
            environment: environment.clone(),
            locations: locations.clone(),
            inbox,
            switchboard: Switchboard::default(),
            opener: opener(),
            ending,
        }
    }

    /// Returns what hands the requests of services to their channels.
    #[must_use]
    pub fn switchboard(&self) -> Switchboard {
        self.switchboard.clone()
    }

    /// Works until the end.
    pub async fn run(self) -> Result<(), Refusal> {
        let time = tokio::task::spawn_blocking(LocalTime::of_machine).await;
        let Ok(time) = time else { return Ok(()) };
        // A project's file says nothing of channels, so the user's alone is read.
        let files = Files::new(self.locations.user_config(), &self.locations);
        let Ok(config) = tokio::task::spawn_blocking(move || WatchedConfig::new(files)).await else {
            return Ok(());
        };
        let (settings, _) = watch::channel(Arc::new(ChannelSettings::default()));
        let (done, mut finished) = mpsc::unbounded_channel();
        let surroundings = Surroundings {
            desk: self.desk.clone(),
            environment: self.environment.clone(),
            state: self.locations.state().to_owned(),
            inbox: self.inbox.clone(),
            time: time.clone(),
            settings: settings.subscribe(),
            done,
            switchboard: self.switchboard.clone(),
            opener: Arc::clone(&self.opener),
        };
        let home = self
            .environment
            .variable("HOME")
            .map(|home| home.to_string_lossy().into_owned());
        self.work(config, &settings, &surroundings, &mut finished, home.as_deref())
            .await
    }

    async fn work(
        &self,
        mut config: WatchedConfig,
        settings: &watch::Sender<Arc<ChannelSettings>>,
        surroundings: &Surroundings,
        finished: &mut mpsc::UnboundedReceiver<Done>,
        home: Option<&str>,
    ) -> Result<(), Refusal> {
        let mut lines: BTreeMap<ChannelName, Line> = BTreeMap::new();
        let mut revisions = self.desk.revisions().await?;
        let mut books = Books::new(self.desk.open_deliveries().await?);
        loop {
            revisions.borrow_and_update();
            config = self
                .settle(config, settings, surroundings, &mut lines, &mut books)
                .await;
            let mut again = LOOK;
            if lines.is_empty() {
                // Nothing is to be sent: what waits is read when there is a channel.
                books.revision = None;
            } else {
                match books.look(&self.desk).await {
                    Ok(()) => {
                        let moment = surroundings.time.moment(now());
                        let current = Arc::clone(&settings.borrow());
                        let made = plan(&Known {
                            cards: &books.cards,
                            deliveries: &books.deliveries,
                            under_way: &books.under_way,
                            pauses: &books.pauses,
                            instant: Instant::now(),
                            settings: &current,
                            home,
                            moment,
                        });
                        again = self.carry_out(made, &mut books, &lines).await.min(LOOK);
                    }
                    Err(refusal) => {
                        tracing::warn!(
                            "what waits cannot be read: {}",
                            crate::report::render_hinted(&refusal)
                        );
                        again = SOON;
                    }
                }
            }
            tokio::select! {
                changed = revisions.changed() => if changed.is_err() { break },
                Some(done) = finished.recv() => books.enter(done),
                () = tokio::time::sleep(again) => {}
                () = self.ending.cancelled() => break,
            }
            while let Ok(done) = finished.try_recv() {
                books.enter(done);
            }
        }
        let ends = lines.into_values().map(|line| tokio::spawn(line.end()));
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
        Ok(())
    }

    /// Opens and closes channels as the user's file says now; one whose own settings changed is opened anew.
    async fn settle(
        &self,
        mut config: WatchedConfig,
        settings: &watch::Sender<Arc<ChannelSettings>>,
        surroundings: &Surroundings,
        lines: &mut BTreeMap<ChannelName, Line>,
        books: &mut Books,
    ) -> WatchedConfig {
        let files = config.files().clone();
        let read = tokio::task::spawn_blocking(move || {
            let current = config.current();
            (config, current)
        });
        let (config, current) = match read.await {
            Ok(read) => read,
            Err(_panicked) => return WatchedConfig::new(files),
        };
        // While the file cannot be read, what it said last counts: a slip of the pen ends no channel.
        let Ok(current) = current else { return config };
        let wanted = &current.channels;
        if **settings.borrow() == *wanted && lines.len() == wanted.configured().count() {
            return config;
        }
        settings.send_replace(Arc::new(wanted.clone()));
        let changed: Vec<ChannelName> = lines
            .iter()
            .filter(|(name, line)| !line.is_of(&wanted.without_people(**name)))
            .map(|(name, _)| *name)
            .collect();
        for name in changed {
            if let Some(line) = lines.remove(&name) {
                line.end().await;
                if let Err(refusal) = books.reopen(name, &self.desk).await {
                    let why = crate::report::render_hinted(&refusal);
                    tracing::warn!("what was sent by `{name}` cannot be read: {why}");
                }
            }
        }
        for name in wanted.configured() {
            lines
                .entry(name)
                .or_insert_with(|| Line::start(name, wanted.without_people(name), surroundings));
        }
        config
    }

    /// Hands steps to the outboxes; returns after how long to look again.
    async fn carry_out(
        &self,
        plan: Plan,
        books: &mut Books,
        lines: &BTreeMap<ChannelName, Line>,
    ) -> Duration {
        let mut again = plan.again.unwrap_or(LOOK);
        for step in plan.steps {
            let order = match step {
                Step::Send(key) => {
                    let queued = books.deliveries.get(&key).cloned();
                    Order::Send(key, queued)
                }
                Step::Update(key) => match books.deliveries.get(&key) {
                    Some(delivery) => Order::Update(delivery.clone(), books.pauses.failures(&key)),
                    None => continue,
                },
                Step::Fail(key, reason) => {
                    self.write(books, key, DeliveryState::Failed, Some(&reason)).await;
                    continue;
                }
                Step::Close(key) => {
                    self.write(books, key, DeliveryState::Closed, None).await;
                    continue;
                }
            };
            let key = order.key().clone();
            // A channel that is not open leaves its deliveries as they are.
            let Some(line) = lines.get(&key.channel) else {
                continue;
            };
            if line.order(order) {
                books.under_way.insert(key);
            } else {
                again = again.min(SOON);
            }
        }
        again
    }

    /// Records how a delivery ends that no outbox has.
    async fn write(&self, books: &mut Books, key: DeliveryKey, state: DeliveryState, reason: Option<&str>) {
        let known = books.deliveries.remove(&key);
        let mut delivery = known.unwrap_or_else(|| Delivery {
            key,
            state,
            attempts: 0,
            error: None,
            nonce: super::press::Nonce::fresh().as_str().to_owned(),
            message: None,
            revision: 0,
            standing: ShownStanding::Open,
        });
        delivery.state = state;
        if let Some(reason) = reason {
            delivery.error = Some(kept_error(reason));
        }
        if let Err(refusal) = self.desk.record_delivery(delivery.clone()).await {
            tracing::warn!(
                "a delivery cannot be recorded: {}",
                crate::report::render_hinted(&refusal)
            );
        }
        books.keep(delivery);
    }
}

#[cfg(test)]
mod tests;
