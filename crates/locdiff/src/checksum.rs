//! SHA-256 as people compare it: 64 hexadecimal digits.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Digits of a short checksum, enough to tell versions apart.
const SHORT: usize = 16;

/// A checksum in the making.
#[derive(Debug, Clone, Default)]
pub struct Checksum(Sha256);

impl Checksum {
    /// Adds bytes.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes);
    }

    /// The sum as 64 hexadecimal digits.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first 16 digits of the sum.
    pub fn finish_short(self) -> String {
        let mut digits = self.finish();
        digits.truncate(SHORT);
        digits
    }
}

impl io::Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// SHA-256 as hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let mut checksum = Checksum::default();
    checksum.update(bytes);
    checksum.finish()
}

/// Of a file, which need not fit into memory.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut checksum = Checksum::default();
    io::copy(&mut File::open(path)?, &mut checksum)?;
    Ok(checksum.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), digits);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        assert_eq!(sha256_of_file(file.path()).unwrap(), digits);
        let mut parts = Checksum::default();
        parts.update(b"a");
        parts.update(b"bc");
        assert_eq!(parts.finish_short(), digits[..16]);
    }
}
