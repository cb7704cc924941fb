//! Servers of the official SDKs over HTTP, through the real binary.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{told, world};
use crate::support::sdk::{self, Python};
use crate::support::world::{World, asks, texts};
use crate::support::{eventually, have};

/// A server on a port of the loopback interface; it ends with this.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts `command`, which listens on the port of its variable `PORT`.
    fn start(mut command: Command, port: u16) -> Self {
        let child = command
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Node and Python start slowly where everything else is being built.
        eventually("the server listens", std::time::Duration::from_mins(1), || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { child, port }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn everything(transport: &str, port: u16) -> Server {
    let mut command = Command::new("node");
    command.arg(sdk::everything()).arg(transport);
    Server::start(command, port)
}

fn python(line: Python, program: &str) -> Server {
    let mut command = Command::new(sdk::python(line));
    command.args(["-c", program]);
    Server::start(command, free_port())
}

/// Asks, continues and calls: what every server must bear.
fn asked_and_called(url: &str, tool: &str, arguments: &Value) -> (World, Value) {
    let world = world(&json!({ "ask": ["*"] }), &json!({ "url": url }));
    let mut client = world.legacy();
    let asked = client.call(tool, arguments);
    assert!(asks(&asked), "{asked}");
    assert_eq!(asked["approval_context"]["type"], "remote_connect");
    let result = client.proceed(tool, &asked, &json!({ "approved": true }));
    let again = client.call(tool, arguments);
    assert_eq!(again, result, "the connection is kept");
    drop(client);
    (world, result)
}

#[test]
fn the_everything_server_answers_over_streamable_http_and_after_a_restart() {
    if !have(&["node", "npm"]) {
        return;
    }
    let server = everything("streamableHttp", free_port());
    let arguments = json!({ "message": "over there" });
    let (world, result) = asked_and_called(&server.url("/mcp"), "web__echo", &arguments);
    assert_eq!(texts(&result), ["Echo: over there"], "{result}");

    let mut client = world.legacy();
    client.call("web__echo", &arguments);
    let port = server.port;
    drop(server);
    let gone = client.request(
        "tools/call",
        &json!({ "name": "web__echo", "arguments": arguments }),
    );
    let message = gone["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("`web` cannot be reached at "), "{gone}");
    let server = everything("streamableHttp", port);
    let result = client.call("web__echo", &arguments);
    assert_eq!(
        texts(&result),
        ["Echo: over there"],
        "a new session was opened: {result}"
    );
    drop(server);
}

#[test]
fn the_everything_server_reports_progress_over_streamable_http() {
    if !have(&["node", "npm"]) {
        return;
    }
    let server = everything("streamableHttp", free_port());
    let world = super::allowed(&server.url("/mcp"));
    let mut client = world.legacy();
    let params = json!({
        "name": "web__trigger-long-running-operation",
        "arguments": { "duration": 0.3, "steps": 3 },
        "_meta": { "progressToken": "token" },
    });
    let answer = client.request("tools/call", &params);
    assert!(told(&answer["result"]).contains("completed"), "{answer}");
    let steps: Vec<&Value> = client
        .aside
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .filter(|message| message["params"]["total"] == 3)
        .map(|message| &message["params"]["progress"])
        .collect();
    assert_eq!(steps, [1, 2, 3], "{:?}", client.aside);
}

#[test]
fn the_everything_server_answers_over_the_old_transport() {
    if !have(&["node", "npm"]) {
        return;
    }
    let server = everything("sse", free_port());
    let arguments = json!({ "message": "as before" });
    let (world, result) = asked_and_called(&server.url("/sse"), "web__echo", &arguments);
    assert_eq!(texts(&result), ["Echo: as before"], "{result}");

    // Its stream is its session: the end of it is the end of the connection, and the next call opens another.
    let mut client = world.legacy();
    client.call("web__echo", &arguments);
    let port = server.port;
    drop(server);
    let server = everything("sse", port);
    eventually("a call runs again", std::time::Duration::from_mins(1), || {
        texts(&client.call("web__echo", &arguments)) == ["Echo: as before"]
    });
    drop(server);
}

#[test]
fn a_python_server_answers_over_http() {
    if !have(&["uv"]) {
        return;
    }
    let program = "
import os
from mcp.server.fastmcp import FastMCP
server = FastMCP('python', host='127.0.0.1', port=int(os.environ['PORT']))
@server.tool()
def double(number: int) -> int:
    return number * 2
server.run(transport='streamable-http')
";
    let server = python(Python::One, program);
    let (_world, result) = asked_and_called(&server.url("/mcp"), "web__double", &json!({ "number": 21 }));
    assert_eq!(texts(&result), ["42"], "{result}");
    assert_eq!(result["structuredContent"], json!({ "result": 42 }));
}

#[test]
fn a_certificate_that_the_machine_trusts_is_needed_for_https() {
    if !have(&["node", "openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let certified = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args([
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(certified.status.success(), "{certified:?}");
    let program = "
const { readFileSync } = require('node:fs');
const results = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
  'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'encrypted' }] },
};
const answer = async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const message = body ? JSON.parse(body) : {};
  const result = results[message.method];
  response.writeHead(result ? 200 : request.method === 'POST' ? 202 : 405, { 'content-type': 'application/json' });
  response.end(result && JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
};
const identity = { key: readFileSync('key.pem'), cert: readFileSync('cert.pem') };
require('node:https').createServer(identity, answer).listen(process.env.PORT, '127.0.0.1');
";
    let mut command = Command::new("node");
    command.args(["-e", program]).current_dir(&folder);
    let server = Server::start(command, free_port());
    let url = format!("https://localhost:{}/mcp", server.port);
    let trusting = super::allowed(&url);
    trusting.set("SSL_CERT_FILE", folder.path().join("cert.pem").to_str().unwrap());
    assert_eq!(
        texts(&trusting.legacy().call("web__echo", &json!({}))),
        ["encrypted"]
    );
    let refused = told(&super::allowed(&url).legacy().call("web__echo", &json!({})));
    assert!(refused.contains("invalid peer certificate"), "{refused}");

    // Without TLS nobody need be trusted, and a machine may have no certificates at all.
    let web = crate::support::web::Web::mcp(|_| None);
    let bare = super::allowed(&web.url("/mcp"));
    bare.set("SSL_CERT_FILE", "/nowhere");
    bare.set("SSL_CERT_DIR", "/nowhere");
    for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
        bare.set(name, "");
    }
    assert_eq!(texts(&bare.legacy().call("web__echo", &json!({}))), ["{}"]);
}
