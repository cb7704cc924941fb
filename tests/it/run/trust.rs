//! A project that its user has not accepted brings no settings for the agent.

use std::path::Path;

use serde_json::json;

use super::scene::Scene;
use crate::support::messages_api::Turn;
use crate::support::world::{World, stderr};

fn git(world: &World, arguments: &[&str]) {
    let mut command = world.program(Path::new("git"));
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = command.args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
}

#[test]
fn hooks_of_a_project_run_only_once_it_is_accepted() {
    let Some(scene) = Scene::scripted([Turn::text("One."), Turn::text("Two.")]) else {
        return;
    };
    let world = &scene.world;
    world.configure(&json!({ "permissions": { "allow": ["client:Bash"] } }));
    let mark = world.home().join("ran");
    let hook = json!({ "type": "command", "command": format!("touch {}", mark.display()) });
    let settings = json!({ "hooks": { "UserPromptSubmit": [{ "hooks": [hook] }] } });
    std::fs::create_dir(world.path(".claude")).unwrap();
    world.write(".claude/settings.json", &settings.to_string());
    git(world, &["init", "-q"]);
    git(world, &["add", "."]);
    git(world, &["commit", "-qm", "a project"]);

    let ended = scene.run(&["say one"]).with(0);
    assert!(ended.stdout.contains("One."), "{}", ended.stdout);
    assert!(!mark.exists(), "a hook of a project that nobody accepted has run");

    scene.say(&["trust", "--yes"]);
    scene.run(&["say two"]).with(0);
    assert!(mark.exists(), "the hook of an accepted project has not run");
}
