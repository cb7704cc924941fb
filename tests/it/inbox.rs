//! The inbox: what waits is seen and answered from another process, and from the client's own slash commands.

mod prompts;
mod questions;
pub(crate) mod screen;

use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::world::{Client, World, approvals, expire_workflows, json_of, stderr, stdout, texts};

/// A world whose server asks before its first start, and where `by` may approve.
fn asking(by: &str) -> World {
    let world = World::new();
    world.configure(&json!({
        "approvals": { "by": by },
        "permissions": { "ask": ["*"] },
        "mcpServers": { "fake": world.fake(&[]) },
    }));
    world
}

/// The code of the only ask that waits.
fn code(world: &World) -> String {
    let pending = json_of(&world.run(&["pending", "--json"]));
    let pending = pending["pending"].as_array().unwrap();
    assert_eq!(pending.len(), 1, "{pending:?}");
    pending[0]["code"].as_str().unwrap().to_owned()
}

/// Continues by the tool that continues everything, as a model would.
fn proceed(client: &mut Client, asked: &Value) -> Value {
    let id = &asked["approval_context"]["workflow_id"];
    client.call("pml_continue", &json!({ "workflow_id": id, "approved": true }))
}

/// The arguments that reached the server.
fn echoed(result: &Value) -> Value {
    let echoed: Value = serde_json::from_str(texts(result)[0]).unwrap_or_else(|_| panic!("{result}"));
    echoed["arguments"].clone()
}

fn log(world: &World) -> Vec<Value> {
    let log = json_of(&world.run(&["log", "--json"]));
    log["workflows"].as_array().unwrap().clone()
}

/// What a command said that answered no.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    assert_eq!(stdout(output), "");
    stderr(output)
}

#[test]
fn nothing_waits_at_first() {
    let world = World::new();
    let pending = world.run(&["pending"]);
    assert!(pending.status.success());
    assert_eq!(
        (stdout(&pending), stderr(&pending)),
        (String::new(), "nothing waits for an answer\n".to_owned())
    );
    assert_eq!(
        json_of(&world.run(&["pending", "--json"])),
        json!({ "pending": [] })
    );
    assert_eq!(
        json_of(&world.run(&["log", "--json"])),
        json!({ "workflows": [] })
    );
}

#[test]
fn what_is_approved_in_a_terminal_runs_whoever_may_approve() {
    for by in ["client", "human"] {
        let world = asking(by);
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({ "for": by }));
        let code = code(&world);
        let pending = json_of(&world.run(&["pending", "--json"]))["pending"][0].clone();
        let context = &asked["approval_context"];
        assert_eq!(
            [
                &pending["id"],
                &pending["tool"],
                &pending["kind"],
                &pending["dependency"]
            ],
            [
                &context["workflow_id"],
                &json!("fake:echo"),
                &json!("install"),
                &context["dependency"]
            ]
        );
        let install = context["dependency"]["install"].as_str().unwrap();
        let told = stdout(&world.run(&["pending"]));
        assert!(
            told.contains(&format!("would run  {install}")) && told.contains(&format!("pml approve {code}")),
            "{told}"
        );

        let approved = world.run(&["approve", &code]);
        assert!(approved.status.success(), "{}", stderr(&approved));
        let told = stderr(&approved);
        assert!(
            told.starts_with("approved:\n")
                && told.contains(install)
                && told.contains("`fake` may run from now on, exactly as it was shown"),
            "{told}"
        );
        assert_eq!(echoed(&proceed(&mut client, &asked)), json!({ "for": by }));
        let log = log(&world);
        assert_eq!(
            [&log[0]["state"], &log[0]["by"], &log[0]["answer"]],
            [
                &json!("used"),
                &json!("cli"),
                &json!({ "decision": "approve", "scope": "once" })
            ]
        );
        let told = stdout(&world.run(&["log"]));
        let line = told.lines().nth(1).unwrap();
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        assert_eq!(words, [code.as_str(), "fake:echo", "used", "cli", "server"]);
    }
}

