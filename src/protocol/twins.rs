//! Finds members of an object that two readers may take for one another.
//!
//! A member that stands twice is the first to some readers and the last to others. Readers in Go, C, Java and .NET
//! match names without case, and readers in C end a name at its first zero byte. What pml decides by must be the same
//! member to all of them, so an object with a twin of such a member is refused.

use std::borrow::Cow;

use super::{Era, Json, Object};

/// A member that pml reads stands twice or under another spelling of its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` stands twice, or in a spelling that some readers take for it")]
pub struct Twin {
    /// The path of the member, such as `params._meta.progressToken`.
    pub path: String,
}

impl Twin {
    /// Names the object that holds the member.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        Self {
            path: format!("{outer}.{}", self.path),
        }
    }
}

impl<'a> Object<'a> {
    /// Returns the members that some reader takes for one of these names, and for which of them.
    #[must_use]
    pub fn reading_as(&self, names: &[&'static str]) -> Vec<(&'static str, Json<'a>)> {
        let mut reading = Vec::new();
        for (name, value) in self.members() {
            let found = self.found(name, value);
            reading.extend(
                names
                    .iter()
                    .find(|name| found.reads_as(name))
                    .map(|name| (*name, value)),
            );
        }
        reading
    }

    fn found<'s>(&'s self, name: Option<&'s str>, value: Json<'a>) -> MemberName<'s> {
        match name {
            Some(name) => MemberName::new(name),
            None => MemberName::Odd(Cow::Owned(without_halves(self.key_of(value)))),
        }
    }

    /// Fails if any of these names stands twice, or beside or in place of another spelling of it.
    ///
    /// The names are ASCII and differ by more than their case. The time is linear in the members, for a constant number of names.
    pub fn without_twins(&self, names: &[&'static str]) -> Result<(), Twin> {
        self.met(names).map(|_met| ())
    }

    /// Does the same, and returns a bit for each of the names that stands here, the first name's lowest.
    pub fn met(&self, names: &[&'static str]) -> Result<u32, Twin> {
        // One bit per name that was met.
        let mut met: u32 = 0;
        let twin = |judged: &str| Twin {
            path: judged.to_owned(),
        };
        for (name, value) in self.members() {
            // As nearly all members are written, and many times cheaper than a look at spellings.
            let exact = name.and_then(|name| names.iter().position(|judged| *judged == name));
            if let Some(bit) = exact {
                if met & (1 << bit) != 0 {
                    return Err(twin(names[bit]));
                }
                met |= 1 << bit;
                continue;
            }
            let found = self.found(name, value);
            if let Some(judged) = names.iter().find(|judged| found.reads_as(judged)) {
                return Err(twin(judged));
            }
        }
        Ok(met)
    }

    /// Fails if a `_meta` has twins of what pml reads there: the progress token and the Modern envelope.
    pub fn without_meta_twins(&self) -> Result<(), Twin> {
        const JUDGED: [&str; 6] = [
            "progressToken",
            Era::VERSION,
            Era::CAPABILITIES,
            Era::CLIENT,
            Era::LOG_LEVEL,
            Era::SUBSCRIPTION,
        ];
        self.without_twins(&JUDGED)?;
        // A Legacy server must see nothing of the envelope, in whatever case it is written.
        let disguised = |name: &str| {
            // No spelling has fewer bytes.
            name.len() > Era::ENVELOPE.len()
                && !name.starts_with(Era::ENVELOPE)
                && name
                    .char_indices()
                    .nth(Era::ENVELOPE.len())
                    .is_some_and(|(end, _)| MemberName::new(&name[..end]).reads_as(Era::ENVELOPE))
        };
        match self
            .members()
            .find_map(|(name, _)| name.filter(|name| disguised(name)))
        {
            Some(_) => Err(Twin {
                path: Era::ENVELOPE.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// Reads a written name that holds half of a surrogate pair, as a reader does that leaves such halves out.
fn without_halves(written: &str) -> String {
    let mut kept = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find('\\') {
        kept.push_str(&rest[..at]);
        let half = matches!(
            rest.as_bytes()[at + 1..],
            [
                b'u',
                b'd' | b'D',
                b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F',
                _,
                _,
                ..,
            ]
        );
        let end = if half { at + 6 } else { at + 2 };
        if !half {
            kept.push_str(&rest[at..end]);
        }
        rest = &rest[end..];
    }
    kept.push_str(rest);
    serde_json::from_str(&kept).unwrap_or_default()
}

/// The name of a member as it was found.
enum MemberName<'a> {
    /// Visible ASCII, as nearly all names are.
    Plain(&'a str),
    /// Anything else.
    Odd(Cow<'a, str>),
}

impl<'a> MemberName<'a> {
    fn new(name: &'a str) -> Self {
        if name.bytes().all(|byte| byte.is_ascii() && byte != 0) {
            Self::Plain(name)
        } else {
            Self::Odd(Cow::Borrowed(name))
        }
    }

    /// Tells whether some reader takes this name for `judged`.
    fn reads_as(&self, judged: &str) -> bool {
        match self {
            Self::Plain(name) => name.len() == judged.len() && name.eq_ignore_ascii_case(judged),
            Self::Odd(name) => {
                let ended = name.split('\0').next().unwrap_or_default();
                ended
                    .chars()
                    .map(folded)
                    .eq(judged.chars().map(|letter| letter.to_ascii_lowercase()))
            }
        }
    }
}

/// Folds the case of what is a letter of ASCII to some reader: simple folding, and the `i` of Turkish.
fn folded(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        letter => letter.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JUDGED: [&str; 4] = ["name", "arguments", "_meta", "ask"];

    fn twin(text: &str) -> Option<String> {
        let found = Object::parse(text).unwrap().without_twins(&JUDGED);
        found.err().map(|twin| twin.path)
    }

    #[test]
    fn a_member_that_some_reader_takes_for_another_is_found() {
        for (text, path) in [
            (r#"{"name":1,"name":1}"#, "name"),
            (r#"{"name":1,"Name":2}"#, "name"),
            (r#"{"NAME":1}"#, "name"),
            (r#"{"name":1,"n\u0061me":2}"#, "name"),
            (r#"{"name":1,"\u004eame":2}"#, "name"),
            (r#"{"name":1,"name\u0000x":2}"#, "name"),
            (r#"{"name":1,"na\ud800me":2}"#, "name"),
            (r#"{"name":1,"\udc00N\ud800ame":2}"#, "name"),
            ("{\"argument\u{17f}\":1}", "arguments"),
            (r#"{"argument\u017f":1}"#, "arguments"),
            ("{\"a\u{17f}\u{212a}\":1}", "ask"),
            (r#"{"_meta":{},"_META":{}}"#, "_meta"),
        ] {
            assert_eq!(twin(text).as_deref(), Some(path), "{text}");
        }
        for text in [
            r#"{"name":1,"arguments":{"name":2,"Name":3},"_meta":{}}"#,
            r#"{"x":1,"x":2,"X":3,"name":4}"#,
            r#"{"name":1,"name2":2,"nam":3,"na\\ud800me":4,"\ud800":5}"#,
            "{}",
        ] {
            assert_eq!(twin(text), None, "{text}");
        }
    }

    #[test]
    fn the_envelope_is_read_in_one_spelling_only() {
        let read = |text: &str| Object::parse(text).unwrap().without_meta_twins().is_ok();
        assert!(read(
            r#"{"progressToken":1,"io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/x":1}"#
        ));
        assert!(!read(r#"{"progressToken":1,"progresstoken":2}"#));
        assert!(!read(r#"{"IO.modelcontextprotocol/x":1}"#));
        assert!(!read(
            "{\"io.modelcontextprotoco\u{6c}/x\":1,\"\u{130}o.modelcontextprotocol/x\":1}"
        ));
        assert!(!read(
            r#"{"io.modelcontextprotocol/logLevel":1,"io.modelcontextprotocol/LogLevel":1}"#
        ));
    }

    /// Any spelling of a judged name, or of another one.
    fn names() -> impl Strategy<Value = String> {
        let spelled = prop::sample::select(JUDGED.to_vec()).prop_flat_map(|name| {
            prop::collection::vec(0..6_u8, name.len()).prop_map(move |ways| {
                let letters = name.chars().zip(ways);
                letters
                    .map(|(letter, way)| written(letter, way))
                    .collect::<String>()
            })
        });
        prop_oneof![3 => spelled, 1 => "[nameNAME]{0,5}".prop_map(|name| name)]
    }

    fn written(letter: char, way: u8) -> String {
        match (way, letter) {
            (1, letter) => letter.to_ascii_uppercase().to_string(),
            (2, letter) => format!("\\u{:04x}", u32::from(letter)),
            (3, 's') => "\u{17f}".to_owned(),
            (3, 'k') => "\\u212A".to_owned(),
            (4, letter) if letter == 'a' => format!("{letter}\\ud800"),
            (_, letter) => letter.to_string(),
        }
    }

    /// A reader of members, as `(name, value)` in their order.
    type Reader = fn(&[(String, u32)], &str) -> Option<u32>;

    fn fold(name: &str) -> String {
        name.chars().map(folded).collect()
    }

    proptest! {
        #[test]
        fn what_passes_is_the_same_to_every_reader(keys in prop::collection::vec(names(), 0..6)) {
            let text: Vec<String> = keys.iter().enumerate().map(|(at, key)| format!("\"{key}\":{at}")).collect();
            let text = format!("{{{}}}", text.join(","));
            let object = Object::parse(&text).unwrap();
            // Halves of pairs are left out here, as the most lenient of readers does.
            let members: Vec<(String, u32)> = keys
                .iter()
                .zip(0..)
                .map(|(key, at)| (serde_json::from_str(&format!("\"{}\"", key.replace("\\ud800", ""))).unwrap(), at))
                .collect();
            let readers: [Reader; 4] = [
                |members, name| members.iter().find(|(found, _)| found == name).map(|(_, value)| *value),
                |members, name| members.iter().rfind(|(found, _)| found == name).map(|(_, value)| *value),
                |members, name| members.iter().rfind(|(found, _)| fold(found) == name).map(|(_, value)| *value),
                |members, name| members.iter().find(|(found, _)| fold(found) == name).map(|(_, value)| *value),
            ];
            let ambiguous = JUDGED.iter().any(|name| {
                let read: Vec<Option<u32>> = readers.iter().map(|reader| reader(&members, name)).collect();
                read.windows(2).any(|pair| pair[0] != pair[1])
            });
            if object.without_twins(&JUDGED).is_ok() {
                prop_assert!(!ambiguous, "{}", text);
                for name in JUDGED {
                    let ours = object.value(name).map(|value| value.get().parse().unwrap());
                    prop_assert_eq!(ours, readers[0](&members, name));
                }
            } else {
                // Nothing is refused that every reader, with and without case, reads alike.
                let spelled = JUDGED.iter().any(|name| members.iter().filter(|(found, _)| fold(found) == *name).count() > 1);
                let odd = JUDGED.iter().any(|name| members.iter().any(|(found, _)| fold(found) == *name && found != name));
                let half = keys.iter().any(|key| key.contains("\\ud800"));
                prop_assert!(ambiguous || spelled || odd || half, "{}", text);
            }
        }
    }
}
