//! Drives the real binary; one file per behaviour.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts processes and fails by panicking, also in the functions that tests share"
)]

mod acceptance;
mod approval;
mod architecture;
mod clients;
mod fake_server;
mod home;
mod install;
mod lifecycle;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod process;
mod real_servers;
mod rule_commands;
mod rule_writers;
mod sample_server;
mod stdio;
mod support;
