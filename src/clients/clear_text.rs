//! Finds secrets that stand in the clear in the texts of a server: in the value of a variable or a header, in an address, and
//! among the words of a command.
//!
//! One finder for what a person types ([`super::clear_secret`]) and for what stands in a client's file
//! ([`super::translate`]). Pure. The texts spell references as pml does; what is a reference already is no secret.

#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

pub(super) use self::words::in_word;
use super::reference::{is_name, is_reference, variable_name};
use super::secret::{is_path, is_secret, is_switch, is_token, password_in};
use crate::protocol::{Shown, is_secret_name};

/// A part of a text that is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClearPart {
    /// Where it stands in the text.
    pub(super) range: Range<usize>,
    /// The variable that is to be referred to in its place.
    pub(super) variable: String,
    /// What it is, in words.
    pub(super) what: String,
    /// The text with a reference in its place, as words; what may be another secret is left out.
    pub(super) instead: Vec<String>,
    /// How it stands there.
    pub(super) standing: Standing,
}

/// How a secret stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A reference can take its place.
    Alone,
    /// It is the default of a reference, which can hold no other reference.
    Default,
    /// It has signs of a shell, and may be a part of what runs, which a reference would hide from the person.
    MaybeCommand,
}

/// Finds the secret that is the value of a variable.
pub(super) fn in_variable(name: &str, value: &str) -> Vec<ClearPart> {
    let what = || value_of(name);
    let instead = |variable: &str| vec![format!("{name}={}", reference(variable))];
    if is_reference(value) {
        return in_defaults(value, &what, &instead);
    }
    let found = is_clear(name, value).then(|| ClearPart {
        range: unquoted(value),
        variable: variable(name),
        what: what(),
        instead: instead(&variable(name)),
        standing: Standing::Alone,
    });
    found.into_iter().collect()
}

/// Finds the secret in a header of the server that is called `server`; a word before a token is none.
pub(super) fn in_header(server: &str, name: &str, value: &str) -> Vec<ClearPart> {
    let from = match value.split_once(' ') {
        Some((word, _)) if word.chars().all(|found| found.is_ascii_alphabetic()) => word.len() + 1,
        _ => 0,
    };
    let token = trimmed(value, from);
    let variable = if name.eq_ignore_ascii_case("authorization") {
        of_server(server, "TOKEN")
    } else {
        of_server(server, &variable_name(name))
    };
    let what = || format!("the value of the header `{}`", Shown::line(name));
    let scheme = &value[..from];
    let instead = |variable: &str| vec![format!("{name}: {scheme}{}", reference(variable))];
    if is_reference(&value[token.clone()]) {
        return in_defaults(value, &what, &instead);
    }
    let found = is_clear(name, &value[token.clone()]).then(|| ClearPart {
        range: token,
        variable: variable.clone(),
        what: what(),
        instead: instead(&variable),
        standing: Standing::Alone,
    });
    found.into_iter().collect()
}

/// Finds the secrets in an address: its password, and parameters of its query.
pub(super) fn in_address(server: &str, address: &str) -> Vec<ClearPart> {
    let part = |range, variable, what: String, instead: String| ClearPart {
        range,
        variable,
        what,
        // The rest of the address is not repeated: it may hold another secret.
        instead: vec![instead],
        standing: Standing::Alone,
    };
    let Some((scheme, _)) = address.split_once("://") else {
        return Vec::new();
    };
    let variable = of_server(server, "PASSWORD");
    let password = password_in(address).map(|range| {
        let instead = format!("{scheme}://…:{}@…", reference(&variable));
        part(range, variable, "the password in the address".to_owned(), instead)
    });
    let query = address.find('?').map_or(address.len(), |at| at + 1);
    let end = address[query..].find('#').map_or(address.len(), |at| query + at);
    let mut at = query;
    let parameters = address[query..end].split('&').filter_map(|pair| {
        let from = at;
        at += pair.len() + 1;
        let (name, value) = pair.split_once('=')?;
        let variable = of_server(server, &variable_name(name));
        let what = || format!("the value of `{}` in the address", Shown::line(name));
        let instead = format!("…{name}={}…", reference(&variable));
        let from = from + name.len() + 1;
        if is_reference(value) {
            let found = in_defaults(value, &what, &|_name| vec![instead.clone()]);
            return found.into_iter().next().map(|found| found.moved(from));
        }
        is_clear(name, value).then(|| part(from..from + value.len(), variable, what(), instead))
    });
    password.into_iter().chain(parameters).collect()
}

/// Finds the secrets that are defaults of references.
fn in_defaults(
    text: &str,
    what: &dyn Fn() -> String,
    instead: &dyn Fn(&str) -> Vec<String>,
) -> Vec<ClearPart> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(":-") {
        let from = at + begin + 2;
        let end = text[from..].find('}').map_or(text.len(), |end| from + end);
        let default = &text[from..end];
        let name = text[..from - 2].rsplit("${").next().unwrap_or_default();
        if is_name(name) && (is_token(default) || !in_address(name, default).is_empty()) {
            found.push(ClearPart {
                range: from..end,
                variable: name.to_owned(),
                what: what(),
                instead: instead(name),
                standing: Standing::Default,
            });
        }
        at = end;
    }
    found
}

/// Returns what stands between the quotes of a text; all of it where there are none.
fn unquoted(text: &str) -> Range<usize> {
    let is_quoted = |quote| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if is_quoted('"') || is_quoted('\'') {
        1..text.len() - 1
    } else {
        0..text.len()
    }
}

/// Returns the text from there on without the blanks around it.
fn trimmed(text: &str, from: usize) -> Range<usize> {
    let rest = &text[from..];
    let begin = from + (rest.len() - rest.trim_start().len());
    begin..begin + rest.trim().len()
}

/// Tells whether a value is a secret that stands in the clear.
fn is_clear(name: &str, value: &str) -> bool {
    !value.is_empty()
        && !is_reference(value)
        && (is_secret(name, value)
            || is_secret_name(name) && !is_switch(value) && !is_path(value)
            || !in_address(name, value).is_empty())
}

fn value_of(name: &str) -> String {
    format!("the value of `{}`", Shown::line(name))
}

fn of_server(server: &str, what: &str) -> String {
    format!("{}_{what}", variable_name(server))
}

fn variable(name: &str) -> String {
    if is_name(name) {
        name.to_owned()
    } else {
        variable_name(name)
    }
}

fn reference(variable: &str) -> String {
    format!("${{{variable}}}")
}

impl ClearPart {
    /// Returns the same in a text that has so many bytes before it.
    fn moved(self, bytes: usize) -> Self {
        Self {
            range: self.range.start + bytes..self.range.end + bytes,
            ..self
        }
    }
}
