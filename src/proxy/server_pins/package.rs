//! The package of a server before it is started: is it what was accepted, with everything that is installed with it?

use std::sync::Arc;

use super::launch::package_content;
use super::package_acceptance::shown_content;
use crate::config::Server;
use crate::loader::{Content, Plan, VersionSpec};
use crate::pins::{Change, Namesakes, PackagePin, Pin, PinError, ToolNames, difference, provenance_alarm};
use crate::protocol::Digest;
use crate::protocol::approval::{ChangedPart, ShownChange, ShownContents};
use crate::proxy::{Proxy, Refusal, View};

/// The most lines of a difference that a question carries: several hundred changed tools. A person reads no more, and
/// what a question does not show cannot be accepted by its answer.
const LINES: usize = 20_000;

/// The most bytes of those lines: every surface that draws the question holds them.
const BYTES: usize = 2 << 20;

impl Proxy {
    /// Tells whether the package of a server differs from what the user accepted.
    ///
    /// Where nothing was accepted yet, the lock beside the configuration is what it is compared with.
    pub(in crate::proxy) fn has_other_package(&self, server: &Server, plan: &Plan) -> Result<bool, Refusal> {
        let Some(now) = self.package_in_short(plan) else {
            return Ok(false);
        };
        let before = self.compared(server, plan)?;
        let accepted = before.and_then(|before| before.package);
        Ok(accepted.is_some_and(|accepted| !is_same(&accepted, &now)))
    }

    /// Returns how the package of a server differs from what the user accepted; `None` where it does not.
    pub(in crate::proxy) async fn package_change(
        &self,
        view: &View,
        server: &Server,
        plan: &Arc<Plan>,
    ) -> Result<Option<ShownChange>, Refusal> {
        if !self.has_other_package(server, plan)? {
            return Ok(None);
        }
        let (Some(before), Some(now)) = (self.compared(server, plan)?, self.package_now(plan).await) else {
            return Ok(None);
        };
        let before = self.with_last_tools(server, plan, before)?;
        let alarm = { before.package.as_ref() }.and_then(|before| provenance_alarm(before, &now));
        let contents = match now.package_lock {
            Some(_) => ShownContents::Whole,
            None => ShownContents::Awaited,
        };
        let now = self.offered(server, plan, now)?;
        let launch = self.launch_change(server, plan)?;
        let content = package_content(plan, launch.as_ref(), &now);
        let mut changes = difference(&before, &now);
        if let Some(launch) = launch {
            // Before it comes only an alarm about where the package was built.
            let first = usize::from(matches!(changes.first(), Some(Change::Provenance(_))));
            changes.insert(first, Change::Launch(launch));
        }
        if contents == ShownContents::Awaited {
            changes.push(Change::ContentsAwaited);
        }
        let packages = changes.iter().filter(|change| !matches!(change, Change::Tool(_)));
        let summary = ChangeLines::of(packages, &ToolNames::default().beside(plan.dependency())).shown;
        let lines = self.describe_changes(view, plan, changes).await?;
        Ok(Some(ShownChange {
            part: ChangedPart::Package,
            content: shown_content(content, alarm.map(|alarm| alarm.to_string()).as_deref()),
            missing: lines.missing,
            lines: lines.shown,
            summary,
            contents,
        }))
    }

    /// Returns the tools of other servers that a server's tools can be mistaken for; reads files, off the thread.
    pub(super) async fn namesakes(&self, view: &View, plan: &Plan) -> Namesakes {
        let (shared, config) = (Arc::clone(&self.0), Arc::clone(&view.config));
        let looking = tokio::task::spawn_blocking(move || shared.pins.accepted.tool_names(&config.servers));
        // It is a report: without it the difference itself is still shown.
        looking.await.unwrap_or_default().beside(plan.dependency())
    }

    /// Describes changes in lines, off the thread: texts of any length are compared.
    pub(super) async fn describe_changes(
        &self,
        view: &View,
        plan: &Plan,
        changes: Vec<Change>,
    ) -> Result<ChangeLines, Refusal> {
        let namesakes = self.namesakes(view, plan).await;
        let describing = tokio::task::spawn_blocking(move || ChangeLines::of(&changes, &namesakes));
        describing
            .await
            .map_err(|panicked| Refusal::NotRecorded(panicked.into()))
    }

    /// Tells whether a package that could not be installed as it was accepted can be put to the person as it is now.
    pub(in crate::proxy) async fn is_changed_at_registry(
        &self,
        server: &Server,
        plan: &Arc<Plan>,
    ) -> Result<bool, Refusal> {
        // An installation that was refused has recorded nothing of what the registry has.
        let resolved = self.0.loader.resolve_soon(plan).await;
        // No answer could have it installed: a person need not be asked.
        resolved.map_err(|error| Refusal::Load {
            dependency: plan.dependency().clone(),
            source: Arc::new(error.into()),
        })?;
        self.has_other_package(server, plan)
    }

