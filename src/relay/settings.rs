//! The file of a host: where it listens, and for which conversation. Every field is checked, and no value is repeated.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::Value;
use url::Host;
use uuid::Uuid;

use super::RelayError;
use crate::config;

/// How long a person has, in seconds, where the file does not say.
const TIMEOUT: u64 = 300;

/// The shortest and the longest time that a person can be given, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<u64> = 30..=900;

/// Far above any token of a web framework.
const CSRF_LIMIT: usize = 4096;

/// What a host says of itself and of the conversation it started. Has no `Debug`: two of its members are secrets.
pub(super) struct HostSettings {
    /// The file that says it.
    pub(super) file: PathBuf,
    /// Its address: a scheme, a host and perhaps a path.
    pub(super) api_url: Url,
    /// The token of the conversation, as it was written.
    pub(super) stream_token: String,
    /// The project of the conversation.
    pub(super) project_id: u64,
    /// What its posts carry against forgery.
    pub(super) csrf_token: Option<HeaderValue>,
    /// How long a person has for one question.
    pub(super) timeout: Duration,
}

/// The members of the file, before they are checked; a member that stands twice is refused.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct WrittenSettings {
    api_url: Option<Value>,
    stream_token: Option<Value>,
    user_id: Option<Value>,
    project_id: Option<Value>,
    csrf_token: Option<Value>,
    timeout: Option<Value>,
}

impl HostSettings {
    /// Reads the file; blocks.
    pub(super) fn read(path: &Path) -> Result<Self, RelayError> {
        let text = config::load_owned_text(path).map_err(RelayError::File)?;
        let text = text.ok_or_else(|| RelayError::NoFile {
            path: path.to_owned(),
        })?;
        Self::parse(path, &text)
    }

    /// Checks the text of the file at `path`.
    fn parse(path: &Path, text: &str) -> Result<Self, RelayError> {
        let not_json = |reason: String| RelayError::NotJson {
            path: path.to_owned(),
            reason,
        };
        let no_object = "it must be one JSON object, each member at most once";
        // A list would be read as the members in their order.
        if text.trim_ascii_start().starts_with('[') {
            return Err(not_json(no_object.to_owned()));
        }
        let written: WrittenSettings = serde_json::from_str(text).map_err(|error| {
            // The words about a wrong type repeat the value, which may be a secret.
            not_json(if error.is_data() {
                no_object.to_owned()
            } else {
                format!("not JSON: {error}")
            })
        })?;
        let checked = || -> Result<Self, FieldFault> {
            let settings = Self {
                file: path.to_owned(),
                api_url: api_url(written.api_url)?,
                stream_token: stream_token(written.stream_token)?,
                project_id: number("projectId", written.project_id)?,
                csrf_token: csrf_token(written.csrf_token)?,
                timeout: timeout(written.timeout)?,
            };
            // The host finds the user by the token; a file without one is still not of the contract.
            number("userId", written.user_id)?;
            Ok(settings)
        };
        checked().map_err(|FieldFault(field, problem)| RelayError::Field {
            path: path.to_owned(),
            field,
            problem,
        })
    }
}

