//! Only the user's own configuration decides what runs; what another user left somewhere does not.

use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::world::{World, asks, json_of, stderr, texts};
use crate::support::{DEADLINE, eventually, superuser};

/// A user that is neither the tests' nor root.
const STRANGER: u32 = 54_321;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A configuration whose server leaves a mark when it starts, and starts as soon as it may.
fn eager(world: &World) -> Value {
    let started = world.home().join("started");
    let mut server = world.fake(&["--started", started.to_str().unwrap()]);
    server["startup"] = json!("eager");
    json!({ "permissions": { "allow": ["*"] }, "mcpServers": { "fake": server } })
}

fn started(world: &World) -> bool {
    world.home().join("started").exists()
}

/// Puts the eager configuration into a directory that every user may write, above the project.
fn shared(world: &World) -> (PathBuf, PathBuf) {
    let shared = world.home().join("shared");
    let project = shared.join("mine");
    std::fs::create_dir_all(&project).unwrap();
    set_mode(&shared, 0o1777);
    let file = shared.join(".pml.json");
    std::fs::write(&file, eager(world).to_string()).unwrap();
    (project, file)
}

#[test]
fn a_configuration_in_a_shared_directory_above_is_not_reached_and_that_is_said() {
    let world = World::new();
    let (project, file) = shared(&world);
    let mut command = world.command(&["list", "--json"]);
    let output = command.current_dir(&project).output().unwrap();
    assert_eq!(json_of(&output), json!({ "servers": [] }));
    let said = stderr(&output);
    let note = format!(
        "note: `{}` does not count here: every user may write in `{}`\n",
        file.display(),
        file.parent().unwrap().display()
    );
    assert_eq!(said, note);

    let mut command = world.command(&["stdio"]);
    command.current_dir(&project);
    let mut client = crate::support::world::Client::start(command);
    client.initialize("2025-06-18");
    let tools = client.tools();
    assert!(!tools.iter().any(|tool| tool.starts_with("fake")), "{tools:?}");
    client.close();
    assert!(!started(&world), "the command of the shared directory ran");
}

#[test]
fn a_configuration_above_the_repository_is_not_reached_and_that_is_said() {
    let world = World::new();
    std::fs::write(world.home().join(".pml.json"), eager(&world).to_string()).unwrap();
    assert_eq!(
        json_of(&world.run(&["list", "--json"]))["servers"][0]["name"],
        "fake"
    );
    std::fs::create_dir(world.path(".git")).unwrap();
    let output = world.run(&["list", "--json"]);
    assert_eq!(json_of(&output), json!({ "servers": [] }));
    let said = stderr(&output);
    assert!(said.contains("it lies outside the repository"), "{said}");
}

/// Asserts that neither a call nor a command obeys the project's file, and returns what the call was told.
fn assert_refused(world: &World, why: &str) -> String {
    let mut client = world.legacy();
    assert_eq!(
        client
            .tools()
            .iter()
            .filter(|tool| tool.starts_with("fake"))
            .count(),
        0
    );
    let result = client.call("fake__echo", &json!({}));
    assert_eq!(result["isError"], true, "{result}");
    let told = texts(&result).join("\n");
    assert!(told.contains(why), "{why:?} is not in {told}");
    client.close();
    assert!(!started(world), "the command of a stranger ran");
    for command in [
        &["list"][..],
        &["check", "fake:echo"],
        &["install"],
        &["allow", "a:b"],
    ] {
        let output = world.run(command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.contains(why), "{command:?}: {said}");
    }
    told
}

