//! A dependency's process: started under its supervisor, talked to, stopped.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use pml::config::Environment;
use pml::loader::process::{Exit, LaunchLine, Pipes, Process, SpawnError, Urgency, spawn};
use pml::loader::variables::variables;
use pml::protocol::{DependencyName, Secrets};
use pretty_assertions::assert_eq;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{DEADLINE, MARK, assert_no_survivor, eventually, fake_server, mark, marked, pml};

fn name() -> DependencyName {
    "fake".parse().unwrap()
}

fn line(program: impl Into<PathBuf>, arguments: &[&str]) -> LaunchLine {
    LaunchLine {
        program: program.into(),
        arguments: arguments.iter().map(OsString::from).collect(),
        variables: BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
        directory: "/".into(),
        secrets: Secrets::default(),
    }
}

fn started(line: &LaunchLine) -> (Process, Pipes) {
    spawn(&name(), line, pml()).unwrap()
}

/// Starts `sh -c SCRIPT` with a mark.
fn marked_shell(script: &str) -> (Process, Pipes, String) {
    let mark = mark();
    let mut line = line("sh", &["-c", script]);
    line.variables.insert(MARK.into(), mark.clone().into());
    let (process, pipes) = started(&line);
    (process, pipes, mark)
}

/// Runs `sh -c SCRIPT` to its end; returns what it wrote and how it ended.
async fn run(script: &str) -> (String, Exit) {
    let (mut process, mut pipes) = started(&line("sh", &["-c", script]));
    let mut text = String::new();
    pipes.stdout.read_to_string(&mut text).await.unwrap();
    (text, process.exited().await)
}

async fn first_line(pipes: &mut Pipes) -> String {
    let mut line = String::new();
    let mut reader = BufReader::new(&mut pipes.stdout);
    tokio::time::timeout(DEADLINE, reader.read_line(&mut line))
        .await
        .unwrap()
        .unwrap();
    line
}

#[tokio::test]
async fn bytes_pass_both_ways_and_the_end_of_stdin_ends_the_server() {
    let (
        process,
        Pipes {
            mut stdin,
            mut stdout,
        },
    ) = started(&line("cat", &[]));
    stdin.write_all(b"{\"a\": \"\xff\"}\n").await.unwrap();
    drop(stdin);
    let mut echoed = Vec::new();
    stdout.read_to_end(&mut echoed).await.unwrap();
    assert_eq!(
        (echoed, process.stop(Urgency::Gentle).await),
        (b"{\"a\": \"\xff\"}\n".to_vec(), Exit::Code(0))
    );
}

#[tokio::test]
async fn a_server_that_closes_its_stdin_and_lives_on_is_seen_and_ended() {
    let (mut process, mut pipes, mark) = marked_shell("exec <&-; echo closed; exec sleep 1000");
    assert_eq!(first_line(&mut pipes).await, "closed\n");
    let written = pipes.stdin.write_all(b"{}\n").await;
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    drop(pipes.stdin);
    assert_eq!(process.exited().await, Exit::Signal(15));
    assert_no_survivor(&mark, "after its stdin was closed");
}

#[tokio::test]
async fn the_end_of_stdout_is_seen_while_the_server_lives_on() {
    let (process, mut pipes, mark) = marked_shell("echo last; exec >&-; exec sleep 1000");
    let mut text = String::new();
    let read = pipes.stdout.read_to_string(&mut text);
    tokio::time::timeout(DEADLINE, read).await.unwrap().unwrap();
    assert_eq!(text, "last\n");
    assert!(!marked(&mark).is_empty());
    assert_eq!(process.stop(Urgency::AtOnce).await, Exit::Signal(15));
    assert_no_survivor(&mark, "after the stop");
}

#[tokio::test]
async fn the_exit_code_or_the_signal_of_the_server_comes_back() {
    let mut exits = Vec::new();
    for script in ["exit 0", "exit 7", "exit 127", "kill -SEGV $$", "kill -KILL $$"] {
        exits.push(run(script).await.1);
    }
    assert_eq!(
        exits,
        [
            Exit::Code(0),
            Exit::Code(7),
            Exit::Code(127),
            Exit::Signal(11),
            Exit::Signal(9)
        ]
    );
}

#[tokio::test]
async fn a_program_that_is_missing_or_not_executable_is_told() {
    let mut exits = Vec::new();
    for program in ["no-such-program", "/dev/null"] {
        let (mut process, _pipes) = started(&line(program, &[]));
        exits.push(process.exited().await.to_string());
    }
    assert_eq!(
        exits,
        [
            "could not be started: `no-such-program`: there is no such program on the PATH",
            "could not be started: `/dev/null`: Permission denied (os error 13)",
        ]
    );
}

