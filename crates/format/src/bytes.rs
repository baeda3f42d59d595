//! Reading and writing of primitive values. `Put` appends to a buffer; `Cursor` reads from one and never past
//! its end.

use fieldstone_core::{Error, Result};

use crate::{Id, crc};

/// Appends primitive values.
pub trait Put {
    /// Little-endian u16.
    fn put_u16(&mut self, value: u16);
    /// Little-endian u32.
    fn put_u32(&mut self, value: u32);
    /// Little-endian u64.
    fn put_u64(&mut self, value: u64);
    /// Little-endian i64.
    fn put_i64(&mut self, value: i64);
    /// Unsigned LEB128: seven bits a byte, low bits first.
    fn put_varint(&mut self, value: u64);
    /// Length as varint, then the bytes.
    fn put_bytes(&mut self, value: &[u8]);
    /// A 128-bit id.
    fn put_id(&mut self, value: Id);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }
    fn put_bytes(&mut self, value: &[u8]) {
        self.put_varint(value.len() as u64);
        self.extend_from_slice(value);
    }
    fn put_id(&mut self, value: Id) {
        self.extend_from_slice(&value.0);
    }
}

/// Reads primitive values from a slice; every failure is `Corrupt` and names the offset.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of `data`.
    pub fn new(data: &'a [u8]) -> Cursor<'a> {
        Cursor { data, position: 0 }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.data.len() - self.position
    }

    /// Whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// A `Corrupt` error at the current offset.
    pub fn fail(&self, rule: &str) -> Error {
        Error::corrupt(format!("{rule} at byte {}", self.position))
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.remaining() {
            return Err(self.fail("the data end too early"));
        }
        let part = &self.data[self.position..self.position + n];
        self.position += n;
        Ok(part)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        match self.data.get(self.position) {
            Some(byte) => {
                self.position += 1;
                Ok(*byte)
            }
            None => Err(self.fail("the data end too early")),
        }
    }
    /// One byte that is 0 or 1.
    pub fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.fail("a flag is neither 0 nor 1")),
        }
    }

    /// Little-endian u16.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    /// Little-endian u32.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    /// Little-endian u64.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// Little-endian i64.
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }
    /// A 128-bit id.
    pub fn id(&mut self) -> Result<Id> {
        Ok(Id(self.array()?))
    }

    /// Unsigned LEB128.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.fail("a number exceeds 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.fail("a number exceeds 64 bits"))
    }

    /// A varint that must fit a `usize`.
    #[inline]
    pub fn size(&mut self) -> Result<usize> {
        let value = self.varint()?;
        usize::try_from(value).map_err(|_| self.fail("a length exceeds this machine's memory"))
    }

    /// Number of the items that follow, each of at least `item_bytes`: refused if the data are too short for
    /// them.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let n = self.size()?;
        if n.saturating_mul(item_bytes.max(1)) > self.remaining() {
            return Err(self.fail("a count exceeds the data"));
        }
        Ok(n)
    }

    /// Length-prefixed bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let n = self.size()?;
        self.take(n)
    }

    /// Length-prefixed UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        let at = self.position;
        std::str::from_utf8(self.bytes()?)
            .map_err(|_| Error::corrupt(format!("a text is not UTF-8 at byte {at}")))
    }
}

/// A part that describes itself: magic, version and length of the whole, then the body and the checksum of all before it.
pub(crate) fn sealed(magic: &[u8; 16], version: u32, body: &[u8]) -> Vec<u8> {
    let length = magic.len() + 4 + 4 + body.len() + 4;
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(magic);
    out.put_u32(version);
    out.put_u32(length as u32);
    out.extend_from_slice(body);
    let sum = crc(&out);
    out.put_u32(sum);
    out
}

/// Writes a time as its difference from a stamp, zigzag coded.
pub(crate) fn put_time(time: i64, stamp: u64, out: &mut Vec<u8>) {
    let ahead = time.wrapping_sub(stamp as i64);
    out.put_varint((ahead << 1 ^ ahead >> 63) as u64);
}

/// Reads a time that [`put_time`] wrote.
pub(crate) fn read_time(cursor: &mut Cursor<'_>, stamp: u64) -> Result<i64> {
    let ahead = cursor.varint()?;
    Ok((stamp as i64).wrapping_add((ahead >> 1) as i64 ^ -((ahead & 1) as i64)))
}
