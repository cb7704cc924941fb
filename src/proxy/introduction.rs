//! The introduction of all servers to the client: the union of their capabilities, and each server's instructions.
//!
//! A server that was never seen may be capable of anything, so it counts as if it were.

use serde_json::json;

use super::Proxy;
use crate::loader::Capabilities;
use crate::protocol::DependencyName;

/// What is behind pml, as a client is told at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// The raw capabilities: pml's own and what is behind it.
    pub capabilities: String,
    /// What servers tell a model about themselves.
    pub instructions: Vec<(DependencyName, String)>,
}

impl Introduction {
    /// Returns it for a client whose project is not known yet: servers that were never seen stand behind pml.
    #[must_use]
    pub fn before_the_project(self) -> Self {
        Self {
            capabilities: union(&[None]),
            ..self
        }
    }
}

impl Proxy {
    /// Returns what a client is told at the start; nothing is started for it.
    #[must_use]
    pub fn introduction(&self) -> Introduction {
        let Ok(view) = self.view() else {
            // A configuration that can be read again later may declare any capability.
            return Introduction {
                capabilities: union(&[None]),
                instructions: Vec::new(),
            };
        };
        let offerings = self.offerings(&view);
        let capabilities: Vec<Option<&Capabilities>> = offerings
            .iter()
            .map(|(_, known)| known.as_ref().and_then(|known| known.capabilities.as_ref()))
            .collect();
        let instructions = offerings.iter().filter_map(|(server, known)| {
            let text = known.as_ref()?.instructions.clone()?;
            Some((server.clone(), text))
        });
        Introduction {
            capabilities: union(&capabilities),
            instructions: instructions.collect(),
        }
    }
}

/// Joins the capabilities of all servers; `None` is a server that was never seen.
fn union(servers: &[Option<&Capabilities>]) -> String {
    let any = |having: &dyn Fn(&Capabilities) -> bool| servers.iter().any(|server| server.is_none_or(having));
    let changing = json!({ "listChanged": true }).to_string();
    let mut members = vec![
        ("tools".to_owned(), changing.clone()),
        ("prompts".to_owned(), changing),
    ];
    if any(&|capabilities| capabilities.has("resources")) {
        let subscribe = any(&|capabilities| capabilities.promises("resources", "subscribe"));
        let resources = json!({ "subscribe": subscribe, "listChanged": true });
        members.push(("resources".to_owned(), resources.to_string()));
    }
    for simple in ["completions", "logging"] {
        if any(&|capabilities| capabilities.has(simple)) {
            members.push((simple.to_owned(), "{}".to_owned()));
        }
    }
    // What pml does not know can be addressed only where there is one to address.
    if let [Some(only)] = servers {
        let known = ["tools", "prompts", "resources", "completions", "logging"];
        let others = only.members().into_iter();
        let others = others.filter(|(name, _)| !known.contains(&name.as_str()));
        members.extend(others.map(|(name, value)| (name, value.get().to_owned())));
    }
    let members: Vec<String> = members
        .into_iter()
        .map(|(name, value)| format!("{}:{value}", json!(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Json;

    fn capable(text: &str) -> Capabilities {
        Capabilities::new(Json::parse(text).unwrap()).unwrap()
    }

    const OWN: &str = r#""tools":{"listChanged":true},"prompts":{"listChanged":true}"#;

    #[test]
    fn without_servers_only_pml_is_told() {
        assert_eq!(union(&[]), format!("{{{OWN}}}"));
        assert_eq!(union(&[Some(&capable("{}"))]), format!("{{{OWN}}}"));
    }

    #[test]
    fn a_server_that_was_never_seen_may_do_anything() {
        let everything = r#""resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}"#;
        assert_eq!(union(&[None]), format!("{{{OWN},{everything}}}"));
        assert_eq!(
            union(&[Some(&capable("{}")), None]),
            format!("{{{OWN},{everything}}}")
        );
    }

    #[test]
    fn capabilities_are_joined_and_what_pml_does_not_know_passes_from_one_server_alone() {
        let one = capable(r#"{"resources":{},"x-y":{ "n":1.0 },"tasks":{"list":{}},"prompts":{}}"#);
        let two = capable(r#"{"completions":{},"experimental":{"a":{}}}"#);
        assert_eq!(
            union(&[Some(&one)]),
            format!(
                r#"{{{OWN},"resources":{{"subscribe":false,"listChanged":true}},"x-y":{{ "n":1.0 }},"tasks":{{"list":{{}}}}}}"#
            )
        );
        assert_eq!(
            union(&[Some(&one), Some(&two)]),
            format!(r#"{{{OWN},"resources":{{"subscribe":false,"listChanged":true}},"completions":{{}}}}"#)
        );
    }
}
