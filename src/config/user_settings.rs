//! The settings that only the user's own file may have: whom pml trusts, what it runs to call the person, and whether it
//! may act without a record.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;

use super::document::DocumentFault;
use super::file::{AuditEntry, File, PinToolsEntry, TrustEntry};
use super::layer_kind::LayerKind;
use super::{Audit, Config, NotifyCommand, PinTools, Problem, TrustMode};

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
    let users_own = |key: &'static str, reason: &'static str| match kind {
        LayerKind::User => Ok(()),
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
    if let Some(words) = &file.notify {
        users_own(
            "notify",
            "a project cannot decide what runs when something is asked",
        )?;
        let read = NotifyCommand::read(words);
        let refused = |reason| DocumentFault::new(place_of("notify"), Problem::Refused(reason));
        config.notify = Some(read.map_err(refused)?);
    }
    Ok(())
}
