//! The grammars of npm and PyPI: names, versions, ranges; each function reads one of them.

use super::VersionSpec;

/// npm refuses longer names; PyPI has none that come near.
pub(super) const NAME_LIMIT: usize = 214;

/// No honest version or range is longer; it keeps file names and lines short.
const VERSION_LIMIT: usize = 128;

/// Lower-cases a PyPI name and joins its separators, as its registry compares names.
#[must_use]
pub(in crate::loader) fn normalize(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for found in name.chars() {
        match found {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            found => normal.push(found.to_ascii_lowercase()),
        }
    }
    normal
}

/// Tells whether `text` is meant as a path, an address, a git reference or an alias.
pub(super) fn looks_like_a_source(text: &str) -> bool {
    let unscoped = text
        .strip_prefix('@')
        .and_then(|text| text.split_once('/'))
        .map_or(text, |(_, name)| name);
    text.contains([':', '\\'])
        || text.starts_with(['.', '/', '~'])
        || unscoped.contains('/')
        || text.contains(" @ ")
}

/// Tells whether `name` is an npm package name: lower case, an optional scope, no leading `.`, `_` or `-`.
pub(in crate::loader) fn is_npm_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|found: char| found.is_ascii_lowercase() || found.is_ascii_digit())
            && part.chars().all(|found| {
                found.is_ascii_lowercase() || found.is_ascii_digit() || matches!(found, '.' | '_' | '-')
            })
    };
    let parts = match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| part(scope) && part(name)),
        None => part(name),
    };
    parts && name.len() <= NAME_LIMIT && name != "node_modules" && name != "favicon.ico"
}

/// Tells whether `name` is a PEP 508 name.
pub(in crate::loader) fn is_pypi_name(name: &str) -> bool {
    let edge = |found: Option<char>| found.is_some_and(|found| found.is_ascii_alphanumeric());
    edge(name.chars().next())
        && edge(name.chars().next_back())
        && name.len() <= NAME_LIMIT
        && name
            .chars()
            .all(|found| found.is_ascii_alphanumeric() || matches!(found, '.' | '_' | '-'))
}

/// Reads what follows the `@` of an npm spec.
pub(super) fn npm_version(text: &str) -> Option<VersionSpec> {
    // npm reads `v1.2.3` and `=1.2.3` as the version itself.
    let bare = text.strip_prefix(['v', '=']).unwrap_or(text);
    if is_semantic_version(bare) {
        return Some(VersionSpec::Exact(bare.to_owned()));
    }
    let inside = |found: char| found.is_ascii_alphanumeric() || ".^~<>=|*+- _".contains(found);
    let valid = text.len() <= VERSION_LIMIT && !text.starts_with(['-', ' ', '.']) && text.chars().all(inside);
    valid.then(|| VersionSpec::Floating(text.to_owned()))
}

/// Tells whether `text` is a version of semver 2.0.
pub(in crate::loader) fn is_semantic_version(text: &str) -> bool {
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(text, build)| (text, Some(build)));
    let (numbers, early) = text
        .split_once('-')
        .map_or((text, None), |(text, early)| (text, Some(early)));
    let identifiers = |text: &str| {
        text.split('.').all(|part| {
            !part.is_empty()
                && part
                    .chars()
                    .all(|found| found.is_ascii_alphanumeric() || found == '-')
        })
    };
    let numbers: Vec<&str> = numbers.split('.').collect();
    text.len() <= VERSION_LIMIT
        && numbers.len() == 3
        && numbers
            .iter()
            .all(|number| is_number(number) && (*number == "0" || !number.starts_with('0')))
        && early.is_none_or(identifiers)
        && build.is_none_or(|build| build.len() <= VERSION_LIMIT && identifiers(build))
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|found| found.is_ascii_digit())
}

/// Reads what follows the name of a PyPI spec.
pub(super) fn pypi_version(text: &str) -> Option<VersionSpec> {
    if text.is_empty() {
        return Some(VersionSpec::Floating(String::new()));
    }
    if let Some(version) = text.strip_prefix('@') {
        let version = version.trim();
        return if version == "latest" {
            Some(VersionSpec::Floating(version.to_owned()))
        } else {
            is_python_version(version).then(|| VersionSpec::Exact(version.to_owned()))
        };
    }
    if let Some(version) = text.strip_prefix("==").map(str::trim)
        && is_python_version(version)
    {
        return Some(VersionSpec::Exact(version.to_owned()));
    }
    let clause = |clause: &str| {
        let clause = clause.trim();
        let operator = ["==", "!=", "~=", ">=", "<=", ">", "<"]
            .into_iter()
            .find(|operator| clause.starts_with(operator));
        operator.is_some_and(|operator| {
            let version = clause[operator.len()..].trim();
            let stem = match operator {
                "==" | "!=" => version.strip_suffix(".*").unwrap_or(version),
                _ => version,
            };
            is_python_version(stem)
        })
    };
    let valid = text.len() <= VERSION_LIMIT && text.split(',').all(clause);
    valid.then(|| VersionSpec::Floating(text.split_whitespace().collect()))
}

/// Tells whether `text` is a version of PEP 440 in its public form, with an optional local label.
pub(in crate::loader) fn is_python_version(text: &str) -> bool {
    let (public, local) = text
        .split_once('+')
        .map_or((text, None), |(public, local)| (public, Some(local)));
    let local_valid = local.is_none_or(|local| {
        local
            .split(['.', '-', '_'])
            .all(|part| !part.is_empty() && part.chars().all(|found| found.is_ascii_alphanumeric()))
    });
    let release = match public.split_once('!') {
        Some((epoch, release)) if is_number(epoch) => release,
        Some(_) => return false,
        None => public,
    };
    let numbers = release
        .find(|found: char| !found.is_ascii_digit() && found != '.')
        .unwrap_or(release.len());
    let (numbers, suffix) = release.split_at(numbers);
    // `1.0.dev1`: the dot before a suffix belongs to the suffix.
    let numbers = if suffix.is_empty() {
        numbers
    } else {
        numbers.strip_suffix('.').unwrap_or(numbers)
    };
    text.len() <= VERSION_LIMIT
        && local_valid
        && numbers.split('.').all(is_number)
        && is_python_suffix(suffix)
}

/// Tells whether `text` is a sequence of pre-, post- and development markers in that order.
fn is_python_suffix(text: &str) -> bool {
    const MARKERS: [&[&str]; 3] = [
        &["alpha", "beta", "preview", "pre", "rc", "a", "b", "c"],
        &["post", "rev", "r"],
        &["dev"],
    ];
    let mut rest = text.to_ascii_lowercase();
    for markers in MARKERS {
        let trimmed = rest.strip_prefix(['.', '-', '_']).unwrap_or(&rest);
        if let Some(marker) = markers.iter().find(|marker| trimmed.starts_with(**marker)) {
            let after = trimmed[marker.len()..].trim_start_matches(|found: char| found.is_ascii_digit());
            rest = after.to_owned();
        }
    }
    rest.is_empty()
}
