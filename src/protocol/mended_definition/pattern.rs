//! Regular expressions in the common part of all dialects: literals, classes, groups, alternatives and quantifiers.
//!
//! `JavaScript` refuses others when it compiles a schema: named groups as Python writes them, escapes of letters that
//! mean nothing, braces that are no quantifier.

/// More groups within each other than patterns have, and fewer than any engine takes.
const DEEPEST: usize = 32;

/// What stands before a place, as far as a quantifier behind it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Something that may be repeated.
    Atom,
    /// Nothing that may be.
    Other,
}

/// Tells whether a pattern is read alike everywhere.
pub(super) fn is_common(pattern: &str) -> bool {
    Reader {
        rest: pattern.chars(),
    }
    .read()
    .is_some()
}

struct Reader<'a> {
    rest: std::str::Chars<'a>,
}

impl Reader<'_> {
    /// Reads to the end; `None` where something is not common.
    fn read(mut self) -> Option<()> {
        let mut groups: Vec<Before> = Vec::new();
        let mut before = Before::Other;
        while let Some(found) = self.rest.next() {
            before = match found {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => {
                    groups.push(self.group()?);
                    if groups.len() > DEEPEST {
                        return None;
                    }
                    Before::Other
                }
                ')' => groups.pop()?,
                '*' | '+' | '?' => self.quantified(before)?,
                '{' => {
                    self.bounds()?;
                    self.quantified(before)?
                }
                ']' | '}' => return None,
                '|' | '^' | '$' => Before::Other,
                _ => Before::Atom,
            };
        }
        groups.is_empty().then_some(())
    }

    fn next_is(&mut self, wanted: char) -> bool {
        let mut ahead = self.rest.clone();
        let is = ahead.next() == Some(wanted);
        if is {
            self.rest = ahead;
        }
        is
    }

    /// Takes the mark of a lazy quantifier.
    fn quantified(&mut self, before: Before) -> Option<Before> {
        self.next_is('?');
        (before == Before::Atom).then_some(Before::Other)
    }

    /// Reads what stands behind an opening parenthesis; returns what the group is to a quantifier.
    fn group(&mut self) -> Option<Before> {
        if !self.next_is('?') {
            return Some(Before::Atom);
        }
        match self.rest.next()? {
            ':' => Some(Before::Atom),
            '=' | '!' => Some(Before::Other),
            _ => None,
        }
    }

    /// Reads the bounds of a quantifier behind its opening brace.
    fn bounds(&mut self) -> Option<()> {
        let (bounds, behind) = self.rest.as_str().split_once('}')?;
        let number = |text: &str| -> Option<u32> {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        };
        match bounds.split_once(',') {
            None => {
                number(bounds)?;
            }
            Some((least, "")) => {
                number(least)?;
            }
            Some((least, most)) => {
                if number(least)? > number(most)? {
                    return None;
                }
            }
        }
        self.rest = behind.chars();
        Some(())
    }

    fn escape(&mut self) -> Option<Before> {
        match self.rest.next()? {
            'b' | 'B' => Some(Before::Other),
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 't' | 'n' | 'r' => Some(Before::Atom),
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '/' => {
                Some(Before::Atom)
            }
            _ => None,
        }
    }

    /// Reads a class behind its opening bracket.
    fn class(&mut self) -> Option<Before> {
        self.next_is('^');
        // The character a range may begin with, and whether a dash behind it was read.
        let mut first: Option<char> = None;
        let mut is_range = false;
        loop {
            let found = self.rest.next()?;
            let one = match found {
                ']' => return Some(Before::Atom),
                // Some dialects read a class within a class.
                '[' => return None,
                '-' if first.is_some() && !is_range && !self.rest.as_str().starts_with(']') => {
                    is_range = true;
                    continue;
                }
                '\\' => match self.rest.next()? {
                    'd' | 'D' | 'w' | 'W' | 's' | 'S' => None,
                    't' => Some('\t'),
                    'n' => Some('\n'),
                    'r' => Some('\r'),
                    escaped if r"^$\.*+?()[]{}|/-".contains(escaped) => Some(escaped),
                    _ => return None,
                },
                other => Some(other),
            };
            if is_range {
                if first? > one? {
                    return None;
                }
                (first, is_range) = (None, false);
            } else {
                // A class such as `\d` begins no range: a dash behind it is one of its characters or an error.
                if one.is_none()
                    && self.rest.as_str().starts_with('-')
                    && !self.rest.as_str().starts_with("-]")
                {
                    return None;
                }
                first = one;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_dialects_share_is_common() {
        for pattern in [
            "",
            "^[a-z0-9_-]+$",
            r"^\d{4}-\d{2}$",
            "(a|b)*?",
            "(?:x){2,}",
            "(?=a)b",
            r"[\w.\-]",
            "[^/]",
            r"a\/b{0,3}",
            "é+",
        ] {
            assert!(is_common(pattern), "{pattern}");
        }
        for pattern in [
            "(", ")", "[", "]", "}", "{", "a{", "a{2,1}", "*", "a**", "^*", "(?P<x>a)", "(?<x>a)", "(?i)a",
            r"\-", r"\", r"\p{L}", r"\Z", "(?=a)*", "[z-a]", r"[\d-z]", "[a", "[[]",
        ] {
            assert!(!is_common(pattern), "{pattern}");
        }
        assert!(!is_common(&"(".repeat(100_000)));
        assert!(!is_common(&format!("{}{}", "(".repeat(40), ")".repeat(40))));
    }
}
