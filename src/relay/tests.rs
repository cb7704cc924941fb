//! A host under a name of its own, and exchanges shorter than any file allows.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::RelayError;
use super::answer::Polled;
use super::host::Host;
use super::settings::HostSettings;
use crate::protocol::question::Question;

const TOKEN: &str = "a1b2c3d4-e5f6-7890-abcd-ef1234567890";
const LIMIT: Duration = Duration::from_secs(10);

fn settings(url: &str) -> HostSettings {
    HostSettings {
        file: PathBuf::from("/f.json"),
        api_url: Url::parse(url).unwrap(),
        stream_token: TOKEN.to_owned(),
        project_id: 5,
        csrf_token: None,
        timeout: Duration::from_secs(30),
    }
}

fn question() -> Question {
    let arguments = json!({ "question": "Which?", "options": [{ "label": "A" }] });
    Question::single(arguments.as_object().unwrap()).unwrap()
}

/// Answers one connection after the other with the same bytes, and returns what the first said.
async fn serve_once(listener: TcpListener, response: &'static str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut asked = vec![0; 4096];
    let read = stream.read(&mut asked).await.unwrap();
    stream.write_all(response.as_bytes()).await.unwrap();
    String::from_utf8_lossy(&asked[..read]).into_owned()
}

#[tokio::test]
async fn a_host_with_any_address_outside_this_machine_is_refused() {
    let near = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
    let far = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 80));
    let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80));
    let mapped = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped(), 80));
    for addresses in [
        vec![],
        vec![far],
        vec![near, far],
        vec![far, near],
        vec![unspecified],
        vec![near, mapped],
    ] {
        let shown = format!("{addresses:?}");
        let refused = Host::at(settings("http://host.example"), addresses).await;
        let error = refused.err().unwrap_or_else(|| panic!("{shown} is taken"));
        assert!(
            matches!(&error, RelayError::Field { field: "apiUrl", .. }),
            "{error}"
        );
    }
    let own = vec![
        near,
        SocketAddr::from((Ipv4Addr::new(127, 8, 8, 8), 80)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, 80)),
        SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), 80)),
    ];
    assert!(Host::at(settings("http://host.example"), own).await.is_ok());
}

#[tokio::test]
async fn a_name_is_resolved_once_and_exactly_that_address_is_spoken_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // No name server knows a name below `.invalid`: a second resolution would fail.
    let settings = settings(&format!("http://host.invalid:{port}/app/"));
    let host = Host::at(settings, vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1))]).await;
    let waiting = "HTTP/1.1 202 Told\r\ncontent-length: 0\r\n\r\n";
    let (asked, polled) = tokio::join!(serve_once(listener, waiting), async {
        host.unwrap_or_else(|error| panic!("{error}"))
            .poll(&question(), None, LIMIT)
            .await
    });
    assert_eq!(polled.unwrap(), Polled::Waiting);
    let line = asked.lines().next().unwrap();
    assert_eq!(
        line,
        format!("GET /app/claude/poll-answer?p=5&streamToken={TOKEN} HTTP/1.1")
    );
    assert!(
        asked.contains(&format!("host: host.invalid:{port}\r\n")),
        "{asked}"
    );
}

#[tokio::test]
async fn a_literal_address_and_localhost_resolve_without_a_name_server() {
    for (url, expected) in [
        ("http://127.0.0.1:7", "127.0.0.1:7"),
        ("https://[::1]", "[::1]:443"),
        // Browsers read numbers as addresses, and so does this.
        ("http://2130706433/", "127.0.0.1:80"),
    ] {
        let found = Host::addresses(&settings(url)).await.unwrap();
        assert_eq!(found, [expected.parse().unwrap()]);
    }
    let local = Host::addresses(&settings("http://localhost:7")).await.unwrap();
    assert!(!local.is_empty() && local.iter().all(|address| address.ip().is_loopback()));
}

#[tokio::test]
async fn the_words_about_a_failed_request_do_not_hold_the_token() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let host = Host::at(settings(&format!("http://{address}")), vec![address]).await;
    let host = host.unwrap_or_else(|error| panic!("{error}"));
    for error in [
        host.poll(&question(), None, LIMIT).await.unwrap_err(),
        host.relay(&question(), LIMIT).await.err().unwrap(),
    ] {
        let said = format!("{} {error:?}", crate::report::render(&error, None));
        assert!(said.contains("Connection refused"), "{said}");
        assert!(!said.contains(TOKEN), "{said}");
    }
}

#[tokio::test]
async fn a_host_that_names_its_question_is_polled_by_that_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let host = Host::at(settings(&format!("http://{address}")), vec![address]).await;
    let host = host.unwrap_or_else(|error| panic!("{error}"));
    let accepted = "HTTP/1.1 200 Told\r\nconnection: close\r\n\r\n{\"questionId\":\"q 1&x\"}";
    let (_, relayed) = tokio::join!(serve_once(listener, accepted), async {
        let question = question();
        host.relay(&question, LIMIT).await
    });
    let id = relayed.unwrap();
    let listener = TcpListener::bind(address).await.unwrap();
    let answered =
        "HTTP/1.1 200 Told\r\nconnection: close\r\n\r\n{\"status\":\"answered\",\"selectedOptions\":[0]}";
    let (asked, polled) = tokio::join!(serve_once(listener, answered), async {
        host.poll(&question(), id.as_ref(), LIMIT).await
    });
    assert!(asked.contains("&questionId=q+1%26x HTTP/1.1"), "{asked}");
    assert!(matches!(polled.unwrap(), Polled::Answered(answer) if answer.labels == ["A"]));
}
