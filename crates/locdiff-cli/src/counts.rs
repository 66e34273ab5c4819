//! Numbers from the command line that size memory or loops.

/// A whole number from `LEAST` to `MOST`.
pub(crate) fn count<const LEAST: usize, const MOST: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.ok_or_else(|| format!("use a whole number from {LEAST} to {MOST}"))
}
