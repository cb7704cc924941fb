use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

/// Returns a text with a reference in the place of each secret.
fn hidden(text: &str, found: Vec<ClearPart>) -> String {
    let mut hidden = text.to_owned();
    for part in found.into_iter().rev() {
        hidden.replace_range(part.range, &reference(&part.variable));
    }
    hidden
}

fn word(before: &str, word: &str) -> String {
    hidden(word, in_word("s", before, word))
}

#[test]
fn every_secret_among_the_words_of_a_command_is_found() {
    for (before, given, expected) in [
        ("-e", "API_KEY=abc", "API_KEY=${API_KEY}"),
        ("-e", "apiKey=abc", "apiKey=${apiKey}"),
        ("--env", "API_KEY=abc", "API_KEY=${API_KEY}"),
        ("run", "--env=API_KEY=abc", "--env=API_KEY=${API_KEY}"),
        ("run", "-eAPI_KEY=abc", "-eAPI_KEY=${API_KEY}"),
        ("-e", "PASSWORD=two words", "PASSWORD=${PASSWORD}"),
        ("-e", "PASSWORD=a b --token c", "PASSWORD=${PASSWORD}"),
        ("-e", "DB=postgres://me:pw@h/d", "DB=${DB}"),
        ("-e", "URL=https://h/x?api_key=abc&b=c", "URL=${URL}"),
        ("env", "API_KEY=abc", "API_KEY=${API_KEY}"),
        (
            "-c",
            "cd /x && API_KEY=abc npx -y foo",
            "cd /x && API_KEY=${API_KEY} npx -y foo",
        ),
        ("-c", "API_KEY='a b' npx foo", "API_KEY='${API_KEY}' npx foo"),
        (
            "-c",
            "docker run -e TOKEN=abc img",
            "docker run -e TOKEN=${TOKEN} img",
        ),
        ("-c", "bash -c 'x --token abc'", "bash -c 'x --token ${TOKEN}'"),
        ("--token", "abc", "${TOKEN}"),
        ("", "--token=abc", "--token=${TOKEN}"),
        (
            "--header",
            "Authorization: Bearer abc",
            "Authorization: Bearer ${S_TOKEN}",
        ),
        ("", "--header=X-Api-Key:abc", "--header=X-Api-Key:${S_X_API_KEY}"),
        (
            "",
            "https://h/mcp?api_key=abc&mode=all",
            "https://h/mcp?api_key=${S_API_KEY}&mode=all",
        ),
        (
            "--url",
            "https://me:pw@h/?key=a#x",
            "https://me:${S_PASSWORD}@h/?key=${S_KEY}#x",
        ),
        (
            "",
            "--url=https://h/?a=${A}&token=abc",
            "--url=https://h/?a=${A}&token=${S_TOKEN}",
        ),
        ("", "ghp_0123456789ab", "${S_TOKEN}"),
    ] {
        assert_eq!(word(before, given), expected, "{before} {given}");
    }
}

#[test]
fn what_is_no_secret_stays_as_it_is() {
    for (before, given) in [
        ("-e", "API_KEY"),
        ("-e", "API_KEY="),
        ("-e", "MODE=all"),
        ("-e", "API_KEY=${API_KEY}"),
        ("-e", "USE_TOKEN=true"),
        ("-e", "GOOGLE_APPLICATION_CREDENTIALS=/home/me/google.json"),
        ("", "-explain=yes"),
        ("", "https://h/mcp?mode=all&page=2"),
        ("", "https://h/mcp?api_key=${KEY}"),
        ("", "https://me:${PW}@h/mcp"),
        ("--token", "--other"),
        ("--key-file", "./k.pem"),
        ("-c", "cd /x && npx -y foo --port 8080"),
        ("-c", "don't"),
        ("", ""),
    ] {
        assert_eq!(in_word("s", before, given), Vec::new(), "{before} {given}");
    }
}

#[test]
fn every_parameter_of_an_address_and_its_password_are_found() {
    let address = "https://me:pw@h/mcp?api_key=a%20b&x=1&access_token=c#token=d";
    assert_eq!(
        hidden(address, in_address("s", address)),
        "https://me:${S_PASSWORD}@h/mcp?api_key=${S_API_KEY}&x=1&access_token=${S_ACCESS_TOKEN}#token=d"
    );
}

#[test]
fn a_secret_that_is_the_default_of_a_reference_is_known_as_such() {
    for found in [
        in_variable("X", "${X:-sk-0123456789abc}"),
        in_variable("X", "${X:-postgres://me:pw@h/d}"),
        in_header("s", "Authorization", "Bearer ${X:-sk-0123456789abc}"),
        in_address("s", "https://h/?key=${X:-sk-0123456789abc}"),
        in_word("s", "-e", "K=${X:-sk-0123456789abc}"),
        in_word("s", "--token", "${X:-sk-0123456789abc}"),
    ] {
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].standing, found[0].variable.as_str()),
            (Standing::Default, "X")
        );
    }
    assert_eq!(in_variable("API_TOKEN", "${X:-basic}"), Vec::new());
}

#[test]
fn what_may_be_a_part_of_what_runs_is_known_as_such() {
    for (before, given, standing) in [
        ("-e", "API_KEY=p@ss:w#rd%+/=,.!?*~^[]{}-_", Standing::Alone),
        ("--token", "abc", Standing::Alone),
        (
            "-e",
            "TOKEN=0;require('child_process').exec('x')",
            Standing::MaybeCommand,
        ),
        ("-c", "TOKEN=x;/tmp/evil", Standing::MaybeCommand),
        ("-c", "TOKEN=`/tmp/evil` npx foo", Standing::MaybeCommand),
        ("-e", "PASSWORD=two words", Standing::MaybeCommand),
        ("-e", "PASSWORD=a\nb", Standing::MaybeCommand),
        ("--token", "$(evil)", Standing::MaybeCommand),
    ] {
        let found = in_word("s", before, given);
        assert!(!found.is_empty(), "{given}");
        assert!(
            found.iter().all(|part| part.standing == standing),
            "{given}: {found:?}"
        );
    }
}

#[test]
fn a_word_that_nests_quotes_for_ever_is_looked_into_a_few_times() {
    let nested = "a 'b ".repeat(100_000) + &"' c".repeat(100_000);
    in_word("s", "", &nested);
}

proptest! {
    #[test]
    fn whatever_a_word_is_its_parts_are_in_order_and_apart(before in "(|-e|--env|--token|--header|-c)", word in "[-a-zA-Z=:/?&@'\"$ {}é]{0,40}") {
        let found = in_word("s", &before, &word);
        let mut at = 0;
        for part in &found {
            prop_assert!(at <= part.range.start && part.range.start < part.range.end, "{:?}", found);
            prop_assert!(word.get(part.range.clone()).is_some());
            prop_assert!(is_name(&part.variable), "{:?}", found);
            at = part.range.end;
        }
    }
}
