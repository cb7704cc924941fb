//! The semantics by example, and against a slow oracle that shares no code with the policy.

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn rule(list: RuleList, pattern: &str) -> Rule {
    Rule {
        pattern: pattern.parse().unwrap(),
        list,
        source: None,
    }
}

/// The rules, where every tool whose name has an `r` only reads.
fn policy(rules: &[Rule]) -> Policy {
    let config = Config {
        rules: rules.to_vec(),
        ..Config::default()
    };
    Policy::knowing(&config, ReadOnlyTools::told_by(|name| name.contains('r')))
}

fn tool(name: &str) -> ToolName {
    name.parse().unwrap()
}

use RuleList::{Allow, Ask, Deny};

const FIRST: Ruling = Ruling::Ask(AskKind::First);
const EVERY: Ruling = Ruling::Ask(AskKind::Every);

#[test]
fn the_rules_decide_as_the_readme_says() {
    for (rules, expected, by) in [
        (&[][..], FIRST, None),
        (&[(Ask, "*")], FIRST, Some("*")),
        (&[(Allow, "*")], Ruling::Allow, Some("*")),
        (&[(Allow, "fs"), (Ask, "*")], Ruling::Allow, Some("fs")),
        (&[(Allow, "other"), (Ask, "*")], FIRST, Some("*")),
        // Deny always wins, however narrow the others are.
        (&[(Allow, "fs:read"), (Deny, "*")], Ruling::Deny, Some("*")),
        (&[(Deny, "*"), (Deny, "fs:read")], Ruling::Deny, Some("fs:read")),
        // The most specific pattern wins, in either direction.
        (&[(Allow, "fs"), (Ask, "fs:re*")], EVERY, Some("fs:re*")),
        (&[(Ask, "fs"), (Allow, "fs:re*")], Ruling::Allow, Some("fs:re*")),
        (
            &[(Ask, "fs:rea*"), (Allow, "fs:read")],
            Ruling::Allow,
            Some("fs:read"),
        ),
        // A tie asks: before every call, unless the rule is about everything.
        (&[(Allow, "fs:read"), (Ask, "fs:read")], EVERY, Some("fs:read")),
        (&[(Allow, "fs:*"), (Ask, "fs")], EVERY, Some("fs")),
        (&[(Allow, "*"), (Ask, "*:*")], FIRST, Some("*:*")),
        // A pattern of tools that only read is narrower than the same one of all tools, and than none other.
        (
            &[(Allow, "*@readonly"), (Ask, "*")],
            Ruling::Allow,
            Some("*@readonly"),
        ),
        (
            &[(Allow, "fs:read@readonly"), (Ask, "fs:read")],
            Ruling::Allow,
            Some("fs:read@readonly"),
        ),
        (&[(Allow, "*@readonly"), (Ask, "fs")], EVERY, Some("fs")),
        (&[(Allow, "fs@readonly"), (Ask, "fs:re*")], EVERY, Some("fs:re*")),
        (&[(Allow, "*@readonly"), (Deny, "fs")], Ruling::Deny, Some("fs")),
    ] {
        let rules: Vec<_> = rules.iter().map(|(list, pattern)| rule(*list, pattern)).collect();
        let verdict = policy(&rules).check(&tool("fs:read"));
        let decided = verdict.rule.as_ref().map(|rule| rule.pattern.as_str());
        assert_eq!((verdict.ruling, decided), (expected, by), "{rules:?}");
    }
}

#[test]
fn of_equal_rules_the_first_is_named() {
    let place = |line| {
        Some(crate::config::FilePosition {
            file: "x".into(),
            line,
            column: 1,
        })
    };
    let mut rules = [rule(Deny, "fs:read"), rule(Deny, "fs:read")];
    rules[0].source = place(1);
    rules[1].source = place(2);
    let verdict = policy(&rules).check(&tool("fs:read"));
    assert_eq!(verdict.rule.as_deref(), Some(&rules[0]));
}

#[test]
fn what_stands_against_an_allow_rule_is_named() {
    let obstacle = |list, pattern: &str| policy(&[rule(list, pattern)]).obstacle(&tool("fs:read"));
    for (list, pattern) in [(Deny, "*"), (Deny, "fs:read"), (Ask, "fs:read")] {
        assert_eq!(obstacle(list, pattern).as_deref(), Some(&rule(list, pattern)));
    }
    for (list, pattern) in [(Ask, "*"), (Ask, "fs:rea?"), (Allow, "fs:read"), (Deny, "other")] {
        assert_eq!(obstacle(list, pattern), None);
    }
}

