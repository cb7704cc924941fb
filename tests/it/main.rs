//! Drives the real binary; one file per behaviour.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts processes and fails by panicking, also in the functions that tests share"
)]

mod acceptance;
mod add;
mod approval;
mod architecture;
mod ask_user;
mod clients;
mod completions;
mod demo;
mod dialogs;
mod documents;
mod fake_server;
mod forms;
mod home;
mod inbox;
mod init;
mod install;
mod lifecycle;
mod list;
mod offers;
mod orders;
#[cfg(target_os = "linux")]
mod orphans;
mod permission_prompt;
#[cfg(target_os = "linux")]
mod process;
mod real_servers;
mod remote;
mod remove;
mod rule_commands;
mod rule_writers;
mod sample_server;
mod stdio;
mod support;
