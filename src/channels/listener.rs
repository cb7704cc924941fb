//! What is heard on one channel: who said it, about which ask, and what came of it.
//!
//! First it is decided, then the person is told; every message of the ask is edited by the office when its card changes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::channel::{About, Channel, ChannelError, Heard, OutcomeNotice, Sender, SenderKind, Utterance};
use super::connection::Connection;
use super::local_time::LocalTime;
use super::press::Press;
use super::{backoff, interpretation, outcome, pairing_codes};
use crate::card::{Card, CardState};
use crate::config::{ChannelBasics, ChannelName, ChannelSettings};
use crate::proxy::{Delivery, DeliveryState, Desk, Provenance, Refusal, Road, WorkflowId, now};

/// After how long without an error a channel counts as connected: what waits for words says nothing until there are some.
const CALM: Duration = Duration::from_secs(2);

/// How long is waited where another program holds the token, or the service refuses: neither changes by itself soon.
const LONG_PAUSE: Duration = Duration::from_secs(30);

/// How often a stranger is answered.
const STRANGER_EVERY: Duration = Duration::from_secs(30);

/// How many strangers are remembered for that.
const STRANGERS: usize = 100;

/// The hearing of a channel.
pub(super) struct Listener {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) desk: Desk,
    pub(super) settings: watch::Receiver<Arc<ChannelSettings>>,
    pub(super) time: LocalTime,
    pub(super) connection: Arc<Connection>,
    /// The state directory, where strangers wait.
    pub(super) state: PathBuf,
    pub(super) ending: CancellationToken,
}

impl Listener {
    /// Hears until the end.
    pub(super) async fn run(self) {
        let (mut failures, mut strangers) = (0, Strangers::default());
        while let Some(heard) = self.next().await {
            match heard {
                Ok(heard) => {
                    failures = 0;
                    self.connection.connected().await;
                    let reply_to = heard.reply_to.clone();
                    if let Some(text) = self.answer(heard, &mut strangers).await
                        && let Err(error) = self.channel.reply(&reply_to, &text).await
                    {
                        tracing::debug!(channel = %self.channel.name(), "a reply was not sent: {error}");
                    }
                }
                Err(error) => {
                    failures += 1;
                    self.connection.failed(&error, failures).await;
                    tokio::select! {
                        () = tokio::time::sleep(pause(&error, failures)) => {}
                        () = self.ending.cancelled() => return,
                    }
                }
            }
        }
    }

    /// Waits for what is said next; `None` at the end.
    async fn next(&self) -> Option<Result<Heard, ChannelError>> {
        let mut heard = self.channel.heard();
        tokio::select! {
            heard = &mut heard => return Some(heard),
            () = self.ending.cancelled() => return None,
            () = tokio::time::sleep(CALM) => {}
        }
        self.connection.connected().await;
        tokio::select! {
            heard = heard => Some(heard),
            () = self.ending.cancelled() => None,
        }
    }

    /// Does what was said, and returns what the sender is told.
    async fn answer(&self, heard: Heard, strangers: &mut Strangers) -> Option<String> {
        if heard.sender.kind == SenderKind::Other {
            return None;
        }
        let channel = self.channel.name();
        let basics = self.settings.borrow().basics(channel).cloned()?;
        if !basics.people.contains(&heard.sender.id) {
            return self.greet(channel, &heard.sender, strangers).await;
        }
        if heard.utterance == Utterance::Greeting {
            return Some(interpretation::Misreading::Greeting.to_string());
        }
        match self.find(&heard).await {
            Ok((card, utterance)) => self.say(card, &basics, &heard.sender, &utterance).await,
            Err(reason) => Some(reason),
        }
    }

