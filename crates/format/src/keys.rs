//! Keys as bytes. The order of the bytes (memcmp) is the order of the keys: level by level, value by value,
//! each in its typed order. The bytes describe themselves, so that a reader can list a store without its
//! schema.
//!
//! ```text
//! key    = level level level
//! level  = 02 { text } 03 { value }          as many values as names (texts)
//! value  = 01                                absent
//!        | 10 int                            whole number
//!        | 20 order8 text                    number: 8 bytes in float order, then its text
//!        | 28 int int text                   span: start, end, text
//!        | 30 text                           text
//! int    = head bytes   head 80+n: n big-endian bytes of v >= 0, none for 0
//!                       head 7f-n: n big-endian bytes of v, v < 0, the fewest that hold !v
//! text   = UTF-8 with 00 written as 00 ff, closed by 00 01
//! order8 = big-endian bits of the double, sign flipped if positive, all flipped if negative
//! ```

use std::sync::Arc;

use fieldstone_core::key::{FieldKey, KeyValue, LEVELS, Level, Names};
use fieldstone_core::{Error, Result};

const NAMES: u8 = 0x02;
const NAMES_END: u8 = 0x03;
const ABSENT: u8 = 0x01;
const INT: u8 = 0x10;
const REAL: u8 = 0x20;
const SPAN: u8 = 0x28;
const TEXT: u8 = 0x30;

/// A key as bytes, with the ends of its levels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncodedKey {
    /// The bytes; their order is the keys' order.
    pub bytes: Vec<u8>,
    /// The end of each level.
    pub ends: [usize; LEVELS],
}

/// Encodes a key.
pub fn encode_key(key: &FieldKey) -> EncodedKey {
    let mut bytes = Vec::with_capacity(192);
    let mut ends = [0; LEVELS];
    for (level, end) in key.levels.iter().zip(&mut ends) {
        encode_level(level, &mut bytes);
        *end = bytes.len();
    }
    EncodedKey { bytes, ends }
}

/// Encodes one level. The first level alone is the prefix of every key of a dataset.
pub fn encode_level(level: &Level, out: &mut Vec<u8>) {
    encode_names(&level.names, out);
    for value in &level.values {
        encode_value(value, out);
    }
}

/// Encodes the keywords that open a level.
pub fn encode_names(names: &[Arc<str>], out: &mut Vec<u8>) {
    out.push(NAMES);
    for name in names {
        encode_text(name, out);
    }
    out.push(NAMES_END);
}

/// Encodes one value.
pub fn encode_value(value: &KeyValue, out: &mut Vec<u8>) {
    match value {
        KeyValue::Absent => out.push(ABSENT),
        KeyValue::Int(i) => {
            out.push(INT);
            encode_int(*i, out);
        }
        KeyValue::Real(real, text) => {
            out.push(REAL);
            let bits = real.to_bits();
            let ordered = if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits };
            out.extend_from_slice(&ordered.to_be_bytes());
            encode_text(text, out);
        }
        KeyValue::Span { start, end, text } => {
            out.push(SPAN);
            encode_int(*start, out);
            encode_int(*end, out);
            encode_text(text, out);
        }
        KeyValue::Text(text) => {
            out.push(TEXT);
            encode_text(text, out);
        }
    }
}

fn encode_int(value: i64, out: &mut Vec<u8>) {
    let n = magnitude_bytes(value);
    out.push(if value < 0 { 0x7f - n as u8 } else { 0x80 + n as u8 });
    out.extend_from_slice(&(value as u64).to_be_bytes()[8 - n..]);
}

/// The fewest bytes that hold the value, or its complement if it is negative.
fn magnitude_bytes(value: i64) -> usize {
    let magnitude = if value < 0 { !value } else { value } as u64;
    8 - magnitude.leading_zeros() as usize / 8
}

pub(crate) fn encode_text(text: &str, out: &mut Vec<u8>) {
    for &byte in text.as_bytes() {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 1]);
}

/// Decodes keys. It keeps the levels of the last key, so that neighbours in a segment share them.
#[derive(Debug, Default, Clone)]
pub struct KeyDecoder {
    levels: [Option<LastDecoded<Arc<Level>>>; LEVELS],
    names: [Option<LastDecoded<Names>>; LEVELS],
}

/// The last decoded value, and its bytes.
type LastDecoded<T> = (Box<[u8]>, T);

impl KeyDecoder {
    /// A decoder without an earlier key.
    pub fn new() -> KeyDecoder {
        KeyDecoder::default()
    }

