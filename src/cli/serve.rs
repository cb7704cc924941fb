//! `pml serve`: the page of the inbox in a browser; `pml serve token`: the right of a process to ask over HTTP.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::failure::{Hinted as _, Refused};
use super::run::{QuestionHostFile, hosting};
#[cfg(debug_assertions)]
use super::watchdog::Watchdog;
use super::{CommandContext, output, person, terminal};
use crate::channels::Office;
use crate::config::ChannelName;
use crate::host::{Equipment, LateResumes, Runs};
use crate::inbox::web::{
    Claim, OnlyServer, RunningServer, ServeOptions, Server, ServerCommand, StreamTokens, fresh_key,
};
use crate::proxy::{ChannelKeeper, Desk};
use crate::report::render_hinted;

/// How long the channels may take to end.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How the page is served.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArguments {
    /// Listen on this port of 127.0.0.1; without it on any that is free
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Print one line of JSON: url, port and pid
    #[arg(long)]
    json: bool,
    /// Also answer under this name, the one of your own TLS proxy in front
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    allow_host: Option<String>,
    #[command(subcommand)]
    command: Option<ServeCommand>,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    /// Print a token with which a process may put questions over HTTP while it lives
    Token(TokenArguments),
}

/// Whose token, and how to print it.
#[derive(Debug, Args)]
struct TokenArguments {
    /// The process that asks; without it the one that runs this command
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
    /// Print what a program needs besides the token, as JSON
    #[arg(long)]
    json: bool,
}

/// Serves the page until a signal comes, or opens the page of the server that runs.
pub(crate) fn run(context: &CommandContext, arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    if let Some(ServeCommand::Token(arguments)) = &arguments.command {
        return token(context, arguments);
    }
    // What is said on the page counts as a person's word.
    person::required(context, "serve")?;
    match OnlyServer::claim(context.locations.state())? {
        Claim::Own(only) => serve(context, only, arguments),
        Claim::Other(running) => join(context, running, arguments),
    }
}