#[test]
fn a_model_that_says_yes_waits_for_the_person() {
    let world = asking("human");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let waiting = proceed(&mut client, &asked);
    assert_eq!(
        waiting["structuredContent"]["status"], "waiting_for_person",
        "{waiting}"
    );
    let code = code(&world);
    assert!(texts(&waiting)[1].contains(&format!("pml approve {code}")));
    assert!(
        world
            .run(&["approve", &code.to_uppercase(), "--session"])
            .status
            .success()
    );
    assert_eq!(echoed(&proceed(&mut client, &asked)), json!({}));
    assert_eq!(log(&world)[0]["answer"]["scope"], "session");
}

#[test]
fn always_is_written_when_a_person_says_so_and_once() {
    let world = asking("human");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let approved = world.run(&["approve", &code(&world), "--always"]);
    assert!(approved.status.success());
    assert!(
        stderr(&approved).contains("`fake:echo` is in the allow list of .pml.json"),
        "{}",
        stderr(&approved)
    );
    let before = world.read(".pml.json");
    proceed(&mut client, &asked);
    assert_eq!(world.read(".pml.json"), before);
    let written: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(written["permissions"]["allow"], json!(["fake:echo"]));
}

#[test]
fn a_refusal_reaches_the_model_with_its_reason() {
    for by in ["client", "human"] {
        let world = asking(by);
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        let refused = world.run(&["refuse", &code(&world), "--reason", " not on\u{202e} Mondays "]);
        assert!(refused.status.success(), "{}", stderr(&refused));
        let told = proceed(&mut client, &asked);
        let text = texts(&told).join("\n");
        assert!(text.contains("not on") && text.contains("Mondays"), "{told}");
        assert_eq!(log(&world)[0]["state"], "refused");
        let printed = world.run(&["log", "--json"]);
        assert!(!stdout(&printed).contains('\u{202e}'));
        assert_eq!(
            json_of(&printed)["workflows"][0]["answer"]["reason"],
            "not on\u{202e} Mondays"
        );
    }
}

#[test]
fn an_approval_outlives_the_process_that_asked() {
    let world = asking("human");
    let mut first = world.legacy();
    let asked = first.call("fake__echo", &json!({ "from": "first" }));
    first.signal(rustix::process::Signal::KILL);
    first.ended(crate::support::DEADLINE);
    assert!(world.run(&["approve", &code(&world)]).status.success());
    assert_eq!(
        echoed(&proceed(&mut world.legacy(), &asked)),
        json!({ "from": "first" })
    );
}

#[test]
fn words_are_no_answer_to_what_must_be_decided() {
    let world = asking("human");
    world.legacy().call("fake__echo", &json!({}));
    let code = code(&world);
    for arguments in [vec!["answer", &code], vec!["answer", &code, "yes"]] {
        assert_eq!(
            refused(&world.run(&arguments)),
            format!(
                "error: workflow `{code}` asks for a decision\n\n\
                 hint: to decide it: pml approve {code}, or pml refuse {code}\n"
            )
        );
    }
}

#[test]
fn a_late_answer_is_told_why_it_does_not_count() {
    let world = asking("human");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let code = code(&world);
    assert!(world.run(&["approve", &code]).status.success());
    let late = refused(&world.run(&["refuse", &code]));
    assert!(
        late.starts_with(&format!(
            "error: workflow `{code}` was already approved by cli at "
        )),
        "{late}"
    );
    proceed(&mut client, &asked);
    let used = refused(&world.run(&["approve", &code]));
    assert!(used.contains("was already used at "), "{used}");
    assert!(
        used.ends_with("hint: to see what became of it: pml history\n"),
        "{used}"
    );

    let world = asking("human");
    world.legacy().call("fake__echo", &json!({}));
    let code = self::code(&world);
    expire_workflows(&world);
    let expired = refused(&world.run(&["approve", &code]));
    assert!(expired.contains("expired at "), "{expired}");
    assert_eq!(log(&world)[0]["state"], "expired");
    let unknown = refused(&world.run(&["approve", "zz\u{1b}z"]));
    assert_eq!(
        unknown,
        "error: no server is called `zz\\u{1b}z`, and nothing waits under such a code or id\n\n\
         hint: to see the servers: pml list\nto see what waits: pml pending\n"
    );
}

