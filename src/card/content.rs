//! The card itself: everything of an ask that a person sees, escaped and ready to be drawn.

use serde::Serialize;

use super::choices::{AlwaysRule, Choice, choices};
use super::facts::{self, Fact, FilePast, Line, Subject};
use super::outlook::{Outlook, Presence};
use crate::protocol::question::{Choice as QuestionOption, LEFT_UNANSWERED, Question};
use crate::protocol::{Excerpt, Extent, Shown};
use crate::workflow::{Answer, Ask, Code, State, Timestamp, Workflow, WorkflowId};

/// What a client's dialog shows of what a person decides about, in columns: a page.
pub const DIALOG_COLUMNS: usize = 2_000;

/// An ask as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// The name that surfaces use.
    pub id: WorkflowId,
    /// The name that people use.
    pub code: Code,
    /// What kind of ask it is, in one word.
    pub kind: &'static str,
    /// Grows with every change of any ask.
    pub rev: u64,
    /// Where it stands.
    pub state: CardState,
    /// Who asks.
    pub asker: CardAsker,
    /// The question in one line.
    pub title: String,
    /// The channel that the asker named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<&'static str>,
    /// What it is about, in parts: for a surface that has no room for the title and the lines.
    #[serde(skip)]
    pub subject: Subject,
    /// What a person must know before they decide.
    pub lines: Vec<Line>,
    /// The questions of a model; none where a decision is asked for.
    pub questions: Vec<CardQuestion>,
    /// The decisions that are offered; none where questions are asked.
    pub choices: Vec<Choice>,
    /// What `always` would write.
    pub always_writes: Option<AlwaysRule>,
    /// When it was asked, in milliseconds since 1970.
    pub created_at: Timestamp,
    /// Until when it can be answered.
    pub deadline: Timestamp,
    /// What an answer will reach.
    pub keeps: Outlook,
    /// The same in words.
    pub keeps_text: &'static str,
    /// What was answered.
    pub answered: Option<CardAnswer>,
}

impl Card {
    /// Returns what a dialog shows of a changed server or of a project's file, on one line; `None` for other asks.
    #[must_use]
    pub fn dialog_text(&self) -> Option<String> {
        let fact = match &self.subject {
            Subject::ChangedServer { .. }
            | Subject::ProjectFile {
                past: FilePast::Changed,
                ..
            } => Fact::Change,
            Subject::ProjectFile {
                past: FilePast::New, ..
            } => Fact::Want,
            Subject::Server { .. }
            | Subject::Remote { .. }
            | Subject::Call { .. }
            | Subject::Use { .. }
            | Subject::Questions => return None,
        };
        let lines = self.lines.iter().filter(|line| line.fact == fact);
        let lines: Vec<&str> = lines.map(|line| line.text.as_str()).collect();
        Some(lines.join("; "))
    }

    /// Tells whether a dialog has room for everything that its answer would accept.
    ///
    /// A difference or a file that has no room there is decided about where a person can scroll: a dialog would accept
    /// what it did not show.
    #[must_use]
    pub fn fits_dialog(&self) -> bool {
        self.dialog_text()
            .is_none_or(|text| Excerpt::of_text(&text, DIALOG_COLUMNS).extent == Extent::Whole)
    }
}

/// A question as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CardQuestion {
    /// Every text of it, escaped; an answer names its options by these labels.
    #[serde(flatten)]
    pub shown: Question,
    /// The question as it was asked, by which an answer is checked.
    #[serde(skip)]
    pub asked: Question,
}

impl CardQuestion {
    fn of(asked: &Question) -> Self {
        let line = |text: &str| Shown::line(text).to_string();
        let options = asked.options.iter().map(|option| QuestionOption {
            label: line(&option.label),
            description: option.description.as_deref().map(line),
        });
        Self {
            shown: Question {
                question: Shown::block(&asked.question).to_string(),
                header: asked.header.as_deref().map(line),
                options: options.collect(),
                selection: asked.selection,
            },
            asked: asked.clone(),
        }
    }

