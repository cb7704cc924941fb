//! The kinds of things a server lists, and how often each list has changed.

/// A kind of thing that a server lists; templates count as resources, as they change together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources and templates of resources.
    Resources,
}

impl ListKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// Returns the notification that tells of a changed list.
    #[must_use]
    pub fn list_changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
        }
    }

    /// Returns the kind whose change a notification tells.
    #[must_use]
    pub fn changed_by(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.list_changed() == method)
    }

    /// Returns the member of a server's capabilities that declares it.
    #[must_use]
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }

    /// Returns the member of a Modern subscription that asks for its changes.
    #[must_use]
    pub fn wish(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Prompts => "promptsListChanged",
            Self::Resources => "resourcesListChanged",
        }
    }
}

/// How often the list of each kind has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListChanges([u64; ListKind::ALL.len()]);

impl ListChanges {
    /// Counts a change.
    pub fn count(&mut self, kind: ListKind) {
        self.0[kind as usize] += 1;
    }

    /// Takes over how often one list has changed.
    pub fn catch_up(&mut self, kind: ListKind, now: Self) {
        self.0[kind as usize] = now.0[kind as usize];
    }

    /// Returns the kinds that have changed since `earlier`.
    pub fn since(self, earlier: Self) -> impl Iterator<Item = ListKind> {
        ListKind::ALL
            .into_iter()
            .filter(move |kind| self.0[*kind as usize] != earlier.0[*kind as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_names_its_kind() {
        for kind in ListKind::ALL {
            assert_eq!(ListKind::changed_by(kind.list_changed()), Some(kind));
        }
        assert_eq!(ListKind::changed_by("notifications/resources/updated"), None);
    }

    #[test]
    fn only_what_changed_since_is_told() {
        let earlier = ListChanges::default();
        let mut now = earlier;
        now.count(ListKind::Resources);
        now.count(ListKind::Tools);
        let changed: Vec<ListKind> = now.since(earlier).collect();
        assert_eq!(changed, [ListKind::Tools, ListKind::Resources]);
        assert_eq!(now.since(now).count(), 0);
        let mut behind = earlier;
        behind.catch_up(ListKind::Tools, now);
        assert_eq!(now.since(behind).collect::<Vec<_>>(), [ListKind::Resources]);
    }
}
