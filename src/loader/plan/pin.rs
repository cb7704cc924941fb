//! The exact version in the words that a person wrote: `npx -y name` becomes `npx -y name@1.2.3`.
//!
//! Pure. Only the word that names the package changes; a word with `${VAR}` in it names none and is left alone,
//! because writing down what it stands for today would say something else than was meant.

use std::path::Path;

use super::package::Package;
use super::runner::PackageRunner;
use crate::config::Launch;

/// Returns the declaration with its package at exactly `version`; `None` if it spells no package.
#[must_use]
pub fn pin(launch: &Launch, version: &str) -> Option<Launch> {
    match launch {
        Launch::Command { command, args } => {
            let program = Path::new(command).file_name()?.to_str()?;
            let (runner, own) = PackageRunner::of(program, args)?;
            let run = runner.read(args, own).ok()?;
            let exact = run.package.at(version);
            let mut args = args.clone();
            let word = args.get_mut(run.spec)?;
            *word = match word.split_once('=') {
                Some((option, _)) if option.starts_with("--") => format!("{option}={exact}"),
                _ => exact,
            };
            Some(Launch::Command {
                command: command.clone(),
                args,
            })
        }
        Launch::Package { package, args } => {
            let found = Package::explicit(package).ok()?;
            Some(Launch::Package {
                package: format!("{}:{}", found.ecosystem().as_str(), found.at(version)),
                args: args.clone(),
            })
        }
        Launch::Remote { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Launch {
        let mut words = line.split(' ').map(str::to_owned);
        Launch::Command {
            command: words.next().unwrap(),
            args: words.collect(),
        }
    }

    fn package(text: &str) -> Launch {
        Launch::Package {
            package: text.to_owned(),
            args: vec!["--verbose".to_owned()],
        }
    }

    #[test]
    fn only_the_word_that_names_the_package_changes() {
        for (written, pinned) in [
            ("npx -y pkg . pkg", "npx -y pkg@1.2.3 . pkg"),
            ("npx @scope/pkg@latest", "npx @scope/pkg@1.2.3"),
            ("/usr/bin/npx pkg@^1", "/usr/bin/npx pkg@1.2.3"),
            ("npx -p pkg pkg", "npx -p pkg@1.2.3 pkg"),
            ("npx --package=pkg run", "npx --package=pkg@1.2.3 run"),
            ("npm exec -y -- pkg --flag", "npm exec -y -- pkg@1.2.3 --flag"),
            ("uvx pkg ${ROOT}", "uvx pkg==1.2.3 ${ROOT}"),
            ("uvx pkg@latest", "uvx pkg==1.2.3"),
            ("uvx pkg[extra]>=1", "uvx pkg[extra]==1.2.3"),
            ("uvx --from pkg run", "uvx --from pkg==1.2.3 run"),
            ("uvx --from=pkg run", "uvx --from=pkg==1.2.3 run"),
            ("uvx --python 3.12 pkg", "uvx --python 3.12 pkg==1.2.3"),
            ("uv tool run pkg", "uv tool run pkg==1.2.3"),
            ("pipx run --spec pkg run", "pipx run --spec pkg==1.2.3 run"),
        ] {
            assert_eq!(
                pin(&command(written), "1.2.3"),
                Some(command(pinned)),
                "{written}"
            );
        }
        assert_eq!(
            pin(&package("npm:@scope/pkg"), "1.2.3"),
            Some(package("npm:@scope/pkg@1.2.3"))
        );
        assert_eq!(
            pin(&package("pypi:pkg>=1"), "1.2.3"),
            Some(package("pypi:pkg==1.2.3"))
        );
    }

    #[test]
    fn what_spells_no_package_is_not_pinned() {
        for written in [
            "./server pkg",
            "npx -y ${PKG}",
            "npx ./local",
            "uvx",
            "uv run pkg",
        ] {
            assert_eq!(pin(&command(written), "1.2.3"), None, "{written}");
        }
        assert_eq!(pin(&package("${PKG}"), "1.2.3"), None);
    }
}