    /// Returns how an option of the ask is shown; what is no option stays as it is.
    pub(super) fn shown_label(&self, label: String) -> String {
        let asked = self.asked.options.iter().position(|option| option.label == label);
        match asked.and_then(|index| self.shown.options.get(index)) {
            Some(option) => option.label.clone(),
            None => label,
        }
    }

    /// Returns the label of the ask that is shown as `label`; what is no option stays as it is.
    pub(super) fn asked_label(&self, label: String) -> String {
        let shown = self.shown.options.iter().position(|option| option.label == label);
        match shown.and_then(|index| self.asked.options.get(index)) {
            Some(option) => option.label.clone(),
            None => label,
        }
    }
}

/// Where a card stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CardState {
    /// It waits for a person.
    Pending,
    /// It is answered, and the agent has not taken the answer yet.
    Answered,
    /// The agent has the answer.
    Used,
    /// A person said no.
    Refused,
    /// Its time is over.
    Expired,
    /// The agent does not wait for it any more.
    Withdrawn,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardAsker {
    /// The client and its version, where it said so.
    pub client: Option<String>,
    /// The session of the client, where it has one.
    pub session: Option<String>,
    /// The directory of the project.
    pub project: String,
    /// The run that it belongs to, where `pml run` started the agent.
    pub run: Option<String>,
    /// Whether the process that asked still runs.
    pub alive: bool,
}

/// What was answered, on which road, by whom and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CardAnswer {
    /// The road.
    pub road: String,
    /// Who, where the road tells people apart.
    pub who: Option<String>,
    /// When, in milliseconds since 1970.
    pub at: Timestamp,
    /// The answer in words.
    pub text: String,
}

impl Card {
    /// Draws the card of an ask as it stands at `now`.
    #[must_use]
    pub fn of(workflow: &Workflow, presence: Presence, now: Timestamp) -> Self {
        let always_writes = AlwaysRule::of(workflow);
        let keeps = Outlook::of(workflow, presence);
        let asked_by = &workflow.origin.client;
        let shown = |text: &Option<String>| text.as_deref().map(|text| Shown::line(text).to_string());
        Self {
            id: workflow.id,
            code: workflow.code.clone(),
            kind: workflow.ask.kind(),
            rev: workflow.revision,
            state: CardState::of(workflow, now),
            asker: CardAsker {
                client: shown(&asked_by.name),
                session: shown(&asked_by.session),
                project: Shown::path(&workflow.project),
                run: shown(&asked_by.run),
                alive: presence == Presence::Running,
            },
            channel: workflow.channel_key(),
            title: facts::title(workflow),
            subject: Subject::of(workflow),
            lines: facts::lines(workflow),
            questions: questions(&workflow.ask),
            choices: choices(workflow, always_writes.as_ref()),
            always_writes,
            created_at: workflow.created_at,
            deadline: workflow.expires_at,
            keeps,
            keeps_text: keeps.text(),
            answered: answered(&workflow.state),
        }
    }
}

impl CardState {
    fn of(workflow: &Workflow, now: Timestamp) -> Self {
        match &workflow.state {
            State::Answered {
                answer: Answer::Refuse { .. },
                ..
            } => Self::Refused,
            State::Taken { .. } => Self::Used,
            State::Withdrawn => Self::Withdrawn,
            State::Expired => Self::Expired,
            // A deadline counts also where no process has marked it yet.
            State::Pending | State::Answered { .. } if !workflow.is_live_at(now) => Self::Expired,
            State::Pending => Self::Pending,
            State::Answered { .. } => Self::Answered,
        }
    }
}

fn questions(ask: &Ask) -> Vec<CardQuestion> {
    match ask {
        Ask::Questions { questions } => questions.iter().map(CardQuestion::of).collect(),
        Ask::Install { .. }
        | Ask::Connect { .. }
        | Ask::Permit { .. }
        | Ask::Use { .. }
        | Ask::Trust { .. }
        | Ask::Integrity { .. } => Vec::new(),
    }
}

