//! The table of who may answer an ask: one pure decision for every road on which an answer comes.
//!
//! A continuation is written by a model, so it counts only where the configuration takes the client's word, and only
//! in the project that asked. A dialog counts where it was shown. A slash command counts as a person's word for the
//! asks of its own conversation, unless an agent runs the process. A terminal counts for every ask of the user, with
//! the same exception. The table cannot stop a process of the same user that pretends to be another one.

use crate::card::{Decision, Said, SaidDecision};
use crate::config::{By, Environment};
use crate::workflow::{Answer, Ask, Road};

/// What an answer would bring about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Something runs, or a model is told what a person said.
    Grants,
    /// Nothing runs.
    Refuses,
}

impl Effect {
    /// Tells what an answer would bring about.
    #[must_use]
    pub fn of(answer: &Answer) -> Self {
        match answer {
            Answer::Approve { .. } | Answer::Answers { .. } => Self::Grants,
            Answer::Refuse { .. } => Self::Refuses,
        }
    }

    /// Tells what something said would bring about if it is an answer.
    #[must_use]
    pub fn of_said(said: &Said) -> Self {
        match said {
            Said::Decision(SaidDecision {
                decision: Decision::Abort,
                ..
            }) => Self::Refuses,
            Said::Decision(_) | Said::Answers(_) => Self::Grants,
        }
    }
}

/// The relation of the conversation that brings an answer to the one that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It asked itself.
    SameConversation,
    /// It works under the same configuration file.
    SameProject,
    /// It works elsewhere.
    OtherProject,
}

/// The one who runs the process that brings an answer: a person or an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// A person, as far as can be told.
    Person,
    /// An agent: its client's mark is set, and there is no terminal.
    Agent,
}

/// The variable by which Claude Code marks the processes that its tools start.
pub const AGENT_MARK: &str = "CLAUDECODE";

/// Whether a process has a terminal that a person can type into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// It has a terminal.
    Present,
    /// It has none.
    Missing,
}

impl Runner {
    /// Tells who runs a process: where a client marks what its agent starts, a person has a terminal.
    #[must_use]
    pub fn of(environment: &Environment, terminal: Terminal) -> Self {
        match (environment.variable(AGENT_MARK), terminal) {
            (Some(_), Terminal::Missing) => Self::Agent,
            _ => Self::Person,
        }
    }
}

/// The place where a person can answer an ask of their client, besides its dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonalRoad {
    /// In the client itself, by a prompt of pml that only a person can run, or in a terminal.
    SlashCommand,
    /// In a terminal.
    Terminal,
}

/// The variable by which Claude Code tells its servers how it was started.
const ENTRY: &str = "CLAUDE_CODE_ENTRYPOINT";

impl PersonalRoad {
    /// Tells where a person can answer: Claude Code takes slash commands only where it is not run by `claude -p`.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        match environment.variable(ENTRY) {
            Some(entry) if entry == "cli" => Self::SlashCommand,
            _ => Self::Terminal,
        }
    }
}

/// The effect that an answer may have: it decides, or it only reads the state of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerWeight {
    /// It decides.
    Decides,
    /// It decides nothing and returns the state of the workflow.
    Looks,
}

/// Says why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotEntitled {
    /// The ask belongs to another project.
    #[error("it belongs to another project, and is answered there or in a terminal")]
    OtherProject,
    /// The ask belongs to another conversation, and only a person may answer it.
    #[error("another conversation asked it, and only a person may answer it")]
    OtherConversation,
    /// The dialog that would be answered was not shown in this conversation.
    #[error("no dialog for it was shown in this conversation")]
    NotShown,
    /// A dialog has no room for what would be granted.
    #[error("a dialog cannot show all of it; read and answer it in a terminal or on the page")]
    TooLong,
    /// An agent would answer for its person.
    #[error("only a person may answer it, and an agent runs this pml")]
    Agent,
}

