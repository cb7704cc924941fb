//! The last scene of the demo: a model asks the person something by `ask_user`.

use anyhow::Context as _;
use owo_colors::OwoColorize as _;
use serde_json::json;

use super::super::CommandContext;
use super::client::{DemoClient, Wire};
use super::stage::{DemoStage, Machine};
use super::{Answering, expect_result, heading, indented, results, said, typed};
use crate::protocol::continuation::MEMBER;
use crate::protocol::own_tool::ASK_USER;

/// What the model asks.
const QUESTION: &str = "How shall the page greet its visitors?";

/// What it offers; the first is what the demo answers by itself.
const OPTIONS: [&str; 2] = ["Hello", "Good morning"];

/// Plays the scene, on a stage of its own.
pub(super) async fn play(context: &CommandContext, wire: Wire, answering: Answering) -> anyhow::Result<()> {
    let stage = DemoStage::build(context)?;
    let mut client = DemoClient::start(&stage, Machine::First, wire)?;
    client.open().await?;
    let options = OPTIONS.map(|label| json!({ "label": label }));
    let arguments = json!({ "question": QUESTION, "options": options });
    heading(&format!("The model has a question of its own: {ASK_USER}"))?;
    indented(&arguments.to_string())?;
    let pending = client.call(ASK_USER, &arguments).await?;
    let told = &pending["structuredContent"];
    let word = |name: &str| {
        told[name]
            .as_str()
            .with_context(|| format!("pml answered {pending}"))
    };
    let (id, code) = (word("workflow_id")?, word("code")?);
    said("pml keeps the question and answers at once, as this client shows no forms:")?;
    results(&json!({ "content": [pending["content"][0]] }))?;
    said(&format!(
        "It can be answered wherever the person is, such as by `pml answer {code}`."
    ))?;

    heading("The person answers")?;
    let lines: Vec<String> = (1..)
        .zip(OPTIONS)
        .map(|(number, label)| format!("{}  {label}", number.cyan().bold()))
        .collect();
    indented(&format!("{QUESTION}\n{}", lines.join("\n")))?;
    let answer = match answering {
        Answering::Given => {
            said(&format!("The answer is given: {}.", OPTIONS[0].bold()))?;
            Some(OPTIONS[0].to_owned())
        }
        Answering::Typed => read().await?,
    };
    match answer {
        Some(answer) => {
            let continuation = json!({ MEMBER: { "workflow_id": id, "answer": answer } });
            heading("The client carries the answer back, on the same tool")?;
            indented(&format!("{ASK_USER} {continuation}"))?;
            said("pml answers:")?;
            results(&expect_result(&client.call(ASK_USER, &continuation).await?)?)?;
        }
        None => said("The question stays open; silence is never turned into an answer.")?,
    }
    client.close().await
}

/// Reads an option by its number, or the person's own words; `None` at the end of input.
async fn read() -> anyhow::Result<Option<String>> {
    loop {
        let Some(line) = typed("a number or your own words").await? else {
            return Ok(None);
        };
        if let Some(answer) = answer_of(&line) {
            return Ok(Some(answer));
        }
    }
}

fn answer_of(line: &str) -> Option<String> {
    let line = line.trim();
    let numbered = line
        .parse::<usize>()
        .ok()
        .and_then(|number| OPTIONS.get(number.checked_sub(1)?));
    match numbered {
        Some(option) => Some((*option).to_owned()),
        None => Some(line.to_owned()).filter(|line| !line.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_takes_an_option_and_other_words_are_the_answer() {
        let read = ["2\n", " 1 ", "0", "3", "Ahoy!\n", "\n"].map(answer_of);
        let said = ["Good morning", "Hello", "0", "3", "Ahoy!"].map(|said| Some(said.to_owned()));
        assert_eq!(read[..5], said);
        assert_eq!(read[5], None);
    }
}
