//! The guard before every request: host, origin, token or cookie, and the value that a write of a page brings.

use std::time::Instant;

use axum::extract::connect_info::ConnectInfo;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::app::SharedApp;
use super::connections::ConnectionHandle;
use super::hosts::{Site, fetch_site};
use super::secret::Secret;
use super::{device, reply};
use crate::workflow::{Provenance, Road};

/// Nothing but what this server itself serves is loaded, run, sent to or framed.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The header in which a page proves that it is one of this server.
const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");

/// Lets a request pass that names this server and comes from no other site, and guards its reply.
pub(super) async fn guard(
    State(app): State<SharedApp>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    request: Request,
    next: Next,
) -> Response {
    let _serving = connection.serve();
    let refused = |text: &str| reply::error(StatusCode::FORBIDDEN, text);
    let mut reply = if !app.hosts.are_named_by(request.uri(), request.headers()) {
        refused("this server is not reached by that host name")
    } else if app.hosts.site_of(request.headers()) == Site::Other {
        refused("requests of other sites are refused")
    } else {
        next.run(request).await
    };
    let headers = reply.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    reply
}

/// Who sent a request.
enum Caller {
    /// A script with the token.
    Script,
    /// A browser with a cookie.
    Page { csrf: Secret, device: String },
}

impl Caller {
    fn of(app: &SharedApp, headers: &HeaderMap) -> Result<Self, Box<Response>> {
        let now = Instant::now();
        // What a page of another site sends never counts, whatever it carries.
        if fetch_site(headers) == Site::Other {
            let text = "requests of other sites are refused";
            return Err(Box::new(reply::error(StatusCode::FORBIDDEN, text)));
        }
        let known = match headers.get(header::AUTHORIZATION) {
            Some(value) => {
                let text = value.to_str().unwrap_or_default();
                let token = text
                    .split_once(' ')
                    .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
                token
                    .is_some_and(|(_, token)| app.access.token().is(token.trim()))
                    .then_some(Self::Script)
            }
            None => app.cookie.value(headers).and_then(|cookie| {
                let csrf = app.access.csrf_of(cookie, now)?;
                let user_agent = headers.get(header::USER_AGENT);
                let user_agent = user_agent
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default();
                let device = device::name(user_agent);
                Some(Self::Page { csrf, device })
            }),
        };
        known.ok_or_else(|| {
            Box::new(match app.limits.strangers.take(now) {
                Ok(()) => {
                    let text = "the key is missing or no longer valid; run `pml serve --open` in a terminal";
                    reply::error(StatusCode::UNAUTHORIZED, text)
                }
                Err(after) => reply::too_many(after),
            })
        })
    }

    fn provenance(&self) -> Provenance {
        match self {
            Self::Script => Provenance::of(Road::Web, "api"),
            Self::Page { device, .. } => Provenance::of(Road::Web, device),
        }
    }
}

/// The sender of a request that only looks.
pub(super) struct Reader {
    /// What a write of this sender must bring; a script needs nothing.
    pub(super) csrf: Option<Secret>,
}

impl FromRequestParts<SharedApp> for Reader {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Response> {
        let caller = Caller::of(app, &parts.headers).map_err(|reply| *reply)?;
        app.limits.reads.take(Instant::now()).map_err(reply::too_many)?;
        Ok(Self {
            csrf: match caller {
                Caller::Script => None,
                Caller::Page { csrf, .. } => Some(csrf),
            },
        })
    }
}

/// The sender of a request that changes something.
pub(super) struct Writer {
    /// The road and who came on it.
    pub(super) by: Provenance,
}

impl FromRequestParts<SharedApp> for Writer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Response> {
        let caller = Caller::of(app, &parts.headers).map_err(|reply| *reply)?;
        if let Caller::Page { csrf, .. } = &caller {
            let given = parts.headers.get(CSRF).and_then(|value| value.to_str().ok());
            if !given.is_some_and(|given| csrf.is(given)) {
                let text = "`X-CSRF-Token` is missing or old: it stands in /api/inbox as `csrf`";
                return Err(reply::error(StatusCode::FORBIDDEN, text));
            }
        }
        app.limits.writes.take(Instant::now()).map_err(reply::too_many)?;
        Ok(Self {
            by: caller.provenance(),
        })
    }
}

/// A script: what hands out keys is not for pages.
pub(super) struct Script;

impl FromRequestParts<SharedApp> for Script {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Response> {
        match Caller::of(app, &parts.headers).map_err(|reply| *reply)? {
            Caller::Script => {
                app.limits.writes.take(Instant::now()).map_err(reply::too_many)?;
                Ok(Self)
            }
            Caller::Page { .. } => Err(reply::error(
                StatusCode::FORBIDDEN,
                "only the token hands out keys",
            )),
        }
    }
}
