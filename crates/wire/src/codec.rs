//! Numbers, texts and lists as bytes, and the macros with which structs and enums list their fields.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_catalog::engine::Interrupt;
use fieldstone_core::{Error, Result};
use fieldstone_format::bytes::{Cursor, Put};
use fieldstone_journal::Session;
use fieldstone_journal::author::CommitAuthor;
use fieldstone_journal::session::Cancel;

/// Deepest nesting of requests, queries and tests that a reader accepts.
const LEVELS: u32 = 256;
/// Most items for which memory is allocated before they are read.
const ROOM: usize = 4096;

/// An end of a connection, for arguments that refer to it. Authors stay with the client, and numbers name
/// them. The client watches a call that can be cancelled, and the server ends it.
pub trait Ends {
    /// Nanoseconds of this end's monotonic clock: deadlines cross as the remaining time.
    fn now(&self) -> u64;

    /// The number with which the far end names the author of a session, if it has one.
    fn author_of(&self, session: &Session) -> Option<u64>;

    /// The author with this number at the far end.
    fn author(&self, number: u64) -> Result<Arc<dyn CommitAuthor>>;

    /// Watches, during the call, for its cancellation.
    fn watch(&self, due: Interrupt);

    /// The switch that the far end turns to cancel the call.
    fn cancel(&self) -> Cancel;
}

/// An end for bytes that refer to no connection: tests, and stored bytes.
#[derive(Debug, Clone, Copy)]
pub struct NoEnds;

impl Ends for NoEnds {
    fn now(&self) -> u64 {
        0
    }

    fn author_of(&self, _session: &Session) -> Option<u64> {
        None
    }

    fn author(&self, _number: u64) -> Result<Arc<dyn CommitAuthor>> {
        Err(Error::corrupt("these bytes cannot name an author"))
    }

    fn watch(&self, _due: Interrupt) {}

    fn cancel(&self) -> Cancel {
        Cancel::default()
    }
}

/// A buffer for writing.
pub struct Out<'a> {
    bytes: Vec<u8>,
    /// The writing end.
    pub ends: &'a dyn Ends,
}

impl<'a> Out<'a> {
    /// No bytes yet.
    pub fn new(ends: &'a dyn Ends) -> Out<'a> {
        Out { bytes: Vec::new(), ends }
    }

    /// The bytes so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes so far, to append to.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// A reader of bytes.
pub struct In<'a> {
    /// The remaining bytes.
    pub cursor: Cursor<'a>,
    /// The reading end.
    pub ends: &'a dyn Ends,
    levels: u32,
}

impl<'a> In<'a> {
    /// All bytes of a message.
    pub fn new(bytes: &'a [u8], ends: &'a dyn Ends) -> In<'a> {
        In { cursor: Cursor::new(bytes), ends, levels: 0 }
    }

    /// Reads a nested item, one level deeper.
    pub fn nested<T: Wire>(&mut self) -> Result<T> {
        if self.levels >= LEVELS {
            return Err(self.cursor.fail("the message nests too deeply"));
        }
        self.levels += 1;
        let item = T::read(self);
        self.levels -= 1;
        item
    }

    /// The error for a tag that the type does not have.
    pub fn unknown(&self, of: &str, tag: u8) -> Error {
        self.cursor.fail(&format!("{of} has no variant {tag}"))
    }

    /// Corrupt if bytes remain.
    pub fn end(&self) -> Result<()> {
        match self.cursor.is_empty() {
            true => Ok(()),
            false => Err(self.cursor.fail("bytes follow the end of the message")),
        }
    }
}

/// A type whose values cross a connection.
pub trait Wire: Sized {
    /// Appends its bytes.
    fn put(&self, out: &mut Out<'_>);

    /// Decodes it; every defect is Corrupt.
    fn read(input: &mut In<'_>) -> Result<Self>;

    /// Appends the bytes of several.
    fn put_all(items: &[Self], out: &mut Out<'_>) {
        items.iter().for_each(|item| item.put(out));
    }

    /// Reads several.
    fn read_all(count: usize, input: &mut In<'_>) -> Result<Vec<Self>> {
        let mut items = Vec::with_capacity(count.min(ROOM));
        for _ in 0..count {
            items.push(Self::read(input)?);
        }
        Ok(items)
    }
}

/// Implements [`Wire`] for structs by their fields, in wire order.
#[macro_export]
macro_rules! wire_struct {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::Wire for $name {
            fn put(&self, _out: &mut $crate::Out<'_>) {
                $($crate::Wire::put(&self.$field, _out);)*
            }

            fn read(_input: &mut $crate::In<'_>) -> fieldstone_core::Result<Self> {
                Ok($name { $($field: $crate::Wire::read(_input)?),* })
            }
        }
    )*};
}

/// Implements [`Wire`] for enums by the tags of their variants and the variants' fields, in wire order.
#[macro_export]
macro_rules! wire_enum {
    ($($name:ident { $($tag:literal $variant:ident $(($($part:ident),*))? $({$($field:ident),*})?),* $(,)? })*) => {$(
        impl $crate::Wire for $name {
            fn put(&self, out: &mut $crate::Out<'_>) {
                match self {
                    $($name::$variant $(($($part),*))? $({$($field),*})? => {
                        out.bytes().push($tag);
                        $($($crate::Wire::put($part, out);)*)?
                        $($($crate::Wire::put($field, out);)*)?
                    })*
                }
            }

            fn read(input: &mut $crate::In<'_>) -> fieldstone_core::Result<Self> {
                Ok(match input.cursor.u8()? {
                    $($tag => {
                        $($(let $part = input.nested()?;)*)?
                        $($(let $field = input.nested()?;)*)?
                        $name::$variant $(($($part),*))? $({$($field),*})?
                    })*
                    other => return Err(input.unknown(stringify!($name), other)),
                })
            }
        }
    )*};
}

