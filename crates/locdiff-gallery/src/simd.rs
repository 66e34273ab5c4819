//! The loops that a search spends its time in, with the widest vector instructions of the machine.
//!
//! Plain loops that the compiler vectorizes; `pulp` compiles each for several instruction sets and chooses
//! at run time. What `run` calls must be `#[inline(always)]`: other functions keep the baseline instructions.

/// A loop that is compiled for several instruction sets.
pub(crate) trait Kernel {
    fn run(self);
}

/// Runs the loop with the best instructions at hand.
pub(crate) fn vectorized<K: Kernel>(kernel: K) {
    struct Adapter<K>(K);
    impl<K: Kernel> pulp::WithSimd for Adapter<K> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _simd: S) {
            self.0.run();
        }
    }
    pulp::Arch::new().dispatch(Adapter(kernel));
}

/// Counts of the bits in which sketches differ from the query's.
pub(crate) struct Differences<'a> {
    /// `[word]`.
    pub query: &'a [u64],
    /// `[row, word]`.
    pub sketches: &'a [u64],
    /// `[row]`.
    pub differences: &'a mut [u16],
}

impl Kernel for Differences<'_> {
    #[inline(always)]
    fn run(self) {
        // The number of words is a constant for the dimensions that encoders have: 384, 512, 768, 1024.
        match self.query.len() {
            6 => self.of_words::<6>(),
            8 => self.of_words::<8>(),
            12 => self.of_words::<12>(),
            16 => self.of_words::<16>(),
            words => {
                let rows = self.sketches.chunks_exact(words);
                for (difference, row) in self.differences.iter_mut().zip(rows) {
                    let bits = row.iter().zip(self.query).map(|(a, b)| (a ^ b).count_ones());
                    *difference = bits.sum::<u32>() as u16;
                }
            }
        }
    }
}

impl Differences<'_> {
    #[inline(always)]
    fn of_words<const WORDS: usize>(self) {
        let (rows, _) = self.sketches.as_chunks::<WORDS>();
        let Ok(query) = <&[u64; WORDS]>::try_from(self.query) else { return };
        for (difference, row) in self.differences.iter_mut().zip(rows) {
            let mut bits = 0;
            for word in 0..WORDS {
                bits += (row[word] ^ query[word]).count_ones();
            }
            *difference = bits as u16;
        }
    }
}

/// Products of the query with rows of 8 bits.
pub(crate) struct Products<'a> {
    /// `[number]`, padded like a row.
    pub query: &'a [i16],
    /// `[row, number]`.
    pub bytes: &'a [i8],
    /// Numbers of the rows to compare.
    pub rows: &'a [u32],
    /// `[row of rows]`.
    pub products: &'a mut [i32],
}

/// Rows of bytes are padded to a multiple of this.
pub(crate) const BYTES_MULTIPLE: usize = 64;

impl Products<'_> {
    /// Computes them. Compilers do not find the instruction that multiplies and adds pairs, which takes half of the
    /// time; so it is named, where there is one.
    pub(crate) fn compute(self) {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = pulp::x86::V4::try_new() {
                return simd.vectorize(WidePairs(simd, self));
            }
            if let Some(simd) = pulp::x86::V3::try_new() {
                return simd.vectorize(Pairs(simd, self));
            }
        }
        vectorized(self);
    }

    /// Hears each row and where its product goes.
    #[inline(always)]
    fn for_each(self, mut product_of: impl FnMut(&[i8]) -> i32) {
        let width = self.query.len();
        for (product, row) in self.products.iter_mut().zip(self.rows) {
            *product = product_of(&self.bytes[*row as usize * width..][..width]);
        }
    }
}

impl Kernel for Products<'_> {
    #[inline(always)]
    fn run(self) {
        let query = self.query;
        self.for_each(|row| {
            let products = row.iter().zip(query).map(|(a, b)| i32::from(*a) * i32::from(*b));
            products.sum()
        });
    }
}

/// 32 numbers at a time.
#[cfg(target_arch = "x86_64")]
struct WidePairs<'a>(pulp::x86::V4, Products<'a>);

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for WidePairs<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let WidePairs(simd, products) = self;
        let (query, _) = products.query.as_chunks::<64>();
        products.for_each(|row| {
            let (row, _) = row.as_chunks::<64>();
            // Two sums, so that an addition need not wait for the one before.
            let mut sums = [simd.avx512f._mm512_setzero_si512(); 2];
            for (row, query) in row.iter().zip(query) {
                let row: [[i8; 32]; 2] = pulp::cast(*row);
                let query: [[i16; 32]; 2] = pulp::cast(*query);
                for k in 0..2 {
                    let row = simd.avx512bw._mm512_cvtepi8_epi16(pulp::cast(row[k]));
                    let pairs = simd.avx512bw._mm512_madd_epi16(row, pulp::cast(query[k]));
                    sums[k] = simd.avx512f._mm512_add_epi32(sums[k], pairs);
                }
            }
            simd.avx512f._mm512_reduce_add_epi32(simd.avx512f._mm512_add_epi32(sums[0], sums[1]))
        });
    }
}

