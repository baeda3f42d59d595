//! The header of a field: the sections that decide its key, and the few numbers that this module reads from
//! them.
//!
//! The key of a GRIB field follows from sections 0 to 4 (GRIB1: 0 to 2); the later sections describe the
//! packing of values. A **read** number changes from field to field and enters the key in only one way: date,
//! time, step, level, number of the ensemble member. Only the `rules` below know where that is certain:
//!
//! * ECMWF's local section 1 or 36, streams of forecasts and analyses, types an, fc, cf, pf; or no local
//!   section. Other streams derive their dates and periods from several numbers;
//! * products 0, 1, 8 and 11 of GRIB2, plain instants of GRIB1; steps in hours;
//! * levels of pressure and of hybrid coordinates, except in three tables of GRIB1: no parameter in eccodes'
//!   tables depends on them, in the way that 2 m temperature depends on its height (a test reads the tables);
//! * never a zero: "no member", "the surface", "since the beginning" may not mean a value;
//! * not the time of day of statistics: the name of their span may depend on it.
//!
//! Invariant: two headers of equal [`Header::pattern`] differ only in read numbers.

use super::fields::sections;
use super::{length, number};

/// The meaning of a read number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Year, month and day of the start.
    Date,
    /// Hour and minute of the start.
    Time,
    /// Hours from the start to the field, or to the end of its interval.
    Step,
    /// A level of pressure (hPa) or of the model.
    Level,
    /// Number of the ensemble member.
    Number,
    /// The end of an interval, if it follows from date, time and step.
    End,
}

impl What {
    /// The keyword that it decides; `None` if it decides none.
    pub fn keyword(self) -> Option<&'static str> {
        match self {
            What::Date => Some("date"),
            What::Time => Some("time"),
            What::Step => Some("step"),
            What::Level => Some("levelist"),
            What::Number => Some("number"),
            What::End => None,
        }
    }
}

/// A read number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Read {
    what: What,
    /// Its position in the header's bytes; for a date, the positions of its parts.
    at: usize,
    len: usize,
    /// Divisor of a level, or hours to add to a step or its beginning.
    scale: u64,
}

/// A message's description of its grid, as bytes: equal bytes mean the same grid.
pub fn grid_of(message: &[u8]) -> &[u8] {
    if message.get(7) == Some(&2) {
        let grid = sections(message).into_iter().find(|(number, _)| *number == 3);
        return grid.and_then(|(_, range)| message.get(range)).unwrap_or_default();
    }
    let start = 8usize.saturating_add(length(message, 8, 3).unwrap_or(0));
    let has_grid = message.get(FLAGS).is_some_and(|flags| flags & 0x80 != 0);
    let end = start.saturating_add(length(message, start, 3).unwrap_or(0));
    match has_grid {
        true => message.get(start..end).unwrap_or_default(),
        // A grid that a centre has numbered: octets 5 to 7 of section 1.
        false => message.get(SECTION1 + 4..FLAGS).unwrap_or_default(),
    }
}

/// The header of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Eight bytes of section 0 without a length, and the sections that decide the key.
    bytes: Vec<u8>,
    reads: Vec<Read>,
}

/// Offset of section 1 in a header's bytes.
const SECTION1: usize = 8;
/// GRIB1: the octet of section 1 whose flags announce a grid and a bitmap.
const FLAGS: usize = SECTION1 + 7;
const BITMAP: u8 = 0x40;
/// The highest step, in hours, and level to read.
const MAX_STEP: u64 = 100_000;
const MAX_LEVEL: u64 = 100_000;

