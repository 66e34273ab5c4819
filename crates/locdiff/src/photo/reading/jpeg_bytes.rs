//! The bytes of a JPEG as its decoder gets them: with an eye on the clock, and such that a
//! picture whose data stops short is noticed.
//!
//! A decoder that meets the end marker too early fills the rest of the picture with what zeros
//! mean, and says nothing. So the end marker is moved back behind some zeros: whoever decodes
//! deeper into them than its look-ahead reaches still needed data.

use std::cell::Cell;

use zune_core::bytestream::{ZByteIoError, ZByteReaderTrait, ZSeekFrom};

use super::options::Deadline;

/// Zeros, then the end marker.
const TAIL: [u8; 26] = {
    let mut tail = [0; 26];
    tail[24] = 0xff;
    tail[25] = 0xd9;
    tail
};

/// What the decoder holds in advance at most, in bytes.
const LOOK_AHEAD: usize = 8;

/// Bytes between two looks at the clock: well under a millisecond.
const STEP: usize = 64 << 10;

/// What was noticed while reading, for when the decoder has eaten the reader.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The deadline passed, and reading stopped.
    pub(super) expired: Cell<bool>,
    /// How many bytes behind the data were decoded as if they were data.
    overrun: Cell<usize>,
}

impl Report {
    /// Whether the decoder wanted more data than there was.
    pub(super) fn ran_dry(&self) -> bool {
        self.overrun.get() > LOOK_AHEAD
    }
}

pub(super) struct JpegBytes<'a> {
    /// Up to, and without, the end marker.
    data: &'a [u8],
    tail: &'static [u8],
    position: usize,
    /// Data up to here can be read without a look at the clock.
    reach: usize,
    deadline: Deadline,
    report: &'a Report,
}

impl<'a> JpegBytes<'a> {
    /// The bytes of a picture whose end marker is at `end`. `padded` moves the marker back.
    pub(super) fn new(
        bytes: &'a [u8],
        end: usize,
        padded: bool,
        deadline: Deadline,
        report: &'a Report,
    ) -> JpegBytes<'a> {
        let tail = if padded { &TAIL[..] } else { &TAIL[24..] };
        JpegBytes { data: &bytes[..end], tail, position: 0, reach: 0, deadline, report }
    }

    fn length(&self) -> usize {
        if self.report.expired.get() { 0 } else { self.data.len() + self.tail.len() }
    }

    /// Looks at the clock. After the deadline there are no more bytes, which ends decoding.
    fn advance(&mut self) {
        if self.deadline.has_passed() {
            self.report.expired.set(true);
            self.reach = 0;
        } else {
            self.reach = self.data.len().min(self.position + STEP);
        }
    }

    /// Some bytes that may lie anywhere, without moving; how many there were.
    fn copy(&mut self, buffer: &mut [u8]) -> usize {
        let length = buffer.len().min(self.length().saturating_sub(self.position));
        let head = length.min(self.data.len().saturating_sub(self.position));
        buffer[..head].copy_from_slice(&self.data[self.position.min(self.data.len())..][..head]);
        if head < length {
            let from = self.position + head - self.data.len();
            buffer[head..length].copy_from_slice(&self.tail[from..][..length - head]);
        }
        length
    }

    #[cold]
    fn read_slowly(&mut self, buffer: &mut [u8]) -> Result<(), ZByteIoError> {
        self.advance();
        let length = self.copy(buffer);
        if length < buffer.len() {
            return Err(ZByteIoError::NotEnoughBytes(length, buffer.len()));
        }
        self.position += length;
        // Bytes one by one are the search for a marker; data is read by four.
        if length > 1 {
            self.note_overrun();
        }
        Ok(())
    }

    #[cold]
    fn byte_slowly(&mut self) -> u8 {
        self.advance();
        let mut byte = [0];
        self.position += self.copy(&mut byte);
        self.note_overrun();
        byte[0]
    }

    fn note_overrun(&self) {
        // The marker itself is read byte by byte, and is no overrun.
        let overrun = self.position.saturating_sub(self.data.len()).min(self.tail.len() - 2);
        self.report.overrun.set(self.report.overrun.get().max(overrun));
    }
}

impl ZByteReaderTrait for JpegBytes<'_> {
    #[inline(always)]
    fn read_byte_no_error(&mut self) -> u8 {
        if self.position < self.reach {
            let byte = self.data[self.position];
            self.position += 1;
            return byte;
        }
        self.byte_slowly()
    }

    #[inline(always)]
    fn read_exact_bytes(&mut self, buffer: &mut [u8]) -> Result<(), ZByteIoError> {
        let end = self.position + buffer.len();
        if end <= self.reach {
            buffer.copy_from_slice(&self.data[self.position..end]);
            self.position = end;
            return Ok(());
        }
        self.read_slowly(buffer)
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, ZByteIoError> {
        let length = self.copy(buffer);
        self.position += length;
        Ok(length)
    }

    fn peek_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, ZByteIoError> {
        Ok(self.copy(buffer))
    }

    fn peek_exact_bytes(&mut self, buffer: &mut [u8]) -> Result<(), ZByteIoError> {
        match self.copy(buffer) {
            length if length == buffer.len() => Ok(()),
            length => Err(ZByteIoError::NotEnoughBytes(length, buffer.len())),
        }
    }

    #[inline]
    fn z_seek(&mut self, from: ZSeekFrom) -> Result<u64, ZByteIoError> {
        let target = match from {
            ZSeekFrom::Start(offset) => i64::try_from(offset).ok(),
            ZSeekFrom::End(offset) => (self.length() as i64).checked_add(offset),
            ZSeekFrom::Current(offset) => (self.position as i64).checked_add(offset),
        };
        let target = target.and_then(|target| usize::try_from(target).ok());
        self.position = target.ok_or(ZByteIoError::SeekError("before the beginning"))?;
        // The fast paths only ask whether a position lies before `reach`.
        Ok(self.position as u64)
    }

    #[inline(always)]
    fn is_eof(&mut self) -> Result<bool, ZByteIoError> {
        Ok(self.position >= self.reach && self.position >= self.length())
    }

    fn z_position(&mut self) -> Result<u64, ZByteIoError> {
        Ok(self.position as u64)
    }

    fn read_remaining(&mut self, sink: &mut Vec<u8>) -> Result<usize, ZByteIoError> {
        let start = sink.len();
        sink.resize(start + self.length().saturating_sub(self.position), 0);
        self.read_bytes(&mut sink[start..])
    }
}
