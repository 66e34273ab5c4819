//! Where a function that falls is zero.

/// How often the function is asked at most.
const MOST: usize = 40;

/// Where a falling function is zero to a tolerance, and its value there: by straight lines, the first of a slope that is known
/// about, between limits that come closer.
pub(super) fn root_of_falling(
    guess: f64,
    slope: f64,
    [mut low, mut high]: [f64; 2],
    tolerance: f64,
    mut function: impl FnMut(f64) -> f64,
) -> (f64, f64) {
    let (mut x, mut value) = (guess, function(guess));
    let (mut slope, mut turn, mut reach) = (slope, 0, 1.0);
    while value.abs() >= tolerance && turn < MOST {
        if value > 0.0 {
            low = x;
        } else {
            high = x;
        }
        let step = x - value / slope;
        let is_between = low < step && step < high;
        // Every third time in the middle, lest one limit stay. Until there are two limits, no farther than twice as far as before.
        let next = if !(low.is_finite() && high.is_finite()) {
            reach *= 2.0;
            x + (step - x).clamp(-reach, reach)
        } else if is_between && turn % 3 != 2 {
            step
        } else {
            0.5 * (low + high)
        };
        let value_there = function(next);
        let between = (value_there - value) / (next - x);
        if between < 0.0 && between.is_finite() {
            slope = between;
        }
        (x, value) = (next, value_there);
        turn += 1;
    }
    (x, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_found_from_bad_guesses_in_few_steps() {
        let everywhere = [f64::NEG_INFINITY, f64::INFINITY];
        for (guess, slope) in [(0.0, -1.0), (5.0, -0.01), (-30.0, -1e-3), (2.9, -2.0)] {
            for of in [|x: f64| 3.0 - x, |x: f64| (3.0 - x).tanh(), |x: f64| (3.0 - x).powi(3)] {
                let mut asked = 0;
                let (x, value) = root_of_falling(guess, slope, everywhere, 1e-3, |x| {
                    asked += 1;
                    of(x)
                });
                assert!(value.abs() < 1e-3 && (x - 3.0).abs() < 0.2, "{guess}: {x} {value}");
                assert!(asked < 35, "{guess}: {asked}");
            }
        }
        // A step has no zero, but a place.
        let (x, _) =
            root_of_falling(1.0, -1.0, [0.0, 10.0], 1e-3, |x| if x < 4.0 { 1.0 } else { -1.0 });
        assert!((x - 4.0).abs() < 1e-6, "{x}");
    }
}
