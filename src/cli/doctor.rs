//! `pml doctor`: what bypasses pml, and what keeps servers from working. Changes nothing.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{CommandContext, Haste, output};
use crate::clients::{ClientFile, Editing, Scope, places, program_of};
use crate::config::Config;
use crate::loader::{Ecosystem, Loader, Plan, ServerVariables, find_program, plan};
use crate::protocol::Shown;
use crate::report::{Hint, render};
use crate::workflow::{Place, Timestamp};

/// How to print what is found.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print what is found as JSON
    #[arg(long)]
    json: bool,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// What it is about: a client, a file, a server or a program.
    about: String,
    problem: String,
    /// The command that helps.
    hint: Option<String>,
}

impl Finding {
    fn new(about: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            problem: problem.into(),
            hint: Some(hint.into()),
        }
    }

    fn of<E: Hint + 'static>(about: impl Into<String>, error: &E) -> Self {
        let (about, problem) = (about.into(), render(error, None));
        // What is about a server names it at its beginning.
        let problem = problem.strip_prefix(&format!("{about}: ")).unwrap_or(&problem);
        Self {
            problem: problem.to_owned(),
            about,
            hint: error.hint(),
        }
    }
}

/// Looks at everything and says what is wrong.
pub(crate) fn run(context: &CommandContext, arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let mut findings = clients(context);
    match context.read() {
        Ok(config) => findings.extend(servers(context, &config)),
        Err(error) => findings.push(Finding::of("configuration", &error)),
    }
    if let Err(error) = Place::of(&context.locations).approvals() {
        findings.push(Finding::of("store", &error));
    }
    let code = u8::from(!findings.is_empty());
    if arguments.json {
        let problems: Vec<_> = findings
            .iter()
            .map(|found| json!({ "about": found.about, "problem": found.problem, "hint": found.hint }))
            .collect();
        let written = output::json(&json!({ "problems": problems }));
        return Ok(output::verdict(code, written)?);
    }
    if findings.is_empty() {
        output::say("nothing is wrong: no client bypasses pml, and what it needs is there");
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<_> = findings
        .iter()
        .map(|found| match &found.hint {
            Some(hint) => format!(
                "{}: {}\n  {}",
                found.about,
                found.problem,
                hint.replace('\n', "\n  ")
            ),
            None => format!("{}: {}", found.about, found.problem),
        })
        .collect();
    Ok(output::verdict(code, output::data(&lines.join("\n")))?)
}

/// Finds clients that start servers without pml, or a pml that is not there.
fn clients(context: &CommandContext) -> Vec<Finding> {
    let project = context.files().at_root(&context.environment).project;
    let project = project.parent().unwrap_or(Path::new("/"));
    let mut findings = Vec::new();
    for place in places(&context.environment, project) {
        let about = place.client.describe(place.scope);
        let id = place.client.id;
        let file = match ClientFile::read(place) {
            Ok(file) => file,
            Err(error) => {
                findings.push(Finding::of(about, &error));
                continue;
            }
        };
        let others: Vec<_> = file
            .others()
            .filter(|server| !file.is_part_of_client(server))
            .map(|server| format!("`{}`", Shown::line(&server.name)))
            .collect();
        let path = context.path(&file.path);
        let registration = file.registration();
        if !others.is_empty() {
            let beside = if registration.is_some() {
                "beside pml"
            } else {
                "without pml"
            };
            let hint = match file.place.client.editing {
                // pml never takes them out there, however often they are imported.
                Editing::Person => {
                    format!("take those out of it that are behind pml; what to write there: pml import {id}")
                }
                Editing::Pml | Editing::OwnProgram => {
                    format!("to bring them behind pml: pml import {id}")
                }
            };
            let problem = format!("starts {} {beside} ({path})", others.join(", "));
            findings.push(Finding::new(&about, problem, hint));
        }
        let stale = registration
            .and_then(|standing| program_of(&standing.entry))
            .filter(|program| !is_there(context, program));
        if let Some(program) = stale {
            let again = match file.place.scope {
                Scope::User => format!("pml init --client {id}"),
                Scope::Local | Scope::Project => "pml init".to_owned(),
            };
            findings.push(Finding::new(
                about,
                format!(
                    "would start `{}`, which is not there ({path})",
                    Shown::path(&program)
                ),
                format!("to write the path of this one: {again}"),
            ));
        }
    }
    findings
}

/// Tells whether a client can start a program.
fn is_there(context: &CommandContext, program: &Path) -> bool {
    if program.is_absolute() {
        return program.is_file();
    }
    program
        .to_str()
        .is_some_and(|name| find_program(name, &context.environment).is_some())
}

/// Finds a server that failed when it was started last, or has not been called since.
fn failing(context: &CommandContext, loader: &Loader, plan: &Plan) -> Option<Finding> {
    let failure = loader.last_failure(plan)?;
    let used = loader.last_use(plan);
    let has_worked_since = used.is_some_and(|used| used > failure.at);
    // One that shows its tools and was never called was mended before its first call.
    if has_worked_since || (used.is_none() && loader.known(plan).is_some()) {
        return None;
    }
    let name = plan.dependency();
    Some(Finding::new(
        format!("`{name}`"),
        format!(
            "failed on {}: {}",
            Timestamp::from_millis(failure.at),
            failure.what
        ),
        format!(
            "all of it: {}\nto try it: pml approve {name}",
            context.path(&failure.log)
        ),
    ))
}

/// Finds what keeps declared servers from working.
fn servers(context: &CommandContext, config: &Config) -> Vec<Finding> {
    // What a client hands over is set where it counts.
    let environment = context.planning_environment();
    let loader = context.loader(Haste::None);
    let mut findings = Vec::new();
    let mut ecosystems = Vec::new();
    for (name, server) in config.servers.iter().filter(|(_, server)| !server.disabled) {
        let plan = match plan(name, server, &environment) {
            Ok(plan) => plan,
            Err(error) => {
                findings.push(Finding::of(format!("`{name}`"), &error));
                continue;
            }
        };
        findings.extend(failing(context, &loader, &plan));
        if let Err(error) = ServerVariables::read(&plan) {
            findings.push(Finding::of(format!("`{name}`"), &error));
        }
        let Some(package) = plan.package() else { continue };
        if let Err(error) = loader.packages().installed(&plan) {
            findings.push(Finding::of(format!("`{name}`"), &error));
        }
        if !ecosystems.contains(&package.ecosystem()) {
            ecosystems.push(package.ecosystem());
        }
    }
    let missing = |ecosystem: Ecosystem, programs: &[&'static str]| -> Vec<&'static str> {
        let needed = programs
            .iter()
            .copied()
            .filter(|_| ecosystems.contains(&ecosystem));
        needed
            .filter(|program| find_program(program, &context.environment).is_none())
            .collect()
    };
    for (ecosystem, programs, from) in [
        (
            Ecosystem::Npm,
            &["node", "npm"][..],
            "Node.js with npm: https://nodejs.org",
        ),
        (Ecosystem::Pypi, &["uv"][..], "uv: https://docs.astral.sh/uv"),
    ] {
        for program in missing(ecosystem, programs) {
            findings.push(Finding::new(
                program,
                "declared servers need it, and it is not on the PATH",
                format!("install {from}"),
            ));
        }
    }
    findings
}
