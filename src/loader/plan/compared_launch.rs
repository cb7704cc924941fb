//! A declaration as it is compared with another one: the same package under another runner or version is the same line.

use super::package::{Ecosystem, Package};
use super::runner::PackageRunner;
use super::{PlanSource, plan};
use crate::config::{Environment, Launch, Server};
use crate::pins::{ComparedLaunch, LaunchChange, LaunchKind, LaunchSurroundings};
use crate::protocol::DependencyName;

/// Compares how a server is declared with the words that were accepted, and with what was kept beside them.
///
/// Where no words were kept, nothing differs.
#[must_use]
pub fn launch_change(
    name: &DependencyName,
    server: &Server,
    words: &[String],
    surroundings: Option<&LaunchSurroundings>,
    environment: &Environment,
) -> Option<LaunchChange> {
    if words.is_empty() {
        return None;
    }
    let kind = LaunchKind::of(&server.launch);
    let now = ComparedLaunch {
        line: line(name, server, environment),
        kind,
        words: server.launch.words(),
        surroundings: Some(LaunchSurroundings::of(server)),
    };
    let known = surroundings.map(|surroundings| surroundings.kind);
    let kind = known.or_else(|| LaunchKind::of_words(words)).unwrap_or(kind);
    let accepted = Server {
        launch: kind.launch(words),
        ..server.clone()
    };
    let before = ComparedLaunch {
        line: line(name, &accepted, environment),
        kind,
        words: words.to_vec(),
        surroundings: surroundings.cloned(),
    };
    LaunchChange::between(&before, &now)
}

/// Returns what tells the line of a declaration from another one.
fn line(name: &DependencyName, server: &Server, environment: &Environment) -> Vec<String> {
    let planned = match &server.launch {
        // The values of its headers play no part.
        Launch::Remote { .. } => None,
        Launch::Command { .. } | Launch::Package { .. } => plan(name, server, environment).ok(),
    };
    if let Some(plan) = planned
        && let PlanSource::Package(package) = &plan.source
    {
        let runner = PackageRunner::for_ecosystem(package.ecosystem());
        let mut line = runner.line(package, unversioned(package));
        line.extend(plan.line.words);
        return line;
    }
    let kind = match LaunchKind::of(&server.launch) {
        LaunchKind::Command => "command",
        LaunchKind::Package => "package",
        LaunchKind::Remote => "url",
    };
    let words = server.launch.words().into_iter();
    std::iter::once(kind.to_owned()).chain(words).collect()
}

fn unversioned(package: &Package) -> String {
    match package.ecosystem() {
        Ecosystem::Npm => package.name().to_owned(),
        Ecosystem::Pypi => package.name_with_extras(),
    }
}
