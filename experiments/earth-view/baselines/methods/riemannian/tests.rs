use locdiff_sphere::Grid;

use super::super::kernel::RoundKernel;
use super::super::tests::steps;
use super::*;

#[test]
fn baseline_ways_are_great_circles_of_even_speed() {
    let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
    let pairs = [
        (at(10.0, 179.0), at(-20.0, -178.0)),
        (LatLon::NORTH_POLE, at(-89.0, 40.0)),
        (at(48.0, 2.0), at(48.0, 2.5)),
    ];
    for (from, to) in pairs {
        let angle = from.angle_to(to);
        for time in [0.0, 0.25, 0.9, 1.0] {
            let (place, velocity) = on_the_way(from, to, time);
            assert!((dot(place, place) - 1.0).abs() < 1e-9);
            assert!(dot(place, velocity).abs() < 1e-9);
            assert!((dot(velocity, velocity).sqrt() - angle).abs() < 1e-9);
            let ahead = moved(place, velocity.map(|part| (1.0 - time) * part));
            let ahead = UnitVector::from_direction(ahead).unwrap();
            assert!(ahead.angle_to(UnitVector::from(to)) < 1e-7);
        }
    }
    let (place, velocity) = on_the_way(at(1.0, 2.0), at(1.0, 2.0), 0.3);
    assert!(place.iter().chain(&velocity).all(|number| number.is_finite()));
}

/// A flow that learns two known distributions, one at a pole and one across the antimeridian: its
/// density integrates to one, and its samples and its density are near the truth.
#[test]
fn baseline_flow_on_the_sphere_recovers_known_distributions() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let middles = [LatLon::NORTH_POLE, LatLon::new(-20.0, 180.0).unwrap()];
    let kernel = RoundKernel::new(0.1, f64::INFINITY);
    let draw = |k: usize, rng: &mut ChaCha8Rng| {
        let middle = UnitVector::from(middles[k]).to_array();
        LatLon::from(UnitVector::from_direction(kernel.sample(middle, rng)).unwrap())
    };
    let kinds: Vec<usize> = (0..2000).map(|k| k % 2).collect();
    let places: Vec<LatLon> = kinds.iter().map(|k| draw(*k, &mut rng)).collect();
    let embedding = |k: usize| if k == 0 { [1.0, -1.0] } else { [-1.0, 1.0] };
    let embeddings: Vec<f32> = kinds.iter().flat_map(|k| embedding(*k)).collect();
    let fitted = fit(&Examples::new(&embeddings, &places), &steps(80, 3e-3));
    assert_eq!(fitted.steps, 80);

    let grid = Grid::new(24, 48);
    let nodes: Vec<LatLon> = (0..grid.len()).map(|k| grid.place(k / 48, k % 48)).collect();
    for (k, middle) in middles.iter().enumerate() {
        let logs = |places: &[LatLon]| {
            fitted.model.log_densities(&embedding(k).repeat(places.len()), places).unwrap()
        };
        let density: Vec<f64> = logs(&nodes).iter().map(|log| log.exp()).collect();
        let whole = grid.integrate(&density);
        assert!((whole - 1.0).abs() < 0.02, "{whole}");
        let truths: Vec<LatLon> = (0..100).map(|_| draw(k, &mut rng)).collect();
        let nll = -logs(&truths).iter().sum::<f64>() / 100.0;
        // Its entropy is log 2πe·0.1 = 0.53 nats, the uniform density's 2.53.
        assert!(nll < 1.3, "{nll}");
        let answers = fitted.model.answers(&embedding(k), 5);
        let mean = answers[0].place(super::super::Rule::Mean, super::super::Shape::Power(1.0));
        assert!(mean.angle_to(*middle) < 0.35, "{mean}");
    }
}
