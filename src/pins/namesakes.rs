//! Tools of other servers that a tool can be mistaken for by its name.
//!
//! What a client calls holds the server's name, so two tools never collide; a model that reads `read_file` twice may all
//! the same take the one for the other. Names are compared by their likeness: case, separators, characters that do not
//! show and letters that look like others do not count. Pure, and linear in the names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::protocol::{DependencyName, Shown, ToolName};

/// How many namesakes of one tool are named: more are counted.
const NAMED: usize = 3;

/// How many tools one notice names: more are counted.
const NOTICE: usize = 20;

/// The tools of all servers by their likeness; of each server that has it, the first tool.
#[derive(Debug, Clone, Default)]
pub struct ToolNames(Arc<HashMap<String, BTreeMap<DependencyName, ToolName>>>);

/// The tools of the other servers, as one server's tools are compared with them.
#[derive(Debug, Clone)]
pub struct Namesakes {
    all: ToolNames,
    own: DependencyName,
}

impl FromIterator<ToolName> for ToolNames {
    fn from_iter<T: IntoIterator<Item = ToolName>>(tools: T) -> Self {
        let mut found: HashMap<String, BTreeMap<DependencyName, ToolName>> = HashMap::new();
        for tool in tools {
            let likeness = likeness(tool.tool());
            if !likeness.is_empty() {
                let servers = found.entry(likeness).or_default();
                servers.entry(tool.dependency().clone()).or_insert(tool);
            }
        }
        Self(Arc::new(found))
    }
}

impl ToolNames {
    /// Returns those of all servers but this one.
    #[must_use]
    pub fn beside(&self, own: &DependencyName) -> Namesakes {
        Namesakes {
            all: self.clone(),
            own: own.clone(),
        }
    }
}

impl Namesakes {
    /// Returns the server whose tools are compared.
    #[must_use]
    pub fn server(&self) -> &DependencyName {
        &self.own
    }

    /// Names the tools that a tool can be mistaken for, escaped; `None` where there are none.
    #[must_use]
    pub fn of(&self, tool: &str) -> Option<String> {
        let alike = self.all.0.get(&likeness(tool))?;
        let others = alike.iter().filter(|(server, _)| **server != self.own);
        let named: Vec<String> = others
            .take(NAMED)
            .map(|(_, tool)| format!("`{}`", Shown::line(&tool.to_string())))
            .collect();
        let more = alike.len() - usize::from(alike.contains_key(&self.own)) - named.len();
        (!named.is_empty()).then(|| listed(&named, more))
    }

    /// Names those of a server's tools that can be mistaken, each with the tools it can be mistaken for.
    #[must_use]
    pub fn notice<'a>(&self, tools: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let mistakable = tools.into_iter().filter_map(|tool| {
            let others = self.of(tool)?;
            Some(format!("`{}` (like {others})", Shown::line(tool)))
        });
        some_of(mistakable)
    }
}

/// Joins the first texts and counts the others; `None` where there are none.
#[must_use]
pub fn some_of(texts: impl IntoIterator<Item = String>) -> Option<String> {
    let mut texts = texts.into_iter();
    let first: Vec<String> = texts.by_ref().take(NOTICE).collect();
    let more = texts.count();
    (!first.is_empty()).then(|| listed(&first, more))
}

