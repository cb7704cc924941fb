//! File work beside the runtime's thread.

/// Runs slow file work beside the runtime's thread; `None` if the runtime is going away.
///
/// A panic goes on here: work that broke off must not count as done.
pub(in crate::loader) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_cancelled) => None,
    }
}
