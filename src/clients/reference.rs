//! How the clients refer to variables, and the same in the spelling of pml: `${NAME}` and `${NAME:-default}`.
//!
//! What a client puts in place of a reference is not known here and not needed: pml's own entry in that client's file
//! hands the variable on, by the client's own reference.

use crate::protocol::Shown;

/// How a client spells a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// `${NAME}` and `${NAME:-default}`, as pml does.
    Braces,
    /// `${env:NAME}`, and `${input:id}`, `${workspaceFolder}` and others of an editor.
    EnvColon,
    /// `$NAME` and `${NAME}`.
    Dollar,
    /// `{env:NAME}` and `{file:PATH}`.
    Curly,
    /// It has none: a `${` is text.
    None,
}

/// A variable that a server behind pml needs from the client that starts pml.
#[derive(Clone, PartialEq, Eq)]
pub struct NeededVariable {
    /// What pml calls it.
    pub name: String,
    /// How pml gets it.
    pub handover: Handover,
}

/// How pml gets a variable.
#[derive(Clone, PartialEq, Eq)]
pub enum Handover {
    /// The client's file holds its value, which moves into pml's own entry there.
    Value(String),
    /// The client fills in a reference of its own in pml's own entry.
    Reference(String),
    /// The client has it and passes it on.
    Environment,
    /// A person must set it: its value stays nowhere.
    Person,
}

impl std::fmt::Debug for NeededVariable {
    /// Names the variable and leaves its value out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let handover = match &self.handover {
            Handover::Value(_) => "value",
            Handover::Reference(_) => "reference",
            Handover::Environment => "environment",
            Handover::Person => "person",
        };
        formatter
            .debug_tuple("NeededVariable")
            .field(&self.name)
            .field(&handover)
            .finish()
    }
}

/// What stands for the directory of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProjectDirectory {
    /// A server of the project is started in it.
    Here,
    /// A server of the user has no project.
    Unknown,
}

/// Rewrites the references of a text; takes note of the variables that it needs. An error says what cannot be taken.
pub(super) fn rewritten(
    text: &str,
    references: References,
    project: ProjectDirectory,
    needed: &mut Vec<NeededVariable>,
) -> Result<String, String> {
    match references {
        References::None => Ok(text.replace("${", "$${")),
        References::Curly => Ok(curly(text, needed)),
        References::Braces | References::EnvColon | References::Dollar => {
            dollars(text, references, project, needed)
        }
    }
}

/// Returns the references that stay in a text in the spelling of pml, for texts that were rewritten already.
pub(super) fn is_reference(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}

