//! Columns of numbers and texts, as compact as their content allows (Q-10).
//!
//! ```text
//! ints(n)   = 0 value: zigzag                                    the same in all rows
//!           | 1 least: zigzag  width: u8  bits(n, width)         value - least
//!           | 2 first: zigzag  least: zigzag  width: u8  bits(n - 1, width)
//!                                                                difference to the row before, - least
//!           | 3 d: varint  ints(d)  bits(n, width of d - 1)      index into d values, 2 <= d <= 256
//! bits(n,w) = ceil(n * w / 8) bytes; number i takes bits i*w ..; bit b is bit b % 8 of byte b / 8
//! planes(n) = 0 eight planes of n bytes, the lowest bytes first  1 the same of 32-bit floats, four planes
//! floats(n) = planes(n) | 2 ints(n) of whole numbers | 3 ints(n) of the bits
//! texts(n)  = 0 plain(n) | 1 d: varint  plain(d)  ints(n) of indices; d <= n, at most 64 MiB in all
//! plain(n)  = ints(n) of lengths, then the bytes
//! zigzag    = varint of (v << 1) ^ (v >> 63)
//! ```
//! Differences wrap around at 64 bits, so that every column can take every form. The writer chooses the form;
//! this one takes the shortest.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use fieldstone_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::bytes::{Cursor, Put};

/// Most distinct values of a listed column.
const LISTED: usize = 256;
/// Most bytes of a column of texts that is stored as a list.
const LISTED_BYTES: usize = 64 << 20;

/// Appends a signed number; small numbers take few bytes.
pub(crate) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    out.put_varint(((value << 1) ^ (value >> 63)) as u64);
}

