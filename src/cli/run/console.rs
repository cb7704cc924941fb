//! The person at a run: what they see of it, and what becomes of what they type and of the signals of their keys.
//!
//! While something is asked, a line answers it; otherwise it is guidance for the agent. `> ` before a line makes it
//! guidance in any case.

mod words;

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::ask_text;
use super::asks::{Addressee, OpenAsks, ShownAsk};
use super::editor::Keyed;
use super::signals::{Heard, Signals};
use super::status::Status;
use super::stream::{Output, Stream};
use super::surface::{Attendance, Haste, Surface};
use super::typing::Typing;
use crate::card::CardState;
use crate::config::Environment;
use crate::host::{
    AgentLine, AskOutcome, Beginning, Control, Hosting, Image, Input, Message, OwnLine, Resumption, RunLine,
    RunLineReceiver, RunRecord,
};
use crate::proxy::{Desk, WorkflowId};

/// A second interrupt within this time ends the run instead of what the agent does.
const TWICE: Duration = Duration::from_secs(2);

/// How this process stands to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It drives the run.
    Driver,
    /// It watches a run of another process, and may go without ending it.
    Watcher,
}

/// The person at a run.
pub(super) struct Console {
    desk: Desk,
    role: Role,
    surface: Surface,
    typing: Typing,
    signals: Signals,
    stream: Stream,
    status: Status,
    asks: OpenAsks,
    /// What the line is for that is being typed.
    addressee: Addressee,
    /// Pictures that go with the next line.
    pictures: Vec<Image>,
    /// What was said while there was no agent.
    held: Vec<Message>,
    /// Whether the person may say more to the agent; they can answer in any case.
    input: Input,
    interrupted: Option<Instant>,
    /// Whether this process was told to end, or is not read any more.
    leaving: bool,
}

impl Console {
    /// Begins to show a run, and to listen.
    pub(super) fn begin(
        desk: &Desk,
        attended: Attendance,
        role: Role,
        environment: &Environment,
    ) -> std::io::Result<Self> {
        let signals = Signals::listen()?;
        let surface = Surface::begin(attended, environment);
        let typing = Typing::begin(surface.keyboard());
        Ok(Self {
            desk: desk.clone(),
            role,
            surface,
            typing,
            signals,
            stream: Stream::default(),
            status: Status::default(),
            asks: OpenAsks::new(),
            addressee: Addressee::Agent,
            pictures: Vec::new(),
            held: Vec::new(),
            input: Input::Open,
            interrupted: None,
            leaving: false,
        })
    }

    /// Tells whether this process is to end, so that nothing is waited for any more.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Returns whether the person may say more to an agent that is started now, where it was begun with `input`.
    pub(super) fn input(&self, begun: Input) -> Input {
        match (begun, self.input) {
            (Input::Open, Input::Open) => Input::Open,
            (Input::Ended, _) | (_, Input::Ended) => Input::Ended,
        }
    }

    /// Says something about the run.
    pub(super) fn note(&mut self, text: &str) {
        self.surface.note(text);
    }

    /// Says something about the run that a person expects.
    pub(super) fn line(&mut self, text: &str) {
        self.surface.line(text);
    }

    /// Shows a run and passes on what its person says, until it is over.
    pub(super) async fn attend(&mut self, controls: mpsc::Sender<Control>, mut lines: RunLineReceiver) {
        let mut is_read = true;
        loop {
            self.draw().await;
            let room = self.surface.has_room() || self.leaving;
            let settled = settled(self.asks.settles_at(Instant::now()));
            tokio::select! {
                () = settled => {}
                line = lines.recv(), if room => match line {
                    Some(line) => {
                        self.show(&line).await;
                        self.release(&line, &controls).await;
                    }
                    None => return,
                },
                () = self.surface.room(), if !room => {}
                () = self.surface.broken(), if is_read => {
                    // Nobody would see what the agent does: it is left so that it can be gone on with.
                    is_read = false;
                    self.leave(&controls).await;
                }
                keyed = self.typing.next() => self.typed(keyed, Some(&controls)).await,
                heard = self.signals.next() => match heard {
                    Heard::Interrupt => self.interrupt(&controls).await,
                    Heard::End => self.leave(&controls).await,
                    Heard::Redraw => self.redraw(),
                },
            }
        }
    }

