//! `pml audit [NAME…]`: asks for known vulnerabilities of everything that is installed, and keeps what is malicious from
//! running.

mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use clap::Args;

use self::report::Report;
use super::failure::{Hinted as _, hinted};
use super::pinned_servers::{self, Kept};
use super::terminal::StepDisplay;
use super::{CommandContext, Haste, output};
use crate::config::{AdvisorySettings, AskedPackages};
use crate::loader::{AdvisoryCache, AdvisoryError, KeptAnswers, Osv, Packages, Registries};
use crate::pins::{Advisory, PackagePin, PackageVersion, findings, is_malicious};
use crate::protocol::DependencyName;
use crate::proxy::now;

/// What `pml audit --help` adds.
pub(super) const HELP: &str = "\
Examples:
  pml audit                            every declared server
  pml audit time files
  pml audit --offline                  asks nobody: tells what was answered before, and how old that is

Sends the names and versions of packages to https://api.osv.dev, or to the address in your own file
(\"advisories\": {\"url\": \"https://…\"}), and nothing else. Packages of other registries than the public ones are not
named, unless that file says \"send\": \"all\"; those in its list \"private\", and scopes with a registry of their own, never.

A server with a malicious package (MAL-…) is neither installed nor started from then on, and is stopped where it runs.
Other advisories are only told. pml asks at no other time.
Exit code: 0 nothing is known, 1 something is, 2 error.";

/// What to ask about, and how.
#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// The servers to ask about; without a name, all of them
    #[arg(value_name = "NAME")]
    names: Vec<DependencyName>,
    /// Ask nobody; tell what was answered before
    #[arg(long)]
    offline: bool,
    /// Print what is known as JSON
    #[arg(long)]
    json: bool,
}

/// What was answered, now or before.
#[derive(Debug, Default)]
struct Answers {
    packages: BTreeMap<PackageVersion, Vec<String>>,
    advisories: BTreeMap<String, Advisory>,
    /// When the oldest of them was given.
    oldest: Option<i64>,
    /// The packages about which nothing was ever answered.
    unknown: BTreeSet<PackageVersion>,
}

/// Asks, keeps the verdict on what is malicious, then tells.
pub(crate) fn run(context: &CommandContext, arguments: &AuditArguments) -> anyhow::Result<ExitCode> {
    let config = context.read()?;
    let settings = &config.advisories;
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    );
    let found = pinned_servers::of_store(context, &config, &packages, &arguments.names, Kept::Locked)?;
    for note in &found.notes {
        output::note(note);
    }
    let contents = found.pins.values().filter_map(|pin| pin.package.as_ref());
    let all: BTreeSet<PackageVersion> = contents
        .flat_map(PackagePin::contents)
        .map(|(package, _)| package)
        .collect();
    let registries = packages.registries();
    let (asked, withheld): (BTreeSet<_>, BTreeSet<_>) = all
        .into_iter()
        .partition(|package| may_be_named(settings, &registries, package));
    if asked.is_empty() && !withheld.is_empty() {
        return Err(anyhow::anyhow!(
            "nothing was asked: all {} packages come from other registries than the public ones",
            withheld.len()
        ))
        .hint(report::send_all(context));
    }
    let cache = AdvisoryCache::of(&context.locations);
    let kept = cache.read(&settings.url);
    let answers = if arguments.offline {
        remembered(&asked, kept)
    } else if asked.is_empty() {
        Answers::default()
    } else {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let steps = StepDisplay::new();
        let answered = runtime.block_on(ask(context, settings, &asked, kept, &steps));
        steps.clear();
        let (answers, kept) = answered.map_err(hinted)?;
        cache.write(kept);
        answers
    };
    let findings = findings(&found.pins, &answers.packages, &answers.advisories);
    // Told after it counts: whoever reads may take their time.
    let sentenced = packages.verdicts().change(|known| {
        // What was answered before lifts nothing.
        let fresh = if arguments.offline {
            BTreeSet::new()
        } else {
            asked.clone()
        };
        known.update(&fresh, findings.values().flatten().cloned());
    });
    let report = Report {
        pins: &found.pins,
        findings: &findings,
        withheld: &withheld,
        unknown: &answers.unknown,
        oldest: answers.oldest,
        offline: arguments.offline,
        now: now().millis(),
    };
    let written = if arguments.json {
        output::json(&report.json())
    } else {
        report.print(context)
    };
    sentenced.map_err(hinted)?;
    let known = findings.values().any(|found| !found.is_empty());
    let code = match (known, answers.unknown.is_empty()) {
        (true, _) => 1,
        (false, true) => 0,
        // Not to know is not to know of nothing.
        (false, false) => 2,
    };
    Ok(output::verdict(code, written)?)
}

/// Tells whether the name of a package may leave this machine.
fn may_be_named(settings: &AdvisorySettings, registries: &Registries, package: &PackageVersion) -> bool {
    let never =
        settings.is_private(&package.name) || registries.is_of_own_scope(package) || !package.is_plain();
    let is_public = || settings.send == AskedPackages::All || registries.is_public(package);
    !never && is_public()
}

/// Returns what was answered before.
fn remembered(asked: &BTreeSet<PackageVersion>, kept: KeptAnswers) -> Answers {
    let mut answers = Answers::default();
    for package in asked {
        match kept.answer(package) {
            Some((ids, asked_at)) => {
                answers.packages.insert(package.clone(), ids.to_vec());
                answers.oldest = Some(answers.oldest.map_or(asked_at, |oldest| oldest.min(asked_at)));
            }
            None => drop(answers.unknown.insert(package.clone())),
        }
    }
    answers.advisories = kept.advisories;
    answers
}

/// Asks about packages, then for the details of what is named and is not known yet; returns what is to be kept as well.
async fn ask(
    context: &CommandContext,
    settings: &AdvisorySettings,
    asked: &BTreeSet<PackageVersion>,
    mut kept: KeptAnswers,
    steps: &StepDisplay,
) -> Result<(Answers, KeptAnswers), AdvisoryError> {
    let osv = Osv::new(settings, &context.environment).await?;
    steps.step(&format!("asking about {} packages", asked.len()));
    let found = osv.ask(asked).await?;
    let named: BTreeMap<&str, Option<&str>> = found
        .values()
        .flatten()
        .map(|found| (found.id.as_str(), found.modified.as_deref()))
        .collect();
    let is_current = |id: &str, modified: Option<&str>| {
        let known = kept.advisories.get(id);
        known.is_some_and(|known| modified == Some(known.modified.as_str()))
    };
    let missing = named.iter().filter(|(id, modified)| !is_current(id, **modified));
    let mut missing: Vec<String> = missing.map(|(id, _)| (*id).to_owned()).collect();
    // What stops a server is asked for first: it may have been taken back.
    missing.sort_by_key(|id| !is_malicious(id));
    for id in missing.iter().filter(|id| is_malicious(id)) {
        // That it was taken back counts as long as it is known to be so.
        kept.advisories.remove(id);
    }
    if !missing.is_empty() {
        steps.step(&format!("asking about {} advisories", missing.len()));
    }
    kept.advisories.extend(osv.details(&missing).await);
    let now = now().millis();
    let mut answers = Answers {
        oldest: Some(now),
        ..Answers::default()
    };
    for (package, found) in found {
        let ids: Vec<String> = found.into_iter().map(|found| found.id).collect();
        kept.keep(&package, ids.clone(), now);
        answers.packages.insert(package, ids);
    }
    answers.advisories.clone_from(&kept.advisories);
    Ok((answers, kept))
}
