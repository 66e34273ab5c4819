//! Times of pictures: seconds since 1970 and the texts that stand for them.

use std::fmt;

/// A time in UTC, or a local time of unknown zone read as UTC: differences within one outing are what matters.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Moment(f64);

const DAY_S: i64 = 86_400;

impl Moment {
    /// Seconds since the start of 1970.
    pub fn from_unix_s(seconds: f64) -> Moment {
        Moment(seconds)
    }

    /// Seconds since the start of 1970.
    pub fn unix_s(self) -> f64 {
        self.0
    }

    /// From `2024-05-01T12:00:00.5+02:00`; without a zone it is read as UTC.
    pub fn from_iso(text: &str) -> Option<Moment> {
        let (date, time) = text.split_once(['T', 't', ' '])?;
        let (clock, zone_s) = split_zone(time)?;
        Some(Moment(parsed(date, '-', clock)? - zone_s))
    }

    /// From Exif's `2024:05:01 12:00:00`, with the fraction and the zone (`+02:00`) of their own tags.
    pub fn from_exif(text: &str, fraction: Option<&str>, zone: Option<&str>) -> Option<Moment> {
        let (date, clock) = text.trim_end_matches(['\0', ' ']).split_once(' ')?;
        let zone_s = match zone {
            Some(zone) => split_zone(&format!("00{}", zone.trim()))?.1,
            None => 0.0,
        };
        let digits = fraction.map(str::trim).filter(|digits| is_digits(digits));
        let fraction = digits.and_then(|digits| format!("0.{digits}").parse().ok());
        Some(Moment(parsed(date, ':', clock)? + fraction.unwrap_or(0.0) - zone_s))
    }
}

/// As `2024-05-01T12:00:00Z`, to the second.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.floor() as i64;
        let (year, month, day) = date_of(seconds.div_euclid(DAY_S));
        let second = seconds.rem_euclid(DAY_S);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A clock time and how far its zone is ahead of UTC, in seconds.
fn split_zone(time: &str) -> Option<(&str, f64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0.0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0.0)) };
    let (clock, zone) = time.split_at(at);
    let sign = if zone.starts_with('-') { -1.0 } else { 1.0 };
    let digits = zone[1..].replace(':', "");
    if !is_digits(&digits) || digits.len() != 4 {
        return None;
    }
    let number: u32 = digits.parse().ok()?;
    let (hours, minutes) = (number / 100, number % 100);
    (hours <= 14 && minutes < 60).then(|| (clock, sign * f64::from(3600 * hours + 60 * minutes)))
}

fn parsed(date: &str, separator: char, clock: &str) -> Option<f64> {
    let mut date = date.split(separator).map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.split(':');
    let (hour, minute) = (clock.next()?.parse::<u32>().ok()?, clock.next()?.parse::<u32>().ok()?);
    let second: f64 = clock.next().unwrap_or("0").parse().ok()?;
    let valid = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && (0.0..61.0).contains(&second)
        && clock.next().is_none();
    let days = days_until(year, month, day);
    // The 31st of April is a day of May.
    (valid && date_of(days) == (year, month, day))
        .then(|| (days * DAY_S) as f64 + f64::from(3600 * hour + 60 * minute) + second)
}

/// Days since the start of 1970 in the Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn days_until(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        assert_eq!(Moment::from_iso("1970-01-01T00:00:00Z"), Some(Moment(0.0)));
        assert_eq!(Moment::from_iso("2024-02-29T23:59:59Z"), Some(Moment(1_709_251_199.0)));
        assert_eq!(Moment::from_iso("2000-01-01T02:00:00.5+02:00"), Some(Moment(946_684_800.5)));
        let exif = |text| Moment::from_exif(text, None, None);
        assert_eq!(exif("2000:01:01 00:00:00\0"), Some(Moment(946_684_800.0)));
        let full = Moment::from_exif("2000:01:01 00:00:00", Some("25"), Some("-01:00"));
        assert_eq!(full, Some(Moment(946_688_400.25)));
        for wrong in ["0000:00:00 00:00:00", "2023:02:29 00:00:00", "    :  :     :  :  ", ""] {
            assert_eq!(exif(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-700_000..700_000).step_by(97) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_until(year, month, day), days);
        }
        for text in ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T00:00:01Z"] {
            assert_eq!(Moment::from_iso(text).map(|m| m.to_string()).as_deref(), Some(text));
        }
    }
}
