//! The encoding of message fields: concatenated, each by its type.
//!
//! ```text
//! number = varint        bool = u8, 0 or 1        text, bytes = length: varint, then they
//! place  = 16 bytes      option = u8, 0 or 1, then it      list = n: varint  n x item
//! struct = its fields in order
//! ```

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Test;

use super::{VertexPartition, VertexSplits};
use crate::bytes::{Cursor, Put};
use crate::graph::VertexName;
use crate::graph_segment::manifest::SplitVertex;
use crate::graph_segment::{CommitKnown, VertexPlace};
use crate::value_test::{put_test, read_test};

/// A field of a message.
pub trait Field: Sized {
    /// Fewest bytes that it takes.
    const LEAST: usize = 1;
    /// Appends its bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it; every defect is Corrupt.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self>;
}

/// Fields of a struct, in order.
macro_rules! fields {
    ($name:ident { $($field:ident),* }) => {
        impl $crate::graph_message::fields::Field for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $($crate::graph_message::fields::Field::put(&self.$field, out);)*
            }
            fn read(cursor: &mut $crate::bytes::Cursor<'_>) -> fieldstone_core::Result<Self> {
                Ok($name { $($field: $crate::graph_message::fields::Field::read(cursor)?),* })
            }
        }
    };
}

/// Kinds of messages by number, each with its fields in order.
macro_rules! message_kinds {
    ($name:ident { $($number:literal => $kind:ident { $($field:ident),* }),* $(,)? }) => {
        impl $crate::graph_message::fields::Field for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$kind { $($field),* } => {
                        out.push($number);
                        $($crate::graph_message::fields::Field::put($field, out);)*
                    })*
                }
            }
            fn read(cursor: &mut $crate::bytes::Cursor<'_>) -> fieldstone_core::Result<Self> {
                Ok(match cursor.u8()? {
                    $($number => $name::$kind {
                        $($field: $crate::graph_message::fields::Field::read(cursor)?),*
                    },)*
                    _ => return Err(cursor.fail("a message has an unknown kind")),
                })
            }
        }
    };
}

pub(super) use {fields, message_kinds};

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.put_varint(u64::from(*self));
            }
            fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
                let number = cursor.varint()?;
                <$number>::try_from(number).map_err(|_| cursor.fail("a number is too large for its field"))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

impl Field for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<bool> {
        match cursor.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(cursor.fail("a flag is neither 0 nor 1")),
        }
    }
}

impl Field for u128 {
    const LEAST: usize = 16;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<u128> {
        Ok(u128::from_le_bytes(cursor.array()?))
    }
}

impl Field for VertexPlace {
    const LEAST: usize = 16;

    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<VertexPlace> {
        Ok(VertexPlace(u128::read(cursor)?))
    }
}

impl Field for String {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_bytes(self.as_bytes());
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<String> {
        Ok(cursor.text()?.to_owned())
    }
}

impl Field for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_bytes(self.as_bytes());
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Arc<str>> {
        Ok(cursor.text()?.into())
    }
}

impl Field for Box<[u8]> {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_bytes(self);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Box<[u8]>> {
        Ok(cursor.bytes()?.into())
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(inner) = self {
            inner.put(out);
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Option<T>> {
        Ok(if bool::read(cursor)? { Some(T::read(cursor)?) } else { None })
    }
}

impl<T: Field> Field for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.len() as u64);
        self.iter().for_each(|item| item.put(out));
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Vec<T>> {
        let n = cursor.count(T::LEAST)?;
        (0..n).map(|_| T::read(cursor)).collect()
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    const LEAST: usize = A::LEAST + B::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<(A, B)> {
        Ok((A::read(cursor)?, B::read(cursor)?))
    }
}

impl Field for Test {
    fn put(&self, out: &mut Vec<u8>) {
        put_test(out, self);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Test> {
        read_test(cursor)
    }
}

fields!(VertexName { kind, id });
fields!(CommitKnown { since, stamp });
fields!(VertexPartition { vertex, partition });
fields!(VertexSplits { vertex, partitions });
fields!(SplitVertex { vertex, split, finished });
