//! Tells apart why an installer failed, by what it printed.
//!
//! The words of npm and uv are no interface and change: what is not known here is still an error, only a less exact one.

use super::process::{InstallerOutput, MEMORY_LIMIT};
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::is_registry_spec;
use crate::loader::install::tail::Tail;
use crate::protocol::Shown;

const ABSENT: [&str; 6] = [
    "E404",
    "ETARGET",
    "was not found in the package registry",
    "there is no version of",
    "there are no versions of",
    "no matching version",
];
const UNREACHABLE: [&str; 13] = [
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "ERR_SOCKET_TIMEOUT",
    "network timeout at",
    "client error (Connect)",
    "dns error",
    "tcp connect error",
    "operation timed out",
];
const CORRUPTED: [&str; 2] = ["EINTEGRITY", "Hash mismatch for"];
const ELSEWHERE: [(&str, &str); 6] = [
    ("EALLOWGIT", "it lies in a git repository"),
    ("EALLOWREMOTE", "it lies at an address of its own"),
    ("EALLOWFILE", "it is a file of this machine"),
    ("EALLOWDIRECTORY", "it is a folder of this machine"),
    ("EUNSUPPORTEDPROTOCOL", "it lies where npm does not look"),
    ("included as a URL dependency", "it lies at an address of its own"),
];
const UNBUILT: [&str; 1] = ["building from source is disabled"];
const MALFORMED: [&str; 9] = [
    "TAR_BAD_ARCHIVE",
    "TAR_ABORT",
    "invalid package format",
    "The wheel is invalid",
    "Failed to extract archive",
    "Scripts must not use the reserved name",
    "does not match given name",
    "does not match filename",
    ".dist-info/RECORD",
];
const MEMORY: [&str; 4] = [
    "memory allocation of",
    "JavaScript heap out of memory",
    "Array buffer allocation failed",
    "process OOM",
];
const GARBLED: [&str; 5] = [
    "EMAXREDIRECT",
    "invalid json response body",
    "Received some unexpected",
    "Missing `Content-Type` header",
    "too many redirects",
];

/// Tells the reasons that a person can do something about apart from the rest.
pub(super) fn failure(
    program: &'static str,
    package: &str,
    ending: String,
    finished: &InstallerOutput,
) -> InstallError {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&finished.stderr),
        String::from_utf8_lossy(&finished.stdout)
    );
    let says = |reasons: &[&str]| reasons.iter().any(|reason| text.contains(reason));
    let package = package.to_owned();
    let said = if finished.stderr.is_empty() {
        &finished.stdout
    } else {
        &finished.stderr
    };
    let source = Tail::of(said, &finished.secrets);
    // What a peer says comes before what the network did: a hostile text may hold the words of another failure, and each
    // of these is a refusal.
    if says(&CORRUPTED) {
        let archive = between(&text, "Hash mismatch for `", "`")
            .or_else(|| between(&text, "tarball data for ", "@http"));
        let archive = archive.map_or_else(|| package.clone(), |archive| Shown::line(archive).to_string());
        InstallError::Corrupted {
            package,
            archive,
            source,
        }
    } else if let Some((_, origin)) = ELSEWHERE.iter().find(|(code, _)| text.contains(code)) {
        let named = between(&text, "Refusing to fetch \"", "\"")
            .or_else(|| between(&text, "Consider adding `", "`"))
            .or_else(|| between(&text, "Unsupported URL Type \"link:\": ", "\n"));
        let origin = named.map_or_else(
            || (*origin).to_owned(),
            |named| format!("`{}`", Shown::line(named)),
        );
        let origin = wanted(&text).unwrap_or(origin);
        InstallError::Elsewhere {
            package,
            origin,
            source,
        }
    } else if says(&UNBUILT) {
        InstallError::Unbuilt { package, source }
    } else if says(&MALFORMED) {
        InstallError::Malformed {
            package,
            program,
            source,
        }
    } else if says(&MEMORY) {
        InstallError::Memory {
            package,
            program,
            mib: MEMORY_LIMIT / 1024 / 1024,
            source,
        }
    } else if says(&GARBLED) {
        InstallError::Garbled {
            package,
            program,
            source,
        }
    } else if says(&ABSENT) {
        match absent_dependency(&text, &package) {
            Some(missing) => InstallError::MissingDependency {
                package,
                missing,
                source,
            },
            None => InstallError::NotFound { package, source },
        }
    } else if says(&UNREACHABLE) {
        InstallError::Unreachable { package, source }
    } else {
        InstallError::Installer {
            package,
            program,
            ending,
            source,
        }
    }
}

