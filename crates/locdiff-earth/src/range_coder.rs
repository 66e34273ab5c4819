//! Adaptive binary range coder: the one of LZMA, with probabilities of 16 bits instead of 11,
//! because most texels of a map are nearly certain.
//!
//! [`Coder`] is the same for both directions, so that a model of the data is written once: an
//! encoder stores the bit that it is given, and a decoder ignores the given bit and returns the
//! stored one. Decoding never fails: damaged bytes decode to other bits, which checksums detect.

/// Probability that a bit is false, in 65,536ths. It follows the bits that are coded with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u16);

impl Chance {
    pub(crate) const EVEN: Self = Self(1 << 15);
    /// Larger is slower and more exact.
    const RATE: u32 = 5;

    fn follow(&mut self, bit: bool) {
        // Stays within 31 and 65,505, so that neither bit becomes impossible.
        if bit {
            self.0 -= self.0 >> Self::RATE;
        } else {
            self.0 += (u16::MAX - self.0) >> Self::RATE;
        }
    }

    /// The part of a range that stands for false.
    fn part(self, range: u32) -> u32 {
        (range >> 16) * u32::from(self.0)
    }
}

/// Below this, a range is widened by a byte.
const NARROW: u32 = 1 << 24;

pub(crate) trait Coder {
    /// The bit as it is stored: `bit` when encoding.
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool;
}

#[derive(Debug)]
pub(crate) struct Encoder {
    low: u64,
    range: u32,
    /// The last byte that a carry can still change, and the bytes of 255 behind it.
    last: u8,
    full: usize,
    bytes: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self { low: 0, range: u32::MAX, last: 0, full: 0, bytes: Vec::new() }
    }

    fn shift(&mut self) {
        if self.low < 0xff00_0000 || self.low > u64::from(u32::MAX) {
            let carry = (self.low >> 32) as u8;
            self.bytes.push(self.last.wrapping_add(carry));
            let full = std::mem::take(&mut self.full);
            self.bytes.extend(std::iter::repeat_n(255u8.wrapping_add(carry), full));
            self.last = (self.low >> 24) as u8;
        } else {
            self.full += 1;
        }
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        (0..5).for_each(|_| self.shift());
        self.bytes
    }
}

impl Coder for Encoder {
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool {
        let part = chance.part(self.range);
        if bit {
            self.low += u64::from(part);
            self.range -= part;
        } else {
            self.range = part;
        }
        chance.follow(bit);
        while self.range < NARROW {
            self.range <<= 8;
            self.shift();
        }
        bit
    }
}

#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    code: u32,
    range: u32,
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { code: 0, range: u32::MAX, bytes: bytes.iter() };
        // The first byte that an encoder writes is always zero.
        (0..5).for_each(|_| decoder.shift());
        decoder
    }

    /// Beyond the end of the bytes, zeros follow.
    fn shift(&mut self) {
        self.code = self.code << 8 | u32::from(self.bytes.next().copied().unwrap_or(0));
    }

    /// Whether all bytes were used, as they are after decoding everything that was encoded.
    pub(crate) fn is_at_end(&self) -> bool {
        self.bytes.as_slice().is_empty()
    }
}

impl Coder for Decoder<'_> {
    #[inline(always)]
    fn bit(&mut self, chance: &mut Chance, _bit: bool) -> bool {
        let part = chance.part(self.range);
        let bit = self.code >= part;
        if bit {
            self.code -= part;
            self.range -= part;
        } else {
            self.range = part;
        }
        chance.follow(bit);
        while self.range < NARROW {
            self.range <<= 8;
            self.shift();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn bits_come_back_and_cost_their_entropy() {
        let mut random = Random::new(5);
        let bits: Vec<(usize, bool)> = (0..100_000)
            .map(|_| {
                let context = (random.between(0.0, 3.0)) as usize;
                (context, random.between(0.0, 1.0) < [0.5, 0.05, 0.0001][context])
            })
            .collect();
        let (mut encoder, mut chances) = (Encoder::new(), [Chance::EVEN; 3]);
        for &(context, bit) in &bits {
            encoder.bit(&mut chances[context], bit);
        }
        let bytes = encoder.finish();
        // Entropies of 1, 0.286 and 0.0015 bits; learning costs some percent.
        let entropy = 100_000.0 / 3.0 * 1.288 / 8.0;
        assert!((bytes.len() as f64) < 1.05 * entropy, "{} of {entropy}", bytes.len());
        let (mut decoder, mut chances) = (Decoder::new(&bytes), [Chance::EVEN; 3]);
        for &(context, bit) in &bits {
            assert_eq!(decoder.bit(&mut chances[context], false), bit);
        }
        assert!(decoder.is_at_end());
    }

    #[test]
    fn carries_reach_bytes_of_255() {
        // Long runs of the unlikely bit keep `low` near the end of its range.
        for length in 1..400 {
            let (mut encoder, mut chance) = (Encoder::new(), Chance::EVEN);
            (0..length).for_each(|step| _ = encoder.bit(&mut chance, step % 7 != 3));
            let bytes = encoder.finish();
            let (mut decoder, mut chance) = (Decoder::new(&bytes), Chance::EVEN);
            assert!((0..length).all(|step| decoder.bit(&mut chance, false) == (step % 7 != 3)));
        }
    }
}
