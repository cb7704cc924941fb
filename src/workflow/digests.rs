//! The digests by which a store finds identical asks of one conversation, and identical calls of any.

use std::os::unix::ffi::OsStrExt as _;

use super::{Arguments, Ask, NewWorkflow, UseReach};
use crate::config::ChannelName;
use crate::protocol::Digest;

/// Returns the digest of everything that makes two pending asks of one conversation the same.
pub(super) fn ask_digest(new: &NewWorkflow) -> serde_json::Result<Digest> {
    let ask = serde_json::to_string(&new.ask)?;
    let call = call_digest(new)?;
    let asker = new.origin.asker.to_string();
    let twin = new.twin.to_string();
    let mut parts = vec![ask.as_str(), call.as_str(), &asker, &twin];
    // Where it is to be asked is part of what was wanted; without a channel the digest is that of earlier formats.
    parts.extend(new.channel.map(ChannelName::key));
    Ok(Digest::of(parts))
}

/// Returns the digest of what an identical call shares with this one, in any conversation; one of a run, in that run.
///
/// What a person is shown of a dependency is not part of it: an integrity that was found out meanwhile does not make
/// another call of it, and what may run is bound to `launch` and to the integrity that was shown.
pub(super) fn call_digest(new: &NewWorkflow) -> serde_json::Result<Digest> {
    let kind = match &new.ask {
        Ask::Install { .. } | Ask::Connect { .. } | Ask::Permit { .. } | Ask::Trust { .. } => {
            new.ask.kind().to_owned()
        }
        // An answer accepts what was shown and nothing else.
        Ask::Integrity { dependency } => {
            let content = dependency
                .installation
                .change
                .as_ref()
                .map(|change| change.content.as_str());
            format!("integrity {}", content.unwrap_or_default())
        }
        // What its client proposes besides is no part of the use.
        Ask::Use {
            reach: UseReach::Lasting | UseReach::Proposed { .. },
        } => serde_json::to_string(&Ask::Use {
            reach: UseReach::Lasting,
        })?,
        Ask::Use {
            reach: UseReach::OnceOnly,
        }
        | Ask::Questions { .. } => serde_json::to_string(&new.ask)?,
    };
    // What is asked in a run is answered there: its agent may come for it tomorrow. Elsewhere the digest is that of earlier formats.
    let run = new.origin.client.run.as_deref().map(str::as_bytes);
    let tool = new.call.tool.to_string();
    let presence = match &new.call.arguments {
        Arguments::Absent | Arguments::Erased => "absent",
        Arguments::Json(_) => "json",
    };
    let parts = [
        kind.as_bytes(),
        tool.as_bytes(),
        presence.as_bytes(),
        new.call.arguments.bytes().unwrap_or_default(),
        new.call.launch.as_str().as_bytes(),
        new.project.as_os_str().as_bytes(),
        new.origin.config.as_os_str().as_bytes(),
    ];
    Ok(Digest::of(parts.into_iter().chain(run)))
}
