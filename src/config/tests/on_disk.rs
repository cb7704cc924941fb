//! Files that are layered, unreadable, and changed under the reader.

use super::*;
use pretty_assertions::assert_eq;

struct Project {
    root: tempfile::TempDir,
    files: Files,
}

impl Project {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let environment = Environment::new([("HOME", root.path())], root.path());
        let locations = Locations::of(&environment).unwrap();
        let files = Files::new(root.path().join(".pml.json"), &locations);
        for directory in [files.user.parent().unwrap(), files.accepted.directory()] {
            std::fs::create_dir_all(directory).unwrap();
        }
        Self { root, files }
    }

    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn write(path: &Path, bytes: impl AsRef<[u8]>) {
        std::fs::write(path, bytes).unwrap();
    }
}

fn rules(config: &Config) -> Vec<(&str, RuleList)> {
    let rules = config.rules.iter();
    rules.map(|rule| (rule.pattern.as_str(), rule.list)).collect()
}

#[test]
fn without_files_everything_asks() {
    let project = Project::new();
    let config = read(&project.files).unwrap();
    assert_eq!(
        config.rules,
        [Rule {
            pattern: "*".parse().unwrap(),
            list: RuleList::Ask,
            source: None
        }]
    );
    assert_eq!(config.servers, BTreeMap::new());
}

#[test]
fn the_project_is_layered_over_the_user() {
    let project = Project::new();
    Project::write(
        &project.files.user,
        r#"{"permissions": {"deny": ["sh"]}, "mcpServers": {"a": {"command": "user"}, "b": {"command": "user"}},
            "approvals": {"ttlSeconds": 60}, "limits": {"lineBytes": 65536}}"#,
    );
    Project::write(
        &project.files.project,
        r#"{"permissions": {"allow": ["*"]}, "mcpServers": {"a": {"command": "project"}}, "approvals": {"ttlSeconds": 90}}"#,
    );
    let config = read(&project.files).unwrap();
    assert_eq!(rules(&config), [("sh", RuleList::Deny), ("*", RuleList::Allow)]);
    let commands: Vec<_> = config
        .servers
        .iter()
        .map(|(name, server)| (name.as_str(), &server.launch))
        .collect();
    let command = |command: &str| Launch::Command {
        command: command.to_owned(),
        args: Vec::new(),
    };
    assert_eq!(commands, [("a", &command("project")), ("b", &command("user"))]);
    assert_eq!(config.approvals.time_to_live, Duration::from_secs(90));
    assert_eq!(config.line_limit, LineLimit(65536));
}

#[test]
fn which_agent_runs_and_how_is_the_users_choice_alone() {
    let project = Project::new();
    let settings =
        r#"{"run": {"claude": "/opt/claude", "patienceMinutes": 3, "most": 2, "lateAnswers": "resume"}}"#;
    Project::write(&project.files.user, settings);
    let expected = RunSettings {
        claude: Some("/opt/claude".into()),
        patience: Duration::from_mins(3),
        most: 2,
        late_answers: LateAnswers::Resume,
    };
    assert_eq!(read(&project.files).unwrap().run, expected);
    Project::write(&project.files.user, r#"{"run": {"claude": "./claude"}}"#);
    let refused = read(&project.files).unwrap_err().to_string();
    assert!(
        refused.contains("`claude` of `run` is a name on the PATH or an absolute path"),
        "{refused}"
    );
    Project::write(&project.files.user, "{}");
    Project::write(&project.files.project, settings);
    let refused = read(&project.files).unwrap_err().to_string();
    assert!(
        refused.contains("a project cannot decide which agent runs, or how"),
        "{refused}"
    );
}

#[test]
fn what_runs_when_something_is_asked_is_the_users_choice_alone() {
    let project = Project::new();
    let notify = r#"{"notify": ["notify-send", "{title}"]}"#;
    Project::write(&project.files.user, notify);
    let notified = |files: &Files| read(files).unwrap().notify.unwrap().program().to_owned();
    assert_eq!(notified(&project.files), "notify-send");
    let named = Files {
        project: project.files.user.clone(),
        chosen: FileChoice::Named,
        ..project.files.clone()
    };
    assert_eq!(
        notified(&named),
        "notify-send",
        "it is the user's own by any name"
    );
    for chosen in [FileChoice::Found, FileChoice::Named] {
        Project::write(&project.files.project, notify);
        let files = Files {
            chosen,
            ..project.files.clone()
        };
        let error = read(&files).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}:1:2: a project cannot decide what runs when something is asked; \
                 `notify` belongs into the user's file",
                project.files.project.display()
            )
        );
        assert!(error.hint().unwrap().contains("~/.config/pml/pml.json"));
    }
}

