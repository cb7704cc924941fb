//! Secrets among the words of a command: the values of options, of variables as runners of containers and shells take them, of
//! headers, and what is a token or an address by itself.

use std::ops::Range;

use super::{
    ClearPart, Standing, in_address, in_defaults, in_header, in_variable, of_server, reference, trimmed,
    unquoted, value_of,
};
use crate::clients::reference::{is_name, is_reference, variable_name};
use crate::clients::secret::{is_path, is_secret_option, is_switch, is_token, password_in};
use crate::protocol::is_secret_name;

/// A line of a shell within a line of a shell is looked into, and no deeper.
const DEPTH: usize = 3;

/// The options before a header.
const HEADER_OPTIONS: [&str; 2] = ["--header", "-H"];

/// The options before a variable, as runners of containers have them.
const VARIABLE_OPTIONS: [&str; 2] = ["--env", "-e"];

/// Finds the secrets in a word of the command of a server, given the word before it.
pub(in crate::clients) fn in_word(server: &str, before: &str, word: &str) -> Vec<ClearPart> {
    let mut found = in_word_at(server, before, word, DEPTH);
    for part in &mut found {
        if part.standing == Standing::Alone && word[part.range.clone()].contains(is_sign) {
            part.standing = Standing::MaybeCommand;
        }
    }
    found
}

/// Tells whether a character can separate commands or words, or make a shell run something; a `$` needs one of them for that.
fn is_sign(found: char) -> bool {
    found.is_whitespace() || found.is_control() || ";|&<>()`\"'\\".contains(found)
}

fn in_word_at(server: &str, before: &str, word: &str, depth: usize) -> Vec<ClearPart> {
    let Some(depth) = depth.checked_sub(1) else {
        return Vec::new();
    };
    let (role, from) = role(before, word);
    let value = &word[from..];
    let found = match role {
        Role::Header => header_word(server, before, &word[..from], value),
        Role::Variable { name, .. } => {
            let mut found = in_variable(name, value);
            for part in &mut found {
                part.instead = vec![format!("{}{}", &word[..from], reference(&part.variable))];
            }
            found.into_iter().map(|part| part.moved(from)).collect()
        }
        Role::Option(option) => option_value(option, &word[..from], value),
        Role::Operand => Vec::new(),
    };
    // A line of a shell: what stands before a blank is no part of a value.
    let pieces = match role {
        Role::Variable { is_whole: true, .. } | Role::Header => Vec::new(),
        Role::Variable { .. } | Role::Operand => pieces(word),
        Role::Option(_) if found.is_empty() => pieces(word),
        Role::Option(_) => Vec::new(),
    };
    if !pieces.is_empty() {
        let before = std::iter::once(before).chain(pieces.iter().map(|piece| &word[piece.clone()]));
        let found = before.zip(&pieces).flat_map(|(before, piece)| {
            let (inner, before) = (unquoted(&word[piece.clone()]), &before[unquoted(before)]);
            let text = &word[piece.start + inner.start..piece.start + inner.end];
            let found = in_word_at(server, before, text, depth).into_iter();
            found.map(move |part| part.moved(piece.start + inner.start))
        });
        return found.collect();
    }
    if !found.is_empty() {
        return found;
    }
    in_operand(server, role, &word[..from], value)
        .into_iter()
        .map(|part| part.moved(from))
        .collect()
}

/// Finds the secrets that a word shows by itself, without its name: a token, or those in an address.
fn in_operand(server: &str, role: Role<'_>, prefix: &str, value: &str) -> Vec<ClearPart> {
    let line = |instead: &str| match role {
        Role::Option(option) if prefix.is_empty() => vec![option.to_owned(), instead.to_owned()],
        _ => vec![format!("{prefix}{instead}")],
    };
    let what = || match role {
        Role::Option(option) => value_of(option),
        Role::Variable { name, .. } => value_of(name),
        Role::Header | Role::Operand => "a token among the words of the command".to_owned(),
    };
    if is_token(value) {
        let variable = of_server(server, "TOKEN");
        return vec![ClearPart {
            range: 0..value.len(),
            what: what(),
            instead: line(&reference(&variable)),
            variable,
            standing: Standing::Alone,
        }];
    }
    let of_defaults = in_defaults(value, &what, &|name| line(&reference(name)));
    if !of_defaults.is_empty() {
        return of_defaults;
    }
    let found = in_address(server, value).into_iter();
    let found = found.map(|part| ClearPart {
        instead: line(&part.instead.concat()),
        ..part
    });
    found.collect()
}

