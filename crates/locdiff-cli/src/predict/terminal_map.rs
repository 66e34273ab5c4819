//! A small map of the Earth in letters: land as dots, probability as blocks, candidates as digits.

use std::f64::consts::TAU;
use std::io::Write;

use anstyle::{Ansi256Color, Color, Style};
use locdiff::geography::land_area;
use locdiff::locate::Answered;
use locdiff_sphere::LatLon;

/// No land of use lies beyond; what probability there is goes into the last rows.
const NORTH: f64 = 84.0;
const SOUTH: f64 = -60.0;
/// Wider, and it no longer fits into one look.
const WIDEST: usize = 110;
/// A letter is twice as high as wide.
const LETTER_ASPECT: f64 = 2.0;

const LAND: Style = faint(240);
/// Blocks and their colours, from the most probable down, and how far below the top they begin.
const BLOCKS: [(f64, char, Style); 4] = [
    (1.0 / 3.0, '█', faint(226)),
    (1.0 / 10.0, '▓', faint(214)),
    (1.0 / 32.0, '▒', faint(202)),
    (1.0 / 100.0, '░', faint(124)),
];
const DIGIT: Style = Style::new().bold().invert();

const fn faint(colour: u8) -> Style {
    Style::new().fg_color(Some(Color::Ansi256(Ansi256Color(colour))))
}

pub(super) struct Sheet {
    columns: usize,
    rows: usize,
}

impl Sheet {
    fn new(columns: usize) -> Sheet {
        let columns = columns.min(WIDEST);
        let degrees_per_row = LETTER_ASPECT * 360.0 / columns as f64;
        Sheet { columns, rows: ((NORTH - SOUTH) / degrees_per_row).round() as usize }
    }

    fn cell(&self, place: LatLon) -> usize {
        let across = (place.longitude() + 180.0) / 360.0 * self.columns as f64;
        let down = (NORTH - place.latitude()) / (NORTH - SOUTH) * self.rows as f64;
        let (column, row) =
            (across as usize % self.columns, (down.max(0.0) as usize).min(self.rows - 1));
        row * self.columns + column
    }

    /// The land of a letter as one of the 256 patterns of Braille dots.
    fn land(&self, row: usize, column: usize) -> char {
        // Left column of dots from top to bottom, then the right one; the lowest pair came later.
        const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let mut pattern = 0;
        for (y, bits) in BITS.iter().enumerate() {
            for (x, bit) in bits.iter().enumerate() {
                let across = (column as f64 + (x as f64 + 0.5) / 2.0) / self.columns as f64;
                let down = (row as f64 + (y as f64 + 0.5) / 4.0) / self.rows as f64;
                let latitude = NORTH - down * (NORTH - SOUTH);
                let place = LatLon::new(latitude, 360.0 * across - 180.0);
                if place.is_ok_and(|place| land_area().contains(place)) {
                    pattern |= bit;
                }
            }
        }
        match pattern {
            0 => ' ',
            _ => char::from_u32(0x2800 + pattern).unwrap_or(' '),
        }
    }
}

pub(super) fn print(
    out: &mut impl Write,
    answer: &Answered,
    columns: usize,
) -> std::io::Result<()> {
    let sheet = Sheet::new(columns - 2);
    // Mass per area, so that letters near the poles, which cover little, aren't left pale.
    let mut masses = vec![0.0; sheet.rows * sheet.columns];
    answer.estimate.survey().for_each_mass(|place, mass| masses[sheet.cell(place)] += mass);
    for (index, mass) in masses.iter_mut().enumerate() {
        let middle = (index / sheet.columns) as f64 + 0.5;
        let latitude = NORTH - middle / sheet.rows as f64 * (NORTH - SOUTH);
        *mass /= (latitude / 360.0 * TAU).cos().max(0.05);
    }
    let top = masses.iter().copied().fold(0.0, f64::max);
    let mut digits = vec![None; masses.len()];
    let places: Vec<LatLon> = answer.places().map(|(place, _)| place).take(9).collect();
    for (rank, place) in places.into_iter().enumerate().rev() {
        digits[sheet.cell(place)] = Some(rank + 1);
    }
    for row in 0..sheet.rows {
        write!(out, "  ")?;
        for column in 0..sheet.columns {
            let cell = row * sheet.columns + column;
            let block = BLOCKS.iter().find(|(share, ..)| masses[cell] >= share * top);
            match (digits[cell], block) {
                (Some(digit), _) => write!(out, "{DIGIT}{digit}{DIGIT:#}")?,
                (None, Some((_, block, style))) => write!(out, "{style}{block}{style:#}")?,
                (None, None) => match sheet.land(row, column) {
                    ' ' => write!(out, " ")?,
                    dots => write!(out, "{LAND}{dots}{LAND:#}")?,
                },
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fall_into_the_letters_where_they_belong() {
        let sheet = Sheet::new(72);
        let at =
            |latitude, longitude| sheet.cell(LatLon::new(latitude, longitude).expect("a place"));
        assert_eq!(at(84.0, -180.0), 0);
        assert_eq!(at(83.9, 179.9), 71);
        assert_eq!(at(-89.0, -179.9), (sheet.rows - 1) * 72);
        assert_eq!(at(89.0, 0.0), 36);
        // The Sahara is full of dots, the Pacific has none.
        let place = at(23.0, 10.0);
        assert_eq!(sheet.land(place / 72, place % 72), '\u{28ff}');
        let place = at(-30.0, -120.0);
        assert_eq!(sheet.land(place / 72, place % 72), ' ');
    }
}
