//! `pml demo`: shows the main job in a terminal, without a client and without a network.
//!
//! It is a client of the real `pml stdio` and has no other road to what it shows: a call suspended, a person asked,
//! the call continued; then a question of the model's. Everything happens in a temporary folder with a temporary home, so nothing of the person's
//! is read or changed.

mod client;
mod question;
mod stage;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use self::client::{DemoClient, Wire};
use self::stage::{DemoStage, Machine};
use super::{CommandContext, output};
use crate::protocol::Shown;
use crate::protocol::approval::{ApprovalContext, AskSubject};
use crate::protocol::continuation::MEMBER;

/// The tool that the demo calls first: the one that is listed of a server that was never started.
const TOOL: &str = "sample__connect";

/// The tool that it calls once the server is known.
const GREET: &str = "sample__greet";

/// As many columns as a description takes behind a tool's name in a terminal of 80.
const ABOUT: usize = 56;

/// How to see the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Answer by itself instead of asking in the terminal
    #[arg(long, value_enum)]
    answer: Option<DemoAnswer>,
    /// Show the JSON-RPC lines between the client and pml
    #[arg(long)]
    wire: bool,
}

/// What a person may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DemoAnswer {
    /// The call runs
    Continue,
    /// The call runs, and a rule is written
    Always,
    /// Nothing runs
    Abort,
}

impl DemoAnswer {
    /// Reads what was typed: a letter or the word.
    fn of(typed: &str) -> Option<Self> {
        match typed.trim().to_lowercase().as_str() {
            "c" | "continue" => Some(Self::Continue),
            "a" | "always" => Some(Self::Always),
            "x" | "abort" => Some(Self::Abort),
            _ => None,
        }
    }

    /// Returns what the client sends back.
    fn continuation(self, asked: &ApprovalContext) -> Value {
        let id = asked.workflow_id;
        json!({ MEMBER: match self {
            Self::Continue => json!({ "workflow_id": id, "approved": true }),
            Self::Always => json!({ "workflow_id": id, "approved": true, "always": true }),
            Self::Abort => json!({ "workflow_id": id, "approved": false }),
        } })
    }
}

/// Where the answers of the demo come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answering {
    /// From the person at the terminal.
    Typed,
    /// From the demo itself.
    Given,
}

/// Shows the demo: one answer of the person's, or all three where nobody can be asked.
pub(crate) fn run(context: &CommandContext, arguments: &DemoArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let wire = if arguments.wire { Wire::Shown } else { Wire::Hidden };
    let shown = runtime.block_on(async {
        tokio::select! {
            shown = show(context, wire, arguments.answer) => shown.map(|()| ExitCode::SUCCESS),
            interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| ExitCode::FAILURE).map_err(Into::into),
        }
    });
    // A thread may still wait for a line of the terminal.
    runtime.shutdown_background();
    shown
}

async fn show(context: &CommandContext, wire: Wire, answer: Option<DemoAnswer>) -> anyhow::Result<()> {
    output::data(&format!(
        "{}\nThis command plays the MCP client; `pml stdio` is its only server. The project and the home\n\
         are temporary folders: nothing of yours is read or changed.",
        "pml demo".bold()
    ))?;
    match answer {
        Some(answer) => {
            play(context, wire, Some(answer)).await?;
            question::play(context, wire, Answering::Given).await?;
        }
        None if rustix::termios::isatty(std::io::stdin()) => {
            play(context, wire, None).await?;
            question::play(context, wire, Answering::Typed).await?;
        }
        None => {
            output::data(
                "Standard input is no terminal, so nobody can be asked: here are all three answers.",
            )?;
            for answer in DemoAnswer::value_variants() {
                let name = format!("{answer:?}");
                output::data(&format!("\n{}", format!("=== {name} ===").bold()))?;
                play(context, wire, Some(*answer)).await?;
            }
            output::data(&format!("\n{}", "=== A question ===".bold()))?;
            question::play(context, wire, Answering::Given).await?;
        }
    }
    next_steps(context)
}

