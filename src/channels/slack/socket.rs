//! One socket of Socket Mode: opened by a request that becomes a WebSocket, kept alive by pings, read frame by frame.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{StatusCode, Upgraded, Url};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use super::TITLE;
use super::api::{Api, unreadable};
use crate::channels::channel::ChannelError;

/// A socket is there within some seconds or not at all.
const CONNECT: Duration = Duration::from_secs(20);

/// A small frame is written at once, or the connection is dead.
const WRITE: Duration = Duration::from_secs(10);

/// The longest frame: a press brings the whole message with it, some 50 kB.
const FRAME: usize = 1024 * 1024;

/// Frames are small; the default would keep 128 kB for each socket.
const READ_AHEAD: usize = 16 * 1024;

/// A socket that is open.
pub(super) struct Socket(WebSocketStream<Upgraded>);

/// What is read from a socket.
#[derive(Debug)]
pub(super) enum Read {
    /// A frame with text.
    Text(String),
    /// A sign of life.
    Alive,
    /// The end, and why.
    End(ChannelError),
}

impl Socket {
    /// Opens a socket by the address that Slack gave.
    pub(super) async fn open(api: &Api, url: Url) -> Result<Self, ChannelError> {
        let opened = tokio::time::timeout(CONNECT, Self::open_slowly(api, url)).await;
        opened.unwrap_or_else(|_elapsed| Err(lost("its socket does not open in time")))
    }

    async fn open_slowly(api: &Api, url: Url) -> Result<Self, ChannelError> {
        let client = api.client_for(&url).await?;
        let key = generate_key();
        let request = client
            .get(url)
            .header(CONNECTION, HeaderValue::from_static("Upgrade"))
            .header(UPGRADE, HeaderValue::from_static("websocket"))
            .header(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))
            .header(SEC_WEBSOCKET_KEY, &key);
        let response = request.send().await.map_err(|error| api.unreachable(error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(unreadable(&format!(
                "its socket answers with status {}",
                response.status().as_u16()
            )));
        }
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        if accepted.is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
        {
            return Err(unreadable("its socket is none"));
        }
        let upgraded = response.upgrade().await.map_err(|error| api.unreachable(error))?;
        let limits = WebSocketConfig::default()
            .read_buffer_size(READ_AHEAD)
            .max_message_size(Some(FRAME))
            .max_frame_size(Some(FRAME));
        Ok(Self(
            WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(limits)).await,
        ))
    }

    /// Waits for the next frame. Loses nothing when it is dropped.
    pub(super) async fn read(&mut self) -> Read {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => Read::Text(text.as_str().to_owned()),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {
                Read::Alive
            }
            Some(Ok(Message::Close(_))) | None => Read::End(lost("its socket was closed")),
            Some(Err(Error::Capacity(_))) => Read::End(unreadable("a message is longer than pml reads")),
            Some(Err(Error::Protocol(_) | Error::Utf8(_))) => {
                Read::End(unreadable("its socket speaks wrongly"))
            }
            Some(Err(_)) => Read::End(lost("its socket broke")),
        }
    }

    /// Acknowledges an envelope.
    pub(super) async fn acknowledge(&mut self, id: &str) -> Result<(), ChannelError> {
        let text = serde_json::json!({ "envelope_id": id }).to_string();
        self.write(Message::text(text)).await
    }

    /// Asks for a sign of life.
    pub(super) async fn ping(&mut self) -> Result<(), ChannelError> {
        self.write(Message::Ping(Bytes::from_static(b"pml"))).await
    }

    /// Ends the connection in order.
    pub(super) async fn close(mut self) {
        // It is over in any case.
        let _ = tokio::time::timeout(WRITE, self.0.close(None)).await;
    }

    async fn write(&mut self, message: Message) -> Result<(), ChannelError> {
        match tokio::time::timeout(WRITE, self.0.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(lost("its socket broke")),
        }
    }
}

/// Says that a connection is over.
pub(super) fn lost(reason: &str) -> ChannelError {
    ChannelError::Unreachable {
        channel: TITLE,
        reason: reason.to_owned(),
    }
}
