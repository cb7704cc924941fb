//! The words of a shell command that a client wants to run, and rules about how it begins.
//!
//! A rule that allows must not be talked around: a command is read only where every shell reads the same plain words in it,
//! and anything else (`;`, `&&`, `|`, `$(…)`, a redirection, a line feed, a glob) is no command that a rule allows. A rule
//! that forbids or asks is the other way round: it covers every command in which its words stand.

/// Longer than any command that begins with plain words on purpose; a bound on what is cut into words.
const LONGEST: usize = 64 * 1024;

/// The words with which a command begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWords(Vec<String>);

impl CommandWords {
    /// Reads the words of a rule; `None` where they are not plain, or none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        plain_words(text).filter(|words| !words.is_empty()).map(Self)
    }

    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Tells whether a command is nothing but plain words, of which the first are these.
    #[must_use]
    pub fn begin(&self, command: &str) -> bool {
        plain_words(command).is_some_and(|words| words.starts_with(&self.0))
    }

    /// Tells whether these words stand anywhere in a command, however it is put together.
    #[must_use]
    pub fn occur_in(&self, command: &str) -> bool {
        if command.len() > LONGEST {
            return true;
        }
        // Quotes and backslashes inside a word hide it from a reader, not from a shell.
        let bare: String = command
            .chars()
            .filter(|found| !r#"'"\"#.contains(*found))
            .collect();
        [command, &bare].into_iter().any(|text| {
            let words: Vec<&str> = text
                .split(|found| !is_plain(found))
                .filter(|word| !word.is_empty())
                .collect();
            words.windows(self.0.len()).any(|window| window == self.0)
        })
    }
}

/// Returns the words of a command in which every shell reads the same; `None` for any other text.
fn plain_words(text: &str) -> Option<Vec<String>> {
    if text.len() > LONGEST {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(found) = rest.next() {
        match found {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => read_quoted(&mut rest, found, word.get_or_insert_default())?,
            found if is_plain(found) => word.get_or_insert_default().push(found),
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

/// Reads up to the closing quote; `None` where a shell would do more than take the characters.
fn read_quoted(rest: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            found if found == quote => return Some(()),
            found if found.is_control() => return None,
            '$' | '`' | '\\' | '!' if quote == '"' => return None,
            found => word.push(found),
        }
    }
}

/// Tells whether a character means itself to every shell, wherever it stands in a word.
fn is_plain(found: char) -> bool {
    found.is_ascii_alphanumeric() || "@%+=:,./_-".contains(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::process::Command;

    use super::*;

    fn begins(words: &str, command: &str) -> bool {
        CommandWords::read(words).unwrap().begin(command)
    }

    #[test]
    fn a_command_begins_with_whole_words() {
        for command in [
            "git status",
            "git status --short",
            "  git\tstatus  ",
            "git 'status'",
            "git status 'a; b' \"c d\"",
        ] {
            assert!(begins("git status", command), "{command}");
        }
        for command in [
            "git",
            "git statusx",
            "git stash",
            "GIT status",
            "x git status",
            "",
            "'git status'",
        ] {
            assert!(!begins("git status", command), "{command}");
        }
    }

    #[test]
    fn what_does_more_than_one_plain_command_does_not_match() {
        for more in [
            "; rm -rf /",
            ";rm",
            " && x",
            "&& x",
            " || x",
            " | sh",
            " & x",
            "&",
            " $(x)",
            " `x`",
            "\nrm -rf /",
            "\r\nx",
            " > /etc/passwd",
            " >x",
            " 2>&1",
            " < x",
            " <(x)",
            " (x)",
            " {a,b}",
            " *",
            " ?",
            " [a]",
            " ~",
            " $HOME",
            " ${x}",
            " \\; x",
            " \"$(x)\"",
            " \"`x`\"",
            " \"a\\\"b\"",
            " 'open",
            " \"open",
            " #x",
            " !x",
            "\0",
            "\u{85}x",
            " \u{2028}x",
            " é",
            " $'a'",
        ] {
            let command = format!("git status{more}");
            assert!(!begins("git status", &command), "{command:?}");
        }
        for command in [
            "A=1 git status",
            "(git status)",
            "{ git status; }",
            "! git status",
            "$(git status)",
        ] {
            assert!(!begins("git status", command), "{command}");
        }
    }

    #[test]
    fn forbidden_words_are_found_wherever_they_stand() {
        let words = CommandWords::read("rm -rf").unwrap();
        for command in [
            "rm -rf x",
            "cd x && rm -rf .",
            "x;rm -rf y",
            "$(rm -rf x)",
            "\nrm\t-rf x",
            "r\\m -r'f' x",
            "sudo rm -rf x",
        ] {
            assert!(words.occur_in(command), "{command}");
        }
        for command in ["rm x", "rm -r -f x", "farm -rf", "rm -rfv"] {
            assert!(!words.occur_in(command), "{command}");
        }
    }

    #[test]
    fn a_rule_of_no_plain_words_is_none() {
        for text in ["", " ", "git *", "git status:*;", "a|b", "$x", "a(b)"] {
            assert_eq!(CommandWords::read(text), None, "{text}");
        }
    }

    /// Lets a real shell run a command whose first word is `printf`, and returns its words.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test asks the shell which words it reads"
    )]
    fn read_by(shell: &str, text: &str) -> Vec<String> {
        let line = format!("printf '%s\\0' {text}");
        let output = Command::new(shell).args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{shell}: {line}");
        let text = String::from_utf8(output.stdout).unwrap();
        let mut words: Vec<String> = text.split('\0').map(str::to_owned).collect();
        words.pop();
        words
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn a_shell_reads_the_very_words(text in r#"[ab=~ \t;&|<>$`'"\\(){}*?!#/.\n-]{0,12}"#) {
            if let Some(words) = plain_words(&text).filter(|words| !words.is_empty()) {
                for shell in ["sh", "bash"] {
                    prop_assert_eq!(&read_by(shell, &text), &words, "{} {}", shell, &text);
                }
            }
        }

        #[test]
        fn what_begins_so_is_found_too(words in "[a-c]{1,2}( [a-c]{1,2}){0,2}", more in "( [a-c]{1,2}){0,2}") {
            let rule = CommandWords::read(&words).unwrap();
            let command = format!("{words}{more}");
            prop_assert!(rule.begin(&command));
            prop_assert!(rule.occur_in(&command));
        }
    }
}