#[test]
fn a_unique_beginning_of_the_id_is_a_name_and_an_ambiguous_one_is_none() {
    let world = World::new();
    // Seventeen ids begin with sixteen digits: two of them share one.
    let ids: Vec<String> = (0..17)
        .map(|number| {
            let asked = questions::put(&world, vec![questions::free(&format!("number {number}?"))]);
            asked.id.to_string()
        })
        .collect();
    let shared = |id: &&String| ids.iter().filter(|other| other[..1] == id[..1]).count() > 1;
    let id = ids.iter().find(shared).unwrap();
    let ambiguous = refused(&world.run(&["refuse", &id[..1]]));
    assert!(
        ambiguous.starts_with(&format!("error: `{}` could mean ", &id[..1])),
        "{ambiguous}"
    );
    assert!(world.run(&["refuse", &id[..13]]).status.success());
    let refused: Vec<_> = log(&world)
        .into_iter()
        .filter(|kept| kept["state"] == "refused")
        .collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["id"], id.as_str());
    let two = json_of(&world.run(&["log", "--json", "--limit", "2"]));
    assert_eq!(two["workflows"].as_array().unwrap().len(), 2);
}

#[test]
fn an_agent_without_a_terminal_cannot_grant_anything() {
    let world = asking("human");
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let code = code(&world);
    let question = questions::put(&world, vec![questions::free("Sure?")]);
    let before = world.read(".pml.json");
    world.set("CLAUDECODE", "1");
    for command in [
        vec!["approve", &code],
        vec!["answer", question.code.as_str(), "--text", "yes"],
        vec!["allow", "fake"],
        vec!["ask", "fake"],
        vec!["forget", "*"],
        vec!["add", "other", "--no-install", "--", "./other"],
    ] {
        let told = refused(&world.run(&command));
        assert!(
            told.starts_with(&format!(
                "error: `pml {}",
                &command[..command.len().min(1)].join(" ")
            )) && told.contains("is for a person, and an agent runs it")
                && told.contains("hint: a person runs it in a terminal of their own: pml "),
            "{told}"
        );
    }
    // Neither from elsewhere, where another configuration holds, nor by naming one.
    let elsewhere = world
        .command(&["approve", &code])
        .current_dir(world.home())
        .output();
    refused(&elsewhere.unwrap());
    let lenient = world.home().join("lenient.json");
    std::fs::write(&lenient, r#"{ "approvals": { "by": "client" } }"#).unwrap();
    refused(&world.run(&["--config", lenient.to_str().unwrap(), "approve", &code]));
    assert_eq!(world.read(".pml.json"), before);
    assert_eq!(
        json_of(&world.run(&["pending", "--json"]))["pending"]
            .as_array()
            .unwrap()
            .len(),
        2,
        "looking is free, and both still wait"
    );
    assert!(
        world.run(&["refuse", &code]).status.success(),
        "a refusal grants nothing"
    );
}

/// What a command may do where an agent runs it and only a person counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForAnAgent {
    /// Nothing: it is for a person.
    Refused,
    /// It shows, narrows or takes away, or asks as a client does.
    Free,
}

