//! What a person can do about a package that is not installed.

use super::InstallError;
use crate::loader::install::lock::LockError;
use crate::loader::install::size_limit::MAX_INSTALL;
use crate::protocol::shell;
use crate::report::Hint;

impl Hint for InstallError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { program: "uv", .. } => {
                Some("install uv, e.g. `pip install uv` or https://docs.astral.sh/uv/, and try again".to_owned())
            }
            Self::Missing { program: "npm" | "node", .. } => {
                Some("install Node.js 20 or later, which brings npm: https://nodejs.org/, and try again".to_owned())
            }
            Self::Missing { program: "python", .. } => {
                Some("install Python 3, e.g. by `uv python install`, and try again".to_owned())
            }
            Self::Store(error) => error.hint(),
            Self::History(error) => error.hint(),
            Self::Advisories(error) => error.hint(),
            Self::Malicious { dependency, advisory, .. } => Some(format!(
                "what is known of it: https://osv.dev/vulnerability/{advisory}\n\
                 to be rid of it: pml uninstall {dependency}, then pml remove {dependency}\n\
                 if the advisory was taken back: pml audit {dependency}"
            )),
            Self::ChangedFiles { dependency, .. } | Self::OtherLock { dependency } => Some(format!(
                "it was not started; all that differs: pml verify {dependency}\n\
                 to install and approve it anew: pml uninstall {dependency}, then pml install {dependency}"
            )),
            Self::Provenance { source, .. } => source.hint(),
            Self::Unproven { .. } => Some("nothing was installed or started; if you trust it all the same, take the pattern from your file".to_owned()),
            Self::Settings(error) => error.hint(),
            Self::Misplaced { .. } => Some("nothing of it was run; ask its authors what that file is for".to_owned()),
            Self::Archive { .. } | Self::OtherPackage { .. } | Self::Malformed { .. } => {
                Some("nothing of it was run; tell its authors and the registry, and take another version".to_owned())
            }
            Self::Corrupted { .. } => {
                Some("nothing of it was run; try again, and if it stays so tell the registry".to_owned())
            }
            Self::Elsewhere { .. } => Some("nothing of it was fetched; pml installs from registries alone: take another version, or ask its authors to publish what it needs".to_owned()),
            Self::Unbuilt { .. } => Some("nothing of it was run; take a version that has wheels for this system and Python".to_owned()),
            Self::Garbled { .. } | Self::Memory { .. } => Some("check the registry of your .npmrc, uv.toml or pip.conf, and try again".to_owned()),
            Self::TooLarge { mib, .. } => Some(format!(
                "nothing of it was run; if it is really that large: {MAX_INSTALL}={} pml install",
                mib.saturating_mul(4)
            )),
            Self::Refused { source: LockError::Integrity { .. }, .. } => {
                Some("nothing of it was run; what it is cannot be proven: take another version, or another registry".to_owned())
            }
            Self::Refused { source: LockError::Origin { .. } | LockError::Link { .. }, .. } => {
                Some("nothing of it was run; pml installs from registries alone: take another version, or ask its authors to publish what it needs".to_owned())
            }
            Self::Refused { source: LockError::Absent { .. } | LockError::Name { .. }, .. } => {
                Some("nothing of it was run; check the registry of your .npmrc, uv.toml or pip.conf".to_owned())
            }
            Self::MissingDependency { .. } => Some(
                "take another version of it, or a registry that has all of it: the one of your .npmrc, uv.toml or pip.conf"
                    .to_owned(),
            ),
            Self::Python { version, .. } => Some(format!(
                "to install it: uv python install {version}, which fetches it from github.com; or leave out `--python {version}`"
            )),
            Self::NotFound { .. } => Some("check the name and the version in .pml.json".to_owned()),
            Self::Unreachable { .. } => Some("check the network, HTTPS_PROXY and the registry of your .npmrc or uv.toml, and try again".to_owned()),
            Self::Changed { .. } => Some(
                "nothing was installed; a published version must not change: ask its author. To accept it anyway, take its server back by `pml uninstall` and approve it again"
                    .to_owned(),
            ),
            Self::TooYoung { dependency, .. } | Self::YoungDependency { dependency, .. } => {
                Some(format!("to install it all the same: pml install --now {dependency}"))
            }
            Self::Scripts { dependency, .. } => Some(format!(
                "none of them ran; to see each of them and decide: pml install {dependency}"
            )),
            Self::Dependencies { .. } => Some("call it again: a person is asked about what it depends on now".to_owned()),
            Self::Executable { choices, .. } if !choices.is_empty() => Some(format!(
                "name the executable: npx --package=PACKAGE {0}, or uvx --from PACKAGE {0}",
                shell::word(&choices[0])
            )),
            _ => None,
        }
    }
}
