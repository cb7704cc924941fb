//! `ASK_USER_CONFIG` in a run: the programs of the agent find it without any setup, and it goes with the run.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::scene::{PATIENCE, Scene};
use super::{bash, question};
use crate::browser::Server;
use crate::support::eventually;
use crate::support::messages_api::Turn;
use crate::support::world::state;

#[test]
fn the_programs_of_a_run_find_a_private_file_that_goes_with_the_run() {
    let script = [
        bash(
            "stat -c %a \"$ASK_USER_CONFIG\" > mode; cp \"$ASK_USER_CONFIG\" config; printf %s \"$ASK_USER_CONFIG\" > where",
        ),
        Turn::text("Done."),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let scene = scene.permissions(&json!({ "allow": ["client:Bash"] }));
    let server = Server::start_on(&scene.world, 0);
    scene.run(&["look"]).with(0);
    let read = |name: &str| std::fs::read_to_string(scene.world.path(name)).unwrap();
    assert_eq!(read("mode"), "600\n");
    let config: Value = serde_json::from_str(&read("config")).unwrap();
    assert_eq!(config["apiUrl"], format!("http://127.0.0.1:{}", server.port()));
    assert!(
        config["streamToken"]
            .as_str()
            .is_some_and(|token| token.len() == 36),
        "{config}"
    );
    assert!(
        !std::path::Path::new(&read("where")).exists(),
        "it goes with the run"
    );
}

#[test]
fn without_a_server_there_is_no_such_file() {
    let script = [
        bash("printf %s \"$ASK_USER_CONFIG\" > where"),
        Turn::text("Done."),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let scene = scene.permissions(&json!({ "allow": ["client:Bash"] }));
    scene.run(&["look"]).with(0);
    assert_eq!(std::fs::read_to_string(scene.world.path("where")).unwrap(), "");
}

#[test]
fn a_run_that_the_server_resumes_has_such_a_file_too_and_loses_it_at_its_end() {
    let script = [
        question(),
        bash("cp \"$ASK_USER_CONFIG\" config; printf %s \"$ASK_USER_CONFIG\" > where"),
        Turn::text("Done."),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let scene = scene.permissions(&json!({ "allow": ["client:Bash"] }));
    scene.run(&["--patience", "1s", "ask me"]).with(75);
    let code = scene.code();
    let server = Server::start_on(&scene.world, 0);
    scene.say(&["answer", &code, "pg"]);
    eventually("the run is over", PATIENCE, || scene.is("done"));
    let read = |name: &str| std::fs::read_to_string(scene.world.path(name)).unwrap();
    let config: Value = serde_json::from_str(&read("config")).unwrap();
    assert_eq!(config["apiUrl"], format!("http://127.0.0.1:{}", server.port()));
    let streams = state(&scene.world).join("streams");
    eventually(
        "it goes with the run, and so does its right to ask",
        PATIENCE,
        || {
            !std::path::Path::new(&read("where")).exists()
                && std::fs::read_dir(&streams).unwrap().count() == 0
        },
    );
}
