//! Every write fails once: with a full disk, with a broken one, and by SIGKILL at each call in turn.
//!
//! What a command reports is what is true: it ends well exactly if the change is there, unless its error says that the
//! change stands. Every file is the old one or the new one, nothing is left lying for ever, and the next run works.

mod audit;
mod conversation;
mod installation;
mod upgrade;

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use pml::config::By;
use pml::protocol::approval::{ChangedPart, ShownChange, ShownContents, ShownDependency, ShownProjectFile};
use pml::protocol::question::{Question, Selection};
use pml::protocol::{Digest, ToolName};
use pml::proxy::now;
use pml::workflow::{
    Arguments, Ask, AskAttendance, Asker, AskingClient, NewWorkflow, Origin, Place, State, Store,
    SuspendedCall, Workflow,
};
use rustix::io::Errno;
use serde_json::Value;

use crate::support::faults::inject_nth;
use crate::support::packages::files_below;
use crate::support::world::{World, approvals, json_of, stderr};
use crate::support::{fake_server, have};

/// How a call can fail; nothing is SIGKILL.
const FAULTS: [Option<Errno>; 3] = [Some(Errno::NOSPC), Some(Errno::IO), None];

/// Commands at a time: each is mostly the start of a process and waits for the disk.
const THREADS: usize = 4;

/// More than any command here needs; a sweep that gets here does not end.
const CALLS: u32 = 1_000;

/// What an error says when the change stands all the same.
const STANDS: [&str; 4] = ["stands", "is written", "still counts", "did not confirm"];

const RULES: &str = "// mine\n{\n  \"permissions\": { \"allow\": [\"old:rule\"] },\n  \"mcpServers\": { \"gone\": { \"command\": \"gone\" } }\n}\n";