#[tokio::test]
async fn a_missing_directory_is_told_before_anything_starts() {
    let mut line = line("true", &[]);
    line.directory = "/no/such/directory".into();
    let error = spawn(&name(), &line, pml()).unwrap_err();
    assert!(matches!(error, SpawnError::Directory { .. }));
    assert_eq!(
        pml::report::render_hinted(&error),
        "cannot start `fake`: its working directory `/no/such/directory` does not exist\n\n\
         hint: to create it: mkdir -p /no/such/directory"
    );
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let arguments = [
        "-c",
        r#"printf '[%s]' "$@""#,
        "sh",
        "--",
        "-x",
        "",
        "a b",
        "--config",
    ];
    let (mut process, mut pipes) = started(&line("sh", &arguments));
    let mut text = String::new();
    pipes.stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!(
        (text.as_str(), process.exited().await),
        ("[--][-x][][a b][--config]", Exit::Code(0))
    );
}

#[tokio::test]
async fn a_server_gets_three_descriptors_whatever_pml_inherited() {
    let leaked = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    assert_eq!(
        run("ls /proc/$$/fd; exit 0").await,
        ("0\n1\n2\n".to_owned(), Exit::Code(0))
    );
}

/// A pml started by `nohup` or by a shell in the background ignores signals; its servers must not.
#[test]
fn a_server_ignores_no_signal_because_pml_does() {
    let script = r#"trap "" INT QUIT HUP TERM; exec "$0" supervise -- grep SigIgn /proc/self/status"#;
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(pml())
        .stdin(Stdio::piped())
        .output()
        .unwrap();
    let status = String::from_utf8(output.stdout).unwrap();
    let mask = status.strip_prefix("SigIgn:").unwrap().trim();
    let ignored = u64::from_str_radix(mask, 16).unwrap();
    let found: Vec<i32> = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::PIPE, Signal::TERM]
        .map(Signal::as_raw)
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) != 0)
        .collect();
    assert_eq!(found, [] as [i32; 0]);
}

#[tokio::test]
async fn none_of_200_canaries_reaches_a_server_that_does_not_declare_it() {
    let prefixes = [
        "ANTHROPIC_",
        "CLAUDE_",
        "AWS_",
        "GITHUB_",
        "OPENAI_",
        "NPM_CONFIG_",
        "SSH_",
        "HTTP_",
        "PATH_",
        "X",
    ];
    let names = ["TOKEN", "API_KEY", "SECRET", "PASSWORD"];
    let canaries = (0..200).map(|number| {
        let (prefix, name) = (prefixes[number % 10], names[number % 4]);
        (format!("{prefix}{name}_{number}"), format!("canary-{number}"))
    });
    let passed = [
        ("HOME", "/home/user"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
        ("https_proxy", "http://proxy"),
    ];
    let all = passed
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .chain(canaries);
    let declared = BTreeMap::from([("DECLARED".to_owned(), "yes".to_owned())]);
    let mut line = line("env", &[]);
    line.variables = variables(&Environment::new(all, "/"), &declared);
    let (mut process, mut pipes) = started(&line);
    let mut text = String::new();
    pipes.stdout.read_to_string(&mut text).await.unwrap();
    process.exited().await;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "DECLARED=yes",
            "HOME=/home/user",
            "LANG=C.UTF-8",
            "PATH=/usr/bin:/bin",
            "https_proxy=http://proxy"
        ]
    );
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_stdin_and_sigterm_is_killed() {
    for urgency in [Urgency::Gentle, Urgency::AtOnce] {
        let (process, mut pipes, mark) =
            marked_shell("trap '' TERM; echo ready; while :; do sleep 1000; done");
        assert_eq!(first_line(&mut pipes).await, "ready\n");
        drop(pipes);
        assert_eq!(process.stop(urgency).await, Exit::Signal(9), "{urgency:?}");
        assert_no_survivor(&mark, "after the kill");
    }
}

#[tokio::test]
async fn a_server_below_a_wrapper_has_time_to_clean_up_after_sigterm() {
    let directory = tempfile::tempdir().unwrap();
    let cleaned = directory.path().join("cleaned");
    let script = format!(
        "sh -c 'trap \"sleep 0.02; touch {}; exit\" TERM; echo ready; while :; do sleep 0.01; done' & wait",
        cleaned.display()
    );
    let (process, mut pipes, mark) = marked_shell(&script);
    assert_eq!(first_line(&mut pipes).await, "ready\n");
    drop(pipes);
    process.stop(Urgency::Gentle).await;
    assert!(cleaned.exists());
    assert_no_survivor(&mark, "after the stop");
}

