//! What a person granted for the life of this process.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::protocol::{Digest, ToolName};

/// Grants that end with the process.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    tools: Mutex<HashSet<ToolName>>,
    launches: Mutex<HashSet<Digest>>,
}

impl Grants {
    /// Lets a tool run without a further question.
    pub(crate) fn allow_tool(&self, tool: ToolName) {
        self.tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(tool);
    }

    /// Lets a dependency run as it was shown.
    pub(crate) fn allow_launch(&self, launch: Digest) {
        self.launches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(launch);
    }

    pub(crate) fn allows_tool(&self, tool: &ToolName) -> bool {
        self.tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(tool)
    }

    pub(crate) fn allows_launch(&self, launch: &Digest) -> bool {
        self.launches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(launch)
    }
}
