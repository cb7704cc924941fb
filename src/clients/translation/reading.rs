//! Reads the keys of one server, one after the other.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::Translation;
use super::parts::{objects, odd, pairs, seconds, text, texts, tool_filter};
use crate::clients::clear_text::{ClearPart, Standing};
use crate::clients::client::{Client, Meaning, Scope};
use crate::clients::reference::{
    Handover, NeededVariable, ProjectDirectory, as_in_client, is_name, is_reference, need, rewritten,
};
use crate::clients::{clear_text, variables_file};
use crate::protocol::Shown;

/// As many seconds as pml takes at most, for a start and for a call.
const LONGEST: (u64, u64) = (3600, 86_400);

/// What was read so far.
pub(super) struct Reading<'a> {
    client: &'a Client,
    name: &'a str,
    project: &'a Path,
    directory: ProjectDirectory,
    needed: Vec<NeededVariable>,
    secrets: Vec<String>,
    notes: Vec<String>,
    transport: Option<&'static str>,
    command: Option<String>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    variables_file: Option<String>,
    address: Option<String>,
    headers: Vec<(String, String)>,
    cwd: Option<String>,
    disabled: bool,
    start_seconds: Option<u64>,
    call_seconds: Option<u64>,
    only: Option<Vec<String>>,
    without: Vec<String>,
    unasked: Option<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(client: &'a Client, name: &'a str, into: Scope, project: &'a Path) -> Self {
        Self {
            client,
            name,
            project,
            directory: match into {
                Scope::User => ProjectDirectory::Unknown,
                Scope::Local | Scope::Project => ProjectDirectory::Here,
            },
            needed: Vec::new(),
            secrets: Vec::new(),
            notes: Vec::new(),
            transport: None,
            command: None,
            arguments: Vec::new(),
            variables: Vec::new(),
            variables_file: None,
            address: None,
            headers: Vec::new(),
            cwd: None,
            disabled: false,
            start_seconds: None,
            call_seconds: None,
            only: None,
            without: Vec::new(),
            unasked: None,
        }
    }

    /// Reads one key; an error says why the whole server stays where it is.
    pub(super) fn take(&mut self, key: &str, value: &Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match self.client.meaning(key) {
            Some(Meaning::Transport) => self.take_transport(text(key, value)?)?,
            Some(Meaning::Command) => self.take_command(key, value)?,
            Some(Meaning::Arguments) => {
                for word in texts(key, value)? {
                    self.take_argument(&word)?;
                }
            }
            Some(Meaning::Variables) => {
                for (name, value) in pairs(key, value)? {
                    let value = self.valued(&name, &value)?;
                    self.variables.push((name, value));
                }
            }
            Some(Meaning::VariableNames) => {
                for name in texts(key, value)? {
                    self.take_variable(&name)?;
                }
            }
            Some(Meaning::VariablesFile) => self.take_variables_file(text(key, value)?)?,
            Some(Meaning::Address(transport)) => {
                let address = self.rewritten(text(key, value)?)?;
                let found = clear_text::in_address(self.name, &address);
                self.address = Some(self.without(&address, found)?);
                self.transport = self.transport.or(transport);
            }
            Some(Meaning::Headers) => {
                for (name, value) in pairs(key, value)? {
                    let value = self.header(&name, &value)?;
                    self.headers.push((name, value));
                }
            }
            Some(Meaning::HeadersFromVariables) => {
                for (header, name) in pairs(key, value)? {
                    let reference = self.reference(&name)?;
                    self.headers.push((header, reference));
                }
            }
            Some(Meaning::BearerVariable) => {
                let reference = self.reference(text(key, value)?)?;
                self.headers
                    .push(("Authorization".to_owned(), format!("Bearer {reference}")));
            }
            Some(Meaning::Directory) => self.cwd = Some(self.rewritten(text(key, value)?)?),
            Some(Meaning::Disabled) => self.disabled |= value == &json!(true),
            Some(Meaning::Enabled) => self.disabled |= value == &json!(false),
            Some(Meaning::StartTime(unit)) => self.start_seconds = Some(seconds(key, value, unit)?),
            Some(Meaning::CallTime(unit)) => self.call_seconds = Some(seconds(key, value, unit)?),
            Some(Meaning::OnlyTools) => self.only = Some(texts(key, value)?),
            Some(Meaning::WithoutTools) => self.without.extend(texts(key, value)?),
            Some(Meaning::Unasked) => self.note_unasked(key, value),
            // Said by a server that wants none.
            Some(Meaning::SignIn) if value == &json!(false) => {}
            Some(Meaning::SignIn) => {
                return Err(format!(
                    "`{}`: it is signed in to by the client, which pml cannot do for it",
                    Shown::line(key)
                ));
            }
            Some(Meaning::Nothing) => {}
            None => self.notes.push(format!(
                "`{}` is not taken over: pml has no such key",
                Shown::line(key)
            )),
        }
        Ok(())
    }

    fn take_transport(&mut self, transport: &str) -> Result<(), String> {
        self.transport = match transport.to_ascii_lowercase().replace(['_', '-'], "").as_str() {
            "stdio" | "local" => None,
            "http" | "streamablehttp" | "remote" => Some("http"),
            "sse" => Some("sse"),
            "builtin" | "platform" | "frontend" | "inlinepython" => {
                return Err("it is part of the client itself".to_owned());
            }
            _ => return Err(format!("pml does not speak `{}`", Shown::line(transport))),
        };
        Ok(())
    }

    fn take_command(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match value {
            Value::String(program) => self.command = Some(self.rewritten(program)?),
            Value::Array(_) => {
                let mut words = texts(key, value)?.into_iter();
                if let Some(program) = words.next() {
                    self.command = Some(self.rewritten(&program)?);
                }
                for word in words {
                    self.take_argument(&word)?;
                }
            }
            Value::Object(parts) => {
                for (part, value) in parts {
                    match part.as_str() {
                        "path" => self.command = Some(self.rewritten(text(part, value)?)?),
                        _ => self.take(part, value)?,
                    }
                }
            }
            _ => return Err(odd(key, "a text")),
        }
        Ok(())
    }

    fn take_argument(&mut self, word: &str) -> Result<(), String> {
        let word = self.rewritten(word)?;
        let before = self.arguments.last().map_or("", String::as_str);
        let found = clear_text::in_word(self.name, before, &word);
        let word = self.without(&word, found)?;
        self.arguments.push(word);
        Ok(())
    }

    fn take_variable(&mut self, name: &str) -> Result<(), String> {
        let reference = self.reference(name)?;
        if self.variables.iter().all(|(known, _)| known != name) {
            self.variables.push((name.to_owned(), reference));
        }
        Ok(())
    }

    fn take_variables_file(&mut self, file: &str) -> Result<(), String> {
        let rewritten = self.rewritten(file)?;
        let path = self.project.join(PathBuf::from(&rewritten));
        let names = variables_file::names(&path);
        let Some(names) = names.filter(|_| !is_reference(&rewritten)) else {
            return Err(format!("its `envFile` cannot be read: {}", Shown::line(file)));
        };
        for name in names {
            if self.variables.iter().all(|(known, _)| *known != name) {
                need(&mut self.needed, &name, Handover::File(path.clone()))?;
                self.variables.push((name.clone(), format!("${{{name}}}")));
            }
        }
        self.variables_file = Some(file.to_owned());
        Ok(())
    }

    fn note_unasked(&mut self, key: &str, value: &Value) {
        let named = value
            .as_array()
            .and_then(|names| names.first())
            .and_then(Value::as_str);
        if value == &json!(false) || value == &json!([]) {
            return;
        }
        self.unasked = self
            .unasked
            .take()
            .or_else(|| Some(named.unwrap_or("*").to_owned()));
        self.notes.push(format!(
            "`{}` is a question of the client and is not taken over; pml asks about a server once",
            Shown::line(key)
        ));
    }

    fn rewritten(&mut self, text: &str) -> Result<String, String> {
        rewritten(text, self.client.references, self.directory, &mut self.needed)
    }

    /// Returns a reference to a variable that the client has.
    fn reference(&mut self, name: &str) -> Result<String, String> {
        if !is_name(name) {
            return Err(format!("`{}` does not name a variable", Shown::line(name)));
        }
        need(&mut self.needed, name, Handover::Environment)?;
        Ok(format!("${{{name}}}"))
    }

    /// Returns the value of a variable, a secret as a reference.
    fn valued(&mut self, name: &str, value: &str) -> Result<String, String> {
        let value = self.rewritten(value)?;
        let found = clear_text::in_variable(name, &value);
        self.without(&value, found)
    }

    /// Returns the value of a header, a secret as a reference, the word before a token as it is.
    fn header(&mut self, name: &str, value: &str) -> Result<String, String> {
        let value = self.rewritten(value)?;
        let found = clear_text::in_header(self.name, name, &value);
        self.without(&value, found)
    }

    /// Replaces the secrets that were found in a text by references.
    fn without(&mut self, text: &str, found: Vec<ClearPart>) -> Result<String, String> {
        let mut without = String::with_capacity(text.len());
        let mut at = 0;
        for part in found {
            match part.standing {
                Standing::Alone => {}
                Standing::Default => {
                    return Err(format!(
                        "a secret stands in the clear as the default of `${{{0}}}`; to take it as well, set `{0}` and \
                         take the default out",
                        Shown::line(&part.variable)
                    ));
                }
                Standing::MaybeCommand => {
                    return Err(format!(
                        "{} may be a secret, and may be a part of what runs, which must be seen; to take it as well, give it \
                         by `env`",
                        part.what
                    ));
                }
            }
            without.push_str(&text[at..part.range.start]);
            let secret = as_in_client(self.client.references, &text[part.range.clone()]);
            without.push_str(&self.hide(&part.variable, &secret)?);
            at = part.range.end;
        }
        without.push_str(&text[at..]);
        Ok(without)
    }

    /// Takes a secret out; returns the reference that stands for it.
    fn hide(&mut self, name: &str, value: &str) -> Result<String, String> {
        let name = need(&mut self.needed, name, Handover::Value(value.to_owned()))?;
        if !self.secrets.contains(&name) {
            self.secrets.push(name.clone());
        }
        Ok(format!("${{{name}}}"))
    }

    /// Puts together what was read.
    pub(super) fn finish(mut self) -> Result<Translation, String> {
        let mut entry = Map::new();
        match (self.command.take(), self.address.take()) {
            (Some(command), _) => {
                entry.insert("command".to_owned(), json!(command));
                if !self.arguments.is_empty() {
                    entry.insert("args".to_owned(), json!(self.arguments));
                }
            }
            (None, Some(address)) => {
                entry.insert("type".to_owned(), json!(self.transport.unwrap_or("http")));
                entry.insert("url".to_owned(), json!(address));
                if !self.headers.is_empty() {
                    let headers: Map<String, Value> = objects(&self.headers);
                    entry.insert("headers".to_owned(), Value::Object(headers));
                }
            }
            (None, None) => {
                return Err("it has neither a command nor an address: it is part of the client".to_owned());
            }
        }
        if !self.variables.is_empty() {
            entry.insert("env".to_owned(), Value::Object(objects(&self.variables)));
        }
        if let Some(cwd) = self.cwd.take().filter(|cwd| cwd != ".") {
            entry.insert("cwd".to_owned(), json!(cwd));
        }
        if let Some(tools) = tool_filter(self.only.take(), &self.without) {
            entry.insert("tools".to_owned(), json!(tools));
        }
        if self.disabled {
            entry.insert("disabled".to_owned(), json!(true));
        }
        for (key, seconds, longest) in [
            ("startTimeoutSeconds", self.start_seconds, LONGEST.0),
            ("callTimeoutSeconds", self.call_seconds, LONGEST.1),
        ] {
            if let Some(seconds) = seconds {
                entry.insert(key.to_owned(), json!(seconds.clamp(1, longest)));
            }
        }
        Ok(Translation {
            entry,
            variables: self.needed,
            secrets: self.secrets,
            variables_file: self.variables_file,
            notes: self.notes,
            unasked: self.unasked,
        })
    }
}
