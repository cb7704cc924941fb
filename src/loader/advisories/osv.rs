//! The questions to a database that speaks as OSV does: about many packages at once, then about single advisories.
//!
//! Whatever it answers is bounded: bodies, pages, ids, time. An answer that is not whole is an error: half of one would
//! say that nothing is known against the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::BytesMut;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;

use super::AdvisoryError;
use crate::config::{AdvisorySettings, Environment};
use crate::http_client::{self, root};
use crate::loader::plan::{Address, SecretCollector};
use crate::pins::{Advisory, PackageVersion, is_advisory_id, osv_ecosystem};
use crate::protocol::Secrets;

/// The most questions of one request that OSV takes.
const BATCH: usize = 1000;

/// How long one request may take: a full batch is answered within some seconds.
const LIMIT: Duration = Duration::from_secs(20);

/// How long all details together may take; what is not there by then is told without them.
const DETAILS_LIMIT: Duration = Duration::from_mins(1);

/// Room for fifty ids of each question of a batch, three times over.
const BATCH_BODY: usize = 16 * 1024 * 1024;

/// The longest records list every version of a package.
const DETAILS_BODY: usize = 4 * 1024 * 1024;

/// A page has some hundred ids; a database that says for ever that there are more has none.
const PAGES: usize = 32;

/// More than any package has; what is told of more is read by nobody.
const IDS: usize = 2000;

/// As many details are asked for; the rest is told by its ids.
const DETAILS: usize = 500;

/// How many details are asked for at a time.
const AT_A_TIME: usize = 8;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The way to one database.
pub struct Osv {
    client: Client,
    url: String,
    origin: String,
    secrets: Secrets,
    limit: Duration,
}

/// An advisory that was named in an answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct FoundId {
    /// Its id.
    pub id: String,
    /// When it last changed, where that is said.
    #[serde(default)]
    pub modified: Option<String>,
}

#[derive(Deserialize)]
struct BatchAnswer {
    results: Vec<PackageAnswer>,
}

#[derive(Default, Deserialize)]
struct PackageAnswer {
    #[serde(default)]
    vulns: Vec<FoundId>,
    #[serde(default)]
    next_page_token: Option<String>,
}

impl Osv {
    /// Makes ready to ask; nothing is sent yet.
    pub async fn new(settings: &AdvisorySettings, environment: &Environment) -> Result<Self, AdvisoryError> {
        let mut secrets = SecretCollector::default();
        secrets.proxies(environment);
        let secrets = secrets.secrets();
        let unreachable = |origin: String, reason: String| AdvisoryError::Unreachable { origin, reason };
        let address = Address::new(&settings.url, &BTreeMap::new())
            .map_err(|error| unreachable("the database".to_owned(), error.to_string()))?;
        let origin = address.origin();
        let client = http_client::to(address.url(), environment)
            .await
            .map_err(|error| unreachable(origin.clone(), error.reason(&secrets)))?;
        Ok(Self {
            client,
            url: settings.url.clone(),
            origin,
            secrets,
            limit: LIMIT,
        })
    }

    /// Asks what is known against packages; each of them has an answer, which may be empty.
    ///
    /// Names and versions are all that is sent.
    pub async fn ask(
        &self,
        packages: &BTreeSet<PackageVersion>,
    ) -> Result<BTreeMap<PackageVersion, BTreeSet<FoundId>>, AdvisoryError> {
        let mut answers: BTreeMap<PackageVersion, BTreeSet<FoundId>> = BTreeMap::new();
        let mut open: Vec<(&PackageVersion, Option<String>)> =
            packages.iter().map(|package| (package, None)).collect();
        for _ in 0..PAGES {
            let mut further = Vec::new();
            for batch in open.chunks(BATCH) {
                let answered = self.ask_batch(batch).await?;
                for ((package, _), answer) in batch.iter().zip(answered) {
                    let ids = answers.entry((*package).clone()).or_default();
                    ids.extend(answer.vulns);
                    if ids.len() > IDS {
                        return Err(self.broken("it names too many advisories about one package"));
                    }
                    if let Some(token) = answer.next_page_token.filter(|token| !token.is_empty()) {
                        further.push((*package, Some(token)));
                    }
                }
            }
            if further.is_empty() {
                return Ok(answers);
            }
            open = further;
        }
        Err(self.broken("its pages do not end"))
    }

