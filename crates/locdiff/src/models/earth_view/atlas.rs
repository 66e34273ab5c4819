//! Where on Earth a view from above looks: a search over all land, and registration of what it finds against a mosaic.

use locdiff_earth::{Coarse, Guess, Imagery, Registrar};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::aligned_encoder::{AlignedEncoder, AlignedEncoderConfig};
use super::evidence::{Errors, Finding, Odds, weighed};
use super::gallery::{Gallery, GalleryMap};
use super::search::{Query, SearchResult, VIEW};
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
    /// What evidence counts.
    pub odds: Odds,
    /// How far off places are.
    pub errors: Errors,
    /// Pictures whose best place is less probable get no answer.
    pub least_probability: f64,
    /// The same for the search alone.
    pub least_search_probability: f64,
    /// Whether probabilities are what they say on real pictures.
    pub calibrated: bool,
}

/// An encoder, a gallery of the Earth by that encoder, and a mosaic.
#[derive(Debug)]
pub struct Atlas {
    /// Describes pictures.
    pub encoder: AlignedEncoder,
    /// What they are compared with.
    pub gallery: Gallery,
    /// What they are registered against.
    pub mosaic: Imagery,
    /// What evidence counts.
    pub settings: AtlasSettings,
}

impl Atlas {
    /// Places that a photograph's central square may show, most probable first. `wanted` narrows the search;
    /// without `registering`, only the search is done.
    pub fn find(
        &self,
        photo: &Photo,
        registering: bool,
        wanted: impl Fn(&GalleryMap) -> bool + Sync,
    ) -> Vec<Finding> {
        let query = Query::new(&self.encoder, &photo.square(VIEW as u32));
        let results = self.gallery.search(&query, self.settings.results, wanted);
        let findings = if registering {
            self.registered(photo, results)
        } else {
            let unregistered = |result| Finding { result, registration: None, probability: 0.0 };
            results.into_iter().map(unregistered).collect()
        };
        weighed(findings, &self.settings.odds)
    }

    /// A first, coarse look at all results, and a closer one at the best.
    fn registered(&self, photo: &Photo, results: Vec<SearchResult>) -> Vec<Finding> {
        let registrar = Registrar::new(&photo.square(SIDE), SIDE as usize);
        let mut coarse: Vec<(SearchResult, Coarse)> = results
            .into_par_iter()
            .map(|result| {
                let guess = Guess {
                    middle: (result.middle.latitude(), result.middle.longitude()),
                    heading_degrees: result.heading_degrees,
                    width_km: result.width_km,
                };
                (result, registrar.coarse(&self.mosaic, &guess))
            })
            .collect();
        let promise = |(result, coarse): &(SearchResult, Coarse)| {
            result.deviations + PROMISE * coarse.likeness()
        };
        coarse.sort_by(|a, b| promise(b).total_cmp(&promise(a)));
        coarse.truncate(self.settings.refined);
        coarse
            .into_par_iter()
            .map(|(result, coarse)| Finding {
                result,
                registration: Some(registrar.refine(&self.mosaic, &coarse)),
                probability: 0.0,
            })
            .collect()
    }
}
