//! One machine's share of the images.

use std::fmt;
use std::str::FromStr;

/// Every n-th image: several machines can share the work, and the directory it goes into.
///
/// ```
/// # use locdiff_train::Share;
/// let share: Share = "2/8".parse()?;
/// assert_eq!(share.to_string(), "2/8");
/// # Ok::<(), locdiff_train::InvalidShare>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the share, from 1 on.
    number: u32,
    of: u32,
}

/// Why a text is not a share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a share: write it as i/n with i from 1 to n, for example 2/8")]
pub struct InvalidShare(String);

impl Share {
    /// All images.
    pub const ALL: Share = Share { number: 1, of: 1 };

    /// Share `number` of `of`, counted from 1.
    pub fn new(number: u32, of: u32) -> Result<Share, InvalidShare> {
        match (1..=of).contains(&number) {
            true => Ok(Share { number, of }),
            false => Err(InvalidShare(format!("{number}/{of}"))),
        }
    }

    /// Number of the share, from 1 on.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Number of shares.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Whether an image belongs to it, by its place in the input.
    pub(super) fn has(self, index: u64) -> bool {
        index % u64::from(self.of) == u64::from(self.number - 1)
    }

    /// What its files have in their names, so that those of several shares don't clash.
    pub(super) fn suffix(self) -> String {
        match self {
            Share::ALL => String::new(),
            Share { number, of } => format!("-{number}of{of}"),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Share, InvalidShare> {
        let invalid = || InvalidShare(text.to_owned());
        let (number, of) = text.split_once('/').ok_or_else(invalid)?;
        let parse = |part: &str| part.trim().parse().map_err(|_| invalid());
        Share::new(parse(number)?, parse(of)?).map_err(|_| invalid())
    }
}
