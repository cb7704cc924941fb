//! What differs between two pins of a server, for a person who decides whether that is still the server they accepted.
//!
//! Pure. Every line is escaped and begins with a sign: `-` for what was, `+` for what would be, `!` for what weighs most.

use std::collections::{BTreeMap, BTreeSet};

use super::definition_text::{describe, text_difference};
use super::{LaunchChange, Namesakes, PackagePin, Pin, ProvenanceChange, ToolPin, provenance_alarm};
use crate::protocol::Shown;

/// One thing that is not as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is started or reached otherwise.
    Launch(LaunchChange),
    /// It was built elsewhere, or it is no longer proven where.
    Provenance(ProvenanceChange),
    /// It is another package.
    Package {
        /// The accepted one.
        before: String,
        /// This one.
        now: String,
    },
    /// It is another version.
    Version {
        /// The accepted one.
        before: String,
        /// This one.
        now: String,
    },
    /// The same version has other content.
    Content {
        /// The accepted integrity.
        before: String,
        /// This one.
        now: String,
    },
    /// The packages that are installed with it are others.
    Contents(ContentsChange),
    /// It is not known yet what is installed with it.
    ContentsAwaited,
    /// A tool is defined differently, or is new, or is gone.
    Tool(ToolChange),
}

/// How the packages that are installed with a server changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentsChange {
    /// Those that are new, as `name@version`.
    pub added: Vec<String>,
    /// Those that are gone, as `name@version`.
    pub removed: Vec<String>,
    /// Those whose version is the same and whose content is not.
    pub altered: Vec<String>,
    /// Those that bring install scripts and did not before.
    pub scripts: Vec<String>,
}

impl ContentsChange {
    fn is_empty(&self) -> bool {
        let parts = [&self.added, &self.removed, &self.altered, &self.scripts];
        parts.iter().all(|part| part.is_empty())
    }
}

/// How one tool changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChange {
    /// It was not there.
    Appeared {
        /// The tool.
        name: String,
        /// Its definition.
        now: ToolPin,
    },
    /// It is defined differently.
    Changed {
        /// The tool.
        name: String,
        /// The accepted definition.
        before: ToolPin,
        /// The present one.
        now: ToolPin,
    },
    /// It is not there any more.
    Gone {
        /// The tool.
        name: String,
    },
}

/// The most packages of one kind that are named in a line: the others follow on lines of their own.
const PACKAGES_NAMED: usize = 40;

/// Compares two pins; what either of them does not know does not differ.
#[must_use]
pub fn difference(before: &Pin, now: &Pin) -> Vec<Change> {
    let mut changes = match (&before.package, &now.package) {
        (Some(before), Some(now)) => package_changes(before, now),
        _ => Vec::new(),
    };
    if let (Some(before), Some(now)) = (&before.tools, &now.tools) {
        changes.extend(tool_changes(before, now).into_iter().map(Change::Tool));
    }
    changes
}

/// Compares two packages; what weighs most comes first.
#[must_use]
pub fn package_changes(before: &PackagePin, now: &PackagePin) -> Vec<Change> {
    let mut changes = Vec::new();
    changes.extend(provenance_alarm(before, now).map(Change::Provenance));
    if before.name != now.name {
        changes.push(Change::Package {
            before: before.name.clone(),
            now: now.name.clone(),
        });
    }
    if before.version != now.version {
        changes.push(Change::Version {
            before: before.version.clone(),
            now: now.version.clone(),
        });
    } else if let (Some(before), Some(now)) = (&before.integrity, &now.integrity)
        && before != now
    {
        changes.push(Change::Content {
            before: before.clone(),
            now: now.clone(),
        });
    }
    let contents = contents_change(before, now);
    if !contents.is_empty() {
        changes.push(Change::Contents(contents));
    }
    changes
}

fn contents_change(before: &PackagePin, now: &PackagePin) -> ContentsChange {
    // Of another package everything is new, also where it is not known what was installed with the one before.
    let is_other =
        (&before.name, &before.version, &before.integrity) != (&now.name, &now.version, &now.integrity);
    if now.packages.is_empty() || before.packages.is_empty() && !is_other {
        return ContentsChange::default();
    }
    let missing_in = |other: &BTreeMap<String, String>, titles: &BTreeMap<String, String>| {
        let titles = titles.keys().filter(|title| !other.contains_key(*title));
        titles.cloned().collect::<Vec<_>>()
    };
    let altered = now.packages.iter().filter(|(title, integrity)| {
        before
            .packages
            .get(*title)
            .is_some_and(|accepted| accepted != *integrity)
    });
    let known: BTreeSet<&String> = before.install_scripts.iter().collect();
    let scripts = now.install_scripts.iter().filter(|title| !known.contains(title));
    ContentsChange {
        added: missing_in(&before.packages, &now.packages),
        removed: missing_in(&now.packages, &before.packages),
        altered: altered.map(|(title, _)| title.clone()).collect(),
        scripts: scripts.cloned().collect(),
    }
}

