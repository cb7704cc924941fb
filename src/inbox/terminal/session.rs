//! The terminal while the screen is in it: taken over at the beginning, given back however the screen ends.

use std::io::{Stdout, Write as _};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::protocol::Shown;

/// The terminal, taken over.
pub(super) struct Session {
    /// What is drawn on.
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Session {
    /// Takes the terminal over; a panic gives it back before it is reported.
    pub(super) fn begin() -> std::io::Result<Self> {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            report(panic);
        }));
        enable_raw_mode()?;
        // From here on `Drop` mends what is half done.
        let terminal = Terminal::new(CrosstermBackend::new(std::io::stdout()));
        let session = terminal
            .map(|terminal| Self { terminal })
            .inspect_err(|_| give_back())?;
        execute!(std::io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        Ok(session)
    }
}

/// Calls the person: the bell, and a notification where the terminal knows how.
pub(super) fn ring(title: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    // The name before it keeps a title from being read as one of the commands that some terminals put there.
    write!(out, "\x1b]9;pml: {}\x07\x07", Shown::line(title))?;
    out.flush()
}

impl Drop for Session {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // Where the terminal is gone there is nothing to give back.
    let _ = execute!(
        std::io::stdout(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}
