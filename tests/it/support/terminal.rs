//! A terminal in which a command runs and a person types.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::pml;
use super::world::{World, stdout};

/// Types into a terminal in which `pml` runs with `arguments`; returns its exit code and what stood there.
pub(crate) fn typed(world: &World, arguments: &str, typed: &str) -> (Option<i32>, String) {
    let line = format!("{} {arguments}", pml().display());
    let mut script = world
        .program(Path::new("script"))
        .args(["-qec", &line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Kept open until the end: a terminal that closes would be an answer too.
    let mut stdin = script.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).unwrap();
    stdin.flush().unwrap();
    let output = script.wait_with_output().unwrap();
    drop(stdin);
    (output.status.code(), stdout(&output).replace('\r', ""))
}
