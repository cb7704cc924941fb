//! Packages with a small MCP server in them, made on the fly: npm archives and Python wheels.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::registry::Registry;

/// A server in JavaScript. Its tool `look` says what its dependency `dep` is, and its tool `note` writes a file beside
/// its own code. It waits for the file `$GATE`, where that is set, before it answers.
pub(crate) const SERVER_JS: &str = r"#!/usr/bin/env node
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
";

/// The same server in Python, as the module `hello`.
pub(crate) const SERVER_PY: &str = r"
import json, os, sys
def main():
    try:
        from dep import version
    except ImportError:
        version = 'none'
    for line in sys.stdin:
        message = json.loads(line)
        if 'id' not in message:
            continue
        method, params = message['method'], message.get('params', {})
        if method == 'initialize':
            result = {'protocolVersion': params['protocolVersion'], 'capabilities': {'tools': {}},
                      'serverInfo': {'name': 'x', 'version': '1'}}
        elif method == 'tools/list':
            result = {'tools': [{'name': name, 'inputSchema': {'type': 'object'}} for name in ('look', 'note')]}
        elif method == 'tools/call':
            if params['name'] == 'note':
                path = os.path.join(os.path.dirname(__file__), params['arguments']['file'])
                with open(path, 'w') as file:
                    file.write(params['arguments']['text'])
            result = {'content': [{'type': 'text', 'text': 'dep ' + version}]}
        else:
            continue
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
";

/// Publishes the JavaScript server as `hello`, with the dependencies `dependencies`.
pub(crate) fn publish_server(registry: &Registry, version: &str, dependencies: &Value) {
    let manifest = json!({ "bin": "server.js", "dependencies": dependencies });
    registry.publish("hello", version, &manifest, &[("server.js", SERVER_JS)]);
}

/// Packs an npm archive with entries that an honest one does not have: a name, a kind, and a content, a target or a
/// number of zeros.
pub(crate) fn tarball(entries: &[(&str, &str, &str)]) -> Vec<u8> {
    const SCRIPT: &str = "
import io, json, sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode='w:gz') as archive:
    for name, kind, content in json.load(sys.stdin):
        entry = tarfile.TarInfo(name)
        entry.mode = 0o755
        if kind == 'zeros':
            entry.size = int(content)
            archive.addfile(entry, open('/dev/zero', 'rb'))
        elif kind == 'file':
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
        else:
            entry.type = {'link': tarfile.SYMTYPE, 'hard': tarfile.LNKTYPE, 'pipe': tarfile.FIFOTYPE, 'device': tarfile.CHRTYPE}[kind]
            entry.linkname = content
            archive.addfile(entry)
";
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(json!(entries).to_string().as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Packs a wheel of `name` with `files` and a script of its name; a text that begins with `->` is a link.
pub(crate) fn wheel(name: &str, version: &str, requires: &[&str], files: &[(&str, &str)]) -> Vec<u8> {
    wheel_of(name, version, requires, files, &[])
}

/// Packs the same with other texts for some of the files that describe it. Only long files are compressed.
pub(crate) fn wheel_of(
    name: &str,
    version: &str,
    requires: &[&str],
    files: &[(&str, &str)],
    others: &[(&str, &str)],
) -> Vec<u8> {
    const SCRIPT: &str = "
import json, sys, zipfile
path, name, version = sys.argv[1:4]
requires, files, others = json.load(sys.stdin)
info = f'{name}-{version}.dist-info'
metadata = f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n' + ''.join(f'Requires-Dist: {r}\\n' for r in requires)
files += [
    [f'{info}/METADATA', metadata],
    [f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'],
    [f'{info}/entry_points.txt', f'[console_scripts]\\n{name} = {name}:main\\n'],
]
files += [[f'{info}/RECORD', ''.join(f'{f},,\\n' for f, _ in files)]]
others = dict(others)
with zipfile.ZipFile(path, 'w') as wheel:
    for file, text in files:
        text = others.get(file, text)
        entry = zipfile.ZipInfo(file)
        entry.external_attr = (0o120777 if text.startswith('->') else 0o100755) << 16
        entry.create_system = 3
        entry.compress_type = zipfile.ZIP_DEFLATED if len(text) > 1000000 else zipfile.ZIP_STORED
        wheel.writestr(entry, text.removeprefix('->'))
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wheel");
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .arg(&path)
        .args([name, version])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // The files may be longer than a command line.
    let input = json!([requires, files, others]).to_string();
    python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(python.wait().unwrap().success());
    std::fs::read(path).unwrap()
}

/// Serves wheels of one Python package, each at its version, and nothing else of it.
pub(crate) fn publish_wheels(registry: &Registry, name: &str, wheels: &[(&str, &[u8])]) {
    use std::fmt::Write as _;
    let mut page = String::new();
    for (version, wheel) in wheels {
        let file = format!("{name}-{version}-py3-none-any.whl");
        let hash = sha256(wheel);
        let _ = writeln!(page, "<a href=\"/files/{file}#sha256={hash}\">{file}</a>");
        registry.serve(&format!("/files/{file}"), wheel);
    }
    registry.serve(&format!("/simple/{name}/"), page.as_bytes());
}

/// Serves wheels of one Python package by the JSON of PEP 691, each with the moment of its upload, if that is told.
pub(crate) fn publish_dated_wheels(
    registry: &Registry,
    name: &str,
    wheels: &[(&str, &[u8], Option<String>)],
) {
    let files: Vec<Value> = wheels
        .iter()
        .map(|(version, wheel, uploaded)| {
            let file = format!("{name}-{version}-py3-none-any.whl");
            let path = format!("/files/{file}");
            registry.serve(&path, wheel);
            let mut entry = json!({ "filename": file, "url": path, "hashes": { "sha256": sha256(wheel) } });
            if let Some(uploaded) = uploaded {
                entry["upload-time"] = json!(uploaded);
            }
            entry
        })
        .collect();
    let versions: Vec<&str> = wheels.iter().map(|(version, ..)| *version).collect();
    let page =
        json!({ "meta": { "api-version": "1.1" }, "name": name, "versions": versions, "files": files });
    registry.serve(&format!("/simple/{name}/"), page.to_string().as_bytes());
}

/// The SHA-256 of an archive in hexadecimal.
pub(crate) fn sha256(archive: &[u8]) -> String {
    use sha2::Digest as _;
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in sha2::Sha256::digest(archive) {
        let _ = write!(text, "{byte:02x}");
    }
    text
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
