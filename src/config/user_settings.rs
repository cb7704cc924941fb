//! The settings that only the user's own file may have: whom pml trusts, what it runs to call the person, whether it may
//! act without a record, to whom it names installed packages, what it demands of where packages were built, and how old
//! they must be; and on which chat services the person is asked.

use std::path::Path;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;

use super::channel_checks;
use super::document::DocumentFault;
use super::file::File;
use super::layer_kind::LayerKind;
use super::user_entries::{
    AdvisoriesEntry, AuditEntry, LateAnswersEntry, PinToolsEntry, RunEntry, SendEntry, TrustEntry,
};
use super::{
    AdvisorySettings, AskedPackages, Audit, Config, LateAnswers, MinReleaseAge, NotifyCommand, PinTools,
    Problem, RunSettings, TrustMode,
};

/// Takes over these settings from the user's file; refuses a project's file that has one.
pub(super) fn settle(
    config: &mut Config,
    kind: LayerKind,
    file: &File,
    tree: &Value<'_>,
) -> Result<(), DocumentFault> {
    let place_of = |key: &str| {
        let property = tree.as_object().and_then(|object| object.get(key));
        property.map_or(0, |property| property.name.start())
    };
    let refused = |key: &str, reason| DocumentFault::new(place_of(key), Problem::Refused(reason));
    let users_own = |key: &'static str, reason: &'static str| match kind {
        LayerKind::User | LayerKind::Either => Ok(()),
        LayerKind::Project | LayerKind::UnacceptedProject => {
            let problem = Problem::UserOnly { key, reason };
            Err(DocumentFault::new(place_of(key), problem))
        }
    };
    if let Some(mode) = file.project_trust {
        users_own("projectTrust", "a project cannot decide whether it is trusted")?;
        config.trust_mode = match mode {
            TrustEntry::OwnWork => TrustMode::OwnWork,
            TrustEntry::Strict => TrustMode::Strict,
        };
    }
    if let Some(audit) = file.audit {
        users_own(
            "audit",
            "a project cannot decide whether what it does is recorded",
        )?;
        config.audit = match audit {
            AuditEntry::Required => Audit::Required,
            AuditEntry::BestEffort => Audit::BestEffort,
        };
    }
    if let Some(entry) = &file.pin_tools {
        users_own(
            "pinTools",
            "a project cannot decide whether its servers may change unseen",
        )?;
        config.pin_tools = match entry {
            PinToolsEntry::All(true) => PinTools::default(),
            PinToolsEntry::All(false) => PinTools::Off,
            PinToolsEntry::Servers(servers) => {
                let off = servers.iter().filter(|(_, pinned)| !**pinned);
                PinTools::AllBut(off.map(|(server, _)| server.clone()).collect())
            }
        };
    }
    if let Some(days) = file.min_release_age_days {
        users_own(
            "minReleaseAgeDays",
            "a project cannot decide how old what it has installed must be",
        )?;
        config.min_release_age = MinReleaseAge::of(days.duration());
    }
    if let Some(entry) = &file.run {
        users_own("run", "a project cannot decide which agent runs, or how")?;
        let settings = &mut config.run;
        settle_run(settings, entry).map_err(|reason| refused("run", reason))?;
    }
    if let Some(entry) = &file.channels {
        users_own("channels", "a project cannot decide who is asked, or where")?;
        config.channels = channel_checks::settings(entry).map_err(|reason| refused("channels", reason))?;
    }
    if let Some(words) = &file.notify {
        users_own(
            "notify",
            "a project cannot decide what runs when something is asked",
        )?;
        let read = NotifyCommand::read(words);
        config.notify = Some(read.map_err(|reason| refused("notify", reason))?);
    }
    if let Some(patterns) = &file.require_provenance {
        users_own(
            "requireProvenance",
            "a project cannot decide what is demanded of its packages",
        )?;
        let required = config.provenance.require(patterns);
        required.map_err(|reason| refused("requireProvenance", reason))?;
    }
    if let Some(path) = &file.sigstore_root {
        users_own(
            "sigstoreRoot",
            "a project cannot decide by which keys its packages are verified",
        )?;
        let trusted = config.provenance.trust(path);
        trusted.map_err(|reason| refused("sigstoreRoot", reason))?;
    }
    if let Some(entry) = &file.advisories {
        users_own(
            "advisories",
            "a project cannot decide who is told which packages are installed",
        )?;
        settle_advisories(&mut config.advisories, entry).map_err(|reason| refused("advisories", reason))?;
    }
    Ok(())
}

/// Takes over where known vulnerabilities are asked for; an error says what is wrong.
fn settle_advisories(settings: &mut AdvisorySettings, entry: &AdvisoriesEntry) -> Result<(), String> {
    if let Some(url) = &entry.url {
        settings.set_url(url)?;
    }
    if let Some(send) = entry.send {
        settings.send = match send {
            SendEntry::Public => AskedPackages::Public,
            SendEntry::All => AskedPackages::All,
        };
    }
    if let Some(private) = &entry.private {
        settings.set_private(private)?;
    }
    Ok(())
}

/// Takes over how `pml run` hosts an agent; an error says what is wrong.
fn settle_run(settings: &mut RunSettings, entry: &RunEntry) -> Result<(), String> {
    if let Some(claude) = &entry.claude {
        // A relative path would mean another program in every project.
        if claude.is_empty() || (claude.contains('/') && !Path::new(claude).is_absolute()) {
            return Err("`claude` of `run` is a name on the PATH or an absolute path".to_owned());
        }
        settings.claude = Some(claude.into());
    }
    if let Some(minutes) = entry.patience_minutes {
        if minutes > 24 * 60 {
            return Err("`patienceMinutes` of `run` is a day at most; 0 waits for ever".to_owned());
        }
        settings.patience = Duration::from_mins(minutes);
    }
    if let Some(most) = entry.most {
        if !(1..=64).contains(&most) {
            return Err("`most` of `run` is a number from 1 to 64".to_owned());
        }
        settings.most = most;
    }
    match entry.late_answers {
        None => {}
        Some(LateAnswersEntry::Keep) => settings.late_answers = LateAnswers::Keep,
        Some(LateAnswersEntry::Resume) => settings.late_answers = LateAnswers::Resume,
    }
    Ok(())
}