#[test]
fn a_tool_that_is_not_accepted_as_reading_is_not_covered() {
    let rules = [rule(Allow, "*@readonly"), rule(Allow, "fs:save@readonly")];
    let check = |policy: &Policy, name: &str| policy.check(&tool(name)).ruling;
    assert_eq!(check(&policy(&rules), "fs:read"), Ruling::Allow);
    assert_eq!(check(&policy(&rules), "fs:save"), FIRST);
    let config = Config {
        rules: rules.to_vec(),
        ..Config::default()
    };
    assert_eq!(check(&Policy::new(&config), "fs:read"), FIRST);
}

#[test]
fn words_of_a_command_narrow_the_shell_of_the_client() {
    let rules = [
        rule(Ask, "client:Bash"),
        rule(Allow, "client:Bash(git status)"),
        rule(Allow, "client:Bash(git push)"),
        rule(Ask, "client:Bash(git push origin)"),
        rule(Deny, "client:Bash(rm -rf)"),
    ];
    let policy = policy(&rules);
    let bash = tool("client:Bash");
    for (command, expected, by) in [
        ("git status --short", Ruling::Allow, "client:Bash(git status)"),
        ("git push", Ruling::Allow, "client:Bash(git push)"),
        ("git push origin", EVERY, "client:Bash(git push origin)"),
        ("git log", EVERY, "client:Bash"),
        ("git status; x", EVERY, "client:Bash"),
        (
            "git status $(git push origin)",
            EVERY,
            "client:Bash(git push origin)",
        ),
        ("git status && rm -rf x", Ruling::Deny, "client:Bash(rm -rf)"),
    ] {
        let verdict = policy.check_command(&bash, command);
        let decided = verdict.rule.as_ref().map(|rule| rule.pattern.as_str());
        assert_eq!((verdict.ruling, decided), (expected, Some(by)), "{command}");
    }
    // The tool itself is what the rules of its name say.
    assert_eq!(policy.check(&bash).ruling, EVERY);
}

#[test]
fn a_list_of_tools_takes_away_whatever_rules_allow() {
    let text = r#"{"permissions": {"allow": ["*"]}, "mcpServers": {
        "fs": {"command": "x", "tools": ["read*", "!read_secret"]}, "git": {"command": "x"}}}"#;
    let config = crate::config::check("/home/user/pml.json".as_ref(), text).unwrap();
    let policy = Policy::new(&config);
    let check = |name: &str| policy.check(&tool(name)).ruling;
    for name in [
        "fs:read",
        "git:write",
        "fs:connect",
        "fs:prompts/write",
        "fs:resources/file:///x",
    ] {
        assert_eq!(check(name), Ruling::Allow, "{name}");
    }
    for name in ["fs:write", "fs:read_secret"] {
        assert_eq!(check(name), Ruling::Deny, "{name}");
        assert!(policy.obstacle(&tool(name)).is_some(), "{name}");
    }
    for name in ["fs:connect", "fs:prompts/write"] {
        assert!(policy.not_offered(&tool(name)).is_some(), "{name}");
    }
}

/// Matches `*` and `?` by trying everything; knows nothing of globset.
fn slow_match(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => {
            slow_match(&pattern[1..], name) || (!name.is_empty() && slow_match(pattern, &name[1..]))
        }
        (Some(b'?'), Some(_)) => slow_match(&pattern[1..], &name[1..]),
        (Some(one), Some(other)) => one == other && slow_match(&pattern[1..], &name[1..]),
        _ => false,
    }
}

/// Decides by the sentence of the readme, word for word.
fn oracle(rules: &[(RuleList, String)], name: &str) -> Ruling {
    let reads = name.contains('r');
    let unconditional = |pattern: &String| pattern.strip_suffix("@readonly").unwrap_or(pattern).to_owned();
    let is_narrowed = |pattern: &str| usize::from(pattern.ends_with("@readonly"));
    let full = |pattern: &str| {
        if pattern == "*" || pattern.contains(':') {
            pattern.to_owned()
        } else {
            format!("{pattern}:*")
        }
    };
    let literals = |pattern: &str| {
        let full = full(pattern);
        if full.contains(['*', '?']) {
            full.chars().filter(|found| !"*?:".contains(*found)).count()
        } else {
            usize::MAX
        }
    };
    let covering: Vec<_> = rules
        .iter()
        .filter(|(_, pattern)| slow_match(full(&unconditional(pattern)).as_bytes(), name.as_bytes()))
        .filter(|(_, pattern)| reads || is_narrowed(pattern) == 0)
        .collect();
    if covering.iter().any(|(list, _)| *list == Deny) {
        return Ruling::Deny;
    }
    let weight = |pattern: &String| (literals(&unconditional(pattern)), is_narrowed(pattern));
    let Some(most) = covering.iter().map(|(_, pattern)| weight(pattern)).max() else {
        return FIRST;
    };
    let mut best = covering.iter().filter(|(_, pattern)| weight(pattern) == most);
    if best.any(|(list, _)| *list == Ask) {
        if most == (0, 0) { FIRST } else { EVERY }
    } else {
        Ruling::Allow
    }
}

