//! What a server or an installer is given in confidence is in nothing that pml writes, however it is repeated.

mod sweep;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::web::{Answer, Web};
use crate::support::world::{Client, World, stderr, stdout, texts};

/// A program that repeats all it was given, in several spellings, and fails.
const PARROT: &str = r"
import base64, json, os, sys, urllib.parse
given = sys.argv[1:] + [value for name, value in os.environ.items() if name.lower().endswith(('_token', '_proxy'))]
for value in given:
    for text in (value, urllib.parse.quote(value, safe=''), urllib.parse.quote_plus(value), json.dumps(value),
                 json.dumps(value, ensure_ascii=False), json.dumps(json.dumps(value)), repr(value),
                 base64.b64encode(value.encode()).decode(), base64.b64encode(b'user:' + value.encode()).decode()):
        print('given:', text, file=sys.stderr)
sys.exit(1)
";

/// A conversation of which everything that pml writes is kept, at the loudest level of the log.
struct Loud {
    world: World,
    client: Client,
    said: String,
}

impl Loud {
    fn start(world: World) -> Self {
        let mut command = world.program(Path::new("/bin/sh"));
        command.args(["-c", "exec \"$0\" stdio 2>stderr"]);
        command.arg(crate::support::pml()).env("PML_LOG", "trace");
        let mut client = Client::start(command);
        client.initialize("2025-06-18");
        Self {
            world,
            client,
            said: String::new(),
        }
    }

    /// Calls a tool and returns what came back, which is kept.
    fn call(&mut self, tool: &str) -> Value {
        let answer = self
            .client
            .request("tools/call", &json!({ "name": tool, "arguments": {} }));
        self.said.push_str(&answer.to_string());
        answer
    }

    /// Returns everything that was written: to the wire, to the log, and to every file of pml.
    fn end(self) -> String {
        let Self {
            world,
            client,
            mut said,
        } = self;
        for message in &client.aside {
            said.push_str(&message.to_string());
        }
        assert!(client.close().success());
        said.push_str(&world.read("stderr"));
        for file in world.files() {
            let bytes = std::fs::read(world.home().join(file)).unwrap_or_default();
            said.push_str(&String::from_utf8_lossy(&bytes));
        }
        said
    }
}

