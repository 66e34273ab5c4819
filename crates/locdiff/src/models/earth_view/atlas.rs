//! Where on Earth a view from above looks: a search over all land, and registration of what it finds against a mosaic.

use locdiff_earth::{Coarse, Guess, Registrar};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::aligned_encoder::{AlignedEncoder, AlignedEncoderConfig};
use super::evidence::{Errors, Finding, Odds, weighed};
use super::gallery::Gallery;
use super::mosaic::Mosaic;
use super::search::{Known, Query, SearchResult, VIEW};
use crate::photo::Photo;

/// Pixels along the side of a picture that is registered: four for each of registration's own.
const SIDE: u32 = 256;
/// Standard deviations of the search that a coarse likeness of 1 is worth, when it is decided what is looked at more
/// closely.
const PROMISE: f64 = 50.0;

/// What belongs to an atlas besides weights, gallery and mosaic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasSettings {
    /// The encoder's shape.
    pub encoder: AlignedEncoderConfig,
    /// Results of the search that are looked at.
    pub results: usize,
    /// Those that are registered to the end.
    pub refined: usize,
    /// Weights of the evidence.
    pub odds: Odds,
    /// Errors of places that the search and the registration find.
    pub errors: Errors,
    /// Pictures whose best place is less probable get no answer.
    pub least_probability: f64,
    /// The same for the search alone.
    pub least_search_probability: f64,
    /// Whether probabilities are calibrated on real pictures.
    pub calibrated: bool,
}

/// An encoder, a gallery of the Earth by that encoder, and a mosaic.
#[derive(Debug)]
pub struct Atlas {
    /// Network that computes descriptors of pictures.
    pub encoder: AlignedEncoder,
    /// What they are compared with.
    pub gallery: Gallery,
    /// What they are registered against.
    pub mosaic: Mosaic,
    /// Weights of the evidence, and errors of places.
    pub settings: AtlasSettings,
}

impl Atlas {
    /// Places that a photograph's central square is like.
    pub fn search(&self, photo: &Photo, known: &Known<'_>) -> Vec<SearchResult> {
        let query = Query::new(&self.encoder, &photo.square(VIEW as u32));
        self.gallery.search(&query, self.settings.results, known)
    }

    /// Their order by the search alone, most probable first.
    pub fn unregistered(&self, results: Vec<SearchResult>, known: &Known<'_>) -> Vec<Finding> {
        let unregistered = |result| Finding { result, registration: None, probability: 0.0 };
        let findings = results.into_iter().map(unregistered).collect();
        weighed(findings, &self.settings.odds, known.nats(self.gallery.widths_km()))
    }

    /// The same places registered: a first, coarse look at all, and a closer one at the best.
    pub fn registered(
        &self,
        photo: &Photo,
        results: Vec<SearchResult>,
        known: &Known<'_>,
    ) -> Vec<Finding> {
        let mosaic = self.mosaic.imagery();
        let registrar = Registrar::new(&photo.square(SIDE), SIDE as usize);
        let mut coarse: Vec<(SearchResult, Coarse)> = results
            .into_par_iter()
            .map(|result| {
                let guess = Guess {
                    middle: (result.middle.latitude(), result.middle.longitude()),
                    heading_degrees: result.heading_degrees,
                    width_km: result.width_km,
                };
                (result, registrar.coarse(mosaic, &guess))
            })
            .collect();
        let promise = |(result, coarse): &(SearchResult, Coarse)| {
            result.deviations + PROMISE * coarse.likeness()
        };
        coarse.sort_by(|a, b| promise(b).total_cmp(&promise(a)));
        coarse.truncate(self.settings.refined);
        let findings = coarse
            .into_par_iter()
            .map(|(result, coarse)| Finding {
                result,
                registration: Some(registrar.refine(mosaic, &coarse)),
                probability: 0.0,
            })
            .collect();
        weighed(findings, &self.settings.odds, known.nats(self.gallery.widths_km()))
    }
}
