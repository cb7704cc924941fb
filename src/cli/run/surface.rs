//! Where a run is shown: a terminal whose last rows are alive, plain lines, or lines of JSON.

use std::io::IsTerminal as _;
use std::time::Duration;

use owo_colors::OwoColorize as _;

use super::live_area::{LiveArea, Size};
use super::typing::Keyboard;
use super::writer::Writer;
use crate::cli::output;
use crate::config::Environment;

/// How long the last lines may take in a process that was told to end.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How a person follows a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attendance {
    /// They see it and can type.
    Terminal,
    /// It is written, and nobody types.
    Plain,
    /// A script reads it.
    Json,
}

impl Attendance {
    /// Tells how a person is here who did not ask for JSON.
    pub(super) fn here() -> Self {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            Self::Terminal
        } else {
            Self::Plain
        }
    }
}

/// What is shown of a run.
pub(super) struct Surface {
    attended: Attendance,
    writer: Writer,
    area: Option<LiveArea>,
    colour: anstream::ColorChoice,
    /// Whether a line of the agent is not finished on a terminal without live rows.
    in_line: bool,
    /// How many lines a reader that stopped has missed.
    missed: usize,
}

/// How much time the last lines have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Haste {
    /// As much as their reader wants.
    None,
    /// A second: this process was told to end.
    Leaving,
}

impl Surface {
    /// Begins to show a run.
    pub(super) fn begin(attended: Attendance, environment: &Environment) -> Self {
        let dumb = environment
            .variable("TERM")
            .is_none_or(|term| term == "dumb" || term.is_empty());
        let area = (attended == Attendance::Terminal && !dumb).then(LiveArea::default);
        let writer = Writer::start();
        if area.is_some() {
            // What is pasted comes marked, so that its line breaks send nothing.
            writer.out("\x1b[?2004h".to_owned());
        }
        Self {
            attended,
            writer,
            area,
            colour: anstream::AutoStream::choice(&std::io::stdout()),
            in_line: false,
            missed: 0,
        }
    }

    /// Returns how a person follows the run.
    pub(super) fn attended(&self) -> Attendance {
        self.attended
    }

    /// Returns how a person can type here.
    pub(super) fn keyboard(&self) -> Keyboard {
        match (self.attended, &self.area) {
            (Attendance::Terminal, Some(_)) => Keyboard::Keys,
            (Attendance::Terminal, None) => Keyboard::Lines,
            (Attendance::Plain | Attendance::Json, _) => Keyboard::None,
        }
    }

    /// Shows words of the agent, as they come.
    pub(super) fn say(&mut self, words: &str) {
        if !self.takes() {
            return;
        }
        let size = size();
        if let Some(area) = &mut self.area {
            let text = area.say(words, size);
            self.writer.out(text);
        } else {
            self.in_line = !words.ends_with('\n');
            self.writer.out(words.to_owned());
        }
    }

    /// Shows a line about the run.
    pub(super) fn line(&mut self, line: &str) {
        if !self.takes() {
            return;
        }
        let line = match self.colour {
            anstream::ColorChoice::Never => anstream::adapter::strip_str(line).to_string(),
            _ => line.to_owned(),
        };
        let size = size();
        match &mut self.area {
            Some(area) => {
                let text = area.line(&line, size);
                self.writer.out(text);
            }
            None if self.attended == Attendance::Terminal => {
                let begin = if std::mem::take(&mut self.in_line) {
                    "\n"
                } else {
                    ""
                };
                self.writer.out(format!("{begin}{line}\n"));
            }
            None => self.writer.err(format!("{line}\n")),
        }
    }

    /// Shows something that the person may not expect.
    pub(super) fn note(&mut self, text: &str) {
        self.line(&format!("{} {text}", "note:".yellow().bold()));
    }

    /// Shows a line of a difference.
    pub(super) fn change(&mut self, line: &str) {
        self.line(&format!("    {}", output::colour(line)));
    }

    /// Writes a line of JSON.
    pub(super) fn json(&mut self, mut line: String) {
        line.push('\n');
        self.writer.out(line);
    }

    /// Shows where the run stands and what is typed; `status` draws it for so many columns.
    pub(super) fn show(&mut self, status: impl FnOnce(usize) -> String, prompt: String, typed: &str) {
        let size = size();
        if let Some(area) = &mut self.area
            && self.writer.has_room()
        {
            let status = status(size.columns.saturating_sub(1));
            let text = area.show(status, prompt, typed, size);
            if !text.is_empty() {
                self.writer.out(text);
            }
        }
    }

    /// Draws the last rows anew.
    pub(super) fn redraw(&mut self) {
        if let Some(area) = &mut self.area {
            let text = area.redraw(size());
            self.writer.out(text);
        }
    }

    /// Tells whether a line is taken now. What a person would read late is left out where they have stopped reading.
    fn takes(&mut self) -> bool {
        if self.attended == Attendance::Json {
            return false;
        }
        if !self.writer.has_room() {
            self.missed += 1;
            return false;
        }
        if let missed @ 1.. = std::mem::take(&mut self.missed) {
            self.note(&format!("{missed} lines were left out while nobody read"));
        }
        true
    }

    /// Tells whether the reader of the lines of JSON, none of which is left out, takes more now.
    pub(super) fn has_room(&self) -> bool {
        self.attended != Attendance::Json || self.writer.has_room()
    }

    /// Waits until the reader takes more.
    pub(super) async fn room(&self) {
        self.writer.room().await;
    }

    /// Waits until stdout takes nothing any more.
    pub(super) async fn broken(&self) {
        self.writer.broken().await;
    }

    /// Takes the last rows away, and waits until everything is written.
    pub(super) async fn end(&mut self, haste: Haste) {
        if let Some(mut area) = self.area.take() {
            let text = area.end(size());
            self.writer.out(format!("{text}\x1b[?2004l"));
        }
        match haste {
            Haste::None => self.writer.flushed().await,
            Haste::Leaving => {
                let _ = tokio::time::timeout(LAST_LINES, self.writer.flushed()).await;
            }
        }
    }
}

/// Returns the size of the terminal; that of an old one where it does not tell.
fn size() -> Size {
    let told = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok();
    let told = told.filter(|told| told.ws_col > 0 && told.ws_row > 0);
    told.map_or(
        Size {
            columns: 80,
            rows: 24,
        },
        |told| Size {
            columns: told.ws_col.into(),
            rows: told.ws_row.into(),
        },
    )
}