/// What a word of a command is.
#[derive(Debug, Clone, Copy)]
enum Role<'a> {
    /// A header with its name.
    Header,
    /// The value of a variable; `is_whole` where an option says that nothing else stands in the word.
    Variable { name: &'a str, is_whole: bool },
    /// The value of an option.
    Option(&'a str),
    /// None of these.
    Operand,
}

/// Tells what a word is, and where its value begins.
fn role<'a>(before: &'a str, word: &'a str) -> (Role<'a>, usize) {
    if HEADER_OPTIONS.contains(&before) && word.contains(':') {
        return (Role::Header, 0);
    }
    let header = HEADER_OPTIONS
        .iter()
        .find_map(|option| word.strip_prefix(option)?.strip_prefix('='));
    if let Some(header) = header.filter(|header| header.contains(':')) {
        return (Role::Header, word.len() - header.len());
    }
    let attached = ["--env=", "-e"]
        .iter()
        .find_map(|option| word.strip_prefix(option).filter(|rest| assigned(rest).is_some()));
    let setting = attached.unwrap_or(word);
    if let Some((name, value)) = assigned(setting) {
        let is_whole = attached.is_some() || VARIABLE_OPTIONS.contains(&before);
        return (Role::Variable { name, is_whole }, word.len() - value.len());
    }
    match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => (Role::Option(option), word.len() - value.len()),
        _ if before.starts_with("--") && !before.contains('=') => (Role::Option(before), 0),
        _ => (Role::Operand, 0),
    }
}

/// Splits `NAME=value`.
fn assigned(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, _)| is_name(name))
}

fn header_word(server: &str, before: &str, prefix: &str, header: &str) -> Vec<ClearPart> {
    let Some((name, value)) = header.split_once(':') else {
        return Vec::new();
    };
    let value = trimmed(header, header.len() - value.len());
    let found = in_header(server, name.trim(), &header[value.clone()]);
    let found = found.into_iter().map(|part| ClearPart {
        instead: match prefix {
            "" => std::iter::once(before.to_owned())
                .chain(part.instead.clone())
                .collect(),
            prefix => vec![format!("{prefix}{}", part.instead.concat())],
        },
        ..part.moved(prefix.len() + value.start)
    });
    found.collect()
}

/// Finds the secret that the value of an option is by the name of the option.
fn option_value(option: &str, prefix: &str, value: &str) -> Vec<ClearPart> {
    let long = option.trim_start_matches('-');
    let is_named = is_secret_option(long, value)
        || is_secret_name(long) && !value.starts_with('-') && !is_switch(value) && !is_path(value);
    if value.is_empty() || is_reference(value) || password_in(value).is_some() || !is_named {
        return Vec::new();
    }
    let variable = variable_name(long);
    let part = ClearPart {
        range: unquoted(value),
        what: value_of(option),
        instead: match prefix {
            "" => vec![option.to_owned(), reference(&variable)],
            prefix => vec![format!("{prefix}{}", reference(&variable))],
        },
        variable,
        standing: Standing::Alone,
    };
    vec![part.moved(prefix.len())]
}

/// Returns where the words of a line of a shell stand; nothing where it has one alone.
fn pieces(line: &str) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut begin, mut quote) = (None, None);
    for (at, found) in line.char_indices() {
        match (quote, found) {
            (Some(open), found) if open == found => quote = None,
            (None, '"' | '\'') => {
                quote = Some(found);
                begin = begin.or(Some(at));
            }
            (None, found) if found.is_whitespace() => pieces.extend(begin.take().map(|begin| begin..at)),
            _ => begin = begin.or(Some(at)),
        }
    }
    pieces.extend(begin.map(|begin| begin..line.len()));
    if pieces.len() == 1 && pieces[0] == (0..line.len()) && unquoted(line) == (0..line.len()) {
        pieces.clear();
    }
    pieces
}