fn patterns() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just("*".to_owned()),
        4 => "[ar*?]{1,3}:[ar*?]{1,3}(@readonly)?",
        2 => "[ar*?]{1,3}(@readonly)?",
        2 => "[ar]{1,2}:[ar]{1,2}(@readonly)?",
        1 => Just("*@readonly".to_owned()),
    ]
}

fn rules() -> impl Strategy<Value = Vec<(RuleList, String)>> {
    let list = prop_oneof![Just(Allow), Just(Ask), Just(Deny)];
    proptest::collection::vec((list, patterns()), 0..6)
}

fn of(rules: &[(RuleList, String)]) -> Policy {
    let rules: Vec<_> = rules.iter().map(|(list, pattern)| rule(*list, pattern)).collect();
    policy(&rules)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_policy_agrees_with_the_oracle(rules in rules(), name in "[ar]{1,3}:[ar:]{1,3}") {
        prop_assert_eq!(of(&rules).check(&tool(&name)).ruling, oracle(&rules, &name));
    }

    #[test]
    fn adding_a_deny_never_enables_anything(
        mut rules in rules(), denied in patterns(), at in 0usize..6, name in "[ar]{1,3}:[ar]{1,3}",
    ) {
        let before = of(&rules).check(&tool(&name)).ruling;
        rules.insert(at.min(rules.len()), (Deny, denied));
        let after = of(&rules).check(&tool(&name)).ruling;
        prop_assert!(after == before || after == Ruling::Deny);
    }

    #[test]
    fn the_order_of_rules_decides_nothing(rules in rules(), name in "[ar]{1,3}:[ar]{1,3}") {
        let mut turned = rules.clone();
        turned.reverse();
        prop_assert_eq!(of(&rules).check(&tool(&name)).ruling, of(&turned).check(&tool(&name)).ruling);
    }

    #[test]
    fn an_obstacle_is_what_wins_once_the_tool_is_allowed(mut rules in rules(), name in "[ar]{1,2}:[ar]{1,2}") {
        let tool = tool(&name);
        let obstacle = of(&rules).obstacle(&tool);
        rules.push((Allow, name));
        let verdict = of(&rules).check(&tool);
        if let Some(obstacle) = obstacle {
            prop_assert_eq!(verdict.rule, Some(obstacle));
        } else {
            prop_assert_eq!(verdict.ruling, Ruling::Allow);
        }
    }
}

#[test]
fn a_server_is_denied_only_if_no_tool_of_it_can_run() {
    let name = "fs".parse().unwrap();
    let verdict = |rules: &[(RuleList, &str)], tools: &[&str]| {
        let rules: Vec<Rule> = rules.iter().map(|(list, pattern)| rule(*list, pattern)).collect();
        policy(&rules).server(&name, tools)
    };
    let denied = |pattern: &str| ServerVerdict::Denied(Arc::new(rule(Deny, pattern)));
    assert_eq!(verdict(&[], &[]), ServerVerdict::Asks);
    assert_eq!(verdict(&[(Deny, "*"), (Allow, "fs:read")], &[]), denied("*"));
    assert_eq!(verdict(&[(Deny, "fs")], &["read", "write"]), denied("fs"));
    assert_eq!(verdict(&[(Deny, "fs:write")], &[]), ServerVerdict::Asks);
    assert_eq!(verdict(&[(Deny, "fs:write")], &["write"]), denied("fs:write"));
    assert_eq!(verdict(&[(Allow, "fs:read")], &[]), ServerVerdict::Allowed);
    assert_eq!(verdict(&[(Allow, "fs:read")], &["write"]), ServerVerdict::Allowed);
    assert_eq!(verdict(&[(Allow, "fsx"), (Ask, "*")], &[]), ServerVerdict::Asks);
}

