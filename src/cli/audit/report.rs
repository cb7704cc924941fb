//! The words and the JSON of an audit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::{CommandContext, output};
use crate::pins::{Finding, PackageVersion, Pin, PublishedAt};
use crate::protocol::{DependencyName, Shown};

/// More names than this are counted only.
const NAMED: usize = 5;

const HEAD: [&str; 6] = ["PACKAGE", "VERSION", "ID", "SEVERITY", "FIXED IN", "SUMMARY"];

/// What an audit found.
pub(super) struct Report<'a> {
    pub(super) pins: &'a BTreeMap<DependencyName, Pin>,
    pub(super) findings: &'a BTreeMap<DependencyName, Vec<Finding>>,
    /// The packages whose names were not sent.
    pub(super) withheld: &'a BTreeSet<PackageVersion>,
    /// The packages about which nothing was ever answered.
    pub(super) unknown: &'a BTreeSet<PackageVersion>,
    /// When the oldest answer was given.
    pub(super) oldest: Option<i64>,
    pub(super) offline: bool,
    pub(super) now: i64,
}

impl Report<'_> {
    /// Prints a table for each server, and what else a person should know.
    pub(super) fn print(&self, context: &CommandContext) -> Result<(), output::StdoutError> {
        if self.pins.is_empty() {
            output::say("nothing is installed");
            return Ok(());
        }
        let mut lines = Vec::new();
        for (name, found) in self.findings {
            let count = self.packages_of(name);
            if found.is_empty() {
                lines.push(format!("{name}: nothing is known against its {count} package(s)"));
                continue;
            }
            lines.push(format!(
                "{name}: {} advisories about its {count} package(s)",
                found.len()
            ));
            lines.extend(table(found).into_iter().map(|line| format!("  {line}")));
        }
        let written = output::data(&lines.join("\n"));
        for (name, found) in self.findings {
            if let Some(malicious) = found.iter().find(|finding| finding.is_malicious()) {
                output::note(&format!(
                    "`{name}` is not started any more: `{}` is malicious ({}); to be rid of it: pml uninstall {name}, then pml remove {name}",
                    title(&malicious.package),
                    malicious.id
                ));
            }
        }
        self.tell_of_the_rest(context);
        written
    }

    fn tell_of_the_rest(&self, context: &CommandContext) {
        if !self.withheld.is_empty() {
            output::note(&format!(
                "not asked about, because they come from other registries than the public ones: {}\n{}",
                some(self.withheld),
                send_all(context)
            ));
        }
        if !self.unknown.is_empty() {
            output::say(&format!(
                "error: nothing was ever answered about {}\n\nhint: to ask: pml audit",
                some(self.unknown)
            ));
        }
        if let Some(answered) = self
            .oldest
            .filter(|_| self.offline)
            .and_then(PublishedAt::from_unix_ms)
        {
            output::say(&format!(
                "asked nobody: the oldest of these answers was given {}, at {answered}",
                answered.ago(self.now)
            ));
        }
    }

    /// Returns everything as scripts see it.
    pub(super) fn json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "package": finding.package.name,
                "version": finding.package.version,
                "registry": finding.package.registry.as_str(),
                "id": finding.id,
                "malicious": finding.is_malicious(),
                "severity": finding.severity,
                "fixedIn": finding.fixed_in,
                "summary": finding.summary,
            })
        };
        let servers = self.findings.iter().map(|(name, found)| {
            let package = self.pins.get(name).and_then(|pin| pin.package.as_ref());
            json!({
                "name": name,
                "package": package.map(|package| &package.name),
                "version": package.map(|package| &package.version),
                "packages": self.packages_of(name),
                "findings": found.iter().map(finding).collect::<Vec<_>>(),
            })
        });
        let names = |packages: &BTreeSet<PackageVersion>| -> Vec<String> {
            packages.iter().map(ToString::to_string).collect()
        };
        json!({
            "offline": self.offline,
            "oldestAnswer": self.oldest.and_then(PublishedAt::from_unix_ms),
            "servers": servers.collect::<Vec<_>>(),
            "notAsked": names(self.withheld),
            "unknown": names(self.unknown),
        })
    }

    fn packages_of(&self, name: &DependencyName) -> usize {
        let package = self.pins.get(name).and_then(|pin| pin.package.as_ref());
        package.map_or(0, |package| package.packages.len())
    }
}

/// Says how packages of other registries are asked about.
pub(super) fn send_all(context: &CommandContext) -> String {
    format!(
        "to name them too: \"advisories\": {{\"send\": \"all\"}} in {}",
        context.path(&context.files().user)
    )
}

fn title(package: &PackageVersion) -> String {
    Shown::line(&format!("{}@{}", package.name, package.version)).to_string()
}

fn some(packages: &BTreeSet<PackageVersion>) -> String {
    let mut told: Vec<String> = packages.iter().take(NAMED).map(title).collect();
    if packages.len() > NAMED {
        told.push(format!("{} more", packages.len() - NAMED));
    }
    told.join(", ")
}

/// Lays the findings out in columns as wide as they need to be.
fn table(found: &[Finding]) -> Vec<String> {
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let row = |finding: &Finding| {
        [
            Shown::line(&finding.package.name).to_string(),
            Shown::line(&finding.package.version).to_string(),
            finding.id.clone(),
            if finding.is_malicious() {
                "malicious".to_owned()
            } else {
                or_none(finding.severity.clone().unwrap_or_default())
            },
            or_none(finding.fixed_in.join(", ")),
            or_none(finding.summary.clone()),
        ]
    };
    let rows: Vec<[String; 6]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(found.iter().map(row))
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells: Vec<_> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