/// 16 numbers at a time.
#[cfg(target_arch = "x86_64")]
struct Pairs<'a>(pulp::x86::V3, Products<'a>);

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Pairs<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Pairs(simd, products) = self;
        let (query, _) = products.query.as_chunks::<32>();
        products.for_each(|row| {
            let (row, _) = row.as_chunks::<32>();
            let mut sums = [simd.avx._mm256_setzero_si256(); 2];
            for (row, query) in row.iter().zip(query) {
                let row: [[i8; 16]; 2] = pulp::cast(*row);
                let query: [[i16; 16]; 2] = pulp::cast(*query);
                for k in 0..2 {
                    let row = simd.avx2._mm256_cvtepi8_epi16(pulp::cast(row[k]));
                    let pairs = simd.avx2._mm256_madd_epi16(row, pulp::cast(query[k]));
                    sums[k] = simd.avx2._mm256_add_epi32(sums[k], pairs);
                }
            }
            let sums: [i32; 8] = pulp::cast(simd.avx2._mm256_add_epi32(sums[0], sums[1]));
            sums.iter().sum()
        });
    }
}

/// The product of two rows of floats.
pub(crate) struct Dot<'a> {
    pub a: &'a [f32],
    pub b: &'a [f32],
    pub product: &'a mut f32,
}

impl Kernel for Dot<'_> {
    #[inline(always)]
    fn run(self) {
        let ((a, a_rest), (b, b_rest)) = (self.a.as_chunks::<16>(), self.b.as_chunks::<16>());
        let mut sums = [0.0_f32; 16];
        for (a, b) in a.iter().zip(b) {
            for k in 0..16 {
                sums[k] += a[k] * b[k];
            }
        }
        let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        *self.product = sums.iter().sum::<f32>() + rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern.
    fn noise(seed: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(seed), |x| {
            let x =
                x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Some(x)
        })
        .map(|x| x ^ (x >> 29))
    }

    #[test]
    fn differences_are_counts_of_bits() {
        for words in [1, 3, 6, 8, 12, 16] {
            let query: Vec<u64> = noise(1).take(words).collect();
            let sketches: Vec<u64> = noise(2).take(5 * words).collect();
            let mut differences = vec![0; 5];
            vectorized(Differences {
                query: &query,
                sketches: &sketches,
                differences: &mut differences,
            });
            for row in 0..5 {
                let bits = (0..64 * words).filter(|bit| {
                    let at = |words: &[u64]| words[bit / 64] >> (bit % 64) & 1;
                    at(&query) != at(&sketches[row * words..])
                });
                assert_eq!(usize::from(differences[row]), bits.count());
            }
        }
    }

    #[test]
    fn products_are_sums_of_products() {
        for width in [64, 192, 512] {
            let query: Vec<i16> = noise(3).take(width).map(|x| (x % 8191) as i16 - 4095).collect();
            let bytes: Vec<i8> = noise(4).take(4 * width).map(|x| x as i8).collect();
            let rows = [2, 0, 3];
            let check = |compute: &dyn Fn(Products)| {
                let mut products = vec![0; 3];
                let (query, bytes) = (&query[..], &bytes[..]);
                compute(Products { query, bytes, rows: &rows, products: &mut products });
                for (product, row) in products.iter().zip(rows) {
                    let row = &bytes[row as usize * width..][..width];
                    let plain = row.iter().zip(query).map(|(a, b)| i32::from(*a) * i32::from(*b));
                    assert_eq!(*product, plain.sum::<i32>());
                }
            };
            check(&|products| products.compute());
            check(&|products| vectorized(products));
            // Machines with wider instructions never choose these.
            #[cfg(target_arch = "x86_64")]
            if let Some(simd) = pulp::x86::V3::try_new() {
                check(&|products| simd.vectorize(Pairs(simd, products)));
            }
        }
    }

    #[test]
    fn dots_are_sums_of_products() {
        for width in [1, 16, 50] {
            let numbers: Vec<f32> =
                noise(5).take(2 * width).map(|x| (x % 17) as f32 - 8.0).collect();
            let (a, b) = numbers.split_at(width);
            let mut product = 0.0;
            vectorized(Dot { a, b, product: &mut product });
            assert_eq!(product, a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>());
        }
    }
}
