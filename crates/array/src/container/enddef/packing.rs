//! Definitions as bytes for messages between ranks. No file has this format: sender and receiver are one program.
//!
//! An object's bytes contain everything on which ranks must agree, with dimensions by path; equal bytes mean equal
//! definitions.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, Header, NcType};

use super::names::{Kind, half, word};

/// Takes the place of a 32-bit length if the length follows in 64 bits.
const LONG: u32 = u32::MAX;

/// Appends a text or other bytes with their length.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Almost all lengths are of names and small values, and there are millions, so they take 32 bits; an attribute may
/// still exceed 4 GiB.
fn put_len(out: &mut Vec<u8>, len: u64) {
    match u32::try_from(len) {
        Ok(len) if len != LONG => put_u32(out, len),
        _ => {
            put_u32(out, LONG);
            out.extend_from_slice(&len.to_le_bytes());
        }
    }
}

pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn put_attr(out: &mut Vec<u8>, name: &str, ty: NcType, value: &[u8]) {
    put_bytes(out, name.as_bytes());
    out.push(ty as u8);
    put_bytes(out, value);
}

pub(super) fn put_attrs(out: &mut Vec<u8>, attrs: &Attrs) {
    put_u32(out, attrs.len() as u32);
    attrs.iter().for_each(|attr| put_attr(out, attr.name, attr.ty, attr.value));
}

/// Appends the definition of an object: its path, then the rest.
pub(super) fn put_object(out: &mut Vec<u8>, header: &Header, kind: Kind, i: usize) {
    match kind {
        Kind::Dim => {
            let dim = header.dims.get(i);
            put_bytes(out, dim.name.as_bytes());
            out.push(u8::from(dim.is_record));
            out.extend_from_slice(&dim.len.to_le_bytes());
        }
        Kind::Attr => {
            let attr = header.attrs.get(i);
            put_attr(out, attr.name, attr.ty, attr.value);
        }
        Kind::Var => {
            let var = header.vars.get(i);
            put_bytes(out, var.name().as_bytes());
            out.push(var.ty() as u8);
            put_u32(out, var.dims().len() as u32);
            for dim in var.dims() {
                put_bytes(out, header.dims.names.get(*dim as usize).as_bytes());
            }
            put_u32(out, var.attrs().len() as u32);
            var.attrs().for_each(|attr| put_attr(out, attr.name, attr.ty, attr.value));
        }
    }
}

/// Reads the bytes that the functions above wrote.
#[derive(Debug, Clone)]
pub(super) struct MessageReader<'a>(pub &'a [u8]);

impl<'a> MessageReader<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let broken = || Error::internal("a rank sent definitions in a form that this rank does not know");
        let (bytes, rest) = self.0.split_at_checked(len).ok_or_else(broken)?;
        self.0 = rest;
        Ok(bytes)
    }
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }
    pub fn u32(&mut self) -> Result<u32> {
        Ok(half(self.take(4)?))
    }
    pub fn u64(&mut self) -> Result<u64> {
        Ok(word(self.take(8)?))
    }
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.len()?;
        // The bytes were received, so their number fits in memory.
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }
    fn len(&mut self) -> Result<u64> {
        match self.u32()? {
            LONG => self.u64(),
            len => Ok(len.into()),
        }
    }
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?)
            .map_err(|_| Error::internal("a rank sent a text that is not UTF-8"))
    }
    pub fn ty(&mut self) -> Result<NcType> {
        let code = self.u8()?;
        NcType::from_code(code.into())
            .ok_or_else(|| Error::internal(format!("a rank sent the unknown type {code}")))
    }
    pub fn kind(&mut self) -> Result<Kind> {
        let code = self.u8()? as usize;
        let kind = Kind::ALL.get(code).copied();
        kind.ok_or_else(|| Error::internal(format!("a rank sent the unknown kind {code}")))
    }
    pub fn attrs(&mut self) -> Result<Attrs> {
        let mut attrs = Attrs::default();
        for _ in 0..self.u32()? {
            let (name, ty) = (self.text()?, self.ty()?);
            attrs.push(name, ty, self.bytes()?);
        }
        Ok(attrs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_all_sizes_come_back() {
        let lens = [0, 1, 1 << 31, u32::MAX as u64 - 1, u32::MAX as u64, 1 << 32, (1 << 32) + 5, u64::MAX];
        for len in lens {
            let mut out = Vec::new();
            put_len(&mut out, len);
            let mut from = MessageReader(&out);
            assert_eq!(from.len().unwrap(), len);
            assert!(from.is_empty());
            assert!(len == 0 || MessageReader(&out).bytes().is_err(), "nothing of that length follows");
        }
        let mut out = Vec::new();
        put_bytes(&mut out, b"name");
        assert_eq!(out, b"\x04\0\0\0name", "small lengths take four bytes");
        assert_eq!(MessageReader(&out).text().unwrap(), "name");
    }
}
