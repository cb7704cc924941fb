//! Native modules that are missing because no install script built them, told by what a server wrote as it ended.
//!
//! The words of their loaders are no interface: what is not known here is told without a hint.

use crate::protocol::Shown;

/// What the usual loaders say.
const WORDS: [&str; 3] = [
    "Could not locate the bindings file",
    "No native build was found",
    "was compiled against a different Node.js version",
];

/// The loaders themselves, which are where the trouble is found and not where it is.
const LOADERS: [&str; 3] = ["bindings", "node-gyp-build", "file-uri-to-path"];

/// Tells whether a native module is missing.
pub(super) fn is_missing(stderr: &str) -> bool {
    let unfound = stderr
        .lines()
        .any(|line| line.contains("Cannot find module") && line.contains(".node'"));
    unfound
        || WORDS.iter().any(|word| stderr.contains(word))
        || stderr.contains("node_modules/bindings/bindings.js")
}

/// Says which part is missing.
pub(super) fn missing(module: Option<&str>) -> String {
    match module {
        Some(module) => format!("`{module}`, which it uses, lacks a part that an install script builds"),
        None => "a part of it is missing that an install script builds".to_owned(),
    }
}

/// Returns the package whose part is missing: the one in whose directory it was looked for, escaped.
pub(super) fn package(stderr: &str) -> Option<String> {
    let named = |line: &str| line.contains(".node") || line.contains("loaded from:");
    let lines = || stderr.lines();
    let first = lines().filter(|line| named(line)).find_map(package_in);
    let package = first.or_else(|| lines().find_map(package_in))?;
    Some(Shown::line(package).to_string())
}

/// Returns the innermost package of a path in a line that is no loader.
fn package_in(line: &str) -> Option<&str> {
    let ends = |found: char| matches!(found, '/' | ':' | ')' | '\'' | ' ');
    let mut inside = line
        .rsplit("node_modules/")
        .take(line.matches("node_modules/").count());
    inside.find_map(|rest| {
        let scope = rest
            .find('/')
            .filter(|_| rest.starts_with('@'))
            .map_or(0, |slash| slash + 1);
        let length = rest[scope..].find(ends).unwrap_or(rest.len() - scope);
        let name = &rest[..scope + length];
        (length > 0 && !LOADERS.contains(&name)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_the_one_whose_part_is_missing() {
        let bindings = "/s/node_modules/bindings/bindings.js:126\n  throw e\n\nError: Could not locate the bindings file. Tried:\n → /s/node_modules/sqlite3/build/node_sqlite3.node\n → /s/node_modules/sqlite3/build/Debug/node_sqlite3.node\n    at bindings (/s/node_modules/bindings/bindings.js:126:9)\n";
        for (stderr, module) in [
            (bindings, Some("sqlite3")),
            (
                "Error: No native build was found for platform=linux arch=x64\n    loaded from: /s/node_modules/bufferutil\n",
                Some("bufferutil"),
            ),
            (
                "Error: The module '/s/node_modules/better-sqlite3/build/Release/b.node'\nwas compiled against a different Node.js version",
                Some("better-sqlite3"),
            ),
            (
                "Error: Cannot find module '/s/node_modules/a/node_modules/@scope/native/x.node'",
                Some("@scope/native"),
            ),
            (
                "Could not locate the bindings file. Tried:\n → build/hello.node",
                None,
            ),
        ] {
            assert!(is_missing(stderr), "{stderr}");
            assert_eq!(package(stderr).as_deref(), module, "{stderr}");
        }
        assert!(!is_missing("Error: Cannot find module './server.js'"));
    }
}
