//! Drives the real binary; one file per behaviour.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts processes and fails by panicking, also in the functions that tests share"
)]

mod lifecycle;
mod orphans;
mod process;
mod sample_server;
mod stdio;
mod support;
