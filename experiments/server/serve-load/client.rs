//! A client that costs little: a socket, a request made once, an answer read to its announced end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The bytes of a request.
pub(crate) fn request(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub(crate) struct Client {
    /// Requests that were sent again, because the server had closed the idle connection.
    pub(crate) repeated: usize,
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

/// A status, or that nothing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Status(u16),
    /// Nobody listens any longer: the request was never accepted.
    NotConnected,
    /// Sent, and never answered.
    Nothing,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client { repeated: 0, address, stream: None, buffer: vec![0; 64 << 10] }
    }

    /// One request, on the connection that is open or on a new one. An old connection that the server has
    /// closed meanwhile is replaced once, as every HTTP client does.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Said {
        let reused = self.stream.is_some();
        match self.ask_once(request) {
            Said::Nothing if reused => {
                self.repeated += 1;
                self.ask_once(request)
            }
            said => said,
        }
    }

    /// One request on a new connection.
    pub(crate) fn ask_anew(&mut self, request: &[u8]) -> Said {
        self.stream = None;
        let said = self.ask_once(request);
        self.stream = None;
        said
    }

    fn ask_once(&mut self, request: &[u8]) -> Said {
        if self.stream.is_none() {
            let Ok(stream) = TcpStream::connect_timeout(&self.address, Duration::from_secs(10))
            else {
                return Said::NotConnected;
            };
            let _ = stream.set_nodelay(true);
            let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
            self.stream = Some(stream);
        }
        let Some(stream) = &mut self.stream else { return Said::NotConnected };
        // A refusal may come before all is sent.
        let _ = stream.write_all(request);
        match read(stream, &mut self.buffer) {
            Some((status, keep)) => {
                if !keep {
                    self.stream = None;
                }
                Said::Status(status)
            }
            None => {
                self.stream = None;
                Said::Nothing
            }
        }
    }
}

/// The status of an answer that came whole, and whether the connection stays.
fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(u16, bool)> {
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let count = stream.read(&mut buffer[filled..]).ok().filter(|count| *count > 0)?;
        filled += count;
        let Some(end) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let length: usize = value("content-length:")?.trim().parse().ok()?;
        if filled >= end + 4 + length {
            return Some((
                status,
                !value("connection:").is_some_and(|value| value.contains("close")),
            ));
        }
    }
}