    /// Returns what a server is compared with: what was accepted of this launch, else of the newest, else its lock.
    pub(super) fn compared(&self, server: &Server, plan: &Plan) -> Result<Option<Pin>, PinError> {
        let pins = &self.0.pins;
        let accepted = pins.accepted(server, plan.dependency())?;
        let launch = accepted
            .as_ref()
            .and_then(|accepted| accepted.of(plan.digest()).or_else(|| accepted.latest()));
        match launch {
            Some(launch) => Ok(Some(launch.pin.clone())),
            None => pins.locked(&server.source.file, plan.dependency()),
        }
    }

    /// Returns what would be accepted with a package: what a team reviewed of its tools comes with it.
    pub(super) fn offered(&self, server: &Server, plan: &Plan, now: PackagePin) -> Result<Pin, PinError> {
        let locked = self.0.pins.locked(&server.source.file, plan.dependency())?;
        let locked = locked.filter(|locked| {
            locked
                .package
                .as_ref()
                .is_some_and(|locked| is_same(locked, &now))
        });
        Ok(Pin {
            launch: Vec::new(),
            package: Some(now),
            tools: locked.and_then(|locked| locked.tools),
        })
    }

    /// Asks the registry what a range or a tag means, where it may be something else than was accepted.
    ///
    /// Where the registry does not say, the start is held to what was accepted, and what is found then is asked about.
    pub(in crate::proxy) async fn learn_package(
        &self,
        server: &Server,
        plan: &Arc<Plan>,
    ) -> Result<(), Refusal> {
        self.read_pins(server, plan).await;
        if plan.package().is_none() || self.package_in_short(plan).is_some() {
            return Ok(());
        }
        if self
            .compared(server, plan)?
            .and_then(|before| before.package)
            .is_none()
        {
            return Ok(());
        }
        let resolved = self.0.loader.resolve_soon(plan).await;
        resolved.map_err(|error| Refusal::Load {
            dependency: plan.dependency().clone(),
            source: Arc::new(error.into()),
        })
    }

    /// Returns the content that a start is held to: what was accepted of this launch, else of the newest, else what the
    /// lock says of it.
    ///
    /// Another launch of the same package, such as one with another variable, is no reason to run other content.
    pub(in crate::proxy) fn pinned_content(&self, server: &Server, plan: &Plan) -> Result<Content, Refusal> {
        let pin = self.compared(server, plan)?;
        let version = self.package_in_short(plan).map(|now| now.version);
        let package = pin.and_then(|pin| pin.package);
        let package = package.filter(|package| version.as_ref().is_none_or(|now| *now == package.version));
        let scripts = self.accepted_scripts(server, plan)?;
        let scripts = scripts.map(|accepted| accepted.digest);
        Ok(Content {
            scripts,
            ..package.map(Content::of).unwrap_or_default()
        })
    }

    /// Returns what tells the package that would run from another, without a look at everything that belongs to it.
    pub(super) fn package_in_short(&self, plan: &Plan) -> Option<PackagePin> {
        let package = plan.package()?;
        let title = package.registry_title();
        if let Some(resolved) = self.0.loader.resolved(plan) {
            return Some(PackagePin {
                integrity: resolved.integrity,
                package_lock: resolved.lock,
                provenance: resolved.provenance,
                ..PackagePin::version(&title, &resolved.version)
            });
        }
        match package.version() {
            VersionSpec::Exact(version) => Some(PackagePin::version(&title, version)),
            // What a range means is known once the registry was asked.
            VersionSpec::Floating(_) => None,
        }
    }
}

/// Tells whether two packages are the same as far as both are known.
pub(super) fn is_same(accepted: &PackagePin, now: &PackagePin) -> bool {
    let agree = |one: Option<&str>, two: Option<&str>| one.is_none() || two.is_none() || one == two;
    accepted.name == now.name
        && accepted.version == now.version
        && agree(accepted.integrity.as_deref(), now.integrity.as_deref())
        && agree(
            accepted.package_lock.as_ref().map(Digest::as_str),
            now.package_lock.as_ref().map(Digest::as_str),
        )
        && provenance_alarm(accepted, now).is_none()
}

/// What differs, in lines.
pub(super) struct ChangeLines {
    /// Those that a question has room for; where some are missing, the last one says so.
    pub(super) shown: Vec<String>,
    /// How many it has no room for.
    pub(super) missing: usize,
}

impl ChangeLines {
    fn of<'a>(changes: impl IntoIterator<Item = &'a Change>, namesakes: &Namesakes) -> Self {
        let mut lines = changes.into_iter().flat_map(|change| change.lines(namesakes));
        let mut shown = Vec::new();
        let mut bytes = 0;
        let mut missing = 0;
        for line in lines.by_ref() {
            bytes += line.len();
            if shown.len() == LINES || bytes > BYTES {
                missing = 1;
                break;
            }
            shown.push(line);
        }
        missing += lines.count();
        if missing > 0 {
            let name = namesakes.server();
            shown.push(format!(
                "! {missing} more lines than a question can show: `pml diff {name}` shows them; it cannot be accepted here, \
                 `pml uninstall {name}` begins anew with it"
            ));
        } else if shown.is_empty() {
            shown.push("! other packages are installed with it than were accepted".to_owned());
        }
        Self { shown, missing }
    }
}