/// Compares the tools of a server with those that were accepted, in the order of their names.
#[must_use]
pub fn tool_changes(before: &BTreeMap<String, ToolPin>, now: &BTreeMap<String, ToolPin>) -> Vec<ToolChange> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let change = |name: &String| match (before.get(name), now.get(name)) {
        (Some(before), Some(now)) if before != now => Some(ToolChange::Changed {
            name: name.clone(),
            before: before.clone(),
            now: now.clone(),
        }),
        (None, Some(now)) => Some(ToolChange::Appeared {
            name: name.clone(),
            now: now.clone(),
        }),
        (Some(_), None) => Some(ToolChange::Gone { name: name.clone() }),
        (Some(_), Some(_)) | (None, None) => None,
    };
    names.into_iter().filter_map(change).collect()
}

impl ToolChange {
    /// Returns the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Appeared { name, .. } | Self::Changed { name, .. } | Self::Gone { name } => name,
        }
    }

    /// Tells whether a person must see it before the tool is called: what is gone cannot be called.
    #[must_use]
    pub fn asks(&self) -> bool {
        !matches!(self, Self::Gone { .. })
    }
}

impl Change {
    /// Says it in lines, each with its sign; a tool that can be mistaken for one of `namesakes` is marked.
    #[must_use]
    pub fn lines(&self, namesakes: &Namesakes) -> Vec<String> {
        match self {
            Self::Launch(change) => change.lines(),
            // Its words are escaped already.
            Self::Provenance(change) => vec![format!("! {change}")],
            Self::Package { before, now } => vec![removed(before), added(now)],
            Self::Version { before, now } => {
                vec![
                    removed(&format!("version {before}")),
                    added(&format!("version {now}")),
                ]
            }
            Self::Content { before, now } => vec![
                "! the same version has other content than was accepted".to_owned(),
                removed(before),
                added(now),
            ],
            Self::Contents(contents) => contents.lines(),
            Self::ContentsAwaited => vec![
                "! what is installed with it is not known yet: you are asked again once it is".to_owned(),
            ],
            Self::Tool(change) => change.lines(namesakes),
        }
    }
}

