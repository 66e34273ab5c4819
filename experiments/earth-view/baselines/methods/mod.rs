//! Other ways from an embedding to a place, each written once: what ours is compared with.
//!
//! Every network has the same trunk, optimiser, batch and processor time ([`FitOptions`]); methods
//! differ only in what they put behind the trunk and in what they minimise. An [`Answer`] gives a
//! density and one place. How sharp the density is, how much of it is spread over the whole Earth and
//! by which rule the place is chosen is fitted on held-out rows in the same way for all
//! ([`Calibration::fit`], [`Rule::fit`]); a method that gives points gets a kernel there.

mod answer;
mod bumps;
mod classification;
mod euclidean;
pub mod fitting;
mod harmonics;
mod kernel;
mod networks;
mod regression;
mod retrieval;
mod reverse_kl;
mod riemannian;
mod von_mises_fisher;
mod waves;

pub use answer::{Answer, Calibration, Rule, Shape, log_with_uniform};
use fitting::{Examples, Trained};
use locdiff_sphere::LatLon;

/// A way from an embedding to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Ours: coefficients of an exponential density in one pass, by likelihood.
    Harmonics,
    /// Diffusion over coefficients by the paper's loss, reverse KL over random anchors; not by its schedule and training.
    ReverseKl,
    /// Which cell of an adaptive division of the Earth (PlaNet).
    Classification,
    /// The place itself, as a vector.
    Regression,
    /// A von Mises-Fisher density.
    VonMisesFisher,
    /// A mixture of them.
    VonMisesFisherMixture,
    /// Diffusion in R³, projected to the sphere.
    EuclideanDiffusion,
    /// Flow matching in R³, projected to the sphere.
    EuclideanFlow,
    /// Flow matching along great circles (plonk).
    RiemannianFlow,
    /// The places of the training rows whose embeddings are nearest.
    Retrieval,
}

impl Method {
    /// All of them; ours comes first.
    pub const ALL: [Method; 10] = [
        Method::Harmonics,
        Method::ReverseKl,
        Method::Classification,
        Method::Regression,
        Method::VonMisesFisher,
        Method::VonMisesFisherMixture,
        Method::EuclideanDiffusion,
        Method::EuclideanFlow,
        Method::RiemannianFlow,
        Method::Retrieval,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::Harmonics => "ours: harmonics by likelihood, one pass",
            Method::ReverseKl => "reverse KL over anchors, shifted schedule, sampled",
            Method::Classification => "classification of cells",
            Method::Regression => "regression",
            Method::VonMisesFisher => "von Mises-Fisher",
            Method::VonMisesFisherMixture => "mixture of von Mises-Fisher",
            Method::EuclideanDiffusion => "diffusion in R³",
            Method::EuclideanFlow => "flow matching in R³",
            Method::RiemannianFlow => "Riemannian flow matching on S²",
            Method::Retrieval => "nearest-neighbour retrieval",
        }
    }

    /// Whether it has weights, and so a learning rate.
    pub fn is_trained(self) -> bool {
        self != Method::Retrieval
    }

    /// Fits it to embeddings, row by row, and their places. To be called in a pool of one thread, whose
    /// clock the options name.
    ///
    /// # Panics
    /// If there are no rows, or the embeddings are not as many as the places.
    pub fn fit(self, embeddings: &[f32], places: &[LatLon], options: &FitOptions) -> Fitted {
        let examples = Examples::new(embeddings, places);
        match self {
            Method::Harmonics => harmonics::fit(&examples, options),
            Method::ReverseKl => reverse_kl::fit(&examples, options),
            Method::Classification => classification::fit(&examples, options),
            Method::Regression => regression::fit(&examples, options),
            Method::VonMisesFisher => von_mises_fisher::fit(&examples, 1, options),
            Method::VonMisesFisherMixture => {
                von_mises_fisher::fit(&examples, von_mises_fisher::COMPONENTS, options)
            }
            Method::EuclideanDiffusion => {
                euclidean::fit(&examples, euclidean::Process::Diffusion, options)
            }
            Method::EuclideanFlow => euclidean::fit(&examples, euclidean::Process::Flow, options),
            Method::RiemannianFlow => riemannian::fit(&examples, options),
            Method::Retrieval => retrieval::fit(&examples),
        }
    }
}

/// What every fit gets.
#[derive(Debug, Clone, Copy)]
pub struct FitOptions {
    /// Processor seconds, by the clock.
    pub seconds: f64,
    /// The highest learning rate.
    pub rate: f64,
    /// The same seed gives the same network to begin with, and the same batches.
    pub seed: u64,
    /// Processor seconds of the calling thread so far.
    pub clock: fn() -> f64,
}

/// A fitted method.
pub struct Fitted {
    /// What answers.
    pub model: Box<dyn Baseline>,
    /// Steps that the budget allowed.
    pub steps: usize,
}

impl std::fmt::Debug for Fitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fitted").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// A fitted method's contract.
pub trait Baseline {
    /// One answer for each embedding, row by row.
    fn answers(&self, embeddings: &[f32], seed: u64) -> Vec<Box<dyn Answer>>;

    /// The log-density of a place for each embedding, where the method itself defines one beyond its
    /// answers: a flow does, whose answers are samples.
    fn log_densities(&self, _embeddings: &[f32], _places: &[LatLon]) -> Option<Vec<f64>> {
        None
    }
}

impl Fitted {
    fn of<B: Baseline + 'static>(steps: usize, model: B) -> Fitted {
        Fitted { model: Box::new(model), steps }
    }

    fn direct<N, B: Baseline + 'static>(trained: Trained<N>, model: impl FnOnce(N) -> B) -> Fitted {
        Fitted::of(trained.steps, model(trained.network))
    }
}

#[cfg(test)]
mod tests;