/// Reads a signed number.
pub(crate) fn read_zigzag(cursor: &mut Cursor<'_>) -> Result<i64> {
    let value = cursor.varint()?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Number of bits that hold `value`.
fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

fn packed_len(n: usize, width: u32) -> usize {
    (n as u128 * u128::from(width)).div_ceil(8) as usize
}

fn put_bits(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let (mut held, mut bits) = (0u128, 0u32);
    for value in values {
        held |= u128::from(value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(held as u8);
    }
}

/// Passes `n` numbers of `width` bits to `take`.
fn read_bits(cursor: &mut Cursor<'_>, n: usize, width: u32, mut take: impl FnMut(u64)) -> Result<()> {
    let bytes = cursor.take(packed_len(n, width))?;
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    let (mut held, mut bits, mut at) = (0u128, 0u32, 0usize);
    for _ in 0..n {
        while bits < width {
            held |= u128::from(bytes[at]) << bits;
            bits += 8;
            at += 1;
        }
        take(held as u64 & mask);
        held >>= width;
        bits -= width;
    }
    Ok(())
}

/// Appends a column of integers; at least one.
pub(crate) fn put_ints(out: &mut Vec<u8>, values: &[i64]) {
    let (Some(&first), Some(&least), Some(&most)) =
        (values.first(), values.iter().min(), values.iter().max())
    else {
        return;
    };
    if least == most {
        out.push(0);
        put_zigzag(out, first);
        return;
    }
    let width = width_of(most.wrapping_sub(least) as u64);
    let differences = || values.windows(2).map(|two| two[1].wrapping_sub(two[0]));
    let (low, high) = differences().fold((i64::MAX, i64::MIN), |(low, high), d| (low.min(d), high.max(d)));
    let delta_width = width_of(high.wrapping_sub(low) as u64);
    let plain = packed_len(values.len(), width);
    // The first value and the least difference take about four bytes more.
    let delta = packed_len(values.len() - 1, delta_width) + 4;
    if let Some((words, codes)) = listed(values) {
        let code_width = width_of(words.len() as u64 - 1);
        let mut list = Vec::new();
        put_ints(&mut list, &words);
        if list.len() + packed_len(values.len(), code_width) < plain.min(delta) {
            out.push(3);
            out.put_varint(words.len() as u64);
            out.extend_from_slice(&list);
            put_bits(out, codes.iter().map(|code| u64::from(*code)), code_width);
            return;
        }
    }
    if delta < plain {
        out.push(2);
        put_zigzag(out, first);
        put_zigzag(out, low);
        out.push(delta_width as u8);
        put_bits(out, differences().map(|d| d.wrapping_sub(low) as u64), delta_width);
    } else {
        out.push(1);
        put_zigzag(out, least);
        out.push(width as u8);
        put_bits(out, values.iter().map(|value| value.wrapping_sub(least) as u64), width);
    }
}

/// The distinct values, ascending, and each row's index; `None` if there are too many for a list to pay off.
fn listed(values: &[i64]) -> Option<(Vec<i64>, Vec<u8>)> {
    let most = LISTED.min(values.len() / 2);
    // Columns of many distinct values show that early, so most columns cost no more than this loop.
    let mut words: Vec<i64> = Vec::with_capacity(most + 1);
    let mut seen: HashMap<i64, u8> = HashMap::new();
    for value in values {
        if !seen.contains_key(value) {
            if words.len() == most {
                return None;
            }
            seen.insert(*value, 0);
            words.push(*value);
        }
    }
    words.sort_unstable();
    for (i, word) in words.iter().enumerate() {
        seen.insert(*word, i as u8);
    }
    let codes = values.iter().map(|value| seen.get(value).copied().unwrap_or(0)).collect();
    (words.len() >= 2).then_some((words, codes))
}

/// Reads a column of `n` integers, `n` at least 1. The caller bounds `n`: a constant column takes few bytes
/// however many rows it has.
pub(crate) fn read_ints(cursor: &mut Cursor<'_>, n: usize) -> Result<Vec<i64>> {
    read_ints_within(cursor, n, true)
}

fn read_ints_within(cursor: &mut Cursor<'_>, n: usize, lists: bool) -> Result<Vec<i64>> {
    match cursor.u8()? {
        0 => Ok(vec![read_zigzag(cursor)?; n]),
        1 => {
            let (least, width) = (read_zigzag(cursor)?, read_width(cursor)?);
            let mut values = Vec::with_capacity(n);
            read_bits(cursor, n, width, |bits| values.push(least.wrapping_add(bits as i64)))?;
            Ok(values)
        }
        2 => {
            let (first, least) = (read_zigzag(cursor)?, read_zigzag(cursor)?);
            let width = read_width(cursor)?;
            let mut values = Vec::with_capacity(n);
            let mut last = first;
            values.push(first);
            read_bits(cursor, n - 1, width, |bits| {
                last = last.wrapping_add(least).wrapping_add(bits as i64);
                values.push(last);
            })?;
            Ok(values)
        }
        // A list must not hold a list: damage could nest them deeper than the stack.
        3 if lists => {
            let d = cursor.size()?;
            if !(2..=LISTED).contains(&d) {
                return Err(cursor.fail("a list of values has an impossible length"));
            }
            let words = read_ints_within(cursor, d, false)?;
            let (mut values, mut sound) = (Vec::with_capacity(n), true);
            read_bits(cursor, n, width_of(d as u64 - 1), |code| match words.get(code as usize) {
                Some(word) => values.push(*word),
                None => sound = false,
            })?;
            if sound { Ok(values) } else { Err(cursor.fail("a column points past its list of values")) }
        }
        _ => Err(cursor.fail("a column of numbers has an unknown form")),
    }
}

fn read_width(cursor: &mut Cursor<'_>) -> Result<u32> {
    match cursor.u8()? {
        width @ 0..=64 => Ok(u32::from(width)),
        _ => Err(cursor.fail("a number of more than 64 bits")),
    }
}

/// Appends a column of floats; at least one. It keeps every bit, also of NaN.
pub(crate) fn put_floats(out: &mut Vec<u8>, values: &[f64]) {
    let bits: Vec<i64> = values.iter().map(|value| value.to_bits() as i64).collect();
    // The bits distinguish -0.0 from 0; above 9e15 floats skip whole numbers.
    let whole = |value: &f64| ((*value as i64) as f64).to_bits() == value.to_bits() && value.abs() < 9e15;
    let mut best = Vec::new();
    if values.iter().all(whole) {
        best.push(2);
        put_ints(&mut best, &values.iter().map(|value| *value as i64).collect::<Vec<i64>>());
    } else if listed(&bits).is_some() || bits.windows(2).all(|two| two[0] == two[1]) {
        best.push(3);
        put_ints(&mut best, &bits);
    }
    if !best.is_empty() && best.len() <= values.len() * if narrow(values) { 4 } else { 8 } {
        out.extend_from_slice(&best);
    } else {
        put_planes(out, values);
    }
}

/// Whether 32 bits hold each value exactly.
fn narrow(values: &[f64]) -> bool {
    values.iter().all(|value| f64::from(*value as f32).to_bits() == value.to_bits())
}

/// Appends floats in planes of bytes: signs and exponents of all values are together, where they compress
/// well.
pub(crate) fn put_planes(out: &mut Vec<u8>, values: &[f64]) {
    let (bits, planes): (Vec<u64>, u32) = if narrow(values) {
        (values.iter().map(|value| u64::from((*value as f32).to_bits())).collect(), 4)
    } else {
        (values.iter().map(|value| value.to_bits()).collect(), 8)
    };
    out.push(u8::from(planes == 4));
    for plane in 0..planes {
        out.extend(bits.iter().map(|bits| (bits >> (8 * plane)) as u8));
    }
}

/// Reads `n` floats in planes.
pub(crate) fn read_planes(cursor: &mut Cursor<'_>, n: usize) -> Result<Vec<f64>> {
    match cursor.u8()? {
        form @ 0..=1 => read_planes_of(cursor, n, form),
        _ => Err(cursor.fail("coordinates have an unknown form")),
    }
}

fn read_planes_of(cursor: &mut Cursor<'_>, n: usize, form: u8) -> Result<Vec<f64>> {
    let planes = if form == 1 { 4 } else { 8 };
    let len = n.checked_mul(planes).ok_or_else(|| cursor.fail("a column exceeds the data"))?;
    let bytes = cursor.take(len)?;
    let bits = |i: usize| (0..planes).fold(0, |bits, p| bits | u64::from(bytes[p * n + i]) << (8 * p));
    Ok(match form {
        1 => (0..n).map(|i| f64::from(f32::from_bits(bits(i) as u32))).collect(),
        _ => (0..n).map(|i| f64::from_bits(bits(i))).collect(),
    })
}

/// Reads a column of `n` floats, `n` at least 1.
pub(crate) fn read_floats(cursor: &mut Cursor<'_>, n: usize) -> Result<Vec<f64>> {
    Ok(match cursor.u8()? {
        form @ 0..=1 => read_planes_of(cursor, n, form)?,
        2 => read_ints(cursor, n)?.into_iter().map(|n| n as f64).collect(),
        3 => read_ints(cursor, n)?.into_iter().map(|bits| f64::from_bits(bits as u64)).collect(),
        _ => return Err(cursor.fail("a column of floats has an unknown form")),
    })
}

/// Hashes texts, which are mostly short. A column has a bounded number of rows, so an attacker gains little
/// from a slow table.
#[derive(Default)]
pub(crate) struct ShortHasher(u64);

impl Hasher for ShortHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_usize(&mut self, _: usize) {
        // Ignores the length of a text: its bytes suffice.
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Appends a column of byte strings; at least one.
pub(crate) fn put_strings<T: AsRef<[u8]>>(out: &mut Vec<u8>, values: &[T]) {
    let most = values.len() / 2;
    let mut codes: Vec<i64> = Vec::with_capacity(values.len());
    let mut words: Vec<&[u8]> = Vec::new();
    let mut seen: HashMap<&[u8], i64, BuildHasherDefault<ShortHasher>> = HashMap::default();
    let mut bytes = 0usize;
    let mut last: &[u8] = &[];
    for value in values {
        bytes += value.as_ref().len();
        // Many rows often share one text, which then is the same memory.
        let again = codes.last().copied().filter(|_| std::ptr::eq(last, value.as_ref()));
        last = value.as_ref();
        let code = again.unwrap_or_else(|| {
            *seen.entry(last).or_insert_with(|| {
                words.push(last);
                words.len() as i64 - 1
            })
        });
        if words.len() > most || bytes > LISTED_BYTES {
            out.push(0);
            return put_plain(out, values);
        }
        codes.push(code);
    }
    out.push(1);
    out.put_varint(words.len() as u64);
    put_plain(out, &words);
    put_ints(out, &codes);
}

fn put_plain<T: AsRef<[u8]>>(out: &mut Vec<u8>, values: &[T]) {
    let lengths: Vec<i64> = values.iter().map(|value| value.as_ref().len() as i64).collect();
    put_ints(out, &lengths);
    values.iter().for_each(|value| out.extend_from_slice(value.as_ref()));
}

/// Reads a column of `n` byte strings, `n` at least 1.
pub(crate) fn read_strings<'a>(cursor: &mut Cursor<'a>, n: usize) -> Result<Vec<&'a [u8]>> {
    match cursor.u8()? {
        0 => read_plain(cursor, n),
        1 => {
            let d = cursor.size()?;
            if d == 0 || d > n {
                return Err(cursor.fail("a list of texts has an impossible length"));
            }
            let words = read_plain(cursor, d)?;
            let codes = read_ints(cursor, n)?;
            let word = |code: i64| usize::try_from(code).ok().and_then(|code| words.get(code).copied());
            let found: Option<Vec<&[u8]>> = codes.into_iter().map(word).collect();
            let found = found.ok_or_else(|| cursor.fail("a column points past its list of texts"))?;
            // The caller makes a text of each: few bytes must not expand to many.
            if found.iter().fold(0usize, |sum, text| sum.saturating_add(text.len())) > LISTED_BYTES {
                return Err(cursor.fail("a list of texts expands to too long a column"));
            }
            Ok(found)
        }
        _ => Err(cursor.fail("a column of texts has an unknown form")),
    }
}

fn read_plain<'a>(cursor: &mut Cursor<'a>, n: usize) -> Result<Vec<&'a [u8]>> {
    let lengths = read_ints(cursor, n)?;
    let mut values = Vec::with_capacity(n);
    for length in lengths {
        let length = usize::try_from(length).map_err(|_| cursor.fail("a text has an impossible length"))?;
        values.push(cursor.take(length)?);
    }
    Ok(values)
}

