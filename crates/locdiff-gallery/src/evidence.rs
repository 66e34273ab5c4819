//! The likelihood of places, given the hits of one query.

use locdiff_sphere::{Density, Kernel, LatLon, PointMasses};

use crate::fusion::log_mean;
use crate::{Gallery, GalleryError, Hit, Likelihood};

/// A search's hits under a fitted likelihood.
///
/// Hits follow the gallery's prior: where more photographs are, more are found. [`density`](Self::density) keeps it;
/// [`log_ratio`](Self::log_ratio) and [`product`](Self::product) divide it out, so that the prior of a model takes
/// its place. The product with [`Density::uniform`] is the gallery's density without any prior.
#[derive(Debug, Clone)]
pub struct Evidence {
    share: f64,
    places: Vec<LatLon>,
    /// Weights of the hits; their sum is one.
    weights: Vec<f64>,
    kernel: Kernel,
    /// References spread by the kernel; none without hits.
    near: Option<Density>,
    prior: Density,
}

impl Likelihood {
    /// The likelihood of places, given the hits of a query. [`Likelihood::HITS`] of the best are used.
    pub fn evidence(&self, gallery: &Gallery, hits: &[Hit]) -> Result<Evidence, GalleryError> {
        let hits = &hits[..hits.len().min(Likelihood::HITS)];
        let best =
            hits.iter().map(|hit| f64::from(hit.similarity)).fold(f64::NEG_INFINITY, f64::max);
        let weight = |hit: &Hit| (self.sharpness * (f64::from(hit.similarity) - best)).exp();
        let sum: f64 = hits.iter().map(weight).sum();
        let weights: Vec<f64> = hits.iter().map(|hit| weight(hit) / sum).collect();
        let places: Vec<LatLon> = hits.iter().map(|hit| gallery.place(hit.row)).collect();
        let kernel = Kernel::new(self.width_km)?;
        let near = match hits {
            [] => None,
            _ => Some(PointMasses::new(places.clone(), &weights)?.spread(kernel)),
        };
        let share = if hits.is_empty() { 0.0 } else { self.share(best) };
        let prior = gallery.prior(self.width_km)?;
        Ok(Evidence { share, places, weights, kernel, near, prior })
    }
}

impl Evidence {
    /// The probability that any of the hits is near.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Where the gallery's photographs were taken: the prior that its density contains.
    pub fn prior(&self) -> &Density {
        &self.prior
    }

    /// The density of the query's place by the gallery alone, with the gallery's prior.
    pub fn density(&self) -> Result<Density, GalleryError> {
        match &self.near {
            Some(near) if self.share > 0.0 => {
                let parts =
                    vec![(self.share, near.clone()), (1.0 - self.share, Density::uniform())];
                Ok(Density::mixture(parts)?)
            }
            _ => Ok(Density::uniform()),
        }
    }

    /// The logarithm of the likelihood ratio at a place: how much more probable these hits are if the query was taken
    /// there than if nothing was known. 0 means that the hits are not informative; it is log(1 − share) far from all of them.
    pub fn log_ratio(&self, place: LatLon) -> f64 {
        let near = self.near.as_ref().map_or(f64::NEG_INFINITY, |near| near.log_density(place));
        let ratio = (near - self.prior.log_density(place)).exp();
        (self.share * ratio + (1.0 - self.share)).ln()
    }

    /// A model's density times the likelihood ratio, normalized.
    ///
    /// The product is (1 − share)·p(u) + share·Σ wᵢ K(u; xᵢ) p(u)/ρ(u), with the gallery's prior ρ. The kernel is narrow
    /// compared with ρ, so that this is a mixture: the model, and the references with weights wᵢ p(xᵢ)/ρ(xᵢ), where
    /// p(xᵢ) is the mean of p over the kernel. The mixture is normalized exactly; p is taken as constant over a kernel
    /// only in the shape of each part.
    pub fn product(&self, model: &Density) -> Result<Density, GalleryError> {
        let log_weights: Vec<f64> = self
            .places
            .iter()
            .zip(&self.weights)
            .map(|(place, weight)| {
                weight.ln() + log_mean(model, *place, self.kernel) - self.prior.log_density(*place)
            })
            .collect();
        let highest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.share == 0.0 || highest == f64::NEG_INFINITY {
            return Ok(model.clone());
        }
        let sum: f64 = log_weights.iter().map(|log| (log - highest).exp()).sum();
        let log_near = self.share.ln() + highest + sum.ln();
        let log_model = (1.0 - self.share).ln();
        let larger = log_near.max(log_model);
        let near = PointMasses::from_logits(self.places.clone(), &log_weights)?.spread(self.kernel);
        let parts =
            vec![((log_model - larger).exp(), model.clone()), ((log_near - larger).exp(), near)];
        Ok(Density::mixture(parts)?)
    }
}

#[cfg(test)]
mod tests;