/// Every command with arguments that make it do what it does; `…` stands for the code of an ask.
const COMMANDS: &[(&[&str], ForAnAgent)] = {
    use ForAnAgent::{Free, Refused};
    &[
        (&["import", "--yes"], Refused),
        (&["add", "--yes", "other", "--", "./other"], Refused),
        (&["install", "--yes"], Refused),
        (&["lock"], Refused),
        (&["upgrade", "--yes", "fake"], Refused),
        (&["allow", "other"], Refused),
        (&["ask", "other"], Refused),
        (&["forget", "*"], Refused),
        (&["approve", "…"], Refused),
        (&["approve", "--always", "…"], Refused),
        (&["answer", "…", "--text", "yes"], Refused),
        (&["history", "prune", "--older", "0d"], Refused),
        (&["serve"], Refused),
        (&["run", "--web", "do it"], Refused),
        (&["channels", "pair", "ABCDEF"], Refused),
        (&["init"], Free),
        (&["doctor"], Free),
        (&["list"], Free),
        (&["outdated"], Free),
        (&["diff", "fake"], Free),
        (&["audit", "--offline"], Free),
        (&["sbom"], Free),
        (&["verify"], Free),
        (&["check", "fake:echo"], Free),
        (&["rules"], Free),
        (&["inbox"], Free),
        (&["pending"], Free),
        (&["runs"], Free),
        (&["schema"], Free),
        (&["completions", "bash"], Free),
        (&["help"], Free),
        (&["stdio"], Free),
        (&["call", "fake:echo"], Free),
        (&["demo", "--help"], Free),
        // Where there is something to accept, it is refused: tests/it/project_trust.rs.
        (&["trust", "--yes"], Free),
        (&["untrust"], Free),
        (&["gc"], Free),
        (&["deny", "other"], Free),
        (&["uninstall", "fake"], Free),
        (&["refuse", "…"], Free),
        (&["remove", "fake"], Free),
    ]
};

#[test]
fn no_command_that_an_agent_runs_widens_anything_where_only_a_person_counts() {
    let help = stdout(&asking("human").run(&["help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    for line in listed {
        // A description that goes on in the next line is indented further.
        if let Some(command) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            let command = command.split(' ').next().unwrap();
            let is_covered = COMMANDS.iter().any(|(arguments, _)| arguments[0] == command);
            assert!(is_covered, "`pml {command}` is not in the table");
        }
    }
    for (arguments, expected) in COMMANDS {
        let world = asking("human");
        world.legacy().call("fake__echo", &json!({}));
        let code = code(&world);
        let arguments: Vec<&str> = { arguments.iter() }
            .map(|word| if *word == "…" { code.as_str() } else { word })
            .collect();
        let allowed = |world: &World| {
            let config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
            config["permissions"]["allow"].clone()
        };
        let before = (world.read(".pml.json"), allowed(&world));
        world.set("CLAUDECODE", "1");
        let output = world.command(&arguments).stdin(Stdio::null()).output().unwrap();
        let said = format!("{arguments:?}: {}{}", stdout(&output), stderr(&output));
        if *expected == ForAnAgent::Refused {
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("is for a person"), "{said}");
            assert_eq!(world.read(".pml.json"), before.0, "{said}");
        }
        assert_eq!(allowed(&world), before.1, "{said}");
        assert_eq!(approvals(&world), Vec::<Value>::new(), "{said}");
        assert_eq!(world.recorded("trust").len(), 0, "{said}");
        assert_eq!(world.recorded("start").len(), 0, "{said}");
        assert_eq!(world.recorded("fetch").len(), 0, "{said}");
    }
}

#[test]
fn where_the_client_speaks_for_the_person_its_agent_may_too_unless_the_file_is_broken() {
    let world = asking("client");
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let code = code(&world);
    world.set("CLAUDECODE", "1");
    let good = world.read(".pml.json");
    world.write(".pml.json", "{ not json");
    refused(&world.run(&["approve", &code]));
    world.write(".pml.json", &good);
    assert!(world.run(&["approve", &code]).status.success());
    assert!(world.run(&["allow", "fake:echo"]).status.success());
}
