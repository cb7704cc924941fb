//! Asks the server that runs for a key, so that a second `pml serve --open` opens its page.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::error::ServeError;
use super::only_server::{self, RunningServer};

/// How long the server may take; it only draws random numbers.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest reply that is read: a head and a key.
const REPLY_LIMIT: u64 = 16 << 10;

/// Returns the address that opens the page of the server that runs, once. It blocks.
pub fn fresh_key(state: &Path, running: &RunningServer) -> Result<String, ServeError> {
    let token = only_server::token(state)?;
    let key = ask(running.port, &token).map_err(|source| ServeError::NoKey {
        url: running.url.clone(),
        source,
    })?;
    Ok(format!("{}?key={key}", running.url))
}

fn ask(port: u16, token: &str) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = format!(
        "POST /api/keys HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut reply = String::new();
    stream.take(REPLY_LIMIT).read_to_string(&mut reply)?;
    let status = reply.lines().next().unwrap_or_default();
    let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    match body["key"].as_str() {
        Some(key) => Ok(key.to_owned()),
        None => Err(io::Error::other(format!(
            "it answered `{}`",
            crate::protocol::Shown::line(status)
        ))),
    }
}
