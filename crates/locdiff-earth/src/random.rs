//! Random numbers of a view: seeded, small, and the same on every machine.

/// A stream of random numbers (SplitMix64: Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of number `index` among those of `seed`, so that views can be made in any order.
    pub fn of_view(seed: u64, index: u64) -> Self {
        let mut outer = Self::new(seed);
        let mixed = outer.bits() ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut stream = Self::new(mixed);
        stream.bits();
        stream
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform between two numbers.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// As [`Random::between`], for the inner loops' numbers.
    pub fn between_f32(&mut self, low: f32, high: f32) -> f32 {
        self.between(low.into(), high.into()) as f32
    }

    /// Uniform in the logarithm.
    pub fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Normal with mean 0 and deviation 1, cut at ±3.5 (a sum of twelve, so without logarithms).
    pub fn normal(&mut self) -> f64 {
        let sum: f64 = (0..12).map(|_| self.unit()).sum();
        (sum - 6.0).clamp(-3.5, 3.5)
    }
}