impl Header {
    /// The header of a message of one field, whose sections add up.
    pub fn new(message: &[u8]) -> Header {
        let mut bytes = message.get(..8).unwrap_or(message).to_vec();
        let reads = if message.get(7) == Some(&2) {
            let sections = sections(message);
            let deciding = sections.iter().filter(|(number, _)| (1..=4).contains(number));
            let mut places = [None; 5];
            for (number, range) in deciding {
                places[usize::from(*number)] = Some(bytes.len());
                bytes.extend_from_slice(message.get(range.clone()).unwrap_or_default());
            }
            rules2(&bytes, &places).unwrap_or_default()
        } else {
            bytes.iter_mut().skip(4).take(3).for_each(|byte| *byte = 0);
            let section1 = length(message, 8, 3).unwrap_or(0);
            let mut end = 8usize.saturating_add(section1);
            if message.get(FLAGS).is_some_and(|flags| flags & 0x80 != 0) {
                end = end.saturating_add(length(message, end, 3).unwrap_or(0));
            }
            bytes.extend_from_slice(message.get(8..end.min(message.len())).unwrap_or_default());
            rules1(&bytes).unwrap_or_default()
        };
        Header { bytes, reads }
    }

    /// The common part of all headers that differ only in read numbers.
    pub fn pattern(&self) -> Box<[u8]> {
        let mut pattern = self.whole().into_vec();
        for read in &self.reads {
            for place in places(read) {
                pattern[place] = 0;
            }
        }
        // The pattern includes which numbers were read: a zero that was skipped differs from a read number.
        let end = pattern.len() - 1;
        pattern.truncate(end);
        pattern.extend(self.reads.iter().map(|read| read.what as u8));
        pattern.push(1);
        pattern.into_boxed_slice()
    }

    /// All of the header, so that no other header is equal.
    pub fn whole(&self) -> Box<[u8]> {
        let mut whole = self.bytes.clone();
        if !self.is_grib2()
            && let Some(flags) = whole.get_mut(FLAGS)
        {
            *flags &= !BITMAP;
        }
        whole.push(0);
        whole.into_boxed_slice()
    }

    /// Whether this module reads any number of it.
    pub fn is_read(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Keywords and values of its read numbers.
    pub fn pairs(&self) -> impl Iterator<Item = (What, String)> + '_ {
        self.reads.iter().filter_map(|read| Some((read.what, self.text(read)?)))
    }

    /// The key's value for a read number.
    pub fn value(&self, what: What) -> Option<String> {
        self.reads.iter().find(|read| read.what == what).and_then(|read| self.text(read))
    }

    fn text(&self, read: &Read) -> Option<String> {
        let value = number(&self.bytes, read.at, read.len)?;
        Some(match read.what {
            What::Date => {
                let (year, month, day) = self.date(read.at)?;
                format!("{year:04}{month:02}{day:02}")
            }
            What::Time => format!("{:02}{:02}", value >> 8, value & 0xFF),
            What::Step => (value + read.scale).to_string(),
            What::Level => (value / read.scale).to_string(),
            What::Number => value.to_string(),
            What::End => return None,
        })
    }

    fn is_grib2(&self) -> bool {
        self.bytes.get(7) == Some(&2)
    }

    fn date(&self, at: usize) -> Option<(u64, u64, u64)> {
        date(&self.bytes, at)
    }

