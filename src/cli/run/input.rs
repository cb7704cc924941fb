//! The person at the terminal of a run: what they see, and what the lines that they type mean.
//!
//! While something is asked, a line answers it; otherwise it is guidance for the agent. `> ` before a line makes it
//! guidance in any case.

use std::collections::VecDeque;
use std::io::Write as _;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::stream::{Output, Stream};
use super::{Attendance, message};
use crate::card::{Card, CardState, Decision, Said, SaidAnswer};
use crate::cli::{output, person};
use crate::host::{AgentLine, Beginning, Control, Hosting, OwnLine, Resumption, RunLine, RunRecord};
use crate::protocol::Shown;
use crate::proxy::{Desk, WorkflowId, now};
use crate::report;

/// A second interrupt within this time ends the run instead of what the agent does.
const TWICE: Duration = Duration::from_secs(2);

/// The lines that a person types, read by a thread of their own: a terminal cannot be waited for otherwise.
pub(super) struct TypedLines(Option<mpsc::Receiver<String>>);

impl TypedLines {
    /// Begins to read where a person can type.
    pub(super) fn new(attended: Attendance) -> Self {
        if attended != Attendance::Terminal {
            return Self(None);
        }
        let (sender, lines) = mpsc::channel(16);
        std::thread::spawn(move || {
            let mut line = String::new();
            while std::io::stdin().read_line(&mut line).is_ok_and(|read| read > 0) {
                if sender.blocking_send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self(Some(lines))
    }

    /// Returns the next line; `None` at the end of the input, and nothing at all where nobody types.
    async fn next(&mut self) -> Option<String> {
        match &mut self.0 {
            Some(lines) => lines.recv().await,
            None => std::future::pending().await,
        }
    }
}

/// The asks of a run that are shown here, and what was said to the questions of the first one.
#[derive(Default)]
struct OpenAsks {
    waiting: VecDeque<WorkflowId>,
    said: Vec<SaidAnswer>,
}

/// Why a run is not shown any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attended {
    /// Its agent is gone.
    ToTheEnd,
    /// This process was told to end meanwhile, or a person ended the run.
    HostEnds,
}

/// Shows a run and passes on what its person says, until it is over.
pub(super) async fn attend(
    desk: &Desk,
    typed: &mut TypedLines,
    controls: mpsc::Sender<Control>,
    mut lines: mpsc::Receiver<RunLine>,
    attended: Attendance,
) -> anyhow::Result<Attended> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut ended = Attended::ToTheEnd;
    let mut interrupted: Option<Instant> = None;
    let mut stream = Stream::default();
    let mut asks = OpenAsks::default();
    let mut open_input = true;
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => show(desk, &mut stream, &mut asks, &line, attended).await?,
                None => return Ok(ended),
            },
            line = typed.next(), if open_input => if let Some(line) = line {
                say(desk, &controls, &mut asks, &line).await;
            } else {
                open_input = false;
                let _ = controls.send(Control::EndOfInput).await;
            },
            _ = interrupt.recv() => {
                let again = interrupted.is_some_and(|before| before.elapsed() < TWICE);
                interrupted = Some(Instant::now());
                let control = if again || attended != Attendance::Terminal {
                    ended = Attended::HostEnds;
                    Control::Stop
                } else {
                    output::note("interrupted; once more ends the run");
                    Control::Interrupt
                };
                let _ = controls.send(control).await;
            }
            _ = terminate.recv() => {
                ended = Attended::HostEnds;
                let _ = controls.send(Control::HostEnds).await;
            }
        }
    }
}

async fn show(
    desk: &Desk,
    stream: &mut Stream,
    asks: &mut OpenAsks,
    line: &RunLine,
    attended: Attendance,
) -> anyhow::Result<()> {
    if attended == Attendance::Json {
        let text = match line {
            RunLine::Agent { raw, .. } => raw.clone(),
            RunLine::Own(line) => line.json(),
        };
        output::data(&text)?;
        return Ok(());
    }
    for output in stream.read(line, Instant::now()) {
        match output {
            Output::Said(text) => {
                let mut out = anstream::stdout();
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            Output::Line(text) => output::say(&text),
        }
    }
    match line {
        RunLine::Own(OwnLine::Ask { id, .. }) => {
            asks.waiting.push_back(*id);
            tell(desk, *id, attended).await;
        }
        RunLine::Own(OwnLine::Answered { id, .. }) => {
            if asks.waiting.front() == Some(id) {
                asks.said.clear();
            }
            asks.waiting.retain(|waiting| waiting != id);
            if let Ok(workflow) = desk.find(*id).await
                && let Some(answer) = desk.card(&workflow).answered
            {
                let by = answer.who.unwrap_or_else(|| answer.road.clone());
                output::say(&format!("= {} · {by}", answer.text));
            }
        }
        RunLine::Agent { meaning, .. } => {
            if let AgentLine::Result(result) = &**meaning
                && let Some(cost) = result.cost
            {
                let more = match attended {
                    Attendance::Terminal => " · type what comes next, or Ctrl-D to end",
                    Attendance::Plain | Attendance::Json => "",
                };
                output::note(&format!("turn over · ${cost:.4}{more}"));
            }
        }
        RunLine::Own(_) => {}
    }
    Ok(())
}

/// Shows an ask, and how it is answered here.
async fn tell(desk: &Desk, id: WorkflowId, attended: Attendance) {
    let Ok(workflow) = desk.find(id).await else { return };
    output::say(&workflow.full_summary(now()));
    let card = desk.card(&workflow);
    if attended != Attendance::Terminal {
        return;
    }
    if card.questions.is_empty() {
        for choice in &card.choices {
            output::say(&format!(
                "  {}  {}: {}",
                letter(choice.decision),
                choice.label,
                choice.grants
            ));
        }
    } else {
        output::say("  type a number, a label or your own words; `> text` speaks to the agent instead");
    }
}

fn letter(decision: Decision) -> &'static str {
    match decision {
        Decision::Once => "c",
        Decision::Session => "s",
        Decision::Always => "a",
        Decision::Abort => "x",
    }
}

