//! The answer of a model for one photograph, and what is computed from it.

use std::fmt;

use locdiff_sphere::{Area, Density, InvalidDensity, LatLon, Survey};

use super::footprint::Footprint;
use super::inference::{Decode, Inference};
use super::model::{Located, ModelIdentity};
use super::reference::Reference;
use crate::geography::{Constraint, PlaceName, place_name};

/// Of moments for [`Decode::Kl`], if the density has no degree of its own: the paper's.
const KL_DEGREE: usize = 47;

/// Where a photograph was probably taken: a density on the Earth, the model it came from, and how.
#[derive(Debug, Clone)]
pub struct Estimate {
    density: Density,
    footprint: Option<Footprint>,
    references: Vec<Reference>,
    model: ModelIdentity,
    inference: Inference,
    warnings: Vec<String>,
    within: Vec<String>,
}

/// A place that the photograph may show.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The top of the peak.
    pub place: LatLon,
    /// Name of the place.
    pub name: PlaceName,
    /// The probability of the whole peak, or the model's score if it isn't calibrated.
    pub mass: f64,
    /// A circle of this radius around the place holds half as much.
    pub radius_km: f64,
}

/// The numbers that most people ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The answer as one place, by [`Inference::decode`].
    pub place: LatLon,
    /// Name of the place.
    pub name: PlaceName,
    /// Distinct places, the most probable first; at least one.
    pub candidates: Vec<Candidate>,
    /// A circle of this radius around the place holds half of everything.
    pub radius_50_km: f64,
    /// And one of this radius holds nine tenths.
    pub radius_90_km: f64,
    /// The area of the smallest region that holds half of everything.
    pub area_50_km2: f64,
    /// Area of the smallest region that contains 90 %.
    pub area_90_km2: f64,
    /// Width of the kernel that spread point masses, if there were any: finer detail isn't known.
    pub kernel_km: Option<f64>,
}

impl Estimate {
    /// An estimate from the density that a model returned.
    pub fn new(
        located: impl Into<Located>,
        model: ModelIdentity,
        inference: Inference,
        mut warnings: Vec<String>,
    ) -> Estimate {
        let Located { density, footprint, references, warnings: own } = located.into();
        warnings.extend(own);
        Estimate { density, footprint, references, model, inference, warnings, within: Vec::new() }
    }

    /// The whole answer of the model as a density; everything else is computed from it.
    pub fn density(&self) -> &Density {
        &self.density
    }

    /// The ground that the photograph shows, if the model registered it against a map.
    pub fn footprint(&self) -> Option<&Footprint> {
        self.footprint.as_ref()
    }

    /// Photographs of a gallery that resemble this one, the most similar first; none if the model has no gallery.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The model that gave it.
    pub fn model(&self) -> &ModelIdentity {
        &self.model
    }

    /// How it was computed.
    pub fn inference(&self) -> &Inference {
        &self.inference
    }

    /// What the model's training supports badly of that.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What the answer was restricted to, in words.
    pub fn within(&self) -> &[String] {
        &self.within
    }

    /// The same on a part of the Earth only: all numbers are those under the condition that the
    /// photograph was taken there. A footprint stays if its middle lies there, and so do references.
    pub fn restricted_to(&self, constraint: &Constraint) -> Result<Estimate, InvalidDensity> {
        let density = self.density.restricted_to(constraint.area().clone())?;
        let footprint = self.footprint.filter(|shown| constraint.area().contains(shown.middle));
        let inside = |found: &&Reference| constraint.area().contains(found.place);
        let references = self.references.iter().filter(inside).cloned().collect();
        let mut within = self.within.clone();
        within.push(constraint.to_string());
        Ok(Estimate { density, footprint, references, within, ..self.clone() })
    }

    /// The share of the unconstrained answer that the areas keep; `None` without areas.
    pub fn kept(&self) -> Option<f64> {
        fn kept(density: &Density) -> f64 {
            match density {
                Density::Restriction(part) => part.log_probability().exp() * kept(part.whole()),
                _ => 1.0,
            }
        }
        (!self.within.is_empty()).then(|| kept(&self.density).min(1.0))
    }

    /// Measures the density: regions, probabilities of areas and all else come from there.
    pub fn survey(&self) -> Survey<'_> {
        self.density.survey()
    }

    /// The probability, or score, that the photograph was taken in an area.
    pub fn probability_in(&self, area: &Area) -> f64 {
        self.survey().probability_in(area)
    }

    /// Up to so many candidates, and radii.
    pub fn summary(&self, candidates: usize) -> Summary {
        Summary::of(&self.survey(), candidates, self.inference.decode)
    }

    /// One place, by [`Inference::decode`].
    pub fn place(&self) -> LatLon {
        self.inference.decode.place(&self.survey())
    }
}

impl Decode {
    /// One place from a density.
    pub fn place(self, survey: &Survey<'_>) -> LatLon {
        let mode = || survey.modes().modes[0].place;
        match self {
            Decode::Mode => mode(),
            // A density that is the same in all directions has no mean.
            Decode::Mean => survey.mean_place().unwrap_or_else(mode),
            Decode::Kl => survey.nearest_encoding(degree_of(survey.density())),
            Decode::Geoscore => survey.best_expected_geoscore().place,
            Decode::Distance => survey.least_expected_distance().place,
        }
    }
}

/// The degree that a density's detail has, or the paper's.
fn degree_of(density: &Density) -> usize {
    match density {
        Density::Exponential(density) => density.coefficients().max_degree(),
        Density::Linear(density) => density.coefficients().max_degree(),
        Density::Mixture(mixture) => {
            mixture.parts().map(|(_, part)| degree_of(part)).max().unwrap_or(KL_DEGREE)
        }
        Density::Restriction(restriction) => degree_of(restriction.whole()),
        _ => KL_DEGREE,
    }
}

impl Summary {
    /// Candidates, radii and areas from a survey, with up to so many candidates (at least one).
    pub fn of(survey: &Survey<'_>, candidates: usize, decode: Decode) -> Summary {
        let modes = survey.modes();
        let shown = modes.modes.iter().take(candidates.max(1));
        let candidates: Vec<Candidate> = shown
            .map(|mode| Candidate {
                place: mode.place,
                name: place_name(mode.place),
                mass: mode.mass,
                radius_km: survey.radius_km(mode.place, 0.5 * mode.mass),
            })
            .collect();
        let place = decode.place(survey);
        Summary {
            radius_50_km: survey.radius_km(place, 0.5),
            radius_90_km: survey.radius_km(place, 0.9),
            area_50_km2: survey.region(0.5).area_km2(),
            area_90_km2: survey.region(0.9).area_km2(),
            kernel_km: modes.kernel_km,
            name: place_name(place),
            place,
            candidates,
        }
    }

    /// The first candidate.
    pub fn best(&self) -> &Candidate {
        &self.candidates[0]
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} {} ({:.0} %)", self.place, self.name, 100.0 * self.mass)
    }
}
