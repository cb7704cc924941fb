//! What a person hears while an installer waits for a registry, and how long it may wait.
//!
//! Silence is what a registry that hangs sounds like: npm waits for minutes by default, and uv says nothing at all.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::credentials::read;
use super::indexes;
use crate::config::Environment;
use crate::protocol::Shown;

/// After so long a person asks themselves whether anything happens; each such while is told.
const QUIET: Duration = Duration::from_secs(10);

/// How long npm waits for an answer, and how long before it asks again at most; its own defaults are minutes.
const NPM_PATIENCE: [(&str, &str); 2] = [("fetch-timeout", "20000"), ("fetch-retry-maxtimeout", "10000")];

/// How many seconds uv waits for an answer.
const UV_PATIENCE: (&str, &str) = ("UV_HTTP_TIMEOUT", "20");

/// Tells a person a line.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Where what an installer waits for is told: to the log, until a surface takes it.
#[derive(Clone, Default)]
pub(in crate::loader::install) struct WaitNotices(Arc<OnceLock<Tell>>);

impl WaitNotices {
    /// Tells a surface from now on; the first one counts.
    pub(in crate::loader::install) fn take(&self, tell: Tell) {
        let _ = self.0.set(tell);
    }

    /// Tells one line.
    pub(super) fn tell(&self, line: &str) {
        if let Some(tell) = self.0.get() {
            tell(line);
        } else {
            tracing::warn!("{line}");
        }
    }
}

impl fmt::Debug for WaitNotices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("WaitNotices")
            .field(&self.0.get().is_some())
            .finish()
    }
}

/// The silence of one installer.
pub(super) struct Silence {
    installer: String,
    host: Option<String>,
    heard: Mutex<Instant>,
    notices: WaitNotices,
}

impl Silence {
    /// Begins to listen; without a host nothing of it is told.
    pub(super) fn of(program: &Path, host: Option<String>, notices: WaitNotices) -> Self {
        let installer = program.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            installer: Shown::line(&installer).to_string(),
            host,
            heard: Mutex::new(Instant::now()),
            notices,
        }
    }

    /// Takes note that the installer said something.
    pub(super) fn broken(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Tells a line that the installer said of the registry.
    pub(super) fn tell(&self, line: &str) {
        self.notices.tell(line);
    }

    /// Tells each while of silence; never ends.
    pub(super) async fn told(&self) {
        let Some(host) = &self.host else {
            return std::future::pending().await;
        };
        let mut whiles = 1;
        let mut since = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            tokio::time::sleep_until(since + QUIET * whiles).await;
            let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if heard > since {
                (since, whiles) = (heard, 1);
                continue;
            }
            self.notices.tell(&format!(
                "still waiting for {host}: nothing new from `{}` for {} seconds",
                self.installer,
                (QUIET * whiles).as_secs()
            ));
            whiles += 1;
        }
    }
}

/// Returns the words by which npm does not wait for minutes; what the user set stays.
pub(super) fn npm_patience(environment: &Environment) -> Vec<OsString> {
    let settings = npmrc(environment).unwrap_or_default();
    let in_file = |name: &str| {
        let mut lines = settings.lines().filter_map(|line| line.split_once('='));
        lines.any(|(key, _)| key.trim().starts_with(name))
    };
    let is_set = |name: &str| {
        let variable = format!("NPM_CONFIG_{}", name.to_uppercase().replace('-', "_"));
        in_file(name) || environment.variable(variable).is_some()
    };
    let own = NPM_PATIENCE.iter().filter(|(name, _)| match *name {
        // Its bounds belong together: a lower one above the upper one is an error.
        "fetch-retry-maxtimeout" => !["fetch-retry-maxtimeout", "fetch-retry-mintimeout"]
            .iter()
            .any(|name| is_set(name)),
        name => !is_set(name),
    });
    own.map(|(name, value)| format!("--{name}={value}").into())
        .collect()
}

/// Returns the variable by which uv does not wait for long; what the user set stays.
pub(super) fn uv_patience(environment: &Environment) -> Option<(&'static str, OsString)> {
    let (name, value) = UV_PATIENCE;
    environment.variable(name).is_none().then(|| (name, value.into()))
}

