//! The JSON shapes of pml's own asks and continuations; each spelling stands here once.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Digest, Shown, ToolName};

/// What a person is shown of a dependency before it is installed or started; exactly this is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownDependency {
    /// The dependency's name in `.pml.json`.
    pub name: String,
    /// The exact version where it is known; the declared range or `null` where it is not yet.
    pub version: Option<String>,
    /// The line that says what would be installed and run, or connected to; never cut.
    pub install: String,
    /// The package's integrity (`sha512-…`), `null` while it is not yet known or for a plain command.
    pub integrity: Option<String>,
    /// Whether install scripts of the package and its dependencies would run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scripts: bool,
    /// Where it runs and which variables it gets.
    #[serde(flatten)]
    pub surroundings: Box<Surroundings>,
    /// What is known of its installation beyond the package itself.
    #[serde(flatten)]
    pub installation: Box<ShownInstallation>,
    /// Where it is, if nothing is installed or run and a server elsewhere is connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<ShownRemote>>,
}

/// Where a server runs and which variables it gets, as far as it is declared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The working directory, if it is another than that of the declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The names of the declared environment variables; never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The file from which it gets further variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_file: Option<String>,
}

impl Surroundings {
    /// Returns the directory and the variables for a person, each with its label; nothing where nothing is declared.
    #[must_use]
    pub fn labelled(&self) -> Vec<(&'static str, String)> {
        let directory = self
            .cwd
            .iter()
            .map(|cwd| ("runs in", Shown::line(cwd).to_string()));
        let variables = Some(&self.env).filter(|names| !names.is_empty());
        let variables = variables.map(|names| ("variables", Shown::line(&names.join(", ")).to_string()));
        let file = self.env_file.iter();
        let file = file.map(|file| ("env file", Shown::line(file).to_string()));
        directory.chain(variables).chain(file).collect()
    }
}

/// What is known of an installation beyond the package itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownInstallation {
    /// The digest of everything that is installed with the package, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Digest>,
    /// Whether it was approved before with other dependencies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dependencies_changed: bool,
    /// Files of the package that run at every start before the server itself, where it is installed already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_start: Vec<String>,
    /// How the registry has withdrawn this version, in words that follow "this version"; escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
    /// What is not as the person accepted it, where that is what they are asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ShownChange>,
    /// Where this version was built; `None` where nothing is known of it, or nothing proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<ShownProvenance>,
    /// When the registry says that this version was published, such as `2026-08-31T10:11:12Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// How long ago that was when this was shown, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<String>,
    /// That a newer version is left out because it is too young, in words; escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// That the line itself fetches code, which pml does not pin, in words; escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpinned: Option<String>,
}

impl ShownInstallation {
    /// Returns which part a person is asked about; the package where nothing else is named.
    #[must_use]
    pub fn changed_part(&self) -> ChangedPart {
        let change = self.change.as_ref();
        change.map_or(ChangedPart::Package, |change| change.part)
    }
}

/// What differs between a server and what a person accepted of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownChange {
    /// Which part of it differs.
    pub part: ChangedPart,
    /// The digest of what would be accepted; an answer accepts exactly that.
    pub content: Digest,
    /// What differs, each line with its sign, escaped; for a person alone.
    pub lines: Vec<String>,
    /// The same without a word that the server wrote for a model: what a person has not accepted must not steer it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<String>,
    /// How many lines `lines` has no room for; where there are any, nothing can be accepted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// Whether `lines` name everything that is installed with it.
    #[serde(default, skip_serializing_if = "ShownContents::is_whole")]
    pub contents: ShownContents,
}

impl ShownChange {
    /// Tells whether an answer accepts what differs: what was not shown is not accepted.
    #[must_use]
    pub fn can_be_accepted(&self) -> bool {
        self.missing == 0 && self.contents == ShownContents::Whole
    }
}

/// How much a question says of what is installed with a package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownContents {
    /// All of it, or there is nothing to say.
    #[default]
    Whole,
    /// Nothing, since it is not known yet. Its answer accepts nothing: another question names it.
    Awaited,
}

impl ShownContents {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The part of a server that differs from what was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedPart {
    /// How it is started or reached.
    Launch,
    /// Its package, or what is installed with it.
    Package,
    /// The definitions of its tools.
    Tools,
    /// The install scripts of its package and of what is installed with it.
    Scripts,
}

/// What a person is shown of where a version was built; every text is escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ShownProvenance {
    /// An attestation proves it.
    Proven {
        /// The repository, such as `github.com/owner/name`.
        repository: String,
        /// The workflow in it, with the ref it ran at.
        workflow: String,
        /// The commit it was built from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// The registry could not be asked.
    Unknown {
        /// Why not.
        unknown: String,
    },
}

impl fmt::Display for ShownProvenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven {
                repository, workflow, ..
            } => write!(formatter, "{repository} ({workflow})"),
            Self::Unknown { unknown } => write!(formatter, "unknown: {unknown}"),
        }
    }
}

