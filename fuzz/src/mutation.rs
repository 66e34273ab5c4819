//! Changes of inputs without knowledge of coverage, for tests that take seconds.

use rand::{Rng, RngExt};

/// Numbers at which readers break.
const NUMBERS: [u64; 12] =
    [0, 1, 127, 128, 255, 256, 32_767, 65_535, 2_147_483_647, 4_294_967_295, 1 << 62, u64::MAX];

/// An input with one to eight random changes, and parts of another one.
pub fn mutated(input: &[u8], other: &[u8], longest: usize, rng: &mut impl Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.random_range(1..=8) {
        change(&mut bytes, other, rng);
    }
    bytes.truncate(longest);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], rng: &mut impl Rng) {
    if bytes.is_empty() {
        bytes.push(rng.random());
        return;
    }
    let at = rng.random_range(0..bytes.len());
    let length = rng.random_range(0..=(bytes.len() - at).min(64));
    match rng.random_range(0..9) {
        0 => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => bytes[at] = rng.random(),
        2 => drop(bytes.drain(at..at + length)),
        3 => bytes.truncate(at),
        4 => {
            let copy = bytes[at..at + length].to_vec();
            let to = rng.random_range(0..=bytes.len());
            bytes.splice(to..to, copy);
        }
        5 => bytes.insert(at, rng.random()),
        6 => overwrite(bytes, at, rng),
        7 => number_in_text(bytes, at, rng),
        _ => splice(bytes, at, other, rng),
    }
}

/// A number of one to eight bytes, with the lowest or the highest byte first.
fn overwrite(bytes: &mut [u8], at: usize, rng: &mut impl Rng) {
    let width = 1 << rng.random_range(0..4);
    let number = NUMBERS[rng.random_range(0..NUMBERS.len())];
    let mut digits = number.to_le_bytes()[..width].to_vec();
    if rng.random() {
        digits.reverse();
    }
    for (byte, digit) in bytes[at..].iter_mut().zip(digits) {
        *byte = digit;
    }
}

/// Another number where decimal digits are.
fn number_in_text(bytes: &mut Vec<u8>, at: usize, rng: &mut impl Rng) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else { return };
    let start = at + start;
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[rng.random_range(0..NUMBERS.len())];
    bytes.splice(start..start + length, number.to_string().into_bytes());
}

fn splice(bytes: &mut Vec<u8>, at: usize, other: &[u8], rng: &mut impl Rng) {
    if other.is_empty() {
        return;
    }
    let from = rng.random_range(0..other.len());
    let length = rng.random_range(0..=(other.len() - from).min(256));
    let end = bytes.len().min(at + length);
    bytes.splice(at..end, other[from..from + length].to_vec());
}
