//! Replicas: a batch is cut into slices, whose gradients are computed side by side and added in order.
//!
//! The slices don't depend on the number of replicas, each slice is computed by one replica, and sums begin with the
//! first slice. So on the CPU one, two or four replicas give the same numbers bit for bit. A replica is a pool of
//! threads or a device; all are in one process, and share one loader and one optimizer.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::Flex;
use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::distributed::{ReduceOperation, all_reduce};
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use locdiff::tensors::{NamedVisitor, slice_of, visit_named};
use locdiff::vectorised;

/// Slices of a batch in a run with replicas, if its configuration doesn't set `run.slices`.
pub const SLICES: usize = 4;

/// Numbers that one task adds.
const CHUNK: usize = 16_384;

/// What computes the slices of a batch.
#[derive(Debug, Clone)]
pub struct Replicas(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// One after the other, on the threads and the device of the caller.
    Here,
    Threads(Arc<[ThreadPool]>),
    Devices(Vec<Device>),
}

impl Replicas {
    /// One replica: the threads and the device of the caller.
    pub fn one() -> Replicas {
        Replicas(Kind::Here)
    }

    /// So many replicas on the CPU, with so many threads each.
    ///
    /// # Errors
    /// If the system doesn't give so many threads.
    pub fn on_threads(
        replicas: usize,
        threads: usize,
    ) -> Result<Replicas, rayon::ThreadPoolBuildError> {
        let pool = |replica| {
            let name = move |thread| format!("replica {replica}.{thread}");
            ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build()
        };
        Ok(Replicas(Kind::Threads((0..replicas).map(pool).collect::<Result<_, _>>()?)))
    }

    /// One replica on each of these devices, the first of which is the one of the weights. Their gradients are added by
    /// Burn's `all_reduce`, which only CUDA has; in which order, the driver decides. Not run: we have no GPU.
    pub fn on_devices(devices: Vec<Device>) -> Replicas {
        Replicas(Kind::Devices(devices))
    }

    /// Number of replicas.
    pub fn count(&self) -> usize {
        match &self.0 {
            Kind::Here => 1,
            Kind::Threads(pools) => pools.len(),
            Kind::Devices(devices) => devices.len(),
        }
    }

    /// Their devices, if each has one of its own.
    pub(crate) fn devices(&self) -> &[Device] {
        match &self.0 {
            Kind::Devices(devices) => devices,
            _ => &[],
        }
    }

    /// The sum of a loss over slices, and of its gradients. `value` gives the loss of one slice, with the module of the
    /// replica that computes it: module, replica, slice.
    pub fn gradients<M: Module>(
        &self,
        module: &M,
        slices: usize,
        value: impl Fn(&M, usize, usize) -> Tensor<1> + Sync,
    ) -> (f64, GradientsParams) {
        let of_slice = |module: &M, replica: usize, slice: usize| {
            let value = value(module, replica, slice);
            let loss = f64::from(value.clone().into_scalar::<f32>());
            (loss, GradientsParams::from_grads(value.backward(), module))
        };
        let parts: Vec<(f64, GradientsParams)> = match &self.0 {
            Kind::Here => (0..slices).map(|slice| of_slice(module, 0, slice)).collect(),
            Kind::Threads(pools) => {
                let device = module.devices().remove(0);
                std::thread::scope(|scope| {
                    let jobs = pools.iter().enumerate().map(|(replica, pool)| {
                        // Leaves of its own: graphs that share one wait for each other.
                        let module = module.clone().fork(&device);
                        let own = share(replica, pools.len(), slices);
                        let of_slice = &of_slice;
                        let run = move || own.map(|k| of_slice(&module, replica, k)).collect();
                        scope.spawn(move || pool.install(run))
                    });
                    collected(jobs.collect())
                })
            }
            Kind::Devices(devices) => {
                let mut sums = std::thread::scope(|scope| {
                    let jobs = devices.iter().enumerate().map(|(replica, device)| {
                        let module = module.clone().fork(&device.clone().autodiff());
                        let own = share(replica, devices.len(), slices);
                        let of_slice = &of_slice;
                        scope.spawn(move || -> Vec<_> {
                            let parts = own.map(|k| of_slice(&module, replica, k)).collect();
                            let (loss, gradients) = in_order(&module, parts);
                            vec![(loss, over_devices(&module, gradients, devices))]
                        })
                    });
                    collected(jobs.collect())
                });
                // The others have the same gradients.
                let loss = sums.iter().map(|sum| sum.0).sum();
                return (loss, sums.swap_remove(0).1);
            }
        };
        in_order(module, parts)
    }
}

fn share(replica: usize, replicas: usize, slices: usize) -> Range<usize> {
    slices * replica / replicas..slices * (replica + 1) / replicas
}

fn collected<T>(jobs: Vec<std::thread::ScopedJoinHandle<'_, Vec<T>>>) -> Vec<T> {
    let results = jobs.into_iter().map(|job| match job.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    results.flatten().collect()
}

/// The sum, begun with the first.
fn in_order<M: Module>(module: &M, parts: Vec<(f64, GradientsParams)>) -> (f64, GradientsParams) {
    let (losses, mut gradients): (Vec<f64>, Vec<GradientsParams>) = parts.into_iter().unzip();
    let loss = losses.iter().sum();
    let rest = gradients.split_off(1.min(gradients.len()));
    let sum = gradients.pop().unwrap_or_default();
    if rest.is_empty() {
        return (loss, sum);
    }
    (loss, visit_named(module, Sum { sum, rest }).sum)
}

struct Sum {
    sum: GradientsParams,
    rest: Vec<GradientsParams>,
}

impl NamedVisitor for Sum {
    fn visit<const D: usize>(&mut self, _name: &str, param: &Param<Tensor<D>>) {
        let rest = self.rest.iter_mut().filter_map(|part| part.remove::<D>(param.id));
        let parts: Vec<Tensor<D>> =
            self.sum.remove::<D>(param.id).into_iter().chain(rest).collect();
        if let Some(sum) = sum_of(parts) {
            self.sum.register(param.id, sum);
        }
    }
}

fn sum_of<const D: usize>(parts: Vec<Tensor<D>>) -> Option<Tensor<D>> {
    let primitive = |part: &Tensor<D>| part.clone().try_into_primitive::<Flex>().ok();
    if parts.iter().any(|part| primitive(part).is_none()) {
        return parts.into_iter().reduce(|sum, part| sum + part);
    }
    let mut parts = parts.into_iter().map(|part| {
        part.try_into_primitive::<Flex>().expect("a tensor of the CPU").to_contiguous()
    });
    let mut sum = parts.next()?;
    let rest: Vec<_> = parts.collect();
    let numbers: &mut [f32] = sum.storage_mut();
    // All of them in one pass, chunk by chunk.
    numbers.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, sums)| {
        for part in &rest {
            let part = &slice_of(part)[chunk * CHUNK..][..sums.len()];
            vectorised!(sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value));
        }
    });
    Some(Tensor::from_primitive::<Flex>(sum))
}

fn over_devices<M: Module>(
    module: &M,
    gradients: GradientsParams,
    devices: &[Device],
) -> GradientsParams {
    visit_named(module, AllReduce { gradients, devices }).gradients
}

struct AllReduce<'a> {
    gradients: GradientsParams,
    devices: &'a [Device],
}

impl NamedVisitor for AllReduce<'_> {
    fn visit<const D: usize>(&mut self, _name: &str, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return };
        let sum = all_reduce(gradient, ReduceOperation::Sum, self.devices.to_vec());
        self.gradients.register(param.id, sum.resolve());
    }
}
