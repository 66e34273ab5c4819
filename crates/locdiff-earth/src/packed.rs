//! Imagery in a few megabytes, for programs that come without files of imagery.
//!
//! Rows are taken in bands of 16, each stretched to the width of its widest row by repeating texels
//! (which [`column_at`] reverses exactly), and cut into blocks of 16 × 16. The blocks with land, one
//! after another, are a JPEG of 16 lines; blocks of sea are left out. Shares of land are coded
//! without loss in 16 steps ([`crate::land_code`]). Several bands together are a chunk, and chunks
//! are unpacked in parallel.
//!
//! The bytes, with numbers low byte first: magic (8 bytes), checksum of all that follows (CRC-32),
//! number of rows (u32), light (u8), number of chunks (u16), then of each chunk: number of bands
//! (u16), bytes of land (u32), bytes of JPEG (u32); then each chunk's land and JPEG.

use jpeg_encoder::{ColorType, SamplingFactor};
use rayon::prelude::*;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::error::Error;
use crate::imagery::{Imagery, Light};
use crate::land_code::{BLOCK, LandBand, LandModel, WHOLE, column_at};
use crate::pyramid::{Level, Pyramid, Rows, reduced};
use crate::range_coder::{Decoder, Encoder};
use crate::texels::Texels;

/// Changes with the format.
const MAGIC: &[u8; 8] = b"EARTHPK1";
/// Rows of 1.2 km, and a limit of what bytes can demand: 1.8 GB.
const MOST_ROWS: usize = 16_384;
/// A JPEG is at most 65,535 pixels wide.
const MOST_BLOCKS: usize = 4095;
/// Blocks of a chunk, if it has more than one band: few headers, and work for many processors.
const CHUNK_BLOCKS: usize = 2048;

impl Imagery {
    /// Colors and shares of land in few bytes, with `rows` rows between the poles (at most 16,384,
    /// and no more than the imagery has) and JPEGs of a quality of 1 to 100.
    ///
    /// Blue Marble by day at quality 75: 7,280 rows (2.75 km) take 3.3 MB, 3,640 rows 1.0 MB.
    ///
    /// # Panics
    /// With zero rows.
    pub fn pack(&self, rows: usize, quality: u8) -> Vec<u8> {
        assert!(rows > 0, "imagery needs rows");
        let resampled;
        let level = match self.level_for(rows.min(MOST_ROWS)) {
            (level, rows) if level.rows.count() == rows => level,
            (level, rows) => {
                resampled = reduced(level, rows);
                &resampled
            }
        };
        let bands: Vec<DrawnBand> = (0..level.rows.count().div_ceil(BLOCK))
            .into_par_iter()
            .map(|band| DrawnBand::new(level, band, self.light))
            .collect();
        let chunks: Vec<(usize, Vec<u8>, Vec<u8>)> = in_chunks(&bands)
            .into_par_iter()
            .map(|bands| (bands.len(), packed_land(bands), packed_colors(bands, quality)))
            .collect();
        let mut body = Vec::new();
        body.extend((level.rows.count() as u32).to_le_bytes());
        body.push(u8::from(self.light == Light::Night));
        body.extend((chunks.len() as u16).to_le_bytes());
        for (bands, land, colors) in &chunks {
            body.extend((*bands as u16).to_le_bytes());
            body.extend((land.len() as u32).to_le_bytes());
            body.extend((colors.len() as u32).to_le_bytes());
        }
        for (_, land, colors) in &chunks {
            body.extend_from_slice(land);
            body.extend_from_slice(colors);
        }
        let checksum = crc32fast::hash(&body).to_le_bytes();
        [&MAGIC[..], &checksum, &body].concat()
    }