    async fn ask_batch(
        &self,
        batch: &[(&PackageVersion, Option<String>)],
    ) -> Result<Vec<PackageAnswer>, AdvisoryError> {
        let queries = batch.iter().map(|(package, token)| {
            let mut query = json!({
                "package": { "ecosystem": osv_ecosystem(package.registry), "name": package.name },
                "version": package.version,
            });
            if let Some(token) = token {
                query["page_token"] = token.as_str().into();
            }
            query
        });
        let body = json!({ "queries": queries.collect::<Vec<_>>() }).to_string();
        let request = self.client.post(format!("{}/v1/querybatch", self.url));
        let request = request.header(CONTENT_TYPE, JSON).body(body);
        let body = self.send(request, BATCH_BODY).await?;
        let answer: BatchAnswer =
            serde_json::from_slice(&body).map_err(|_malformed| self.broken("it is not what OSV answers"))?;
        if answer.results.len() != batch.len() {
            return Err(self.broken("it does not answer every question once"));
        }
        let ids = || answer.results.iter().flat_map(|result| &result.vulns);
        if ids().any(|found| !is_advisory_id(&found.id)) {
            return Err(self.broken("it names an advisory by what is no id"));
        }
        Ok(answer.results)
    }

    /// Asks for the details of advisories, a few at a time; what cannot be had is left out.
    pub async fn details(&self, ids: &[String]) -> BTreeMap<String, Advisory> {
        let mut found = BTreeMap::new();
        let asking = async {
            for some in ids[..ids.len().min(DETAILS)].chunks(AT_A_TIME) {
                let mut requests = JoinSet::new();
                for id in some.iter().filter(|id| is_advisory_id(id)) {
                    let request = self.client.get(format!("{}/v1/vulns/{id}", self.url));
                    let (sent, id) = (
                        received(request.header(ACCEPT, JSON), DETAILS_BODY, self.limit),
                        id.clone(),
                    );
                    requests.spawn(async move { (sent.await, id) });
                }
                while let Some(Ok((received, id))) = requests.join_next().await {
                    let advisory = received.ok().and_then(|body| Advisory::read(&id, &body));
                    found.extend(advisory.map(|advisory| (id, advisory)));
                }
            }
        };
        let _ = tokio::time::timeout(DETAILS_LIMIT, asking).await;
        found
    }

    async fn send(&self, request: RequestBuilder, limit: usize) -> Result<BytesMut, AdvisoryError> {
        let received = received(request.header(ACCEPT, JSON), limit, self.limit).await;
        let origin = self.origin.clone();
        received.map_err(|failure| match failure {
            RequestFailure::Transport(error) => AdvisoryError::Unreachable {
                origin,
                reason: root(error, &self.secrets),
            },
            RequestFailure::Late => AdvisoryError::Unreachable {
                origin,
                reason: format!("it did not answer within {} seconds", self.limit.as_secs()),
            },
            RequestFailure::Status(status) => AdvisoryError::Status { origin, status },
            RequestFailure::TooLong => self.broken("it does not end"),
        })
    }

    fn broken(&self, reason: &'static str) -> AdvisoryError {
        AdvisoryError::Answer {
            origin: self.origin.clone(),
            reason,
        }
    }
}

/// Why a request has no body.
enum RequestFailure {
    Transport(reqwest::Error),
    Late,
    Status(reqwest::StatusCode),
    TooLong,
}

/// Sends a request and reads a body of at most `limit` bytes, both within `within`.
async fn received(
    request: RequestBuilder,
    limit: usize,
    within: Duration,
) -> Result<BytesMut, RequestFailure> {
    let receiving = async {
        let mut response = request.send().await.map_err(RequestFailure::Transport)?;
        if !response.status().is_success() {
            return Err(RequestFailure::Status(response.status()));
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(RequestFailure::Transport)? {
            if body.len() + chunk.len() > limit {
                return Err(RequestFailure::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    };
    tokio::time::timeout(within, receiving)
        .await
        .unwrap_or(Err(RequestFailure::Late))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_that_never_answers_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let settings = AdvisorySettings {
            url: url.clone(),
            ..AdvisorySettings::default()
        };
        let environment = Environment::new([("HOME", "/")], "/");
        let mut osv = Osv::new(&settings, &environment).await.unwrap();
        osv.limit = Duration::from_millis(50);
        let packages = BTreeSet::from([PackageVersion::read("npm:x@1").unwrap()]);
        let asking = osv.ask(&packages);
        let (asked, accepted) = tokio::join!(asking, listener.accept());
        let error = asked.unwrap_err();
        assert!(
            matches!(&error, AdvisoryError::Unreachable { origin, .. } if *origin == url),
            "{error}"
        );
        drop(accepted);
    }
}
