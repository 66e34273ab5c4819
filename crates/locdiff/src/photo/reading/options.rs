//! Limits to what a picture may cost, and the clock that holds decoders to them.

use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use super::error::PhotoError;
use super::format::PhotoFormat;

/// Pixels along a side. What is made of a row, and the weights that make it smaller, must be little beside the picture.
const MAX_SIDE: u32 = 1 << 18;

/// How pictures are read: what they may cost, and how exactly.
///
/// Sizes are checked from the header, before memory is asked for. The time is checked while a
/// decoder reads, and once more at its end. Decoders that read all bytes before they work
/// (WebP, HEIC, AVIF) can't be stopped in between, nor can the conversion of colours: for them,
/// `max_pixels` is what bounds the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Largest size of a file in bytes.
    pub max_bytes: u64,
    /// Largest width times height.
    pub max_pixels: u64,
    /// From the first byte to upright pixels. `None`: as long as it takes.
    pub max_time: Option<Duration>,
    /// `Some(side)`: JPEGs may be decoded at a half, a quarter or an eighth of their size as
    /// long as the shortest side stays at least this long. Of four baseline JPEGs with 12
    /// megapixels it saved between a tenth and two thirds of the time; little of progressive or
    /// small ones. What the encoder got of six photographs had a cosine of 0.9996 or more with
    /// the exact if `side` was twice the encoder's, and of 0.993 or more if it was the same.
    pub fast_decode: Option<u32>,
}

impl Default for ReadOptions {
    /// 64 MiB, a hundred megapixels, ten seconds, exact.
    fn default() -> ReadOptions {
        ReadOptions {
            max_bytes: 64 << 20,
            max_pixels: 100_000_000,
            max_time: Some(Duration::from_secs(10)),
            fast_decode: None,
        }
    }
}

impl ReadOptions {
    pub(in crate::photo) fn check_bytes(&self, bytes: u64) -> Result<(), PhotoError> {
        if bytes <= self.max_bytes {
            return Ok(());
        }
        let found = format!("{bytes} bytes");
        Err(PhotoError::TooLarge { found, limit: self.max_bytes, option: "max_bytes" })
    }

    pub(in crate::photo) fn check_pixels(&self, width: u32, height: u32) -> Result<(), PhotoError> {
        if width.max(height) > MAX_SIDE {
            let found = format!("{width}×{height} pixels");
            return Err(PhotoError::TooLarge { found, limit: MAX_SIDE.into(), option: "MAX_SIDE" });
        }
        let pixels = u64::from(width) * u64::from(height);
        if pixels <= self.max_pixels {
            return Ok(());
        }
        let found = format!("{width}×{height} = {pixels} pixels");
        Err(PhotoError::TooLarge { found, limit: self.max_pixels, option: "max_pixels" })
    }
}

/// When one picture must be done.
#[derive(Debug, Clone, Copy)]
pub(in crate::photo) struct Deadline {
    started: Instant,
    max_time: Option<Duration>,
}

impl Deadline {
    pub(in crate::photo) fn new(options: &ReadOptions) -> Deadline {
        Deadline { started: Instant::now(), max_time: options.max_time }
    }

    pub(in crate::photo) fn has_passed(&self) -> bool {
        self.max_time.is_some_and(|max_time| self.started.elapsed() > max_time)
    }

    pub(in crate::photo) fn check(&self, format: PhotoFormat) -> Result<(), PhotoError> {
        match self.max_time {
            Some(max_time) if self.has_passed() => Err(PhotoError::TooSlow { format, max_time }),
            _ => Ok(()),
        }
    }
}

/// Bytes that can't be read after the deadline.
pub(super) struct TimedBytes<'a> {
    bytes: Cursor<&'a [u8]>,
    deadline: Deadline,
}

impl<'a> TimedBytes<'a> {
    /// Bytes handed out between two looks at the clock: even a thousandfold decompression
    /// makes only 16 MB of them.
    const STEP: usize = 16 << 10;

    pub(in crate::photo) fn new(bytes: &'a [u8], deadline: Deadline) -> TimedBytes<'a> {
        TimedBytes { bytes: Cursor::new(bytes), deadline }
    }

    fn check(&self) -> io::Result<()> {
        if self.deadline.has_passed() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "out of time"));
        }
        Ok(())
    }
}

impl Read for TimedBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Decoders read headers in small pieces; those needn't look at the clock.
        if buffer.len() > 64 {
            self.check()?;
        }
        let length = buffer.len().min(Self::STEP);
        self.bytes.read(&mut buffer[..length])
    }
}

impl BufRead for TimedBytes<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        let rest = self.bytes.fill_buf()?;
        Ok(&rest[..rest.len().min(Self::STEP)])
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
    }
}

impl Seek for TimedBytes<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.check()?;
        self.bytes.seek(position)
    }
}