    /// The imagery that [`Imagery::pack`] made into these bytes.
    ///
    /// Sea takes no memory: 7,280 rows of the Earth need 240 MB, though [`Imagery::bytes`] counts
    /// 360 MB.
    ///
    /// # Errors
    /// If the bytes are something else, of another version, cut or damaged.
    pub fn unpack(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader { bytes };
        if reader.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(Error::packed("another kind or version of bytes", "EARTHPK1 first"));
        }
        let (expected, found) = (reader.u32()?, crc32fast::hash(reader.bytes));
        if found != expected {
            return Err(Error::packed(
                format!("checksum {found:08x}: the bytes are cut or damaged"),
                format!("{expected:08x}"),
            ));
        }
        let rows = reader.u32()? as usize;
        if !(1..=MOST_ROWS).contains(&rows) {
            return Err(Error::packed(format!("{rows} rows"), format!("1 to {MOST_ROWS}")));
        }
        let light = match reader.u8()? {
            0 => Light::Day,
            1 => Light::Night,
            other => return Err(Error::packed(format!("light {other}"), "0 or 1")),
        };
        let rows = Rows::new(rows);
        let mut texels = Texels::sparse(rows.texel_count());
        let chunks = reader.chunks(&rows, &mut texels)?;
        chunks.into_par_iter().try_for_each(|chunk| chunk.unpack(&rows, light))?;
        Ok(Self { pyramid: Pyramid::over(Level { rows, texels }), light })
    }

    /// The level from which one of so many rows is made, and how many rows it can have.
    fn level_for(&self, rows: usize) -> (&Level, usize) {
        let finest = &self.pyramid.levels[0];
        let rows = rows.min(finest.rows.count());
        // Means over less than two texels each way are sharper in some places than in others.
        let mut levels = self.pyramid.levels.iter().rev();
        let level = levels.find(|level| {
            let count = level.rows.count();
            count == rows || count >= 2 * rows
        });
        (level.unwrap_or(finest), rows)
    }
}

fn rows_of(band: usize, rows: &Rows) -> std::ops::Range<usize> {
    band * BLOCK..((band + 1) * BLOCK).min(rows.count())
}

/// A band's width: that of its widest row.
fn width_of(band: usize, rows: &Rows) -> usize {
    rows_of(band, rows).map(|row| rows.width(row)).max().unwrap_or(0)
}

/// Whether the colors of a block are stored.
fn is_drawn(land: &LandBand, block: usize, light: Light) -> bool {
    light == Light::Night || land.has_land(block)
}

/// A band as it is stored.
struct DrawnBand {
    land: LandBand,
    drawn: usize,
    /// Red, green, blue of 16 lines of the drawn blocks.
    colors: Vec<[u8; 3]>,
}

impl DrawnBand {
    fn new(level: &Level, band: usize, light: Light) -> Self {
        let (rows, width) = (rows_of(band, &level.rows), width_of(band, &level.rows));
        let stretched: Vec<[u8; 4]> = rows
            .flat_map(|row| {
                let texels = &level.texels[level.rows.range(row)];
                (0..width).map(|x| texels[column_at(x, width, texels.len())].to_le_bytes())
            })
            .collect();
        // Rounded to 15ths.
        let shares = stretched.iter().map(|&[.., land]| ((u16::from(land) + 8) / 17) as u8);
        let land = LandBand::new(width, shares.collect());
        let blocks: Vec<usize> =
            (0..land.block_count()).filter(|&block| is_drawn(&land, block, light)).collect();
        let mut colors = vec![[0; 3]; blocks.len() * BLOCK * BLOCK];
        let stride = blocks.len() * BLOCK;
        for (place, &block) in blocks.iter().enumerate() {
            let drawn = Block::new(&stretched, width, block, light);
            for y in 0..BLOCK {
                for x in 0..BLOCK {
                    colors[y * stride + place * BLOCK + x] = drawn.color(x, y);
                }
            }
        }
        Self { land, drawn: blocks.len(), colors }
    }
}

/// The colors of a block, continued over its sea, which then costs nearly nothing and leaves no
/// trace at coasts.
struct Block {
    /// Colors multiplied by weights, and weights.
    texels: [[[u8; 4]; BLOCK]; BLOCK],
}

impl Block {
    fn new(band: &[[u8; 4]], width: usize, block: usize, light: Light) -> Self {
        let mut texels = [[[0; 4]; BLOCK]; BLOCK];
        for (line, row) in texels.iter_mut().zip(band.chunks(width)) {
            for (texel, &[r, g, b, land]) in line.iter_mut().zip(&row[block * BLOCK..]) {
                *texel = [r, g, b, if light == Light::Day { land } else { 255 }];
            }
        }
        Self { texels }
    }

