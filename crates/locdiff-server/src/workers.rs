//! The threads that work: they take batches from the queue and send each answer to whoever waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use locdiff_sphere::Stop;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::clients::Bucket;
use crate::engine::{Engine, Made, SentImage, Wanted, facts_of, failed};
use crate::lanes::Lane;
use crate::memory::Held;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::queue::{Job, Limits, PATIENCE};
use crate::settings::Settings;
use crate::state::App;
use crate::threads::{Stopwatch, lower_priority};

/// How many times as much as predicted work may cost, or as long it may take.
pub(crate) const MARGIN: f64 = 3.0;
/// In each lane: cheap ones do not wait for costly ones, whose lane is the second.
const DENSITY_WORKERS: usize = 1;
/// More than this is costly work on a density, in seconds.
const COSTLY_S: f64 = 0.25;

/// An image, to be located together with others.
pub(crate) struct ImageJob {
    pub(crate) image: SentImage,
    pub(crate) wanted: Arc<Wanted>,
    pub(crate) reply: oneshot::Sender<Made>,
    pub(crate) accepted: Instant,
    /// The memory of the request, until it is answered.
    pub(crate) memory: Arc<Held>,
    /// The memory that decoding the image takes.
    pub(crate) work_bytes: u64,
    /// Whether it needs so much memory that others would wait for it.
    pub(crate) comes_second: bool,
    /// Of processors.
    pub(crate) expected_s: f64,
    pub(crate) bucket: Arc<Bucket>,
}

impl Job for ImageJob {
    fn cost(&self) -> f64 {
        if self.reply.is_closed() { 0.0 } else { self.expected_s }
    }

    fn bucket(&self) -> &Arc<Bucket> {
        &self.bucket
    }

    fn joins(&self, other: &ImageJob) -> bool {
        self.wanted.is_asked_like(&other.wanted)
    }

    fn comes_second(&self) -> bool {
        self.comes_second
    }
}

/// What work on a density is expected to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Of one processor.
    pub(crate) seconds: f64,
    /// Of memory.
    pub(crate) bytes: u64,
}

/// Something to be done with a density: a map to be drawn.
pub(crate) struct DensityJob {
    pub(crate) expected: Expected,
    /// Stopped when its client has gone.
    pub(crate) stop: Stop,
    /// Answers; whether it was done, not stopped.
    pub(crate) work: Box<dyn FnOnce() -> bool + Send>,
    pub(crate) bucket: Arc<Bucket>,
}

impl Job for DensityJob {
    fn cost(&self) -> f64 {
        if self.stop.is_stopped() { 0.0 } else { self.expected.seconds }
    }

    fn bucket(&self) -> &Arc<Bucket> {
        &self.bucket
    }

    fn comes_second(&self) -> bool {
        self.expected.seconds > COSTLY_S
    }
}

pub(crate) fn limits(settings: &Settings) -> Limits {
    Limits {
        max_batch: settings.max_batch,
        delay: Duration::from_millis(settings.batch_delay_ms),
        workers: settings.workers,
        max_queue: settings.max_queue,
        max_wait: Duration::from_millis(settings.max_wait_ms),
        // A batch that it shares.
        company: settings.max_batch as f64,
        first_guess: 1.0,
        slowest: MARGIN,
        long: 2.0,
    }
}

/// Of the work on densities.
pub(crate) fn limits_of_densities(settings: &Settings) -> Limits {
    let of_images = limits(settings);
    Limits {
        max_batch: 1,
        delay: Duration::ZERO,
        workers: DENSITY_WORKERS,
        // A cheap one behind the most expensive one is not refused for that.
        max_wait: of_images.max_wait + settings.density_budget().mul_f64(MARGIN),
        company: PATIENCE,
        long: f64::INFINITY,
        ..of_images
    }
}

/// Starts the workers of all lanes; they end when their queues are closed and empty.
pub(crate) fn start(app: &App, engine: &Arc<Engine>) -> std::io::Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for lane in Lane::ALL {
        let mut start = |work: fn(&App, &Engine, Lane, &Handle), what: &str| {
            let (app, engine, runtime) = (Arc::clone(app), Arc::clone(engine), Handle::current());
            let thread = thread::Builder::new().name(format!("{}-{what}", lane.name()));
            threads.push(thread.spawn(move || work(&app, &engine, lane, &runtime))?);
            Ok::<_, std::io::Error>(())
        };
        (0..app.settings.workers).try_for_each(|_| start(work_on_images, "images"))?;
        (0..DENSITY_WORKERS).try_for_each(|_| start(work_on_densities, "densities"))?;
    }
    Ok(threads)
}

