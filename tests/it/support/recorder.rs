//! Clients that are asked for what they send to their model: an API that keeps it, and the pinned Codex and Gemini CLI.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::{have, sdk};

const CODEX: &str = "@openai/codex@0.166.0";

const GEMINI: &str = "@google/gemini-cli@0.61.0";

/// An API that keeps what it is asked and has no answer.
pub(crate) struct Recorder {
    pub(crate) url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    let mut seen = Vec::new();
                    let mut chunk = vec![0; 65_536];
                    let (head, length) = loop {
                        let Ok(count) = stream.read(&mut chunk) else {
                            return;
                        };
                        if count == 0 {
                            return;
                        }
                        seen.extend_from_slice(&chunk[..count]);
                        let text = String::from_utf8_lossy(&seen).to_lowercase();
                        if let Some(head) = text.find("\r\n\r\n") {
                            let length = text[..head].split("content-length:").nth(1);
                            let length =
                                length.and_then(|rest| rest.split("\r\n").next()?.trim().parse().ok());
                            break (head + 4, length.unwrap_or(0_usize));
                        }
                    };
                    while seen.len() < head + length {
                        match stream.read(&mut chunk) {
                            Ok(count) if count > 0 => seen.extend_from_slice(&chunk[..count]),
                            _ => break,
                        }
                    }
                    kept.lock()
                        .unwrap()
                        .push(String::from_utf8_lossy(&seen).into_owned());
                    let body = r#"{"type":"error","error":{"type":"invalid_request_error","code":400,"message":"no","status":"INVALID_ARGUMENT"}}"#;
                    let _ = write!(
                        stream,
                        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    );
                });
            }
        });
        Self { url, bodies }
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.bodies.lock().unwrap().iter().any(|body| body.contains(text))
    }

    /// The longest request: that of the model, with the definitions of its tools.
    pub(crate) fn longest(&self) -> String {
        let bodies = self.bodies.lock().unwrap();
        bodies
            .iter()
            .max_by_key(|body| body.len())
            .cloned()
            .unwrap_or_default()
    }

    pub(crate) fn told(&self) -> String {
        let bodies = self.bodies.lock().unwrap();
        bodies
            .iter()
            .map(|body| body.chars().take(2_000).collect::<String>())
            .collect()
    }
}

fn program(name: &str, package: &str, below: &str) -> Option<PathBuf> {
    have(&["npm", "node"]).then(|| sdk::npm(name, &[package]).join("node_modules").join(below))
}

/// The script of Codex, for `node`.
pub(crate) fn codex_program() -> Option<PathBuf> {
    program("codex", CODEX, "@openai/codex/bin/codex.js")
}

/// The script of the Gemini CLI, for `node`.
pub(crate) fn gemini_program() -> Option<PathBuf> {
    let folder = program("gemini", GEMINI, "@google/gemini-cli")?;
    let manifest = std::fs::read_to_string(folder.join("package.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    Some(folder.join(manifest["bin"]["gemini"].as_str().unwrap()))
}
