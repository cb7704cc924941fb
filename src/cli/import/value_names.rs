//! Which value each variable stands for: one name never means two, in whatever client pml is started.
//!
//! Pure. A server behind pml gets what pml's environment has under the names that its declaration refers to, whichever
//! client filled that environment. So a name is given to a server only if all that is known of it (what clients hand to
//! pml already, earlier imports, what is declared, the environment of now) is that very value; else another is made up.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::clients::{Handover, NeededVariable, variable_name, with_names};
use crate::config::Environment;
use crate::protocol::{DependencyName, Digest, Shown};

/// What is known of all names.
#[derive(Debug)]
pub(super) struct HandedValues<'a> {
    environment: &'a Environment,
    known: BTreeMap<String, Vec<Known>>,
}

/// What is known of a name.
#[derive(Debug)]
struct Known {
    source: ValueSource,
    by: KnownBy,
}

/// From where it is known.
#[derive(Debug, PartialEq, Eq)]
enum KnownBy {
    /// The entry of pml in this file of a client.
    Entry(PathBuf),
    /// A server that is declared, or will be.
    Server,
    /// An earlier import.
    Journal,
    /// A server that was found, and can have it by this name alone.
    Reservation,
}

/// Where a value comes from: two that are equal are one value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueSource {
    /// The variable of this name in the environment of whatever starts pml.
    Environment(String),
    /// A value that stands in the clear in a client's file.
    Value(Digest),
    /// Something that the client of this file alone fills in, by this reference.
    Client { file: PathBuf, reference: String },
    /// A variable in a file of variables.
    File { path: PathBuf, name: String },
}

impl ValueSource {
    fn of(file: &Path, variable: &NeededVariable) -> Self {
        match &variable.handover {
            Handover::Value(value) => Self::Value(digest(value.as_ref())),
            Handover::Reference { variable, .. } => Self::Environment(variable.clone()),
            Handover::Environment | Handover::Person => Self::Environment(variable.name.clone()),
            Handover::Client(reference) => Self::Client {
                file: file.to_owned(),
                reference: reference.clone(),
            },
            Handover::File(path) => Self::File {
                path: path.clone(),
                name: variable.name.clone(),
            },
        }
    }

    /// Returns a name that no other value has.
    fn canonical_name(&self) -> String {
        match self {
            Self::Environment(name) => name.clone(),
            Self::Value(digest) => format!("VALUE_{digest}"),
            Self::Client { file, reference } => {
                let file = file.as_os_str().as_encoded_bytes();
                format!("CLIENT_{}", Digest::of([file, reference.as_bytes()]))
            }
            Self::File { path, name } => {
                let path = path.as_os_str().as_encoded_bytes();
                format!("FILE_{}", Digest::of([path, name.as_bytes()]))
            }
        }
    }
}

fn digest(value: &OsStr) -> Digest {
    Digest::of([value.as_encoded_bytes()])
}

impl<'a> HandedValues<'a> {
    pub(super) fn new(environment: &'a Environment) -> Self {
        Self {
            environment,
            known: BTreeMap::new(),
        }
    }

    /// Takes note of what an earlier import wrote down.
    pub(super) fn imported(&mut self, handed: &BTreeMap<String, Digest>) {
        for (name, digest) in handed {
            self.note(name, ValueSource::Value(digest.clone()), KnownBy::Journal);
        }
    }

    /// Takes note of a variable that the entry of pml in a client's file hands over.
    pub(super) fn standing(&mut self, file: &Path, variable: &NeededVariable) {
        let source = ValueSource::of(file, variable);
        self.note(&variable.name, source, KnownBy::Entry(file.to_owned()));
    }

    /// Takes note of the references of a declared server, once all else that stands anywhere is known.
    pub(super) fn declared(&mut self, entry: &Map<String, Value>) {
        for name in references(entry) {
            if !self.known.contains_key(&name) {
                let source = ValueSource::Environment(name.clone());
                self.note(&name, source, KnownBy::Server);
            }
        }
    }

    /// Keeps the name of a variable, if it can have no other, from being given to another value.
    pub(super) fn reserve(&mut self, file: &Path, variable: &NeededVariable) {
        if variable.has_fixed_name() || matches!(variable.handover, Handover::Reference { .. }) {
            let source = ValueSource::of(file, variable);
            self.note(&variable.name, source, KnownBy::Reservation);
        }
    }

