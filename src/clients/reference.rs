//! How the clients refer to variables, and the same in the spelling of pml: `${NAME}` and `${NAME:-default}`.
//!
//! What a client puts in place of a reference is not known here and not needed: pml's own entry in that client's file
//! hands the variable on, by the client's own reference.

use std::path::PathBuf;

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
    /// The client fills in a variable of its environment, by a reference of its own in pml's own entry.
    Reference {
        /// The variable of the environment.
        variable: String,
        /// The reference as the client spells it.
        spelled: String,
    },
    /// The client fills in what it alone knows, such as an input, by this reference of its own.
    Client(String),
    /// The client reads it, under this name, from this file of variables.
    File(PathBuf),
    /// The client has it in its environment, under this name, and passes it on.
    Environment,
    /// A person must set it: its value stays nowhere.
    Person,
}

impl std::fmt::Debug for NeededVariable {
    /// Names the variable and leaves its value out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let handover = match &self.handover {
            Handover::Value(_) => "value",
            Handover::Reference { .. } => "reference",
            Handover::Client(_) => "client",
            Handover::File(_) => "file",
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
        References::Curly => curly(text, needed),
        References::Braces | References::EnvColon | References::Dollar => {
            dollars(text, references, project, needed)
        }
    }
}

/// Returns a part of a rewritten text that holds no reference as the client has it.
pub(super) fn as_in_client(references: References, part: &str) -> String {
    match references {
        // What is text to these is a reference to pml, and was escaped.
        References::None | References::Curly => part.replace("$${", "${"),
        References::Braces | References::EnvColon | References::Dollar => part.to_owned(),
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
            let needed_as = need(needed, &name, filled_in(&name, format!("${name}")))?;
            out.extend(["${", &needed_as, "}"]);
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
            let name = need(needed, rest, filled_in(rest, spelled))?;
            Ok(format!("${{{name}}}"))
        }
        (References::EnvColon, "input") if !rest.is_empty() => {
            let name = need(needed, &variable_name(rest), Handover::Client(spelled))?;
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
            if name == inside {
                let name = need(needed, name, filled_in(name, spelled))?;
                return Ok(format!("${{{name}}}"));
            }
            // It has a default: it need not be set.
            need(needed, name, Handover::Environment)?;
            Ok(spelled)
        }
        _ => unknown(),
    }
}

fn curly(text: &str, needed: &mut Vec<NeededVariable>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(&before.replace("${", "$${"));
        // One that is never closed is text.
        let (inside, after) = from[1..].split_once('}').unwrap_or_default();
        if let Some(name) = inside.strip_prefix("env:").filter(|name| is_name(name)) {
            let name = need(needed, name, filled_in(name, format!("{{env:{name}}}")))?;
            out.extend(["${", &name, "}"]);
            rest = after;
        } else if let Some(path) = inside.strip_prefix("file:") {
            let name = variable_name(path.rsplit('/').next().unwrap_or(path));
            let name = need(needed, &name, Handover::Client(format!("{{file:{path}}}")))?;
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
    Ok(out)
}

fn filled_in(variable: &str, spelled: String) -> Handover {
    Handover::Reference {
        variable: variable.to_owned(),
        spelled,
    }
}

/// Takes note of a variable; returns the name it is referred to by, which is another where this one means another value.
pub(super) fn need(
    needed: &mut Vec<NeededVariable>,
    name: &str,
    handover: Handover,
) -> Result<String, String> {
    let mut variable = NeededVariable {
        name: name.to_owned(),
        handover,
    };
    while let Some(known) = needed.iter_mut().find(|known| known.name == variable.name) {
        if known.is_same_value(&variable) {
            known.take_stronger(variable.handover);
            return Ok(variable.name);
        }
        if variable.has_fixed_name() {
            return Err(format!("it has two values for `{}`", Shown::line(name)));
        }
        variable.name.push('_');
    }
    let name = variable.name.clone();
    needed.push(variable);
    Ok(name)
}

impl NeededVariable {
    /// Tells whether it can have no other name: it comes by this one.
    #[must_use]
    pub fn has_fixed_name(&self) -> bool {
        matches!(self.handover, Handover::Environment | Handover::File(_))
    }

    /// Returns the variable of the client's environment that it is, if it is one.
    #[must_use]
    pub fn environment_variable(&self) -> Option<&str> {
        match &self.handover {
            Handover::Reference { variable, .. } => Some(variable),
            Handover::Environment | Handover::Person => Some(&self.name),
            Handover::Value(_) | Handover::Client(_) | Handover::File(_) => None,
        }
    }

    fn is_same_value(&self, other: &Self) -> bool {
        match (self.environment_variable(), other.environment_variable()) {
            (None, None) => self.handover == other.handover,
            (own, others) => own == others,
        }
    }

    /// Takes a way to get the same value that asks less of the person.
    pub fn take_stronger(&mut self, handover: Handover) {
        if matches!(self.handover, Handover::Environment | Handover::Person)
            && matches!(handover, Handover::Reference { .. })
        {
            self.handover = handover;
        }
    }
}

/// Replaces the names of the references in a text that is in the spelling of pml.
#[must_use]
pub fn with_names(text: &str, name_of: &mut impl FnMut(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            out.push_str("$${");
            rest = after;
        } else if let Some((inside, after)) = rest.strip_prefix("${").and_then(|rest| rest.split_once('}')) {
            let (name, default) = match inside.find(":-") {
                Some(at) => inside.split_at(at),
                None => (inside, ""),
            };
            out.extend(["${", &name_of(name), default, "}"]);
            rest = after;
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

fn is_word(found: char) -> bool {
    found.is_ascii_alphanumeric() || found == '_'
}

/// Tells whether a text can name a variable.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit()) && text.chars().all(is_word)
}

/// Makes the name of a variable out of any words: `perplexity-key` becomes `PERPLEXITY_KEY`.
#[must_use]
pub fn variable_name(words: &str) -> String {
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
            Handover::Reference {
                spelled: reference, ..
            }
            | Handover::Client(reference) => format!("{}={reference}", variable.name),
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
    fn two_values_of_one_server_have_two_names() {
        let text = "${input:key} ${env:KEY} ${input:key} {env:KEY}";
        let (text, needed) = of(text, References::EnvColon);
        assert_eq!(text.unwrap(), "${KEY} ${KEY_} ${KEY} {env:KEY}");
        assert_eq!(needed, ["KEY=${input:key}", "KEY_=${env:KEY}"]);
        let mut needed = Vec::new();
        assert_eq!(
            need(&mut needed, "K", Handover::Value("v".to_owned())),
            Ok("K".to_owned())
        );
        let refused = need(&mut needed, "K", Handover::Environment);
        assert_eq!(refused, Err("it has two values for `K`".to_owned()));
    }

    #[test]
    fn names_are_replaced_in_references_alone() {
        let mut name_of = |name: &str| format!("X_{name}");
        assert_eq!(
            with_names("A ${A}$${B} ${C:-d:-e} $F ${G", &mut name_of),
            "A ${X_A}$${B} ${X_C:-d:-e} $F ${G"
        );
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
