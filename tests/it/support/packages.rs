//! Packages with a small MCP server in them, made on the fly: npm archives.

use std::path::Path;

use serde_json::{Value, json};

use super::registry::Registry;

/// A server in JavaScript. Its tool `look` says what its dependency `dep` is, and its tool `note` writes a file beside
/// its own code. It waits for the file `$GATE`, where that is set, before it answers.
pub(crate) const SERVER_JS: &str = r#"#!/usr/bin/env node
const fs = require('fs'), path = require('path');
while (process.env.GATE && !fs.existsSync(process.env.GATE)) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
}
const dep = () => { try { return require('dep'); } catch { return 'none'; } };
const tools = ['look', 'note'].map(name => ({ name, inputSchema: { type: 'object' } }));
const results = {
  initialize: p => ({ protocolVersion: p.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }),
  'tools/list': () => ({ tools }),
  'tools/call': p => {
    if (p.name === 'note') fs.writeFileSync(path.join(__dirname, p.arguments.file), p.arguments.text);
    return { content: [{ type: 'text', text: 'dep ' + dep() }] };
  },
};
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method];
  const answer = result ? { result: result(params) } : { error: { code: -32601, message: 'no' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\n');
});
"#;

/// Publishes the JavaScript server as `hello`, with the dependencies `dependencies`.
pub(crate) fn publish_server(registry: &Registry, version: &str, dependencies: &Value) {
    let manifest = json!({ "bin": "server.js", "dependencies": dependencies });
    registry.publish("hello", version, &manifest, &[("server.js", SERVER_JS)]);
}

/// Lists the files below a directory, relative to it and sorted; links are not followed.
pub(crate) fn files_below(directory: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files.push(
                    entry
                        .path()
                        .strip_prefix(directory)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    files.sort();
    files
}
