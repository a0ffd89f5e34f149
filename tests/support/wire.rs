//! Plain TCP: requests that no HTTP library would send, and replies byte by byte.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::HANG;
use crate::server::TestServer;

/// A connection of bare bytes.
#[derive(Debug)]
pub struct Wire<S = TcpStream> {
    stream: S,
    /// Received and not yet handed out.
    buffer: Vec<u8>,
}

/// A reply as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireReply {
    /// The HTTP status code.
    pub status: u16,
    /// Header lines as sent: name and value.
    pub headers: Vec<(String, String)>,
    /// The body, chunked coding taken off.
    pub body: Vec<u8>,
}

impl WireReply {
    /// The value of the first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {text}"))
    }
}

impl TestServer {
    /// Opens a connection to it.
    pub async fn wire(&self) -> Wire {
        Wire::over(TcpStream::connect(self.addr()).await.expect("the server accepts"))
    }

    /// Sends `request` on a connection of its own and reads one reply.
    pub async fn exchange(&self, request: &str) -> WireReply {
        let mut wire = self.wire().await;
        wire.send(request).await;
        wire.reply().await
    }
}

impl Wire {
    /// Ends the connection with a reset.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("a socket");
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Over any stream, such as a Unix socket.
    pub fn over(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.expect("the server reads");
    }

    /// Like [`Wire::send`], for servers that may have closed the connection.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await?;
        self.stream.flush().await
    }

    /// Reads one reply to a request that was not HEAD; interim (1xx) replies are skipped.
    pub async fn reply(&mut self) -> WireReply {
        timeout(HANG, self.read_reply(true)).await.expect("a reply in time")
    }

    /// Reads one reply to a HEAD request.
    pub async fn reply_to_head(&mut self) -> WireReply {
        timeout(HANG, self.read_reply(false)).await.expect("a reply in time")
    }

    /// Reads one reply, or `None` if the server just closes the connection.
    pub async fn reply_or_end(&mut self) -> Option<WireReply> {
        let first = async { !self.buffer.is_empty() || self.fill().await };
        if !timeout(HANG, first).await.expect("a reply in time") {
            return None;
        }
        Some(self.reply().await)
    }

    /// Tells whether a byte of a reply is there, without waiting for one.
    pub fn has_reply(&mut self) -> bool {
        use futures_util::FutureExt as _;
        !self.buffer.is_empty() || self.fill().now_or_never() == Some(true)
    }

    /// Reads the first line of the next reply, interim ones included, and leaves the rest.
    pub async fn status_line(&mut self) -> String {
        timeout(HANG, self.take_line()).await.expect("a reply in time")
    }

    /// Waits for the end; true if the server closes the connection without another byte.
    pub async fn ends(&mut self) -> bool {
        let end = async {
            self.buffer.is_empty() && matches!(self.stream.read(&mut [0; 1]).await, Ok(0) | Err(_))
        };
        timeout(HANG, end).await.unwrap_or(false)
    }

    async fn read_reply(&mut self, with_body: bool) -> WireReply {
        loop {
            let head = self.take_head().await;
            let mut lines = head.split("\r\n");
            let status_line = lines.next().unwrap_or_default();
            let status: u16 =
                status_line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| {
                    panic!("no status in {status_line:?}");
                });
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect();
            if (100..200).contains(&status) {
                continue;
            }
            let mut reply = WireReply { status, headers, body: Vec::new() };
            if with_body && !matches!(status, 204 | 304) {
                reply.body = self.take_body(&reply).await;
            }
            return reply;
        }
    }

    async fn take_head(&mut self) -> String {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = self.take(at + 4);
                return String::from_utf8_lossy(&head[..at]).into_owned();
            }
            assert!(self.fill().await, "the connection ended within a header: {:?}", self.buffer);
        }
    }

    async fn take_body(&mut self, reply: &WireReply) -> Vec<u8> {
        if reply.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            return self.take_chunks().await;
        }
        if let Some(length) = reply.header("content-length") {
            let length = length.parse().expect("a length");
            while self.buffer.len() < length {
                assert!(self.fill().await, "the connection ended within a body of {length} bytes");
            }
            return self.take(length);
        }

        while self.fill().await {}
        std::mem::take(&mut self.buffer)
    }

    async fn take_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.take_line().await;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .unwrap_or_else(|e| panic!("{e}: chunk size {line:?}"));
            while self.buffer.len() < size + 2 {
                assert!(self.fill().await, "the connection ended within a chunk");
            }
            body.extend(self.take(size));
            self.take(2);
            if size == 0 {
                return body;
            }
        }
    }

    async fn take_line(&mut self) -> String {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|w| w == b"\r\n") {
                let line = self.take(at + 2);
                return String::from_utf8_lossy(&line[..at]).into_owned();
            }
            assert!(self.fill().await, "the connection ended within a line");
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Receives some more; false at the end of the stream.
    async fn fill(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..))
    }
}
