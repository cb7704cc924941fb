//! Why a connection to a server, or one request over it, ended without an answer.
//!
//! The reason is a type up to the error that a call gets; its text reads after the name of the server. A flow that can
//! mend one of them, such as a sign-in on [`EndReason::Unauthorized`], finds it there and need not read words.

use reqwest::StatusCode;

use crate::loader::process::Exit;

/// Says why a connection, or one request over it, ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// Its process is gone.
    #[error("{0}")]
    Exited(Exit),
    /// pml stopped it, because it may no longer run.
    #[error("was stopped: {0}")]
    Stopped(&'static str),
    /// pml closed the connection, because it no longer needs it.
    #[error("was closed")]
    Closed,
    /// The server closed the stream on which it answers.
    #[error("closed its stream of events")]
    ClosedByServer,
    /// The server wants to know who calls: HTTP 401, or 403 where that is not enough.
    #[error(
        "answered HTTP {status}: it wants to know who calls; the token goes into the `headers` of this server in \
         .pml.json, such as \"Authorization\": \"Bearer ${{TOKEN}}\""
    )]
    Unauthorized {
        /// 401 or 403.
        status: StatusCode,
        /// The values of its `WWW-Authenticate` headers as they were sent; they are not shown.
        challenges: Vec<String>,
    },
    /// No connection came about.
    #[error("cannot be reached at {origin}: {reason}")]
    Unreachable {
        /// Scheme, host and port.
        origin: String,
        /// What kind of trouble it is.
        cause: UnreachableCause,
        /// What the operating system or the library said, escaped.
        reason: String,
    },
    /// Nothing is there, or no longer: HTTP 404 or 410 of a session that could not be renewed.
    #[error("answered HTTP {status}{said}")]
    Gone {
        /// 404 or 410.
        status: StatusCode,
        /// What else it said, escaped, after a colon.
        said: String,
    },
    /// The server forgot its session, and no other could be opened in time.
    #[error("forgot its session and takes too long to open another")]
    NotRenewed,
    /// The server answered with another status that is no success.
    #[error("answered HTTP {status}{said}")]
    Status {
        /// The status.
        status: StatusCode,
        /// What else it said, escaped, after a colon.
        said: String,
    },
    /// The connection broke in the middle of an answer.
    #[error("broke off its answer: {0}")]
    BrokenOff(String),
    /// The answer ended before it came to the point.
    #[error("ended its answer without answering")]
    Unanswered,
    /// The server did what the protocol forbids.
    #[error(transparent)]
    Violation(#[from] Violation),
}

/// The kind of trouble that keeps a connection from coming about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreachableCause {
    /// Nothing listens at the port.
    Refused,
    /// The name of the host leads nowhere.
    Name,
    /// The two could not agree on an encryption, or pml does not trust the server's certificate.
    Tls,
    /// It took too long.
    Timeout,
    /// Anything else.
    Other,
}

/// Says what a server did that the protocol forbids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It redirects to another origin than the declared one.
    #[error("redirects to {0}, which is not where it was declared to be; its headers are not sent there")]
    RedirectedElsewhere(String),
    /// It redirects without end.
    #[error("redirects in a circle")]
    RedirectedInCircle,
    /// Its answer is longer than the line limit.
    #[error("sent an answer longer than the line limit")]
    AnswerTooLong,
    /// It names an endpoint of another origin than the declared one.
    #[error("names an endpoint that is not at {0}, where it was declared to be")]
    EndpointElsewhere(String),
}
