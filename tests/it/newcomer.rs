//! What a newcomer types: rules said wrongly, servers approved and tools called from the terminal, what lists cost.

use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, json_of, stderr, stdout, texts};

/// A world with a server whose tools are known: it was approved in the terminal.
fn known(permissions: &Value) -> World {
    let world = World::with_fake(permissions, &[]);
    let approved = world.run(&["approve", "--yes", "fake"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    world
}

fn said(world: &World, arguments: &[&str]) -> String {
    let output = world.run(arguments);
    format!(
        "exit {}\n{}{}",
        output.status.code().unwrap(),
        stdout(&output),
        stderr(&output)
    )
}

#[test]
fn a_rule_that_covers_no_known_tool_is_refused_with_what_was_meant() {
    let world = known(&json!({ "ask": ["*"] }));
    let count = json_of(&world.run(&["list", "--json"]))["servers"][0]["tools"]
        .as_array()
        .unwrap()
        .len();
    for (list, pattern, meant) in [
        ("allow", "fake:ehco", "; did you mean `fake:echo`?"),
        ("deny", "fake:!echo", "; did you mean `fake:echo`?"),
        ("ask", "fake:qqqq*", ""),
    ] {
        let refused = world.run(&[list, pattern]);
        assert_eq!(refused.status.code(), Some(1));
        let said = stderr(&refused);
        assert!(
            said.starts_with(&format!(
                "error: `{pattern}` covers none of the {count} known tools of `fake`{meant}\n"
            )),
            "{said}"
        );
        assert!(
            said.contains(&format!("to write it anyway: pml {list} --force ")),
            "{said}"
        );
    }
    let forced = said(&world, &["deny", "--force", "fake:!echo"]);
    assert!(forced.starts_with("exit 0\n"), "{forced}");
    for pattern in [
        "fake:e*",
        "fake:prompts/x",
        "fake:resources/*",
        "fake:connect",
        "other:x",
        "fake",
    ] {
        assert!(world.run(&["deny", pattern]).status.success(), "{pattern}");
    }
}

#[test]
fn names_that_clients_show_are_written_as_rules_spell_them() {
    let world = known(&json!({ "ask": ["*"] }));
    assert_snapshot!(said(&world, &["allow", "fake__echo", "mcp__pml__fake__give"]), @r"
    exit 0
    changed .pml.json: allow `fake:echo`, `fake:give`
    note: `fake__echo` is written `fake:echo` in rules
    note: `mcp__pml__fake__give` is written `fake:give` in rules
    ");
    assert_snapshot!(said(&world, &["deny", "client:WebFetch", "mcp__github__delete_issue"]), @r"
    exit 0
    changed .pml.json: deny `client:WebFetch`, `client:mcp__github__delete_issue`
    note: `mcp__github__delete_issue` is written `client:mcp__github__delete_issue` in rules
    ");
}

#[test]
fn a_tool_of_the_client_is_not_installed() {
    let world = known(&json!({ "allow": ["client:Bash(git status)"], "ask": ["*"] }));
    assert_snapshot!(said(&world, &["check", "client:Bash"]), @r"
    exit 1
    ask: `client:Bash` asks you where the client leaves it to pml (`pml run`, `approval_prompt`)
      rule `*` in the ask list (.pml.json:7)
    ");
    assert_snapshot!(said(&world, &["check", "client:Bash(git status --short)"]), @r"
    exit 0
    allow: `client:Bash(git status --short)` runs without a question
      rule `client:Bash(git status)` in the allow list (.pml.json:4)
    ");
    assert_snapshot!(said(&world, &["check", "client:Bash(git status; rm -rf x)"]), @r"
    exit 1
    ask: `client:Bash(git status; rm -rf x)` asks you where the client leaves it to pml (`pml run`, `approval_prompt`)
      rule `*` in the ask list (.pml.json:7)
    ");
}

#[test]
fn everything_is_not_allowed_without_a_word() {
    let world = World::new();
    assert_snapshot!(said(&world, &["allow", "*"]), @r"
    exit 0
    note: this lets every tool of every server run unasked, also of servers that are declared later; what only reads: pml allow '*@readonly'
    created .pml.json: allow `*`
    ");
    let world = World::new();
    assert_snapshot!(said(&world, &["allow", "*:*"]), @r"
    exit 0
    note: this lets every tool of every server run unasked, also of servers that are declared later; what only reads: pml allow '*@readonly'
    created .pml.json: allow `*`
    note: `*:*` is written `*` in rules
    ");
    let world = World::new();
    assert_snapshot!(said(&world, &["allow", "*@readonly"]), @r"
    exit 0
    created .pml.json: allow `*@readonly`
    ");
}

#[test]
fn a_declared_server_is_approved_by_its_name() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
    let refused = world.run(&["approve", "fake"]);
    assert_eq!(refused.status.code(), Some(1));
    let told = stderr(&refused);
    assert!(told.starts_with("runs       "), "{told}");
    assert!(
        told.contains("error: `fake` was not approved: there is no terminal to ask in"),
        "{told}"
    );
    assert!(
        told.contains("hint: to agree beforehand: pml approve --yes fake"),
        "{told}"
    );
    let mut client = world.legacy();
    assert!(asks(&client.call("fake__echo", &json!({}))));

    let approved = world.run(&["approve", "--yes", "fake"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    assert!(stdout(&approved).contains("fake:echo\n"), "{}", stdout(&approved));
    // The very first list of a new client is complete, and nothing asks.
    let mut client = world.legacy();
    assert!(client.tools().contains(&"fake__echo".to_owned()));
    assert!(!asks(&client.call("fake__echo", &json!({}))));
    let listed = json_of(&world.run(&["list", "--json"]));
    assert_eq!(
        listed["servers"][0]["calls"]["outlook"],
        "runs: approved; to be asked each time: pml ask 'fake:*'"
    );
    let checked = stdout(&world.run(&["check", "fake:echo"]));
    assert!(
        checked.ends_with("  to be asked each time: pml ask fake:echo\n"),
        "{checked}"
    );

    assert!(world.run(&["deny", "fake"]).status.success());
    let denied = world.run(&["approve", "--yes", "fake"]);
    assert_eq!(denied.status.code(), Some(1));
    assert!(
        stderr(&denied).starts_with("error: `fake` is denied by rule `fake`"),
        "{}",
        stderr(&denied)
    );
}

#[test]
fn what_alone_waits_needs_no_code_and_two_are_listed() {
    let world = World::with_fake(&json!({ "ask": ["*", "fake:give"] }), &[]);
    let none = said(&world, &["approve"]);
    assert_snapshot!(none, @r"
    exit 1
    error: nothing waits that you could approve

    hint: to see all: pml pending
    ");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "a": 1 }));
    let code = asked["structuredContent"]["code"].as_str().unwrap().to_owned();
    let told = texts(&asked).join("\n");
    assert!(
        told.contains(&format!("`pml approve {code}` or `pml refuse {code}`")),
        "{told}"
    );
    assert!(world.run(&["approve"]).status.success());
    assert!(!asks(&client.call("fake__echo", &json!({ "a": 1 }))));

    let codes: Vec<String> = (0..2)
        .map(|number| {
            let asked = client.call("fake__give", &json!({ "result": number.to_string() }));
            asked["structuredContent"]["code"].as_str().unwrap().to_owned()
        })
        .collect();
    let several = said(&world, &["approve"]);
    assert!(several.starts_with("exit 1\nerror: 2 wait:\n"), "{several}");
    for code in &codes {
        assert!(several.contains(&format!("  {code}  fake:give  ")), "{several}");
    }
    assert!(
        several.ends_with("hint: to choose one: pml approve CODE\n"),
        "{several}"
    );
    assert!(world.run(&["refuse", &codes[0].to_uppercase()]).status.success());
    assert!(world.run(&["refuse"]).status.success());
}

#[test]
fn a_question_is_answered_by_the_number_of_an_option() {
    let world = World::new();
    let mut client = world.legacy();
    let question = json!({ "question": "Which?", "options": [{ "label": "Red" }, { "label": "Blue" }] });
    let asked = client.call("ask_user", &question);
    let code = asked["structuredContent"]["code"]
        .as_str()
        .unwrap_or_else(|| panic!("{asked}"))
        .to_uppercase();
    let answered = world.run(&["answer", &code, "2"]);
    assert!(answered.status.success(), "{}", stderr(&answered));
    assert!(stderr(&answered).contains("Blue"), "{}", stderr(&answered));
}

#[test]
fn what_is_no_option_is_counted_and_labels_are_read_in_any_case() {
    let world = World::new();
    let mut client = world.legacy();
    let mut asked = 0;
    // Each another one: the answer to the same question would be taken at once.
    let mut ask = |client: &mut Client| {
        asked += 1;
        let options = json!([{ "label": "Red" }, { "label": "Blue" }]);
        let question = json!({ "question": format!("Which of {asked}?"), "options": options });
        let asked = client.call("ask_user", &question);
        asked["structuredContent"]["code"].as_str().unwrap().to_owned()
    };
    let code = ask(&mut client);
    for number in ["3", "0"] {
        let refused = said(&world, &["answer", &code, number]);
        assert_eq!(
            refused,
            format!(
                "exit 2\nerror: `{code}` has no option {number}: there are 2 options\n\n\
                 hint: to see them: pml pending {code}\nto answer in your own words: pml answer {code} --text '…'\n"
            )
        );
    }
    let answered = said(&world, &["answer", &code, "rED"]);
    assert!(
        answered.contains(&format!("answered `{code}`: ")) && answered.contains("Red"),
        "{answered}"
    );

    // Where one alone waits its code need not be typed.
    for typed in ["2", "blue"] {
        let code = ask(&mut client);
        let none = said(&world, &["answer", "Green"]);
        assert!(
            none.contains("no workflow has the code or the id `Green`"),
            "{none}"
        );
        let answered = said(&world, &["answer", typed]);
        assert!(
            answered.contains(&format!("answered `{code}`: ")) && answered.contains("Blue"),
            "{answered}"
        );
    }
    let codes = [ask(&mut client), ask(&mut client)];
    let several = said(&world, &["answer", "Blue"]);
    assert!(
        several.contains("no workflow has the code or the id `Blue`"),
        "{several}: {codes:?}"
    );
}

#[test]
fn a_number_is_an_option_of_the_only_question_before_it_is_the_beginning_of_an_id() {
    let world = World::new();
    let mut client = world.legacy();
    let ask = |client: &mut Client, asked: usize| {
        let options = (0..=16).map(|number| json!({ "label": format!("no. {number}") }));
        let options = options.collect::<Vec<_>>();
        let question = json!({ "question": format!("Which of {asked}?"), "options": options });
        client.call("ask_user", &question)["structuredContent"].clone()
    };
    // Enough answered questions that the ids of some begin with a digit that is an option.
    let mut first_digits = std::collections::BTreeSet::new();
    for asked in 0..40 {
        let question = ask(&mut client, asked);
        let id = question["workflow_id"].as_str().unwrap();
        first_digits.extend(id[..1].parse::<usize>().ok().filter(|digit| *digit > 0));
        let code = question["code"].as_str().unwrap();
        assert!(world.run(&["answer", code, "1"]).status.success());
        if first_digits.len() > 2 {
            break;
        }
    }
    for (asked, digit) in first_digits.iter().enumerate() {
        let code = ask(&mut client, 100 + asked)["code"].clone();
        let answered = said(&world, &["answer", &digit.to_string()]);
        let expected = format!(
            "answered `{}`: User selected: no. {}",
            code.as_str().unwrap(),
            digit - 1
        );
        assert!(answered.contains(&expected), "{answered}");
    }
}

#[test]
fn a_tool_that_a_server_does_not_have_is_named_as_such() {
    let world = known(&json!({ "ask": ["*"] }));
    assert_snapshot!(
        said(&world, &["check", "fake:ehco"]).replace(&approved_on(&world), "DATE"),
        @r"
    exit 0
    allow: `fake:ehco` runs without a question
      its server was approved on DATE
      without that it would ask: rule `*` in the ask list (.pml.json:4)
      to be asked each time: pml ask fake:ehco
    note: `fake` has no such tool; did you mean `fake:echo`?
    "
    );
    for known in ["fake:echo", "fake:prompts/x", "fake:connect"] {
        let told = said(&world, &["check", known]);
        assert!(!told.contains("no such tool"), "{told}");
    }
    for (typed, near) in [
        ("client:Bsah", "client:Bash"),
        ("client:webfetch", "client:WebFetch"),
    ] {
        let denied = said(&world, &["deny", typed]);
        assert!(
            denied.contains(&format!(
                "note: `{typed}` names no tool of a client that pml knows; did you mean `{near}`?\n"
            )),
            "{denied}"
        );
        let checked = said(&world, &["check", typed]);
        assert!(checked.contains(&format!("did you mean `{near}`?")), "{checked}");
    }
}

/// When the server was approved, as it is told.
fn approved_on(world: &World) -> String {
    let told = stdout(&world.run(&["check", "fake:echo"]));
    let (_, rest) = told.split_once("approved on ").unwrap();
    rest.lines().next().unwrap().to_owned()
}

#[test]
fn a_name_that_is_no_server_is_told_as_that() {
    let world = World::new();
    world.configure(&json!({ "mcpServers": { "git": world.fake(&[]) } }));
    assert_snapshot!(said(&world, &["approve", "gti"]), @r"
    exit 1
    error: no server is called `gti`, and nothing waits under such a code or id; did you mean `git`?

    hint: to see the servers: pml list
    to see what waits: pml pending
    ");
}

#[test]
fn a_registration_without_a_terminal_names_the_command_that_registers_and_no_more() {
    let world = World::new();
    let file = world.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let other = json!({ "mcpServers": { "one": world.fake(&[]) } }).to_string();
    std::fs::write(&file, &other).unwrap();
    for (arguments, beforehand) in [
        (
            &["init", "--client", "cursor"][..],
            "pml init --yes --client cursor\n",
        ),
        (&["init", "--all"], "pml init --yes --all\n"),
        (
            &["init"],
            "pml init --yes, which brings the servers of your clients behind pml too\n",
        ),
    ] {
        let said = said(&world, arguments);
        assert!(
            said.contains(&format!("to agree beforehand: {beforehand}")),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), other);
    }
    let done = said(&world, &["init", "--yes", "--client", "cursor"]);
    assert!(done.contains("registered pml in ~/.cursor/mcp.json"), "{done}");
    assert!(
        std::fs::read_to_string(&file).unwrap().contains("\"one\""),
        "nothing was imported"
    );
}

#[test]
fn a_read_only_file_of_a_client_is_left_as_it_is() {
    let world = World::new();
    let file = world.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{}\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    let refused = said(&world, &["init", "--yes", "--client", "cursor"]);
    let path = file.display();
    assert!(
        refused.contains(&format!("error: `{path}` is read-only and was left as it is\n")),
        "{refused}"
    );
    assert!(
        refused.contains(&format!("if pml may write it: chmod u+w {path}")),
        "{refused}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}\n");
}

#[test]
fn a_file_behind_a_link_is_named_by_the_path_that_leads_to_it() {
    let world = World::new();
    for directory in [".cursor", "dot"] {
        std::fs::create_dir(world.home().join(directory)).unwrap();
    }
    let entries = json!({ "mcpServers": { "one": world.fake(&[]) } });
    std::fs::write(world.home().join("dot/cursor.json"), entries.to_string()).unwrap();
    std::os::unix::fs::symlink("../dot/cursor.json", world.home().join(".cursor/mcp.json")).unwrap();
    let shown = said(&world, &["import", "--dry-run"]);
    assert!(shown.contains("Cursor (user), ~/dot/cursor.json\n"), "{shown}");
}

#[test]
fn a_tool_is_called_through_the_gate() {
    let world = World::with_fake(&json!({ "ask": ["*"], "deny": ["fake:give"] }), &[]);
    let waits = world.run(&["call", "fake", "echo", r#"{"a": 1}"#]);
    assert_eq!(waits.status.code(), Some(1));
    let told = stderr(&waits);
    assert!(
        told.contains("`fake:echo` waits for you, and there is no terminal to ask in"),
        "{told}"
    );
    assert!(told.contains("hint: to let it run: pml approve "), "{told}");
    assert!(world.run(&["approve"]).status.success());

    let called = world.run(&["call", "fake", "echo", r#"{"a": 1}"#]);
    assert_eq!(called.status.code(), Some(0), "{}", stderr(&called));
    assert!(
        stdout(&called).contains(r#""arguments":{"a":1}"#),
        "{}",
        stdout(&called)
    );
    let whole = json_of(&world.run(&["call", "--json", "fake", "echo"]));
    assert_eq!(whole["content"][0]["type"], "text", "{whole}");

    let denied = world.run(&["call", "fake", "give", r#"{"result": "{}"}"#]);
    assert_eq!(denied.status.code(), Some(1));
    assert!(
        stdout(&denied).starts_with("`fake:give` is denied by rule `fake:give`"),
        "{}",
        stdout(&denied)
    );
    let unread = world.run(&["call", "fake", "echo", "[]"]);
    assert_eq!(unread.status.code(), Some(2));
    let undeclared = world.run(&["call", "fakee", "echo"]);
    assert_eq!(undeclared.status.code(), Some(2));
    assert!(
        stderr(&undeclared).contains("did you mean `fake`?"),
        "{}",
        stderr(&undeclared)
    );
    world.assert_no_survivor("a called server ends with its command");
}

#[test]
fn the_steps_of_a_call_are_told_while_it_goes_on() {
    let world = known(&json!({ "ask": ["*"] }));
    let called = world.run(&["call", "fake", "progress", r#"{"steps": 3}"#]);
    assert_eq!(called.status.code(), Some(0), "{}", stderr(&called));
    assert!(stderr(&called).lines().count() >= 1, "{}", stderr(&called));
}

#[test]
fn what_lists_cost_is_told_by_server_and_tool() {
    let world = World::new();
    let tool = |name: &str, length: usize| json!({ "name": name, "description": "x".repeat(length), "inputSchema": { "type": "object" } });
    let tools: Vec<Value> = (0..12)
        .map(|number| tool(&format!("t{number:02}"), 100 * (number + 1)))
        .collect();
    world.write("tools.json", &json!({ "tools": tools }).to_string());
    let file = world.path("tools.json");
    let mut server = world.fake(&["--answer", "tools/list", file.to_str().unwrap()]);
    server["tools"] = json!(["!t11"]);
    let unknown = world.fake(&[]);
    world.configure(&json!({
        "permissions": { "deny": ["big:t10"], "ask": ["*"] },
        "mcpServers": { "big": server, "unknown": unknown },
    }));
    let approved = world.run(&["approve", "--yes", "big"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    assert_snapshot!(said(&world, &["list", "--cost"]), @r"
    exit 0
    NAME     TOOLS     BYTES   ~TOKENS
    big         10      6180      1545
    unknown      ?         0         0
    all         10      6180      1545

       BYTES   ~TOKENS  HEAVIEST TOOLS
        1068       267  big:t09
         968       242  big:t08
         868       217  big:t07
         768       192  big:t06
         668       167  big:t05
         568       142  big:t04
         468       117  big:t03
         368        92  big:t02
         268        67  big:t01
         168        42  big:t00
    note: about 4 bytes are taken for a token; what a rule denies or `tools` leaves out costs nothing
    note: `unknown`: its tools are not known before it is started: pml approve unknown
    ");
    let json = json_of(&world.run(&["list", "--cost", "--json"]));
    assert_eq!(json["heaviest"].as_array().unwrap().len(), 10);
    assert_eq!(json["heaviest"][0]["tool"], "big:t09");
    assert_eq!(
        json["servers"][1],
        json!({ "name": "unknown", "tools": null, "bytes": 0, "tokens": 0 })
    );
    // The bytes are those of the list that a client gets, but for what pml adds to tools that may ask.
    let listed = world.legacy().request("tools/list", &json!({}));
    let listed = listed["result"]["tools"].as_array().unwrap();
    let bytes: usize = listed
        .iter()
        .filter(|tool| tool["name"].as_str().unwrap().starts_with("big__"))
        .map(|tool| tool.to_string().len())
        .sum();
    assert_eq!(json["bytes"], bytes);
}

#[test]
fn a_command_that_is_a_whole_line_says_how_it_is_written() {
    let world = World::new();
    world.configure(&json!({ "mcpServers": { "foo": { "command": "npx -y foo" } } }));
    let said = said(&world, &["approve", "foo"]);
    assert_eq!(
        said,
        "exit 2\nerror: `foo`: the command `npx -y foo` is a whole line; a command is a program alone\n\n\
         hint: move the other words into \"args\": \"command\":\"npx\",\"args\":[\"-y\",\"foo\"]\n"
    );
}

#[test]
fn a_missing_command_is_told_once() {
    let world = World::new();
    let missing = said(&world, &["add", "--yes", "foo", "--", "no-such-program-here"]);
    let (_, error) = missing.split_once("error: ").unwrap();
    assert_snapshot!(error, @r"
    `foo` was not added
      caused by: it could not be started: `no-such-program-here`: there is no such program on the PATH

    hint: to declare it all the same, without a start: pml add --no-install foo …
    ");
    world.write("script", "#!/no/such/interpreter\n");
    let script = world.path("script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = said(&world, &["add", "--yes", "foo", "--", script.to_str().unwrap()]);
    assert!(
        said.contains("its interpreter is missing") && !said.contains("no such program"),
        "{said}"
    );
}

#[test]
fn a_server_elsewhere_is_reached_and_not_started() {
    let world = World::new();
    let said = said(
        &world,
        &["add", "--yes", "foo", "--url", "http://127.0.0.1:9/mcp"],
    );
    assert!(
        said.contains("`foo` was not added: it could not be reached"),
        "{said}"
    );
}

#[test]
fn a_secret_does_not_go_into_the_file_of_a_project() {
    let world = World::new();
    let server = crate::support::fake_server();
    let server = server.to_str().unwrap();
    let refused = said(
        &world,
        &["add", "--yes", "--env", "API_TOKEN=abc123", "foo", "--", server],
    );
    assert_eq!(
        refused,
        "exit 1\nerror: the value of `API_TOKEN` would stand in the project's file, which others read\n\n\
         hint: to take it from your environment whenever the server starts: pml add foo --env 'API_TOKEN=${API_TOKEN}' …\n\
         to write it into your own file instead: pml add --user foo …\n"
    );
    for allowed in [
        &["--env", "LEVEL=info"][..],
        &["--user", "--env", "API_TOKEN=abc123"],
    ] {
        let arguments = [
            &["add", "--yes", "--replace"][..],
            allowed,
            &["foo", "--", server],
        ]
        .concat();
        let added = world.run(&arguments);
        assert!(added.status.success(), "{}", stderr(&added));
    }
}

#[test]
fn a_secret_is_refused_wherever_it_is_typed_and_none_of_it_is_shown() {
    let world = World::new();
    for (arguments, what, instead) in [
        (
            &["--env", "KEY=hunter2", "foo", "--", "./s"][..],
            "the value of `KEY`",
            "pml add foo --env 'KEY=${KEY}' …",
        ),
        (
            &["--env", "GITHUB_PAT=ghp_hunter2hunter2", "foo", "--", "./s"],
            "the value of `GITHUB_PAT`",
            "pml add foo --env 'GITHUB_PAT=${GITHUB_PAT}' …",
        ),
        (
            &[
                "--env",
                "DATABASE_URL=postgres://me:hunter2@h/db",
                "foo",
                "--",
                "./s",
            ],
            "the value of `DATABASE_URL`",
            "pml add foo --env 'DATABASE_URL=${DATABASE_URL}' …",
        ),
        (
            &["foo", "--", "./s", "--api-key", "sk-hunter2hunter2"],
            "the value of `--api-key`",
            "pml add foo -- … --api-key '${API_KEY}'\n",
        ),
        (
            &[
                "foo",
                "--url",
                "https://h.example/mcp",
                "--header",
                "Authorization: Bearer sk-hunter2",
            ],
            "the value of the header `Authorization`",
            "pml add foo --header 'Authorization: Bearer ${FOO_TOKEN}' …",
        ),
        (
            &["foo", "--url", "https://me:hunter2@h.example/mcp?api_key=hunter2"],
            "the password in the address",
            "pml add foo --url … --header 'Authorization: Basic ${FOO_TOKEN}' …",
        ),
        (
            &["foo", "--package", "npm:bar", "--", "--token=hunter2"],
            "the value of `--token`",
            "pml add foo -- … '--token=${TOKEN}'\n",
        ),
    ] {
        let arguments = [&["add", "--yes", "--no-install"][..], arguments].concat();
        let said = said(&world, &arguments);
        let begin = format!("exit 1\nerror: {what} would stand in the project's file, which others read\n");
        assert!(said.starts_with(&begin), "{said}");
        assert!(said.contains(instead), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        assert!(!world.path(".pml.json").exists());
    }
}

/// Lines that fetch code which is not pinned, each with what is told of it.
const UNPINNED: [(&[&str], &str); 10] = [
    (
        &["docker", "run", "-i", "image"],
        "it fetches an image that is not pinned",
    ),
    (
        &["docker", "--context", "x", "run", "img"],
        "it fetches an image that is not pinned",
    ),
    (
        &["podman", "run", "-e", "X=@sha256:1", "img"],
        "it fetches an image that is not pinned",
    ),
    (
        &["uv", "run", "--with", "x", "server.py"],
        "`uv run --with` fetches packages that are not pinned",
    ),
    (
        &["bunx", "-y", "foo"],
        "`bunx` fetches a package that pml does not pin",
    ),
    (
        &["pnpm", "dlx", "foo"],
        "`pnpm dlx` fetches a package that pml does not pin",
    ),
    (
        &["yarn", "dlx", "foo"],
        "`yarn dlx` fetches a package that pml does not pin",
    ),
    (
        &["bash", "-c", "npx -y foo"],
        "`npx` in it fetches a package that pml does not pin",
    ),
    (
        &["cmd", "/c", "npx", "-y", "foo"],
        "`npx` in it fetches a package that pml does not pin",
    ),
    (
        &["sh", "-c", "cd x && uv tool run foo"],
        "`uv tool run` in it fetches a package that pml does not pin",
    ),
];

#[test]
fn code_that_is_not_pinned_is_told_before_it_runs() {
    let world = World::new();
    for (line, told) in UNPINNED {
        let arguments = [&["add", "foo", "--"][..], line].concat();
        let said = said(&world, &arguments);
        assert!(said.contains(&format!("note       {told}")), "{line:?}: {said}");
    }
    let pinned = said(&world, &["add", "foo", "--", "docker", "run", "image@sha256:abc"]);
    assert!(!pinned.contains("not pinned"), "{pinned}");
}

#[test]
fn code_that_is_not_pinned_is_told_before_it_is_imported() {
    let world = World::new();
    let entries = UNPINNED.iter().enumerate().map(|(number, (line, _))| {
        let entry = json!({ "command": line[0], "args": line[1..] });
        (format!("s{number}"), entry)
    });
    let entries: serde_json::Map<String, Value> = entries.collect();
    let file = world.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, json!({ "mcpServers": entries }).to_string()).unwrap();
    let shown = world.run(&["import", "--dry-run", "--json"]);
    let (said, found) = (stderr(&shown), json_of(&shown));
    for (number, (line, told)) in UNPINNED.iter().enumerate() {
        let name = format!("  s{number}\n");
        let (_, part) = said.split_once(&name).unwrap();
        let part = part.split("\n  s").next().unwrap();
        assert!(part.contains(&format!("note       {told}")), "{line:?}: {part}");
        let note = found.to_string();
        assert!(note.contains(told), "{line:?}: {note}");
    }
}

#[test]
fn a_registry_that_npm_took_from_a_project_is_ignored_and_said_so() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
    world.set("npm_config_registry", "http://127.0.0.1:9");
    let noted = stderr(&world.run(&["install", "fake"]));
    assert!(
        noted.starts_with("note: `npm_config_registry` is ignored: npm sets it from the file of a project; to choose a registry: NPM_CONFIG_REGISTRY, or `registry=` in your own ~/.npmrc\n"),
        "{noted}"
    );
    world.set("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9");
    assert!(!stderr(&world.run(&["install", "fake"])).contains("npm_config_registry"));
}

#[test]
fn help_is_a_command_and_what_pml_starts_of_itself_is_not_suggested() {
    let world = World::new();
    let help = world.run(&["help", "approve"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(stdout(&help).contains("pml approve time"), "{}", stdout(&help));
    let unknown = stderr(&world.run(&["sample-serve"]));
    assert!(
        unknown.contains("unrecognized subcommand 'sample-serve'"),
        "{unknown}"
    );
    assert!(!unknown.contains("sample-server"), "{unknown}");
}

#[test]
fn a_place_without_a_file_is_told_as_that() {
    let world = World::new();
    let status = world.legacy().call("pml_status", &json!({}));
    let config = &status["structuredContent"]["config"];
    assert_eq!(config["file"], Value::Null);
    assert!(
        config["note"]
            .as_str()
            .unwrap()
            .starts_with("there is no .pml.json"),
        "{config}"
    );
    world.configure(&json!({}));
    let status = world.legacy().call("pml_status", &json!({}));
    assert!(
        status["structuredContent"]["config"]["file"]
            .as_str()
            .unwrap()
            .ends_with("project/.pml.json")
    );
}
