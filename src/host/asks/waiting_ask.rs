//! A request of the agent that waits for a person.

use std::sync::Arc;

use crate::host::form;
use crate::host::line::PermissionRequest;
use crate::host::machine::AskRoad;
use crate::host::record::{KeptAsk, KeptAskKind};
use crate::protocol::question::Question;
use crate::proxy::{Claim, Workflow};

/// A request of the agent that waits for a person.
#[derive(Debug, Clone)]
pub(in crate::host) struct WaitingAsk {
    /// The agent's request.
    pub(in crate::host) request: String,
    /// The ask in the store, as it was when it was put.
    pub(in crate::host) workflow: Workflow,
    /// What is kept of it for a later process.
    pub(in crate::host) kept: KeptAsk,
    /// The right to its answer: an identical use that is asked about at the same time has an ask of its own.
    _claim: Option<Arc<Claim>>,
    /// What is needed to answer the agent.
    pub(super) what: AskedThing,
}

impl WaitingAsk {
    pub(super) fn claiming(self, claim: Option<Claim>) -> Self {
        Self {
            _claim: claim.map(Arc::new),
            ..self
        }
    }

    /// Returns how it can wait.
    pub(in crate::host) fn road(&self) -> AskRoad {
        match self.what {
            AskedThing::Questions { .. } | AskedThing::OwnTool | AskedThing::HookedPermission(_) => {
                AskRoad::Hook
            }
            AskedThing::Unhooked { .. } | AskedThing::Permission(_) | AskedThing::Form(_) => AskRoad::Open,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum AskedThing {
    Questions {
        input: String,
        questions: Vec<Question>,
    },
    Unhooked {
        input: String,
        questions: Vec<Question>,
    },
    OwnTool,
    /// The use of a tool, asked in the middle of its call.
    Permission(PermissionRequest),
    /// The same before its call.
    HookedPermission(PermissionRequest),
    Form(form::Form),
}

/// Describes a request whose ask was just put.
pub(super) fn waiting(
    id: &str,
    workflow: Workflow,
    call: &str,
    kind: KeptAskKind,
    what: AskedThing,
) -> WaitingAsk {
    let kept = KeptAsk {
        workflow: workflow.id,
        call: call.to_owned(),
        kind,
    };
    WaitingAsk {
        request: id.to_owned(),
        workflow,
        kept,
        _claim: None,
        what,
    }
}
