//! A client for one address: its proxies, whom TLS trusts, and what may be told of a failure.
//!
//! What is spoken over it is not known here: servers (`loader`) and chat services (`channels`) use the same.

use std::net::IpAddr;

use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Url, redirect};
use url::Host;

use crate::config::Environment;
use crate::protocol::{Secrets, Shown};

/// A handshake over a bad line takes seconds; a host that never answers must not hold a call for minutes.
const CONNECT_LIMIT: std::time::Duration = std::time::Duration::from_secs(20);

/// Why there is no client.
pub(crate) enum ClientError {
    /// Its settings cannot be used.
    Settings(reqwest::Error),
    /// TLS cannot be set up.
    Tls,
    /// A variable that names a proxy names none. What it holds may have a password in it.
    Proxy {
        /// The variable.
        variable: &'static str,
    },
}

impl ClientError {
    /// Says what is wrong, without an address and without what `secrets` knows.
    pub(crate) fn reason(self, secrets: &Secrets) -> String {
        match self {
            Self::Settings(error) => root(error, secrets),
            Self::Tls => "TLS cannot be set up".to_owned(),
            Self::Proxy { variable } => {
                format!("`{variable}` is not the address of a proxy that begins with http:// or https://")
            }
        }
    }
}

/// Makes ready to speak to an address; nothing is sent yet, and no redirect is followed.
pub(crate) async fn to(url: &Url, environment: &Environment) -> Result<Client, ClientError> {
    // What stays on this machine goes through no proxy: its headers would leave it.
    let proxies = if is_loopback(url) {
        Vec::new()
    } else {
        proxies(environment)?
    };
    let certificates = if url.scheme() == "https" || !proxies.is_empty() {
        Certificates::OfTheMachine
    } else {
        Certificates::Unneeded
    };
    // The certificates of the machine are read from its disk.
    let built = tokio::task::spawn_blocking(move || {
        let builder = certificates
            .chosen()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_LIMIT)
            .user_agent(concat!("pml/", env!("CARGO_PKG_VERSION")))
            // The environment was read once; what it says of proxies comes from there.
            .no_proxy();
        proxies.into_iter().fold(builder, ClientBuilder::proxy).build()
    });
    match built.await {
        Ok(built) => built.map_err(ClientError::Settings),
        Err(_panicked) => Err(ClientError::Tls),
    }
}

/// Whom TLS trusts.
enum Certificates {
    /// Whom the machine trusts.
    OfTheMachine,
    /// No authority: no TLS is spoken, and a machine without certificates can do as much.
    Unneeded,
}

impl Certificates {
    fn chosen(self) -> ClientBuilder {
        // Another part of this process may have chosen already, and that is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match self {
            Self::OfTheMachine => Client::builder(),
            Self::Unneeded => Client::builder().tls_backend_preconfigured(
                rustls::ClientConfig::builder()
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth(),
            ),
        }
    }
}

/// Tells whether what is sent to an address stays on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        // Also with the dot that ends a whole name. Names below it are looked up elsewhere by some resolvers.
        Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name) == "localhost",
        Some(Host::Ipv4(address)) => stays_here(address.into()),
        Some(Host::Ipv6(address)) => stays_here(address.to_canonical()),
        None => false,
    }
}

/// A connection to the unspecified address reaches this machine, too.
fn stays_here(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

/// Returns the cause at the root of an error; the words above it name the address, which may hold a secret.
pub(crate) fn root(error: reqwest::Error, secrets: &Secrets) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Shown::line(&secrets.hide(&cause.to_string())).to_string()
}

/// Returns the proxies that the environment names. One that cannot be used is an error: going past it would tell an
/// address to a network that was not to know it.
fn proxies(environment: &Environment) -> Result<Vec<Proxy>, ClientError> {
    let named = |name: &str| {
        [name.to_owned(), name.to_ascii_lowercase()]
            .iter()
            .find_map(|name| environment.variable(name)?.to_str().map(str::trim))
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let excepted = NoProxy::from_string(&named("NO_PROXY").unwrap_or_default());
    let of = |variable: &'static str, proxy: fn(String) -> reqwest::Result<Proxy>| {
        let text = named(variable)?;
        // Without a scheme it is spoken to by HTTP; no other protocol of proxies is spoken here.
        let scheme = text.split_once("://").map_or("http", |(scheme, _)| scheme);
        let is_spoken = ["http", "https"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme));
        let proxy = proxy(text.clone()).ok().filter(|_| is_spoken);
        Some(match proxy {
            Some(proxy) => Ok(proxy.no_proxy(excepted.clone())),
            None => Err(ClientError::Proxy { variable }),
        })
    };
    [
        of("HTTP_PROXY", Proxy::http),
        of("HTTPS_PROXY", Proxy::https),
        of("ALL_PROXY", Proxy::all),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_proxy_that_cannot_be_used_is_an_error_that_names_its_variable_alone() {
        let url: Url = "https://service.example/".parse().unwrap();
        let told = async |name: &str, value: &str| {
            let environment = Environment::new([(name, value)], "/");
            let client = to(&url, &environment).await;
            client.err().map(|error| error.reason(&Secrets::default()))
        };
        for (name, value, variable) in [
            ("HTTPS_PROXY", "socks5://canary@proxy.example:1080", "HTTPS_PROXY"),
            ("https_proxy", "http://canary:[", "HTTPS_PROXY"),
            ("ALL_PROXY", "ftp://proxy.example", "ALL_PROXY"),
        ] {
            let told = told(name, value)
                .await
                .unwrap_or_else(|| panic!("{value} is taken"));
            assert!(
                told.starts_with(&format!("`{variable}` is not the address of a proxy")),
                "{told}"
            );
            assert!(!told.contains("canary"), "{told}");
        }
        for value in [
            "http://proxy.example:3128",
            "proxy.example:3128",
            "HTTPS://proxy.example",
            "",
            " ",
        ] {
            assert_eq!(told("HTTPS_PROXY", value).await, None, "{value:?}");
        }
    }
}
