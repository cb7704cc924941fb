//! What a server or an installer is given in confidence is in nothing that pml writes, however it is repeated.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::world::{Client, World, texts};

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
