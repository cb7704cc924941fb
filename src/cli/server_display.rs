//! The display of a server at the terminal before it is fetched, started or connected to.

use super::output;
use crate::protocol::Shown;
use crate::protocol::approval::ShownDependency;

/// Shows everything that a person agrees to, a line each.
pub(super) fn show(dependency: &ShownDependency) {
    let verb = match &dependency.remote {
        Some(_) => "connect to",
        None => "runs",
    };
    let mut lines = vec![(verb, dependency.install.clone())];
    lines.extend(dependency.surroundings.labelled());
    if let Some(version) = &dependency.version {
        lines.push(("version", version.clone()));
        let integrity = dependency.integrity.as_deref();
        lines.push((
            "integrity",
            integrity.unwrap_or("not told by the registry").to_owned(),
        ));
        lines.extend(dependency.publication().map(|when| ("published", when)));
        let scripts = if dependency.scripts {
            "install scripts of the package and its dependencies run once you accept them"
        } else {
            "no install scripts run"
        };
        lines.push(("scripts", scripts.to_owned()));
    }
    let provenance = dependency.installation.provenance.iter();
    lines.extend(
        provenance.map(|provenance| ("provenance", Shown::line(&provenance.to_string()).to_string())),
    );
    lines.extend(dependency.notes().into_iter().map(|note| ("note", note)));
    for (label, text) in lines {
        output::say(&format!("{label:10} {text}"));
    }
    output::say("");
}
