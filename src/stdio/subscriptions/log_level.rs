//! The log messages that a client wants to hear of.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::protocol::{Object, Payload};
use crate::stdio::era::RpcError;

/// The levels of a log, as MCP has them.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// The method by which a Legacy server learns what to log.
pub(super) const SET_LEVEL: &str = "logging/setLevel";

/// The log messages that a client wants to hear of.
#[derive(Default)]
pub(super) struct LogLevel(Mutex<Wish>);

#[derive(Default)]
struct Wish {
    /// The raw parameters of the last `logging/setLevel`.
    params: Option<String>,
    /// Whether a Modern request asked for log messages.
    asked_for: bool,
}

impl LogLevel {
    /// Checks the parameters of `logging/setLevel`; returns them raw.
    pub(super) fn check<'p>(params: Option<&'p Payload<'_>>) -> Result<&'p str, RpcError> {
        let level = params
            .and_then(Payload::object)
            .and_then(|object| object.text("level"));
        let known = level.is_some_and(|level| LEVELS.contains(&level.as_ref()));
        params.filter(|_| known).map(Payload::get).ok_or_else(|| {
            let reason = format!("`params.level` is one of {}", LEVELS.join(", "));
            RpcError::new(RpcError::INVALID_PARAMS, reason)
        })
    }

    /// Sets the level by the raw parameters of `logging/setLevel`.
    pub(super) fn set(&self, params: &str) {
        self.lock().params = Some(params.to_owned());
    }

    /// Takes note that a Modern request asks for messages; tells whether the level of these parameters is a new one.
    pub(super) fn ask_for(&self, params: &str) -> bool {
        let mut wish = self.lock();
        wish.asked_for = true;
        wish.params.as_deref() != Some(params)
    }

    /// Tells whether a Modern request asked for messages.
    pub(super) fn is_asked_for(&self) -> bool {
        self.lock().asked_for
    }

    /// Returns the raw parameters by which a server learns the level.
    pub(super) fn params(&self) -> Option<String> {
        self.lock().params.clone()
    }

    /// Returns the level itself.
    pub(super) fn value(&self) -> Option<Value> {
        let params = self.params()?;
        let object = Object::parse(&params)?;
        object.text("level").map(|level| json!(level))
    }

    fn lock(&self) -> MutexGuard<'_, Wish> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