    /// A small message with this header, one value and no bitmap, to ask eccodes about.
    pub fn message(&self) -> Vec<u8> {
        let mut made = Vec::with_capacity(self.bytes.len() + 64);
        made.extend_from_slice(self.bytes.get(..SECTION1).unwrap_or(&self.bytes));
        if self.is_grib2() {
            made.extend_from_slice(&[0; 8]);
        }
        let start = made.len();
        made.extend_from_slice(self.bytes.get(SECTION1..).unwrap_or_default());
        if self.is_grib2() {
            let grid = sections(&[&made[..], b"7777"].concat()).into_iter().find(|(number, _)| *number == 3);
            let points = grid.and_then(|(_, range)| number(&made, range.start + 6, 4)).unwrap_or(1);
            made.extend_from_slice(&[0, 0, 0, 21, 5]);
            made.extend_from_slice(&(points as u32).to_be_bytes());
            made.extend_from_slice(&[0; 12]);
            made.extend_from_slice(&[0, 0, 0, 6, 6, 255, 0, 0, 0, 5, 7]);
        } else {
            if made.get(start + 7).is_some_and(|flags| flags & BITMAP != 0) {
                // Indicator of a predefined bitmap, so that none is stored here.
                made.extend_from_slice(&[0, 0, 6, 0, 0, 1]);
            }
            made.extend_from_slice(&[0, 0, 12, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        made.extend_from_slice(b"7777");
        let total = made.len() as u64;
        if self.is_grib2() {
            made[8..16].copy_from_slice(&total.to_be_bytes());
        } else {
            made[4..7].copy_from_slice(&total.to_be_bytes()[5..]);
        }
        made
    }

    /// A header of the same pattern in which every read number differs.
    pub fn probe(&self) -> Header {
        let mut probe = self.clone();
        for read in &self.reads {
            let Some(value) = number(&self.bytes, read.at, read.len) else { continue };
            let other = |value: u64, step: u64| if value > 2 * step { value - step } else { value + step };
            let value = match read.what {
                What::Date => {
                    self.other_date(&mut probe.bytes, read.at);
                    continue;
                }
                What::Time => ((((value >> 8) + 7) % 24) << 8) | (((value & 0xFF) + 30) % 60),
                What::Step | What::Number => other(value, 23),
                What::Level => other(value / read.scale, 23) * read.scale,
                // It follows from the others, after they are changed.
                What::End => continue,
            };
            if let Some(place) = probe.bytes.get_mut(read.at..read.at + read.len) {
                let bytes = value.to_be_bytes();
                place.copy_from_slice(&bytes[bytes.len().saturating_sub(read.len)..]);
            }
        }
        probe.set_end();
        probe
    }

    /// Sets the end of the interval to the one that follows from date, time and step.
    fn set_end(&mut self) {
        let Some(read) = self.reads.iter().find(|read| read.what == What::End).cloned() else { return };
        let Some(step) = product_of(&self.bytes).and_then(|at| number(&self.bytes, at + 18, 4)) else {
            return;
        };
        if let Some(end) = end_of(&self.bytes, SECTION1 + 12, step + read.scale)
            && let Some(place) = self.bytes.get_mut(read.at..read.at + read.len)
        {
            place.copy_from_slice(&end);
        }
    }

    fn other_date(&self, into: &mut [u8], at: usize) {
        let Some((year, month, day)) = self.date(at) else { return };
        let other = [month % 12 + 1, if day > 14 { day - 13 } else { day + 13 }].map(|n| n as u8);
        if self.is_grib2() {
            let year = if year > 2000 { year - 11 } else { year + 11 } as u16;
            into[at..at + 2].copy_from_slice(&year.to_be_bytes());
            into[at + 2..at + 4].copy_from_slice(&other);
        } else {
            into[at] = if into[at] > 50 { into[at] - 11 } else { into[at] + 11 };
            into[at + 1..at + 3].copy_from_slice(&other);
        }
    }
}

/// The positions of a number's bytes. A GRIB1 date has its century elsewhere.
fn places(read: &Read) -> impl Iterator<Item = usize> {
    let century = (read.what == What::Date && read.len == 3).then_some(SECTION1 + 24);
    (read.at..read.at + read.len).chain(century)
}

/// Offset of section 4 of GRIB2 in a header's bytes.
fn product_of(bytes: &[u8]) -> Option<usize> {
    let mut at = SECTION1;
    while number(bytes, at + 4, 1)? != 4 {
        at = at.checked_add(length(bytes, at, 4).filter(|length| *length >= 5)?)?;
    }
    Some(at)
}

/// Year, month, day, hour, minute and second, `hours` after a start of GRIB2; `None` if that is not a valid
/// moment.
fn end_of(bytes: &[u8], start: usize, hours: u64) -> Option<[u8; 7]> {
    let (year, month, day) = date(bytes, start)?;
    let hour = number(bytes, start + 4, 1)?.checked_add(hours)?;
    let (minute, second) = (*bytes.get(start + 5)?, *bytes.get(start + 6)?);
    // Count days from 0000-03-01, so that a leap day is the last of its year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 + hour / 24;
    let cycle = days % 146_097;
    let of_cycle = (cycle - cycle / 1_460 + cycle / 36_524 - cycle / 146_096) / 365;
    let of_year = cycle - (365 * of_cycle + of_cycle / 4 - of_cycle / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = days / 146_097 * 400 + of_cycle + u64::from(month <= 2);
    let [high, low] = u16::try_from(year).ok()?.to_be_bytes();
    let [month, day, hour] = [month, day, hour % 24].map(|n| n as u8);
    Some([high, low, month, day, hour, minute, second])
}

/// A valid date: GRIB2 has years of two bytes, GRIB1 of the century.
fn date(bytes: &[u8], at: usize) -> Option<(u64, u64, u64)> {
    let (year, rest) = if bytes.get(7) == Some(&2) {
        (number(bytes, at, 2)?, at + 2)
    } else {
        let (century, year) = (number(bytes, SECTION1 + 24, 1)?, number(bytes, at, 1)?);
        if !(1..=100).contains(&year) {
            return None;
        }
        (century.checked_sub(1)? * 100 + year, at + 1)
    };
    let (month, day) = (number(bytes, rest, 1)?, number(bytes, rest + 1, 1)?);
    let days = match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    ((1800..=2200).contains(&year) && (1..=days).contains(&day)).then_some((year, month, day))
}

fn is_time(bytes: &[u8], at: usize) -> bool {
    number(bytes, at, 1).is_some_and(|hour| hour < 24) && number(bytes, at + 1, 1).is_some_and(|m| m < 60)
}

/// The streams and types of ECMWF whose dates, steps and members are the plain numbers.
fn is_plain(stream: u64, kind: u64) -> bool {
    const STREAMS: [u64; 9] = [1025, 1026, 1027, 1030, 1035, 1045, 1081, 1088, 1249];
    const TYPES: [u64; 4] = [2, 9, 10, 11];
    STREAMS.contains(&stream) && TYPES.contains(&kind)
}

const ECMWF: u64 = 98;
const LOCAL: [u64; 2] = [1, 36];

/// Whether the local section of a GRIB2 header is one of ECMWF's whose labels are the plain numbers.
fn is_local_plain(bytes: &[u8], s1: usize, s2: usize) -> Option<bool> {
    let local = number(bytes, s2 + 5, 2)?;
    let (centre, sub) = (number(bytes, s1 + 5, 2)?, number(bytes, s1 + 7, 2)?);
    let (kind, stream) = (number(bytes, s2 + 9, 2)?, number(bytes, s2 + 11, 2)?);
    Some((centre == ECMWF || sub == ECMWF) && LOCAL.contains(&local) && is_plain(stream, kind))
}

/// The numbers to read from a GRIB2 header; `None` if their meaning is uncertain. `places` are the offsets of
/// its sections.
fn rules2(bytes: &[u8], places: &[Option<usize>; 5]) -> Option<Vec<Read>> {
    let (s1, s4) = (places[1]?, places[4]?);
    let octet = |section: usize, octet: usize| number(bytes, section + octet - 1, 1);
    if let Some(s2) = places[2]
        && !is_local_plain(bytes, s1, s2)?
    {
        return None;
    }
    // Above 3 the production status means projects with labels of their own.
    let status = octet(s1, 20)?;
    if length(bytes, s1, 4)? != 21 || (status > 3 && status != 255) || octet(s1, 19)? != 0 {
        return None;
    }
    let product = number(bytes, s4 + 7, 2)?;
    let (member, interval) = match product {
        0 => (None, None),
        1 => (Some(s4 + 35), None),
        8 => (None, Some(s4 + 34)),
        11 => (Some(s4 + 35), Some(s4 + 37)),
        _ => return None,
    };
    let mut reads = Vec::with_capacity(6);
    let mut read = |what, at, len, scale| reads.push(Read { what, at, len, scale });
    if date(bytes, s1 + 12).is_some() && is_time(bytes, s1 + 16) {
        read(What::Date, s1 + 12, 4, 1);
        if interval.is_none() {
            read(What::Time, s1 + 16, 2, 1);
        }
    }
    let lasts = match interval {
        None => Some(0),
        // One range, in hours: its length belongs to the pattern.
        Some(at) if octet(at, 8)? == 1 && octet(at, 15)? == 1 => {
            number(bytes, at + 15, 4).filter(|n| *n <= MAX_STEP)
        }
        Some(_) => None,
    };
    let start = number(bytes, s4 + 18, 4)?;
    if let (Some(at), Some(lasts)) = (interval, lasts)
        && octet(s4, 18) == Some(1)
        && start <= MAX_STEP
        && end_of(bytes, s1 + 12, start + lasts).is_some_and(|end| bytes.get(at..at + 7) == Some(&end[..]))
    {
        read(What::End, at, 7, lasts);
    }
    if let Some(lasts) = lasts.filter(|_| octet(s4, 18) == Some(1) && (1..=MAX_STEP).contains(&start)) {
        read(What::Step, s4 + 18, 4, lasts);
    }
    let divisor = match octet(s4, 23)? {
        100 => 100,
        105 => 1,
        _ => 0,
    };
    let level = number(bytes, s4 + 24, 4)?;
    if divisor > 0
        && octet(s4, 24)? == 0
        && octet(s4, 29)? == 255
        && level.is_multiple_of(divisor)
        && (1..=MAX_LEVEL).contains(&(level / divisor))
    {
        read(What::Level, s4 + 24, 4, divisor);
    }
    if let Some(at) = member
        && (1..=250).contains(&number(bytes, at, 1)?)
    {
        read(What::Number, at, 1, 1);
    }
    Some(reads)
}

/// The numbers to read from a GRIB1 header; `None` if their meaning is uncertain.
fn rules1(bytes: &[u8]) -> Option<Vec<Read>> {
    let octet = |octet: usize| number(bytes, SECTION1 + octet - 1, 1);
    let mut member = None;
    if length(bytes, SECTION1, 3)? > 40 {
        let (kind, stream) = (octet(43)?, number(bytes, SECTION1 + 43, 2)?);
        let ecmwf = octet(5)? == ECMWF || octet(26)? == ECMWF;
        if !ecmwf || !LOCAL.contains(&octet(41)?) || !is_plain(stream, kind) {
            return None;
        }
        member = Some(SECTION1 + 49);
    }
    let mut reads = Vec::with_capacity(5);
    let mut read = |what, at, len, scale| reads.push(Read { what, at, len, scale });
    // An instant: a step of one octet, an analysis, or a step of two octets.
    let range = octet(21)?;
    if !matches!(range, 0 | 1 | 10) {
        return None;
    }
    if date(bytes, SECTION1 + 12).is_some() && is_time(bytes, SECTION1 + 15) {
        read(What::Date, SECTION1 + 12, 3, 1);
        read(What::Time, SECTION1 + 15, 2, 1);
    }
    let len = if range == 10 { 2 } else { 1 };
    if range != 1 && octet(18)? == 1 && number(bytes, SECTION1 + 18, len)? > 0 {
        read(What::Step, SECTION1 + 18, len, 0);
    }
    let level = number(bytes, SECTION1 + 10, 2)?;
    // These tables of some centres have parameters that depend on a level.
    if !matches!(octet(4)?, 2 | 129 | 202) && matches!(octet(10)?, 100 | 109) && (1..0xFFFF).contains(&level)
    {
        read(What::Level, SECTION1 + 10, 2, 1);
    }
    if let Some(at) = member
        && (1..=250).contains(&number(bytes, at, 1)?)
    {
        read(What::Number, at, 1, 1);
    }
    Some(reads)
}