impl Wire for () {
    fn put(&self, _out: &mut Out<'_>) {}

    fn read(_input: &mut In<'_>) -> Result<()> {
        Ok(())
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.push(u8::from(*self));
    }

    fn read(input: &mut In<'_>) -> Result<bool> {
        match input.cursor.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(input.unknown("bool", other)),
        }
    }
}

impl Wire for u8 {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.push(*self);
    }

    fn read(input: &mut In<'_>) -> Result<u8> {
        input.cursor.u8()
    }

    fn put_all(items: &[u8], out: &mut Out<'_>) {
        out.bytes.extend_from_slice(items);
    }

    fn read_all(count: usize, input: &mut In<'_>) -> Result<Vec<u8>> {
        Ok(input.cursor.take(count)?.to_vec())
    }
}

macro_rules! wire_numbers {
    ($($kind:ident as $wide:ident),*) => {$(
        impl Wire for $kind {
            fn put(&self, out: &mut Out<'_>) {
                // Lossless: the wide type holds every number of the narrow one.
                out.bytes.put_varint(*self as $wide as u64);
            }

            fn read(input: &mut In<'_>) -> Result<$kind> {
                let wide = input.cursor.varint()? as $wide;
                $kind::try_from(wide).map_err(|_| input.cursor.fail("a number does not fit its type"))
            }
        }
    )*};
}

wire_numbers!(u16 as u64, u32 as u64, u64 as u64, usize as u64);

impl Wire for i64 {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_varint(((*self << 1) ^ (*self >> 63)) as u64);
    }

    fn read(input: &mut In<'_>) -> Result<i64> {
        let coded = input.cursor.varint()?;
        Ok((coded >> 1) as i64 ^ -((coded & 1) as i64))
    }
}

impl Wire for i32 {
    fn put(&self, out: &mut Out<'_>) {
        i64::from(*self).put(out);
    }

    fn read(input: &mut In<'_>) -> Result<i32> {
        let wide = i64::read(input)?;
        i32::try_from(wide).map_err(|_| input.cursor.fail("a number does not fit its type"))
    }
}

impl Wire for f64 {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_u64(self.to_bits());
    }

    fn read(input: &mut In<'_>) -> Result<f64> {
        input.cursor.u64().map(f64::from_bits)
    }
}

impl Wire for String {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_bytes(self.as_bytes());
    }

    fn read(input: &mut In<'_>) -> Result<String> {
        input.cursor.text().map(str::to_owned)
    }
}

impl Wire for Arc<str> {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_bytes(self.as_bytes());
    }

    fn read(input: &mut In<'_>) -> Result<Arc<str>> {
        input.cursor.text().map(Arc::from)
    }
}

impl<T: Wire> Wire for Arc<[T]> {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_varint(self.len() as u64);
        T::put_all(self, out);
    }

    fn read(input: &mut In<'_>) -> Result<Arc<[T]>> {
        Vec::read(input).map(Arc::from)
    }
}

impl<T: Wire> Wire for Arc<T> {
    fn put(&self, out: &mut Out<'_>) {
        T::put(self, out);
    }

    fn read(input: &mut In<'_>) -> Result<Arc<T>> {
        T::read(input).map(Arc::new)
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Out<'_>) {
        T::put(self, out);
    }

    fn read(input: &mut In<'_>) -> Result<Box<T>> {
        T::read(input).map(Box::new)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Out<'_>) {
        self.is_some().put(out);
        self.iter().for_each(|item| item.put(out));
    }

    fn read(input: &mut In<'_>) -> Result<Option<T>> {
        bool::read(input)?.then(|| T::read(input)).transpose()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_varint(self.len() as u64);
        T::put_all(self, out);
    }

    fn read(input: &mut In<'_>) -> Result<Vec<T>> {
        let count = input.cursor.count(1)?;
        T::read_all(count, input)
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    fn put(&self, out: &mut Out<'_>) {
        T::put_all(self, out);
    }

    fn read(input: &mut In<'_>) -> Result<[T; N]> {
        let items = T::read_all(N, input)?;
        items.try_into().map_err(|_| input.cursor.fail("an array has another length"))
    }
}

impl<T: Wire + Ord> Wire for BTreeSet<T> {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_varint(self.len() as u64);
        self.iter().for_each(|item| item.put(out));
    }

    fn read(input: &mut In<'_>) -> Result<BTreeSet<T>> {
        Vec::read(input).map(BTreeSet::from_iter)
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes.put_varint(self.len() as u64);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn read(input: &mut In<'_>) -> Result<BTreeMap<K, V>> {
        Vec::read(input).map(BTreeMap::from_iter)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Out<'_>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn read(input: &mut In<'_>) -> Result<(A, B)> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    fn put(&self, out: &mut Out<'_>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn read(input: &mut In<'_>) -> Result<(A, B, C)> {
        Ok((A::read(input)?, B::read(input)?, C::read(input)?))
    }
}
