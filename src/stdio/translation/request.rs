//! A request of the client that a dependency may have to answer.

use bytes::Bytes;

use crate::protocol::continuation::MEMBER;
use crate::protocol::{Digest, Object, canonical, check_uri, may_continue};
use crate::proxy::RequestedItem;
use crate::stdio::era::{Era, RpcError};

/// What a client asks a dependency for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Method {
    /// `tools/call`
    Call,
    /// `prompts/get`
    Prompt,
    /// `resources/read`
    Read,
    /// `resources/subscribe`
    Subscribe,
    /// `resources/unsubscribe`
    Unsubscribe,
    /// `completion/complete`
    Complete,
    /// What pml does not know.
    Other(String),
}

impl Method {
    /// Reads the name of a method.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "tools/call" => Self::Call,
            "prompts/get" => Self::Prompt,
            "resources/read" => Self::Read,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "completion/complete" => Self::Complete,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Tells whether a method is none of the Modern era: `subscriptions/listen` and `_meta` took their places.
    pub(crate) fn is_legacy_only(name: &str) -> bool {
        let gone = ["initialize", "ping", "logging/setLevel"];
        gone.contains(&name) || matches!(Self::of(name), Self::Subscribe | Self::Unsubscribe)
    }

    /// Tells whether MCP knows a method that a client may send after its first.
    pub(crate) fn is_known(name: &str) -> bool {
        let own = [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "subscriptions/listen",
        ];
        own.contains(&name) || !matches!(Self::of(name), Self::Other(_))
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Call => "tools/call",
            Self::Prompt => "prompts/get",
            Self::Read => "resources/read",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::Complete => "completion/complete",
            Self::Other(name) => name,
        }
    }

    /// Tells whether a Modern answer to it may ask for input.
    pub(crate) fn may_ask(&self) -> bool {
        matches!(self, Self::Call | Self::Prompt | Self::Read)
    }

    /// Returns the path to the member that names what is wanted.
    pub(crate) fn naming(&self, params: &Object<'_>) -> &'static [&'static str] {
        match self {
            Self::Call | Self::Prompt => &["name"],
            Self::Read | Self::Subscribe | Self::Unsubscribe => &["uri"],
            Self::Complete => match reference(params).map(|found| Reference::of(&found)) {
                Some(Ok(Reference::Resource)) => &["ref", "uri"],
                _ => &["ref", "name"],
            },
            Self::Other(_) => &[],
        }
    }
}

fn reference<'a>(params: &Object<'a>) -> Option<Object<'a>> {
    Object::parse(params.value("ref")?.get())
}

/// What a completion is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reference {
    Prompt,
    Resource,
}

impl Reference {
    /// Reads the type of a reference, which alone says what is completed.
    fn of(reference: &Object<'_>) -> Result<Self, RpcError> {
        let invalid = |reason: &str| Err(RpcError::new(RpcError::INVALID_PARAMS, reason));
        if reference.value("name").is_some() && reference.value("uri").is_some() {
            return invalid("`params.ref` has both `name` and `uri`; it names a prompt or a resource");
        }
        match reference.text("type").as_deref() {
            Some("ref/prompt") => Ok(Self::Prompt),
            Some("ref/resource") => Ok(Self::Resource),
            _ => invalid("`params.ref.type` must be `ref/prompt` or `ref/resource`"),
        }
    }
}

/// Whether the arguments of a request may hold a continuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Continuing {
    No,
    Perhaps,
}

impl Continuing {
    /// Looks for one by a search first, which is many times cheaper than reading the arguments.
    pub(crate) fn of(params: Option<&Object<'_>>) -> Self {
        let arguments = params.and_then(|params| params.value("arguments"));
        let found = arguments
            .filter(|raw| may_continue(raw.get()))
            .and_then(|raw| Object::parse(raw.get()));
        match found {
            // In whatever spelling: one that different readers read differently is refused.
            Some(arguments) if !arguments.reading_as(&[MEMBER]).is_empty() => Self::Perhaps,
            _ => Self::No,
        }
    }
}

/// A request on its way.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The raw parameters as the client sent them; an empty object where it sent none.
    pub(crate) params: Bytes,
    pub(crate) era: Era,
    pub(crate) continuing: Continuing,
    /// The read it came with.
    pub(crate) batch: u64,
}

impl Request {
    /// Returns the text of its parameters, which were read from a message and so are UTF-8.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.params).unwrap_or_default()
    }

    /// Returns what a request that goes on with this one must share with it: what is wanted, and the arguments.
    pub(crate) fn gist(&self) -> Option<Digest> {
        let object = Object::parse(self.text())?;
        let name = name(&self.method, &object).ok()?;
        let arguments = object.value("arguments").map(canonical).unwrap_or_default();
        Some(Digest::of([self.method.name(), &name, &arguments]))
    }
}

/// Returns the name of what is wanted, as the client knows it.
pub(crate) fn name(method: &Method, params: &Object<'_>) -> Result<String, RpcError> {
    let invalid = |path: &str| {
        RpcError::new(
            RpcError::INVALID_PARAMS,
            format!("`params.{path}` is not a string"),
        )
    };
    if let (Method::Complete, Some(reference)) = (method, reference(params)) {
        Reference::of(&reference)?;
    }
    let naming = method.naming(params);
    let name = match naming {
        [] => return Ok(method.name().to_owned()),
        [member] => params
            .text(member)
            .map(std::borrow::Cow::into_owned)
            .ok_or_else(|| invalid(member))?,
        [outer, inner, ..] => reference(params)
            .and_then(|found| found.text(inner).map(std::borrow::Cow::into_owned))
            .ok_or_else(|| invalid(&format!("{outer}.{inner}")))?,
    };
    if naming.last() == Some(&"uri") {
        check_uri(&name).map_err(|error| RpcError::new(RpcError::INVALID_PARAMS, error.to_string()))?;
    }
    Ok(name)
}

/// Says what a name stands for.
pub(crate) fn requested_item<'n>(method: &Method, params: &Object<'_>, name: &'n str) -> RequestedItem<'n> {
    match method {
        Method::Call => RequestedItem::Tool(name),
        Method::Read | Method::Subscribe | Method::Unsubscribe => RequestedItem::Resource(name),
        Method::Complete if method.naming(params) == ["ref", "uri"] => RequestedItem::Resource(name),
        Method::Prompt | Method::Complete => RequestedItem::Prompt(name),
        Method::Other(_) => RequestedItem::Method(name),
    }
}
