//! The opening of a conversation whose project only the client can name.
//!
//! Where pml was started in `/` or in the home, a Legacy client that declares `roots` is asked for them right behind the
//! handshake, and what it sends meanwhile waits: its first list is already that of its project. What it names then is
//! final; a client that moves on starts another pml. It is asked once, and what comes of it gets no more trust than a file
//! that was found. Modern clients cannot be asked outside of a call, and their roots are going away.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncRead;
use tokio::time::Instant;
use url::Url;

use super::{ambiguity, handshake};
use crate::protocol::{Json, Line, Message, Payload, ResponseOutcome, Shown};
use crate::proxy::Proxy;
use crate::stdio::client::answer::own_result;
use crate::stdio::client::link::Link;
use crate::stdio::era::{self, Covered, Era};
use crate::stdio::translation::request::Continuing;
use crate::wire::LineReader;

/// The raw id of the one request; those of later requests have a number.
const ID: &str = "\"pml-roots\"";

/// Programs answer this at once; the first list of a client that never does is this much late.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client sends before it answers: a few lists. A client that goes on without answering is not held up.
const HELD_LINES: usize = 256;

/// Likewise in bytes.
const HELD_BYTES: usize = 1 << 20;

/// A conversation that may begin.
pub(crate) struct Opened {
    /// The servers of the client's project.
    pub(crate) proxy: Proxy,
    /// The lines that came meanwhile and were not answered, each with the number of its read.
    pub(crate) held: Vec<(Line, u64)>,
}

impl Opened {
    /// Begins a conversation by its first line.
    pub(crate) fn at_once(proxy: &Proxy) -> Self {
        Self {
            proxy: proxy.clone(),
            held: Vec::new(),
        }
    }
}

/// Opens the conversation; the client's folders decide which project it is about, if it names any.
pub(crate) async fn open<R: AsyncRead + Unpin>(
    proxy: &Proxy,
    link: &Link,
    reader: &mut LineReader<R>,
) -> Opened {
    if !proxy.is_outside_projects() {
        return Opened::at_once(proxy);
    }
    // The handshake tells what servers offer.
    proxy.read_ahead().await;
    let mut opening = Opening {
        proxy,
        link,
        stage: Stage::Unopened,
        held: Vec::new(),
        bytes: 0,
    };
    let folders = opening.folders(reader).await;
    let held = opening.held;
    if folders.is_empty() {
        return Opened {
            proxy: proxy.clone(),
            held,
        };
    }
    let found = proxy.working_in(folders).await;
    found.declare(link.declared());
    Opened { proxy: found, held }
}

/// How far the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has said nothing.
    Unopened,
    /// Its `initialize` is answered.
    Opened,
    /// It is asked for its folders, until then.
    Asked(Instant),
}

/// What a line means for the opening.
enum Step {
    /// More is to come.
    GoOn,
    /// The client works in these folders; in none that it names, where there are none.
    Over(Vec<PathBuf>),
}

struct Opening<'a> {
    proxy: &'a Proxy,
    link: &'a Link,
    stage: Stage,
    held: Vec<(Line, u64)>,
    bytes: usize,
}

