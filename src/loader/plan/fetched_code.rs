//! What the command of a server fetches by itself: code that pml does not pin, because it pins packages of registries alone.
//!
//! A guess by the words of the launch, for a person to read; nothing is decided by it.

use std::path::Path;

use super::runner::PackageRunner;
use crate::protocol::Shown;

/// A shell in a shell in a shell is looked into, and no deeper.
const DEPTH: usize = 3;

/// Returns what a person should know of what a command fetches, in words.
pub(super) fn notice(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    found(&words, DEPTH, Place::Launch)
}

/// Where a command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is the command of the server: a package in it is pinned by pml.
    Launch,
    /// It is started by another program.
    Inside,
}

fn found(words: &[&str], depth: usize, place: Place) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let (program, rest) = words.split_first()?;
    let program = program_name(program);
    match program.as_str() {
        "docker" | "podman" | "nerdctl" => image(rest),
        "uv" if subcommand(rest) == Some("run") && has_with(rest) => {
            Some("`uv run --with` fetches packages that are not pinned: what runs may change".to_owned())
        }
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "fish" | "cmd" | "powershell" | "pwsh" => {
            inside_shell(rest, depth)
        }
        "env" | "sudo" | "nice" | "nohup" | "timeout" | "time" | "exec" | "command" | "start" | "call" => {
            // Where its own options end is not known here: each word may begin the command.
            (0..rest.len()).find_map(|at| found(&rest[at..], depth, Place::Inside))
        }
        program => runner(program, rest, place),
    }
}

/// Returns the name of a program without its directory and the endings of Windows.
fn program_name(word: &str) -> String {
    let name = word
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(word)
        .to_ascii_lowercase();
    let path = Path::new(&name);
    let is_program = path
        .extension()
        .is_some_and(|ending| ["exe", "cmd", "bat"].iter().any(|known| ending == *known));
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.filter(|_| is_program).unwrap_or(&name).to_owned()
}

/// Returns the first word that is no option.
fn subcommand<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().copied().find(|word| !word.starts_with('-'))
}

fn has_with(words: &[&str]) -> bool {
    let is_with = |word: &&str| {
        ["--with", "--with-requirements", "--with-editable"]
            .iter()
            .any(|option| word == option || word.starts_with(&format!("{option}=")))
    };
    words.iter().any(is_with)
}

/// Judges a line of a shell: each of its commands.
fn inside_shell(words: &[&str], depth: usize) -> Option<String> {
    let is_line = |word: &&str| {
        let lower = word.to_ascii_lowercase();
        let cluster = lower.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|cluster| cluster.ends_with('c')) || ["/c", "/k", "-command"].contains(&&*lower)
    };
    let at = words.iter().position(is_line)?;
    let line = words[at + 1..].join(" ");
    commands(&line).iter().find_map(|command| {
        found(
            &command.iter().map(String::as_str).collect::<Vec<_>>(),
            depth,
            Place::Inside,
        )
    })
}

/// Splits a line of a shell into its commands and each into words; variables that are set before a command are no word.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let end = |word: &mut String, all: &mut Vec<Vec<String>>| {
        let word = std::mem::take(word);
        let Some(command) = all.last_mut() else { return };
        let is_setting = command.is_empty()
            && word.split_once('=').is_some_and(|(name, _)| {
                name.chars()
                    .all(|found| found.is_ascii_alphanumeric() || found == '_')
            });
        if !word.is_empty() && !is_setting {
            command.push(word);
        }
    };
    for found in line.chars() {
        match (quote, found) {
            (Some(open), found) if open == found => quote = None,
            (None, '"' | '\'') => quote = Some(found),
            (None, ';' | '&' | '|' | '(' | ')' | '{' | '}' | '`' | '\n') => {
                end(&mut word, &mut all);
                all.push(Vec::new());
            }
            (None, found) if found.is_whitespace() => end(&mut word, &mut all),
            (_, found) => word.push(found),
        }
    }
    end(&mut word, &mut all);
    all
}