    /// The mean over the smallest square around a texel, of 1 to 16 texels' width, in which there is
    /// enough land to tell.
    fn color(&self, x: usize, y: usize) -> [u8; 3] {
        let mut sums = [0u32; 4];
        for size in [1, 2, 4, 8, 16] {
            let (left, top) = (x / size * size, y / size * size);
            sums = [0; 4];
            for line in &self.texels[top..top + size] {
                for texel in &line[left..left + size] {
                    sums.iter_mut().zip(texel).for_each(|(sum, &byte)| *sum += u32::from(byte));
                }
            }
            if sums[3] >= 128 {
                break;
            }
        }
        let [r, g, b, weight] = sums;
        let weight = weight.max(1);
        [r, g, b].map(|sum| ((255 * sum + weight / 2) / weight).min(255) as u8)
    }
}

/// Bands one after another, as many as are unpacked at once.
fn in_chunks(bands: &[DrawnBand]) -> Vec<&[DrawnBand]> {
    let mut chunks = Vec::new();
    let (mut start, mut blocks) = (0, 0);
    for (at, band) in bands.iter().enumerate() {
        if at > start && blocks + band.drawn > CHUNK_BLOCKS {
            chunks.push(&bands[start..at]);
            (start, blocks) = (at, 0);
        }
        blocks += band.drawn;
    }
    chunks.push(&bands[start..]);
    chunks
}

fn packed_land(bands: &[DrawnBand]) -> Vec<u8> {
    let (mut encoder, mut model) = (Encoder::new(), LandModel::new());
    for band in bands {
        model.code(&mut encoder, &mut band.land.clone());
    }
    encoder.finish()
}

#[expect(clippy::expect_used, reason = "writing to memory, in sizes that JPEG allows")]
fn packed_colors(bands: &[DrawnBand], quality: u8) -> Vec<u8> {
    let width = bands.iter().map(|band| band.drawn * BLOCK).sum::<usize>();
    let mut file = Vec::new();
    if width == 0 {
        return file;
    }
    let mut pixels = Vec::with_capacity(width * BLOCK * 3);
    for line in 0..BLOCK {
        for band in bands.iter().filter(|band| band.drawn > 0) {
            let stride = band.drawn * BLOCK;
            pixels.extend_from_slice(band.colors[line * stride..][..stride].as_flattened());
        }
    }
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality);
    // Halved chroma would save a tenth, but smear colors where blocks meet that are no neighbors.
    // And zune-jpeg 0.5.15 decodes only half of a JPEG of 16 lines with chroma halved downward.
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    encoder.set_optimized_huffman_tables(true);
    encoder.encode(&pixels, width as u16, BLOCK as u16, ColorType::Rgb).expect("it fits a JPEG");
    file
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let left = self.bytes.len();
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(|| {
            Error::packed(format!("an end after {left} bytes"), format!("{count} more bytes"))
        })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(N)?);
        Ok(number)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        self.number().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, Error> {
        self.number().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.number().map(u32::from_le_bytes)
    }

    /// The table of chunks and what it refers to, each with the texels that are to be filled.
    fn chunks<'t>(
        &mut self,
        rows: &Rows,
        texels: &'t mut [u32],
    ) -> Result<Vec<Chunk<'a, 't>>, Error> {
        let count = self.u16()?;
        let table = (0..count)
            .map(|_| Ok((self.u16()?.into(), self.u32()? as usize, self.u32()? as usize)))
            .collect::<Result<Vec<(usize, usize, usize)>, Error>>()?;
        let band_count = rows.count().div_ceil(BLOCK);
        let found: usize = table.iter().map(|(bands, ..)| bands).sum();
        if found != band_count {
            return Err(Error::packed(format!("{found} bands"), format!("{band_count} bands")));
        }
        let mut texels = rows.split(texels).into_iter();
        let mut first = 0;
        let mut chunks = Vec::new();
        for (bands, land, colors) in table {
            let bands = first..first + bands;
            first = bands.end;
            let row_count = bands.clone().map(|band| rows_of(band, rows).len()).sum();
            chunks.push(Chunk {
                bands,
                land: self.take(land)?,
                colors: self.take(colors)?,
                texels: texels.by_ref().take(row_count).collect(),
            });
        }
        match self.bytes.len() {
            0 => Ok(chunks),
            more => Err(Error::packed(format!("{more} bytes too many"), "the end")),
        }
    }
}