    /// Lets a run rest that was resumed in vain; tells whether it is to go on then.
    pub(super) async fn rest(&mut self, rest: Duration) -> bool {
        let until = tokio::time::sleep(rest);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return true,
                heard = self.signals.next() => match heard {
                    Heard::Interrupt => return false,
                    Heard::End => {
                        self.leaving = true;
                        return false;
                    }
                    Heard::Redraw => self.redraw(),
                },
            }
        }
    }

    /// Waits until an answer resumes a run, which may be typed here; `None` where the person leaves.
    pub(super) async fn wait_for_answer(
        &mut self,
        hosting: &Hosting,
        record: &RunRecord,
    ) -> anyhow::Result<Option<Beginning>> {
        let mut revisions = self.desk.revisions().await?;
        self.asks.clear(Instant::now());
        for ask in &record.asks {
            self.asks.push(ask.workflow);
        }
        self.note("the agent is put aside; type your answer, or leave with Ctrl-C and answer later");
        loop {
            revisions.borrow_and_update();
            match hosting.resumption(&self.desk, record).await {
                Resumption::Goes(beginning) => {
                    self.asks.clear(Instant::now());
                    return Ok(Some(beginning));
                }
                Resumption::Not | Resumption::Expired | Resumption::InVain => return Ok(None),
                Resumption::Waits => {}
            }
            self.draw().await;
            let settled = settled(self.asks.settles_at(Instant::now()));
            tokio::select! {
                () = settled => {}
                changed = revisions.changed() => changed?,
                keyed = self.typing.next() => {
                    let ends = keyed.contains(&Keyed::End);
                    self.typed(keyed, None).await;
                    if ends {
                        return Ok(None);
                    }
                }
                () = self.surface.broken() => return Ok(None),
                heard = self.signals.next() => match heard {
                    Heard::Interrupt => return Ok(None),
                    Heard::End => {
                        self.leaving = true;
                        return Ok(None);
                    }
                    Heard::Redraw => self.redraw(),
                },
            }
        }
    }

    /// Gives the terminal back, once everything is written or a signal says that nobody waits for it.
    pub(super) async fn end(mut self) {
        let haste = if self.leaving { Haste::Leaving } else { Haste::None };
        for message in std::mem::take(&mut self.held) {
            self.surface.note(&format!(
                "this was not sent: {}",
                crate::protocol::Shown::line(&message.text)
            ));
        }
        self.typing.end();
        let Self { surface, signals, .. } = &mut self;
        tokio::select! {
            () = surface.end(haste) => {}
            () = async { while signals.next().await == Heard::Redraw {} } => {}
        }
    }

    async fn leave(&mut self, controls: &mpsc::Sender<Control>) {
        self.leaving = true;
        let _ = controls.send(Control::HostEnds).await;
    }

    async fn interrupt(&mut self, controls: &mpsc::Sender<Control>) {
        let again = self.interrupted.is_some_and(|before| before.elapsed() < TWICE);
        self.interrupted = Some(Instant::now());
        let control = match (self.surface.attended(), self.role) {
            (Attendance::Terminal, _) if !again => {
                self.note("interrupted; once more ends the run");
                Control::Interrupt
            }
            // Where nobody can type, the watcher is what is broken off.
            (Attendance::Plain | Attendance::Json, Role::Watcher) => Control::HostEnds,
            _ => Control::Stop,
        };
        let _ = controls.send(control).await;
    }

    fn redraw(&mut self) {
        self.typing.resume();
        self.surface.redraw();
    }

    /// Shows the next ask if none is shown, and draws the last rows.
    async fn draw(&mut self) {
        while let Some(id) = self.asks.next() {
            let found = self.desk.find(id).await.map(|workflow| self.desk.card(&workflow));
            match found {
                Ok(card) if card.state == CardState::Pending => {
                    for line in ask_text::draw(&card) {
                        self.surface.line(&line);
                    }
                    let more = match self.surface.attended() {
                        Attendance::Terminal => ask_text::draw_choices(&card),
                        Attendance::Plain | Attendance::Json => ask_text::draw_ways(&card),
                    };
                    for line in more {
                        self.surface.line(&line);
                    }
                    self.asks.show(card, Instant::now());
                }
                Ok(_) | Err(_) => drop(self.asks.remove(id, Instant::now())),
            }
        }
        let (code, more) = self.asks.told();
        // What the line is for that is typed, or that would be begun at this moment.
        let addressee = match self.typing.line() {
            "" => self.asks.addressee_at(Instant::now()),
            _ => self.addressee.clone(),
        };
        let prompt = match addressee {
            Addressee::Ask { code, .. } => format!("answer {code}> "),
            Addressee::Agent => "> ".to_owned(),
        };
        let status = &self.status;
        self.surface.show(
            |columns| status.row(code, more, columns),
            prompt,
            self.typing.line(),
        );
    }

    async fn show(&mut self, line: &RunLine) {
        if self.surface.attended() == Attendance::Json {
            // What comes while nobody reads is lost with its reader.
            if self.surface.has_room() {
                self.surface.json(match line {
                    RunLine::Agent { raw, .. } => raw.clone(),
                    RunLine::Own(line) => line.json(),
                });
            }
            return;
        }
        self.status.hear(line);
        for output in self.stream.read(line, Instant::now()) {
            match output {
                Output::Said(text) => self.surface.say(&text),
                Output::Line(text) => self.surface.line(&text),
                Output::Change(text) => self.surface.change(&text),
            }
        }
        match line {
            RunLine::Own(OwnLine::Ask { id, .. }) => self.asks.push(*id),
            RunLine::Own(OwnLine::Answered { id, outcome }) => {
                let shown = self.asks.remove(*id, Instant::now());
                self.tell_answer(*id, *outcome, shown.as_ref()).await;
            }
            _ => {}
        }
    }

    async fn tell_answer(&mut self, id: WorkflowId, outcome: AskOutcome, shown: Option<&ShownAsk>) {
        let Ok(workflow) = self.desk.find(id).await else {
            return;
        };
        let card = self.desk.card(&workflow);
        match (card.answered, outcome) {
            (Some(answer), _) => {
                let by = answer.who.unwrap_or(answer.road);
                // One that was answered before it was drawn is told with what was asked.
                let asked = shown.map_or_else(|| format!("{} ", card.title), |_| String::new());
                self.surface.line(&format!("= {asked}{} · {by}", answer.text));
            }
            (None, AskOutcome::Withdrawn) => {
                self.surface.line(&format!(
                    "= {}: the agent does not wait for it any more",
                    card.code
                ));
            }
            (None, AskOutcome::Delivered) => {}
        }
    }

    /// Sends what was said while there was no agent, once there is one that works.
    async fn release(&mut self, line: &RunLine, controls: &mpsc::Sender<Control>) {
        let works = |meaning: &AgentLine| {
            matches!(
                meaning,
                AgentLine::TextDelta(_)
                    | AgentLine::Assistant { .. }
                    | AgentLine::ToolResults(_)
                    | AgentLine::Result(_)
            )
        };
        if let RunLine::Agent { meaning, .. } = line
            && works(meaning)
        {
            for message in std::mem::take(&mut self.held) {
                let _ = controls.send(Control::Message(message)).await;
            }
        }
    }
}

/// Waits until a moment, or for ever where there is none.
async fn settled(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