/// Asserts that a value is told in no spelling.
fn assert_untold(told: &str, value: &str) {
    let percent = |safe: &str| -> String {
        let encoded = value.bytes().map(|byte| {
            let plain = byte.is_ascii_alphanumeric() || safe.as_bytes().contains(&byte);
            if plain {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        });
        encoded.collect()
    };
    let json = Value::from(value).to_string();
    for spelling in [
        value.to_owned(),
        percent(""),
        percent("-_.~"),
        percent("-_.~/"),
        json[1..json.len() - 1].to_owned(),
        STANDARD.encode(value),
        STANDARD.encode(format!("user:{value}")),
    ] {
        let place = told.find(&spelling).map(|at| {
            let begin = told.floor_char_boundary(at.saturating_sub(200));
            &told[begin..told.ceil_char_boundary((at + spelling.len() + 50).min(told.len()))]
        });
        assert_eq!(place, None, "{value} is told as {spelling}");
    }
}

fn parrot(world: &World, arguments: &[&str], variables: &Value) -> Value {
    world.write("parrot.py", PARROT);
    let given: Vec<&str> = ["./parrot.py"].iter().chain(arguments).copied().collect();
    json!({ "command": "python3", "args": given, "env": variables })
}

#[test]
fn a_variable_in_the_arguments_is_not_told_by_a_failing_server() {
    let world = World::new();
    world.set("ARGUMENT_TOKEN", "c4nary/of \"the\" arguments");
    world.set("PIN", "4711");
    let server = parrot(
        &world,
        &["--token=${ARGUMENT_TOKEN}", "${PIN}", "--mode=fast"],
        &json!({}),
    );
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": { "parrot": server } }));
    let mut loud = Loud::start(world);
    let answer = loud.call("parrot:x");
    let text = texts(&answer["result"]).concat();
    assert!(text.contains("--token=[ARGUMENT_TOKEN]"), "{text}");
    assert!(
        text.contains("--mode=fast") && text.contains("given: [PIN]"),
        "{text}"
    );
    let told = loud.end();
    assert_untold(&told, "c4nary/of \"the\" arguments");
    assert!(!told.contains("given: 4711"), "{told}");
}

#[test]
fn no_line_of_a_key_is_told_by_a_failing_server() {
    const KEY: &str =
        "-----BEGIN KEY-----\nMIIEc4naryOfTheFirstLine\nMIIEc4naryOfTheSecondLine\nkQ4x\n-----END KEY-----\n";
    let world = World::new();
    world.set("KEY", KEY);
    let server = parrot(&world, &["${KEY}"], &json!({ "DECLARED_TOKEN": "${KEY}" }));
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": { "parrot": server } }));
    let mut loud = Loud::start(world);
    loud.call("parrot:x");
    let told = loud.end();
    assert!(told.contains("[KEY]"), "{told}");
    for line in [
        "MIIEc4naryOfTheFirstLine",
        "MIIEc4naryOfTheSecondLine",
        "given: kQ4x",
    ] {
        assert_untold(&told, line);
    }
}

#[test]
fn the_password_of_a_proxy_is_not_told_by_a_failing_server() {
    let world = World::new();
    world.set("HTTP_PROXY", "http://user:c4nary%2Fproxy@proxy.test:3128");
    world.set("all_proxy", "user:c4nary-of-all@proxy.test:3128");
    world.set("NO_PROXY", "localhost");
    let server = parrot(&world, &[], &json!({}));
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": { "parrot": server } }));
    let mut loud = Loud::start(world);
    let answer = loud.call("parrot:x");
    let text = texts(&answer["result"]).concat();
    assert!(text.contains("@proxy.test:3128"), "the rest of it helps: {text}");
    let told = loud.end();
    assert_untold(&told, "c4nary/proxy");
    assert_untold(&told, "c4nary%2Fproxy");
    assert_untold(&told, "c4nary-of-all");
}

/// A web server that repeats the path and the headers it was asked with, as `answer` words it.
fn repeating(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Web {
    Web::mcp(move |request| {
        let headers = request.headers.values().cloned().collect::<Vec<_>>().join(" ");
        let meant = decoded(&request.path);
        (request.rpc() == "tools/call").then(|| answer(&format!("{} {meant} {headers}", request.path)))
    })
}

fn decoded(path: &str) -> String {
    let pair = format!("x={}", path.replace('+', "%2B").replace('&', "%26"));
    let meant = url::form_urlencoded::parse(pair.as_bytes()).next().unwrap().1;
    meant.into_owned()
}

/// A world with a server elsewhere whose path, query and headers hold secrets.
fn confided(web: &Web) -> World {
    let world = World::new();
    world.set("PATH_TOKEN", "c4nary/ofthe\"path");
    world.set("QUERY_TOKEN", "c4nary ofthe+query");
    world.set("HEADER_TOKEN", "c4nary-of-the-header");
    let server = json!({
        "url": web.url("/${PATH_TOKEN}/mcp?key=${QUERY_TOKEN}"),
        "headers": { "Authorization": "Bearer ${HEADER_TOKEN}" },
    });
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": { "web": server } }));
    world
}

fn assert_confided(told: &str) {
    for value in ["c4nary/ofthe\"path", "c4nary ofthe+query", "c4nary-of-the-header"] {
        assert_untold(told, value);
    }
}

#[test]
fn a_variable_in_an_address_is_not_told_by_the_words_of_a_failing_server() {
    let web = repeating(|given| Answer::Whole(500, Vec::new(), format!("broke: {given}")));
    let mut loud = Loud::start(confided(&web));
    let answer = loud.call("web:echo");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("broke: /[PATH_TOKEN]/mcp?["), "{message}");
    assert_confided(&loud.end());
}

#[test]
fn a_variable_that_an_error_object_escapes_is_not_told() {
    let escaped = |given: &str| -> String {
        let units = given.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
        format!("\"{}\"", units.collect::<Vec<_>>().concat())
    };
    for status in [200, 400] {
        let web = repeating(move |given| {
            let error = format!(r#"{{"code":1,"message":{},"data":{{{0}:1}}}}"#, escaped(given));
            // The session counts its requests: the call is the third.
            let body = format!(r#"{{"jsonrpc":"2.0","id":3,"error":{error}}}"#);
            let kind = ("content-type", "application/json".to_owned());
            Answer::Whole(status, vec![kind], body)
        });
        let mut loud = Loud::start(confided(&web));
        let answer = loud.call("web:echo");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("/[PATH_TOKEN]/mcp?key=["), "{message}");
        assert_confided(&loud.end());
    }
}

/// A world whose installers repeat all they can read, and fail.
fn installing() -> World {
    let world = World::new();
    install_into(&world);
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": packages() }));
    world
}

fn packages() -> Value {
    json!({ "node": { "package": "npm:hello@1.0.0" }, "snake": { "package": "pypi:hello==1.0.0" } })
}

fn install_into(world: &World) {
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let python = format!("#!{}\n{PARROT}", python().display());
    let files =
        "given += [open(os.path.join(os.environ['HOME'], name)).read() for name in ('.npmrc', '.netrc')]\n";
    let script = python.replace("for value in given:\n", &format!("{files}for value in given:\n"));
    let script = script.replace("'_proxy')", "'_proxy', 'url', 'registry', 'index')");
    for installer in ["npm", "uv"] {
        let path = bin.join(installer);
        std::fs::write(&path, &script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    world.set(
        "PATH",
        &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    world.set("HTTPS_PROXY", "http://user:c4nary-of-proxy@proxy.test:3128");
    world.set("UV_INDEX_URL", "https://index.test/c4nary0of1path/simple");
    world.set("PIP_INDEX_URL", "https://c4nary-of-pip@index.test/simple");
    world.set("NPM_CONFIG_REGISTRY", "https://user:c4nary%2Fregistry@npm.test/");
    std::fs::write(
        world.home().join(".npmrc"),
        "//npm.test/:_authToken=c4nary-of-npmrc\n",
    )
    .unwrap();
    std::fs::write(
        world.home().join(".netrc"),
        "machine x login y password c4nary-of-netrc\n",
    )
    .unwrap();
}

/// The interpreter itself: what stands in its place on the `PATH` may be a script.
fn python() -> PathBuf {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8(asked.stdout).unwrap().trim().into()
}

const OF_INSTALLERS: [&str; 7] = [
    "c4nary-of-proxy",
    "c4nary0of1path",
    "c4nary-of-pip",
    "c4nary/registry",
    "c4nary%2Fregistry",
    "c4nary-of-npmrc",
    "c4nary-of-netrc",
];

/// Removes the user's own files, which hold their secrets rightly.
fn forget(world: &World) {
    for name in [".npmrc", ".netrc", "bin/npm", "bin/uv"] {
        std::fs::remove_file(world.home().join(name)).unwrap();
    }
}

#[test]
fn a_token_of_an_index_is_not_told_by_a_failing_installer() {
    let mut loud = Loud::start(installing());
    for tool in ["node:x", "snake:x"] {
        let answer = loud.call(tool);
        let text = texts(&answer["result"]).concat();
        assert!(text.contains("given: "), "the installer was heard: {text}");
    }
    let output = loud.world.run(&["install", "--yes"]);
    let printed = format!("{}{}", stdout(&output), stderr(&output));
    assert!(printed.contains("given: "), "{printed}");
    forget(&loud.world);
    let told = printed + &loud.end();
    for value in OF_INSTALLERS {
        assert_untold(&told, value);
    }
}