/// Finds what the registry does not have, if it is something else than the package itself; escaped.
fn absent_dependency(text: &str, package: &str) -> Option<String> {
    let named = [
        // npm: `404  'name@^1.0.0' is not in this registry.`, or, of the same, `The requested resource …`; `notarget No matching version found for name@^9.0.0.`
        between(text, "404  '", "' is not in this registry")
            .or_else(|| between(text, "The requested resource '", "' could not be found"))
            .or_else(|| between(text, "No matching version found for ", ".\n")),
        // uv: `Because name was not found in the package registry and …`, `Because there is no version of name==9 and …`
        between(text, "Because ", " was not found in the package registry")
            .or_else(|| between(text, "there is no version of ", " and"))
            .or_else(|| between(text, "there are no versions of ", " and")),
    ];
    let missing = named.into_iter().flatten().next()?;
    // npm's own slip where one version of the package itself is not there.
    let is_slip = name_of(missing) == "undefined";
    (!is_slip && name_of(missing) != name_of(package)).then(|| Shown::line(missing).to_string())
}

/// Returns the name in a spec of either ecosystem, as registries compare names.
fn name_of(spec: &str) -> String {
    let scope = usize::from(spec.starts_with('@'));
    let is_of_a_name = |found: char| found.is_ascii_alphanumeric() || matches!(found, '.' | '_' | '-' | '/');
    let end = spec[scope..].find(|found| !is_of_a_name(found));
    let name = end.map_or(spec, |end| &spec[..scope + end]);
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Finds the dependency that comes from no registry in what a loud npm says of each: `placeDep PLACE NAME@ … want: SPEC`.
fn wanted(text: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" placeDep ")?;
        let (placed, spec) = rest.split_once(" want: ")?;
        let name = placed.split(' ').nth(1)?;
        let name = name
            .char_indices()
            .skip(1)
            .find(|(_, found)| *found == '@')
            .map_or(name, |(at, _)| &name[..at]);
        (!is_registry_spec(spec)).then(|| format!("`{}`", Shown::line(&format!("{name}@{spec}"))))
    });
    lines.next_back().filter(|named| named.len() < 400)
}

/// Returns what stands between two marks, on one line.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    let found = rest.split_once(after)?.0;
    (!found.is_empty() && found.len() < 200 && !found.contains('\n')).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_unless_it_is_the_package_itself() {
        let missing = |text: &str| absent_dependency(text, "hello@1.0.0");
        for (text, named) in [
            (
                "npm error 404  'he-re@^1.0.0' is not in this registry.",
                Some("he-re@^1.0.0"),
            ),
            ("npm error 404  '@s/x@1' is not in this registry.", Some("@s/x@1")),
            (
                "npm error notarget No matching version found for dep@^9.0.0.\n",
                Some("dep@^9.0.0"),
            ),
            (
                "Because gone-dep was not found in the package registry and hello==1.0.0 depends on it",
                Some("gone-dep"),
            ),
            (
                "Because there is no version of dep==9 and hello==1.0.0 depends on dep==9",
                Some("dep==9"),
            ),
            ("npm error 404  'hello@1.0.0' is not in this registry.", None),
            (
                "npm error 404  The requested resource 'undefined@1.0.0' could not be found",
                None,
            ),
            ("Because Hello was not found in the package registry", None),
            (
                "Because there is no version of hello==1.0.0 and you require hello==1.0.0",
                None,
            ),
            ("npm error 404", None),
        ] {
            assert_eq!(missing(text).as_deref(), named, "{text}");
        }
        assert_eq!(
            absent_dependency("404  '@s/x@2' is not in this registry", "@s/x@2"),
            None
        );
    }

    #[test]
    fn names_are_compared_as_registries_do() {
        for (spec, name) in [
            ("a@1", "a"),
            ("@s/a@^1", "@s/a"),
            ("A_b.c[x]>=1", "a-b-c"),
            ("a", "a"),
        ] {
            assert_eq!(name_of(spec), name);
        }
    }
}
