//! Locks of which a panic elsewhere leaves nothing half-done.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Every critical section is a single operation: a panic elsewhere leaves nothing half-done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
