//! The kernel that makes a density of samples.

use locdiff_sphere::{Kernel, LatLon, PointMasses};

/// Widths that are tried, each so many times the one before.
const RATIO: f64 = 1.4;
const WIDEST_KM: f64 = 2500.0;
/// Samples that are left out in turn: more would not change the width by much.
const LEFT_OUT: usize = 64;

/// A kernel of the given width; without one, the width under which each sample is most probable given the others,
/// and no narrower than what the encoding can tell apart. A single sample has no information about its own spread.
pub(super) fn sample_kernel(places: &[LatLon], width_km: Option<f64>, least_km: f64) -> Kernel {
    let kernel = |width_km: f64| Kernel::new(width_km).expect("a width in range");
    if let Some(width_km) = width_km {
        return kernel(width_km);
    }
    // A tenth of a kilometre is enough; of the lowest degrees an encoding is as wide as a continent.
    let least_km = ((least_km * 10.0).ceil() / 10.0).min(WIDEST_KM);
    if places.len() < 2 {
        return kernel(least_km);
    }
    let widths = std::iter::successors(Some(least_km), |width| Some(width * RATIO))
        .take_while(|width| *width <= WIDEST_KM);
    let scored = widths.map(|width| (likelihood(places, kernel(width)), width));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there is a width");
    // Two digits are more than samples tell.
    let digits = 10_f64.powf(best.1.log10().floor() - 1.0);
    kernel(((best.1 / digits).round() * digits).max(least_km))
}

/// The sum of log-densities of places, each under the others.
fn likelihood(places: &[LatLon], kernel: Kernel) -> f64 {
    let leave_out = |k: usize| {
        let others: Vec<LatLon> =
            places.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, place)| *place).collect();
        let masses = vec![1.0; others.len()];
        let density = PointMasses::new(others, &masses).expect("there are others").spread(kernel);
        density.log_density(places[k])
    };
    (0..places.len().min(LEFT_OUT)).map(leave_out).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(spread_km: f64) -> Vec<LatLon> {
        let center = LatLon::new(-40.0, 179.9).unwrap();
        (0..16)
            .map(|k| center.destination(22.5 * f64::from(k), spread_km * (1.0 + f64::from(k % 3))))
            .collect()
    }

    #[test]
    fn the_kernel_follows_the_spread_of_the_samples() {
        let width = |spread_km| sample_kernel(&around(spread_km), None, 20.0).width_km();
        assert_eq!(width(0.01), 20.0);
        let (near, far) = (width(100.0), width(1000.0));
        assert!((30.0..300.0).contains(&near) && far > 3.0 * near, "{near} and {far}");
        assert_eq!(sample_kernel(&around(1000.0), Some(7.5), 20.0).width_km(), 7.5);
        assert_eq!(sample_kernel(&around(1000.0)[..1], None, 20.0).width_km(), 20.0);
        // Degree 1 can't tell anything apart.
        assert_eq!(sample_kernel(&around(100.0), None, 11_000.0).width_km(), WIDEST_KM);
        assert!(sample_kernel(&around(0.01), None, 19.73).width_km() >= 19.73);
    }
}