impl Opening<'_> {
    /// Returns the folders that the client names.
    async fn folders<R: AsyncRead + Unpin>(&mut self, reader: &mut LineReader<R>) -> Vec<PathBuf> {
        loop {
            let next = match self.stage {
                Stage::Unopened | Stage::Opened => reader.next_line().await,
                Stage::Asked(until) => match tokio::time::timeout_at(until, reader.next_line()).await {
                    Ok(next) => next,
                    Err(_elapsed) => return self.given_up(),
                },
            };
            let Ok(Some(line)) = next else { return Vec::new() };
            if let Step::Over(folders) = self.take(line, reader.batch()) {
                return folders;
            }
        }
    }

    fn take(&mut self, line: Line, batch: u64) -> Step {
        let message = match &line {
            Line::Whole(text) => Message::parse(text).ok(),
            Line::TooLong(_) => None,
        };
        match (self.stage, message) {
            (Stage::Unopened, Some(Message::Request { id, method, params }))
                if method == "initialize" && is_plain(&method, params.as_ref()) =>
            {
                return self.answer(id, params.as_ref());
            }
            (_, Some(Message::Request { id, method, params }))
                if method == "ping" && is_plain(&method, params.as_ref()) =>
            {
                self.link.respond(id.get(), own_result(json!({}), Era::Legacy));
                return Step::GoOn;
            }
            (Stage::Asked(_), Some(Message::Response { id, outcome })) if id.get() == ID => {
                return Step::Over(folders_of(&outcome));
            }
            (Stage::Opened, Some(Message::Notification { method, .. }))
                if method == "notifications/initialized" =>
            {
                self.ask();
                return Step::GoOn;
            }
            _ => {}
        }
        self.hold(line, batch)
    }

    fn answer(&mut self, id: Json<'_>, params: Option<&Payload<'_>>) -> Step {
        // The servers of the project are not known yet, and what is not promised here is never asked for.
        let behind = self.proxy.introduction().before_the_project();
        let answer = handshake::open(self.proxy, self.link, params, &behind);
        self.link.respond(id.get(), answer);
        self.stage = Stage::Opened;
        match era::covers(self.link.declared().capabilities(), "roots/list", None) {
            Covered::Yes => Step::GoOn,
            Covered::No | Covered::Unknown => Step::Over(Vec::new()),
        }
    }

    fn ask(&mut self) {
        self.link.request(ID, "roots/list", []);
        self.stage = Stage::Asked(Instant::now() + PATIENCE);
    }

    /// Keeps a line for the conversation; where it shows that there is nothing to wait for, the opening is over.
    fn hold(&mut self, line: Line, batch: u64) -> Step {
        if let Line::Whole(text) = &line {
            self.bytes += text.len();
        }
        self.held.push((line, batch));
        match self.stage {
            Stage::Unopened => Step::Over(Vec::new()),
            // A client that asks for something is ready to be asked, also where it forgets to say so.
            Stage::Opened => {
                self.ask();
                Step::GoOn
            }
            Stage::Asked(_) if self.held.len() > HELD_LINES || self.bytes > HELD_BYTES => {
                Step::Over(self.given_up())
            }
            Stage::Asked(_) => Step::GoOn,
        }
    }

    /// Withdraws the request of a client that does not answer it.
    fn given_up(&self) -> Vec<PathBuf> {
        tracing::warn!("the client declares roots and does not name them; no project is known");
        self.link.withdraw(ID);
        Vec::new()
    }
}

/// Tells whether a request is one of the Legacy era that every reader understands alike.
fn is_plain(method: &str, params: Option<&Payload<'_>>) -> bool {
    let members = params.and_then(Payload::object);
    era::is_bare(params) && ambiguity::check(method, members, Continuing::No).is_ok()
}

#[derive(Deserialize)]
struct Roots {
    roots: Vec<Root>,
}

#[derive(Deserialize)]
struct Root {
    uri: String,
}

/// Reads the folders of an answer; roots that are no folders of this machine are passed over.
fn folders_of(outcome: &ResponseOutcome<'_>) -> Vec<PathBuf> {
    let read = match outcome {
        ResponseOutcome::Result(payload) => serde_json::from_str::<Roots>(payload.get()),
        ResponseOutcome::Error(raw) => {
            tracing::warn!(error = %Shown::line(raw.get()), "the client does not name its roots");
            return Vec::new();
        }
    };
    match read {
        Ok(Roots { roots }) => roots.iter().filter_map(|root| folder_of(&root.uri)).collect(),
        Err(error) => {
            tracing::warn!(%error, "the roots of the client cannot be read");
            Vec::new()
        }
    }
}

fn folder_of(uri: &str) -> Option<PathBuf> {
    let uri = Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?;
    uri.to_file_path().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_this_machine_are_folders() {
        let folders = |text: &str| folders_of(&ResponseOutcome::Result(Payload::parse(text).unwrap()));
        let roots = r#"{"roots":[{"uri":"file:///a%20b/%C3%BC","name":"x"},{"uri":"file://localhost/c"},
            {"uri":"file://host/d"},{"uri":"https://e/f"},{"uri":"vscode-vfs://github/g"},{"uri":"h"},{"uri":""}]}"#;
        assert_eq!(folders(roots), ["/a b/ü", "/c"].map(PathBuf::from));
        for unreadable in [
            "{}",
            r#"{"roots":1}"#,
            r#"{"roots":[{"name":"a"}]}"#,
            "[]",
            r#"{"roots":[],"roots":[]}"#,
        ] {
            assert_eq!(folders(unreadable), Vec::<PathBuf>::new(), "{unreadable}");
        }
    }
}
