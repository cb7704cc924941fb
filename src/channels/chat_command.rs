//! What a person typed into a chat: words, or one of three commands. Pure.

use super::channel::{About, MessageRef, Utterance};
use crate::card::Decision;

/// The letters of a code.
const CODE: usize = 5;

/// Reads what was typed, perhaps as a reply to a message.
///
/// `/answer CODE words` and `/refuse CODE reason` name an ask; after a reply the code may be left out. `/start` greets.
pub(super) fn read(text: &str, replied: Option<MessageRef>) -> (About, Utterance) {
    let replied = replied.map_or(About::Nothing, About::Message);
    let (word, rest) = first_word(text.trim());
    // In a group a command is written with the name of its bot.
    let command = word.split('@').next().unwrap_or_default().to_ascii_lowercase();
    match command.as_str() {
        "/start" => (About::Nothing, Utterance::Greeting),
        "/answer" => {
            let (about, words) = addressed(rest, replied);
            (about, Utterance::Text(words.to_owned()))
        }
        "/refuse" => {
            let (about, reason) = addressed(rest, replied);
            let reason = (!reason.is_empty()).then(|| reason.to_owned());
            (about, Utterance::Decision(Decision::Abort, reason))
        }
        _ => (replied, Utterance::Text(text.trim().to_owned())),
    }
}

/// Takes the code of an ask from the beginning of what was typed, where no message was replied to.
fn addressed(rest: &str, replied: About) -> (About, &str) {
    let (word, words) = first_word(rest);
    let is_code = word.len() == CODE && word.bytes().all(|letter| letter.is_ascii_alphabetic());
    match replied {
        About::Nothing if is_code => (About::Code(word.to_ascii_lowercase()), words),
        replied => (replied, rest),
    }
}

fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_name_an_ask_and_other_words_are_words() {
        let text = |words: &str| Utterance::Text(words.to_owned());
        let no = |reason: Option<&str>| Utterance::Decision(Decision::Abort, reason.map(str::to_owned));
        let code = || About::Code("abcde".to_owned());
        for (typed, about, said) in [
            ("/start", About::Nothing, Utterance::Greeting),
            ("/start pair", About::Nothing, Utterance::Greeting),
            ("/answer abcde pg, please", code(), text("pg, please")),
            ("/answer@pml_bot ABCDE 2", code(), text("2")),
            ("/answer\nabcde\n1\n2", code(), text("1\n2")),
            ("/refuse abcde  too old ", code(), no(Some("too old"))),
            ("/refuse abcde", code(), no(None)),
            ("/refuse", About::Nothing, no(None)),
            ("/answer 2", About::Nothing, text("2")),
            ("abcde is fine", About::Nothing, text("abcde is fine")),
            ("/etc/passwd", About::Nothing, text("/etc/passwd")),
            ("", About::Nothing, text("")),
        ] {
            assert_eq!(read(typed, None), (about, said), "{typed:?}");
        }
    }

    #[test]
    fn a_reply_needs_no_code() {
        let message = || MessageRef(json!({ "message": 7 }));
        assert_eq!(
            read("/refuse wrong one", Some(message())),
            (
                About::Message(message()),
                Utterance::Decision(Decision::Abort, Some("wrong one".to_owned()))
            )
        );
        assert_eq!(
            read("pg", Some(message())),
            (About::Message(message()), Utterance::Text("pg".to_owned()))
        );
    }
}