fn listed(names: &[String], more: usize) -> String {
    let names = names.join(", ");
    match more {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// Returns what a name looks like: two names with the same likeness can be taken for each other.
fn likeness(name: &str) -> String {
    name.chars()
        .filter(|found| !is_unseen(*found))
        .map(|found| look_alike(found).unwrap_or(found))
        .flat_map(char::to_lowercase)
        .filter(|found| !is_separator(*found))
        // A capital `i`, a small `l` and a one are drawn alike, and case does not count.
        .map(|found| match found {
            'i' | '1' | '|' => 'l',
            '0' => 'o',
            found => found,
        })
        .collect()
}

/// Tells whether a character adds nothing that a reader of a name would notice.
fn is_unseen(found: char) -> bool {
    let joins = matches!(found, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    let combines = matches!(found, '\u{300}'..='\u{36f}');
    joins || combines || Shown::hides(found)
}

/// Tells whether a character stands between the words of a name; `readFile` has none.
fn is_separator(found: char) -> bool {
    let dash = matches!(found, '\u{2010}'..='\u{2015}' | '\u{2212}');
    dash || found.is_whitespace() || matches!(found, '-' | '_' | '.' | '/')
}

/// Returns the ASCII character that another one is drawn like, in the scripts whose letters are.
fn look_alike(found: char) -> Option<char> {
    let letter = |offset: u32| char::from_digit(offset % 26 + 10, 36);
    let code = u32::from(found);
    Some(match found {
        // Full-width forms, mathematical and encircled letters and digits repeat the alphabet.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xfee0)?,
        '\u{1d400}'..='\u{1d6a3}' => letter(code - 0x1d400)?,
        '\u{1d7ce}'..='\u{1d7ff}' => char::from_digit((code - 0x1d7ce) % 10, 10)?,
        '\u{24b6}'..='\u{24cf}' => letter(code - 0x24b6)?,
        '\u{24d0}'..='\u{24e9}' => letter(code - 0x24d0)?,
        'а' | 'А' | 'α' | 'Α' | 'ɑ' => 'a',
        'в' | 'В' | 'Β' | 'β' | 'Ь' | 'ь' => 'b',
        'с' | 'С' | 'ϲ' | 'Ϲ' | 'ⅽ' => 'c',
        'ԁ' | 'ⅾ' => 'd',
        'е' | 'Е' | 'Ε' | 'ε' | 'є' | 'Є' | 'ҽ' => 'e',
        'ɡ' | 'ց' => 'g',
        'н' | 'Н' | 'Η' | 'һ' | 'Һ' | 'հ' => 'h',
        'і' | 'І' | 'ι' | 'Ι' | 'ı' | 'ⅰ' => 'i',
        'ј' | 'Ј' | 'ϳ' => 'j',
        'к' | 'К' | 'κ' | 'Κ' => 'k',
        'ӏ' | 'Ӏ' | 'ⅼ' | 'ǀ' => 'l',
        'м' | 'М' | 'Μ' | 'ⅿ' => 'm',
        'Ν' | 'η' | 'ո' => 'n',
        'о' | 'О' | 'ο' | 'Ο' | 'σ' | 'օ' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' | 'Ԛ' => 'q',
        'г' => 'r',
        'ѕ' | 'Ѕ' | 'Տ' => 's',
        'т' | 'Т' | 'τ' | 'Τ' => 't',
        'υ' | 'ս' | 'μ' => 'u',
        'ν' | 'ѵ' | 'Ѵ' | 'ⅴ' => 'v',
        'ԝ' | 'Ԝ' | 'ω' | 'ա' => 'w',
        'х' | 'Х' | 'χ' | 'Χ' | 'ⅹ' => 'x',
        'у' | 'У' | 'Υ' | 'ү' | 'Ү' | 'γ' => 'y',
        'Ζ' | 'ζ' => 'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namesakes(names: &[&str]) -> Namesakes {
        let names: ToolNames = names.iter().map(|name| name.parse().unwrap()).collect();
        names.beside(&"own".parse().unwrap())
    }

    #[test]
    fn names_that_look_alike_are_found_and_others_are_not() {
        let known = namesakes(&["fs:read_file", "own:read_file", "own:write_file"]);
        for alike in [
            "read_file",
            "Read_File",
            "read-file",
            "readFile",
            "read\u{200b}_file",
            "r\u{435}ad_fil\u{435}",
            "read_f1le",
            "\u{ff52}ead_file",
            "\u{1d42b}ead_file",
            "re\u{301}ad_file",
        ] {
            assert_eq!(known.of(alike).as_deref(), Some("`fs:read_file`"), "{alike:?}");
        }
        for other in ["read_files", "write_file", "", "_", "\u{200b}"] {
            assert_eq!(known.of(other), None, "{other:?}");
        }
        assert_eq!(namesakes(&["a:_"]).of("-"), None);
    }

    #[test]
    fn every_letter_of_an_alphabet_that_repeats_ours_is_that_letter() {
        for (first, letters) in [('\u{1d400}', 52), ('\u{1d670}', 52), ('\u{24b6}', 26)] {
            for offset in 0..letters {
                let found = char::from_u32(u32::from(first) + offset).unwrap();
                let expected = char::from(b'a' + u8::try_from(offset % 26).unwrap());
                assert_eq!(look_alike(found), Some(expected), "{found}");
            }
        }
        assert_eq!(look_alike('\u{24d1}'), Some('b'));
        for (offset, digit) in (0..50).zip("0123456789".chars().cycle()) {
            let found = char::from_u32(0x1d7ce + offset).unwrap();
            assert_eq!(look_alike(found), Some(digit), "{found}");
        }
    }

    #[test]
    fn a_letter_of_another_script_is_taken_for_the_one_it_is_drawn_like() {
        let drawn_alike = [
            ('a', "аАαΑɑ"),
            ('b', "вВΒβЬь"),
            ('c', "сСϲϹⅽ"),
            ('d', "ԁⅾ"),
            ('e', "еЕΕεєЄҽ"),
            ('g', "ɡց"),
            ('h', "нНΗһҺհ"),
            ('i', "іІιΙıⅰ"),
            ('j', "јЈϳ"),
            ('k', "кКκΚ"),
            ('l', "ӏӀⅼǀ"),
            ('m', "мМΜⅿ"),
            ('n', "Νηո"),
            ('o', "оОοΟσօ"),
            ('p', "рРρΡ"),
            ('q', "ԛԚ"),
            ('r', "г"),
            ('s', "ѕЅՏ"),
            ('t', "тТτΤ"),
            ('u', "υսμ"),
            ('v', "νѵѴⅴ"),
            ('w', "ԝԜωա"),
            ('x', "хХχΧⅹ"),
            ('y', "уУΥүҮγ"),
            ('z', "Ζζ"),
        ];
        for (letter, others) in drawn_alike {
            let known = namesakes(&[&format!("fs:read_{letter}")]);
            for other in others.chars() {
                let expected = format!("`fs:read_{letter}`");
                assert_eq!(known.of(&format!("read_{other}")), Some(expected), "{other}");
            }
        }
        // Between words a dash of any length may stand.
        let known = namesakes(&["fs:read_file"]);
        for dash in ["\u{2010}", "\u{2013}", "\u{2212}", "\u{a0}", ".", "/"] {
            assert!(known.of(&format!("read{dash}file")).is_some(), "{dash:?}");
        }
    }

    #[test]
    fn a_notice_is_bounded_however_many_tools_are_alike() {
        let many = (0..5_000).map(|number| format!("s{number}:echo"));
        let many: Vec<String> = many.chain(["own:echo".to_owned()]).collect();
        let many = namesakes(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            many.of("Echo").unwrap(),
            "`s0:echo`, `s1:echo`, `s10:echo` and 4997 more"
        );
        let tools = std::iter::repeat_n("e\u{202e}cho", 5_000);
        let notice = many.notice(tools).unwrap();
        assert!(notice.starts_with("`e\\u{202e}cho` (like `s0:echo`"), "{notice}");
        assert!(notice.ends_with("and 4980 more"), "{notice}");
        assert!(notice.len() < 4_000, "{}", notice.len());
    }
}
