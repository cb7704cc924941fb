//! What clients cannot read, and what becomes of it.

use super::*;
use crate::protocol::growth::{assert_linear, assert_linear_on_hostile};

const TOOL: DefinitionKind = DefinitionKind::Tool(Era::Legacy);

const ALL: [DefinitionKind; 5] = [
    TOOL,
    DefinitionKind::Tool(Era::Modern),
    DefinitionKind::Prompt,
    DefinitionKind::Resource,
    DefinitionKind::Template,
];

fn assert_mended(kind: DefinitionKind, cases: &[(&str, &str)]) {
    for (definition, expected) in cases {
        let mended = mended_definition(kind, definition);
        assert_eq!(mended.as_deref(), Some(*expected), "{kind:?}: {definition}");
        assert_eq!(
            mended_definition(kind, expected),
            None,
            "{kind:?}: {expected} is readable"
        );
    }
}

#[test]
fn mending_is_linear() {
    assert_linear_on_hostile("definition", |text| {
        for kind in ALL {
            drop(mended_definition(kind, text));
        }
        let definition = format!(
            r#"{{"uri":"u","description":{text},"inputSchema":{text},"outputSchema":{text},"icons":[{text}],"arguments":[{text}],"annotations":{text}}}"#
        );
        for kind in ALL {
            drop(mended_definition(kind, &definition));
        }
        let schema =
            format!(r#"{{"type":"object","properties":{text},"required":[{text}],"definitions":{text}}}"#);
        drop(mended_definition(
            TOOL,
            &format!(r#"{{"inputSchema":{schema},"outputSchema":{schema}}}"#),
        ));
    });
    let shapes: [(&str, &str, &str, &str); 8] = [
        ("icons", r#"{"icons":["#, r#"{"src":"","theme":1},1,"#, "1]}"),
        (
            "arguments",
            r#"{"arguments":["#,
            r#"{"name":"a","required":1},{},"#,
            "{}]}",
        ),
        (
            "properties",
            r#"{"inputSchema":{"properties":{"#,
            r#""a":true,"b":1,"#,
            r#""c":{}}}}"#,
        ),
        ("required", r#"{"inputSchema":{"required":["#, r#""a",1,"#, "1]}}"),
        ("halves", r#"{"x":""#, r"\ud800", r#""}"#),
        ("numbers", r#"{"x":["#, "1e999,", "1]}"),
        ("one number", r#"{"x":"#, "1", "}"),
        (
            "references",
            r##"{"outputSchema":{"type":"object","definitions":{"a":{"$ref":"#"}},"allOf":["##,
            r##"{"$ref":"#/definitions/a"},"##,
            "{}]}}",
        ),
    ];
    for (what, head, part, tail) in shapes {
        let text = |size: usize| format!("{head}{}{tail}", part.repeat(size / part.len()));
        assert_linear(what, text, |text| {
            for kind in ALL {
                drop(mended_definition(kind, text));
            }
        });
    }
    for part in ["(", "[a-z]", "a{1,2}", "\\\\d", "a|", "{"] {
        let text = |size: usize| {
            let pattern = part.repeat(size / part.len());
            format!(r#"{{"outputSchema":{{"type":"object","pattern":"{pattern}"}}}}"#)
        };
        assert_linear(part, text, |text| drop(mended_definition(TOOL, text)));
    }
}

#[test]
fn what_clients_can_read_stays_as_it_is() {
    let output = r##"{ "type":"object", "properties":{"a":{"type":["string","null"],"pattern":"^\\d+$","$ref":"#/$defs/b"}}, "$defs":{"b":{"enum":[1.0]}},"required":["a"],"additionalProperties":false,"$schema":"x" }"##;
    let tool = format!(
        r#"{{ "inputSchema" : {{ "properties":{{"a":{{}}}}, "type":"object","required":[] }}, "description":"", "x":1.0, "icons":[{{"src":"s","sizes":["any"],"theme":"dark"}}],"outputSchema":{output},"annotations":{{"title":"t","readOnlyHint":true,"z":1}},"execution":{{"taskSupport":"optional"}},"_meta":{{"a":null}} }}"#
    );
    for (kind, definition) in [
        (TOOL, r#"{"name":"a","inputSchema":{"type":"object"}}"#),
        (TOOL, &tool),
        (DefinitionKind::Tool(Era::Modern), &tool),
        (
            DefinitionKind::Tool(Era::Modern),
            r#"{"inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":true}}"#,
        ),
        (
            DefinitionKind::Prompt,
            r#"{"name":"a", "arguments":[{"name":"b","required":false,"x":{}} ,{"name":""}],"title":""}"#,
        ),
        (
            DefinitionKind::Resource,
            r#"{"uri":"a:b","name":"","size":12,"mimeType":"x","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-01T00:00:00Z"}}"#,
        ),
        (
            DefinitionKind::Template,
            r#"{"uriTemplate":"a:{b}","name":"n","annotations":{},"size":"not read"}"#,
        ),
    ] {
        assert_eq!(mended_definition(kind, definition), None, "{definition}");
    }
}

#[test]
fn a_tool_that_clients_cannot_read_is_mended_and_the_rest_stays() {
    assert_mended(
        TOOL,
        &[
            (
                r#"{"name":"a","inputSchema":{"$schema":"x"},"y":1.0}"#,
                r#"{"name":"a","inputSchema":{"type":"object","$schema":"x"},"y":1.0}"#,
            ),
            (
                r#"{"name":"a","inputSchema":{}}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"name":"a","inputSchema":{"type":["object"]}}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"name":"a","inputSchema":null}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"name":"a"}"#,
                r#"{"inputSchema":{"type":"object"},"name":"a"}"#,
            ),
            (
                r#"{"description":null,"name":"a","inputSchema":{"type":"object"},"annotations":7}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"title":5,"_meta":5,"execution":[],"icons":{},"inputSchema":{"type":"object"}}"#,
                r#"{"inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":"string","d":{"x":1.0}},"required":["a",1,"b"]}}"#,
                r#"{"inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{},"d":{"x":1.0}},"required":["a","b"]}}"#,
            ),
            (
                r#"{"inputSchema":{"properties":[],"required":"a","$schema":1}}"#,
                r#"{"inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes","title":5,"destructiveHint":true},"execution":{"taskSupport":"bogus"}}"#,
                r#"{"inputSchema":{"type":"object"},"annotations":{"destructiveHint":true},"execution":{}}"#,
            ),
            (
                r#"{"inputSchema":{"type":"object"},"icons":[1,{"src":5}, {"src":"a","sizes":"any","theme":"red"} ,2,{"src":"b"},3]}"#,
                r#"{"inputSchema":{"type":"object"},"icons":[{"src":"a"},{"src":"b"}]}"#,
            ),
            (
                r#"{"inputSchema":{"type":"object"},"description":"1","description":"2"}"#,
                r#"{"inputSchema":{"type":"object"},"description":"2"}"#,
            ),
            (
                r#"{"inputSchema":{"type":"object"},"description":"\ud800","x":[1e999]}"#,
                r#"{"inputSchema":{"type":"object"},"description":"\ufffd","x":[null]}"#,
            ),
        ],
    );
}

#[test]
fn an_output_schema_that_clients_cannot_compile_is_taken_out() {
    let tool = |output: &str| format!(r#"{{"inputSchema":{{"type":"object"}},"outputSchema":{output}}}"#);
    let property = |schema: &str| format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    let mut unfit = vec![
        "{}".to_owned(),
        "true".to_owned(),
        r#"{"type":"array"}"#.to_owned(),
        r#"{"type":"object","properties":[1]}"#.to_owned(),
        r#"{"type":"object","required":"a"}"#.to_owned(),
        r#"{"type":"object","$schema":1}"#.to_owned(),
        r#"{"type":"object","$id":1}"#.to_owned(),
        r#"{"type":"object","x":{"$id":"y"}}"#.to_owned(),
    ];
    unfit.extend(
        [
            r#"{"type":"bogus"}"#,
            r#"{"type":["string","bogus"]}"#,
            r#"{"pattern":"(?P<x>a)"}"#,
            r##"{"$ref":"#/definitions/none"}"##,
            r##"{"$ref":"#/properties/a"}"##,
            r#"{"$ref":"other.json"}"#,
            r#"{"enum":[]}"#,
            r#"{"items":5}"#,
            r#"{"minLength":"3"}"#,
            r#"{"anyOf":{}}"#,
            r#"{"nullable":true}"#,
            r#"{"id":"x"}"#,
            r#"{"exclusiveMinimum":true}"#,
            r#"{"additionalProperties":5}"#,
            "5",
        ]
        .map(property),
    );
    for output in unfit {
        assert_eq!(
            mended_definition(TOOL, &tool(&output)).as_deref(),
            Some(r#"{"inputSchema":{"type":"object"}}"#),
            "{output}"
        );
    }
    let booleans = property("true");
    assert_eq!(
        mended_definition(TOOL, &tool(&booleans)).as_deref(),
        Some(&*tool(&property("{}")))
    );
}

#[test]
fn prompts_resources_and_templates_are_mended_as_tools_are() {
    assert_mended(
        DefinitionKind::Prompt,
        &[
            (r#"{"name":"a","arguments":{}}"#, r#"{"name":"a"}"#),
            (
                r#"{"name":"a","description":5,"arguments":[{},{"name":"b","required":"yes"},1]}"#,
                r#"{"name":"a","arguments":[{"name":"b"}]}"#,
            ),
        ],
    );
    assert_mended(
        DefinitionKind::Resource,
        &[
            (r#"{"uri":"x:\/a"}"#, r#"{"name":"x:\/a","uri":"x:\/a"}"#),
            (
                r#"{"uri":"x:a","name":5,"mimeType":5,"size":"big"}"#,
                r#"{"uri":"x:a","name":"x:a"}"#,
            ),
            (
                r#"{"uri":"x:a","name":"n","size":-1,"annotations":{"audience":["user","all"],"priority":2,"lastModified":"now"}}"#,
                r#"{"uri":"x:a","name":"n","annotations":{}}"#,
            ),
            (
                r#"{"uri":"x:a","name":"n","size":1.0,"annotations":[]}"#,
                r#"{"uri":"x:a","name":"n"}"#,
            ),
        ],
    );
    assert_mended(
        DefinitionKind::Template,
        &[(
            r#"{"uriTemplate":"x:{a}","title":5}"#,
            r#"{"name":"x:{a}","uriTemplate":"x:{a}"}"#,
        )],
    );
}
