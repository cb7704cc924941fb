//! Drives the real binary; one file per behaviour.

mod home;
mod rule_commands;
mod rule_writers;