impl ShownDependency {
    /// Tells whether a person is asked before it is known what is installed with it.
    #[must_use]
    pub fn awaits_contents(&self) -> bool {
        let change = self.installation.change.as_ref();
        change.is_some_and(|change| change.contents == ShownContents::Awaited)
    }

    /// Returns in words what a person should know beside the line that is run.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let changed = "it was approved before, but the packages it depends on have changed since";
        let changed = self.installation.dependencies_changed.then(|| changed.to_owned());
        let withdrawn = self.installation.withdrawn.as_deref().map(withdrawal_notice);
        withdrawn
            .into_iter()
            .chain(self.installation.left_out.clone())
            .chain(changed)
            .chain(start_notice(&self.installation.at_start))
            .chain(self.installation.unpinned.clone())
            .collect()
    }
}

/// Says how old a version is whose registry does not tell.
const UNKNOWN_AGE: &str = "not known";

impl ShownDependency {
    /// Returns what a model may see of it: of a change the summary alone.
    #[must_use]
    pub fn for_a_model(mut self) -> Self {
        if let Some(change) = &mut self.installation.change {
            change.lines = std::mem::take(&mut change.summary);
        }
        self
    }

    /// Returns when this version was published, in words; `None` where there is no package.
    #[must_use]
    pub fn publication(&self) -> Option<String> {
        if self.version.is_none() || self.remote.is_some() {
            return None;
        }
        let ShownInstallation { published, age, .. } = &*self.installation;
        Some(match (published, age) {
            (Some(published), Some(age)) => format!("{} ({})", Shown::line(age), Shown::line(published)),
            _ => UNKNOWN_AGE.to_owned(),
        })
    }
}

/// Returns in words that a registry has withdrawn a version.
#[must_use]
pub fn withdrawal_notice(withdrawn: &str) -> String {
    format!("this version {}", Shown::line(withdrawn))
}

/// Returns in words that `files` of a package run at every start; `None` if there are none.
#[must_use]
pub fn start_notice(files: &[String]) -> Option<String> {
    let files: Vec<_> = files
        .iter()
        .map(|file| format!("`{}`", Shown::line(file)))
        .collect();
    (!files.is_empty()).then(|| format!("code of the package runs at every start: {}", files.join(", ")))
}

/// What a person is shown of a server elsewhere before it is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRemote {
    /// Scheme, host and port.
    pub origin: String,
    /// The path, as declared where a variable decides it; never a query.
    pub path: String,
    /// The names of the headers that every request carries; never their values.
    pub headers: Vec<String>,
    /// What a person must know before they agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl fmt::Display for ShownRemote {
    /// Writes where it is on one line, what a person must know before anything that may be cut.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.origin)?;
        if self.path.starts_with('/') {
            formatter.write_str(&self.path)?;
        } else {
            write!(formatter, " (declared as {})", self.path)?;
        }
        if let Some(warning) = &self.warning {
            write!(formatter, " ({warning})")?;
        }
        match self.headers.as_slice() {
            [] => Ok(()),
            headers => write!(formatter, " with the headers {}", headers.join(", ")),
        }
    }
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalType {
    /// A dependency would be installed, or started for the first time at this version.
    DependencyInstall,
    /// A server elsewhere would be connected to for the first time as it is declared.
    RemoteConnect,
    /// A narrower ask rule wants a person to see this very call.
    ToolPermission,
    /// The project's file came from elsewhere, and the call needs what only an accepted file may grant.
    ProjectTrust,
    /// The server is not what a person accepted.
    Integrity,
}

/// What a person is shown of a project's file before it counts as their word; exactly this text is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownProjectFile {
    /// The file, escaped.
    pub path: String,
    /// Why it does not count yet, in words that follow "it".
    pub origin: String,
    /// Its path and its text, as one digest.
    pub content: Digest,
    /// What it declares and wants, in words, escaped.
    pub wants: Vec<String>,
    /// What is new and what is gone since it was accepted, each with its sign; empty where it never was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

impl ShownProjectFile {
    /// Returns what a person reads first: what changed, or everything where it is new to them.
    #[must_use]
    pub fn news(&self) -> &[String] {
        if self.changes.is_empty() {
            &self.wants
        } else {
            &self.changes
        }
    }
}

/// What an ask is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskSubject {
    /// What would be installed and run, or connected to.
    Dependency(ShownDependency),
    /// A project's file that would count as the person's word.
    ProjectFile(ShownProjectFile),
}

/// The `approval_context` of an `approval_required` result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalContext {
    /// Why a person is asked.
    #[serde(rename = "type")]
    pub kind: ApprovalType,
    /// The policy name of the suspended tool.
    pub tool: ToolName,
    /// What is asked about, under its own name.
    #[serde(flatten)]
    pub subject: AskSubject,
    /// The arguments of the call where the call itself is asked about: escaped, shortened, their secrets hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The id that continues the suspended call.
    pub workflow_id: uuid::Uuid,
}
