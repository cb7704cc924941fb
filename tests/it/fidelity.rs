//! What is not pml's own passes byte for byte, in both directions, through the real binary.
//!
//! Golden lines hold what a proxy on typed structures was seen to break; a property sends any JSON at all, as any
//! writer may have spelled it. The client compares lines, not values.

use std::cell::RefCell;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::support::world::{Client, World};

/// Results, and arguments, that nobody may touch.
const GOLDEN: [&str; 25] = [
    // Unknown members at every level, and the order of members.
    r#"{"z":1,"content":[{"type":"text","text":"t","z":{"y":[{"x":null}]},"a":1}],"a":2}"#,
    // Numbers that no double holds, and spellings that a reader would not write again.
    r#"{"content":[],"n":[12345678901234567890123,1.0,-0,-0.0,1E400,1e-7,0.1000,100000000000000000000000.0e-10]}"#,
    // Explicit nulls.
    r#"{"content":[],"structuredContent":null,"isError":null,"_meta":null,"x":null}"#,
    // Escapes: needless ones, half a surrogate pair, controls, line separators as they are.
    "{\"content\":[],\"e\":\"\\u00e9\\/\\u002F\\ud800\\u0000\\uD83E\\uDD80\u{2028}\u{2029}\u{7f}\"}",
    // And half a pair in the name of a member, which no text can be.
    r#"{"\ud800":1,"content":[],"x\uDC00":{"\udc00\ud800":2}}"#,
    // Blanks where JSON allows them.
    "{ \"content\" : [ ] ,\t\"a\":{ } , \"b\" :[ 1 ,2 ] }",
    // Content of types that are not known yet.
    r#"{"content":[{"type":"hologram","frames":[1.50],"nested":{"type":"text"}},{"type":7},{},null,"x"]}"#,
    // Members by which a typed reader takes one result for another.
    r#"{"tools":[{"name":"x"}],"content":[]}"#,
    r#"{"messages":[],"content":[]}"#,
    r#"{"contents":[{"uri":"a:b","text":"c"}],"content":[]}"#,
    r#"{"action":"accept","content":{"decision":"always"}}"#,
    r#"{"roots":[],"resources":[],"prompts":[],"completion":{"values":[]}}"#,
    r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}"#,
    r#"{"task":{"taskId":"t","status":"working"}}"#,
    r#"{"model":"m","role":"assistant","content":{"type":"text","text":"t"}}"#,
    // Metadata, icons, annotations, execution, extensions.
    r#"{"_meta":{"x/y":1.0,"io.modelcontextprotocol/related-task":{"taskId":"t"},"progressToken":"p"},"content":[]}"#,
    r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n","icons":[{"src":"data:,","sizes":["any"],"theme":"dark"}],"annotations":{"audience":["user","x"],"priority":0.30,"lastModified":"2025"}}]}"#,
    r#"{"content":[],"execution":{"taskSupport":"optional"},"x-vendor":{"x-deep":[1.0]}}"#,
    r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/x"},{"type":"image","data":"","mimeType":""}]}"#,
    r#"{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"AA==","mimeType":"x/y","_meta":{"a":1}}}]}"#,
    r#"{"content":[],"structuredContent":{"a":1.0,"b":[[[[]]]]},"isError":false}"#,
    r#"{"content":[{"type":"text","text":"no"}],"isError":true,"x":1}"#,
    // Members of an envelope, inside.
    r#"{"jsonrpc":"1.0","id":5,"method":"x","result":{},"error":{"code":1},"params":{},"content":[]}"#,
    // One name twice: which one counts is for the reader to say.
    r#"{"content":[],"a":1,"a":2}"#,
    r"{}",
];

/// As deep as a value may be nested: pml refuses a line deeper than 127, and the message around it takes a few.
const DEEP: usize = 120;

/// A conversation with one pml in front of one fake server.
struct Passage {
    client: Client,
    world: World,
}

impl Passage {
    fn open() -> Self {
        let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
        let mut client = world.legacy();
        client.call("fake__connect", &json!({}));
        Self { client, world }
    }

    /// Sends a line and returns the one that answers it; the id of both is `"it"`.
    fn line(&mut self, line: &str) -> String {
        self.client.raw(line);
        loop {
            let answer = self.client.line();
            if !answer.contains(r#""method":"notifications/"#) {
                return answer;
            }
        }
    }

    /// The params that reached the server of a call that has these, as `echo` tells.
    fn echoed(&mut self, params: &str) -> String {
        let answer = self.line(&format!(
            r#"{{"jsonrpc":"2.0","id":"it","method":"tools/call","params":{params}}}"#
        ));
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("not JSON: {answer}"));
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    /// The line that reaches the client of a server that gives these bytes.
    fn given(&mut self, kind: &str, bytes: &str) -> String {
        let tool = if kind == "result" {
            "fake__give"
        } else {
            "fake__give_error"
        };
        let call = json!({
            "jsonrpc": "2.0", "id": "it", "method": "tools/call",
            "params": { "name": tool, "arguments": { kind: bytes } },
        });
        self.line(&call.to_string())
    }
}

#[test]
fn golden_results_pass_byte_for_byte() {
    let mut passage = Passage::open();
    for golden in GOLDEN {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"it","result":{golden}}}"#);
        assert_eq!(passage.given("result", golden), expected);
    }
    let deep = format!(
        r#"{{"content":[],"deep":{}{}}}"#,
        "[".repeat(DEEP),
        "]".repeat(DEEP)
    );
    let expected = format!(r#"{{"jsonrpc":"2.0","id":"it","result":{deep}}}"#);
    assert_eq!(passage.given("result", &deep), expected);
}

