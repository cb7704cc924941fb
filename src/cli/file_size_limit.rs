//! The handler of SIGXFSZ: a write over the file size limit fails instead of ending pml.
//!
//! The system sends SIGXFSZ to a process that writes past its limit (`ulimit -f`), and its default is death: one answer
//! that cannot be recorded would cost every call under way. With a handler the write fails, and its owner says so. A
//! handler, unlike an ignored signal, is back at its default in what is started.

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Lets writes over the limit fail from now on.
pub(super) fn fail_writes() {
    // The handler outlives the runtime it is installed in.
    let installed = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .and_then(|runtime| {
            let _context = runtime.enter();
            signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))
        });
    if let Err(error) = installed {
        tracing::debug!(%error, "a write over the limit of a file's size would end pml");
    }
}
