//! The package of a server before it is started: is it what was accepted, with everything that is installed with it?

use std::sync::Arc;

use super::launch::package_content;
use super::package_acceptance::shown_content;
use crate::config::Server;
use crate::loader::{Content, Plan};
use crate::pins::{Change, Namesakes, PackagePin, Pin, PinError, ToolNames, difference, provenance_alarm};
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
        Ok(self.0.pins.has_other_package(server, plan, &self.0.loader)?)
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
        let (Some(before), Some(now)) = (self.0.pins.compared(server, plan)?, self.package_now(plan).await)
        else {
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

    /// Returns what would be accepted with a package: what a team reviewed of its tools comes with it.
    pub(super) fn offered(&self, server: &Server, plan: &Plan, now: PackagePin) -> Result<Pin, PinError> {
        let locked = self.0.pins.locked(&server.source.file, plan.dependency())?;
        let locked = locked.filter(|locked| {
            let package = locked.package.as_ref();
            package.is_some_and(|package| package.is_same_as(&now))
        });
        Ok(Pin {
            package: Some(now),
            tools: locked.and_then(|locked| locked.tools),
            ..Pin::default()
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
        if plan.package().is_none() || self.0.loader.package_in_short(plan).is_some() {
            return Ok(());
        }
        let before = self.0.pins.compared(server, plan)?;
        if before.and_then(|before| before.package).is_none() {
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
        let pin = self.0.pins.compared(server, plan)?;
        let version = self.0.loader.package_in_short(plan).map(|now| now.version);
        let package = pin.and_then(|pin| pin.package);
        let package = package.filter(|package| version.as_ref().is_none_or(|now| *now == package.version));
        let scripts = self.accepted_scripts(server, plan)?;
        let scripts = scripts.map(|accepted| accepted.digest);
        Ok(Content {
            scripts,
            ..package.map(Content::of).unwrap_or_default()
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes with this many lines, of this many bytes each.
    fn shown_of(lines: usize, bytes: usize) -> ChangeLines {
        let sign = "- ".len();
        let before = "x".repeat(bytes - sign);
        let change = Change::Package {
            now: before.clone(),
            before,
        };
        let changes = std::iter::repeat_n(&change, lines / 2);
        ChangeLines::of(changes, &ToolNames::default().beside(&"x".parse().unwrap()))
    }

    #[test]
    fn a_question_counts_the_lines_that_it_has_no_room_for_and_says_so_in_its_last() {
        let page = 4096;
        for (lines, bytes, fitting) in [
            (LINES, 3, LINES),
            (LINES + 2, 3, LINES),
            (BYTES / page, page, BYTES / page),
            (BYTES / page + 2, page, BYTES / page),
        ] {
            let ChangeLines { shown, missing } = shown_of(lines, bytes);
            assert_eq!(missing, lines - fitting);
            let notice = (missing > 0).then(|| {
                format!(
                    "! {missing} more lines than a question can show: `pml diff x` shows them; it cannot be accepted here, \
                     `pml uninstall x` begins anew with it"
                )
            });
            assert_eq!(shown.len(), fitting + notice.iter().count());
            assert_eq!(shown.get(fitting), notice.as_ref());
        }
    }

    #[test]
    fn a_difference_without_lines_says_what_it_is() {
        let ChangeLines { shown, missing } = shown_of(0, 3);
        assert_eq!(
            (shown, missing),
            (
                vec!["! other packages are installed with it than were accepted".to_owned()],
                0
            )
        );
    }
}