/// Passes on a line that the person typed.
async fn say(desk: &Desk, controls: &mpsc::Sender<Control>, asks: &mut OpenAsks, line: &str) {
    let line = line.trim();
    if line.is_empty() {
        return;
    }
    let guidance = line.strip_prefix('>');
    if let (None, Some(id)) = (guidance, asks.waiting.front().copied())
        && answer(desk, asks, id, line).await
    {
        return;
    }
    let text = guidance.unwrap_or(line).trim().to_owned();
    let _ = controls.send(Control::Message(message(text))).await;
}

/// Takes a line as the answer to an ask; tells whether it was meant for it.
async fn answer(desk: &Desk, asks: &mut OpenAsks, id: WorkflowId, line: &str) -> bool {
    let Ok(workflow) = desk.find(id).await else {
        return false;
    };
    let card = desk.card(&workflow);
    if card.state != CardState::Pending {
        asks.waiting.retain(|waiting| *waiting != id);
        return false;
    }
    let Some(said) = said(&card, asks, line) else {
        return true;
    };
    if let Err(refusal) = desk.say(workflow.id, said, person::provenance()).await {
        output::note(&report::render_hinted(&refusal));
    }
    true
}

/// Makes of a line what the person says to a card; `None` where more is needed, which they are told.
fn said(card: &Card, asks: &mut OpenAsks, line: &str) -> Option<Said> {
    let Some(question) = card.questions.get(asks.said.len()) else {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let choice = card
            .choices
            .iter()
            .find(|choice| letter(choice.decision) == first);
        return match choice.map(|choice| choice.decision) {
            Some(Decision::Abort) => Some(Said::refusal(Some(rest.to_owned()))),
            Some(decision) if rest.is_empty() => Some(Said::decision(decision)),
            _ => {
                output::note("type one of the letters; `> text` speaks to the agent instead");
                None
            }
        };
    };
    match SaidAnswer::typed(question, "answer", line) {
        Ok(answer) => asks.said.push(answer),
        Err(error) => {
            output::note(&Shown::line(&error.to_string()).to_string());
            return None;
        }
    }
    if let Some(next) = card.questions.get(asks.said.len()) {
        output::say(&format!("  next: {}", next.shown.question));
        return None;
    }
    Some(Said::answers(std::mem::take(&mut asks.said)))
}

/// Waits until an answer resumes a run, which may be typed here; `None` where the person leaves.
pub(super) async fn wait_for_answer(
    hosting: &Hosting,
    desk: &Desk,
    typed: &mut TypedLines,
    record: &RunRecord,
) -> anyhow::Result<Option<Beginning>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut revisions = desk.revisions().await?;
    let (controls, _unheard) = mpsc::channel(1);
    let mut asks = OpenAsks {
        waiting: record.asks.iter().map(|ask| ask.workflow).collect(),
        said: Vec::new(),
    };
    output::note("the agent is put aside; type your answer, or leave with Ctrl-C and answer later");
    loop {
        revisions.borrow_and_update();
        match hosting.resumption(desk, record).await {
            Resumption::Goes(beginning) => return Ok(Some(beginning)),
            Resumption::Not | Resumption::Expired | Resumption::InVain => return Ok(None),
            Resumption::Waits => {}
        }
        tokio::select! {
            changed = revisions.changed() => changed?,
            line = typed.next() => match line {
                Some(line) => say(desk, &controls, &mut asks, &line).await,
                None => return Ok(None),
            },
            _ = interrupt.recv() => return Ok(None),
            _ = terminate.recv() => return Ok(None),
        }
    }
}
