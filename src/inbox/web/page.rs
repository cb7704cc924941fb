//! The files of the page, and the key that opens it.

use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use super::app::{App, SharedApp};
use super::reply;

/// A file of the page.
#[derive(Clone, Copy)]
struct PageFile {
    path: &'static str,
    media_type: &'static str,
    content: &'static str,
}

/// The pages, each of which a key opens; they draw everything else themselves.
const PAGES: [PageFile; 3] = [
    PageFile {
        path: "/",
        media_type: "text/html; charset=utf-8",
        content: include_str!("page/index.html"),
    },
    PageFile {
        path: "/runs",
        media_type: "text/html; charset=utf-8",
        content: include_str!("page/runs.html"),
    },
    PageFile {
        path: "/runs/{id}",
        media_type: "text/html; charset=utf-8",
        content: include_str!("page/run.html"),
    },
];

const FILES: [PageFile; 13] = [
    PageFile {
        path: "/app.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/app.js"),
    },
    PageFile {
        path: "/cards.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/cards.js"),
    },
    PageFile {
        path: "/parts.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/parts.js"),
    },
    PageFile {
        path: "/stream.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/stream.js"),
    },
    PageFile {
        path: "/app.css",
        media_type: "text/css; charset=utf-8",
        content: include_str!("page/app.css"),
    },
    PageFile {
        path: "/runs.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/runs.js"),
    },
    PageFile {
        path: "/run.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/run.js"),
    },
    PageFile {
        path: "/chat.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/chat.js"),
    },
    PageFile {
        path: "/tools.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/tools.js"),
    },
    PageFile {
        path: "/compose.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("page/compose.js"),
    },
    PageFile {
        path: "/run.css",
        media_type: "text/css; charset=utf-8",
        content: include_str!("page/run.css"),
    },
    PageFile {
        path: "/icon.svg",
        media_type: "image/svg+xml",
        content: include_str!("page/icon.svg"),
    },
    PageFile {
        path: "/manifest.webmanifest",
        media_type: "application/manifest+json",
        content: include_str!("page/manifest.webmanifest"),
    },
];

/// What a browser sends that only looks whether it may need a page.
const PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");

/// Routes the files; none of them holds anything of the user, so none needs a key.
pub(super) fn routes() -> Router<SharedApp> {
    let mut router = Router::new();
    for file in PAGES {
        let tag = tag(&file);
        let opened = move |State(app): State<SharedApp>, method: Method, uri: Uri, headers: HeaderMap| {
            std::future::ready(open(&app, &method, &uri, &headers, (&file, &tag)))
        };
        router = router.route(file.path, get(opened));
    }
    for file in FILES {
        let (path, tag) = (file.path, self::tag(&file));
        let served = move |headers: HeaderMap| std::future::ready(serve(&file, &tag, &headers));
        router = router.route(path, get(served));
    }
    router
}

/// Names the content of a file.
fn tag(file: &PageFile) -> String {
    let digest = Sha256::digest(file.content);
    let digits: Vec<String> = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{}\"", digits.concat())
}

fn serve(file: &PageFile, tag: &str, headers: &HeaderMap) -> Response {
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok());
    let known = known.is_some_and(|tags| {
        tags.split(',')
            .any(|known| known.trim().trim_start_matches("W/") == tag)
    });
    let mut reply = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, file.media_type)], file.content).into_response()
    };
    let headers = reply.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
}

/// Serves a page; a key in its address is used up for a cookie, and leaves the address.
fn open(
    app: &App,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    (file, tag): (&PageFile, &str),
) -> Response {
    let query = uri.query().unwrap_or_default();
    let key = query.split('&').find_map(|pair| pair.strip_prefix("key="));
    let Some(key) = key else {
        return serve(file, tag, headers);
    };
    let now = Instant::now();
    // A browser that fetches a page in advance, and a program that looks at the head only, must not use the key up.
    if *method != Method::GET || headers.contains_key(PURPOSE) {
        return reply::error(
            StatusCode::SERVICE_UNAVAILABLE,
            "a key is used by opening the page",
        );
    }
    let cookie = app
        .access
        .open(key, now)
        .map(|cookie| app.cookie.set(cookie.text()));
    let inside = || {
        let cookie = app.cookie.value(headers);
        cookie.is_some_and(|cookie| app.access.csrf_of(cookie, now).is_some())
    };
    let mut reply = StatusCode::SEE_OTHER.into_response();
    // A path of these pages begins with one slash only: it leads to no other host.
    let location = HeaderValue::from_str(uri.path()).unwrap_or(HeaderValue::from_static("/"));
    reply.headers_mut().insert(header::LOCATION, location);
    match cookie.map(|cookie| HeaderValue::from_str(&cookie)) {
        Some(Ok(cookie)) => {
            reply.headers_mut().insert(header::SET_COOKIE, cookie);
            reply
        }
        // The same address opened again in a browser that is in already.
        _ if inside() => reply,
        _ => refuse(app, now),
    }
}

/// Refuses a key that opens nothing, in words for the person who opened it.
fn refuse(app: &App, now: Instant) -> Response {
    if let Err(after) = app.limits.strangers.take(now) {
        return reply::too_many(after);
    }
    let text = "This key is used or no longer valid. Run `pml serve --open` in a terminal.\n";
    let media_type = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (StatusCode::FORBIDDEN, media_type, text).into_response()
}