/// Asserts that the project's file declares and widens nothing, and returns what the call was told.
fn assert_not_trusted(world: &World, why: &str) -> String {
    let mut client = world.legacy();
    let result = client.call("fake__echo", &json!({}));
    assert!(asks(&result), "{result}");
    let context = &result["structuredContent"]["approval_context"];
    assert_eq!(context["type"], "project_trust");
    let told = texts(&result).join("\n");
    assert!(told.contains(why), "{why:?} is not in {told}");
    client.close();
    assert!(!started(world), "the command of a stranger ran");
    for command in [&["list"][..], &["check", "fake:echo"]] {
        let said = stderr(&world.run(command));
        assert!(
            said.contains(why) && said.contains("pml trust"),
            "{command:?}: {said}"
        );
    }
    let output = world.run(&["allow", "a:b"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    told
}

#[test]
fn a_configuration_of_another_user_widens_nothing() {
    if !superuser() {
        return;
    }
    let world = World::new();
    world.configure(&eager(&world));
    let file = world.path(".pml.json");
    chown(&file, Some(STRANGER), None).unwrap();
    let why = format!("is not yours alone: it belongs to user {STRANGER} (mode 644), and pml runs as user 0");
    assert_not_trusted(&world, &why);

    // Naming it is the user's own word.
    let named = world.run(&["--config", ".pml.json", "list", "--json"]);
    assert_eq!(json_of(&named)["servers"][0]["name"], "fake");

    // So is accepting it, and making it one's own.
    assert!(world.run(&["trust", "--yes"]).status.success());
    assert!(!asks(&world.legacy().call("fake__echo", &json!({}))));
    assert!(world.run(&["untrust"]).status.success());
    assert!(asks(&world.legacy().call("fake__echo", &json!({}))));
    chown(&file, Some(0), None).unwrap();
    assert!(!asks(&world.legacy().call("fake__echo", &json!({}))));
}

#[test]
fn a_configuration_that_others_may_write_widens_nothing() {
    let world = World::new();
    world.configure(&eager(&world));
    let file = world.path(".pml.json");
    set_mode(&file, 0o646);
    assert_not_trusted(
        &world,
        "is not yours alone: every user may write it (mode 646, owner",
    );
    // The usual mode under the umask 002, in the user's own group.
    set_mode(&file, 0o664);
    if superuser() {
        chown(&file, None, Some(0)).unwrap();
        assert!(world.run(&["list"]).status.success());
        chown(&file, None, Some(STRANGER)).unwrap();
        let said = stderr(&world.run(&["list"]));
        assert!(
            said.contains(&format!("members of group {STRANGER} may write it")),
            "{said}"
        );
    }
}

#[test]
fn a_link_of_another_user_widens_nothing() {
    if !superuser() {
        return;
    }
    let world = World::new();
    let target = world.home().join("other.json");
    std::fs::write(&target, eager(&world).to_string()).unwrap();
    let link = world.path(".pml.json");
    symlink(&target, &link).unwrap();
    assert!(world.run(&["list"]).status.success());
    lchown(&link, Some(STRANGER), None).unwrap();
    assert_not_trusted(&world, &format!("it is a link of user {STRANGER}"));
}

#[test]
fn the_users_own_file_is_held_to_the_same() {
    if !superuser() {
        return;
    }
    let world = World::new();
    let user = world.home().join(".config/pml/pml.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, eager(&world).to_string()).unwrap();
    chown(&user, Some(STRANGER), None).unwrap();
    assert_refused(&world, "is not obeyed: it belongs to user");
}

#[test]
fn a_file_that_is_given_away_while_pml_runs_widens_nothing_any_more() {
    if !superuser() {
        return;
    }
    let world = World::with_fake(&json!({ "allow": ["*"] }), &[]);
    let mut client = world.legacy();
    assert!(!asks(&client.call("fake__echo", &json!({}))));
    chown(world.path(".pml.json"), Some(STRANGER), None).unwrap();
    let mut result = Value::Null;
    eventually("the call is asked about", DEADLINE, || {
        result = client.call("fake__echo", &json!({}));
        asks(&result)
    });
    assert!(
        texts(&result).join("\n").contains("it belongs to user"),
        "{result}"
    );
}
