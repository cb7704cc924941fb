//! What is remembered of a call whose server asked its Modern client something: enough to let the retry through.

use std::sync::Arc;

use super::open_call::OpenCall;
use super::state::held;
use crate::proxy::{Arguments, ReadyRequest, Route};
use crate::stdio::ask::parking::ParkedItem;

/// A call that was let through before its dependency asked something: no more of it than the next one needs.
pub(super) struct Granted {
    route: Arc<Route>,
    suspended: Option<Arguments>,
}

impl Granted {
    /// Takes note of a call.
    pub(super) fn of(call: &OpenCall) -> Self {
        Self {
            route: Arc::clone(&call.route),
            suspended: call.suspended.clone(),
        }
    }

    /// Returns its way.
    pub(super) fn route(&self) -> &Route {
        &self.route
    }

    /// Lets the same call through again, with the arguments that a person was asked about.
    pub(super) fn ready(self) -> ReadyRequest {
        ReadyRequest {
            route: self.route,
            suspended: self.suspended,
            notes: Vec::new(),
        }
    }
}

impl ParkedItem for Granted {
    fn bytes(&self) -> usize {
        held(self.suspended.as_ref())
    }
}
