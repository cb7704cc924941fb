//! The formats of clients' files: the values in them, and edits of their text that leave everything else as it is.
//!
//! An edit is made twice, on the text and on the bare values; only if both agree is the text given out.

mod json;
mod toml;
mod yaml;

use serde_json::{Map, Value};

/// In which format a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, comments and trailing commas allowed.
    Json,
    Toml,
    /// YAML, which is read and never written.
    Yaml,
}

/// One change of the servers in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// Writes a server, in place of one of the same name.
    Put(String, Value),
    /// Takes a server out.
    Remove(String),
}

/// What every file may begin with and no reader shows.
const MARK: char = '\u{feff}';

impl Format {
    /// Returns everything that a file says; where and why it cannot be read.
    pub(super) fn values(self, text: &str) -> Result<Map<String, Value>, String> {
        let text = text.strip_prefix(MARK).unwrap_or(text);
        match self {
            // An empty file is one that no server was written into yet.
            Self::Json if text.trim().is_empty() => Ok(Map::new()),
            Self::Json => json::values(text),
            Self::Toml => toml::values(text),
            Self::Yaml => yaml::values(text),
        }
    }

    /// Returns the text of a file with `changes` made below `key`.
    pub(super) fn edited(self, text: &str, key: &[String], changes: &[Change]) -> Result<String, String> {
        let (mark, body) = match text.strip_prefix(MARK) {
            Some(body) => ("\u{feff}", body),
            None => ("", text),
        };
        let mut expected = self.values(body)?;
        if !change_values(&mut expected, key, changes)? {
            return Ok(text.to_owned());
        }
        let edited = match self {
            Self::Json => json::edited(if body.trim().is_empty() { "{}\n" } else { body }, key, changes)?,
            Self::Toml => toml::edited(body, key, changes)?,
            Self::Yaml => return Err("pml does not write YAML".to_owned()),
        };
        if self.values(&edited)? == expected {
            Ok(format!("{mark}{edited}"))
        } else {
            let twice = match self {
                Self::Json => json::declared_twice(body, key),
                Self::Toml | Self::Yaml => None,
            };
            Err(twice.unwrap_or_else(|| "the edit would not have come out as meant".to_owned()))
        }
    }
}

/// Makes the changes on bare values; tells whether anything is another value than before.
fn change_values(root: &mut Map<String, Value>, key: &[String], changes: &[Change]) -> Result<bool, String> {
    let mut place = root;
    for step in key {
        let next = place.entry(step).or_insert_with(|| Value::Object(Map::new()));
        place = next.as_object_mut().ok_or_else(|| not_an_object(step))?;
    }
    let before = place.clone();
    for change in changes {
        match change {
            Change::Put(name, entry) => drop(place.insert(name.clone(), entry.clone())),
            Change::Remove(name) => drop(place.shift_remove(name)),
        }
    }
    Ok(*place != before)
}

fn not_an_object(key: &str) -> String {
    format!("`{}` is not an object", crate::protocol::Shown::line(key))
}

#[cfg(test)]
mod tests;