fn work_on_images(app: &App, engine: &Engine, lane: Lane, runtime: &Handle) {
    let most = match lane {
        Lane::First => app.memory.first_bytes(),
        // Leaves most of the memory that it shares with the first lane.
        Lane::Long => app.memory.first_bytes() / 2,
        Lane::Second => app.memory.lane_bytes(),
    };
    while let Some(mut batch) = app.images.queue(lane).take() {
        batch.is_typical = false;
        for images in fitting(std::mem::take(&mut batch.jobs), most) {
            let images = awaited(images, &app.metrics);
            if images.is_empty() {
                continue;
            }
            let bytes = images.iter().map(|job| job.work_bytes).sum();
            let waiting = Instant::now();
            let memory = runtime.block_on(app.memory.work(lane, bytes));
            let kind = engine.kind(&images[0].wanted);
            let (began, count) = (Instant::now(), images.len());
            // Large images of clients within their share take memory of the second lane, not its priority.
            let is_due = || images.iter().all(|job| job.bucket.comes_first(0.0));
            let threads = match memory.lane() {
                Lane::Second if is_due() => Lane::Long,
                lane => lane,
            };
            let work = || work(images, engine, &app.metrics);
            let (done, mut worked_s) = app.pools.run(threads, work);
            let (took, waited) = (began.elapsed(), began - waiting);
            if engine.works_elsewhere() {
                worked_s = worked_s.max(took.as_secs_f64() / app.settings.workers as f64);
            }
            tracing::debug!(?lane, images = count, ?waited, ?took, worked_s, "images");
            batch.worked(worked_s);
            if let Some(answered) = done {
                app.costs.learn(&kind, answered, worked_s);
                batch.is_typical = true;
            }
        }
    }
}

/// On this thread, at the priority of its lane: behind no image that is computed in parallel.
fn work_on_densities(app: &App, _: &Engine, lane: Lane, runtime: &Handle) {
    lower_priority(lane.nice());
    while let Some(mut batch) = app.densities.queue(lane).take() {
        batch.is_typical = false;
        for job in std::mem::take(&mut batch.jobs) {
            let most = match lane {
                Lane::Second => app.memory.second_bytes(),
                Lane::First | Lane::Long => app.memory.first_bytes(),
            };
            let bytes = job.expected.bytes.min(most);
            let _memory = runtime.block_on(app.memory.work(lane, bytes));
            // The client may have gone: then there is nothing to do.
            if job.stop.is_stopped() {
                continue;
            }
            let time = Stopwatch::start();
            batch.is_typical = catch_unwind(AssertUnwindSafe(job.work)).unwrap_or_else(|_| {
                tracing::error!("work on a density panicked");
                false
            });
            let worked_s = time.seconds();
            tracing::debug!(?lane, worked_s, "a density");
            batch.worked(worked_s);
        }
    }
}

/// Images in groups whose decoding takes no more than there is memory for, in their order.
fn fitting(images: Vec<ImageJob>, most: u64) -> Vec<Vec<ImageJob>> {
    let (mut groups, mut bytes) = (Vec::<Vec<ImageJob>>::new(), 0);
    for image in images {
        bytes += image.work_bytes;
        match groups.last_mut() {
            Some(group) if bytes <= most => group.push(image),
            _ => {
                bytes = image.work_bytes;
                groups.push(vec![image]);
            }
        }
    }
    groups
}

/// The images whose clients have not gone: for the others there is nothing to do.
fn awaited(mut images: Vec<ImageJob>, metrics: &Metrics) -> Vec<ImageJob> {
    images.retain(|job| {
        let gone = job.reply.is_closed();
        metrics.abandoned.increment(u64::from(gone));
        !gone
    });
    images
}

/// How many were answered, if anybody waited for it.
fn work(images: Vec<ImageJob>, engine: &Engine, metrics: &Metrics) -> Option<usize> {
    let images = awaited(images, metrics);
    if images.is_empty() {
        return None;
    }
    let began = Instant::now();
    for job in &images {
        metrics.wait_s.record(began.duration_since(job.accepted).as_secs_f64());
    }
    metrics.batch_images.record(images.len() as f64);
    let asked: Vec<(&SentImage, &Wanted)> =
        images.iter().map(|job| (&job.image, job.wanted.as_ref())).collect();
    // A panic caused by one image must not affect the other images, nor the server.
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
    let answered = made.iter().filter(|made| made.is_answered()).count();
    for (job, made) in images.into_iter().zip(made) {
        drop(job.memory);
        // The client has gone.
        let _ = job.reply.send(made);
    }
    Some(answered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn groups_fit_and_lose_nothing() {
        let memory = Memory::new(&Settings::default());
        let held = Arc::new(memory.take(0).expect("nothing"));
        let job = |work_bytes: u64| ImageJob {
            image: SentImage { name: None, bytes: bytes::Bytes::new() },
            wanted: Arc::new(Wanted::Embedding { model: None }),
            reply: oneshot::channel().0,
            accepted: Instant::now(),
            memory: Arc::clone(&held),
            work_bytes,
            comes_second: false,
            expected_s: 1.0,
            bucket: Arc::new(Bucket::new(None)),
        };
        let groups = |sizes: &[u64]| -> Vec<Vec<u64>> {
            let groups = fitting(sizes.iter().copied().map(job).collect(), 10);
            let sizes = |group: &Vec<ImageJob>| group.iter().map(|job| job.work_bytes).collect();
            groups.iter().map(sizes).collect()
        };
        assert_eq!(groups(&[3, 3, 4, 1]), [vec![3, 3, 4], vec![1]]);
        // One that never fits is alone.
        assert_eq!(groups(&[1, 12, 9, 1, 1]), [vec![1], vec![12], vec![9, 1], vec![1]]);
        assert!(groups(&[]).is_empty());
    }
}