    /// Records what a person said to an ask, and returns what they are told of it here.
    async fn say(
        &self,
        card: Card,
        basics: &ChannelBasics,
        sender: &Sender,
        utterance: &Utterance,
    ) -> Option<String> {
        if let Some(line) = self.over(&card) {
            return Some(line);
        }
        let said = match interpretation::read(&card, basics, utterance) {
            Ok(said) => said,
            Err(misread) => return Some(misread.to_string()),
        };
        let who = format!("{}:{}", self.channel.name(), sender.recorded);
        match self
            .desk
            .say(card.id, said, Provenance::of(Road::Chat, &who))
            .await
        {
            Ok(card) if self.is_told_by_outbox(card.id, sender).await => None,
            Ok(card) => self.over(&card),
            Err(refusal) => Some(self.refused(card.id, &refusal).await),
        }
    }

    /// Tells whether a message of the outbox will say the same to the same person: twice would be once too often.
    async fn is_told_by_outbox(&self, id: WorkflowId, sender: &Sender) -> bool {
        if self.channel.outcome_notice() == OutcomeNotice::EditedMessage {
            return false;
        }
        let told = |delivery: &Delivery| {
            delivery.key.workflow == id
                && matches!(delivery.state, DeliveryState::Sent | DeliveryState::Closed)
        };
        let sent = self.sent_to(sender).await;
        sent.is_ok_and(|sent| sent.iter().any(told))
    }

    /// Says why something was not recorded: what stands now counts more than the reason.
    async fn refused(&self, id: WorkflowId, refusal: &Refusal) -> String {
        let now = self.card(id).await.and_then(|card| self.over(&card));
        now.unwrap_or_else(|| crate::report::render(refusal, None))
    }

    /// Says what became of an ask that is over; `None` while it waits.
    fn over(&self, card: &Card) -> Option<String> {
        outcome::line(card, &|at| self.time.time(at))
    }

    async fn card(&self, id: WorkflowId) -> Option<Card> {
        let workflow = self.desk.find(id).await.ok()?;
        Some(self.desk.card(&workflow))
    }

    /// Finds the ask that something was said about, with what was said to it; an error is told.
    async fn find(&self, heard: &Heard) -> Result<(Card, Utterance), String> {
        let utterance = heard.utterance.clone();
        match &heard.about {
            About::Press(press) => Ok((self.pressed(press, &heard.sender).await?, utterance)),
            About::Message(message) => {
                let sent = self.sent_to(&heard.sender).await?;
                let meant = sent.iter().find(|sent| sent.message.as_ref() == Some(&message.0));
                let meant =
                    meant.ok_or_else(|| "that message is none of an ask that pml still knows".to_owned())?;
                let card = self.card(meant.key.workflow).await;
                Ok((card.ok_or_else(forgotten)?, utterance))
            }
            About::Code(code) => {
                let waiting = self.waiting(&heard.sender).await?;
                let meant = waiting
                    .into_iter()
                    .find(|card| card.code.as_str() == code.as_str());
                let card = meant.ok_or_else(|| "no ask that waits for you here has that code".to_owned())?;
                Ok((card, utterance))
            }
            About::Nothing => only(self.waiting(&heard.sender).await?, utterance),
        }
    }

    /// Finds the ask whose button was pressed, if it was sent to the one who pressed it.
    async fn pressed(&self, press: &Press, sender: &Sender) -> Result<Card, String> {
        let found = self
            .desk
            .pressed_delivery(self.channel.name(), press.nonce.as_str())
            .await;
        let delivery = found.map_err(|refusal| told(&refusal))?.ok_or_else(forgotten)?;
        if delivery.key.person != sender.id {
            return Err("this was sent to another person, and nothing was changed".to_owned());
        }
        let card = self.card(delivery.key.workflow).await.ok_or_else(forgotten)?;
        // What was made up, or belongs to another database, names another ask or a revision that is still to come.
        if card.code.as_str() != press.code || press.rev > card.rev {
            return Err(forgotten());
        }
        Ok(card)
    }

