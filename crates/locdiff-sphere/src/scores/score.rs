//! One score with the numbers of all images: its value, its interval, its comparison.
//!
//! Intervals are percentile bootstraps over images (quantiles interpolated as numpy does).
//! A comparison pairs two models image by image. Its interval is a paired bootstrap of the
//! difference. Its p-value is a permutation test that swaps the two models' numbers of an
//! image by coin flips (for means: flips signs of the differences), and not read off the
//! bootstrap: swapping is what "no difference" means, so the test keeps its level at any
//! number of images, while a bootstrap's p-value is too small for few images.
//!
//! Both treat images as independent. Images of one trip or one photographer are not, and
//! make intervals too narrow. A share of exactly 0 or 1 has an interval of no width.

use std::fmt;

use rand::{Rng, RngExt};

use super::{InvalidScores, check};

/// How a score sums up its images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Statistic {
    /// Sum over number.
    Mean,
    /// The middle value, or the mean of the middle two.
    Median,
}

impl Statistic {
    /// The statistic of values, which it may reorder.
    fn of(self, values: &mut [f64]) -> f64 {
        match self {
            Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Statistic::Median => median(values),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Statistic::Mean => "mean",
            Statistic::Median => "median",
        })
    }
}

/// How bootstraps and permutation tests are done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// Bootstrap resamples of an interval: 2000.
    pub resamples: usize,
    /// Random swaps of a permutation test: 9999, so that p-values are multiples of 0.0001.
    pub permutations: usize,
    /// The confidence of intervals: 0.95.
    pub confidence: f64,
}

impl Default for Resampling {
    fn default() -> Resampling {
        Resampling { resamples: 2000, permutations: 9999, confidence: 0.95 }
    }
}

/// An estimate with the interval that its images leave open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The score of the images as they are.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Share of such intervals that hold the true value.
    pub confidence: f64,
}

/// Two models on the same images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// First score minus second.
    pub difference: Interval,
    /// Two-sided: how often a difference as large would arise if the models were
    /// exchangeable; at least 1 / (permutations + 1).
    pub p_value: f64,
}

/// A score that is the mean or the median of one number per image.
///
/// ```
/// use locdiff_sphere::{Resampling, Score};
/// use rand::SeedableRng;
///
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let ours = Score::mean((0..500).map(|i| f64::from(i % 7)).collect())?;
/// let theirs = Score::mean((0..500).map(|i| f64::from(i % 5)).collect())?;
/// let interval = ours.interval(&Resampling::default(), &mut rng);
/// assert!(interval.low < ours.value() && ours.value() < interval.high);
/// let comparison = ours.compared_with(&theirs, &Resampling::default(), &mut rng)?;
/// assert!(comparison.difference.low > 0.0 && comparison.p_value < 0.01);
/// # Ok::<(), locdiff_sphere::InvalidScores>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    statistic: Statistic,
    values: Vec<f64>,
}

impl Score {
    /// The mean of one number per image.
    pub fn mean(values: Vec<f64>) -> Result<Score, InvalidScores> {
        Score::new(Statistic::Mean, values)
    }

    /// The median of one number per image.
    pub fn median(values: Vec<f64>) -> Result<Score, InvalidScores> {
        Score::new(Statistic::Median, values)
    }

    fn new(statistic: Statistic, values: Vec<f64>) -> Result<Score, InvalidScores> {
        check(["the value", "values"], &values, "finite", f64::is_finite)?;
        Ok(Score::of_valid(statistic, values))
    }

    /// At least one value, none of them NaN, no infinities of both signs.
    pub(super) fn of_valid(statistic: Statistic, values: Vec<f64>) -> Score {
        Score { statistic, values }
    }

    /// The number of each image.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How the images are summed up.
    pub fn statistic(&self) -> Statistic {
        self.statistic
    }

    /// The score of all images.
    pub fn value(&self) -> f64 {
        self.statistic.of(&mut self.values.clone())
    }

    /// The score with its percentile bootstrap interval.
    ///
    /// # Panics
    /// If there are no resamples or the confidence is not between 0 and 1.
    pub fn interval(&self, options: &Resampling, rng: &mut impl Rng) -> Interval {
        let n = self.values.len();
        let mut resample = vec![0.0; n];
        percentile_interval(self.value(), options, || {
            resample.fill_with(|| self.values[rng.random_range(0..n)]);
            self.statistic.of(&mut resample)
        })
    }