/// Plays the story once, on a stage of its own.
async fn play(context: &CommandContext, wire: Wire, answer: Option<DemoAnswer>) -> anyhow::Result<()> {
    let stage = DemoStage::build(context)?;
    heading("The project declares one server and asks before anything runs: .pml.json")?;
    indented(&stage.config()?)?;

    heading("The client connects to pml and lists the tools")?;
    let mut client = DemoClient::start(&stage, Machine::First, wire)?;
    client.open().await?;
    list(&mut client).await?;
    said("`sample` has not been started, so its own tools are not known yet.")?;

    heading(&format!("The model calls the tool that is listed: {TOOL}"))?;
    let result = client.call(TOOL, &json!({})).await?;
    let asked = approval(&result)?;
    said("pml suspends the call and answers at once, so that nothing blocks:")?;
    if let Some(headline) = texts(&result).first() {
        indented(&headline.bold().to_string())?;
    }
    indented(&format!(
        "who asks    the model, by calling {}\nwould run   {}",
        Shown::line(&asked.tool.to_string()),
        Shown::line(command(&asked))
    ))?;
    said(&format!("Why it asks, by `pml check {}`:", asked.tool))?;
    indented(&stage.check(&asked.tool.to_string()).await?)?;

    heading("A person decides")?;
    indented(&format!(
        "{}  Continue  run this call, and approve exactly this server on this machine\n\
         {}  Always    the same, and write a rule for {} into .pml.json\n\
         {}  Abort     nothing runs",
        "c".cyan().bold(),
        "a".cyan().bold(),
        asked.tool,
        "x".cyan().bold(),
    ))?;
    let answer = match answer {
        Some(answer) => {
            said(&format!("The answer is given: {}.", format!("{answer:?}").bold()))?;
            answer
        }
        None => ask().await?,
    };

    let before = stage.config()?;
    let continuation = answer.continuation(&asked);
    heading("The client carries the answer back, on the same tool")?;
    indented(&format!("{TOOL} {continuation}"))?;
    said("pml answers:")?;
    results(&client.call(TOOL, &continuation).await?)?;
    match answer {
        DemoAnswer::Continue => approved(&mut client).await?,
        DemoAnswer::Always => allowed(&stage, &before, wire).await?,
        DemoAnswer::Abort => aborted(&mut client).await?,
    }
    client.close().await
}

/// After Continue: the server is approved, so its tools are listed and run.
async fn approved(client: &mut DemoClient) -> anyhow::Result<()> {
    heading("The client lists the tools again")?;
    list(client).await?;
    let arguments = json!({ "name": "world" });
    heading(&format!("The model calls one of them: {GREET} {arguments}"))?;
    results(&expect_result(&client.call(GREET, &arguments).await?)?)?;
    said("No question: this very command was approved. A changed command would ask again.")
}

/// After Always: the rule stands in the file, and decides also where nothing was ever approved.
async fn allowed(stage: &DemoStage, before: &str, wire: Wire) -> anyhow::Result<()> {
    heading("What changed in .pml.json")?;
    indented(&difference(before, &stage.config()?))?;
    heading(&format!(
        "The same project on another machine (an empty home): {TOOL}"
    ))?;
    let mut client = DemoClient::start(stage, Machine::Second, wire)?;
    client.open().await?;
    results(&expect_result(&client.call(TOOL, &json!({})).await?)?)?;
    said("No question: the rule allows it. To take it back: pml forget sample:connect")?;
    client.close().await
}

/// After Abort: the server never ran, so its tools are as unknown as before.
async fn aborted(client: &mut DemoClient) -> anyhow::Result<()> {
    heading("Nothing ran: the client lists the tools again")?;
    list(client).await?;
    said("`sample` is still a stranger. The next call asks again; `pml deny sample` ends the questions.")
}

/// Lists the tools as a client sees them.
async fn list(client: &mut DemoClient) -> anyhow::Result<()> {
    let listed = client.request("tools/list", &json!({})).await?;
    let tools = listed["tools"].as_array().context("pml listed no tools")?;
    let lines: Vec<String> = tools
        .iter()
        .map(|tool| {
            let about = first_sentence(tool["description"].as_str().unwrap_or_default());
            let name = Shown::line(tool["name"].as_str().unwrap_or_default()).to_string();
            format!("{name:<18} {}", Shown::line(&about))
        })
        .collect();
    indented(&lines.join("\n"))
}

