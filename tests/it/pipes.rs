//! A pipe where a file should be: reading it would wait for a writer that never comes.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::world::{World, stderr};
use crate::support::{DEADLINE, eventually};

fn make_pipe(world: &World, path: &Path) {
    let mut command = world.program(Path::new("mkfifo"));
    assert!(command.arg(path).status().unwrap().success());
}

/// Runs a command that must end by itself.
fn ended(world: &World, arguments: &[&str]) -> Output {
    let mut command = world.command(arguments);
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    eventually(
        &format!("`pml {}` answers", arguments.join(" ")),
        DEADLINE,
        || child.try_wait().unwrap().is_some(),
    );
    child.wait_with_output().unwrap()
}

#[test]
fn a_pipe_as_the_index_of_a_repository_holds_nothing_up_and_its_file_counts_as_brought() {
    for layout in ["index", "linked index", "gitdir", "attributes"] {
        let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
        let decision = || {
            let printed = ended(&world, &["check", "fake:echo", "--json"]);
            let said: Value =
                serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{}", stderr(&printed)));
            said["decision"].clone()
        };
        assert_eq!(decision(), "allow", "{layout}: it is the user's own");
        let git = world.path(".git");
        match layout {
            "index" => {
                std::fs::create_dir(&git).unwrap();
                make_pipe(&world, &git.join("index"));
            }
            "linked index" => {
                std::fs::create_dir(&git).unwrap();
                make_pipe(&world, &git.join("pipe"));
                symlink("pipe", git.join("index")).unwrap();
            }
            "gitdir" => {
                std::fs::create_dir(world.path("x")).unwrap();
                std::fs::write(&git, "gitdir: x\n").unwrap();
                make_pipe(&world, &world.path("x/index"));
            }
            _ => {
                std::fs::create_dir(&git).unwrap();
                // Damaged, so that the attributes play a part as well.
                std::fs::write(git.join("index"), "DIRC").unwrap();
                make_pipe(&world, &git.join("config"));
                make_pipe(&world, &world.path(".gitattributes"));
            }
        }
        assert_eq!(decision(), "ask", "{layout}");
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        assert_eq!(
            asked["approval_context"]["type"], "project_trust",
            "{layout}: {asked}"
        );
        client.close();
    }
}

#[test]
fn a_pipe_as_a_configuration_or_a_lock_is_refused_by_its_name_at_once() {
    for (file, commands) in [
        (
            ".pml.json",
            &[
                &["check", "fake:echo"][..],
                &["list"],
                &["allow", "a:b"],
                &["trust", "--yes"],
            ][..],
        ),
        (".pml.lock", &[&["lock"][..], &["diff", "fake"]]),
    ] {
        let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
        let path = world.path(file);
        let _ = std::fs::remove_file(&path);
        make_pipe(&world, &path);
        for command in commands {
            let refused = ended(&world, command);
            let told = stderr(&refused);
            assert!(!refused.status.success(), "{command:?}: {told}");
            let name = format!("{file}` is not a regular file");
            assert!(told.contains(&name), "{command:?}: {told}");
        }
        let mut client = world.legacy();
        let refused = client.call("fake__echo", &json!({}));
        assert_eq!(refused["isError"], true, "{file}: {refused}");
        client.close();
    }
}