/// Decides whether an answer that came on this road may decide the ask.
pub fn may_answer(
    by: By,
    road: Road,
    relation: Relation,
    runner: Runner,
    effect: Effect,
) -> Result<AnswerWeight, NotEntitled> {
    use Road::{Chat, Cli, Continuation, Dialog, Elicitation, Prompt, Rule, Web};
    match (road, relation, by) {
        (Continuation | Prompt, Relation::OtherProject, _) => Err(NotEntitled::OtherProject),
        (Continuation, _, By::Human) => Ok(AnswerWeight::Looks),
        (Dialog | Elicitation, Relation::SameProject | Relation::OtherProject, _) => {
            Err(NotEntitled::NotShown)
        }
        (Prompt, Relation::SameProject, By::Human) => Err(NotEntitled::OtherConversation),
        // A refusal in a terminal grants nothing, so anybody may give it.
        (Cli, _, _) if effect == Effect::Refuses => Ok(AnswerWeight::Decides),
        (Prompt | Cli, _, By::Human) if runner == Runner::Agent => Err(NotEntitled::Agent),
        // A chat brings the word of a person whom the user paired, by the service that names them, and the channels hear no
        // other; which agent runs this process says nothing of who pressed there.
        (Continuation | Dialog | Elicitation | Prompt | Cli | Web | Chat | Rule, _, _) => {
            Ok(AnswerWeight::Decides)
        }
    }
}

/// Returns who may answer an ask where the configuration says `by`: a model never says whom its person trusts.
pub(super) fn policy_for(ask: &Ask, by: By) -> By {
    match ask {
        Ask::Trust { .. } | Ask::Integrity { .. } => By::Human,
        Ask::Install { .. }
        | Ask::Connect { .. }
        | Ask::Permit { .. }
        | Ask::Use { .. }
        | Ask::Questions { .. } => by,
    }
}