    async fn sent_to(&self, sender: &Sender) -> Result<Vec<Delivery>, String> {
        let sent = self.desk.deliveries_to(self.channel.name(), &sender.id).await;
        sent.map_err(|refusal| told(&refusal))
    }

    /// Lists what waits for a person here.
    async fn waiting(&self, sender: &Sender) -> Result<Vec<Card>, String> {
        let sent = self.sent_to(sender).await?;
        let pending = self.desk.pending().await.map_err(|refusal| told(&refusal))?;
        let waiting = pending
            .iter()
            .filter(|ask| sent.iter().any(|sent| sent.key.workflow == ask.id));
        let cards = waiting.map(|ask| self.desk.card(ask));
        Ok(cards.filter(|card| card.state == CardState::Pending).collect())
    }

    /// Tells a stranger how they could be let in, now and then.
    async fn greet(
        &self,
        channel: ChannelName,
        sender: &Sender,
        strangers: &mut Strangers,
    ) -> Option<String> {
        if !strangers.may_be_told(&sender.id, Instant::now()) {
            return None;
        }
        let (state, id) = (self.state.clone(), sender.id.clone());
        let offered =
            tokio::task::spawn_blocking(move || pairing_codes::offer(&state, channel, &id, now())).await;
        let unknown = "this pml does not know you, and nothing was changed";
        Some(match offered {
            Ok(Ok(Some(code))) => {
                format!("{unknown}; to be let in, its owner runs: pml channels pair {code}")
            }
            Ok(Ok(None) | Err(_)) | Err(_) => unknown.to_owned(),
        })
    }
}

fn forgotten() -> String {
    "pml does not know this ask any more".to_owned()
}

fn told(refusal: &Refusal) -> String {
    crate::report::render(refusal, None)
}

/// Picks the ask that is meant where none is named: the one whose code the words begin with, or the only one.
fn only(mut waiting: Vec<Card>, utterance: Utterance) -> Result<(Card, Utterance), String> {
    if let Utterance::Text(text) = &utterance {
        let (word, rest) = text
            .trim_start()
            .split_once(char::is_whitespace)
            .unwrap_or((text.trim(), ""));
        let word = word.trim_end_matches([':', ',', '·']).to_ascii_lowercase();
        if let Some(at) = waiting.iter().position(|card| card.code.as_str() == word) {
            return Ok((waiting.swap_remove(at), Utterance::Text(rest.trim().to_owned())));
        }
    }
    match (waiting.pop(), waiting.as_slice()) {
        (None, _) => Err("nothing waits for you here".to_owned()),
        (Some(card), []) => Ok((card, utterance)),
        (Some(last), others) => {
            let codes = others
                .iter()
                .chain([&last])
                .map(|card| card.code.as_str().to_owned());
            let codes = codes.collect::<Vec<_>>().join(", ");
            Err(format!(
                "several asks wait: reply to the message of one, or begin with its code ({codes})"
            ))
        }
    }
}

/// Returns how long to wait after a failure.
fn pause(error: &ChannelError, failures: u32) -> Duration {
    let usual = backoff::wait(failures, backoff::chance());
    match error {
        ChannelError::Unreachable { .. } | ChannelError::Silent { .. } | ChannelError::Unreadable { .. } => {
            usual
        }
        ChannelError::TooFast { after, .. } => backoff::wanted(*after),
        ChannelError::Refused { .. } | ChannelError::Contested { .. } => LONG_PAUSE + usual,
    }
}

/// When strangers were told something last: a flood of them is answered slowly.
#[derive(Debug, Default)]
struct Strangers(HashMap<String, Instant>);

impl Strangers {
    fn may_be_told(&mut self, id: &str, now: Instant) -> bool {
        self.0
            .retain(|_, told| now.duration_since(*told) < STRANGER_EVERY);
        if self.0.contains_key(id) || self.0.len() >= STRANGERS {
            return false;
        }
        self.0.insert(id.to_owned(), now);
        true
    }
}
