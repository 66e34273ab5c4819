//! Connections: so many at a time, none for ever, and an orderly end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::memory::READ_AHEAD;
use crate::state::App;
use crate::writing::ReadInTime;

/// How long to listen for one more connection that the system has accepted already, when stopping.
const LAST_CALL: Duration = Duration::from_millis(50);
/// And for all of them.
const LAST_CALLS: Duration = Duration::from_millis(200);

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
    let connections =
        Arc::new(Semaphore::new(settings.max_connections.min(Semaphore::MAX_PERMITS)));
    let graceful = GracefulShutdown::new();
    let writing = Duration::from_secs(settings.answer_timeout_s);
    let mut stop = std::pin::pin!(stop);
    let accept = |stream: TcpStream, permit: Option<OwnedSemaphorePermit>| {
        // Answers are small and complete: there is nothing to wait for.
        let _ = stream.set_nodelay(true);
        // What the system has taken for a client that is gone.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(writing));
        let service = TowerToHyperService::new(router.clone());
        let stream = TokioIo::new(ReadInTime::new(stream, writing));
        let connection = graceful.watch(http.serve_connection(stream, service));
        let gauge = app.metrics.connections.clone();
        gauge.increment(1.0);
        tokio::spawn(async move {
            // A client that goes away in the middle is not our mistake.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            gauge.decrement(1.0);
            drop(permit);
        });
    };
    loop {
        let permit = tokio::select! {
            () = &mut stop => break,
            Ok(permit) = Arc::clone(&connections).acquire_owned() => permit,
        };
        let stream = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Usually too many open files: waiting helps, spinning doesn't.
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        accept(stream, Some(permit));
    }
    let deadline = Instant::now() + Duration::from_secs(settings.shutdown_timeout_s);
    app.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
    tracing::info!("stopping: finishing accepted requests");
    // Those that the system has accepted in our name already are answered too.
    let until = Instant::now() + LAST_CALLS;
    while Instant::now() < until
        && let Ok(Ok((stream, _))) = tokio::time::timeout(LAST_CALL, listener.accept()).await
    {
        accept(stream, None);
    }
    // And whoever came since, up to the moment of closing.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                accept(stream, None);
            }
        }
    }
    // Connections that nothing was read from yet would be closed: let them be read first.
    tokio::time::sleep(LAST_CALL).await;
    (tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_ok(), deadline)
}