/// A field, and what is wrong with it.
struct FieldFault(&'static str, String);

impl FieldFault {
    fn new(field: &'static str, problem: &str) -> Self {
        Self(field, problem.to_owned())
    }
}

fn text(field: &'static str, written: Option<Value>) -> Result<String, FieldFault> {
    match written {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(FieldFault::new(field, "must be a string")),
        None => Err(FieldFault::new(field, "is missing")),
    }
}

fn number(field: &'static str, written: Option<Value>) -> Result<u64, FieldFault> {
    let written = written.ok_or_else(|| FieldFault::new(field, "is missing"))?;
    let number = written.as_u64();
    number.ok_or_else(|| FieldFault::new(field, "must be a whole number that is not negative"))
}

fn api_url(written: Option<Value>) -> Result<Url, FieldFault> {
    let field = "apiUrl";
    let url = Url::parse(&text(field, written)?)
        .map_err(|error| FieldFault(field, format!("is not an address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(FieldFault::new(field, "must begin with `http://` or `https://`"));
    }
    match url.host() {
        Some(Host::Domain(name)) if !name.is_empty() => {}
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => {}
        Some(Host::Domain(_)) | None => return Err(FieldFault::new(field, "names no host")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FieldFault::new(field, "must not hold a user or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(FieldFault::new(field, "must not hold a query or a fragment"));
    }
    Ok(url)
}

fn stream_token(written: Option<Value>) -> Result<String, FieldFault> {
    let field = "streamToken";
    let token = text(field, written)?;
    // 36 characters: the other spellings of a UUID are not those of the contract.
    if token.len() == 36 && Uuid::try_parse(&token).is_ok() {
        Ok(token)
    } else {
        Err(FieldFault::new(field, "must be a UUID"))
    }
}

fn csrf_token(written: Option<Value>) -> Result<Option<HeaderValue>, FieldFault> {
    let field = "csrfToken";
    if written.is_none() {
        // Hosts that know the stream's token need none.
        return Ok(None);
    }
    let token = text(field, written)?;
    let fits = token.len() <= CSRF_LIMIT && token.bytes().all(|byte| byte.is_ascii_graphic());
    match HeaderValue::from_str(&token) {
        Ok(_) if token.is_empty() => Ok(None),
        Ok(mut value) if fits => {
            value.set_sensitive(true);
            Ok(Some(value))
        }
        Ok(_) | Err(_) => {
            let problem =
                format!("must be at most {CSRF_LIMIT} characters of printable ASCII without a space");
            Err(FieldFault(field, problem))
        }
    }
}

fn timeout(written: Option<Value>) -> Result<Duration, FieldFault> {
    let seconds = match written {
        None => Some(TIMEOUT),
        Some(written) => written.as_u64().filter(|seconds| TIMEOUTS.contains(seconds)),
    };
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let (least, most) = (TIMEOUTS.start(), TIMEOUTS.end());
        FieldFault(
            "timeout",
            format!("must be a whole number of seconds from {least} to {most}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TOKEN: &str = "a1b2c3d4-e5f6-7890-abcd-ef1234567890";

    fn written() -> Value {
        json!({
            "apiUrl": "http://localhost:8080", "streamToken": TOKEN, "userId": 1, "projectId": 5,
            "csrfToken": "abc123", "timeout": 60,
        })
    }

    fn parse(text: &str) -> Result<HostSettings, String> {
        HostSettings::parse(Path::new("/f.json"), text).map_err(|error| crate::report::render(&error, None))
    }

    #[test]
    fn a_file_of_the_contract_is_read_with_everything_it_says() {
        let settings = parse(&written().to_string()).unwrap();
        assert_eq!(settings.api_url.as_str(), "http://localhost:8080/");
        assert_eq!(settings.stream_token, TOKEN);
        assert_eq!(settings.project_id, 5);
        assert_eq!(settings.csrf_token.unwrap(), "abc123");
        assert_eq!(settings.timeout, Duration::from_mins(1));
    }

    #[test]
    fn time_and_forgery_token_may_be_left_out() {
        let mut file = written();
        for field in ["timeout", "csrfToken"] {
            file.as_object_mut().unwrap().remove(field);
        }
        let settings = parse(&file.to_string()).unwrap();
        assert_eq!(settings.timeout, Duration::from_mins(5));
        assert!(settings.csrf_token.is_none());
        file["csrfToken"] = json!("");
        assert!(parse(&file.to_string()).unwrap().csrf_token.is_none());
    }

    #[test]
    fn every_wrong_field_is_named_and_no_value_is_repeated() {
        let missing = "is missing";
        let number = "must be a whole number that is not negative";
        let seconds = "must be a whole number of seconds from 30 to 900";
        let forgery = "must be at most 4096 characters of printable ASCII without a space";
        for (field, value, problem) in [
            ("apiUrl", Value::Null, missing),
            ("apiUrl", json!(8080), "must be a string"),
            (
                "apiUrl",
                json!("secret-value"),
                "is not an address: relative URL without a base",
            ),
            (
                "apiUrl",
                json!("ftp://localhost"),
                "must begin with `http://` or `https://`",
            ),
            (
                "apiUrl",
                json!("file:///etc/passwd"),
                "must begin with `http://` or `https://`",
            ),
            ("apiUrl", json!("http://"), "is not an address: empty host"),
            (
                "apiUrl",
                json!("http://u:secret-value@localhost"),
                "must not hold a user or a password",
            ),
            (
                "apiUrl",
                json!("http://localhost/?secret-value"),
                "must not hold a query or a fragment",
            ),
            (
                "apiUrl",
                json!("http://localhost/#secret-value"),
                "must not hold a query or a fragment",
            ),
            ("streamToken", Value::Null, missing),
            ("streamToken", json!(7), "must be a string"),
            ("streamToken", json!("secret-value"), "must be a UUID"),
            (
                "streamToken",
                json!("a1b2c3d4e5f67890abcdef1234567890"),
                "must be a UUID",
            ),
            (
                "streamToken",
                json!("a1b2c3d4-e5f6-7890-abcd-ef123456789&"),
                "must be a UUID",
            ),
            ("userId", Value::Null, missing),
            ("userId", json!("1"), number),
            ("userId", json!(-1), number),
            ("projectId", Value::Null, missing),
            ("projectId", json!(1.5), number),
            ("projectId", json!("5&streamToken=secret-value"), number),
            ("csrfToken", json!(["secret-value"]), "must be a string"),
            ("csrfToken", json!("secret-value\r\nX-Other: 1"), forgery),
            ("csrfToken", json!("x".repeat(4097)), forgery),
            ("timeout", json!(29), seconds),
            ("timeout", json!(901), seconds),
            ("timeout", json!("60"), seconds),
            ("timeout", json!(60.5), seconds),
        ] {
            let mut file = written();
            file[field] = value;
            let said = parse(&file.to_string()).err().unwrap();
            assert_eq!(
                said,
                format!("`/f.json`, named by ASK_USER_CONFIG: `{field}` {problem}")
            );
            assert!(!said.contains("secret-value"));
        }
    }

    #[test]
    fn what_is_no_object_is_refused_without_its_words() {
        let twice = format!(r#"{{"streamToken":"{TOKEN}","streamToken":"{TOKEN}"}}"#);
        for text in ["", "{", "[]", "\"secret-value\"", "{\"apiUrl\":", &twice] {
            let said = parse(text).err().unwrap();
            assert!(
                said.starts_with("`/f.json`, named by ASK_USER_CONFIG: "),
                "{said}"
            );
            assert!(!said.contains("secret-value") && !said.contains(TOKEN), "{said}");
        }
    }
}