#[test]
fn a_file_that_is_both_counts_once() {
    let project = Project::new();
    Project::write(&project.files.user, r#"{"permissions": {"allow": ["a"]}}"#);
    let files = Files {
        project: project.files.user.clone(),
        ..project.files.clone()
    };
    assert_eq!(
        rules(&read(&files).unwrap()),
        [("a", RuleList::Allow), ("*", RuleList::Ask)]
    );
}

#[test]
fn bytes_that_are_no_configuration_are_refused() {
    let project = Project::new();
    let path = &project.files.project;
    let message = || {
        let text = read(&project.files).unwrap_err().to_string();
        text.replace(&path.display().to_string(), "FILE")
    };
    Project::write(path, b"{\n \"\xff\": 1}");
    assert_eq!(message(), "FILE:2:3: not UTF-8 from here on");
    Project::write(path, vec![b' '; 1024 * 1024 + 1]);
    assert_eq!(message(), "`FILE` is larger than 1048576 bytes");
    std::fs::remove_file(path).unwrap();
    std::fs::create_dir(path).unwrap();
    assert_eq!(message(), "`FILE` is not a regular file");
}

#[test]
fn a_watched_file_is_read_again_when_it_changes_and_only_then() {
    let project = Project::new();
    let mut watched = WatchedConfig::new(project.files.clone());
    let path = &project.files.project;
    assert_eq!(rules(&watched.current().unwrap()), [("*", RuleList::Ask)]);
    assert_eq!(watched.generation(), 0);

    Project::write(path, r#"{"permissions": {"allow": ["a"]}}"#);
    assert_eq!(rules(&watched.current().unwrap())[0], ("a", RuleList::Allow));
    assert_eq!(watched.generation(), 1);
    let one = watched.current().unwrap();
    let other = watched.current().unwrap();
    assert!(std::sync::Arc::ptr_eq(&one, &other));
    assert_eq!(watched.generation(), 1);

    // Same size, at once: the stamp may well be the same.
    for text in ["b", "c", "d", "e"] {
        Project::write(path, format!(r#"{{"permissions": {{"allow": ["{text}"]}}}}"#));
        assert_eq!(rules(&watched.current().unwrap())[0], (text, RuleList::Allow));
    }

    Project::write(path, "{");
    let error = watched.current().unwrap_err();
    assert!(
        error.to_string().ends_with(":1:1: unterminated object"),
        "{error}"
    );
    let generation = watched.generation();
    let same = watched.current().unwrap_err();
    assert!(std::sync::Arc::ptr_eq(&error, &same));
    assert_eq!(watched.generation(), generation);
    std::fs::remove_file(path).unwrap();
    std::fs::create_dir(path).unwrap();
    watched.current().unwrap_err();
    std::fs::remove_dir(path).unwrap();
    assert_eq!(rules(&watched.current().unwrap()), [("*", RuleList::Ask)]);
    Project::write(path, r#"{"permissions": {"allow": ["f"]}}"#);
    assert_eq!(rules(&watched.current().unwrap())[0], ("f", RuleList::Allow));
    std::fs::remove_file(path).unwrap();
    assert_eq!(rules(&watched.current().unwrap()), [("*", RuleList::Ask)]);
    Project::write(&project.files.user, r#"{"permissions": {"deny": ["g"]}}"#);
    assert_eq!(rules(&watched.current().unwrap())[0], ("g", RuleList::Deny));
    drop(project.root);
}

/// Everything that a project's file can say.
const WIDE: &str = r#"{
    "permissions": {"allow": ["a", "*"], "deny": ["b"], "ask": ["c"]},
    "mcpServers": {"a": {"command": "npx", "args": ["-y", "x@1.0.0", "${KEY}"], "env": {"T": "${TOKEN}"}, "allowScripts": true}},
    "approvals": {"ttlSeconds": 90, "by": "human", "dialog": "never"},
    "askUser": {"enabled": false, "keepDays": 300},
    "limits": {"lineBytes": 1073741824}
}"#;

#[test]
fn a_file_that_nobody_accepted_declares_and_narrows_and_widens_nothing() {
    let project = Project::new();
    Project::write(&project.files.user, r#"{"projectTrust": "strict"}"#);
    Project::write(&project.files.project, WIDE);
    let config = read(&project.files).unwrap();
    let unaccepted = config.project.unaccepted().unwrap();
    assert_eq!(unaccepted.origin, FileOrigin::Strict);
    assert_eq!(
        rules(&config),
        [("c", RuleList::Ask), ("b", RuleList::Deny), ("*", RuleList::Ask)]
    );
    let withheld: Vec<_> = config.withheld.iter().map(|rule| rule.pattern.as_str()).collect();
    assert_eq!(withheld, ["a", "*"]);
    let defaults = Config::default();
    let expected = ApprovalSettings {
        by: By::Human,
        ..defaults.approvals
    };
    assert_eq!(config.approvals, expected);
    assert_eq!(config.ask_user.kept, defaults.ask_user.kept);
    assert_eq!(config.ask_user.tools, AskUserTools::Off);
    assert_eq!(config.line_limit, defaults.line_limit);
    assert!(config.is_from_outside(&config.servers[&"a".parse().unwrap()]));
    assert_eq!(
        unaccepted.wants,
        [
            "runs without a question: `a`",
            "runs without a question: `*`",
            "declares `a`: npx -y x@1.0.0 ${KEY}",
            "gives `a` the variable T, made of your ${TOKEN}",
            "puts your ${KEY} into how `a` is reached",
            "lets install scripts run for `a`",
            "asks you without your client's own dialogs",
            "decides how long a suspended call waits for your answer",
            "takes away the tools by which a model asks you",
            "decides how long a model's question waits",
            "decides how long a line from a server may be",
            "never runs: `b`",
            "asks before it runs: `c`",
        ]
    );
}

#[test]
fn an_accepted_text_counts_whole_and_with_one_byte_changed_it_does_not() {
    let project = Project::new();
    Project::write(&project.files.user, r#"{"projectTrust": "strict"}"#);
    Project::write(&project.files.project, WIDE);
    let mut watched = WatchedConfig::new(project.files.clone());
    let unaccepted = watched.current().unwrap().project.unaccepted().unwrap().clone();
    let mark = TrustMark {
        file: unaccepted.file.clone(),
        content: unaccepted.content.clone(),
        wants: unaccepted.wants.clone(),
        parts: unaccepted.parts.clone(),
        by: "cli".to_owned(),
    };
    Project::write(
        &project.files.accepted.path_of(&mark.content),
        serde_json::to_string(&mark).unwrap(),
    );
    assert_eq!(watched.current().unwrap().project, ProjectTrust::Obeyed);
    assert_eq!(watched.current().unwrap().approvals.dialog, DialogMode::Never);
    for at in (0..WIDE.len()).filter(|at| WIDE.is_char_boundary(*at)) {
        let mut flipped = WIDE.as_bytes().to_vec();
        flipped[at] ^= 1;
        Project::write(&project.files.project, flipped);
        if let Ok(config) = watched.current() {
            let unaccepted = config
                .project
                .unaccepted()
                .expect("another text was not accepted");
            assert_eq!(unaccepted.accepted_before, mark.wants);
            assert!(!config.rules.iter().any(|rule| rule.list == RuleList::Allow));
        }
    }
    Project::write(&project.files.project, WIDE);
    assert_eq!(watched.current().unwrap().project, ProjectTrust::Obeyed);
}

#[test]
fn everything_that_a_server_of_a_project_takes_is_told_and_no_key_of_an_address() {
    let project = Project::new();
    let text = r#"{
        "mcpServers": {
            "far": {"url": "https://a.example/${PLACE}?key=${KEY}", "headers": {"A": "b", "C": "${D} ${E}"}},
            "near": {"command": "x", "args": ["b c", "d"], "env": {"F": "g", "NODE_OPTIONS": "--require e.js"}, "cwd": "/\u001b", "startup": "eager", "disabled": true}
        },
        "approvals": {"dialog": "auto"},
        "askUser": {"enabled": true, "mode": "blocking", "timeoutSeconds": 60}
    }"#;
    assert_eq!(
        mark_for(&project.files, text).unwrap().wants,
        [
            "declares `far`: https://a.example/${PLACE}?…",
            "sends the header A to `far`",
            "sends the header C to `far`, made of your ${D}, ${E}",
            "puts your ${KEY}, ${PLACE} into how `far` is reached",
            "declares `near`: x 'b c' d",
            "gives `near` the variable F",
            "gives `near` the variable NODE_OPTIONS, which decides what code runs: '--require e.js'",
            "runs `near` in /\\u{1b}",
            "starts `near` before anything calls it",
            "leaves `near` out",
            "offers the tools by which a model asks you",
            "lets a model's question hold its call",
            "decides how long a model's question waits",
        ]
    );
}

#[test]
fn every_pattern_is_told_however_many_there_are() {
    let project = Project::new();
    let wants = |count: usize| {
        let patterns: Vec<String> = (0..count).map(|number| format!("\"a:{number}\"")).collect();
        let text = format!(r#"{{"permissions": {{"deny": [{}]}}}}"#, patterns.join(","));
        mark_for(&project.files, &text).unwrap().wants
    };
    let named: Vec<String> = (0..5000)
        .map(|number| format!("never runs: `a:{number}`"))
        .collect();
    assert_eq!(wants(5000), named);
    let text = format!(
        r#"{{"permissions": {{"deny": [{}]}}}}"#,
        vec!["\"a:b\""; 5001].join(",")
    );
    let error = mark_for(&project.files, &text).unwrap_err().to_string();
    assert!(error.contains("more than 5000 patterns"), "{error}");
}

#[test]
fn a_text_that_was_replaced_by_an_accepted_one_is_not_accepted_with_it() {
    let project = Project::new();
    let files = &project.files;
    Project::write(&files.user, r#"{"projectTrust": "strict"}"#);
    let (old, accepted) = (WIDE, r#"{"permissions": {"allow": ["a"]}}"#);
    assert_eq!(
        trust_of(files, accepted).unwrap(),
        ProjectTrust::Obeyed,
        "without a file"
    );
    Project::write(&files.project, accepted);
    let unaccepted = trust_of(files, accepted).unwrap().unaccepted().cloned();
    assert_eq!(
        unaccepted.as_deref(),
        read(files).unwrap().project.unaccepted().map(|file| &**file)
    );
    let mark = mark_for(files, accepted).unwrap();
    assert_eq!(
        mark,
        TrustMark {
            file: files.project.clone(),
            content: TrustMarks::content_of(&files.project, accepted),
            wants: vec!["runs without a question: `a`".to_owned()],
            parts: DeclaredParts::of(accepted),
            by: "pml".to_owned(),
        }
    );
    Project::write(
        &files.accepted.path_of(&mark.content),
        serde_json::to_string(&mark).unwrap(),
    );
    assert_eq!(trust_of(files, accepted).unwrap(), ProjectTrust::Obeyed);
    let unaccepted = trust_of(files, old).unwrap().unaccepted().cloned();
    assert_eq!(
        unaccepted.as_deref(),
        Some(&UnacceptedFile {
            file: files.project.clone(),
            content: TrustMarks::content_of(&files.project, old),
            origin: FileOrigin::Strict,
            wants: mark_for(files, old).unwrap().wants,
            accepted_before: mark.wants,
            parts: DeclaredParts::of(old),
            parts_before: mark.parts,
        })
    );
}

#[test]
fn a_project_cannot_say_how_far_it_is_trusted() {
    let project = Project::new();
    Project::write(&project.files.project, r#"{"projectTrust": "own-work"}"#);
    let error = read(&project.files).unwrap_err().to_string();
    assert!(
        error.contains(":1:2: a project cannot decide whether it is trusted"),
        "{error}"
    );
}

#[test]
fn only_the_user_says_whether_what_cannot_be_recorded_may_happen() {
    let project = Project::new();
    assert_eq!(read(&project.files).unwrap().audit, Audit::Required);
    Project::write(&project.files.user, r#"{"audit": "best-effort"}"#);
    assert_eq!(read(&project.files).unwrap().audit, Audit::BestEffort);
    Project::write(&project.files.project, r#"{"audit": "best-effort"}"#);
    let error = read(&project.files).unwrap_err().to_string();
    assert!(
        error.contains(":1:2: a project cannot decide whether what it does is recorded"),
        "{error}"
    );
}

#[test]
fn only_the_user_says_how_old_a_version_must_be() {
    let project = Project::new();
    assert_eq!(read(&project.files).unwrap().min_release_age.days(), 1);
    Project::write(&project.files.user, r#"{"minReleaseAgeDays": 0}"#);
    assert_eq!(read(&project.files).unwrap().min_release_age.days(), 0);
    Project::write(&project.files.user, r#"{"minReleaseAgeDays": 365}"#);
    assert_eq!(
        read(&project.files).unwrap().min_release_age.to_string(),
        "365 days"
    );
    Project::write(&project.files.project, r#"{"minReleaseAgeDays": 0}"#);
    let error = read(&project.files).unwrap_err().to_string();
    assert!(
        error.contains(":1:2: a project cannot decide how old what it has installed must be"),
        "{error}"
    );
}

#[test]
fn who_is_asked_and_where_is_the_users_choice_alone() {
    let project = Project::new();
    let settings = r#"{"channels": {"telegram": {"token": "${TELEGRAM_TOKEN}", "people": [1]}}}"#;
    Project::write(&project.files.user, settings);
    let telegram = read(&project.files).unwrap().channels.telegram.unwrap();
    assert_eq!(telegram.basics.people, ["1"]);
    Project::write(&project.files.user, "{}");
    Project::write(&project.files.project, settings);
    let refused = read(&project.files).unwrap_err().to_string();
    assert!(
        refused.contains("a project cannot decide who is asked, or where"),
        "{refused}"
    );
}

#[test]
fn the_parts_of_another_text_than_was_accepted_are_not_known() {
    let project = Project::new();
    let file = &project.files.project;
    let accepted = r#"{"mcpServers": {"a": {"command": "run"}}}"#;
    let content = TrustMarks::content_of(file, accepted);
    assert_eq!(parts_of(file, &content), DeclaredParts::default(), "no file");
    Project::write(file, accepted);
    assert_eq!(parts_of(file, &content), DeclaredParts::of(accepted));
    assert_ne!(parts_of(file, &content), DeclaredParts::default());
    Project::write(file, r#"{"mcpServers": {"a": {"command": "evil"}}}"#);
    assert_eq!(parts_of(file, &content), DeclaredParts::default());
}
