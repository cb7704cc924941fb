//! The kinds of things a server lists, and how often each list has changed.

/// A kind of thing that a server lists; templates count as resources, as they change together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources and templates of resources.
    Resources,
}

impl Kind {
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
pub struct Changes([u64; Kind::ALL.len()]);

impl Changes {
    /// Counts a change.
    pub fn count(&mut self, kind: Kind) {
        self.0[kind as usize] += 1;
    }

    /// Takes over how often one list has changed.
    pub fn catch_up(&mut self, kind: Kind, now: Self) {
        self.0[kind as usize] = now.0[kind as usize];
    }

    /// Returns the kinds that have changed since `earlier`.
    pub fn since(self, earlier: Self) -> impl Iterator<Item = Kind> {
        Kind::ALL
            .into_iter()
            .filter(move |kind| self.0[*kind as usize] != earlier.0[*kind as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_names_its_kind() {
        for kind in Kind::ALL {
            assert_eq!(Kind::changed_by(kind.list_changed()), Some(kind));
        }
        assert_eq!(Kind::changed_by("notifications/resources/updated"), None);
    }

    #[test]
    fn only_what_changed_since_is_told() {
        let earlier = Changes::default();
        let mut now = earlier;
        now.count(Kind::Resources);
        now.count(Kind::Tools);
        let told: Vec<Kind> = now.since(earlier).collect();
        assert_eq!(told, [Kind::Tools, Kind::Resources]);
        assert_eq!(now.since(now).count(), 0);
        let mut behind = earlier;
        behind.catch_up(Kind::Tools, now);
        assert_eq!(now.since(behind).collect::<Vec<_>>(), [Kind::Resources]);
    }
}
