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
}

/// Makes ready to speak to an address; nothing is sent yet, and no redirect is followed.
pub(crate) async fn to(url: &Url, environment: &Environment) -> Result<Client, ClientError> {
    // What stays on this machine goes through no proxy: its headers would leave it.
    let proxies = if is_loopback(url) {
        Vec::new()
    } else {
        proxies(environment)
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

/// Returns the proxies that the environment names.
fn proxies(environment: &Environment) -> Vec<Proxy> {
    let named = |name: &str| {
        [name.to_owned(), name.to_ascii_lowercase()]
            .iter()
            .find_map(|name| environment.variable(name)?.to_str())
            .map(str::to_owned)
    };
    let excepted = NoProxy::from_string(&named("NO_PROXY").unwrap_or_default());
    [
        named("HTTP_PROXY").map(Proxy::http),
        named("HTTPS_PROXY").map(Proxy::https),
        named("ALL_PROXY").map(Proxy::all),
    ]
    .into_iter()
    .flatten()
    .filter_map(Result::ok)
    .map(|proxy| proxy.no_proxy(excepted.clone()))
    .collect()
}
