//! Connections whose clients read in time: an answer that nobody reads must not be kept for ever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::slots::Connection;

/// A connection that fails if an answer is not written within a time, however steadily the client reads.
pub(crate) struct ReadInTime<Stream> {
    stream: Stream,
    limit: Duration,
    /// Since the client first was too slow for the answer that is being written.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Is told when everything is written.
    connection: Option<Arc<Connection>>,
}

impl<Stream> ReadInTime<Stream> {
    pub(crate) fn new(
        stream: Stream,
        limit: Duration,
        connection: Option<Arc<Connection>>,
    ) -> ReadInTime<Stream> {
        ReadInTime { stream, limit, waiting: None, connection }
    }

    fn in_time(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            return written;
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client reads too slowly",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for ReadInTime<Stream> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper asks for it when it has written all that it had.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waiting = None;
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if let (Poll::Ready(Ok(())), Some(connection)) = (&flushed, &self.connection) {
            connection.written();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for ReadInTime<Stream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_client_that_trickles_is_left() {
        let limit = Duration::from_millis(200);
        let (server, mut client) = duplex(1000);
        let mut server = ReadInTime::new(server, limit, None);
        let reader = tokio::spawn(async move {
            let mut byte = [0];
            while client.read_exact(&mut byte).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let began = Instant::now();
        let error = server.write_all(&[7; 100_000]).await.expect_err("too slow");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= limit);
        reader.abort();
    }

    #[tokio::test]
    async fn each_answer_has_its_own_time() {
        let (server, mut client) = duplex(1000);
        let mut server = ReadInTime::new(server, Duration::from_millis(300), None);
        let reader = tokio::spawn(async move {
            let mut answer = [0; 5000];
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_millis(120)).await;
                client.read_exact(&mut answer).await.expect("an answer");
            }
        });
        for _ in 0..4 {
            server.write_all(&[7; 5000]).await.expect("in time");
            server.flush().await.expect("flushed");
        }
        reader.await.expect("no panic");
    }
}