fn answered(state: &State) -> Option<CardAnswer> {
    let (State::Answered { answer, by, at } | State::Taken { answer, by, at, .. }) = state else {
        return None;
    };
    Some(CardAnswer {
        road: by.road.to_string(),
        who: by.who.as_deref().map(|who| Shown::line(who).to_string()),
        at: *at,
        text: match answer {
            Answer::Approve { scope } => match scope {
                crate::workflow::Scope::Once => "approved".to_owned(),
                crate::workflow::Scope::Session => "approved for the session".to_owned(),
                crate::workflow::Scope::Always => "approved always".to_owned(),
            },
            Answer::Refuse { reason } => match reason {
                Some(reason) => format!("refused: {}", Shown::line(reason)),
                None => "refused".to_owned(),
            },
            Answer::Answers { answers } => {
                let answers = answers.iter().map(|given| {
                    if given.is_unanswered() {
                        LEFT_UNANSWERED.to_owned()
                    } else {
                        given.values().join(", ")
                    }
                });
                Shown::block(&answers.collect::<Vec<_>>().join("; ")).to_string()
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Arguments;
    use crate::workflow::samples::{self, NOON};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn a_card_shows_what_would_run_and_what_each_choice_grants() {
        let workflow = samples::workflow(samples::new("{}").ask);
        let card = Card::of(&workflow, Presence::Gone, NOON);
        assert_eq!(
            serde_json::to_value(&card).unwrap(),
            json!({
                "id": workflow.id, "code": "aaaaa", "kind": "install", "rev": 0, "state": "pending",
                "asker": {
                    "client": null, "session": null, "project": "/pro\\u{1b}ject", "run": null, "alive": false,
                },
                "title": "Install and run serena@0.5.0?",
                "lines": [
                    { "label": "would run", "text": "npm install serena@0.5.0", "style": "command" },
                    { "label": "wanted for", "text": "serena:analyze", "style": "plain" },
                    { "label": "published", "text": "not known", "style": "plain" },
                    { "label": "integrity", "text": "recorded at first use", "style": "plain" },
                ],
                "questions": [],
                "choices": [
                    { "decision": "once", "label": "Continue", "grants": "this version, from now on" },
                    { "decision": "session", "label": "Only this session", "grants": "until the pml of this agent ends" },
                    { "decision": "always", "label": "Always", "grants": "from now on" },
                    { "decision": "abort", "label": "Abort", "grants": "nothing runs" },
                ],
                "alwaysWrites": { "file": "/project/.pml.json", "rule": "serena:analyze" },
                "createdAt": NOON.millis(), "deadline": NOON.millis() + 300_000,
                "keeps": "nextCall",
                "keepsText": "the agent is gone; a yes lets its next identical call run once, until the deadline",
                "answered": null,
            })
        );
    }

    #[test]
    fn the_arguments_of_a_call_are_shown_whole_without_deceit_and_without_secrets() {
        let mut workflow = samples::workflow(Ask::Use {
            reach: crate::workflow::UseReach::Lasting,
        });
        let long = "x".repeat(10_000);
        workflow.call.arguments = Arguments::Json(format!(
            "{{\"path\":\"a\u{202e}b\",\"token\":\"t0p\",\"long\":\"{long}\"}}"
        ));
        let card = Card::of(&workflow, Presence::Running, NOON);
        assert_eq!(card.title, "Allow analyze?");
        let [line] = card.lines.as_slice() else {
            panic!("{:?}", card.lines)
        };
        assert!(
            line.text.contains("a\\u202eb") && line.text.contains(&long),
            "{}",
            line.text
        );
        assert!(!line.text.contains("t0p"), "{}", line.text);
    }

    #[test]
    fn a_deadline_counts_before_any_process_has_marked_it() {
        let workflow = samples::workflow(samples::new("{}").ask);
        let later = NOON.plus(Duration::from_hours(1));
        assert_eq!(
            Card::of(&workflow, Presence::Running, later).state,
            CardState::Expired
        );
    }
}
