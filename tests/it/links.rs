//! A repository can bring links: none of them makes pml write, or copy secrets, outside it.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::home::names;
use crate::support::fake_server;
use crate::support::world::{World, asks, json_of, stderr, texts};

const SECRETS: &str = r#"{"mcpServers": {"private": {"command": "x", "env": {"TOKEN": "hunter2"}}}}"#;

/// A link in the project to a file outside it.
fn planted(world: &World, name: &str, text: &str) -> PathBuf {
    let outside = world.home().join("outside.json");
    std::fs::write(&outside, text).unwrap();
    symlink(&outside, world.path(name)).unwrap();
    outside
}

#[test]
fn a_linked_client_file_is_neither_edited_nor_copied_into_the_repository() {
    let world = World::new();
    let outside = planted(&world, ".mcp.json", SECRETS);
    for _again in 0..2 {
        let output = world.run(&["init", "--yes"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let told = format!(
            "is a link that leads out of the project, to `{}`",
            outside.display()
        );
        assert!(said.contains(&told), "{said}");
        assert!(
            said.contains(&format!("rm {}", world.path(".mcp.json").display())),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
        assert_eq!(names(&world.project()), [".mcp.json"]);
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), SECRETS);
    }
}

#[test]
fn a_linked_configuration_is_not_written_through() {
    let world = World::new();
    let outside = planted(&world, ".pml.json", "{}");
    let fake = fake_server();
    let add = ["add", "--yes", "fake", "--", fake.to_str().unwrap()];
    for arguments in [&["allow", "a:b"][..], &["deny", "a:b"], &["ask", "a:b"], &add] {
        let output = world.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("leads out of its directory"), "{said}");
        assert!(
            said.contains(&format!("pml --config {} …", outside.display())),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "{}");
        assert_eq!(names(&world.project()), [".pml.json"]);
    }
    // The hint works.
    let named = world.run(&["--config", outside.to_str().unwrap(), "allow", "a:b"]);
    assert!(named.status.success(), "{}", stderr(&named));
    assert!(std::fs::read_to_string(&outside).unwrap().contains("a:b"));
}

#[test]
fn a_link_to_nothing_outside_creates_nothing() {
    let world = World::new();
    let outside = world.home().join("new/outside.json");
    symlink(&outside, world.path(".pml.json")).unwrap();
    let output = world.run(&["allow", "a:b"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is a link that leads nowhere"), "{said}");
    assert!(!outside.parent().unwrap().exists());
}

#[test]
fn always_does_not_write_through_a_link_and_says_so() {
    let world = World::new();
    let declared = json!({ "mcpServers": { "fake": world.fake(&[]) } }).to_string();
    let outside = planted(&world, ".pml.json", &declared);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert!(asks(&asked), "{asked}");
    let result = client.proceed("fake__echo", &asked, &json!({ "approved": true, "always": true }));
    let told = texts(&result).join("\n");
    assert!(told.contains("could not be added to the allow list"), "{told}");
    assert!(told.contains("leads out of its directory"), "{told}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), declared);
}

#[test]
fn a_link_within_the_project_is_followed_and_the_real_file_is_named() {
    let world = World::new();
    std::fs::create_dir(world.path("settings")).unwrap();
    world.write("settings/real.json", "{}");
    symlink("settings/real.json", world.path(".pml.json")).unwrap();
    let said = stderr(&world.run(&["allow", "a:b"]));
    assert_eq!(said, "changed settings/real.json: allow `a:b`\n");
    let said = stderr(&world.run(&["allow", "c:d"]));
    assert_eq!(said, "changed settings/real.json: allow `c:d`\n");
    assert!(world.path(".pml.json").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn the_users_own_file_may_be_a_link_and_the_real_file_is_named() {
    let world = World::new();
    let real = world.home().join("dotfiles/pml.json");
    let user = world.home().join(".config/pml/pml.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::create_dir(real.parent().unwrap()).unwrap();
    std::fs::write(&real, "{}").unwrap();
    symlink(&real, &user).unwrap();
    let output = world.run(&["allow", "--user", "a:b"]);
    assert_eq!(stderr(&output), "changed ~/dotfiles/pml.json: allow `a:b`\n");
    let done = json_of(&world.run(&["allow", "--user", "--json", "c:d"]));
    assert_eq!(done["file"], real.to_str().unwrap());
    assert!(user.symlink_metadata().unwrap().is_symlink());
}

#[test]
fn a_directory_under_the_temporary_name_blocks_no_rule() {
    let world = World::new();
    std::fs::create_dir(world.path(".pml.json.tmp")).unwrap();
    let output = world.run(&["allow", "a:b"]);
    assert_eq!(stderr(&output), "created .pml.json: allow `a:b`\n");
    assert_eq!(names(&world.project()), [".pml.json", ".pml.json.tmp"]);
}

#[test]
fn a_link_that_leads_nowhere_is_refused_at_once_and_never_counts_as_no_file() {
    for (name, text) in [
        ("project/.pml.json", None),
        ("project/.pml.lock", Some(r#"{"version":1,"servers":{}}"#)),
        (
            ".config/pml/pml.json",
            Some(r#"{"permissions":{"deny":["other"]}}"#),
        ),
    ] {
        let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
        let path = world.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let real = world.home().join("real");
        match text {
            Some(text) => std::fs::write(&real, text).unwrap(),
            None => std::fs::rename(&path, &real).unwrap(),
        }
        symlink(&real, &path).unwrap();
        // As where the disk is gone that it leads to: its denies must not be gone with it.
        let gone = world.home().join("gone");
        std::fs::rename(&real, &gone).unwrap();
        let told = format!("`{}` is a link that leads nowhere", path.display());
        let refused = world.legacy().call("fake__echo", &json!({}));
        let text = texts(&refused).concat();
        assert!(is_error(&refused) && text.contains(&told), "{name}: {refused}");
        let hint = format!("rm {}", path.display());
        assert!(text.contains(&hint), "{name}: {refused}");
        std::fs::rename(&gone, &real).unwrap();
        let ran = world.legacy().call("fake__echo", &json!({}));
        assert!(!is_error(&ran), "{name}: {ran}");
    }
}

fn is_error(result: &serde_json::Value) -> bool {
    result["isError"] == true
}
