//! The edge of the screen: reads keys and changes, draws, and does what the update wants done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event};
use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::keys;
use super::messages::{Effect, Message};
use super::session::{Session, ring};
use super::state::Screen;
use super::theme::Palette;
use super::update::update;
use super::view::draw;
use crate::card::Card;
use crate::proxy::{ChangedCards, Desk, Refusal, moment};
use crate::report;
use crate::workflow::{Provenance, WorkflowId};

/// How long the thread that reads keys may outlive the screen.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// How often everything is read again: that an agent is gone changes nothing in the store, but what an answer reaches.
const REREAD: Duration = Duration::from_secs(5);

/// Says why the screen ended.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// The terminal cannot be read or drawn on.
    #[error("cannot use this terminal")]
    Terminal(#[from] std::io::Error),
    /// The person left while their last answer was on its way, and it does not count.
    #[error("the last answer is not recorded: {0}")]
    NotRecorded(String),
    /// The asks cannot be read.
    #[error(transparent)]
    Desk(#[from] Refusal),
}

/// Shows the asks of the desk and records what the person says, until they leave.
pub async fn run(desk: &Desk, by: &Provenance, palette: Palette) -> Result<(), ScreenError> {
    // Read before the terminal is taken over: what is wrong with the store is told in plain text.
    let mut revisions = desk.revisions().await?;
    let _surface = desk.open_surface().await;
    let snapshot = desk.snapshot().await?;
    let mut revision = snapshot.revision;
    let mut ends = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    let mut session = Session::begin()?;
    let size = session.terminal.size()?;
    let mut screen = Screen::new(size, palette, moment());
    let mut keys = Keys::read();
    let mut saying = Saying::new();
    let mut reread = tokio::time::interval(REREAD);
    reread.reset();
    let mut message = Message::Snapshot {
        pending: snapshot.pending,
        recent: snapshot.recent,
    };
    loop {
        for effect in update(&mut screen, message, moment()) {
            match effect {
                Effect::Quit => return said(saying).await,
                Effect::Ring { title } => ring(&title)?,
                Effect::Say { id, said } => {
                    let (desk, by) = (desk.clone(), by.clone());
                    saying.spawn(async move {
                        let outcome = desk.say(id, said, by).await;
                        (id, outcome.map(Box::new).map_err(|error| words(&error)))
                    });
                }
            }
        }
        session.terminal.draw(|frame| draw(&screen, frame))?;
        let [interrupt, terminate, hangup] = &mut ends;
        message = tokio::select! {
            _ = interrupt.recv() => return said(saying).await,
            _ = terminate.recv() => return said(saying).await,
            _ = hangup.recv() => return said(saying).await,
            event = keys.events.recv() => match event {
                Some(event) => match translate(&screen, event?) {
                    Some(message) => message,
                    None => Message::Tick,
                },
                None => return said(saying).await,
            },
            Some(said) = saying.join_next() => match said {
                Ok((id, outcome)) => Message::Recorded { id, outcome },
                Err(error) => Message::Trouble(error.to_string()),
            },
            Ok(()) = revisions.changed() => {
                revisions.borrow_and_update();
                changes(desk, &mut revision).await
            }
            _ = reread.tick() => anew(desk, &mut revision).await,
            () = tokio::time::sleep_until(screen.wakes_at().into()) => Message::Tick,
        };
    }
}

/// An answer, recorded or not.
type Saying = JoinSet<(WorkflowId, Result<Box<Card>, String>)>;

/// Waits for the answers that are on their way: a person who leaves has said them.
async fn said(mut saying: Saying) -> Result<(), ScreenError> {
    while let Some(said) = saying.join_next().await {
        match said {
            Ok((_, Ok(_))) => {}
            Ok((_, Err(reason))) => return Err(ScreenError::NotRecorded(reason)),
            Err(error) => return Err(ScreenError::NotRecorded(error.to_string())),
        }
    }
    Ok(())
}

/// Reads what changed, or everything where that cannot be told.
async fn changes(desk: &Desk, revision: &mut u64) -> Message {
    match desk.changed_since(*revision).await {
        Ok(ChangedCards::These { latest, cards }) => {
            *revision = latest;
            Message::Changed(cards)
        }
        Ok(ChangedCards::ReadAnew) => anew(desk, revision).await,
        Err(error) => unread(&error),
    }
}

/// Reads everything.
async fn anew(desk: &Desk, revision: &mut u64) -> Message {
    match desk.snapshot().await {
        Ok(snapshot) => {
            *revision = snapshot.revision;
            Message::Snapshot {
                pending: snapshot.pending,
                recent: snapshot.recent,
            }
        }
        Err(error) => unread(&error),
    }
}

fn unread(error: &Refusal) -> Message {
    Message::Trouble(format!("The asks cannot be read: {error}"))
}

fn translate(screen: &Screen, event: Event) -> Option<Message> {
    match event {
        Event::Key(key) => keys::command(screen.mode(), key).map(Message::Command),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Resize(width, height) => Some(Message::Resized(Size::new(width, height))),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

/// Says why an answer was not recorded, in the words for a person.
fn words(error: &Refusal) -> String {
    match error {
        Refusal::Workflow(error) => report::render(error, None),
        Refusal::Unfit { complaint, .. } => complaint.to_string(),
        error => report::render(error, None),
    }
}

/// The keys that a person presses, read by a thread of their own: reading blocks.
struct Keys {
    events: mpsc::UnboundedReceiver<std::io::Result<Event>>,
    ended: Arc<AtomicBool>,
}

impl Keys {
    fn read() -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        // It is not waited for: where the terminal goes away while it reads, it may never return, and it ends with pml.
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) && !has_hung_up() {
                let read = match event::poll(KEY_WAIT) {
                    Ok(true) => event::read(),
                    Ok(false) => continue,
                    Err(error) => Err(error),
                };
                let failed = read.is_err();
                if sender.send(read).is_err() || failed {
                    return;
                }
            }
        });
        Self { events, ended }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Tells whether the terminal is gone: reading on would find its end again and again.
fn has_hung_up() -> bool {
    let stdin = std::io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
    match rustix::event::poll(&mut terminal, Some(&Timespec::default())) {
        Ok(_) => terminal[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        Err(_) => false,
    }
}