#[tokio::test]
async fn a_gentle_stop_ends_even_when_stdin_is_still_held() {
    let (process, _pipes, mark) = marked_shell("exec cat");
    assert_eq!(process.stop(Urgency::Gentle).await, Exit::Signal(15));
    assert_no_survivor(&mark, "after the stop");
}

#[tokio::test]
async fn dropping_a_process_ends_it_although_its_pipes_are_held() {
    let (process, mut pipes, mark) = marked_shell("echo ready; exec cat");
    assert_eq!(first_line(&mut pipes).await, "ready\n");
    drop(process);
    assert_no_survivor(&mark, "after the drop");
}

#[tokio::test]
async fn ctrl_c_does_not_bypass_the_order_of_death() {
    let (process, mut pipes, mark) = marked_shell("kill -INT $PPID; kill -QUIT $PPID; echo asked; exec cat");
    assert_eq!(first_line(&mut pipes).await, "asked\n");
    pipes.stdin.write_all(b"still here\n").await.unwrap();
    assert_eq!(first_line(&mut pipes).await, "still here\n");
    drop(pipes);
    assert_eq!(process.stop(Urgency::Gentle).await, Exit::Code(0));
    assert_no_survivor(&mark, "after the stop");
}

#[tokio::test]
async fn a_server_whose_supervisor_is_killed_dies_with_it() {
    let (mut process, _pipes, mark) = marked_shell("trap '' TERM HUP; kill -KILL $PPID; exec sleep 1000");
    assert_eq!(process.exited().await, Exit::Unsupervised);
    assert_no_survivor(&mark, "after the supervisor was killed");
}

#[tokio::test]
async fn a_crash_leaves_the_end_of_stderr_however_much_came_before() {
    let line = line(fake_server(), &["--flood", "3000000", "--crash-on-call", "1"]);
    let (mut process, mut pipes) = started(&line);
    let call = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n";
    pipes.stdin.write_all(call).await.unwrap();
    let exit = tokio::time::timeout(DEADLINE, process.exited()).await.unwrap();
    assert_eq!(
        (exit, process.stderr().tail().as_str()),
        (Exit::Code(3), "…\n  at the very end")
    );
}

#[tokio::test]
async fn a_stop_right_after_the_start_leaves_nothing_behind() {
    for _ in 0..20 {
        let (process, _pipes, mark) = marked_shell("trap '' TERM; sleep 1000");
        let exit = process.stop(Urgency::AtOnce).await;
        assert!(matches!(exit, Exit::Signal(9 | 15)), "{exit:?}");
        assert_no_survivor(&mark, "after the stop");
    }
}

#[tokio::test]
async fn a_secret_that_a_server_prints_is_not_told() {
    let mut line = line("sh", &["-c", "echo \"wrong token: $TOKEN\" >&2; exit 1"]);
    line.variables.insert("TOKEN".into(), "canary-canary".into());
    line.secrets = Secrets::new([("TOKEN", "canary-canary")]);
    let (mut process, _pipes) = started(&line);
    assert_eq!(process.exited().await, Exit::Code(1));
    assert_eq!(process.stderr().tail(), "wrong token: [TOKEN]");
}

#[tokio::test]
async fn waiting_for_the_end_may_be_given_up_and_taken_up_again() {
    let (mut process, pipes) = started(&line("cat", &[]));
    let soon = std::time::Duration::from_millis(1);
    assert!(tokio::time::timeout(soon, process.exited()).await.is_err());
    drop(pipes);
    assert_eq!(process.exited().await, Exit::Code(0));
    assert_eq!(process.exited().await, Exit::Code(0));
}

/// Node gives its children sockets: a supervisor started that way must see the end of one just as well.
#[test]
fn the_end_of_a_socket_is_the_end_of_the_server() {
    for half in [false, true] {
        let mark = mark();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut supervisor = supervise(&mark, theirs);
        ours.write_all(b"unread\n").unwrap();
        eventually("the server runs", DEADLINE, || marked(&mark).len() >= 2);
        if half {
            ours.shutdown(std::net::Shutdown::Write).unwrap();
        } else {
            drop(ours);
        }
        assert_no_survivor(&mark, "after the socket closed");
        assert_eq!(supervisor.wait().unwrap().code(), Some(128 + 15));
    }
}

/// Starts a supervisor whose server never reads.
fn supervise(mark: &str, stdin: UnixStream) -> std::process::Child {
    Command::new(pml())
        .args(["supervise", "--", "sleep", "1000"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(MARK, mark)
        .stdin(std::os::fd::OwnedFd::from(stdin))
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}