#[test]
fn golden_errors_pass_byte_for_byte() {
    let mut passage = Passage::open();
    for golden in [
        r#"{"code":-32000,"message":"m"}"#,
        r#"{"message":"m","code":-32602,"data":{"z":1.0,"a":12345678901234567890123},"x":null}"#,
        r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://example.com","elicitationId":"e"}]}}"#,
        r#"{"code":0,"message":"","data":null}"#,
        r#"{ "code" : 1 , "message":"\u00e9\/" }"#,
    ] {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"it","error":{golden}}}"#);
        assert_eq!(passage.given("error", golden), expected);
    }
}

#[test]
fn golden_arguments_pass_byte_for_byte() {
    let mut passage = Passage::open();
    for golden in GOLDEN {
        let params = |name: &str| format!(r#"{{"x":1.0,"arguments":{golden},"name":"{name}","later":null}}"#);
        assert_eq!(passage.echoed(&params("fake__echo")), params("echo"));
        // The policy name is as good as the wire name.
        assert_eq!(passage.echoed(&params("fake:echo")), params("echo"));
    }
    let deep = format!(r#"{{"deep":{}{}}}"#, "[".repeat(DEEP), "]".repeat(DEEP));
    let params = |name: &str| format!(r#"{{"name":"{name}","arguments":{deep}}}"#);
    assert_eq!(passage.echoed(&params("fake__echo")), params("echo"));
}

#[test]
fn golden_definitions_of_tools_pass_byte_for_byte_but_for_their_name() {
    let definition = |name: &str| {
        format!(
            r#"{{"x-first":1.0,"name":"{name}","title":"T","description":"\u00e9","icons":[{{"src":"data:,","sizes":["any"]}}],"inputSchema":{{"type":"object","x-order":[2,1],"properties":{{"z":{{"const":12345678901234567890123}},"a":{{"default":null}}}},"$defs":{{}}}},"outputSchema":{{"type":"object","minimum":-0}},"annotations":{{"readOnlyHint":true,"x":null}},"execution":{{"taskSupport":"forbidden"}},"_meta":{{"x/y":1.50}}}}"#
        )
    };
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &["--tool", &definition("golden")]);
    for _ in ["while it runs", "from the catalog"] {
        let mut client = world.legacy();
        client.call("fake__echo", &json!({}));
        client.raw(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
        let listed = std::iter::repeat_with(|| client.line())
            .find(|line| line.contains(r#""id":"list""#))
            .unwrap();
        assert!(listed.contains(&definition("fake__golden")), "{listed}");
    }
}

#[test]
fn a_modern_client_gets_the_bytes_and_the_type_of_the_result() {
    let mut passage = Passage::open();
    drop(passage.client);
    passage.client = passage.world.client();
    for golden in GOLDEN {
        let call = json!({
            "jsonrpc": "2.0", "id": "it", "method": "tools/call",
            "params": { "name": "fake__give", "arguments": { "result": golden }, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            } },
        });
        let answer = passage.line(&call.to_string());
        let result = answer
            .strip_prefix(r#"{"jsonrpc":"2.0","id":"it","result":"#)
            .and_then(|rest| rest.strip_suffix('}'))
            .unwrap_or_else(|| panic!("{answer}"));
        let added = r#""resultType":"complete""#;
        assert!(result.contains(added), "{answer}");
        let without = [format!("{added},"), format!(",{added}"), added.to_owned()]
            .iter()
            .map(|member| result.replacen(member, "", 1))
            .any(|without| without == golden);
        assert!(without, "{golden}\n{result}");
    }
}

/// JSON as any writer may spell it.
fn any_json() -> impl Strategy<Value = String> {
    let number = r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,3})?";
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        number.prop_map(|text| text),
        any_string(),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        let blank = || "[ \t]{0,2}";
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..6), blank(), blank()).prop_map(
                |(items, before, after)| format!(
                    "[{before}{}{after}]",
                    items.join(&format!("{after},{before}"))
                )
            ),
            any_object(inner),
        ]
    })
}

fn any_object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (prop::collection::vec((any_string(), value), 0..6), "[ \t]{0,2}").prop_map(|(members, blank)| {
        let members: Vec<String> = members
            .iter()
            .map(|(name, value)| format!("{blank}{name}{blank}:{blank}{value}"))
            .collect();
        format!("{{{}{blank}}}", members.join(","))
    })
}

/// A string with every kind of escape, also of half a surrogate pair, and of every length of a character.
fn any_string() -> impl Strategy<Value = String> {
    r#""([ !#-\[\]-~\x7f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}|\\u[dD][89a-fA-F][0-9a-f]{2}|é|中|🦀|\u{2028}){0,12}""#.prop_map(|text| text)
}

#[test]
fn any_json_passes_byte_for_byte_in_both_directions() {
    let passage = RefCell::new(Passage::open());
    let mut runner = TestRunner::new(Config {
        // Each case is two calls on one long-lived pml: a second or two in all.
        cases: 512,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&any_object(any_json()), |text| {
        let mut passage = passage.borrow_mut();
        let params = |name: &str| format!(r#"{{"name":"{name}","arguments":{text}}}"#);
        prop_assert_eq!(passage.echoed(&params("fake__echo")), params("echo"));
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"it","result":{text}}}"#);
        prop_assert_eq!(passage.given("result", &text), expected);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
