//! Quotes words for commands that pml suggests: hints are pasted into shells by people and by models.
//!
//! A quoted word names exactly the given bytes, starts no second command and shows every character. Control,
//! direction and invisible characters and bytes that are no text are written as `$'\ooo'`, which bash, zsh and ksh
//! read. A shell without that form (dash) takes the escapes literally: a wrong name, but still a single word.
//!
//! The crate `shlex` would replace one line, and every rule here would stay: it knows no `$'…'`, passes control
//! characters, and quotes what people write plainly (`name@^1.2`, `a=b`).

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use super::shown;

/// Quotes a word for a shell; a word that needs no quotes stays as it is.
#[must_use]
pub fn word(text: &str) -> String {
    quote(OsStr::new(text))
}

/// Quotes an argument that is no option, also where it begins like one.
#[must_use]
pub fn operand(text: &str) -> String {
    let options_end = if text.starts_with('-') { "-- " } else { "" };
    format!("{options_end}{}", word(text))
}

/// Quotes a path for a shell; a relative path cannot be taken for an option.
#[must_use]
pub fn path(path: &Path) -> String {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        return quote(Path::new(".").join(path).as_os_str());
    }
    quote(path.as_os_str())
}

fn quote(text: &OsStr) -> String {
    let bytes = text.as_encoded_bytes();
    let Some(text) = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.chars().any(shown::deceives))
    else {
        return escape(bytes);
    };
    // A leading `=` or `~` is expanded by zsh or by every shell, `~` also in the middle of an assignment.
    let plain = |found: char| found.is_ascii_alphanumeric() || "@%+=:,./_-^".contains(found);
    if !text.is_empty() && !text.starts_with(['=', '^']) && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Writes `$'…'` without any quote inside, so that every shell sees it end at the same place.
fn escape(bytes: &[u8]) -> String {
    let mut escaped = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for found in chunk.valid().chars() {
            if shown::deceives(found) || matches!(found, '\'' | '\\') {
                octal(&mut escaped, found.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                escaped.push(found);
            }
        }
        octal(&mut escaped, chunk.invalid());
    }
    escaped.push('\'');
    escaped
}

fn octal(escaped: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(escaped, "\\{byte:03o}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// Lets a real shell read a word and returns what it understood.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test asks the shell for which words are quoted"
    )]
    fn read_by(shell: &str, word: &str) -> Option<Vec<u8>> {
        let line = format!("printf %s {word}");
        let output = Command::new(shell).args(["-c", &line]).output().ok()?;
        assert!(output.status.success(), "{shell}: {line}");
        Some(output.stdout)
    }

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        for (text, expected) in [
            ("/home/me/.pml.json", "/home/me/.pml.json"),
            ("npm:@scope/name@^1.2", "npm:@scope/name@^1.2"),
            ("", "''"),
            ("a b", "'a b'"),
            ("~root", "'~root'"),
            ("=ls", "'=ls'"),
            ("x'; rm -rf ~; '", r"'x'\''; rm -rf ~; '\'''"),
            ("$(x)`y`*", "'$(x)`y`*'"),
            ("a\n'b\\", r"$'a\012\047b\134'"),
            ("\u{202e}x", r"$'\342\200\256x'"),
        ] {
            assert_eq!(word(text), expected);
        }
        assert_eq!(operand("-*"), "-- '-*'");
        assert_eq!(path(Path::new("-rf")), "./-rf");
        assert_eq!(path(Path::new(OsStr::from_bytes(b"/a\xff"))), r"$'/a\377'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_shell_reads_exactly_the_quoted_word(text in r#"[ -~\n\t\x1b'"\\$`;&|é\x{202e}]{0,30}"#) {
            let quoted = word(&text);
            let plain = !quoted.starts_with("$'");
            for shell in ["bash", "sh"] {
                // A shell without `$'…'` need not understand it.
                if let Some(read) = read_by(shell, &quoted).filter(|_| plain || shell == "bash") {
                    prop_assert_eq!(read, text.as_bytes(), "{} {}", shell, quoted);
                }
            }
        }
    }
}
