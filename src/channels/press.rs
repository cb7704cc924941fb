//! What a button carries: which ask, at which revision, which message, and what is chosen by it.
//!
//! Written as `p1:CODE:REV:QUESTION:OPTION:NONCE`, at most 64 bytes: the most that Telegram takes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ties a press to one message: what is pressed on another one, or was made up, does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Nonce(String);

impl Nonce {
    /// Makes one of 72 random bits: it is no secret from the person it is sent to.
    #[must_use]
    pub(crate) fn fresh() -> Self {
        let random = uuid::Uuid::new_v4();
        // Bytes 6 and 8 of an id hold its version: these are random throughout.
        let bytes: Vec<u8> = random.as_bytes()[..6]
            .iter()
            .chain(&random.as_bytes()[9..12])
            .copied()
            .collect();
        Self(base64::Engine::encode(
            &base64::engine::general_purpose::URL_SAFE_NO_PAD,
            bytes,
        ))
    }

    /// Reads one that was kept.
    #[must_use]
    pub(crate) fn kept(text: String) -> Self {
        Self(text)
    }

    /// Returns it as it is written.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a button carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Press {
    /// The code of the ask.
    pub code: String,
    /// The revision of the card that was shown.
    pub rev: u64,
    /// What the button is.
    pub button: Button,
    /// The message.
    pub nonce: Nonce,
}

/// What a button is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Button {
    /// Sends what was chosen; stands for the whole form.
    Send,
    /// Takes the option of a question.
    Option {
        /// The place of the question.
        question: usize,
        /// The place of the option.
        option: usize,
    },
    /// Takes a decision, or leaves the questions unanswered.
    Decision(crate::card::Decision),
}

/// Says that a text is not what a button of pml carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no button of pml")]
pub(crate) struct NoPress;

impl fmt::Display for Press {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            rev,
            button,
            nonce,
        } = self;
        let nonce = nonce.as_str();
        match button {
            Button::Send => write!(formatter, "p1:{code}:{rev}:s::{nonce}"),
            Button::Option { question, option } => {
                write!(formatter, "p1:{code}:{rev}:{question}:{option}:{nonce}")
            }
            Button::Decision(decision) => write!(formatter, "p1:{code}:{rev}:d:{decision}:{nonce}"),
        }
    }
}

impl FromStr for Press {
    type Err = NoPress;

    fn from_str(text: &str) -> Result<Self, NoPress> {
        use crate::card::Decision;
        let parts: Vec<&str> = text.split(':').collect();
        let ["p1", code, rev, first, second, nonce] = parts[..] else {
            return Err(NoPress);
        };
        let number = |text: &str| text.parse::<usize>().map_err(|_| NoPress);
        let button = match (first, second) {
            ("s", "") => Button::Send,
            ("d", "once") => Button::Decision(Decision::Once),
            ("d", "session") => Button::Decision(Decision::Session),
            ("d", "always") => Button::Decision(Decision::Always),
            ("d", "abort") => Button::Decision(Decision::Abort),
            (question, option) => Button::Option {
                question: number(question)?,
                option: number(option)?,
            },
        };
        Ok(Self {
            code: code.to_owned(),
            rev: rev.parse().map_err(|_| NoPress)?,
            button,
            nonce: Nonce::kept(nonce.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Decision;

    #[test]
    fn what_a_button_carries_reads_back_and_fits_into_64_bytes() {
        let buttons = [
            Button::Send,
            Button::Option {
                question: 3,
                option: 99,
            },
            Button::Decision(Decision::Once),
            Button::Decision(Decision::Session),
            Button::Decision(Decision::Always),
            Button::Decision(Decision::Abort),
        ];
        for button in buttons {
            let press = Press {
                code: "abcde".to_owned(),
                rev: u64::from(u32::MAX),
                button,
                nonce: Nonce::fresh(),
            };
            let text = press.to_string();
            assert!(text.len() <= 64, "{text}");
            assert_eq!(text.parse(), Ok(press));
        }
    }

    #[test]
    fn what_pml_did_not_write_is_no_press() {
        for text in [
            "",
            "p1",
            "p2:abcde:1:s::x",
            "p1:abcde:-1:s::x",
            "p1:abcde:1:d:maybe:x",
            "p1:abcde:1:0::x",
            "p1:a:1:s::x:y",
        ] {
            assert_eq!(text.parse::<Press>(), Err(NoPress), "{text}");
        }
    }

    #[test]
    fn no_two_nonces_are_alike() {
        assert_ne!(Nonce::fresh(), Nonce::fresh());
        assert_eq!(Nonce::fresh().as_str().len(), 12);
    }
}
