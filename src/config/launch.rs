//! How one entry says that its server is started or reached.

use super::Launch;
use super::file::{ServerEntry, Transport};

/// Reads how a server is started or reached.
pub(super) fn of(entry: &ServerEntry) -> Result<Launch, String> {
    let args = || entry.args.clone().unwrap_or_default();
    let launch = match (&entry.command, &entry.package, &entry.url) {
        (Some(command), None, None) => Launch::Command {
            command: filled("command", command)?,
            args: args(),
        },
        (None, Some(package), None) => Launch::Package {
            package: filled("package", package)?,
            args: args(),
        },
        (None, None, Some(url)) => Launch::Remote {
            url: filled("url", url)?,
            headers: entry.headers.clone().unwrap_or_default(),
        },
        (None, None, None) => return Err("one of `command`, `package` and `url` is needed".to_owned()),
        _ => return Err("only one of `command`, `package` and `url` is possible".to_owned()),
    };
    match (&launch, entry.transport) {
        (Launch::Remote { .. }, Some(Transport::Stdio)) => {
            Err("a server with a `url` is not of type `stdio`".to_owned())
        }
        (Launch::Command { .. } | Launch::Package { .. }, Some(Transport::Http | Transport::Sse)) => {
            Err("a server of type `http` or `sse` needs a `url`".to_owned())
        }
        (Launch::Remote { .. }, _) if entry.args.is_some() => {
            Err("`args` mean nothing to a server with a `url`".to_owned())
        }
        (Launch::Remote { .. }, _) if entry.env_file.is_some() => {
            Err("`envFile` means nothing to a server with a `url`: its `headers` take `${NAME}`".to_owned())
        }
        (Launch::Command { .. } | Launch::Package { .. }, _) if entry.headers.is_some() => {
            Err("`headers` mean nothing to a server without a `url`".to_owned())
        }
        _ => Ok(launch),
    }
}

fn filled(key: &str, text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err(format!("`{key}` is empty"))
    } else {
        Ok(text.to_owned())
    }
}
