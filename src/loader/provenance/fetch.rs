//! Fetches one document from a registry, within a bound of bytes and of time.
//!
//! No credentials are sent and no redirect is followed: a document comes from the registry's own host or not at all.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, HeaderValue};
use url::Url;

use crate::config::Environment;
use crate::http_client::{self, root};
use crate::protocol::Secrets;

/// Registries answer within a second or two; whoever resolves a package waits for this.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why a document was not fetched. It may be there: what is not known is not absent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FetchError {
    /// The registry answered something else.
    #[error("the registry answered {0}")]
    Status(u16),
    /// There was no way to the registry, or it broke off.
    #[error("the registry cannot be reached: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("the registry did not answer within {} s", DEADLINE.as_secs())]
    Late,
    /// It is longer than what is read.
    #[error("the registry answered more than {limit} bytes")]
    TooLong {
        /// The most that is read.
        limit: usize,
    },
}

/// What fetches documents, and what of it must not be shown.
#[derive(Debug, Clone)]
pub(super) struct Fetcher<'a> {
    pub(super) environment: &'a Environment,
    pub(super) secrets: &'a Secrets,
}

impl Fetcher<'_> {
    /// Fetches a document of at most `limit` bytes; `None` if the registry has none.
    pub(super) async fn fetch(
        &self,
        url: &Url,
        accept: &'static str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, FetchError> {
        let fetching = self.fetch_slowly(url, accept, limit);
        let fetched = tokio::time::timeout(DEADLINE, fetching).await;
        fetched.unwrap_or(Err(FetchError::Late))
    }

    async fn fetch_slowly(
        &self,
        url: &Url,
        accept: &'static str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, FetchError> {
        let unreachable = |error| FetchError::Unreachable(root(error, self.secrets));
        let client = http_client::to(url, self.environment)
            .await
            .map_err(|error| FetchError::Unreachable(error.reason(self.secrets)))?;
        let request = client
            .get(url.clone())
            .header(ACCEPT, HeaderValue::from_static(accept));
        let mut response = request.send().await.map_err(unreachable)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
            status => return Err(FetchError::Status(status.as_u16())),
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > limit {
                return Err(FetchError::TooLong { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body))
    }
}