/// Judges a runner of packages that pml does not read, or one that another program starts.
fn runner(program: &str, words: &[&str], place: Place) -> Option<String> {
    let first = subcommand(words).unwrap_or_default();
    let spelled = match (program, first) {
        ("bunx" | "pnpx", _) => program.to_owned(),
        ("bun", "x") | ("pnpm" | "yarn", "dlx") => format!("{program} {first}"),
        ("deno", "run") if words.iter().any(|word| is_elsewhere(word)) => "deno run".to_owned(),
        _ => {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let (known, _) = PackageRunner::of(program, &words)?;
            known.as_str().to_owned()
        }
    };
    let known = ["npx", "npm exec", "uvx", "uv tool run", "pipx run"].contains(&spelled.as_str());
    match (known, place) {
        // pml reads these itself: the plan has a package, and its exact version.
        (true, Place::Launch) => None,
        (true, Place::Inside) => Some(format!(
            "`{spelled}` in it fetches a package that pml does not pin: what runs may change; \
             to pin it, let the line begin with `{spelled}`"
        )),
        (false, _) => {
            let pinning = match program {
                "deno" => "",
                _ => "; to pin it, start it with `npx` instead",
            };
            Some(format!(
                "`{}` fetches a package that pml does not pin: what runs may change{pinning}",
                Shown::line(&spelled)
            ))
        }
    }
}

/// Tells whether a word names code of a registry or of an address.
fn is_elsewhere(word: &str) -> bool {
    ["npm:", "jsr:", "http://", "https://"]
        .iter()
        .any(|begin| word.starts_with(begin))
}

/// The options of `docker` and `podman` before the subcommand that take a value.
const GLOBAL: [&str; 21] = [
    "--config",
    "--context",
    "-c",
    "--host",
    "-H",
    "--log-level",
    "-l",
    "--tlscacert",
    "--tlscert",
    "--tlskey",
    "--connection",
    "--url",
    "--identity",
    "--root",
    "--runroot",
    "--runtime",
    "--storage-driver",
    "--storage-opt",
    "--cgroup-manager",
    "--namespace",
    "-n",
];

/// The options of `docker run` and `podman run` that take no value; all others do.
const WITHOUT_VALUE: [&str; 21] = [
    "--detach",
    "--disable-content-trust",
    "--env-host",
    "--help",
    "--http-proxy",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--no-hostname",
    "--no-hosts",
    "--oom-kill-disable",
    "--privileged",
    "--publish-all",
    "--quiet",
    "--read-only",
    "--replace",
    "--rm",
    "--rmi",
    "--sig-proxy",
    "--tls-verify",
    "--tty",
];

/// The same as letters.
const LETTERS_WITHOUT_VALUE: &str = "ditPq";

/// Judges what a runner of containers runs.
fn image(words: &[&str]) -> Option<String> {
    let at = after_options(words, |option| GLOBAL.contains(&option));
    let (sub, mut rest) = words.get(at..)?.split_first()?;
    let mut sub = *sub;
    if sub == "container" {
        let (next, after) = rest.split_first()?;
        (sub, rest) = (*next, after);
    }
    if sub != "run" {
        return None;
    }
    let image = rest.get(after_options(rest, takes_value));
    let is_pinned = image.is_some_and(|image| {
        let digest = image.split_once("@sha256:").map(|(_, digest)| digest);
        digest
            .is_some_and(|digest| !digest.is_empty() && digest.chars().all(|found| found.is_ascii_hexdigit()))
    });
    (!is_pinned).then(|| {
        "it fetches an image that is not pinned: what runs may change; to pin it: IMAGE@sha256:…".to_owned()
    })
}

/// Tells whether an option of `run` takes the next word.
fn takes_value(option: &str) -> bool {
    if option.starts_with("--") {
        return !WITHOUT_VALUE.contains(&option);
    }
    // In `-itv X` the last letter takes it; in `-eX=1` the first has it already.
    let mut letters = option[1..].chars();
    letters
        .find(|letter| !LETTERS_WITHOUT_VALUE.contains(*letter))
        .is_some_and(|_| letters.next().is_none())
}