/// Bands that are unpacked at once.
struct Chunk<'a, 't> {
    bands: std::ops::Range<usize>,
    land: &'a [u8],
    colors: &'a [u8],
    /// Texels of the level, row by row.
    texels: Vec<&'t mut [u32]>,
}

impl Chunk<'_, '_> {
    fn unpack(mut self, rows: &Rows, light: Light) -> Result<(), Error> {
        let (stride, colors) = unpacked_colors(self.colors)?;
        let (colors, _) = colors.as_chunks();
        let (mut decoder, mut model) = (Decoder::new(self.land), LandModel::new());
        let mut drawn = 0;
        let mut texels = self.texels.iter_mut();
        for band in self.bands {
            let mut land = LandBand::unknown(width_of(band, rows), rows_of(band, rows).len());
            model.code(&mut decoder, &mut land);
            let runs = drawn_runs(&land, light);
            let needed = runs.iter().map(|run| run.len()).sum::<usize>();
            if (drawn + needed) * BLOCK > stride {
                return Err(mismatch(stride));
            }
            for (y, row) in texels.by_ref().take(rows_of(band, rows).len()).enumerate() {
                let shares = &land.shares[y * land.width..][..land.width];
                let mut from = y * stride + drawn * BLOCK;
                for run in &runs {
                    let columns = run.start * BLOCK..(run.end * BLOCK).min(land.width);
                    fill(row, shares, &colors[from..], columns, light);
                    from += run.len() * BLOCK;
                }
            }
            drawn += needed;
        }
        if drawn * BLOCK != stride || !decoder.is_at_end() {
            return Err(mismatch(stride));
        }
        Ok(())
    }
}

fn mismatch(width: usize) -> Error {
    Error::packed(format!("a JPEG {width} pixels wide"), "one that fits the land")
}

/// Drawn blocks side by side.
fn drawn_runs(land: &LandBand, light: Light) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for block in (0..land.block_count()).filter(|&block| is_drawn(land, block, light)) {
        match runs.last_mut() {
            Some(run) if run.end == block => run.end += 1,
            _ => runs.push(block..block + 1),
        }
    }
    runs
}

/// Width of the JPEG and its pixels (red, green, blue each).
fn unpacked_colors(file: &[u8]) -> Result<(usize, Vec<u8>), Error> {
    if file.is_empty() {
        return Ok((0, Vec::new()));
    }
    let failed = |error| Error::packed(format!("a JPEG with an error ({error})"), "a whole JPEG");
    let options = DecoderOptions::default()
        .set_max_width(MOST_BLOCKS * BLOCK)
        .set_max_height(BLOCK)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    let pixels = decoder.decode().map_err(|error| failed(error.to_string()))?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    if height != BLOCK || pixels.len() != width * height * 3 {
        return Err(failed(format!("{width} × {height} pixels")));
    }
    Ok((width, pixels))
}

/// Fills the texels of a row whose middles are in `columns` of its band. `shares` are those of all
/// columns, `colors` begin with the first of `columns`.
fn fill(
    row: &mut [u32],
    shares: &[u8],
    colors: &[[u8; 3]],
    columns: std::ops::Range<usize>,
    light: Light,
) {
    let (own, wide) = (row.len(), shares.len());
    // The first texel with `column_at` not before the columns; then without a division for each.
    let first = (2 * own * columns.start).saturating_sub(wide).div_ceil(2 * wide);
    let mut column = column_at(first, own, wide);
    let mut rest = (2 * first + 1) * wide % (2 * own);
    for texel in &mut row[first.min(own)..] {
        if column >= columns.end {
            break;
        }
        let (share, [r, g, b]) = (shares[column], colors[column - columns.start]);
        let land = share * (255 / WHOLE);
        if light == Light::Night || share == WHOLE {
            *texel = u32::from_le_bytes([r, g, b, land]);
        } else if share > 0 {
            let part = |value: u8| ((u32::from(value) * u32::from(land) + 127) / 255) as u8;
            *texel = u32::from_le_bytes([part(r), part(g), part(b), land]);
        }
        rest += 2 * wide;
        while rest >= 2 * own {
            rest -= 2 * own;
            column += 1;
        }
    }
}
