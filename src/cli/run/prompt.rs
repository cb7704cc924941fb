//! What the agent is to do, and for how long it waits: read from the command line, or from a pipe.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use crate::cli::failure::Hinted as _;

/// The longest prompt that is read from a pipe.
const LIMIT: u64 = 1024 * 1024;

/// Returns what the agent is to do: an argument, or what is piped in.
pub(super) fn read(argument: Option<&str>) -> anyhow::Result<String> {
    if let Some(prompt) = argument.filter(|prompt| *prompt != "-") {
        return if prompt.trim().is_empty() {
            nothing()
        } else {
            Ok(prompt.to_owned())
        };
    }
    if std::io::stdin().is_terminal() {
        return nothing();
    }
    let mut text = String::new();
    std::io::stdin()
        .take(LIMIT)
        .read_to_string(&mut text)
        .context("cannot read the prompt")?;
    if text.trim().is_empty() {
        nothing()
    } else {
        Ok(text)
    }
}

fn nothing() -> anyhow::Result<String> {
    Err(anyhow!("there is nothing for the agent to do"))
        .hint("say it: pml run \"fix the failing test\"\nor pipe it in: pml run - < task.md")
}

/// Reads a time such as `30s`, `10m`, `2h`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits
        .parse()
        .map_err(|_| "a time is a number with `s`, `m` or `h`".to_owned())?;
    let seconds = match &text[digits.len()..] {
        "" | "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3_600),
        _ => None,
    };
    let day = 24 * 3_600;
    match seconds {
        Some(seconds) if seconds <= day => Ok(Duration::from_secs(seconds)),
        Some(_) => Err("a day is the most; `0` waits for ever".to_owned()),
        None => Err("a time is a number with `s`, `m` or `h`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_with_a_unit() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("45"), Ok(Duration::from_secs(45)));
        assert_eq!(duration("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for wrong in ["", "s", "1d", "-1s", "1.5m", "25h", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_empty_prompt_is_none() {
        assert!(read(Some(" ")).is_err());
        assert_eq!(read(Some("go")).unwrap(), "go");
    }
}