    /// Decides by which name a server, `called` so by the client of `file`, refers to a variable; an error says why it
    /// cannot have it.
    pub(super) fn name(
        &mut self,
        server: &DependencyName,
        called: &str,
        file: &Path,
        variable: &NeededVariable,
    ) -> Result<String, String> {
        let source = ValueSource::of(file, variable);
        let wanted = &variable.name;
        let name = if variable.has_fixed_name() {
            let others = self.known.get(wanted).into_iter().flatten();
            let is_other = |known: &&Known| known.by != KnownBy::Reservation && known.source != source;
            if { others }.find(is_other).is_some() {
                return Err(format!(
                    "`{}` stands for another value already, which is that of another server",
                    Shown::line(wanted)
                ));
            }
            wanted.clone()
        } else {
            let prefix = format!("{}_", variable_name(called));
            let rest = wanted.strip_prefix(&prefix).unwrap_or(wanted);
            let own = format!("{}_{rest}", variable_name(server.as_str()));
            let numbered = (2..=u16::MAX).map(|number| format!("{own}_{number}"));
            let mut candidates = [wanted.clone(), own.clone()].into_iter().chain(numbered);
            candidates
                .find(|candidate| self.is_free(candidate, &source))
                .ok_or("no name is left for one of its variables")?
        };
        self.note(&name, source, KnownBy::Server);
        Ok(name)
    }

    /// Returns an entry in which each reference names the value that it stands for, where pml is started by `file`.
    pub(super) fn canonical(&self, file: &Path, entry: &Map<String, Value>) -> Map<String, Value> {
        renamed(entry, &mut |name| self.meaning(file, name))
    }

    /// Returns the same of an entry whose variables come from that file.
    pub(super) fn canonical_found(
        file: &Path,
        entry: &Map<String, Value>,
        variables: &[NeededVariable],
    ) -> Map<String, Value> {
        renamed(entry, &mut |name| {
            let own = variables.iter().find(|variable| variable.name == name);
            own.map_or_else(
                || name.to_owned(),
                |own| ValueSource::of(file, own).canonical_name(),
            )
        })
    }

    /// Returns the variables of a found server by the names that a declared one, which is the same, has for them.
    pub(super) fn as_declared(
        &self,
        file: &Path,
        declared: &Map<String, Value>,
        variables: &[NeededVariable],
    ) -> Vec<NeededVariable> {
        let references = references(declared).into_iter();
        let of = |name: String| {
            let meaning = self.meaning(file, &name);
            let same =
                |variable: &&NeededVariable| ValueSource::of(file, variable).canonical_name() == meaning;
            let handover = variables.iter().find(same)?.handover.clone();
            Some(NeededVariable { name, handover })
        };
        references.filter_map(of).collect()
    }

    /// Returns which value each name stands for that a server got.
    pub(super) fn of_servers(&self) -> BTreeMap<String, Digest> {
        let all = self.known.iter().flat_map(|(name, known)| {
            known.iter().filter_map(move |known| match &known.source {
                ValueSource::Value(digest) if known.by == KnownBy::Server => {
                    Some((name.clone(), digest.clone()))
                }
                _ => None,
            })
        });
        all.collect()
    }

    fn note(&mut self, name: &str, source: ValueSource, by: KnownBy) {
        self.known
            .entry(name.to_owned())
            .or_default()
            .push(Known { source, by });
    }

    fn is_free(&self, name: &str, source: &ValueSource) -> bool {
        let known = self.known.get(name).into_iter().flatten();
        let set = self.environment.variable(name);
        let fits = match source {
            ValueSource::Environment(own) => own == name || set == self.environment.variable(own),
            ValueSource::Value(own) => set.is_none_or(|set| digest(set) == *own),
            ValueSource::Client { .. } | ValueSource::File { .. } => set.is_none(),
        };
        fits && { known }.all(|known| known.source == *source)
    }

    /// Returns the canonical name of what a declared reference stands for: what this very file hands over counts first,
    /// then what others do, then what an import wrote down.
    fn meaning(&self, file: &Path, name: &str) -> String {
        let known = || self.known.get(name).into_iter().flatten();
        let of_file = known().find(|known| matches!(&known.by, KnownBy::Entry(own) if own == file));
        if let Some(known) = of_file {
            return known.source.canonical_name();
        }
        let levels: [fn(&KnownBy) -> bool; 2] = [
            |by| matches!(by, KnownBy::Entry(_) | KnownBy::Server),
            |by| *by == KnownBy::Journal,
        ];
        for level in levels {
            let mut sources = known()
                .filter(|known| level(&known.by))
                .map(|known| &known.source);
            if let Some(first) = sources.next() {
                return if { sources }.all(|other| other == first) {
                    first.canonical_name()
                } else {
                    // As nothing else.
                    format!("SEVERAL_{name}")
                };
            }
        }
        name.to_owned()
    }
}

/// Returns the names that an entry refers to, each once.
fn references(entry: &Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    renamed(entry, &mut |name| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        String::new()
    });
    names
}

/// Returns an entry, in the words of pml, with other names in its references.
pub(super) fn renamed(
    entry: &Map<String, Value>,
    name_of: &mut impl FnMut(&str) -> String,
) -> Map<String, Value> {
    let mut renamed = entry.clone();
    for (key, value) in &mut renamed {
        // No variable is filled in there.
        if key != "tools" {
            rename(value, name_of);
        }
    }
    renamed
}

fn rename(value: &mut Value, name_of: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = with_names(text, name_of),
        Value::Array(elements) => elements.iter_mut().for_each(|element| rename(element, name_of)),
        Value::Object(members) => members.values_mut().for_each(|member| rename(member, name_of)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
