//! The shapes of JSON values that clients read, and what must change in a text so that it has one.

use std::ops::Range;

use serde_json::value::RawValue;

use super::output_schema;
use crate::protocol::object::place_of;
use crate::protocol::{Json, Object};

/// The shape of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// A string.
    Text,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// A date and time with its offset.
    Time,
    /// `true` or `false`.
    Boolean,
    /// A count of bytes: digits that fit 64 bits.
    Size,
    /// A number from 0 to 1.
    Share,
    /// An object with these members, among others.
    Object(&'static [Member]),
    /// An array; elements that do not fit are taken out of it.
    Elements(&'static Shape),
    /// An array of which every element must fit.
    EveryElement(&'static Shape),
    /// Schemas by name, each an object.
    Properties,
    /// A schema that clients compile, of type `object`.
    LegacyOutputSchema,
    /// A schema that clients compile.
    ModernOutputSchema,
}

/// A member of an object that clients read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    name: &'static str,
    shape: Shape,
    otherwise: Fallback,
}

/// What happens where a member is absent or does not fit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fallback {
    /// The object stays without it.
    TakenOut,
    /// The object around it does not fit either.
    Unfit,
    /// It gets this value.
    Text(&'static str),
    /// It gets the value of another member, which is always there.
    CopyOf(&'static str),
}

impl Member {
    pub(super) const fn new(name: &'static str, shape: Shape, otherwise: Fallback) -> Self {
        Self {
            name,
            shape,
            otherwise,
        }
    }

    pub(super) const fn optional(name: &'static str, shape: Shape) -> Self {
        Self::new(name, shape, Fallback::TakenOut)
    }

    pub(super) const fn needed(name: &'static str, shape: Shape) -> Self {
        Self::new(name, shape, Fallback::Unfit)
    }
}

/// Places in a definition, and what stands there afterwards; they do not overlap.
pub(super) type Replacements = Vec<(Range<usize>, String)>;

impl Shape {
    /// Returns what must change in `text`, which stands at `at`; `None` where no change makes it fit.
    fn changes(self, text: &str, at: usize) -> Option<Replacements> {
        let fits = match self {
            Self::Object(members) => return changes_of_object(text, members, at),
            Self::Elements(element) => return changes_of_elements(text, *element, at),
            Self::Properties => return changes_of_properties(text, at),
            Self::LegacyOutputSchema => {
                const MEMBERS: [Member; 2] = [
                    Member::needed("type", Shape::Word(&["object"])),
                    Member::optional("properties", Shape::Properties),
                ];
                return output_schema::compiles(text)
                    .then(|| changes_of_object(text, &MEMBERS, at))
                    .flatten();
            }
            Self::ModernOutputSchema => output_schema::compiles(text),
            Self::EveryElement(element) => elements(text).is_some_and(|elements| {
                let mut elements = elements.iter();
                elements.all(|element_text| element.changes(element_text.get(), at).is_some())
            }),
            Self::Text => text.starts_with('"'),
            // Compared as it is written: an escaped spelling of such a word is not worth a reader.
            Self::Word(words) => text
                .strip_prefix('"')
                .and_then(|text| text.strip_suffix('"'))
                .is_some_and(|word| words.contains(&word)),
            Self::Time => is_time(text.trim_matches('"').as_bytes()) && text.starts_with('"'),
            Self::Boolean => text == "true" || text == "false",
            Self::Size => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok(),
            Self::Share => text.parse().is_ok_and(|share: f64| (0.0..=1.0).contains(&share)),
        };
        fits.then(Vec::new)
    }
}

/// Returns what must change in an object so that clients can read these members of it.
pub(super) fn changes_of_object(text: &str, members: &[Member], at: usize) -> Option<Replacements> {
    let object = Object::parse(text)?;
    let mut changes = Vec::new();
    let mut taken_out: Vec<Json<'_>> = Vec::new();
    let mut added = Vec::new();
    for member in members {
        let mut found: Vec<Json<'_>> = object
            .members()
            .filter(|(name, _)| *name == Some(member.name))
            .map(|(_, value)| value)
            .collect();
        // Most clients read the last of several; some refuse them all.
        let value = found.pop();
        taken_out.append(&mut found);
        let place = value.map(|value| at + object.value_place(value).start);
        let fitting = value
            .zip(place)
            .and_then(|(value, place)| member.shape.changes(value.get(), place));
        if let Some(inner) = fitting {
            changes.extend(inner);
            continue;
        }
        let instead = match member.otherwise {
            Fallback::Unfit => return None,
            Fallback::TakenOut => {
                taken_out.extend(value);
                continue;
            }
            Fallback::Text(text) => text,
            Fallback::CopyOf(other) => object.value(other)?.get(),
        };
        match (value, place) {
            (Some(value), Some(place)) => {
                changes.push((place..place + value.get().len(), instead.to_owned()));
            }
            _ => added.push(format!(r#""{}":{instead}"#, member.name)),
        }
    }
    if !added.is_empty() {
        let front = at + object.front();
        let comma = if object.members().count() > taken_out.len() {
            ","
        } else {
            ""
        };
        changes.push((front..front, added.join(",") + comma));
    }
    let cuts = object.cuts_of(&taken_out);
    changes.extend(
        cuts.into_iter()
            .map(|cut| (at + cut.start..at + cut.end, String::new())),
    );
    Some(changes)
}

/// Returns what must change in an array so that clients can read every element of it.
fn changes_of_elements(text: &str, shape: Shape, at: usize) -> Option<Replacements> {
    let mut changes = Vec::new();
    // Where the last element ends that stays, and what is taken out behind it.
    let mut kept: Option<usize> = None;
    let mut cut: Option<Range<usize>> = None;
    for element in elements(text)? {
        let place = place_of(element.get(), text);
        let place = at + place.start..at + place.end;
        let Some(inner) = shape.changes(element.get(), place.start) else {
            let start = cut.take().map_or(kept.unwrap_or(place.start), |cut| cut.start);
            cut = Some(start..place.end);
            continue;
        };
        if let Some(cut) = cut.take() {
            // The first elements go with the comma behind them, others with the comma before.
            let end = if kept.is_some() { cut.end } else { place.start };
            changes.push((cut.start..end, String::new()));
        }
        changes.extend(inner);
        kept = Some(place.end);
    }
    changes.extend(cut.map(|cut| (cut, String::new())));
    Some(changes)
}

/// Returns what must change so that each schema by name is an object; one that is none takes anything.
fn changes_of_properties(text: &str, at: usize) -> Option<Replacements> {
    let properties = Object::parse(text)?;
    let unfit = properties
        .members()
        .filter(|(_, schema)| !schema.get().starts_with('{'));
    let changes = unfit.map(|(_, schema)| {
        let place = properties.value_place(schema);
        let instead = if schema.get() == "false" {
            r#"{"not":{}}"#
        } else {
            "{}"
        };
        (at + place.start..at + place.end, instead.to_owned())
    });
    Some(changes.collect())
}

/// Returns the texts of the elements; `None` if it is no array.
fn elements(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// Tells whether a text is a date and time with its offset, as in `2026-07-28T09:30:00.5+02:00`.
fn is_time(text: &[u8]) -> bool {
    let number = |range: Range<usize>| -> Option<u32> {
        let digits = text
            .get(range)
            .filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let is = |place: usize, byte: u8| text.get(place) == Some(&byte);
    let separated = is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':');
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let (Some(hour), Some(minute)) = (number(11..13), number(14..16)) else {
        return false;
    };
    let mut at = 16;
    if is(at, b':') {
        if number(at + 1..at + 3).is_none_or(|second| second > 59) {
            return false;
        }
        at += 3;
        if is(at, b'.') {
            let digits = text[at + 1..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                return false;
            }
            at += 1 + digits;
        }
    }
    let offset = match text.get(at) {
        Some(b'Z') => text.len() == at + 1,
        Some(b'+' | b'-') => {
            let fits = |range, most| number(range).is_some_and(|found| found <= most);
            is(at + 3, b':') && fits(at + 1..at + 3, 23) && fits(at + 4..at + 6, 59) && text.len() == at + 6
        }
        _ => false,
    };
    separated && offset && hour < 24 && minute < 60 && (1..=days(year, month)).contains(&day)
}

/// Returns how many days a month has; none, if there is no such month.
fn days(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_date_and_an_offset() {
        for time in [
            "2026-07-28T09:30Z",
            "2026-07-28T09:30:00Z",
            "2024-02-29T23:59:59.123456+02:00",
            "2026-12-31T00:00:00-11:30",
        ] {
            assert!(is_time(time.as_bytes()), "{time}");
        }
        for text in [
            "",
            "yesterday",
            "2026-07-28",
            "2026-07-28T09:30:00",
            "2026-07-28 09:30:00Z",
            "2026-02-29T09:30:00Z",
            "2026-13-01T09:30:00Z",
            "2026-01-00T09:30:00Z",
            "2026-07-28T24:00:00Z",
            "2026-07-28T09:30:60Z",
            "2026-07-28T09:30:00.Z",
            "2026-07-28T09:30:00+0200",
            "2026-07-28T09:30:00+24:00",
            "2026-07-28T09:30:00Z ",
            "2026-07-28T09:30:00\u{e4}",
        ] {
            assert!(!is_time(text.as_bytes()), "{text}");
        }
    }
}
