//! A client that is gone in one direction ends pml, over pipes and over sockets, while a server runs.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::world::World;
use crate::support::{DEADLINE, eventually};

/// How the client and pml are connected.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Pipes,
    Sockets,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Pipes, Self::Sockets];

    /// One direction: where it is read, where it is written.
    fn direction(self) -> (OwnedFd, OwnedFd) {
        match self {
            Self::Pipes => {
                let (reader, writer) = std::io::pipe().unwrap();
                (reader.into(), writer.into())
            }
            Self::Sockets => {
                let (reader, writer) = UnixStream::pair().unwrap();
                (reader.into(), writer.into())
            }
        }
    }
}

/// A client with a server that runs behind pml, and both its streams in its own hands.
struct Half {
    world: World,
    child: Child,
    input: Option<File>,
    output: Option<BufReader<File>>,
}

impl Half {
    fn start(kind: Kind) -> Self {
        let world = World::with_fake(&json!({ "allow": ["*"] }), &[]);
        let (theirs_in, ours_in) = kind.direction();
        let (ours_out, theirs_out) = kind.direction();
        let child = world
            .command(&["stdio"])
            .stdin(Stdio::from(theirs_in))
            .stdout(Stdio::from(theirs_out))
            .spawn()
            .unwrap();
        let mut half = Self {
            world,
            child,
            input: Some(ours_in.into()),
            output: Some(BufReader::new(ours_out.into())),
        };
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        half.request("initialize", &params);
        half.request("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
        half
    }

    fn request(&mut self, method: &str, params: &serde_json::Value) {
        let line = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let output = self.output.as_mut().unwrap();
        let answer = output
            .lines()
            .map_while(Result::ok)
            .find(|answer| answer.contains(&format!(r#""id":"{method}""#)));
        assert!(answer.as_ref().unwrap().contains(r#""result""#), "{answer:?}");
    }

    /// Writes requests until pml takes no more, because nothing of its answers is read; returns how many.
    fn fill(&mut self) -> usize {
        let input = self.input.as_ref().unwrap();
        rustix::io::ioctl_fionbio(input, true).unwrap();
        let padding = "x".repeat(4000);
        let mut written = 0;
        let mut refused_since: Option<Instant> = None;
        loop {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{written}{padding}\",\"method\":\"ping\"}}\n");
            let mut rest = line.as_bytes();
            while !rest.is_empty() {
                match (&*input).write(rest) {
                    Ok(length) => {
                        rest = &rest[length..];
                        refused_since = None;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        let since = *refused_since.get_or_insert_with(Instant::now);
                        // It takes nothing for a while: it waits for its answers to be read.
                        if since.elapsed() > Duration::from_millis(500) {
                            return written;
                        }
                        std::thread::yield_now();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            written += 1;
        }
    }

    fn assert_ends(mut self, told: &str) {
        eventually(told, DEADLINE, || self.child.try_wait().unwrap().is_some());
        self.world.assert_no_survivor(told);
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_unread_output_does_not_hide_the_end_of_the_input() {
    for kind in Kind::ALL {
        let mut client = Half::start(kind);
        client.fill();
        drop(client.input.take());
        client.assert_ends(&format!("{kind:?}: stdin is at its end, stdout is full"));
    }
}

#[test]
fn a_closed_output_ends_pml_while_its_input_is_open() {
    for kind in Kind::ALL {
        let mut client = Half::start(kind);
        drop(client.output.take());
        client.assert_ends(&format!("{kind:?}: stdout is closed, stdin is open"));
    }
}

#[test]
fn a_full_output_that_closes_ends_pml_while_its_input_is_open() {
    for kind in Kind::ALL {
        let mut client = Half::start(kind);
        client.fill();
        drop(client.output.take());
        client.assert_ends(&format!("{kind:?}: stdout was full and is closed, stdin is open"));
    }
}

#[test]
fn a_client_that_reads_late_gets_every_answer() {
    for kind in Kind::ALL {
        let mut client = Half::start(kind);
        let asked = client.fill();
        // What was cut off when pml took no more is no line.
        drop(client.input.take());
        let output = client.output.take().unwrap();
        let answered = output
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.contains(r#""result":{}"#))
            .count();
        assert_eq!(answered, asked, "{kind:?}");
        client.assert_ends("stdin is at its end and everything is read");
    }
}