/// Opens the page of the server that runs.
fn join(
    context: &CommandContext,
    running: RunningServer,
    arguments: &ServeArguments,
) -> anyhow::Result<ExitCode> {
    if !arguments.open {
        if arguments.json {
            let written = output::data(&json!(running).to_string());
            return Ok(output::verdict(1, written)?);
        }
        let RunningServer {
            url, pid, command, ..
        } = running;
        return match command {
            ServerCommand::Serve => {
                let refused = Refused(format!("`pml serve` runs already, as process {pid}, at {url}"));
                Err(refused).hint("to open its page: pml serve --open")
            }
            ServerCommand::Run => {
                let refused = Refused(format!(
                    "`pml run --web` serves the page, as process {pid}, at {url}; one process does at a time"
                ));
                Err(refused).hint(
                    "channels are connected and late answers resumed by `pml serve` alone: start it once that run has \
                     ended, and before the next `pml run --web`",
                )
            }
        };
    }
    let url = fresh_key(context.locations.state(), &running)?;
    show(context, &running, &url, arguments)?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the address in a browser if that is wanted, and prints it where it has to be opened by hand.
fn show(
    context: &CommandContext,
    running: &RunningServer,
    url: &str,
    arguments: &ServeArguments,
) -> anyhow::Result<()> {
    let opened = arguments.open && super::browser::open(&context.environment, url);
    if arguments.open && !opened {
        output::note("no browser could be started; open the address by hand");
    }
    // A key that the browser uses is used up.
    let url = if opened { &running.url } else { url };
    if arguments.json {
        let line = json!({ "url": url, "port": running.port, "pid": running.pid });
        output::data(&line.to_string())?;
    } else {
        output::data(url)?;
    }
    Ok(())
}

fn serve(context: &CommandContext, only: OnlyServer, arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    // Said before the page is: an agent that asks from now on waits a moment for its channel.
    let keeper = ChannelKeeper::register(context.locations.state());
    if let Err(error) = &keeper {
        tracing::debug!(%error, "that the channels are connected here cannot be told to others");
    }
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all();
    #[cfg(debug_assertions)]
    if let Some(watchdog) = Watchdog::wanted_by(&context.environment) {
        watchdog.prepare(&mut builder);
        let runtime = builder.build()?;
        runtime.block_on(watchdog.watch(serve_page(context, only, arguments)))?;
        runtime.shutdown_background();
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = builder.build()?;
    runtime.block_on(serve_page(context, only, arguments))?;
    // A thread that still waits for a lock or the disk must not keep pml alive.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve_page(
    context: &CommandContext,
    only: OnlyServer,
    arguments: &ServeArguments,
) -> anyhow::Result<()> {
    // Heard from the beginning: a signal that comes before the first request ends it as well.
    let asked_to_go = tokio::spawn(terminal::interrupted());
    let desk = Desk::new(
        &context.environment,
        &context.locations,
        context.files(),
        person::terminal(),
    );
    let options = ServeOptions {
        port: arguments.port,
        allowed_host: arguments.allow_host.clone(),
        command: ServerCommand::Serve,
    };
    let tokens = StreamTokens::new(context.locations.state());
    let runs = Runs::new(context.locations.state());
    let server = Server::open(desk.clone(), only, tokens, runs, &options).await?;
    show(context, server.running(), &server.url_with_key(), arguments)?;
    let ending = CancellationToken::new();
    let resumes = LateResumes::new(
        hosting(context)?,
        desk.clone(),
        equipment(context),
        ending.clone(),
    );
    let resuming = tokio::spawn(async move {
        if let Err(refusal) = resumes.run().await {
            // Said at once: the page goes on, and the runs do not.
            let why = render_hinted(&refusal);
            output::note(&format!("answered runs are not resumed any more: {why}"));
        }
    });
    let page = Some(server.running().url.clone());
    let office = Office::new(
        desk,
        &context.environment,
        &context.locations,
        page,
        ending.clone(),
    );
    let switchboard = office.switchboard();
    server.connect_whatsapp(Arc::new(move |request| {
        switchboard.hand(ChannelName::Whatsapp, request)
    }));
    let channels = tokio::spawn(office.run());
    server
        .run(async move {
            drop(asked_to_go.await);
            ending.cancel();
            // The store is closed after this: what the channels say last must be in it.
            if let Ok(Ok(Err(refusal))) = tokio::time::timeout(LAST_WORDS, channels).await {
                tracing::warn!("the channels stopped: {}", render_hinted(&refusal));
            }
        })
        .await?;
    resuming.await?;
    Ok(())
}

/// Tells the programs of resumed runs where questions are put over HTTP.
fn equipment(context: &CommandContext) -> Equipment {
    let locations = context.locations.clone();
    Arc::new(move |run| {
        let questions = QuestionHostFile::put(&locations, run);
        // The run goes on without.
        let questions = questions.inspect_err(|error| tracing::warn!("run {}: {error}", run.record.id));
        Box::new(questions.ok().flatten())
    })
}

fn token(context: &CommandContext, arguments: &TokenArguments) -> anyhow::Result<ExitCode> {
    let state = context.locations.state();
    let running = arguments.json.then(|| OnlyServer::find(state)).transpose()?;
    let pid = arguments.pid.unwrap_or_else(std::os::unix::process::parent_id);
    let file = context.files().project;
    let project = file
        .parent()
        .unwrap_or_else(|| context.environment.working_directory());
    let token = StreamTokens::new(state).make(pid, project, &file)?;
    match running {
        Some(running) => {
            output::data(&running.question_settings(token).to_string())?;
        }
        None => output::data(&token.to_string())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the name of a host, with a port or without.
fn host_name(text: &str) -> Result<String, String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-.:".contains(letter);
    if text.is_empty() || !text.chars().all(allowed) {
        return Err("a host name is letters, digits, `-` and `.`, and maybe `:` and a port".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}
