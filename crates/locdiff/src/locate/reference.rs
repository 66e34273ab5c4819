//! Photographs of a gallery that an answer rests on.

use locdiff_sphere::LatLon;

/// Candidates list no more of them.
const LISTED: usize = 5;
/// References of a candidate are at least so near, however narrow the kernel is.
const NEAR_KM: f64 = 100.0;
/// And no farther than so many widths of the kernel.
const NEAR_WIDTHS: f64 = 3.0;

/// A photograph of a gallery, with a known place, that resembles the one that was located.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Its path or address, as the gallery stores it.
    pub id: String,
    /// Where it was taken.
    pub place: LatLon,
    /// The cosine between the embeddings, at most 1. Not a probability.
    pub similarity: f64,
}

/// The most similar references near a place, and their distances in km. The kernel is the one that spread them.
pub(super) fn references_near(
    references: &[Reference],
    place: LatLon,
    kernel_km: Option<f64>,
) -> Vec<(&Reference, f64)> {
    let reach_km = (NEAR_WIDTHS * kernel_km.unwrap_or(0.0)).max(NEAR_KM);
    let distances = references.iter().map(|found| (found, found.place.distance_km(place)));
    let mut near: Vec<_> = distances.filter(|(_, km)| *km <= reach_km).collect();
    near.sort_by(|(a, _), (b, _)| b.similarity.total_cmp(&a.similarity));
    near.truncate(LISTED);
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_ones_nearby_are_listed() {
        let pole = LatLon::new(90.0, 0.0).unwrap();
        let references: Vec<Reference> = (0..20)
            .map(|k| Reference {
                id: k.to_string(),
                // All around the pole, farther and farther.
                place: pole.destination(f64::from(k) * 100.0, f64::from(k) * 19.0),
                similarity: f64::from(k) / 20.0,
            })
            .collect();
        let ids = |kernel_km| {
            let near = references_near(&references, pole, kernel_km);
            near.iter().map(|(found, _)| found.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(ids(None), ["5", "4", "3", "2", "1"]);
        assert_eq!(ids(Some(1.0)), ids(None));
        assert_eq!(ids(Some(50.0)), ["7", "6", "5", "4", "3"]);
        let (nearest, km) = references_near(&references, pole, None)[0];
        assert!((nearest.place.distance_km(pole) - km).abs() < 1e-9 && (km - 95.0).abs() < 1e-6);
    }
}
