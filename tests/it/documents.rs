//! What the documents say is what the binary does.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::pml;
use crate::support::world::World;

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The inside of the fenced block that follows a heading.
fn block_under<'a>(document: &'a str, heading: &str) -> &'a str {
    let (_, rest) = document
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no `{heading}`"));
    let (_, rest) = rest.split_once("\n```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("\n```").unwrap().0
}

/// Who says a message of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Client,
    Pml,
}

/// Reads messages that may span several lines: `->` begins one of the client, `<-` one of pml.
fn messages(transcript: &str) -> Vec<(Speaker, String)> {
    let mut messages: Vec<(Speaker, String)> = Vec::new();
    for line in transcript.lines() {
        if let Some(said) = line.strip_prefix("-> ") {
            messages.push((Speaker::Client, said.to_owned()));
        } else if let Some(said) = line.strip_prefix("<- ") {
            messages.push((Speaker::Pml, said.to_owned()));
        } else if let Some((_, message)) = messages.last_mut() {
            message.push_str(line.trim_start());
        }
    }
    messages
}

/// Says where `real` lacks what `told` shows; a text that ends in `…` tells its beginning only.
fn missing(told: &Value, real: &Value, place: &str) -> Option<String> {
    match (told, real) {
        (Value::Object(told), Value::Object(real)) => told.iter().find_map(|(name, told)| {
            let place = format!("{place}.{name}");
            missing(told, real.get(name).unwrap_or(&Value::Null), &place)
        }),
        (Value::Array(told), Value::Array(real)) if told.len() == real.len() => told
            .iter()
            .zip(real)
            .enumerate()
            .find_map(|(at, (told, real))| missing(told, real, &format!("{place}[{at}]"))),
        (Value::String(told), Value::String(real))
            if told.strip_suffix('…').is_some_and(|head| real.starts_with(head)) =>
        {
            None
        }
        (told, real) => (told != real).then(|| format!("{place}: told {told}, but it is {real}")),
    }
}

#[test]
fn the_transcript_of_the_readme_is_true() {
    let readme = readme();
    let world = World::new();
    let config = json!({ "mcpServers": { "sample": { "command": "pml", "args": ["sample-server"] } } });
    world.write(".pml.json", &config.to_string());
    let programs = pml().parent().unwrap().to_str().unwrap();
    world.set("PATH", &format!("{programs}:/usr/bin:/bin"));
    let mut client = world.legacy();
    let mut ids: Option<(String, String)> = None;
    let mut answered = 0;
    for (speaker, message) in messages(block_under(&readme, "## A call that needs a person")) {
        let message = match &ids {
            Some((told, real)) => message.replace(told, real),
            None => message,
        };
        let told: Value = serde_json::from_str(&message).unwrap_or_else(|error| panic!("{error}: {message}"));
        if speaker == Speaker::Client {
            client.raw(&message);
            continue;
        }
        let real = client.answer(told["id"].as_u64().unwrap());
        let mut told = told;
        let id = "/result/approval_context/workflow_id";
        if let Some(shown) = told.pointer_mut(id) {
            let real = real
                .pointer(id)
                .unwrap_or_else(|| panic!("no workflow in {real}"));
            ids = Some((
                shown.as_str().unwrap().to_owned(),
                real.as_str().unwrap().to_owned(),
            ));
            *shown = real.clone();
        }
        assert_eq!(missing(&told, &real, ""), None);
        answered += 1;
    }
    assert_eq!(answered, 2, "the transcript asks and gives a result");
}

#[test]
fn the_table_of_the_readme_holds_every_command_and_no_other() {
    let help = World::new().run(&["--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let mut commands: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        // The description of a command may go on in the next line, further in.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let readme = readme();
    let mut rows: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `pml "))
        .filter_map(|row| row.split([' ', '`']).next())
        .collect();
    commands.sort_unstable();
    rows.sort_unstable();
    assert_eq!(rows, commands);
}

#[test]
fn a_link_between_documents_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
    ] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        for (place, _) in text.match_indices("](") {
            let target = text[place + 2..].split([')', '#']).next().unwrap();
            let outside = target.is_empty() || target.contains("://");
            assert!(
                outside || root.join(target).exists(),
                "{document} points to `{target}`, which is not there"
            );
        }
    }
}