/// Returns the place of the first word behind the options.
fn after_options(words: &[&str], takes_value: impl Fn(&str) -> bool) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if *word == "--" {
            return at + 1;
        }
        if !word.starts_with('-') || word.len() == 1 {
            return at;
        }
        at += 1;
        let is_attached = word.starts_with("--") && word.contains('=');
        if !is_attached && takes_value(word) {
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &[&str]) -> Option<String> {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        notice(&words)
    }

    #[test]
    fn what_fetches_code_by_itself_is_told() {
        for (line, expected) in [
            (
                &["docker", "run", "-i", "image"][..],
                "an image that is not pinned",
            ),
            (
                &["/usr/bin/docker", "--context", "x", "run", "img"],
                "an image that is not pinned",
            ),
            (
                &["podman", "run", "-e", "X=@sha256:1", "img"],
                "an image that is not pinned",
            ),
            (
                &[
                    "docker",
                    "container",
                    "run",
                    "--rm",
                    "-it",
                    "img:1.2",
                    "@sha256:ab",
                ],
                "an image that is not pinned",
            ),
            (&["uv", "run", "--with", "x", "a.py"], "`uv run --with`"),
            (&["uv", "--quiet", "run", "--with=x", "a.py"], "`uv run --with`"),
            (&["bunx", "-y", "foo"], "`bunx` fetches a package"),
            (&["bun", "x", "foo"], "`bun x` fetches a package"),
            (&["pnpm", "dlx", "foo"], "`pnpm dlx` fetches a package"),
            (&["yarn", "dlx", "foo"], "`yarn dlx` fetches a package"),
            (&["deno", "run", "-A", "npm:foo"], "`deno run` fetches a package"),
            (
                &["bash", "-c", "npx -y foo"],
                "to pin it, let the line begin with `npx`",
            ),
            (
                &["bash", "-lc", "cd /x && A=1 exec npx -y foo@1.2.3"],
                "`npx` in it",
            ),
            (&["sh", "-c", "uvx foo | tee log"], "`uvx` in it"),
            (&["sh", "-c", "uv tool run foo"], "`uv tool run` in it"),
            (&["sh", "-c", "pipx run foo"], "`pipx run` in it"),
            (&["sh", "-c", "npm exec foo"], "`npm exec` in it"),
            (&["cmd", "/c", "npx", "-y", "foo"], "`npx` in it"),
            (&["cmd.exe", "/C", "C:\\node\\npx.cmd -y foo"], "`npx` in it"),
            (&["env", "A=b", "npx", "-y", "foo"], "`npx` in it"),
            (
                &["bash", "-c", "bash -c 'docker run img'"],
                "an image that is not pinned",
            ),
        ] {
            let notice = told(line);
            assert!(
                notice.as_ref().is_some_and(|told| told.contains(expected)),
                "{line:?}: {notice:?}"
            );
        }
    }

    #[test]
    fn what_fetches_nothing_or_is_pinned_is_told_nothing_of() {
        for line in [
            &["docker", "run", "image@sha256:abc"][..],
            &[
                "docker",
                "-H",
                "run",
                "run",
                "-v",
                "/a:/b",
                "-eX=1",
                "--name=x",
                "img@sha256:0f",
                "run",
            ],
            &["docker", "exec", "-i", "box", "run"],
            &["podman", "start", "run"],
            &["uv", "run", "server.py"],
            &["npx", "-y", "foo"],
            &["uvx", "foo"],
            &["bash", "./start.sh", "npx"],
            &["bash", "-c", "node server.js"],
            &["deno", "run", "./server.ts"],
            &["./server", "docker", "run", "image"],
            &["pnpm", "start"],
            &[],
        ] {
            assert_eq!(told(line), None, "{line:?}");
        }
    }
}
