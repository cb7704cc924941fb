//! The server behind every arm: reads lines, looks at the head of each, answers with a prepared result.
//!
//! As fast as a server can honestly be, so that what is measured is what stands in front of it: blocking reads, one
//! write for all the answers to what one read brought, no parsing of arguments. Speaks the Legacy era.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;

use anyhow::Context as _;
use memchr::{memchr, memmem};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::payload::Case;
use crate::process::Promise;

/// Where the id and the tool's name stand in what clients and proxies send.
const HEAD: usize = 512;

/// What one read may bring; it grows for longer lines.
const BUFFER: usize = 256 * 1024;

/// Longer results are written from where they lie instead of being copied together with others.
const COPIED: usize = 64 * 1024;

/// Answers on standard output what comes on standard input, until that ends. Lists `tools` tools.
pub(crate) fn run(tools: usize, promise: Promise) -> anyhow::Result<()> {
    let mut server = Server {
        output: File::from(io::stdout().as_fd().try_clone_to_owned()?),
        answers: Vec::with_capacity(BUFFER),
        results: std::array::from_fn(|_| OnceCell::new()),
        tools: definitions(tools),
        promise,
    };
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut buffer = vec![0; BUFFER];
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        let unseen = filled;
        let count = input.read(&mut buffer[filled..])?;
        if count == 0 {
            return Ok(());
        }
        filled += count;
        let (mut start, mut seen) = (0, unseen);
        while let Some(end) = memchr(b'\n', &buffer[seen..filled]) {
            server.receive(&buffer[start..seen + end])?;
            start = seen + end + 1;
            seen = start;
        }
        server.flush()?;
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
}

struct Server {
    output: File,
    answers: Vec<u8>,
    /// The results of the cases, in their order, each made when it is first wanted: a start must not pay for them.
    results: [OnceCell<String>; Case::ALL.len()],
    /// The list of tools, as JSON.
    tools: String,
    promise: Promise,
}

impl Server {
    fn receive(&mut self, line: &[u8]) -> anyhow::Result<()> {
        let head = &line[..line.len().min(HEAD)];
        if let Some((id, case)) = call_in(head) {
            return self.answer(id, case);
        }
        let request: Request<'_> = serde_json::from_slice(line)
            .with_context(|| format!("not a request: {}", String::from_utf8_lossy(head)))?;
        let Some(id) = request.id.map(RawValue::get) else {
            return Ok(());
        };
        let params = request.params.unwrap_or_default();
        match &*request.method {
            "tools/call" => {
                let name = params["name"].as_str().unwrap_or_default();
                let case = Case::of_tool(name.as_bytes()).unwrap_or(Case::Small);
                return self.answer(id.as_bytes(), case);
            }
            "initialize" => {
                let result = json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": { "tools": { "listChanged": self.promise == Promise::TellsChanges } },
                    "serverInfo": { "name": "bench", "version": "1.0.0" },
                });
                self.write(id, "result", &result.to_string());
            }
            "tools/list" => {
                let tools = std::mem::take(&mut self.tools);
                self.write(id, "result", &tools);
                self.tools = tools;
            }
            "ping" => self.write(id, "result", "{}"),
            _ => self.write(id, "error", r#"{"code":-32601,"message":"Method not found"}"#),
        }
        Ok(())
    }

    fn answer(&mut self, id: &[u8], case: Case) -> anyhow::Result<()> {
        let result = self.results[case as usize].get_or_init(|| case.result());
        self.answers.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        self.answers.extend_from_slice(id);
        self.answers.extend_from_slice(br#","result":"#);
        if result.len() <= COPIED {
            self.answers.extend_from_slice(result.as_bytes());
        } else {
            self.output.write_all(&self.answers)?;
            self.output.write_all(result.as_bytes())?;
            self.answers.clear();
        }
        self.answers.extend_from_slice(b"}\n");
        Ok(())
    }

    fn write(&mut self, id: &str, member: &str, value: &str) {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{value}}}\n");
        self.answers.extend_from_slice(line.as_bytes());
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.answers.is_empty() {
            self.output.write_all(&self.answers)?;
            self.answers.clear();
        }
        Ok(())
    }
}

/// A request that is not the common case.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: String,
    params: Option<Value>,
}

/// Finds the id and the case of a plain call without parsing it.
fn call_in(head: &[u8]) -> Option<(&[u8], Case)> {
    memmem::find(head, br#""method":"tools/call""#)?;
    let id = after(head, br#""id":"#)?;
    let id = &id[..id.iter().position(|byte| !byte.is_ascii_digit())?];
    let name = after(head, br#""name":""#)?;
    let case = Case::of_tool(&name[..memchr(b'"', name)?])?;
    (!id.is_empty()).then_some((id, case))
}

fn after<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    memmem::find(text, mark).map(|at| &text[at + mark.len()..])
}

/// A list of `count` tools: those of the cases, then others of the size that real servers have.
fn definitions(count: usize) -> String {
    let cases = Case::ALL.into_iter().map(|case| case.tool().to_owned());
    let others = (Case::ALL.len()..).map(|number| format!("search_records_{number}"));
    let tools: Vec<Value> = cases
        .chain(others)
        .take(count)
        .map(|name| {
            json!({
                "name": name,
                "description": format!("{name}: looks for records by words in their title, text or tags, and \
                    returns the best matches with their place; use it before reading a record whole."),
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": { "type": "string", "description": "Where to look, relative to the root" },
                        "words": { "type": "array", "items": { "type": "string" } },
                        "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 10 },
                    },
                    "required": ["path"],
                },
                "annotations": { "readOnlyHint": true },
            })
        })
        .collect();
    json!({ "tools": tools }).to_string()
}