/// Converts byte strings to texts.
pub(crate) fn texts(strings: Vec<&[u8]>) -> Result<Vec<String>> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned);
    strings
        .into_iter()
        .map(|bytes| text(bytes).map_err(|_| Error::corrupt("a text of a column is not UTF-8")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ints() -> impl Strategy<Value = Vec<i64>> {
        let few = proptest::sample::select(vec![0, 170, 340, -5, i64::MIN, i64::MAX]);
        prop_oneof![
            proptest::collection::vec(any::<i64>(), 1..80),
            proptest::collection::vec(few, 1..80),
            proptest::collection::vec(0..1000i64, 1..80),
            (any::<i64>(), any::<i64>(), 1..80i64)
                .prop_map(|(a, d, n)| (0..n).map(|i| a.wrapping_add(d.wrapping_mul(i))).collect()),
        ]
    }

    proptest! {
        #[test]
        fn ints_come_back(values in ints()) {
            let mut out = Vec::new();
            put_ints(&mut out, &values);
            let mut cursor = Cursor::new(&out);
            prop_assert_eq!(read_ints(&mut cursor, values.len()).unwrap(), values);
            prop_assert!(cursor.is_empty());
        }

        #[test]
        fn floats_come_back_bit_by_bit(bits in ints(), form in 0..4u8) {
            let values: Vec<f64> = bits.into_iter().map(|b| match form {
                0 => f64::from_bits(b as u64),
                1 => f64::from(f32::from_bits(b as u32)),
                2 => b as f64,
                _ => (b % 8) as f64 * 0.1,
            }).collect();
            let mut out = Vec::new();
            put_floats(&mut out, &values);
            let mut cursor = Cursor::new(&out);
            let back = read_floats(&mut cursor, values.len()).unwrap();
            let bits = |v: &[f64]| v.iter().map(|f| f.to_bits()).collect::<Vec<u64>>();
            prop_assert_eq!(bits(&back), bits(&values));
            prop_assert!(cursor.is_empty());
        }

        #[test]
        fn strings_come_back(values in proptest::collection::vec("[ab]{0,2}", 1..40)) {
            let mut out = Vec::new();
            put_strings(&mut out, &values);
            let mut cursor = Cursor::new(&out);
            let back = read_strings(&mut cursor, values.len()).unwrap();
            prop_assert_eq!(texts(back).unwrap(), values);
            prop_assert!(cursor.is_empty());
        }
    }

    #[test]
    fn forms_are_as_short_as_they_should_be() {
        let len = |values: &[i64]| {
            let mut out = Vec::new();
            put_ints(&mut out, values);
            out.len()
        };
        assert_eq!(len(&[7; 1000]), 2);
        assert!(len(&(0..1000).map(|i| 5_000_000 + 24 * i).collect::<Vec<i64>>()) < 10);
        assert_eq!(len(&(0..1000).map(|i| (i * i * 7919) % 1021).collect::<Vec<i64>>()), 1000 * 10 / 8 + 3);
        let listed: Vec<i64> = (0..1000).map(|i| ((i * i * 7919) % 6) * 170_000_000).collect();
        assert!(len(&listed) < 1000 * 3 / 8 + 40, "{}", len(&listed));
    }
}
