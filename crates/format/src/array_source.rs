//! The message with which one rank of a job sends the location of an array to the others, after looking it
//! up.
//!
//! ```text
//! array source = 0 path: text offset: varint size: varint n: varint n x crc: u32 array      in a file
//!              | 1 array                                                                    in the store's logs
//! array        = dtype: text r: varint r x extent: varint
//! ```
//!
//! The message lives in one call of one release: it carries no version, and a rank that cannot read it
//! reports an error.

use fieldstone_core::dtype::DType;
use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put};

/// Description of an array that all ranks need before they read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceMessage {
    /// Its element type, with its byte order in the file.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its location in a file; `None` for the store's logs.
    pub stored: Option<StoredSlab>,
}

/// A range of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSlab {
    /// Path of the file.
    pub path: String,
    /// Offset of the first element.
    pub offset: u64,
    /// Bytes of one block.
    pub block: u64,
    /// The blocks' checksums.
    pub sums: Vec<u32>,
}

impl SourceMessage {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.stored.is_none())];
        if let Some(stored) = &self.stored {
            out.put_bytes(stored.path.as_bytes());
            out.put_varint(stored.offset);
            out.put_varint(stored.block);
            out.put_varint(stored.sums.len() as u64);
            stored.sums.iter().for_each(|sum| out.put_u32(*sum));
        }
        out.put_bytes(self.dtype.to_string().as_bytes());
        out.put_varint(self.shape.len() as u64);
        self.shape.iter().for_each(|len| out.put_varint(*len));
        out
    }

    /// Decodes a message.
    pub fn decode(bytes: &[u8]) -> Result<SourceMessage> {
        let mut cursor = Cursor::new(bytes);
        let stored = match cursor.u8()? {
            0 => {
                let path = cursor.text()?.to_owned();
                let (offset, block, count) = (cursor.varint()?, cursor.varint()?, cursor.count(4)?);
                let sums = (0..count).map(|_| cursor.u32()).collect::<Result<_>>()?;
                Some(StoredSlab { path, offset, block, sums })
            }
            1 => None,
            _ => return Err(cursor.fail("an array source has an unknown kind")),
        };
        let dtype =
            DType::parse(cursor.text()?).map_err(|_| Code::Corrupt.error("not an element type of numpy"))?;
        let rank = cursor.count(1)?;
        let shape = (0..rank).map(|_| cursor.varint()).collect::<Result<_>>()?;
        match cursor.is_empty() {
            true => Ok(SourceMessage { dtype, shape, stored }),
            false => Err(cursor.fail("an array source is too long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_comes_back_and_a_cut_one_is_refused() {
        let slab = StoredSlab {
            path: "arrays/a/1/g.nc".into(),
            offset: 4096,
            block: 1 << 19,
            sums: vec![7, u32::MAX],
        };
        let dtype = DType::parse(">f8").unwrap();
        for stored in [None, Some(slab)] {
            let message = SourceMessage { dtype, shape: vec![3, 1 << 40], stored };
            let bytes = message.encode();
            assert_eq!(SourceMessage::decode(&bytes).unwrap(), message);
            for len in 0..bytes.len() {
                assert!(SourceMessage::decode(&bytes[..len]).is_err(), "cut at {len}");
            }
            assert!(SourceMessage::decode(&[&bytes[..], &[0]].concat()).is_err());
        }
    }
}
