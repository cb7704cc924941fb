//! `pml remove`: one server goes, everything else stays.

use crate::support::world::{World, json_of, stderr};

const CONFIG: &str = r#"{
  // rules first
  "permissions": { "ask": ["*"] },
  "mcpServers": {
    // the clock
    "time": { "command": "./time" }, // kept
    "files": {
      "command": "./files",
      "args": ["."],
    },
  },
}
"#;

#[test]
fn a_server_is_taken_out_and_the_rest_of_the_file_stays() {
    let world = World::new();
    world.write(".pml.json", CONFIG);
    let output = world.run(&["remove", "files"]);
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "changed .pml.json: removed `files`\n")
    );
    let left = world.read(".pml.json");
    assert!(!left.contains("files"), "{left}");
    for kept in [
        "// rules first",
        "// the clock",
        "\"time\": { \"command\": \"./time\" }",
    ] {
        assert!(left.contains(kept), "{left}");
    }
    let names: Vec<_> = json_of(&world.run(&["list", "--json"]))["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["time"]);
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest() {
    let world = World::new();
    world.write(".pml.json", CONFIG);
    let output = world.run(&["remove", "flies"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "error: no server `flies` in .pml.json\n\nhint: did you mean `files`?\n"
    );
    let output = world.run(&["remove", "--user", "files"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "error: no server `files` in ~/.config/pml/pml.json\n\n\
         hint: it stands in .pml.json; to remove it there: pml remove files\n"
    );
    assert_eq!(world.read(".pml.json"), CONFIG);
}

#[test]
fn a_broken_file_is_not_touched() {
    let world = World::new();
    world.write(".pml.json", "{ \"mcpServers\": ");
    let output = world.run(&["remove", "files"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(world.read(".pml.json"), "{ \"mcpServers\": ");
}
