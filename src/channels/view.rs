//! What of a card leaves this machine, and what may be decided there. Pure.
//!
//! Without `details` arguments stay here, the command of a tool of the client apart; and what a person was not shown, they
//! cannot approve there.

use std::path::Path;

use serde_json::Value;

use crate::card::{Card, Choice, Decision, Fact, LineStyle};
use crate::config::{ChannelBasics, Details, Permission};
use crate::protocol::Shown;

/// What stands in the place of arguments that stay here.
const KEPT_BACK: &str = "not sent here (`details`); see the inbox";

/// Returns a card as it may leave this machine.
pub(super) fn outside(card: &Card, details: Details) -> Card {
    let mut card = card.clone();
    // The name of the project tells which one it is; where it lies stays here.
    let name = Path::new(&card.asker.project).file_name();
    card.asker.project = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    card.asker.session = None;
    if details == Details::All {
        return card;
    }
    // What is proposed repeats arguments; without them nothing of it can be chosen there.
    if !is_shown_whole(&card, details) {
        card.lines.retain(|line| line.fact != Fact::Proposal);
    }
    for line in card
        .lines
        .iter_mut()
        .filter(|line| is_kept_back(line.fact, line.style))
    {
        if let Some(command) = command(&line.text) {
            line.label = "would run";
            line.style = LineStyle::Command;
            line.text = command;
        } else {
            KEPT_BACK.clone_into(&mut line.text);
            line.style = LineStyle::Plain;
        }
    }
    card
}

/// Lists the decisions that may be taken on a channel about a card: those that it offers, that the settings allow there,
/// and of which everything is shown.
pub(super) fn choices(card: &Card, basics: &ChannelBasics) -> Vec<Choice> {
    let offered = card.choices.iter();
    let allowed = offered.filter(|choice| allows(card, basics, choice.decision));
    allowed.cloned().collect()
}

/// Tells whether a decision may be taken on a channel.
pub(super) fn allows(card: &Card, basics: &ChannelBasics, decision: Decision) -> bool {
    let permission = match decision {
        Decision::Once => Permission::Approve,
        Decision::Session => Permission::Session,
        Decision::Always => Permission::Always,
        Decision::Abort => Permission::Refuse,
    };
    let shown = decision == Decision::Abort || is_shown_whole(card, basics.details);
    basics.may.contains(&permission) && shown
}

/// Tells whether everything that an approval would let run is shown.
fn is_shown_whole(card: &Card, details: Details) -> bool {
    let kept_back =
        |line: &crate::card::Line| is_kept_back(line.fact, line.style) && command(&line.text).is_none();
    details == Details::All || !card.lines.iter().any(kept_back)
}

fn is_kept_back(fact: Fact, style: LineStyle) -> bool {
    // "no arguments" is told.
    fact == Fact::Arguments && style == LineStyle::Arguments
}

/// Returns the command among the arguments of a tool, escaped, where all others only describe it.
fn command(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let members = arguments.as_object()?;
    let beside = ["command", "description", "timeout"];
    if members.keys().any(|name| !beside.contains(&name.as_str())) {
        return None;
    }
    let command = members.get("command")?.as_str()?;
    Some(Shown::block(command).to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::card::samples;
    use crate::workflow::{Arguments, Ask, UseReach};

    fn used(arguments: &str) -> Card {
        reaching(UseReach::Lasting, arguments)
    }

    fn reaching(reach: UseReach, arguments: &str) -> Card {
        let mut workflow = samples::workflow(Ask::Use { reach });
        workflow.call.arguments = Arguments::Json(arguments.to_owned());
        workflow.project = "/home/ada/shop".into();
        samples::card(&workflow)
    }

    fn basics(may: &[Permission], details: Details) -> ChannelBasics {
        ChannelBasics {
            people: Vec::new(),
            may: may.iter().copied().collect::<BTreeSet<_>>(),
            details,
            api_url: None,
        }
    }

    fn decisions(card: &Card, basics: &ChannelBasics) -> Vec<Decision> {
        let choices = choices(card, basics);
        choices.into_iter().map(|choice| choice.decision).collect()
    }

    const USUAL: [Permission; 3] = [Permission::Answer, Permission::Approve, Permission::Refuse];

    #[test]
    fn arguments_stay_here_and_what_is_not_shown_cannot_be_approved() {
        let card = used(r#"{"file_path":"/x","content":"s3cret"}"#);
        let needed = outside(&card, Details::Needed);
        assert!(!format!("{needed:?}").contains("s3cret"), "{needed:?}");
        assert_eq!(
            decisions(&card, &basics(&USUAL, Details::Needed)),
            [Decision::Abort]
        );
        let all = outside(&card, Details::All);
        assert!(all.lines[0].text.contains("s3cret"));
        assert_eq!(
            decisions(&card, &basics(&USUAL, Details::All)),
            [Decision::Once, Decision::Abort]
        );
    }

    #[test]
    fn what_is_proposed_stays_here_with_the_arguments_that_it_repeats() {
        let reach = || UseReach::Proposed {
            grants: vec!["files below /home/ada/secret".to_owned()],
        };
        let told =
            |arguments, details| format!("{:?}", outside(&reaching(reach(), arguments), details).lines);
        let edit = r#"{"file_path":"/home/ada/secret/x"}"#;
        assert!(!told(edit, Details::Needed).contains("secret"));
        for (arguments, details) in [(edit, Details::All), (r#"{"command":"ls"}"#, Details::Needed)] {
            assert!(told(arguments, details).contains("files below /home/ada/secret"));
        }
    }

    #[test]
    fn the_command_of_a_shell_is_shown_whole_and_can_be_approved() {
        let long = "x".repeat(5_000);
        let card = used(&format!(
            r#"{{"command":"rm -rf \u202e{long}","description":"cleans up"}}"#
        ));
        let shown = outside(&card, Details::Needed);
        assert!(shown.lines[0].text.contains(&long) && !shown.lines[0].text.contains('\u{202e}'));
        assert!(!format!("{:?}", shown.lines).contains("cleans up"));
        assert_eq!(
            decisions(&card, &basics(&USUAL, Details::Needed)),
            [Decision::Once, Decision::Abort]
        );
        // What else it is told may change what it does.
        let other = used(r#"{"command":"ls","cwd":"/etc"}"#);
        assert_eq!(
            decisions(&other, &basics(&USUAL, Details::Needed)),
            [Decision::Abort]
        );
    }

    #[test]
    fn what_lasts_is_offered_only_where_the_settings_say_so() {
        let card = crate::channels::samples::approval();
        for (may, expected) in [
            (&USUAL[..], &[Decision::Once, Decision::Abort][..]),
            (&[Permission::Refuse], &[Decision::Abort]),
            (
                &[Permission::Session, Permission::Refuse],
                &[Decision::Session, Decision::Abort],
            ),
            (&[Permission::Always], &[Decision::Always]),
            (&[], &[]),
        ] {
            assert_eq!(
                decisions(&card, &basics(may, Details::Needed)),
                expected,
                "{may:?}"
            );
        }
    }

    #[test]
    fn only_the_name_of_a_project_is_told() {
        let shown = outside(&used("{}"), Details::All);
        assert_eq!(shown.asker.project, "shop");
    }
}
