//! Drives the real binary; one file per behaviour.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod home;
mod rule_commands;
mod rule_writers;