    /// Decodes a whole key.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<FieldKey> {
        let mut rest = bytes;
        let first = self.level(0, &mut rest)?;
        let second = self.level(1, &mut rest)?;
        let third = self.level(2, &mut rest)?;
        if !rest.is_empty() {
            return Err(Error::corrupt("a key has bytes after its third level"));
        }
        Ok(FieldKey { levels: [first, second, third] })
    }

    fn level(&mut self, index: usize, rest: &mut &[u8]) -> Result<Arc<Level>> {
        // The last level always differs; the outer two usually repeat.
        if index + 1 < LEVELS
            && let Some((seen, level)) = &self.levels[index]
            && rest.starts_with(seen)
        {
            *rest = &rest[seen.len()..];
            return Ok(level.clone());
        }
        let whole = *rest;
        let names = self.names(index, rest)?;
        let mut values = Vec::with_capacity(names.len());
        for _ in 0..names.len() {
            values.push(decode_value(rest)?);
        }
        let level = Arc::new(Level { names, values });
        if index + 1 < LEVELS {
            let used = whole.len() - rest.len();
            self.levels[index] = Some((whole[..used].into(), level.clone()));
        }
        Ok(level)
    }

    fn names(&mut self, index: usize, rest: &mut &[u8]) -> Result<Names> {
        if let Some((seen, names)) = &self.names[index]
            && rest.starts_with(seen)
        {
            *rest = &rest[seen.len()..];
            return Ok(names.clone());
        }
        let whole = *rest;
        let names = decode_names(rest)?;
        self.names[index] = Some((whole[..whole.len() - rest.len()].into(), names.clone()));
        Ok(names)
    }
}

/// The ends of the three levels of an encoded key, found without decoding its values.
pub fn level_ends(bytes: &[u8]) -> Result<[usize; LEVELS]> {
    let mut rest = bytes;
    let mut ends = [0; LEVELS];
    for end in &mut ends {
        let n = skip_names(&mut rest)?;
        for _ in 0..n {
            skip_value(&mut rest)?;
        }
        *end = bytes.len() - rest.len();
    }
    Ok(ends)
}

/// Reads the names that open a level.
pub fn decode_names(rest: &mut &[u8]) -> Result<Names> {
    expect(rest, NAMES)?;
    let mut names: Vec<Arc<str>> = Vec::new();
    while rest.first() != Some(&NAMES_END) {
        names.push(decode_text(rest)?);
    }
    *rest = &rest[1..];
    Ok(names.into())
}

/// Reads one value.
pub fn decode_value(rest: &mut &[u8]) -> Result<KeyValue> {
    Ok(match next(rest)? {
        ABSENT => KeyValue::Absent,
        INT => KeyValue::Int(decode_int(rest)?),
        REAL => {
            let ordered = u64::from_be_bytes(take_array(rest)?);
            let bits = if ordered >> 63 == 1 { ordered ^ (1 << 63) } else { !ordered };
            KeyValue::Real(f64::from_bits(bits), decode_text(rest)?)
        }
        SPAN => {
            let (start, end) = (decode_int(rest)?, decode_int(rest)?);
            KeyValue::Span { start, end, text: decode_text(rest)? }
        }
        TEXT => KeyValue::Text(decode_text(rest)?),
        other => return Err(Error::corrupt(format!("a key holds the unknown value tag {other:#04x}"))),
    })
}

fn skip_names(rest: &mut &[u8]) -> Result<usize> {
    expect(rest, NAMES)?;
    let mut n = 0;
    while rest.first() != Some(&NAMES_END) {
        skip_text(rest)?;
        n += 1;
    }
    *rest = &rest[1..];
    Ok(n)
}

/// Skips one value and returns its bytes.
pub fn skip_value<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    let whole = *rest;
    match next(rest)? {
        ABSENT => {}
        INT => drop(decode_int(rest)?),
        REAL => {
            take_array::<8>(rest)?;
            skip_text(rest)?;
        }
        SPAN => {
            decode_int(rest)?;
            decode_int(rest)?;
            skip_text(rest)?;
        }
        TEXT => skip_text(rest)?,
        other => return Err(Error::corrupt(format!("a key holds the unknown value tag {other:#04x}"))),
    }
    Ok(&whole[..whole.len() - rest.len()])
}

/// A keyword as [`find_value`] looks for it.
pub fn encode_name(name: &str) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(name.len() + 2);
    encode_text(name, &mut encoded);
    encoded
}

