//! Starts the browser of the person.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::config::Environment;

/// The program that opens an address in the browser that the person chose.
#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Opens an address; tells whether a program for it could be started.
pub(in crate::cli) fn open(environment: &Environment, url: &str) -> bool {
    let chosen = environment
        .variable("BROWSER")
        .filter(|chosen| !chosen.is_empty());
    let program = chosen.map_or_else(|| OsString::from(OPENER), OsString::from);
    started(&program, url)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts the person's browser"
)]
fn started(program: &OsString, url: &str) -> bool {
    let started = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(mut child) => {
            // Some openers end at once, some are the browser itself.
            std::thread::spawn(move || drop(child.wait()));
            true
        }
        Err(_) => false,
    }
}
