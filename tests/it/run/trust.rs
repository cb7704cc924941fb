//! What a project brings for the agent counts only once its user has accepted it, exactly as it is.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::scene::{Ended, Scene};
use crate::support::messages_api::Turn;
use crate::support::world::{World, stderr};

fn git(world: &World, arguments: &[&str]) {
    let mut command = world.program(Path::new("git"));
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = command.args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
}

/// Writes a hook that leaves a mark when it runs.
fn hook(scene: &Scene, name: &str) -> PathBuf {
    let mark = scene.world.home().join(name);
    let hook = json!({ "type": "command", "command": format!("touch {}", mark.display()) });
    let settings = json!({ "hooks": { "UserPromptSubmit": [{ "hooks": [hook] }] } });
    std::fs::create_dir_all(scene.world.path(".claude")).unwrap();
    scene.world.write(".claude/settings.json", &settings.to_string());
    mark
}

fn commit(world: &World) {
    git(world, &["init", "-q"]);
    git(world, &["add", "."]);
    git(world, &["commit", "-qm", "a project"]);
}

/// Checks that the first lines say what is left out.
fn told_what_is_left_out(ended: &Ended) {
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(
        told.contains("the settings of this project in") && told.contains("pml trust"),
        "{told}"
    );
}

#[test]
fn hooks_of_a_project_run_only_once_they_are_accepted_and_only_as_they_were_then() {
    let script = ["One.", "Two.", "Three.", "Four."].map(Turn::text);
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let world = &scene.world;
    world.configure(&json!({ "permissions": { "allow": ["client:Bash"] } }));
    let mark = hook(&scene, "ran");
    commit(world);

    let ended = scene.run(&["say one"]).with(0);
    assert!(ended.stdout.contains("One."), "{}", ended.stdout);
    assert!(!mark.exists(), "a hook of a project that nobody accepted has run");
    told_what_is_left_out(&ended);

    let told = world.run(&["trust", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert!(
        told["agentSettings"]["wants"][0]
            .as_str()
            .unwrap()
            .contains("runs on UserPromptSubmit: touch "),
        "{told}"
    );
    scene.say(&["trust", "--yes"]);
    let ended = scene.run(&["say two"]).with(0);
    assert!(mark.exists(), "the hook of an accepted project has not run");
    assert!(!ended.stderr.contains("pml trust"), "{}", ended.stderr);

    // It comes with a later commit, say.
    let other = hook(&scene, "ran too");
    told_what_is_left_out(&scene.run(&["say three"]).with(0));
    assert!(!other.exists(), "a hook that came after the acceptance has run");

    scene.say(&["trust", "--yes"]);
    scene.say(&["untrust"]);
    scene.run(&["say four"]).with(0);
    assert!(!other.exists(), "a hook has run whose acceptance was taken back");
}

#[test]
fn hooks_run_in_no_project_that_has_no_file_of_pml_or_one_of_the_user() {
    let script = ["One.", "Two."].map(Turn::text);
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let mark = hook(&scene, "ran");
    std::fs::remove_file(scene.world.path(".pml.json")).unwrap();
    commit(&scene.world);
    told_what_is_left_out(&scene.run(&["say one"]).with(0));
    // Written by the user, so it counts; the rest of the repository does not.
    scene
        .world
        .configure(&json!({ "permissions": { "allow": ["client:Bash"] } }));
    told_what_is_left_out(&scene.run(&["say two"]).with(0));
    assert!(!mark.exists(), "a hook of a project that nobody accepted has run");
}
