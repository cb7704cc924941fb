//! Where an answer came from: the road, and who walked it where the road tells people apart.
//!
//! Written as one word, `cli:pts/3` or `dialog`, in the store and in every text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name of a person or a device that is kept; it stands in lines that people read.
const WHO_LIMIT: usize = 80;

/// The road on which an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Road {
    /// A continuation call, written by the model.
    Continuation,
    /// The client's native dialog, by `input_required`.
    Dialog,
    /// The client's native dialog, by `elicitation/create`.
    Elicitation,
    /// A slash command that only a person can run.
    Prompt,
    /// A terminal of the same user.
    Cli,
    /// The local web page.
    Web,
    /// A chat channel.
    Chat,
    /// A rule that was written meanwhile.
    Rule,
}

impl Road {
    /// Every road.
    pub const ALL: [Self; 8] = [
        Self::Continuation,
        Self::Dialog,
        Self::Elicitation,
        Self::Prompt,
        Self::Cli,
        Self::Web,
        Self::Chat,
        Self::Rule,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Continuation => "continuation",
            Self::Dialog => "dialog",
            Self::Elicitation => "elicitation",
            Self::Prompt => "prompt",
            Self::Cli => "cli",
            Self::Web => "web",
            Self::Chat => "chat",
            Self::Rule => "rule",
        }
    }
}

impl fmt::Display for Road {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// The road on which an answer came, and who came on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Provenance {
    /// The road.
    pub road: Road,
    /// The device or the person, where the road tells them apart; printable ASCII without blanks.
    pub who: Option<String>,
}

/// Says that a text names no road.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no road on which an answer comes")]
pub struct NoSuchRoad(String);

impl Provenance {
    /// Names the road and who came on it; what is not printable ASCII in the name becomes `-`.
    #[must_use]
    pub fn of(road: Road, who: &str) -> Self {
        let printable = |letter: char| if letter.is_ascii_graphic() { letter } else { '-' };
        let who: String = who.chars().take(WHO_LIMIT).map(printable).collect();
        Self {
            road,
            who: (!who.is_empty()).then_some(who),
        }
    }
}

impl From<Road> for Provenance {
    fn from(road: Road) -> Self {
        Self { road, who: None }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Some(who) => write!(formatter, "{}:{who}", self.road),
            None => self.road.fmt(formatter),
        }
    }
}

impl FromStr for Provenance {
    type Err = NoSuchRoad;

    fn from_str(text: &str) -> Result<Self, NoSuchRoad> {
        let (word, who) = text.split_once(':').unwrap_or((text, ""));
        let road = Road::ALL.into_iter().find(|road| road.word() == word);
        let road = road.ok_or_else(|| NoSuchRoad(crate::protocol::Shown::line(text).to_string()))?;
        Ok(Self::of(road, who))
    }
}

impl TryFrom<String> for Provenance {
    type Error = NoSuchRoad;

    fn try_from(text: String) -> Result<Self, NoSuchRoad> {
        text.parse()
    }
}

impl From<Provenance> for String {
    fn from(provenance: Provenance) -> Self {
        provenance.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_road_reads_back_with_and_without_a_name() {
        for road in Road::ALL {
            for provenance in [Provenance::from(road), Provenance::of(road, "T1/U1:x")] {
                assert_eq!(provenance.to_string().parse(), Ok(provenance.clone()));
                let json = serde_json::to_string(&provenance).unwrap();
                assert_eq!(serde_json::from_str::<Provenance>(&json).unwrap(), provenance);
            }
        }
        assert!("sea:me".parse::<Provenance>().is_err());
    }

    #[test]
    fn a_name_is_short_and_printable() {
        let long = Provenance::of(Road::Web, &"x".repeat(1_000));
        assert_eq!(long.who.map(|who| who.len()), Some(WHO_LIMIT));
        assert_eq!(
            Provenance::of(Road::Web, "my\u{202e} laptop\n").to_string(),
            "web:my--laptop-"
        );
        assert_eq!(Provenance::of(Road::Cli, "").who, None);
    }
}