fn dollars(
    text: &str,
    references: References,
    project: ProjectDirectory,
    needed: &mut Vec<NeededVariable>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("${") {
            let (inside, after) = after
                .split_once('}')
                .ok_or_else(|| "a `${` is never closed".to_owned())?;
            out.push_str(&reference(inside, references, project, needed)?);
            rest = after;
            continue;
        }
        let name: String = rest[1..].chars().take_while(|found| is_word(*found)).collect();
        if references == References::Dollar && is_name(&name) {
            need(needed, &name, Handover::Reference(format!("${name}")));
            out.extend(["${", &name, "}"]);
            rest = &rest[1 + name.len()..];
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn reference(
    inside: &str,
    references: References,
    project: ProjectDirectory,
    needed: &mut Vec<NeededVariable>,
) -> Result<String, String> {
    let unknown = || {
        Err(format!(
            "`${{{}}}` is known to the client alone",
            Shown::line(inside)
        ))
    };
    let spelled = format!("${{{inside}}}");
    let (kind, rest) = inside.split_once(':').unwrap_or((inside, ""));
    match (references, kind) {
        (References::EnvColon, "env") if is_name(rest) => {
            need(needed, rest, Handover::Reference(spelled));
            Ok(format!("${{{rest}}}"))
        }
        (References::EnvColon, "input") if !rest.is_empty() => {
            let name = variable_name(rest);
            need(needed, &name, Handover::Reference(spelled));
            Ok(format!("${{{name}}}"))
        }
        (References::EnvColon, "userHome") => Ok("${HOME}".to_owned()),
        (References::EnvColon, "pathSeparator" | "/") => Ok("/".to_owned()),
        (References::EnvColon, "workspaceFolder" | "workspaceRoot")
        | (References::Braces, "CLAUDE_PROJECT_DIR") => match project {
            ProjectDirectory::Here => Ok(".".to_owned()),
            ProjectDirectory::Unknown => Err(format!(
                "`{spelled}` means nothing in the user's file; to put it into the project's: pml import --project"
            )),
        },
        (References::Braces, "CLAUDE_PLUGIN_ROOT") => unknown(),
        (References::Braces | References::Dollar, _) => {
            let name = inside.split_once(":-").map_or(inside, |(name, _default)| name);
            if !is_name(name) {
                return unknown();
            }
            let handover = if name == inside {
                Handover::Reference(spelled.clone())
            } else {
                // It has a default: it need not be set.
                Handover::Environment
            };
            need(needed, name, handover);
            Ok(spelled)
        }
        _ => unknown(),
    }
}

fn curly(text: &str, needed: &mut Vec<NeededVariable>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(&before.replace("${", "$${"));
        // One that is never closed is text.
        let (inside, after) = from[1..].split_once('}').unwrap_or_default();
        if let Some(name) = inside.strip_prefix("env:").filter(|name| is_name(name)) {
            need(needed, name, Handover::Reference(format!("{{env:{name}}}")));
            out.extend(["${", name, "}"]);
            rest = after;
        } else if let Some(path) = inside.strip_prefix("file:") {
            let name = variable_name(path.rsplit('/').next().unwrap_or(path));
            need(needed, &name, Handover::Reference(format!("{{file:{path}}}")));
            out.extend(["${", &name, "}"]);
            rest = after;
        } else {
            // A `${` is text to this client and a reference to pml.
            if out.ends_with('$') {
                out.push('$');
            }
            out.push('{');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    out
}

/// Takes note of a variable; the first way to get it counts.
pub(super) fn need(needed: &mut Vec<NeededVariable>, name: &str, handover: Handover) {
    if needed.iter().all(|known| known.name != name) {
        needed.push(NeededVariable {
            name: name.to_owned(),
            handover,
        });
    }
}

fn is_word(found: char) -> bool {
    found.is_ascii_alphanumeric() || found == '_'
}

/// Tells whether a text can name a variable.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit()) && text.chars().all(is_word)
}

/// Makes the name of a variable out of any words: `perplexity-key` becomes `PERPLEXITY_KEY`.
pub(super) fn variable_name(words: &str) -> String {
    let name: String = words
        .chars()
        .map(|found| {
            if found.is_ascii_alphanumeric() {
                found.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if is_name(&name) {
        name
    } else {
        format!("VAR_{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, references: References) -> (Result<String, String>, Vec<String>) {
        let mut needed = Vec::new();
        let text = rewritten(text, references, ProjectDirectory::Here, &mut needed);
        let needed = needed.into_iter().map(|variable| match variable.handover {
            Handover::Reference(reference) => format!("{}={reference}", variable.name),
            _ => variable.name,
        });
        (text, needed.collect())
    }

    #[test]
    fn every_client_is_read_in_its_own_spelling() {
        for (references, text, expected, needed) in [
            (References::Braces, "a ${B:-c} $D", "a ${B:-c} $D", vec!["B"]),
            (
                References::EnvColon,
                "x ${env:KEY}",
                "x ${KEY}",
                vec!["KEY=${env:KEY}"],
            ),
            (
                References::EnvColon,
                "${input:my-key}",
                "${MY_KEY}",
                vec!["MY_KEY=${input:my-key}"],
            ),
            (References::EnvColon, "${workspaceFolder}/a", "./a", vec![]),
            (References::EnvColon, "${userHome}${/}a", "${HOME}/a", vec![]),
            (
                References::Dollar,
                "$KEY-${OTHER} $1",
                "${KEY}-${OTHER} $1",
                vec!["KEY=$KEY", "OTHER=${OTHER}"],
            ),
            (
                References::Curly,
                "Bearer {env:KEY}",
                "Bearer ${KEY}",
                vec!["KEY={env:KEY}"],
            ),
            (References::Curly, "{\"a\": ${b}", "{\"a\": $${b}", vec![]),
            (References::Curly, "a {b ${c", "a {b $${c", vec![]),
            (References::None, "${KEY}", "$${KEY}", vec![]),
        ] {
            assert_eq!(
                of(text, references),
                (
                    Ok(expected.to_owned()),
                    needed.into_iter().map(str::to_owned).collect()
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn what_only_the_client_knows_is_said() {
        let (refused, _) = of("${command:pick}", References::EnvColon);
        assert_eq!(
            refused.unwrap_err(),
            "`${command:pick}` is known to the client alone"
        );
        let (refused, _) = of("${CLAUDE_PLUGIN_ROOT}/x", References::Braces);
        assert!(refused.is_err());
        let user = rewritten(
            "${workspaceFolder}",
            References::EnvColon,
            ProjectDirectory::Unknown,
            &mut Vec::new(),
        );
        assert!(user.unwrap_err().contains("pml import --project"));
    }
}
