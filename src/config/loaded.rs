//! What both files said when they were read, and whether the project's counts as the user's word.

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

use super::declared_parts::DeclaredParts;
use super::layer;
use super::layer_kind::LayerKind;
use super::ownership::{self, Unowned};
use super::repository::{self, RepositoryState};
use super::{
    Config, ConfigError, FileChoice, FileOrigin, Files, ProjectTrust, Rule, RuleList, TrustMark, TrustMarks,
    TrustMode, UnacceptedFile,
};
use crate::protocol::{Digest, Pattern};

/// What both files said when they were read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    user: Option<String>,
    project: Option<LoadedProject>,
}

/// The text of a project's file, and what decides whether it counts as the user's word.
#[derive(Debug, PartialEq, Eq)]
struct LoadedProject {
    text: String,
    evidence: Evidence,
}

/// What speaks for and against a project's file.
#[derive(Debug, PartialEq, Eq)]
enum Evidence {
    /// The user named it.
    Named,
    /// It was found.
    Found {
        unowned: Option<Unowned>,
        repository: RepositoryState,
        content: Digest,
        accepted: Acceptance,
    },
}

/// Whether the user accepted a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acceptance {
    Given,
    Missing,
}

/// Loads the text of both files.
pub(super) fn load(files: &Files) -> Result<Loaded, ConfigError> {
    load_as(files, |standing| standing)
}

/// Loads both files; the project's counts as the text that `judged` makes of what stands there.
fn load_as(files: &Files, judged: impl FnOnce(String) -> String) -> Result<Loaded, ConfigError> {
    // `--config` may name the user's own file: its rules count once.
    let user = if files.user == files.project {
        None
    } else {
        layer::load_owned(&files.user)?
    };
    let project = match files.chosen {
        FileChoice::Named => layer::load(&files.project)?.map(|standing| LoadedProject {
            text: judged(standing),
            evidence: Evidence::Named,
        }),
        FileChoice::Found => layer::load_project(&files.project)?.map(|(standing, found)| {
            let text = judged(standing);
            LoadedProject {
                evidence: evidence(files, &text, &found),
                text,
            }
        }),
    };
    Ok(Loaded { user, project })
}

fn evidence(files: &Files, text: &str, found: &Metadata) -> Evidence {
    let content = TrustMarks::content_of(&files.project, text);
    let accepted = if files.accepted.accepts(&content) {
        Acceptance::Given
    } else {
        Acceptance::Missing
    };
    Evidence::Found {
        unowned: ownership::check(&files.project, found).err(),
        repository: repository::state_of(&files.project, text.as_bytes(), found),
        content,
        accepted,
    }
}

impl Evidence {
    /// Returns why the file is not taken for the user's word, and what accepting it would name.
    fn against(&self, mode: TrustMode) -> Option<(FileOrigin, Digest)> {
        let Self::Found {
            unowned,
            repository,
            content,
            accepted: Acceptance::Missing,
        } = self
        else {
            return None;
        };
        let origin = match (unowned, repository, mode) {
            (Some(unowned), _, _) => FileOrigin::Unowned(*unowned),
            (None, RepositoryState::Unchanged, _) => FileOrigin::Repository,
            (None, RepositoryState::Unclear, _) => FileOrigin::UnclearRepository,
            (None, RepositoryState::Untracked | RepositoryState::Changed, TrustMode::Strict) => {
                FileOrigin::Strict
            }
            (None, RepositoryState::Untracked | RepositoryState::Changed, TrustMode::OwnWork) => return None,
        };
        Some((origin, content.clone()))
    }
}

/// Tells whether a text that was read from the project's file counts as the user's word.
///
/// The text itself is judged: another may stand there by now, and that one being accepted says nothing of this one.
pub fn trust_of(files: &Files, text: &str) -> Result<ProjectTrust, ConfigError> {
    let loaded = load_as(files, |_standing| text.to_owned())?;
    Ok(assemble(files, &loaded)?.project)
}

/// Tells whether a person accepted a project's file as it is now; reads it and its mark.
#[must_use]
pub fn is_accepted_by_a_person(marks: &TrustMarks, file: &Path) -> bool {
    let text = layer::load(file).ok().flatten();
    text.is_some_and(|text| marks.accepts_by_a_person(&TrustMarks::content_of(file, &text)))
}

/// Returns the parts of a project's file if it still has the text of this content; reads it.
#[must_use]
pub fn parts_of(file: &Path, content: &Digest) -> DeclaredParts {
    match layer::load(file) {
        Ok(Some(text)) if TrustMarks::content_of(file, &text) == *content => DeclaredParts::of(&text),
        _ => DeclaredParts::default(),
    }
}

/// Makes the mark of a text of the project's file that pml itself writes.
pub fn mark_for(files: &Files, text: &str) -> Result<TrustMark, ConfigError> {
    let wants = layer::add(&mut Config::default(), &files.project, text, LayerKind::Project)?;
    Ok(TrustMark {
        file: files.project.clone(),
        content: TrustMarks::content_of(&files.project, text),
        wants,
        parts: DeclaredParts::of(text),
        by: super::trust::WRITTEN_BY_PML.to_owned(),
    })
}

/// Makes the configuration of what was read.
pub(super) fn assemble(files: &Files, loaded: &Loaded) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    if let Some(text) = &loaded.user {
        layer::add(&mut config, &files.user, text, LayerKind::User)?;
    }
    if let Some(LoadedProject { text, evidence }) = &loaded.project {
        add_project(&mut config, files, text, evidence)?;
    }
    // The built-in default steps back for any rule about everything: next to `allow: ["*"]` it would be a tie.
    if !config.rules.iter().any(|rule| rule.pattern.is_catch_all()) {
        config.rules.push(Rule {
            pattern: Pattern::everything(),
            list: RuleList::Ask,
            source: None,
        });
    }
    Ok(config)
}

fn add_project(
    config: &mut Config,
    files: &Files,
    text: &str,
    evidence: &Evidence,
) -> Result<(), ConfigError> {
    let Some((origin, content)) = evidence.against(config.trust_mode) else {
        // The user's own file may be named as the project's.
        let kind = if files.project == files.user {
            LayerKind::User
        } else {
            LayerKind::Project
        };
        layer::add(config, &files.project, text, kind)?;
        return Ok(());
    };
    let wants = layer::add(config, &files.project, text, LayerKind::UnacceptedProject)?;
    let before = files.accepted.latest_of(&files.project);
    let (accepted_before, parts_before) =
        before.map_or_else(Default::default, |mark| (mark.wants, mark.parts));
    config.project = ProjectTrust::Unaccepted(Arc::new(UnacceptedFile {
        file: files.project.clone(),
        content,
        origin,
        wants,
        accepted_before,
        parts: DeclaredParts::of(text),
        parts_before,
    }));
    Ok(())
}
