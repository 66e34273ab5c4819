//! Bursts: pictures within seconds show the same scene, and a model errs on all of them alike.
//!
//! A burst is one sighting. Its density is the geometric mean of those of its pictures: identical ones count as one of
//! them, not more.

use locdiff_sphere::Density;

use super::{Evidence, Fused, Sighting};

/// Pictures of one burst, or one known place.
pub(super) struct Burst {
    /// Numbers of the sightings, the earliest first.
    pub(super) members: Vec<usize>,
}

/// The bursts of sightings in any order, the earliest first. A burst ends `burst_s` seconds after it began.
pub(super) fn bursts(sightings: &[Sighting], burst_s: f64) -> Vec<Burst> {
    let mut order: Vec<usize> = (0..sightings.len()).collect();
    order.sort_by(|a, b| sightings[*a].time_s.total_cmp(&sightings[*b].time_s));
    let mut bursts: Vec<Burst> = Vec::new();
    for number in order {
        let sighting = &sightings[number];
        let is_picture = |s: &Sighting| matches!(s.evidence, Evidence::Picture(_));
        match bursts.last_mut() {
            Some(burst)
                if burst_s > 0.0
                    && is_picture(sighting)
                    && is_picture(&sightings[burst.members[0]])
                    && sighting.time_s - sightings[burst.members[0]].time_s <= burst_s =>
            {
                burst.members.push(number);
            }
            _ => bursts.push(Burst { members: vec![number] }),
        }
    }
    bursts
}

impl Burst {
    /// All members as one sighting, in the middle of their times.
    pub(super) fn pooled(&self, sightings: &[Sighting]) -> Sighting {
        let members = self.members.iter().map(|number| &sightings[*number]);
        let exponent = 1.0 / self.members.len() as f64;
        let time_s = members.clone().map(|member| exponent * member.time_s).sum();
        let densities = members.clone().filter_map(|member| match &member.evidence {
            Evidence::Picture(density) => Some((exponent, density.as_ref().clone())),
            Evidence::Known { .. } => None,
        });
        let densities: Vec<(f64, Density)> = densities.collect();
        let first = &sightings[self.members[0]];
        if densities.len() < 2 {
            return first.clone();
        }
        match Density::product(densities) {
            Ok(density) => Sighting::pictured(time_s, density),
            // They have no place in common: only the first counts.
            Err(_) => first.clone(),
        }
    }

    /// Gives every member what was found for all of them. A member of a burst that is a stray keeps its own density.
    pub(super) fn share(&self, sightings: &[Sighting], found: &Fused, into: &mut [Option<Fused>]) {
        for number in &self.members {
            let mut fused = found.clone();
            if self.members.len() > 1
                && found.stray > 0.5
                && let Evidence::Picture(density) = &sightings[*number].evidence
            {
                fused.density = density.as_ref().clone();
            }
            into[*number] = Some(fused);
        }
    }
}
