//! How meaning looks. Nothing is told by colour alone: every tone also has a word, a sign or a weight.

use ratatui::style::{Color, Modifier, Style};

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Text.
    Plain,
    /// What is asked.
    Title,
    /// The name of a value, and what stands aside.
    Label,
    /// What would run, or a key.
    Command,
    /// What must not be overlooked.
    Warning,
    /// The row that the keys act on.
    Cursor,
}

/// Which colours the terminal can show, or the person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// The sixteen of every terminal that has any.
    Colours,
    /// None: weight and reversal only.
    Monochrome,
}

impl Palette {
    /// Reads `NO_COLOR` and `TERM` as most programs do.
    #[must_use]
    pub fn of(no_color: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        let plain = term.is_empty()
            || term == "dumb"
            || term.starts_with("vt")
            || term.ends_with("-m")
            || term.ends_with("-mono");
        if plain || no_color.is_some_and(|value| !value.is_empty()) {
            Self::Monochrome
        } else {
            Self::Colours
        }
    }

    /// Returns how a tone is drawn.
    pub(super) fn style(self, tone: Tone) -> Style {
        let style = match tone {
            Tone::Plain | Tone::Label => Style::new(),
            Tone::Title | Tone::Command | Tone::Warning => Style::new().add_modifier(Modifier::BOLD),
            Tone::Cursor => Style::new().add_modifier(Modifier::REVERSED),
        };
        match (self, tone) {
            (Self::Colours, Tone::Label) => style.fg(Color::DarkGray),
            (Self::Colours, Tone::Command) => style.fg(Color::Cyan),
            (Self::Colours, Tone::Warning) => style.fg(Color::Yellow),
            (Self::Colours, Tone::Plain | Tone::Title | Tone::Cursor) | (Self::Monochrome, _) => style,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_or_a_terminal_without_colours_gets_none() {
        assert_eq!(Palette::of(None, Some("xterm-256color")), Palette::Colours);
        assert_eq!(Palette::of(Some(""), Some("xterm")), Palette::Colours);
        for (no_color, term) in [(Some("1"), Some("xterm")), (None, Some("vt100")), (None, None)] {
            assert_eq!(Palette::of(no_color, term), Palette::Monochrome);
        }
    }
}
