//! Connections: so many at a time, none for ever, and an orderly end.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::clients::{Peer, network};
use crate::memory::READ_AHEAD;
use crate::slots::{Connection, Slot, Slots};
use crate::state::App;
use crate::writing::ReadInTime;

/// How long to listen for one more connection that the system has accepted already, when stopping.
const LAST_CALL: Duration = Duration::from_millis(50);
/// And for all of them.
const LAST_CALLS: Duration = Duration::from_millis(200);

/// Descriptors for everything but connections: files of models, thumbnails and libraries, logs, the runtime.
const RESERVED_FILES: u64 = 32;
/// The same warning is logged again after so long.
const QUIET: Duration = Duration::from_secs(1);

/// For a connection of an address that has too many, all of them with requests.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A connection's requests, with the address that they come from.
struct Marked<Inner> {
    inner: Inner,
    peer: Peer,
    connection: Arc<Connection>,
}

impl<Inner: Service<Request<Incoming>>> Service<Request<Incoming>> for Marked<Inner>
where
    Inner::Future: Send + 'static,
    Inner::Response: Send,
    Inner::Error: Send,
{
    type Response = Inner::Response;
    type Error = Inner::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Inner::Response, Inner::Error>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.connection.begin();
        request.extensions_mut().insert(self.peer);
        let (answer, connection) = (self.inner.call(request), Arc::clone(&self.connection));
        Box::pin(async move {
            let answer = answer.await;
            connection.end();
            answer
        })
    }
}

/// How many connections there can be: as many as are wanted, if the system lets this process open as many files.
fn most_connections(wanted: usize) -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let needed = (wanted as u64).saturating_add(RESERVED_FILES);
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        // None: no limit.
        let mut files = current.unwrap_or(u64::MAX);
        if files < needed {
            let more = needed.min(maximum.unwrap_or(u64::MAX));
            if setrlimit(Resource::Nofile, Rlimit { current: Some(more), maximum }).is_ok() {
                files = more;
            }
        }
        let room = files.saturating_sub(RESERVED_FILES).max(1);
        if room < wanted as u64 {
            tracing::warn!(
                "this process may open {files} files only: {room} connections at a time instead of {wanted} (`ulimit -n`)"
            );
            return room as usize;
        }
    }
    wanted
}

/// Answers connections until `stop` is done; then lets what has begun come to its end. Says whether
/// everything did in time, and when that time is over.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    app: &App,
    stop: impl Future<Output = ()>,
) -> (bool, Instant) {
    let settings = &app.settings;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(settings.header_timeout_s))
        .max_buf_size(READ_AHEAD)
        .keep_alive(true);
    let limit_addresses = settings.client_share().is_some();
    let most = most_connections(settings.max_connections);
    let slots = Arc::new(Slots::new(most, limit_addresses));
    let graceful = GracefulShutdown::new();
    let writing = Duration::from_secs(settings.answer_timeout_s);
    let mut stop = std::pin::pin!(stop);
    let accept = |stream: TcpStream, address: SocketAddr, slot: Slot| {
        // Answers are small and complete: there is nothing to wait for.
        let _ = stream.set_nodelay(true);
        // What the system has taken for a client that is gone.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(writing));
        let service = Marked {
            inner: TowerToHyperService::new(router.clone()),
            peer: Peer(address),
            connection: Arc::clone(&slot.connection),
        };
        let stream = ReadInTime::new(stream, writing, Some(Arc::clone(&slot.connection)));
        let stream = TokioIo::new(stream);
        let connection = graceful.watch(http.serve_connection(stream, service));
        let gauge = app.metrics.connections.clone();
        gauge.increment(1.0);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = slot.connection.closing() => {
                    tracing::debug!("an idle connection was closed for a new one");
                }
                // A client that goes away in the middle is not our mistake.
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                },
            }
            gauge.decrement(1.0);
            drop(slot);
        });
    };
    let take = |address: SocketAddr| {
        slots.take(network(address.ip()), app.clients.is_proxy(address.ip().to_canonical()))
    };
    let mut warned: Option<Instant> = None;
    loop {
        let (stream, address) = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if warned.is_none_or(|at| at.elapsed() >= QUIET) {
                        tracing::warn!(%error, "cannot accept connections");
                        warned = Some(Instant::now());
                    }
                    // Such an error is of one connection; others, like too many open files, stay for a while.
                    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
                    let of_one = [ConnectionAborted, ConnectionRefused, ConnectionReset];
                    if !of_one.contains(&error.kind()) {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    continue;
                }
            },
        };
        tokio::select! {
            () = &mut stop => break,
            () = slots.room() => {}
        }
        match take(address) {
            Some(slot) => accept(stream, address, slot),
            None => {
                app.metrics.connections_rejected.increment(1);
                // It fits into what the system keeps for a new connection.
                let _ = stream.try_write(TOO_MANY_CONNECTIONS);
            }
        }
    }
    let deadline = Instant::now() + Duration::from_secs(settings.shutdown_timeout_s);
    app.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
    tracing::info!("stopping: finishing accepted requests");
    // Those that the system has accepted in our name already are answered too.
    let until = Instant::now() + LAST_CALLS;
    while Instant::now() < until
        && let Ok(Ok((stream, address))) = tokio::time::timeout(LAST_CALL, listener.accept()).await
    {
        if let Some(slot) = take(address) {
            accept(stream, address, slot);
        }
    }
    // And whoever came since, up to the moment of closing.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, address)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
                && let Some(slot) = take(address)
            {
                accept(stream, address, slot);
            }
        }
    }
    // Connections that nothing was read from yet would be closed: let them be read first.
    tokio::time::sleep(LAST_CALL).await;
    (tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_ok(), deadline)
}