    /// The difference to another model's score on the same images in the same order, with
    /// its interval and p-value. Medians compare as the difference of the two medians.
    /// An infinite value (a likelihood of zero) is an error.
    ///
    /// # Panics
    /// If there are no resamples or the confidence is not between 0 and 1.
    pub fn compared_with(
        &self,
        other: &Score,
        options: &Resampling,
        rng: &mut impl Rng,
    ) -> Result<Comparison, InvalidScores> {
        let (first, second) = (self.values.len(), other.values.len());
        if first != second {
            return Err(InvalidScores::Lengths {
                first,
                first_name: "images of the first model",
                second,
                second_name: "of the second",
            });
        }
        if self.statistic != other.statistic {
            return Err(InvalidScores::Statistics {
                first: self.statistic,
                second: other.statistic,
            });
        }
        let quantities =
            [["the first model's value", "values"], ["the second model's value", "values"]];
        for (quantity, values) in quantities.into_iter().zip([&self.values, &other.values]) {
            check(quantity, values, "finite to be compared", f64::is_finite)?;
        }
        Ok(Comparison {
            difference: self.difference_interval(other, options, rng),
            p_value: self.swap_p_value(other, options, rng),
        })
    }

    fn difference_interval(
        &self,
        other: &Score,
        options: &Resampling,
        rng: &mut impl Rng,
    ) -> Interval {
        let n = self.values.len();
        let (mut first, mut second) = (vec![0.0; n], vec![0.0; n]);
        percentile_interval(self.value() - other.value(), options, || {
            for (first, second) in first.iter_mut().zip(&mut second) {
                let image = rng.random_range(0..n);
                (*first, *second) = (self.values[image], other.values[image]);
            }
            self.statistic.of(&mut first) - self.statistic.of(&mut second)
        })
    }

    fn swap_p_value(&self, other: &Score, options: &Resampling, rng: &mut impl Rng) -> f64 {
        let observed = (self.value() - other.value()).abs();
        // Equal differences may round differently; they count as equal.
        let pairs = || self.values.iter().zip(&other.values);
        let largest = pairs().fold(0.0_f64, |largest, (a, b)| largest.max(a.abs()).max(b.abs()));
        let threshold = observed - 1e-12 * largest;
        let (mut first, mut second) = (self.values.clone(), other.values.clone());
        let mut as_large = 0;
        for _ in 0..options.permutations {
            for ((first, second), (a, b)) in first.iter_mut().zip(&mut second).zip(pairs()) {
                (*first, *second) = if rng.random() { (*a, *b) } else { (*b, *a) };
            }
            let difference = self.statistic.of(&mut first) - self.statistic.of(&mut second);
            as_large += usize::from(difference.abs() >= threshold);
        }
        // The images as they are count as one permutation (Phipson and Smyth 2010): no
        // finite number of swaps shows that p = 0.
        (as_large + 1) as f64 / (options.permutations + 1) as f64
    }
}

fn percentile_interval(
    estimate: f64,
    options: &Resampling,
    mut statistic_of_resample: impl FnMut() -> f64,
) -> Interval {
    let Resampling { resamples, confidence, .. } = *options;
    assert!(resamples > 0, "a bootstrap of 0 resamples has no interval");
    assert!(0.0 < confidence && confidence < 1.0, "confidence {confidence} is not within 0 and 1");
    let mut statistics: Vec<f64> = (0..resamples).map(|_| statistic_of_resample()).collect();
    statistics.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - confidence);
    let (low, high) = (quantile(&statistics, tail), quantile(&statistics, 1.0 - tail));
    Interval { estimate, low, high, confidence }
}

/// Linear between the order statistics, as numpy's default.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    // Weights, because a difference of infinities is no number; nor is 0 times infinity.
    let weight = position.fract();
    if below == above { below } else { (1.0 - weight) * below + weight * above }
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if is_even {
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        0.5 * (lower + *upper)
    } else {
        *upper
    }
}