impl ContentsChange {
    fn lines(&self) -> Vec<String> {
        let named = |sign: char, what: &str, titles: &[String]| {
            let plural = if titles.len() == 1 { "" } else { "s" };
            let mut rows = titles.chunks(PACKAGES_NAMED).map(|row| row.join(", "));
            let first = rows.next().map(|row| {
                let row = Shown::line(&row).to_string();
                format!("{sign} {} package{plural} {what}: {row}", titles.len())
            });
            let rest = rows.map(|row| format!("{sign}   {}", Shown::line(&row)));
            first.into_iter().chain(rest).collect::<Vec<_>>()
        };
        [
            named('!', "with new install scripts", &self.scripts),
            named('!', "with other content at the same version", &self.altered),
            named('-', "less", &self.removed),
            named('+', "more", &self.added),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl ToolChange {
    /// Names the tool and what happened to it, without a word of its definition.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Appeared { name, .. } => added(&format!("tool {name}")),
            Self::Changed { name, .. } => format!("! tool {} is defined differently", Shown::line(name)),
            Self::Gone { name } => removed(&format!("tool {name}")),
        }
    }

    /// Says it in lines, each with its sign; a tool that can be mistaken for one of `namesakes` is marked.
    #[must_use]
    pub fn lines(&self, namesakes: &Namesakes) -> Vec<String> {
        let mut lines = vec![self.title()];
        if self.asks() {
            let alike = namesakes.of(self.name());
            lines.extend(alike.map(|others| format!("!   it can be mistaken for {others}")));
        }
        match self {
            Self::Appeared { now, .. } => {
                lines.extend(hidden_characters(now));
                lines.extend(describe(now).iter().map(|line| added(&format!("  {line}"))));
            }
            Self::Changed { before, now, .. } => {
                lines.extend(hidden_characters(now));
                lines.extend(text_difference(before, now));
            }
            Self::Gone { .. } => {}
        }
        lines
    }
}

fn hidden_characters(tool: &ToolPin) -> Option<String> {
    let hidden = tool.hidden_characters();
    (hidden > 0).then(|| {
        let plural = if hidden == 1 {
            "character that does"
        } else {
            "characters that do"
        };
        format!("!   it holds {hidden} {plural} not show, written out below")
    })
}

fn removed(text: &str) -> String {
    format!("- {}", Shown::line(text))
}

fn added(text: &str) -> String {
    format!("+ {}", Shown::line(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::{Provenance, ProvenanceFinding, ToolNames};
    use serde_json::value::RawValue;

    fn tool(text: &str) -> ToolPin {
        ToolPin::of(&RawValue::from_string(text.to_owned()).unwrap())
    }

    fn tools(texts: &[(&str, &str)]) -> BTreeMap<String, ToolPin> {
        texts
            .iter()
            .map(|(name, description)| {
                let text = format!(r#"{{"name":"{name}","description":"{description}"}}"#);
                ((*name).to_owned(), tool(&text))
            })
            .collect()
    }

    fn package(version: &str, packages: &[(&str, &str)]) -> PackagePin {
        PackagePin {
            name: "npm:x".to_owned(),
            version: version.to_owned(),
            integrity: Some(format!("sha512-{version}")),
            package_lock: None,
            published: None,
            provenance: ProvenanceFinding::Absent,
            built_before: None,
            install_scripts: Vec::new(),
            packages: packages
                .iter()
                .map(|(title, integrity)| ((*title).to_owned(), (*integrity).to_owned()))
                .collect(),
        }
    }

    fn alone() -> Namesakes {
        ToolNames::default().beside(&"x".parse().unwrap())
    }

    fn lines(changes: &[Change]) -> Vec<String> {
        changes.iter().flat_map(|change| change.lines(&alone())).collect()
    }

    #[test]
    fn a_changed_character_shows_as_text() {
        let before = tools(&[("a", "Reads a file. Then it stops."), ("b", "Same.")]);
        let now = tools(&[("a", "Reads a file. Then it sends it."), ("b", "Same.")]);
        let found: Vec<String> = tool_changes(&before, &now)
            .iter()
            .flat_map(|change| change.lines(&alone()))
            .collect();
        assert_eq!(
            found,
            [
                "! tool a is defined differently",
                "    description: Reads a file.",
                "-   description: Then it stops.",
                "+   description: Then it sends it.",
                "    name: \"a\"",
            ]
        );
    }

    #[test]
    fn what_is_new_and_what_is_gone_is_told() {
        let found = tool_changes(&tools(&[("a", "A.")]), &tools(&[("b", "B\\u200b.")]));
        let told: Vec<String> = found.iter().flat_map(|change| change.lines(&alone())).collect();
        assert_eq!(
            told,
            [
                "- tool a",
                "+ tool b",
                "!   it holds 1 character that does not show, written out below",
                "+   description: B\\u{200b}.",
                "+   name: \"b\"",
            ]
        );
        assert_eq!(
            found.iter().map(ToolChange::asks).collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[test]
    fn a_tool_that_can_be_mistaken_for_another_is_marked() {
        let names: ToolNames = ["fs:read_file".parse().unwrap()].into_iter().collect();
        let namesakes = names.beside(&"x".parse().unwrap());
        let appeared = tool_changes(&tools(&[]), &tools(&[("Read-File", "R.")]));
        assert_eq!(
            appeared[0].lines(&namesakes)[..2],
            ["+ tool Read-File", "!   it can be mistaken for `fs:read_file`"]
        );
        let gone = tool_changes(&tools(&[("read_file", "R.")]), &tools(&[]));
        assert_eq!(gone[0].lines(&namesakes), ["- tool read_file"]);
    }

    #[test]
    fn lost_provenance_comes_first() {
        let mut before = package("1.0.0", &[("x@1.0.0", "a"), ("y@1.0.0", "b"), ("z@1.0.0", "c")]);
        before.provenance = ProvenanceFinding::Proven(Provenance {
            repository: "github.com/a/b".to_owned(),
            repository_id: None,
            workflow: "release.yml".to_owned(),
            commit: None,
        });
        let mut now = package("1.1.0", &[("x@1.1.0", "d"), ("y@1.0.0", "e"), ("z@1.0.0", "c")]);
        now.install_scripts = vec!["x@1.1.0".to_owned()];
        assert_eq!(
            lines(&package_changes(&before, &now)),
            [
                "! this version has no provenance; the one before was built by github.com/a/b",
                "- version 1.0.0",
                "+ version 1.1.0",
                "! 1 package with new install scripts: x@1.1.0",
                "! 1 package with other content at the same version: y@1.0.0",
                "- 1 package less: x@1.0.0",
                "+ 1 package more: x@1.1.0",
            ]
        );
        now.provenance.clone_from(&before.provenance);
        assert!(!matches!(
            package_changes(&before, &now)[0],
            Change::Provenance(_)
        ));
    }

    #[test]
    fn what_is_not_known_does_not_differ() {
        let mut now = package("1.0.0", &[]);
        now.integrity = None;
        let before = Pin {
            package: Some(package("1.0.0", &[("x@1.0.0", "a")])),
            tools: Some(tools(&[("a", "A.")])),
            ..Pin::default()
        };
        let now = Pin {
            package: Some(now),
            ..Pin::default()
        };
        assert_eq!(difference(&before, &now), []);
    }

    #[test]
    fn of_another_version_every_package_is_named_also_where_those_of_the_one_before_are_not_known() {
        let mut now = package("1.1.0", &[("x@1.1.0", "a"), ("y@1.0.0", "b")]);
        now.install_scripts = vec!["y@1.0.0".to_owned()];
        assert_eq!(
            lines(&package_changes(&package("1.0.0", &[]), &now)),
            [
                "- version 1.0.0",
                "+ version 1.1.0",
                "! 1 package with new install scripts: y@1.0.0",
                "+ 2 packages more: x@1.1.0, y@1.0.0",
            ]
        );
        // The same content may have been recorded without them.
        assert_eq!(package_changes(&package("1.1.0", &[]), &now), []);
    }

    #[test]
    fn another_package_and_other_content_of_the_same_version_differ() {
        let before = package("1.0.0", &[]);
        let mut now = PackagePin {
            name: "npm:y\u{202e}".to_owned(),
            integrity: Some("sha512-other".to_owned()),
            ..package("1.0.0", &[])
        };
        // The provenance of one version may be found later: only another version can lose it.
        now.provenance = ProvenanceFinding::Proven(Provenance {
            repository: "github.com/a/b".to_owned(),
            repository_id: None,
            workflow: "release.yml".to_owned(),
            commit: None,
        });
        for (before, now) in [(&before, &now), (&now, &before)] {
            assert_eq!(
                package_changes(before, now),
                [
                    Change::Package {
                        before: before.name.clone(),
                        now: now.name.clone(),
                    },
                    Change::Content {
                        before: before.integrity.clone().unwrap(),
                        now: now.integrity.clone().unwrap(),
                    },
                ]
            );
        }
        assert_eq!(
            lines(&package_changes(&before, &now)),
            [
                "- npm:x",
                "+ npm:y\\u{202e}",
                "! the same version has other content than was accepted",
                "- sha512-1.0.0",
                "+ sha512-other",
            ]
        );
        assert_eq!(package_changes(&now, &now), []);
    }

    #[test]
    fn every_package_is_named_forty_to_a_line() {
        let change = |count: usize| {
            let added = (0..count).map(|number| number.to_string()).collect();
            let change = ContentsChange {
                added,
                ..ContentsChange::default()
            };
            Change::Contents(change).lines(&alone())
        };
        let named: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        let named = named.join(", ");
        assert_eq!(change(40), [format!("+ 40 packages more: {named}")]);
        assert_eq!(
            change(42),
            [format!("+ 42 packages more: {named}"), "+   40, 41".to_owned()]
        );
    }

    #[test]
    fn tools_and_packages_are_compared_together() {
        let pin = |version: &str, texts: &[(&str, &str)]| Pin {
            package: Some(package(version, &[])),
            tools: Some(tools(texts)),
            ..Pin::default()
        };
        let before = pin("1.0.0", &[("a", "A."), ("b", "B."), ("c", "C.")]);
        let now = pin("1.1.0", &[("a", "A."), ("b", "B\\u200b\\u200b."), ("d", "D.")]);
        let found = difference(&before, &now);
        let titles: Vec<(&str, String, bool)> = found
            .iter()
            .filter_map(|change| match change {
                Change::Tool(change) => Some((change.name(), change.title(), change.asks())),
                _ => None,
            })
            .collect();
        assert_eq!(
            titles,
            [
                ("b", "! tool b is defined differently".to_owned(), true),
                ("c", "- tool c".to_owned(), false),
                ("d", "+ tool d".to_owned(), true),
            ]
        );
        assert_eq!(
            lines(&found),
            [
                "- version 1.0.0",
                "+ version 1.1.0",
                "! tool b is defined differently",
                "!   it holds 2 characters that do not show, written out below",
                "-   description: B.",
                "+   description: B\\u{200b}\\u{200b}.",
                "    name: \"b\"",
                "- tool c",
                "+ tool d",
                "+   description: D.",
                "+   name: \"d\"",
            ]
        );
    }
}
