//! The paper's two decoders, as published: sums over anchors.
//!
//! "As published" means: plain sums over the anchors, which stand for the sphere, and a
//! window ρ that is a cap. In the mode-seeking decoder the places that compete are the
//! anchors themselves; the KL decoder, in closed form, searches continuously. Its
//! expectation stays a sum over anchors: exp F needs a finer grid than F.
//! Kept to compare with; [`Decoder`] is exact and far cheaper.

use crate::{Anchors, Basis, Coefficients, Decoder, EARTH_RADIUS_KM, LatLon, PlaceIndex};

/// The paper's decoders over a fixed set of anchors.
pub struct AnchorDecoder {
    basis: Basis,
    anchors: Anchors,
    near: PlaceIndex,
}

impl AnchorDecoder {
    /// Prepares decoding over `anchors`.
    ///
    /// # Panics
    /// If there are no anchors.
    pub fn new(max_degree: usize, anchors: Anchors) -> AnchorDecoder {
        assert!(!anchors.is_empty(), "a decoder needs at least one anchor");
        AnchorDecoder {
            basis: Basis::new(max_degree),
            near: PlaceIndex::new(anchors.places()),
            anchors,
        }
    }

    /// The places that the decoder chooses from.
    pub fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// F at every anchor: the dense product that makes this decoder expensive.
    ///
    /// # Panics
    /// If the coefficients have another maximum degree.
    pub fn values(&self, coefficients: &Coefficients) -> Vec<f64> {
        coefficients.assert_fits(&self.basis);
        let mut harmonics = vec![0.0; BLOCK * self.basis.len()];
        let mut values = Vec::with_capacity(self.anchors.len());
        for places in self.anchors.places().chunks(BLOCK) {
            let harmonics = &mut harmonics[..places.len() * self.basis.len()];
            self.basis.encode_into(places, harmonics);
            values.extend(harmonics.chunks_exact(self.basis.len()).map(|row| {
                row.iter().zip(coefficients.as_slice()).map(|(y, c)| y * c).sum::<f64>()
            }));
        }
        values
    }

    /// The mode-seeking decoder: the anchor whose cap of radius ρ holds most of exp F.
    ///
    /// With ρ = 0, or smaller than the anchors' spacing, the anchor of largest F.
    pub fn mode(&self, coefficients: &Coefficients, radius_km: f64) -> LatLon {
        self.mode_from_values(&self.values(coefficients), radius_km)
    }

    /// [`AnchorDecoder::mode`] for values of F that were computed elsewhere.
    ///
    /// # Panics
    /// If there is not one value per anchor.
    pub fn mode_from_values(&self, values: &[f64], radius_km: f64) -> LatLon {
        assert_eq!(values.len(), self.anchors.len(), "one value per anchor");
        let places = self.anchors.places();
        let highest = maximum(values);
        // The best cap holds at least exp(highest). A cap whose values all lie ln N below
        // holds less, so only caps around the anchors above that can win.
        let threshold = highest - (values.len() as f64).ln();
        let angle = radius_km / EARTH_RADIUS_KM;
        let mut centres: Vec<usize> = (0..values.len())
            .filter(|&anchor| values[anchor] > threshold || values[anchor] == highest)
            .flat_map(|hot| self.near.within(places[hot], angle).chain([hot]))
            .collect();
        centres.sort_unstable();
        centres.dedup();
        let mass = |centre: usize| {
            let others = self.near.within(places[centre], angle).filter(|&other| other != centre);
            others.chain([centre]).map(|anchor| (values[anchor] - highest).exp()).sum::<f64>()
        };
        let masses = centres.into_iter().map(|centre| (centre, mass(centre)));
        let best = masses.max_by(|a, b| a.1.total_cmp(&b.1));
        places[best.expect("the highest anchor is a centre").0]
    }

    /// The KL decoder, argmin_p KL(q ‖ q_Y(p)), which the paper calls impractical.
    ///
    /// The normaliser of q_Y(p) is the same for every place, so the minimum is where
    /// `E_q[Y]·Y(p)` is largest: one expectation, here over the anchors, and one search.
    ///
    /// # Panics
    /// If `decoder` or the coefficients have another maximum degree.
    pub fn kl(&self, coefficients: &Coefficients, decoder: &Decoder) -> LatLon {
        self.kl_from_values(&self.values(coefficients), decoder)
    }

    /// [`AnchorDecoder::kl`] for values of F that were computed elsewhere.
    ///
    /// # Panics
    /// If there is not one value per anchor, or `decoder` has another maximum degree.
    pub fn kl_from_values(&self, values: &[f64], decoder: &Decoder) -> LatLon {
        assert_eq!(values.len(), self.anchors.len(), "one value per anchor");
        let highest = maximum(values);
        let mut mean = Coefficients::zeros(self.basis.max_degree());
        for (place, value) in self.anchors.places().iter().zip(values) {
            let weight = (value - highest).exp();
            // Weights below rounding change nothing and cost an encoding each.
            if weight > 1e-20 {
                let harmonics = self.basis.encode(*place);
                for (sum, y) in mean.as_mut_slice().iter_mut().zip(harmonics.as_slice()) {
                    *sum += weight * y;
                }
            }
        }
        decoder.mode(&mean).place
    }
}

/// Anchors encoded at a time: their harmonics stay in the cache.
const BLOCK: usize = 64;

fn maximum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
