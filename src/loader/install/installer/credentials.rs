//! What installers know in confidence: credentials of registries and proxies, from variables and the user's files.
//!
//! pml hands none of them to anybody. They are read here only to be hidden in what an installer says, by value: an
//! installer prints an address it could not reach as it is, token included.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::indexes;
use crate::config::Environment;
use crate::loader::plan::SecretCollector;
use crate::protocol::Secrets;

/// No settings file of a package manager comes near; what is longer is looked through up to here.
const FILE_LIMIT: u64 = 1024 * 1024;

/// How the names of npm's settings end whose values are secrets.
const NPM_SETTINGS: [&str; 4] = ["_auth", "_authtoken", "_password", "password"];

/// Collects the credentials that an installer with these variables can read.
pub(super) fn of(environment: &Environment, variables: &BTreeMap<OsString, OsString>) -> Secrets {
    let mut found = SecretCollector::default();
    for (name, value) in variables {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            found.addresses(name, value);
        }
    }
    found.proxies(environment);
    let home = environment.variable("HOME").map(Path::new);
    let npmrc = variables
        .get(OsStr::new("NPM_CONFIG_USERCONFIG"))
        .map(PathBuf::from)
        .or_else(|| Some(home?.join(".npmrc")));
    for text in npmrc.iter().filter_map(|path| read(path)) {
        of_npmrc(&mut found, &text);
    }
    for text in indexes::configurations(environment)
        .iter()
        .filter_map(|path| read(path))
    {
        found.addresses("index", &text);
    }
    for text in home.iter().filter_map(|home| read(&home.join(".netrc"))) {
        of_netrc(&mut found, &text);
    }
    found.secrets()
}

pub(super) fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    // Opening a pipe would wait for a writer.
    let file = std::fs::File::open(path.canonicalize().ok().filter(|path| path.is_file())?).ok()?;
    file.take(FILE_LIMIT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn of_npmrc(found: &mut SecretCollector, text: &str) {
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let value = value.trim().trim_matches(['"', '\'']);
        let setting = name
            .trim()
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if NPM_SETTINGS.contains(&setting.as_str()) {
            found.header(".npmrc", value);
            // A password is written in base64.
            if let Ok(Ok(password)) = STANDARD.decode(value).map(String::from_utf8) {
                found.take(".npmrc", &password);
            }
        }
        found.addresses(".npmrc", value);
    }
}

fn of_netrc(found: &mut SecretCollector, text: &str) {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word == "password" {
            found.take(".netrc", words.next().unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_installer_can_read_is_hidden_in_what_it_says() {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                ".npmrc",
                "registry=https://me:npm-s3cret@npm.test/\n//npm.test/:_authToken=t0ken-of-npm\n//b.test/:_password=cGFzc3dvcmQtb2YtYg==\n",
            ),
            (".netrc", "machine pypi.test login me password netrc-s3cret\n"),
            (
                "pip.conf",
                "[global]\nindex-url = https://t0ken-of-pip@pip.test/simple\n",
            ),
        ] {
            #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
            std::fs::write(home.path().join(name), text).unwrap();
        }
        let variables = [
            ("HOME", home.path().to_str().unwrap().to_owned()),
            ("UV_INDEX_URL", "https://uv.test/T0kenOfUv/simple".to_owned()),
            (
                "PIP_CONFIG_FILE",
                home.path().join("pip.conf").to_str().unwrap().to_owned(),
            ),
        ];
        let environment = Environment::new(variables.clone(), "/");
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let secrets = of(&environment, &variables.into());
        assert_eq!(
            secrets
                .hide("npm-s3cret t0ken-of-npm password-of-b netrc-s3cret t0ken-of-pip T0kenOfUv npm.test"),
            "[.npmrc] [.npmrc] [.npmrc] [.netrc] [index] [UV_INDEX_URL] npm.test"
        );
    }
}