/// Returns the host that an installer asks, as far as the settings of the user tell; `None` where it asks none.
pub(super) fn host(
    program: &str,
    package: &str,
    arguments: &[OsString],
    variables: &BTreeMap<OsString, OsString>,
    environment: &Environment,
) -> Option<String> {
    let set = |name: &str| variables.get(OsStr::new(name)).and_then(|value| value.to_str());
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    match program {
        "npm" if !has("rebuild") => {
            let settings = npmrc(environment).unwrap_or_default();
            let setting = |name: &str| {
                let mut lines = settings.lines().filter_map(|line| line.split_once('='));
                lines
                    .find(|(key, _)| key.trim() == name)
                    .map(|(_, value)| value.trim())
            };
            let scope = package.split_once('/').map(|(scope, _)| scope);
            let scoped = scope.and_then(|scope| setting(&format!("{scope}:registry")));
            let named = scoped
                .or_else(|| set("NPM_CONFIG_REGISTRY"))
                .or_else(|| setting("registry"));
            Some(named.map_or_else(|| "registry.npmjs.org".to_owned(), authority))
        }
        "uv" if has("pip") => {
            let named = set("UV_DEFAULT_INDEX").or_else(|| set("UV_INDEX_URL"));
            let by_file = indexes::uv_configuration(environment).is_some();
            Some(match named {
                Some(index) => authority(index),
                None if by_file => "the index of your uv.toml".to_owned(),
                None => "pypi.org".to_owned(),
            })
        }
        _ => None,
    }
}

/// Returns host and port of an address, escaped; never the credentials before them.
fn authority(address: &str) -> String {
    // An index may have a name: `NAME=https://…`.
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    Shown::line(host).to_string()
}

fn npmrc(environment: &Environment) -> Option<String> {
    let named = environment.variable("NPM_CONFIG_USERCONFIG").map(PathBuf::from);
    let home = environment.variable("HOME").map(PathBuf::from);
    read(&named.or_else(|| Some(home?.join(".npmrc")))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(npmrc: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, Environment) {
        let home = tempfile::tempdir().unwrap();
        crate::disk::write_new(&home.path().join(".npmrc"), npmrc.as_bytes()).unwrap();
        let given = [("HOME", home.path().to_str().unwrap())];
        let environment = Environment::new(given.into_iter().chain(variables.iter().copied()), "/");
        (home, environment)
    }

    #[test]
    fn npm_waits_shortly_unless_the_user_says_otherwise() {
        let words = |npmrc: &str, variables: &[(&str, &str)]| {
            let (_home, environment) = environment(npmrc, variables);
            npm_patience(&environment)
        };
        let (timeout, between) = ("--fetch-timeout=20000", "--fetch-retry-maxtimeout=10000");
        assert_eq!(words("", &[]), [timeout, between]);
        assert_eq!(words("fetch-timeout = 1\n", &[]), [between]);
        assert_eq!(words("fetch-retry-mintimeout=20000\n", &[]), [timeout]);
        assert_eq!(words("", &[("NPM_CONFIG_FETCH_TIMEOUT", "1")]), [between]);
        let (_home, own) = environment("", &[("UV_HTTP_TIMEOUT", "3")]);
        assert_eq!(uv_patience(&own), None);
    }

    #[test]
    fn the_host_is_that_of_the_settings_and_has_no_credentials() {
        let npmrc = "registry=https://me:secret@r.test:8080/npm/\n@acme:registry=http://acme.test/\n";
        let (_home, environment) = environment(npmrc, &[]);
        let variables = BTreeMap::from([("UV_DEFAULT_INDEX".into(), "https://u:p@i.test/simple".into())]);
        let host =
            |program: &str, package: &str, words: &[&str], variables: &BTreeMap<OsString, OsString>| {
                let words: Vec<OsString> = words.iter().map(OsString::from).collect();
                super::host(program, package, &words, variables, &environment)
            };
        let none = BTreeMap::new();
        assert_eq!(
            host("npm", "a@1", &["install"], &none).as_deref(),
            Some("r.test:8080")
        );
        assert_eq!(
            host("npm", "@acme/a@1", &["view"], &none).as_deref(),
            Some("acme.test")
        );
        assert_eq!(host("npm", "a@1", &["rebuild"], &none), None);
        assert_eq!(
            host("uv", "a==1", &["pip", "compile"], &variables).as_deref(),
            Some("i.test")
        );
        assert_eq!(host("uv", "a==1", &["venv"], &variables), None);
    }
}
