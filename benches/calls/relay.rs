//! A byte copier between a client and a server: the physical limit of any proxy.
//!
//! Two threads that block, one per direction: a wake-up, a read and a write per message, and nothing else. One thread
//! that polls both directions was measured too and is slower, by one system call per message.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Stdio;

use anyhow::Context as _;

use crate::process::{self, Promise};

/// What a pipe holds: more would never come at once.
const CHUNK: usize = 64 * 1024;

/// Starts the server and copies until either side closes.
pub(crate) fn run(tools: usize, promise: Promise) -> anyhow::Result<()> {
    let mut server = process::server(tools, promise)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let to_server: OwnedFd = server.stdin.take().context("no stdin")?.into();
    let from_server: OwnedFd = server.stdout.take().context("no stdout")?.into();
    let from_client = io::stdin().as_fd().try_clone_to_owned()?;
    let to_client = io::stdout().as_fd().try_clone_to_owned()?;
    let asking = std::thread::spawn(move || copy(from_client, to_server));
    copy(from_server, to_client)?;
    asking.join().ok().context("the other direction panicked")??;
    server.wait()?;
    Ok(())
}

fn copy(source: OwnedFd, sink: OwnedFd) -> io::Result<()> {
    let (mut source, mut sink) = (File::from(source), File::from(sink));
    let mut buffer = vec![0; CHUNK];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(()),
            count => sink.write_all(&buffer[..count])?,
        }
    }
}
