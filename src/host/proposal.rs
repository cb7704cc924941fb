//! What an agent proposes not to ask about again: read from its request, shown to a person, and given back to it for as long
//! as it runs. Pure.
//!
//! The non-obvious thing: what is given back is written anew from what a person was shown. A member that is not read here
//! is never granted with the rest, and nothing of it is kept in a file of the agent's. A mode reaches far beyond the tool that
//! asks, so it is offered only where the agent proposes nothing narrower.

use serde::Deserialize;
use serde_json::{Value, json};

/// The most that is shown of a proposal, in things and in bytes; a longer one is not offered.
const GRANTS: usize = 8;
/// See [`GRANTS`].
const LENGTH: usize = 1_000;

/// What an agent proposes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposal {
    /// What would not be asked about again, one thing each.
    pub grants: Vec<String>,
    /// The same as the agent takes it, each as JSON text.
    pub permissions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Suggestion {
    AddRules {
        rules: Vec<SuggestedRule>,
        behavior: String,
    },
    AddDirectories {
        directories: Vec<String>,
    },
    SetMode {
        mode: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SuggestedRule {
    tool_name: String,
    #[serde(default)]
    rule_content: Option<String>,
}

impl Proposal {
    /// Reads what is proposed with the use of a tool; `None` where nothing of it can be offered.
    pub(super) fn read<'a>(tool: &str, suggestions: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let known = suggestions
            .into_iter()
            .filter_map(|suggestion| serde_json::from_str::<Suggestion>(suggestion).ok());
        let (modes, narrower): (Vec<_>, Vec<_>) =
            known.partition(|suggestion| matches!(suggestion, Suggestion::SetMode { .. }));
        let mut proposal = Self::offered(tool, narrower);
        if proposal.grants.is_empty() {
            proposal = Self::offered(tool, modes);
        }
        let length: usize = proposal.grants.iter().map(String::len).sum();
        let fits = (1..=GRANTS).contains(&proposal.grants.len()) && length <= LENGTH;
        fits.then_some(proposal)
    }

    fn offered(tool: &str, suggestions: Vec<Suggestion>) -> Self {
        let mut proposal = Self::default();
        for (grants, permission) in suggestions
            .into_iter()
            .filter_map(|suggestion| suggestion.offered(tool))
        {
            proposal.grants.extend(grants);
            proposal.permissions.push(permission.to_string());
        }
        proposal
    }
}

impl Suggestion {
    /// Returns what a person is shown of it and what the agent is given; `None` where it reaches beyond the tool that asks.
    fn offered(self, tool: &str) -> Option<(Vec<String>, Value)> {
        match self {
            Self::AddRules { rules, behavior } => {
                let own = |rule: &SuggestedRule| rule.tool_name == *tool;
                if behavior != "allow" || rules.is_empty() || !rules.iter().all(own) {
                    return None;
                }
                let grants = rules.iter().map(|rule| match &rule.rule_content {
                    Some(content) => format!("{}({content})", rule.tool_name),
                    None => format!("every use of {}", rule.tool_name),
                });
                let written = rules.iter().map(|rule| match &rule.rule_content {
                    Some(content) => json!({ "toolName": rule.tool_name, "ruleContent": content }),
                    None => json!({ "toolName": rule.tool_name }),
                });
                let written: Vec<Value> = written.collect();
                let permission = json!({ "type": "addRules", "rules": written, "behavior": "allow", "destination": "session" });
                Some((grants.collect(), permission))
            }
            Self::AddDirectories { directories } => {
                if directories.is_empty() {
                    return None;
                }
                let permission =
                    json!({ "type": "addDirectories", "directories": directories, "destination": "session" });
                let grants = directories.into_iter();
                Some((
                    grants.map(|one| format!("files below {one}")).collect(),
                    permission,
                ))
            }
            // The other modes ask about nothing at all. This one lets commands such as `mv` and `rm` run as well.
            Self::SetMode { mode } if mode == "acceptEdits" => Some((
                vec!["every edit of files of this project, also by commands such as mv and rm".to_owned()],
                json!({ "type": "setMode", "mode": mode, "destination": "session" }),
            )),
            Self::SetMode { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(suggestions: &[Value]) -> Option<Proposal> {
        let texts: Vec<String> = suggestions.iter().map(Value::to_string).collect();
        Proposal::read("Bash", texts.iter().map(String::as_str))
    }

    fn granted(proposal: &Proposal) -> Vec<Value> {
        let permissions = proposal.permissions.iter();
        permissions
            .map(|one| serde_json::from_str(one).unwrap())
            .collect()
    }

    fn rule(tool: &str, content: &str, behavior: &str) -> Value {
        json!({ "type": "addRules", "rules": [{ "toolName": tool, "ruleContent": content }], "behavior": behavior,
            "destination": "localSettings" })
    }

    #[test]
    fn what_is_granted_is_what_is_shown_and_lasts_no_longer_than_the_agent() {
        let proposal = read(&[
            rule("Bash", "npm test", "allow"),
            json!({ "type": "addDirectories", "directories": ["/a", "/b"], "destination": "userSettings" }),
        ])
        .unwrap();
        assert_eq!(
            proposal.grants,
            ["Bash(npm test)", "files below /a", "files below /b"]
        );
        assert_eq!(
            granted(&proposal),
            [
                json!({ "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "npm test" }],
                    "behavior": "allow", "destination": "session" }),
                json!({ "type": "addDirectories", "directories": ["/a", "/b"], "destination": "session" }),
            ]
        );
    }

    #[test]
    fn a_mode_is_offered_only_where_nothing_narrower_is() {
        let mode = || json!({ "type": "setMode", "mode": "acceptEdits", "destination": "userSettings" });
        let alone = read(&[mode()]).unwrap();
        assert_eq!(
            granted(&alone),
            [json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" })]
        );
        assert_eq!(
            alone.grants,
            ["every edit of files of this project, also by commands such as mv and rm"]
        );
        let beside = read(&[mode(), rule("Bash", "npm test", "allow")]).unwrap();
        assert_eq!(beside.grants, ["Bash(npm test)"]);
    }

    #[test]
    fn what_reaches_further_or_is_not_known_is_not_offered_and_the_rest_is() {
        let others = [
            rule("WebFetch", "domain:a.example", "allow"),
            rule("Bash", "rm", "deny"),
            json!({ "type": "addRules", "rules": [], "behavior": "allow" }),
            json!({ "type": "addRules", "rules": [{ "toolName": "Bash", "anywhere": true }], "behavior": "allow" }),
            json!({ "type": "setMode", "mode": "bypassPermissions" }),
            json!({ "type": "of_next_year" }),
            json!(["addRules"]),
        ];
        for other in &others {
            assert_eq!(read(std::slice::from_ref(other)), None, "{other}");
        }
        let mut mixed = others.to_vec();
        mixed.push(rule("Bash", "ls", "allow"));
        assert_eq!(read(&mixed).unwrap().grants, ["Bash(ls)"]);
    }

    #[test]
    fn what_is_too_long_to_be_read_is_not_offered() {
        assert_eq!(read(&[rule("Bash", &"x".repeat(LENGTH), "allow")]), None);
        let many: Vec<Value> = (0..=GRANTS)
            .map(|number| rule("Bash", &number.to_string(), "allow"))
            .collect();
        assert_eq!(read(&many), None);
        assert!(read(&many[1..]).is_some());
    }
}
