//! What approvals and remembered tools are bound to: what was declared, never the value of a secret.

use super::package::Package;
use super::source::{PlanSource, Scripts};
use crate::config::{Launch, Server};
use crate::protocol::{DependencyName, Digest};

/// Makes the digest that an approval is bound to.
pub(super) fn digest(
    name: &DependencyName,
    server: &Server,
    source: &PlanSource,
    scripts: Scripts,
) -> Digest {
    let mut parts: Vec<Vec<u8>> = vec![b"plan 1".to_vec(), name.as_str().into()];
    let mut list = |label: &str, words: &[&str]| {
        parts.push(label.into());
        parts.push(words.len().to_string().into());
        parts.extend(words.iter().map(|word| Vec::from(*word)));
    };
    match &server.launch {
        Launch::Command { command, args } => {
            list(
                "command",
                &std::iter::once(command)
                    .chain(args)
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
            );
        }
        Launch::Package { package, args } => {
            list(
                "package",
                &std::iter::once(package)
                    .chain(args)
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
            );
        }
        Launch::Remote { url, headers } => {
            list("url", &[url]);
            list(
                "headers",
                &headers
                    .iter()
                    .flat_map(|(name, value)| [name.as_str(), value.as_str()])
                    .collect::<Vec<_>>(),
            );
        }
    }
    list(
        "env",
        &server
            .env
            .iter()
            .flat_map(|(name, value)| [name.as_str(), value.as_str()])
            .collect::<Vec<_>>(),
    );
    match source {
        PlanSource::Package(package) => list("source", &[&package.to_string()]),
        PlanSource::Command { .. } => list("source", &[]),
        // Not what a variable says: the origin is what a person agreed to.
        PlanSource::Remote(address) => list("source", &[&address.origin()]),
    }
    list(
        "scripts",
        if scripts == Scripts::Allowed {
            &["allowed"]
        } else {
            &[]
        },
    );
    // Without one the digest is that of earlier versions.
    if let Some(file) = &server.variables_file {
        parts.extend([
            b"envFile".to_vec(),
            file.path().as_os_str().as_encoded_bytes().to_vec(),
        ]);
    }
    parts.extend([&server.directory, &server.cwd].map(|path| path.as_os_str().as_encoded_bytes().to_vec()));
    Digest::of(parts)
}

/// Makes the digest that the remembered tools of a package are bound to: two versions of it may be declared at once.
pub(super) fn catalog_key(package: &Package, arguments: &[String], server: &Server) -> Digest {
    let name = package.registry_name();
    let count = arguments.len().to_string();
    let version = package.version().as_str();
    let parts = ["catalog 2", package.ecosystem().as_str(), &name, version].into_iter();
    let extras = package.extras().join(",");
    let parts = parts.chain([
        extras.as_str(),
        package.executable().unwrap_or_default(),
        count.as_str(),
    ]);
    let beside = package.beside().iter().map(String::as_str);
    let parts = parts.chain(beside.flat_map(|requirement| ["beside", requirement]));
    // Not its path: the same package has the same tools in every project.
    let file = server.variables_file.iter().map(|_| "envFile");
    Digest::of(
        parts
            .chain(arguments.iter().map(String::as_str))
            .chain(server.env.keys().map(String::as_str))
            .chain(file),
    )
}
