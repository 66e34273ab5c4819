//! The threads that work: they take batches from the queue and send each answer to whoever waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::engine::{Engine, Made, SentImage, Wanted, facts_of, failed};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::queue::Limits;
use crate::settings::Settings;
use crate::state::App;

/// Something to be done with a density: a map to be drawn.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// One: a map uses all cores where it can.
const DENSITY_WORKERS: usize = 1;

/// An image, to be located together with others.
pub(crate) struct ImageJob {
    pub(crate) image: SentImage,
    pub(crate) wanted: Arc<Wanted>,
    pub(crate) reply: oneshot::Sender<Made>,
    pub(crate) accepted: Instant,
    /// The memory that the image was promised, until it is answered.
    pub(crate) memory: Arc<OwnedSemaphorePermit>,
}

pub(crate) fn limits(settings: &Settings) -> Limits {
    Limits {
        max_batch: settings.max_batch,
        delay: Duration::from_millis(settings.batch_delay_ms),
        workers: settings.workers,
        max_queue: settings.max_queue,
        max_wait: Duration::from_millis(settings.max_wait_ms),
    }
}

/// Of the work on densities.
pub(crate) fn limits_of_densities(settings: &Settings) -> Limits {
    Limits { max_batch: 1, delay: Duration::ZERO, workers: DENSITY_WORKERS, ..limits(settings) }
}

/// Starts the workers; they end when their queues are closed and empty.
pub(crate) fn start(app: &App, engine: &Arc<Engine>) -> std::io::Result<Vec<JoinHandle<()>>> {
    let of_images = (0..app.settings.workers).map(|number| {
        let (queue, engine, metrics) =
            (Arc::clone(&app.images), Arc::clone(engine), Arc::clone(&app.metrics));
        thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            while let Some(mut batch) = queue.take() {
                work(std::mem::take(&mut batch.jobs), &engine, &metrics);
            }
        })
    });
    let of_densities = (0..DENSITY_WORKERS).map(|number| {
        let queue = Arc::clone(&app.densities);
        thread::Builder::new().name(format!("density-{number}")).spawn(move || {
            while let Some(mut batch) = queue.take() {
                for task in std::mem::take(&mut batch.jobs) {
                    if catch_unwind(AssertUnwindSafe(task)).is_err() {
                        tracing::error!("a task panicked");
                    }
                }
            }
        })
    });
    of_images.chain(of_densities).collect()
}

fn work(mut images: Vec<ImageJob>, engine: &Engine, metrics: &Metrics) {
    images.retain(|job| {
        // Whoever asked may have gone: no work for nobody.
        let gone = job.reply.is_closed();
        metrics.abandoned.increment(u64::from(gone));
        !gone
    });
    if images.is_empty() {
        return;
    }
    let began = Instant::now();
    for job in &images {
        metrics.wait_s.record(began.duration_since(job.accepted).as_secs_f64());
    }
    metrics.batch_images.record(images.len() as f64);
    let asked: Vec<(&SentImage, &Wanted)> =
        images.iter().map(|job| (&job.image, job.wanted.as_ref())).collect();
    // One image that nobody foresaw must not take the others along, nor the server.
    let made = catch_unwind(AssertUnwindSafe(|| engine.make(&asked)));
    metrics.batch_s.record(began.elapsed().as_secs_f64());
    let made = made.unwrap_or_else(|_| {
        tracing::error!(images = images.len(), "a batch panicked; trying its images one by one");
        let one = |job: &ImageJob| {
            let alone =
                catch_unwind(AssertUnwindSafe(|| engine.make(&[(&job.image, &job.wanted)]).pop()));
            let broken = || failed(&job.wanted, facts_of(&job.image), Problem::broken());
            alone.ok().flatten().unwrap_or_else(broken)
        };
        images.iter().map(one).collect()
    });
    for (job, made) in images.into_iter().zip(made) {
        drop(job.memory);
        // An answer that nobody waits for any longer.
        let _ = job.reply.send(made);
    }
}