/// Returns the first sentence of a description; one that is too long for its line ends in an ellipsis behind a word.
fn first_sentence(description: &str) -> String {
    let sentence = description.split(". ").next().unwrap_or_default();
    let sentence = sentence.trim().trim_end_matches('.');
    if sentence.chars().count() <= ABOUT {
        return sentence.to_owned();
    }
    let ends = sentence
        .match_indices(' ')
        .map(|(end, _)| sentence[..end].trim_end_matches([',', ';', ':']));
    // One column is the ellipsis. What is cut within backticks would leave one open.
    let fitting = ends.take_while(|cut| cut.chars().count() < ABOUT);
    let whole = fitting.filter(|cut| cut.matches('`').count() % 2 == 0);
    format!("{}…", whole.last().unwrap_or_default())
}

/// Asks in the terminal until an answer can be read; the end of input is a no.
async fn ask() -> anyhow::Result<DemoAnswer> {
    loop {
        let Some(typed) = typed("c, a or x").await? else {
            return Ok(DemoAnswer::Abort);
        };
        if let Some(answer) = DemoAnswer::of(&typed) {
            return Ok(answer);
        }
    }
}

/// Reads one line of the terminal; `None` at the end of input.
async fn typed(what: &str) -> anyhow::Result<Option<String>> {
    let mut out = anstream::stdout();
    write!(out, "  Your answer ({what}, then Enter): ")?;
    out.flush()?;
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_bytes| line)
    });
    let line = reading.await??;
    if line.is_empty() {
        output::data("")?;
        return Ok(None);
    }
    Ok(Some(line))
}

/// Reads what a person is asked from an `approval_required` result.
fn approval(result: &Value) -> anyhow::Result<ApprovalContext> {
    let context = result
        .get("approval_context")
        .with_context(|| format!("pml did not ask but answered {result}"))?;
    serde_json::from_value(context.clone()).with_context(|| format!("pml asked something else: {context}"))
}

/// Insists on a result that neither asks nor fails.
fn expect_result(result: &Value) -> anyhow::Result<Value> {
    let unexpected = result.get("approval_required").or(result.get("isError"));
    match unexpected {
        Some(_) => anyhow::bail!("pml should have run the call but answered {result}"),
        None => Ok(result.clone()),
    }
}

fn texts(result: &Value) -> Vec<String> {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks
        .filter_map(|block| block["text"].as_str())
        .map(|text| Shown::block(text).to_string())
        .collect()
}

fn results(result: &Value) -> anyhow::Result<()> {
    indented(&texts(result).join("\n").green().to_string())
}

/// Shows the lines that changed, and one line around them.
fn difference(before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for change in diff
        .grouped_ops(1)
        .iter()
        .flatten()
        .flat_map(|part| diff.iter_changes(part))
    {
        let line = Shown::line(change.value().trim_end()).to_string();
        lines.push(match change.tag() {
            ChangeTag::Delete => format!("- {line}").red().to_string(),
            ChangeTag::Insert => format!("+ {line}").green().to_string(),
            ChangeTag::Equal => format!("  {line}"),
        });
    }
    lines.join("\n")
}

fn heading(text: &str) -> anyhow::Result<()> {
    Ok(output::data(&format!("\n{} {}", ">".cyan().bold(), text.bold()))?)
}

fn said(text: &str) -> anyhow::Result<()> {
    Ok(output::data(&format!("  {text}"))?)
}

fn indented(text: &str) -> anyhow::Result<()> {
    for line in text.lines() {
        output::data(&format!("    {line}"))?;
    }
    Ok(())
}

fn next_steps(context: &CommandContext) -> anyhow::Result<()> {
    let found = which::which_in(
        "pml",
        context.environment.variable("PATH"),
        context.environment.working_directory(),
    );
    let mut steps = Vec::new();
    if found.is_err() {
        steps.push((
            "cargo install --locked pml-mcp",
            "put pml where your clients find it",
        ));
    }
    steps.extend([
        ("pml import", "bring the servers of your clients behind pml"),
        (
            "pml init --client claude",
            "or begin anew, and register pml in Claude Code",
        ),
        ("pml add time -- uvx mcp-server-time", "put a server behind pml"),
        ("pml demo --wire", "see the JSON-RPC lines of this demo"),
    ]);
    output::data(&format!("\n{}", "What to do next".bold()))?;
    for (command, what) in steps {
        output::data(&format!("  {}{what}", format!("{command:<38}").cyan()))?;
    }
    Ok(())
}

/// Returns what the sample server would be run by.
fn command(asked: &ApprovalContext) -> &str {
    match &asked.subject {
        AskSubject::Dependency(dependency) => &dependency.install,
        AskSubject::ProjectFile(file) => &file.path,
    }
}
