//! Where the user's Python packages come from: the user's own `uv.toml`, or what `pip` is told.
//!
//! An index may carry credentials, so it travels by environment and never by argument. The project's `uv.toml`,
//! `pyproject.toml` and `pip.conf` are never read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::Environment;

/// The variables by which uv is told of an index.
const UV_INDEXES: [&str; 4] = [
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
];

/// Finds the user's `uv.toml`, else the machine's.
pub(super) fn uv_configuration(environment: &Environment) -> Option<PathBuf> {
    let user = config_home(environment).map(|home| home.join("uv/uv.toml"));
    user.into_iter()
        .chain([PathBuf::from("/etc/uv/uv.toml")])
        .find(|path| path.is_file())
}

fn config_home(environment: &Environment) -> Option<PathBuf> {
    let set = environment
        .variable("XDG_CONFIG_HOME")
        .map(Path::new)
        .filter(|path| path.is_absolute());
    set.map(Path::to_owned)
        .or_else(|| Some(Path::new(environment.variable("HOME")?).join(".config")))
}

/// Translates the user's settings of pip for uv; nothing if uv has an index of its own.
pub(super) fn of_pip(environment: &Environment) -> Vec<(&'static str, OsString)> {
    let mut found = Vec::new();
    let settings = pip_settings(environment);
    let setting = |variable: &str, name: &str| {
        let value = environment
            .variable(variable)
            .and_then(|value| value.to_str())
            .map(str::to_owned);
        value
            .or_else(|| settings.get(name).cloned())
            .filter(|value| !value.is_empty())
    };
    if !has_own_index(environment) {
        if let Some(index) = setting("PIP_INDEX_URL", "index-url") {
            found.push(("UV_DEFAULT_INDEX", index.into()));
        }
        if let Some(indexes) = setting("PIP_EXTRA_INDEX_URL", "extra-index-url") {
            found.push((
                "UV_INDEX",
                indexes.split_whitespace().collect::<Vec<_>>().join(" ").into(),
            ));
        }
    }
    if environment.variable("SSL_CERT_FILE").is_none()
        && let Some(certificates) = setting("PIP_CERT", "cert")
    {
        found.push(("SSL_CERT_FILE", certificates.into()));
    }
    found
}

fn has_own_index(environment: &Environment) -> bool {
    let by_variable = UV_INDEXES.iter().any(|name| environment.variable(name).is_some());
    let by_file = || {
        let text = uv_configuration(environment)
            .and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default();
        text.lines().map(str::trim_start).any(|line| {
            line.starts_with("index") || line.starts_with("[[index") || line.starts_with("extra-index")
        })
    };
    by_variable || by_file()
}

/// Returns the files in which the user's indexes may stand, with their credentials.
pub(super) fn configurations(environment: &Environment) -> Vec<PathBuf> {
    let uv = uv_configuration(environment);
    uv.into_iter().chain(pip_files(environment)).collect()
}

/// Returns where a `pip.conf` of the user may be: the machine's first, the more personal ones over it.
fn pip_files(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.variable("HOME").map(Path::new);
    let named = environment
        .variable("PIP_CONFIG_FILE")
        .map(Path::new)
        .filter(|path| path.is_absolute());
    let files = [
        Some(PathBuf::from("/etc/pip.conf")),
        home.map(|home| home.join(".pip/pip.conf")),
        config_home(environment).map(|home| home.join("pip/pip.conf")),
        named.map(Path::to_owned),
    ];
    files.into_iter().flatten().collect()
}

/// Reads the user's `pip.conf`.
fn pip_settings(environment: &Environment) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for text in pip_files(environment)
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
    {
        settings.extend(sections(&text));
    }
    settings
}

/// Reads the sections of a `pip.conf` that concern downloads; an indented line continues the value before it.
fn sections(text: &str) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    let mut concerns = false;
    let mut last: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = trimmed.strip_prefix('[') {
            concerns = matches!(section.trim_end_matches(']'), "global" | "install" | "download");
            last = None;
        } else if line.starts_with([' ', '\t']) {
            if let Some(value) = last.as_ref().and_then(|name| settings.get_mut(name)) {
                value.push(' ');
                value.push_str(trimmed);
            }
        } else if let Some((name, value)) = trimmed.split_once(['=', ':']).filter(|_| concerns) {
            let name = name.trim().to_ascii_lowercase().replace('_', "-");
            settings.insert(name.clone(), value.trim().to_owned());
            last = Some(name);
        } else {
            last = None;
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
            std::fs::write(path, text).unwrap();
        }
        home
    }

    fn environment(home: &tempfile::TempDir, more: &[(&str, &str)]) -> Environment {
        let home = ("HOME", home.path().to_str().unwrap());
        Environment::new(more.iter().copied().chain([home]), "/")
    }

    const PIP: &str = "[global]\nindex-url = https://one.test/simple\n[install]\nextra-index-url =\n    https://two.test/simple\n    https://three.test/simple\n[freeze]\nindex-url = https://no.test\n";

    #[test]
    fn the_users_pip_settings_reach_uv() {
        let home = home_with(&[(".config/pip/pip.conf", PIP)]);
        let found: BTreeMap<_, _> = of_pip(&environment(&home, &[])).into_iter().collect();
        assert_eq!(
            found.get("UV_DEFAULT_INDEX"),
            Some(&"https://one.test/simple".into())
        );
        assert_eq!(
            found.get("UV_INDEX"),
            Some(&"https://two.test/simple https://three.test/simple".into())
        );
        let found: BTreeMap<_, _> = of_pip(&environment(&home, &[("PIP_INDEX_URL", "https://four.test/")]))
            .into_iter()
            .collect();
        assert_eq!(found.get("UV_DEFAULT_INDEX"), Some(&"https://four.test/".into()));
    }

    #[test]
    fn an_index_of_uv_itself_wins() {
        let home = home_with(&[
            (".config/pip/pip.conf", PIP),
            (".config/uv/uv.toml", "[[index]]\nurl = \"https://uv.test\"\n"),
        ]);
        let with_file = environment(&home, &[]);
        assert!(
            of_pip(&with_file)
                .iter()
                .all(|(name, _)| !name.starts_with("UV_"))
        );
        assert_eq!(
            uv_configuration(&with_file),
            Some(home.path().join(".config/uv/uv.toml"))
        );
        let home = home_with(&[(".config/pip/pip.conf", PIP)]);
        let by_variable = environment(&home, &[("UV_DEFAULT_INDEX", "https://uv.test")]);
        assert!(
            of_pip(&by_variable)
                .iter()
                .all(|(name, _)| !name.starts_with("UV_"))
        );
    }
}