/// A command that changes one thing.
struct Case {
    name: &'static str,
    /// Prepares a world and returns the arguments of the command.
    prepare: fn(&World) -> Vec<String>,
    /// Tells whether the change is there.
    is_done: fn(&World) -> bool,
    /// What the command ends with where the change is there already.
    again: i32,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn rules_say(world: &World, text: &str) -> bool {
    world.read(".pml.json").contains(text)
}

fn store(world: &World) -> Box<dyn Store> {
    Place::File(world.home().join(".local/state/pml/workflows.db"))
        .open()
        .unwrap()
}

/// Puts an ask into the store, as a pml that has died since.
fn put(world: &World, ask: Ask) -> Workflow {
    let new = NewWorkflow {
        ask,
        call: SuspendedCall {
            tool: "fake:echo".parse::<ToolName>().unwrap(),
            arguments: Arguments::Json("{}".to_owned()),
            launch: Digest::of(["launch"]),
        },
        time_to_live: Duration::from_mins(50),
        project: world.project(),
        origin: Origin {
            config: world.path(".pml.json"),
            by: By::Client,
            client: AskingClient::default(),
            asker: Asker::random(),
        },
        attended: AskAttendance::ByNone,
        twin: 0,
        channel: None,
    };
    store(world).create(new, now()).unwrap().suspension.workflow()
}

fn shown() -> ShownDependency {
    ShownDependency {
        name: "fake".to_owned(),
        version: None,
        install: "fake".to_owned(),
        integrity: None,
        scripts: false,
        surroundings: Box::default(),
        installation: Box::default(),
        remote: None,
    }
}

fn put_install(world: &World) -> String {
    let dependency = shown();
    put(world, Ask::Install { dependency }).code.to_string()
}

/// Puts an ask about a server that changed.
fn put_change(world: &World) -> String {
    let mut dependency = shown();
    let title = "! tool echo is defined differently".to_owned();
    dependency.installation.change = Some(ShownChange {
        part: ChangedPart::Tools,
        content: Digest::of(["content"]),
        lines: vec![title.clone()],
        summary: vec![title],
        missing: 0,
        contents: ShownContents::Whole,
    });
    put(world, Ask::Integrity { dependency }).code.to_string()
}

/// Puts an ask about a project's file.
fn put_trust(world: &World) -> String {
    let file = ShownProjectFile {
        path: world.path(".pml.json").to_string_lossy().into_owned(),
        origin: "came with the repository".to_owned(),
        content: Digest::of(["content"]),
        wants: vec!["runs without a question: `old:rule`".to_owned()],
        changes: Vec::new(),
    };
    put(world, Ask::Trust { file }).code.to_string()
}

fn put_question(world: &World) -> String {
    let question = Question {
        question: "Why?".to_owned(),
        header: None,
        options: Vec::new(),
        selection: Selection::One,
    };
    let questions = vec![question];
    put(world, Ask::Questions { questions }).code.to_string()
}

fn is_answered(world: &World) -> bool {
    let found = store(world).recent(1).unwrap();
    matches!(found[0].state, State::Answered { .. })
}

fn is_approved(world: &World) -> bool {
    let records = approvals(world);
    let answered = is_answered(world);
    assert!(
        !answered || records.len() == 1,
        "an answer counts without its record"
    );
    answered
}

/// Makes the configuration the repository's, so that it needs a person's trust.
fn track(world: &World) {
    for arguments in [&["init", "-q"][..], &["add", ".pml.json"]] {
        let done = world.program(Path::new("git")).args(arguments).status();
        assert!(done.unwrap().success());
    }
}

fn is_trusted(world: &World) -> bool {
    let listed = json_of(&world.run(&["trust", "--list", "--json"]));
    !listed["accepted"].as_array().unwrap().is_empty()
}

const CASES: [Case; 19] = [
    Case {
        name: "trust",
        prepare: |world| {
            track(world);
            words(&["trust", "--yes"])
        },
        is_done: is_trusted,
        again: 0,
    },
    Case {
        name: "untrust",
        prepare: |world| {
            track(world);
            assert!(world.run(&["trust", "--yes"]).status.success());
            words(&["untrust"])
        },
        is_done: |world| !is_trusted(world),
        again: 0,
    },
    Case {
        name: "history prune",
        prepare: |world| {
            assert!(world.run(&["deny", "some:rule"]).status.success());
            world.write(".pml.json", RULES);
            words(&["history", "prune", "--older", "0d"])
        },
        is_done: |world| world.recorded("rule").is_empty(),
        again: 0,
    },
    Case {
        name: "allow",
        prepare: |_| words(&["allow", "new:rule"]),
        is_done: |world| rules_say(world, "new:rule"),
        again: 0,
    },
    Case {
        name: "deny",
        prepare: |_| words(&["deny", "old:rule"]),
        is_done: |world| rules_say(world, "deny"),
        again: 0,
    },
    Case {
        name: "allow in a new file",
        prepare: |world| {
            std::fs::remove_file(world.path(".pml.json")).unwrap();
            words(&["allow", "new:rule"])
        },
        is_done: |world| world.path(".pml.json").exists() && rules_say(world, "new:rule"),
        again: 0,
    },
    Case {
        name: "forget",
        prepare: |_| words(&["forget", "old:rule"]),
        is_done: |world| !rules_say(world, "old:rule"),
        again: 1,
    },
    Case {
        name: "remove",
        prepare: |_| words(&["remove", "gone"]),
        is_done: |world| !rules_say(world, "gone"),
        again: 1,
    },
    Case {
        name: "add",
        prepare: |_| {
            let fake = fake_server();
            words(&["add", "--yes", "new", "--", fake.to_str().unwrap()])
        },
        is_done: |world| rules_say(world, "\"new\""),
        again: 1,
    },
    Case {
        name: "lock",
        prepare: |_| words(&["lock"]),
        is_done: |world| {
            let lock = std::fs::read_to_string(world.path(".pml.lock"));
            lock.is_ok_and(|lock| pml::pins::LockFile::read(&lock).unwrap().servers.len() == 1)
        },
        again: 0,
    },
    Case {
        name: "lock again",
        prepare: |world| {
            let before = world.run(&["lock"]);
            assert!(before.status.success(), "{before:?}");
            world.write(
                ".pml.json",
                &RULES.replace("\"gone\" }", "\"gone\", \"args\": [\"now\"] }"),
            );
            words(&["lock"])
        },
        is_done: |world| {
            // The old lock or the new one, never another.
            let lock = pml::pins::LockFile::read(&world.read(".pml.lock")).unwrap();
            let words = lock.servers.into_values().next().unwrap().launch;
            assert!(words == ["gone"] || words == ["gone", "now"], "{words:?}");
            words.len() == 2
        },
        again: 0,
    },
    Case {
        name: "approve",
        prepare: |world| words(&["approve", &put_install(world)]),
        is_done: is_approved,
        again: 1,
    },
    Case {
        name: "approve always",
        prepare: |world| words(&["approve", "--always", &put_install(world)]),
        is_done: |world| {
            let approved = is_approved(world);
            assert!(!approved || rules_say(world, "fake:echo"), "no rule");
            approved
        },
        again: 1,
    },
    Case {
        name: "refuse",
        prepare: |world| words(&["refuse", &put_install(world)]),
        is_done: is_answered,
        again: 1,
    },
    Case {
        name: "approve a change",
        prepare: |world| words(&["approve", &put_change(world)]),
        is_done: is_answered,
        again: 1,
    },
    Case {
        name: "refuse a change",
        prepare: |world| words(&["refuse", &put_change(world)]),
        is_done: is_answered,
        again: 1,
    },
    Case {
        name: "approve a project's file",
        prepare: |world| words(&["approve", &put_trust(world)]),
        // Without the answer there is no trust; whoever takes the answer completes what a crash cut off.
        is_done: |world| {
            let answered = is_answered(world);
            assert!(answered || !is_trusted(world), "trusted without an answer");
            answered
        },
        again: 1,
    },
    Case {
        name: "refuse a project's file",
        prepare: |world| words(&["refuse", &put_trust(world)]),
        is_done: |world| {
            assert!(!is_trusted(world), "trusted by a refusal");
            is_answered(world)
        },
        again: 1,
    },
    Case {
        name: "answer",
        prepare: |world| words(&["answer", &put_question(world), "--text", "because"]),
        is_done: is_answered,
        again: 1,
    },
];

fn run(world: &World, arguments: &[String]) -> Output {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    world.run(&arguments)
}

/// The temporary files that lie anywhere below a home.
fn leftovers(world: &World) -> Vec<String> {
    let mut files = files_below(world.home());
    files.retain(|file| {
        let name = file.rsplit('/').next().unwrap();
        name.contains(".tmp")
    });
    files
}

/// Makes a file as old as what a writer that was killed hours ago left.
fn age(file: &Path) {
    let file = File::options().write(true).open(file).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_modified(modified - Duration::from_hours(2)).unwrap();
}

/// Checks that the history is as it was written, but for a line that a crash cut off.
fn assert_intact_history(world: &World, told: &str) {
    let verdict = pml::history::verify(&world.home().join(".local/state/pml/history")).unwrap();
    assert!(verdict.is_intact(), "{verdict:?}: {told}");
}

/// Runs a command with the `nth` call failing, and checks what it left; returns whether a call failed.
fn meet(case: &Case, nth: u32, errno: Option<Errno>) -> bool {
    let world = World::new();
    world.write(".pml.json", RULES);
    let arguments = (case.prepare)(&world);
    let old = std::fs::read_to_string(world.path(".pml.json")).ok();
    let mut command = world.command(&[]);
    command.args(&arguments).stdin(Stdio::null());
    let met = inject_nth(&mut command, world.home(), nth, errno);
    let output = command.output().unwrap();
    let call = met.call();
    let told = format!(
        "{} met {errno:?} at call {nth} ({}) and ended with {}: {}",
        case.name,
        call.as_deref().unwrap_or("none").trim_end(),
        output.status,
        stderr(&output)
    );

    assert_intact_history(&world, &told);
    let done = (case.is_done)(&world);
    match (output.status.code(), &call) {
        (Some(0), _) => assert!(done, "said to be done: {told}"),
        (Some(_), Some(_)) => {
            let says_so = STANDS.iter().any(|words| stderr(&output).contains(words));
            assert!(!done || says_so, "done after all: {told}");
            if !done {
                let now = std::fs::read_to_string(world.path(".pml.json")).ok();
                assert_eq!(now, old, "not as it was: {told}");
                assert_eq!(approvals(&world), Vec::<Value>::new(), "{told}");
            }
        }
        (None, Some(_)) => assert_eq!((output.status.signal(), errno), (Some(9), None), "{told}"),
        (_, None) => panic!("failed without a fault: {told}"),
    }
    if errno.is_some() {
        assert_eq!(leftovers(&world), Vec::<String>::new(), "{told}");
    }
    if call.is_none() {
        return false;
    }

    for file in leftovers(&world) {
        age(&world.home().join(file));
    }
    let again = run(&world, &arguments);
    let expected = if done { case.again } else { 0 };
    assert_eq!(
        again.status.code(),
        Some(expected),
        "the next run: {}; {told}",
        stderr(&again)
    );
    assert!((case.is_done)(&world), "after the next run: {told}");
    assert_intact_history(&world, &told);
    if !leftovers(&world).is_empty() {
        // Where the next run had nothing to write, the next writer clears it.
        let allowed = run(&world, &words(&["allow", "next:writer"]));
        assert!(allowed.status.success(), "{}", stderr(&allowed));
    }
    if !leftovers(&world).is_empty() {
        let fake = fake_server();
        let added = run(
            &world,
            &words(&["add", "--yes", "next", "--", fake.to_str().unwrap()]),
        );
        assert!(added.status.success(), "{}", stderr(&added));
    }
    assert_eq!(
        leftovers(&world),
        Vec::<String>::new(),
        "after the next run: {told}"
    );
    true
}

/// Runs each of the named sweeps from its first call until one meets no fault.
fn sweep<F: Fn(u32) -> bool + Send>(sweeps: impl IntoIterator<Item = (&'static str, F)>) {
    let sweeps = Mutex::new(sweeps.into_iter().collect::<Vec<_>>());
    let next = || sweeps.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((name, meets)) = next() {
                    let last = (1..CALLS).find(|nth| !meets(*nth));
                    let last = last.unwrap_or_else(|| panic!("{name} does not end"));
                    assert!(last > 1, "{name} met no fault");
                }
            });
        }
    });
}

#[test]
fn every_command_that_writes_reports_what_is_true_whichever_call_fails() {
    if !have(&["cc"]) {
        return;
    }
    let sweeps = CASES.iter().flat_map(|case| {
        let meets = |errno| (case.name, move |nth| meet(case, nth, errno));
        FAULTS.map(meets)
    });
    sweep(sweeps);
}
