//! LocDiff over HTTP: images in, probability maps out; and the map page.
//!
//! A request's way: `access` (key, time limit, log) → `routes` (options, body with limits) → `queue`
//! (admitted or refused at once) → `workers` (batches) → `engine` (models) → JSON of `wire`. Everything that
//! goes wrong is a [`Problem`]. `docs/serve.md` is for those who run it.

mod access;
mod body;
mod clients;
mod connections;
mod costs;
mod density;
mod engine;
mod grid;
mod lanes;
mod logs;
mod memory;
mod metrics;
mod multipart;
mod openapi;
mod options;
mod origin;
mod page;
mod problem;
mod queue;
mod review;
mod routes;
mod settings;
mod slots;
mod state;
mod threads;
mod thumbnail;
mod wire;
mod workers;
mod writing;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::routing::{get, post};
use locdiff::CannotOpen;
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;

pub use engine::{Engine, LocateOptions, SentImage};
pub use logs::{LogFormat, LogGuard, start_logs};
pub use problem::Problem;
pub use settings::{InvalidSetting, Settings};
pub use thumbnail::jpeg;
pub use wire::{EmbedAnswer, Embedded, Failed, LocateAnswer, Outcome};

use lanes::{Lanes, Pools};
use state::{App, Shared};

/// Why a server could not start or end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A setting makes no sense.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The address is taken, or isn't ours.
    #[error(
        "cannot listen at {address}: {source}. Another server may be running there: choose another port with --port"
    )]
    Listen {
        /// Address and port to listen at.
        address: SocketAddr,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A model could not be opened.
    #[error(transparent)]
    Model(#[from] CannotOpen),
    /// Threads, counters.
    #[error("cannot start: {0}")]
    Start(String),
    /// The library of a photo archive can't be read.
    #[error(transparent)]
    Library(#[from] locdiff_archive::library::LibraryError),
    /// Requests were still being answered when the time to stop was over.
    #[error("stopped after {0} s, with requests that were not answered")]
    Unfinished(u64),
}

/// How often counters are tidied, whether anybody reads them or not: samples would pile up.
const UPKEEP: std::time::Duration = std::time::Duration::from_secs(5);

/// A server that listens, and doesn't answer yet.
pub struct Server {
    listener: TcpListener,
    app: App,
}

impl Server {
    /// Listens at the settings' address.
    pub async fn bind(settings: Settings) -> Result<Server, ServeError> {
        settings.check()?;
        let address = settings.address();
        let listen = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let metrics =
            metrics::Metrics::new().map_err(|error| ServeError::Start(error.to_string()))?;
        let memory = memory::Memory::new(&settings);
        let app = Arc::new(Shared {
            clients: clients::Clients::new(&settings, &memory),
            hosts: origin::Hosts::new(&settings),
            images: Lanes::new(workers::limits(&settings)),
            densities: Lanes::new(workers::limits_of_densities(&settings)),
            costs: costs::Costs::default(),
            pools: Pools::new().map_err(|error| ServeError::Start(error.to_string()))?,
            memory,
            metrics: Arc::new(metrics),
            engine: OnceLock::new(),
            stopping: AtomicBool::new(false),
            keys: settings.api_keys.iter().map(|key| access::digest_of(key)).collect(),
            settings,
        });
        Ok(Server { listener, app })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is done, then finishes what was accepted. Models are opened meanwhile; until
    /// they are, requests are rejected with 503. `ready` is called when they are.
    pub async fn run(
        self,
        ready: impl FnOnce() + Send + 'static,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let app = self.app;
        let settings = app.settings.clone();
        let limit = settings.shutdown_timeout_s;
        let router = router(Arc::clone(&app));
        let mut opening = tokio::task::spawn_blocking(move || {
            let engine = Engine::open(&settings).map(Arc::new);
            // Measures how fast the machine is, once: not in a request.
            density::seconds_per_cell();
            engine
        });
        let mut workers = Vec::new();
        let (failure_sender, failure) = tokio::sync::oneshot::channel();
        let opener = {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                let opened = match (&mut opening).await {
                    Ok(Ok(engine)) => Ok(engine),
                    Ok(Err(error)) => Err(ServeError::Model(error)),
                    Err(error) => Err(ServeError::Start(error.to_string())),
                };
                let started = opened.and_then(|engine| {
                    workers::start(&app, &engine)
                        .map(|threads| (engine, threads))
                        .map_err(|error| ServeError::Start(error.to_string()))
                });
                match started {
                    Ok((engine, threads)) => {
                        let _ = app.engine.set(engine);
                        tracing::info!("ready");
                        ready();
                        threads
                    }
                    Err(error) => {
                        let _ = failure_sender.send(error);
                        Vec::new()
                    }
                }
            })
        };
        let failed = Arc::new(OnceLock::new());
        let stop_or_fail = {
            let failed = Arc::clone(&failed);
            async move {
                tokio::select! {
                    () = stop => {}
                    Ok(error) = failure => { let _ = failed.set(error); }
                }
            }
        };
        let upkeep = tokio::spawn({
            let metrics = Arc::clone(&app.metrics);
            async move {
                loop {
                    tokio::time::sleep(UPKEEP).await;
                    metrics.tidy();
                }
            }
        });
        let (finished, deadline) =
            connections::serve(self.listener, router, &app, stop_or_fail).await;
        upkeep.abort();
        app.images.close();
        app.densities.close();
        // No request waits for models that are still being opened.
        if let Ok(Ok(threads)) = tokio::time::timeout_at(deadline, opener).await {
            workers.extend(threads);
        }
        let join =
            tokio::task::spawn_blocking(move || workers.into_iter().all(|w| w.join().is_ok()));
        let joined = tokio::time::timeout_at(deadline, join).await;
        if let Some(error) = Arc::into_inner(failed).and_then(OnceLock::into_inner) {
            return Err(error);
        }
        match joined {
            Ok(Ok(true)) if finished => Ok(()),
            _ => Err(ServeError::Unfinished(limit)),
        }
    }
}

impl Server {
    /// Serves the review page of a photo archive until `stop` is done, and no models.
    pub async fn review(
        self,
        library: &std::path::Path,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let review = review::Review::open(Arc::clone(&self.app), library)?;
        let router = review::router(Arc::new(review));
        let (finished, _) = connections::serve(self.listener, router, &self.app, stop).await;
        match finished {
            true => Ok(()),
            false => Err(ServeError::Unfinished(self.app.settings.shutdown_timeout_s)),
        }
    }
}

fn router(app: App) -> Router {
    Router::new()
        .route("/v1/locate", post(routes::locate))
        .route("/v1/embed", post(routes::embed))
        .route("/v1/density", post(density::density))
        .route("/v1/models", get(routes::models))
        .route("/v1/page", get(routes::page))
        .route("/v1/thumbnail", get(thumbnail::thumbnail))
        .route("/health/live", get(routes::live))
        .route("/health/ready", get(routes::ready))
        .route("/metrics", get(routes::metrics))
        .route("/openapi.json", get(openapi::openapi))
        .route("/docs", get(openapi::docs))
        .fallback(page::file)
        .method_not_allowed_fallback(access::wrong_method)
        .layer(CatchPanicLayer::custom(routes::panicked))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), access::around))
        .with_state(app)
}

/// Documentation tests compile the example of this page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;