#[test]
fn the_strictest_verdict_on_any_spelling_of_a_resource_counts() {
    let check = |rules: &[(RuleList, &str)], uri: &str| {
        let rules: Vec<_> = rules.iter().map(|(list, pattern)| rule(*list, pattern)).collect();
        policy(&rules).check(&tool(&format!("fs:resources/{uri}"))).ruling
    };
    let narrowed = [(Allow, "fs"), (Deny, "fs:resources/file:///etc/*")];
    let listed = [(Allow, "fs:resources/file:///pub/*"), (Ask, "*")];
    let asked = [(Allow, "fs"), (Ask, "fs:resources/file:///pub/\u{e4}*")];
    let exact = [(Allow, "fs"), (Deny, "fs:resources/FILE:/etc/./secret")];
    let blank = [
        (Allow, "fs"),
        (Deny, "fs:resources/file:///my notes/*"),
        (Deny, "fs:resources/file:///your%20notes/*"),
    ];
    let one = [
        (Allow, "fs:resources/file:///pub/a\\?x"),
        (Ask, "fs:resources/file:///pub/*"),
    ];
    for (rules, uri, expected) in [
        (&narrowed[..], "file:///home/a", Ruling::Allow),
        (&narrowed, "file:///pub/../etc/x", Ruling::Deny),
        (&narrowed, "FILE://LocalHost/%65tc/x", Ruling::Deny),
        (&listed, "file:///pub/my%20notes/\u{e4}", Ruling::Allow),
        (&listed, "file:///pub/my notes/\u{e4}", Ruling::Allow),
        (&blank, "file:///my%20notes/a", Ruling::Deny),
        (&blank, "file:///my notes/../your notes/a", Ruling::Deny),
        (&listed, "file:///pub/../home/a", FIRST),
        (&listed, "file:///pub/a?/../../home/a", FIRST),
        (&asked, "file:///pub/%C3%A4", EVERY),
        (&exact, "file:///etc/secret", Ruling::Deny),
        (&exact, "file://localhost/etc/secret", Ruling::Deny),
        (&one, "file:///pub/a?x", Ruling::Allow),
        (&one, "file:///pub/a", EVERY),
        // A tool is no resource.
        (&[(Allow, "fs")], "x", Ruling::Allow),
    ] {
        assert_eq!(check(rules, uri), expected, "{rules:?} {uri}");
    }
    let denied = policy(&[rule(Deny, "fs:resources/file:///etc/*")]);
    let obstacle = denied.obstacle(&tool("fs:resources/file:///%65tc/x"));
    assert_eq!(obstacle.unwrap().pattern.as_str(), "fs:resources/file:///etc/*");
}

#[test]
fn of_equally_strict_spellings_the_rule_about_the_written_one_is_named() {
    let rules = [
        rule(Deny, "fs:resources/file:///etc/*"),
        rule(Deny, "fs:resources/file:///pub/*"),
    ];
    let verdict = policy(&rules).check(&tool("fs:resources/file:///pub/../etc/x"));
    assert_eq!(verdict.rule.as_deref(), Some(&rules[1]));
}

#[test]
fn no_rule_lets_a_server_from_outside_run_unasked_until_its_file_is_accepted() {
    use crate::config::{FileOrigin, ProjectTrust, UnacceptedFile};
    let declared = |file: &str, text: &str| crate::config::check(file.as_ref(), text).unwrap();
    let mut config = declared(
        "/home/user/pml.json",
        r#"{"permissions": {"allow": ["*"], "deny": ["fs:write"]}, "mcpServers": {"own": {"command": "x"}}}"#,
    );
    let project = declared(
        "/project/.pml.json",
        r#"{"mcpServers": {"fs": {"command": "x"}}}"#,
    );
    config.servers.extend(project.servers);
    config.withheld = vec![rule(Ask, "own:read")];
    let verdicts = |policy: &Policy| {
        ["own:read", "fs:read", "fs:write"].map(|name| {
            let verdict = policy.check(&tool(name));
            let by = verdict.rule.map(|rule| rule.pattern.as_str().to_owned());
            (verdict.ruling, by)
        })
    };
    let by = |ruling, pattern: &str| (ruling, Some(pattern.to_owned()));
    let trusted = [
        by(Ruling::Allow, "*"),
        by(Ruling::Allow, "*"),
        by(Ruling::Deny, "fs:write"),
    ];
    assert_eq!(verdicts(&Policy::new(&config)), trusted);
    config.project = ProjectTrust::Unaccepted(Arc::new(UnacceptedFile {
        file: "/project/.pml.json".into(),
        content: crate::protocol::Digest::of(["text"]),
        origin: FileOrigin::Repository,
        wants: Vec::new(),
        accepted_before: Vec::new(),
        parts: crate::config::DeclaredParts::default(),
        parts_before: crate::config::DeclaredParts::default(),
    }));
    assert_eq!(
        verdicts(&Policy::new(&config)),
        [
            by(Ruling::Allow, "*"),
            (FIRST, None),
            by(Ruling::Deny, "fs:write")
        ]
    );
    let with_its_rules = [by(EVERY, "own:read"), trusted[1].clone(), trusted[2].clone()];
    assert_eq!(verdicts(&Policy::if_accepted(&config)), with_its_rules);
}
