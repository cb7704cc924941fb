//! Many writers of one file, and writers that die: nothing is lost, nothing is torn, nothing is left behind.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use pml::config::{self, RuleList};

use crate::home::{Home, names, read};

const WRITERS: usize = 16;
const RULES_EACH: usize = 50;

fn allowed(path: &Path) -> BTreeSet<String> {
    let config = config::check(path, &read(path)).unwrap();
    let rules = config.rules.into_iter();
    rules
        .filter(|rule| rule.list == RuleList::Allow)
        .map(|rule| rule.pattern.to_string())
        .collect()
}

#[test]
fn sixteen_writers_with_fifty_rules_each_lose_nothing() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let home = &home;
            scope.spawn(move || {
                for rule in 0..RULES_EACH {
                    let output = home
                        .pml()
                        .args(["allow", &format!("writer{writer}:rule{rule}")])
                        .output()
                        .unwrap();
                    assert!(output.status.success(), "{}", home.told(&output));
                }
            });
        }
    });
    let expected: BTreeSet<_> = (0..WRITERS)
        .flat_map(|writer| (0..RULES_EACH).map(move |rule| format!("writer{writer}:rule{rule}")))
        .collect();
    assert_eq!(allowed(&home.config()), expected);
    assert_eq!(names(&home.project()), [".pml.json"]);
}

#[test]
fn a_writer_killed_at_any_moment_leaves_the_old_or_the_new_file() {
    const ROUNDS: u32 = 120;
    let text = "// ours\r\n{\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\r\n\t\t\t\"first:rule\", // stays\r\n\t\t],\r\n\t},\r\n}\r\n";
    let home = Home::new().with_config(text);
    std::fs::set_permissions(home.config(), std::fs::Permissions::from_mode(0o640)).unwrap();
    let began = Instant::now();
    assert!(home.run(&["allow", "whole:run"]).starts_with("exit: 0\n"));
    let whole = began.elapsed();
    let (mut killed, mut finished) = (0, 0);
    for round in 0..ROUNDS {
        let before = allowed(&home.config());
        let pattern = format!("round:rule{round}");
        let mut child = home
            .pml()
            .args(["allow", &pattern])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From the start to after the end of a run: each round dies at a later moment.
        std::thread::sleep(whole * 5 / 4 * round / ROUNDS);
        child.kill().unwrap();
        let done = child.wait().unwrap().success();
        if done {
            finished += 1;
        } else {
            killed += 1;
        }

        let after = allowed(&home.config());
        let mut with = before.clone();
        with.insert(pattern);
        assert!(after == with || (after == before && !done), "round {round}");
        let bytes = read(&home.config());
        assert_eq!(bytes.matches('\n').count(), bytes.matches("\r\n").count());
        assert!(bytes.starts_with("// ours\r\n") && bytes.contains("\"first:rule\", // stays\r\n"));
        assert_eq!(home.config().metadata().unwrap().mode() & 0o7777, 0o640);
        // What a killed writer leaves has one name, so it cannot pile up.
        let left = names(&home.project());
        assert!(
            left == [".pml.json"] || left == [".pml.json", ".pml.json.tmp"],
            "{left:?}"
        );
    }
    assert!(killed > 0 && finished > 0, "{killed} killed, {finished} finished");
    assert!(home.run(&["allow", "last:rule"]).starts_with("exit: 0\n"));
    assert_eq!(names(&home.project()), [".pml.json"]);
}

#[test]
fn a_linked_file_is_written_through_by_many_names() {
    let home = Home::new();
    let real = home.project().join("real.json");
    crate::home::write(&real, "{}\n");
    std::os::unix::fs::symlink("real.json", home.config()).unwrap();
    std::thread::scope(|scope| {
        for (name, writer) in [(".pml.json", "link"), ("real.json", "real")] {
            let home = &home;
            scope.spawn(move || {
                for rule in 0..10 {
                    let pattern = format!("{writer}:rule{rule}");
                    let told = home.run(&["--config", name, "allow", &pattern]);
                    assert!(told.starts_with("exit: 0\n"), "{told}");
                }
            });
        }
    });
    assert_eq!(allowed(&real).len(), 20);
    assert!(home.config().symlink_metadata().unwrap().is_symlink());
    assert_eq!(names(&home.project()), [".pml.json", "real.json"]);
}