/// Returns the stricter of two policies.
#[must_use]
pub fn stricter(one: By, other: By) -> By {
    match (one, other) {
        (By::Client, By::Client) => By::Client,
        (By::Human, _) | (_, By::Human) => By::Human,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROADS: [Road; 8] = [
        Road::Continuation,
        Road::Dialog,
        Road::Elicitation,
        Road::Prompt,
        Road::Cli,
        Road::Web,
        Road::Chat,
        Road::Rule,
    ];
    const RELATIONS: [Relation; 3] = [
        Relation::SameConversation,
        Relation::SameProject,
        Relation::OtherProject,
    ];

    fn cases() -> impl Iterator<Item = (By, Road, Relation, Runner)> {
        let policies = [By::Client, By::Human].into_iter();
        policies.flat_map(|by| {
            ROADS.into_iter().flat_map(move |road| {
                RELATIONS.into_iter().flat_map(move |relation| {
                    [Runner::Person, Runner::Agent].map(|runner| (by, road, relation, runner))
                })
            })
        })
    }

    #[test]
    fn where_only_a_person_counts_no_word_of_a_model_or_an_agent_decides() {
        for (by, road, relation, runner) in cases().filter(|(by, ..)| *by == By::Human) {
            let worth = may_answer(by, road, relation, runner, Effect::Grants);
            if road == Road::Continuation
                || (runner == Runner::Agent && matches!(road, Road::Prompt | Road::Cli))
            {
                assert_ne!(worth, Ok(AnswerWeight::Decides), "{road} {relation:?} {runner:?}");
            }
        }
    }

    #[test]
    fn what_comes_through_a_client_counts_in_the_project_of_the_ask_only() {
        let through_a_client = [Road::Continuation, Road::Dialog, Road::Elicitation, Road::Prompt];
        for (by, road, relation, runner) in cases() {
            if through_a_client.contains(&road) && relation == Relation::OtherProject {
                assert!(
                    may_answer(by, road, relation, runner, Effect::Grants).is_err(),
                    "{road} {by:?}"
                );
            }
        }
    }

    #[test]
    fn a_dialog_counts_where_it_was_shown_whatever_the_policy() {
        for (by, road, relation, runner) in cases() {
            if matches!(road, Road::Dialog | Road::Elicitation) {
                let shown = relation == Relation::SameConversation;
                let decides =
                    may_answer(by, road, relation, runner, Effect::Grants) == Ok(AnswerWeight::Decides);
                assert_eq!(decides, shown);
            }
        }
    }

    #[test]
    fn a_chat_brings_a_persons_word_for_every_ask_of_the_user() {
        for (by, road, relation, runner) in cases().filter(|(_, road, ..)| *road == Road::Chat) {
            for effect in [Effect::Grants, Effect::Refuses] {
                let worth = may_answer(by, road, relation, runner, effect);
                assert_eq!(
                    worth,
                    Ok(AnswerWeight::Decides),
                    "{by:?} {relation:?} {runner:?} {effect:?}"
                );
            }
        }
    }

    #[test]
    fn the_stricter_policy_counts() {
        for (by, road, relation, runner) in cases() {
            let strict = may_answer(stricter(by, By::Human), road, relation, runner, Effect::Grants);
            let loose = may_answer(by, road, relation, runner, Effect::Grants);
            if strict == Ok(AnswerWeight::Decides) {
                assert_eq!(loose, Ok(AnswerWeight::Decides), "{road} {relation:?} {runner:?}");
            }
        }
        assert_eq!(stricter(By::Client, By::Client), By::Client);
    }

    #[test]
    fn a_refusal_counts_wherever_a_yes_counts_and_from_every_terminal() {
        for (by, road, relation, runner) in cases() {
            let yes = may_answer(by, road, relation, runner, Effect::Grants);
            let no = may_answer(by, road, relation, runner, Effect::Refuses);
            let expected = match road {
                Road::Cli => Ok(AnswerWeight::Decides),
                _ => yes,
            };
            assert_eq!(no, expected, "{by:?} {road} {relation:?} {runner:?}");
        }
    }

    #[test]
    fn an_agent_is_known_by_its_mark_and_a_missing_terminal() {
        let environment = |names: &[&str]| {
            let variables = names.iter().map(|name| (*name, "1"));
            Environment::new(variables, std::path::Path::new("/project"))
        };
        let runner = |names: &[&str], terminal| Runner::of(&environment(names), terminal);
        assert_eq!(runner(&[AGENT_MARK], Terminal::Missing), Runner::Agent);
        assert_eq!(runner(&[AGENT_MARK], Terminal::Present), Runner::Person);
        assert_eq!(runner(&["PATH"], Terminal::Missing), Runner::Person);
    }

    #[test]
    fn a_person_who_brings_their_own_word_decides_where_only_a_person_counts() {
        for (road, relation) in [
            (Road::Prompt, Relation::SameConversation),
            (Road::Cli, Relation::SameConversation),
            (Road::Cli, Relation::OtherProject),
        ] {
            for (runner, expected) in [
                (Runner::Person, Ok(AnswerWeight::Decides)),
                (Runner::Agent, Err(NotEntitled::Agent)),
            ] {
                let worth = may_answer(By::Human, road, relation, runner, Effect::Grants);
                assert_eq!(worth, expected, "{road:?} {relation:?} {runner:?}");
            }
        }
    }

    #[test]
    fn a_slash_command_is_named_only_where_the_client_takes_one() {
        let road = |entry: Option<&str>| {
            let variables = entry.map(|entry| (ENTRY, entry));
            PersonalRoad::of(&Environment::new(variables, "/"))
        };
        assert_eq!(
            [road(Some("cli")), road(Some("sdk-cli")), road(None)],
            [
                PersonalRoad::SlashCommand,
                PersonalRoad::Terminal,
                PersonalRoad::Terminal
            ]
        );
    }
}
