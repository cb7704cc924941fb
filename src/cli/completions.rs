//! `pml completions SHELL`: what a shell needs to complete `pml`, printed or put where the shell looks for it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap_complete::{Shell, generate};

use super::failure::{Hinted as _, Refused};
use super::{CommandContext, output};
use crate::disk;
use crate::protocol::shell;

/// The last line of what `--install` writes: a file without it is somebody else's. The first line belongs to zsh.
const MARK: &str = "# Written by `pml completions --install`; `pml completions --uninstall` removes it.\n";

/// Which shell, and what to do with its script.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell; with --install or --uninstall the one of the variable SHELL, unless it is named
    #[arg(value_name = "SHELL", required_unless_present_any = ["install", "uninstall"])]
    shell: Option<Shell>,
    /// Put the script where the shell looks for it
    #[arg(long, conflicts_with = "uninstall")]
    install: bool,
    /// Remove what --install wrote
    #[arg(long)]
    uninstall: bool,
}

/// Where the script of a shell belongs.
struct ScriptPlace {
    file: PathBuf,
    /// What a person has to do besides, once.
    note: Option<String>,
}

/// Prints the script for a shell, or installs or removes it; what pml starts of itself is not in it.
pub(crate) fn run(context: &CommandContext, arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    let shell = match arguments.shell {
        Some(shell) => shell,
        None => current(context)?,
    };
    if arguments.install {
        install(&place(context, shell)?, &script(shell))?;
    } else if arguments.uninstall {
        uninstall(&place(context, shell)?)?;
    } else {
        output::data(script(shell).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut super::visible(), "pml", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the shell of the user.
fn current(context: &CommandContext) -> anyhow::Result<Shell> {
    let named = context.environment.variable("SHELL").map(Path::new);
    let shell = named.and_then(Shell::from_shell_path);
    shell
        .ok_or_else(|| anyhow::anyhow!("`SHELL` names no shell that pml knows"))
        .hint("name it: pml completions --install bash")
}

fn place(context: &CommandContext, shell: Shell) -> anyhow::Result<ScriptPlace> {
    let file = |below: &Path, rest: &str| below.parent().unwrap_or(below).join(rest);
    let (data, config) = (context.locations.data(), context.locations.user_config());
    let config = config.parent().unwrap_or(&config);
    Ok(match shell {
        Shell::Bash => ScriptPlace {
            file: file(data, "bash-completion/completions/pml"),
            note: None,
        },
        Shell::Fish => ScriptPlace {
            file: file(config, "fish/completions/pml.fish"),
            note: None,
        },
        Shell::Zsh => {
            let file = file(data, "zsh/site-functions/_pml");
            let folder = file.parent().unwrap_or(&file).to_string_lossy();
            let line = format!("fpath=({} $fpath)", shell::word(&folder));
            ScriptPlace {
                note: Some(format!(
                    "zsh looks there once this line stands in .zshrc, before compinit: {line}"
                )),
                file,
            }
        }
        other => {
            let refused = Refused(format!("pml does not know where {other} looks for completions"));
            return Err(refused).hint(format!("to print them: pml completions {other}"));
        }
    })
}

fn install(place: &ScriptPlace, script: &str) -> anyhow::Result<()> {
    let ScriptPlace { file, note } = place;
    let shown = crate::protocol::Shown::path(file);
    if let Ok(found) = std::fs::read_to_string(file)
        && !found.ends_with(MARK)
    {
        let refused = Refused(format!("`{shown}` is not of pml, and stays as it is"));
        return Err(refused).hint("remove it by hand, then install again");
    }
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder).map_err(|source| {
        anyhow::Error::new(source).context(format!("cannot create the folder of `{shown}`"))
    })?;
    disk::replace(file, format!("{script}{MARK}").as_bytes())
        .map_err(|source| anyhow::Error::new(source).context(format!("cannot write `{shown}`")))?;
    output::say(&format!("wrote {shown}"));
    if let Some(note) = note {
        output::note(note);
    }
    Ok(())
}

fn uninstall(place: &ScriptPlace) -> anyhow::Result<()> {
    let shown = crate::protocol::Shown::path(&place.file);
    match std::fs::read_to_string(&place.file) {
        Ok(found) if found.ends_with(MARK) => {
            std::fs::remove_file(&place.file)?;
            output::say(&format!("removed {shown}"));
            Ok(())
        }
        Err(missing) if missing.kind() == ErrorKind::NotFound => {
            output::say(&format!("{shown} is not there"));
            Ok(())
        }
        Ok(_) | Err(_) => Err(Refused(format!("`{shown}` is not of pml, and stays as it is")).into()),
    }
}
