//! Which tools only read, as the user accepted them.

use std::fmt;
use std::sync::Arc;

type Lookup = dyn Fn(&str) -> bool + Send + Sync;

/// Tells of a tool, by its policy name, whether its accepted definition says that it only reads; of none by default.
///
/// What a server says of a tool that was not accepted yet counts for nothing: a rule rests on it.
#[derive(Clone, Default)]
pub struct ReadOnlyTools(Option<Arc<Lookup>>);

impl ReadOnlyTools {
    /// Asks `lookup` where a rule depends on it.
    #[must_use]
    pub fn told_by(lookup: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(lookup)))
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|lookup| lookup(name))
    }
}

impl fmt::Debug for ReadOnlyTools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ReadOnlyTools")
    }
}
