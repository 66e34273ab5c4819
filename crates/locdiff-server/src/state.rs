//! What all requests share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use locdiff_sphere::{Budget, OverBudget, Stop};
use tokio::sync::oneshot;

use crate::clients::{Bucket, Client, Clients};
use crate::costs::Costs;
use crate::engine::{Engine, Made, SentImage, Wanted};
use crate::lanes::{Lane, Lanes, Pools};
use crate::memory::{Held, Memory};
use crate::metrics::Metrics;
use crate::origin::Hosts;
use crate::problem::{BUSY, NOT_READY, Problem};
use crate::queue::{Job, Refusal};
use crate::settings::Settings;
use crate::workers::{DensityJob, Expected, ImageJob};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) images: Lanes<ImageJob>,
    /// Apart from images: how long one takes tells nothing about the other.
    pub(crate) densities: Lanes<DensityJob>,
    pub(crate) costs: Costs,
    pub(crate) pools: Pools,
    pub(crate) memory: Memory,
    pub(crate) clients: Clients,
    pub(crate) hosts: Hosts,
    pub(crate) metrics: Arc<Metrics>,
    /// There once the models are open.
    pub(crate) engine: OnceLock<Arc<Engine>>,
    pub(crate) stopping: AtomicBool,
    /// SHA-256 of each key.
    pub(crate) keys: Vec<[u8; 32]>,
}

pub(crate) type App = Arc<Shared>;

impl Shared {
    pub(crate) fn engine(&self) -> Result<&Arc<Engine>, Problem> {
        self.engine.get().ok_or_else(|| {
            let detail = "the models are being loaded: retry when /health/ready returns 200";
            Problem::new(NOT_READY, detail).retry_after(2)
        })
    }

    /// Before a body is received: whether it is worth it.
    pub(crate) fn would_admit<J: Job>(
        &self,
        lanes: &Lanes<J>,
        cost: f64,
        bucket: &Arc<Bucket>,
    ) -> Result<(), Problem> {
        self.engine()?;
        lanes.would_admit(cost, bucket).map_err(refused)
    }

    /// Seconds of processors that an image is expected to take.
    pub(crate) fn expected_s(&self, wanted: &Wanted) -> Result<f64, Problem> {
        Ok(self.costs.expected_s(&self.engine()?.kind(wanted)))
    }

    /// Does what takes a thread up to some 100 ms: not on those that listen.
    pub(crate) async fn aside<T: Send + 'static>(
        self: &Arc<Shared>,
        lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || app.pools.aside(lane, work)).await;
        done.map_err(|_| Problem::broken())
    }

    /// Hands images to the workers, each with the memory that its decoding takes, and waits for what they make of them. Beside what is
    /// wanted stand the seconds that an image is expected to take.
    pub(crate) async fn make(
        &self,
        images: Vec<(SentImage, u64)>,
        (wanted, expected_s): (Wanted, f64),
        memory: Held,
        client: &Client,
    ) -> Result<Vec<Made>, Problem> {
        let (wanted, memory) = (Arc::new(wanted), Arc::new(memory));
        let accepted = Instant::now();
        let (jobs, answers): (Vec<ImageJob>, Vec<oneshot::Receiver<Made>>) = images
            .into_iter()
            .map(|(image, work_bytes)| {
                let (reply, answer) = oneshot::channel();
                let (wanted, memory) = (Arc::clone(&wanted), Arc::clone(&memory));
                let bucket = Arc::clone(&client.images);
                let comes_second = work_bytes > self.memory.first_bytes();
                let job = ImageJob {
                    image,
                    wanted,
                    reply,
                    accepted,
                    memory,
                    work_bytes,
                    comes_second,
                    expected_s,
                    bucket,
                };
                (job, answer)
            })
            .unzip();
        self.images.admit(jobs).map_err(refused)?;
        let mut made = Vec::with_capacity(answers.len());
        for answer in answers {
            made.push(answer.await.map_err(|_| Problem::broken())?);
        }
        Ok(made)
    }

    /// Lets a worker of its own do something with a density, within the budget and while somebody waits for it.
    pub(crate) async fn work<Product: Send + 'static>(
        &self,
        expected: Expected,
        budget: Budget,
        client: &Client,
        task: impl FnOnce(&Stop) -> Product + Send + 'static,
    ) -> Result<Result<Product, OverBudget>, Problem> {
        let (reply, answer) = oneshot::channel();
        // The client may go, or its time be up: then this future is dropped.
        let present = Present(Stop::default());
        let budget = budget.stopped_by(&present.0);
        let stop = present.0.clone();
        let work = Box::new(move || {
            let done = budget.run(|| task(&stop));
            let stopped = matches!(done, Err(OverBudget::Stopped));
            let _ = reply.send(done);
            !stopped
        });
        let bucket = Arc::clone(&client.densities);
        let job = DensityJob { expected, stop: present.0.clone(), work, bucket };
        self.densities.admit(vec![job]).map_err(refused)?;
        answer.await.map_err(|_| Problem::broken())
    }
}

/// Stops work whose client has gone.
struct Present(Stop);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Full { seconds } => {
            let detail = format!("the queue is full: retry in about {seconds:.1} s");
            Problem::new(BUSY, detail).retry_after(seconds.ceil() as u64)
        }
        Refusal::Share { seconds } => {
            let detail = format!(
                "this client has used its share of the server, and others are waiting: retry in about {seconds:.1} s"
            );
            Problem::new(BUSY, detail).retry_after(seconds.ceil() as u64)
        }
        Refusal::Closed => {
            Problem::new(NOT_READY, "the server is stopping: retry in 5 s").retry_after(5)
        }
    }
}