/// The bytes of a keyword's value in an encoded key; `None` where the key has none.
pub fn find_value<'a>(key: &'a [u8], name: &[u8]) -> Result<Option<&'a [u8]>> {
    let mut rest = key;
    for _ in 0..LEVELS {
        expect(&mut rest, NAMES)?;
        let (mut names, mut found) = (0, None);
        while rest.first() != Some(&NAMES_END) {
            let from = rest;
            skip_text(&mut rest)?;
            if from[..from.len() - rest.len()] == *name {
                found = Some(names);
            }
            names += 1;
        }
        rest = &rest[1..];
        for at in 0..names {
            let value = skip_value(&mut rest)?;
            if found == Some(at) {
                return Ok(Some(value).filter(|value| **value != [ABSENT]));
            }
        }
    }
    Ok(None)
}

/// The values of one level as byte slices, for matching without decoding. `rest` starts at a level.
pub fn level_values<'a>(rest: &mut &'a [u8], out: &mut Vec<&'a [u8]>) -> Result<()> {
    let n = skip_names(rest)?;
    for _ in 0..n {
        out.push(skip_value(rest)?);
    }
    Ok(())
}

fn next(rest: &mut &[u8]) -> Result<u8> {
    let (&byte, tail) = rest.split_first().ok_or_else(|| Error::corrupt("a key ends too early"))?;
    *rest = tail;
    Ok(byte)
}

fn expect(rest: &mut &[u8], wanted: u8) -> Result<()> {
    match next(rest)? {
        byte if byte == wanted => Ok(()),
        byte => Err(Error::corrupt(format!("a key has {byte:#04x} instead of {wanted:#04x}"))),
    }
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or_else(|| Error::corrupt("a key ends too early"))?;
    *rest = tail;
    Ok(*head)
}

fn decode_int(rest: &mut &[u8]) -> Result<i64> {
    let head = next(rest)?;
    let (negative, n) = if head >= 0x80 { (false, head - 0x80) } else { (true, 0x7f - head) };
    let n = usize::from(n);
    if n > 8 || n > rest.len() {
        return Err(Error::corrupt("a key holds a whole number that is truncated or too long"));
    }
    let mut bytes = [if negative { 0xff } else { 0 }; 8];
    bytes[8 - n..].copy_from_slice(&rest[..n]);
    *rest = &rest[n..];
    let value = i64::from_be_bytes(bytes);
    // Longer than needed, or with the wrong sign: equal keys would have unequal bytes.
    if (value < 0) != negative || magnitude_bytes(value) != n {
        return Err(Error::corrupt("a key holds a whole number that is not in its shortest form"));
    }
    Ok(value)
}

fn text_end(rest: &[u8]) -> Result<(usize, bool)> {
    let mut escaped = false;
    let mut i = 0;
    while let Some(zero) = rest[i..].iter().position(|&b| b == 0) {
        match rest.get(i + zero + 1) {
            Some(1) => return Ok((i + zero, escaped)),
            Some(0xff) => {
                escaped = true;
                i += zero + 2;
            }
            _ => break,
        }
    }
    Err(Error::corrupt("a key holds an unterminated text"))
}

fn skip_text(rest: &mut &[u8]) -> Result<()> {
    let (end, _) = text_end(rest)?;
    *rest = &rest[end + 2..];
    Ok(())
}

pub(crate) fn decode_text(rest: &mut &[u8]) -> Result<Arc<str>> {
    let (end, escaped) = text_end(rest)?;
    let raw = &rest[..end];
    *rest = &rest[end + 2..];
    let not_utf8 = |_| Error::corrupt("a key holds a text that is not UTF-8");
    if !escaped {
        return Ok(std::str::from_utf8(raw).map_err(not_utf8)?.into());
    }
    let mut plain = Vec::with_capacity(raw.len());
    // `text_end` has checked that every 00 is followed by ff.
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(byte);
        if byte == 0 {
            bytes.next();
        }
    }
    Ok(std::str::from_utf8(&plain).map_err(not_utf8)?.into())
}

/// An encoded first level as text: `{run=a}`.
pub fn level_text(prefix: &[u8]) -> String {
    let mut rest = prefix;
    let decode = |rest: &mut &[u8]| -> Result<Level> {
        let names = decode_names(rest)?;
        let values = names.iter().map(|_| decode_value(rest)).collect::<Result<_>>()?;
        Ok(Level { names, values })
    };
    match decode(&mut rest) {
        Ok(level) => {
            let pairs: Vec<String> = level
                .names
                .iter()
                .zip(&level.values)
                .filter(|(_, value)| !value.is_absent())
                .map(|(name, value)| format!("{name}={}", fieldstone_core::key::Quoted(&value.text())))
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
        Err(_) => "a damaged dataset".to_owned(),
    }
}

/// An encoded key as text, for messages.
pub fn key_text(key: &[u8]) -> String {
    KeyDecoder::new().decode(key).map_or_else(|_| "a damaged key".to_owned(), |key| key.to_string())
}
