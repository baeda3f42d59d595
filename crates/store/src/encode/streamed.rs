//! Opaque bytes that are read part by part: once for their checksums, and once more while they are written.
//!
//! Invariant: memory holds one part, and 30 bytes for each block.

use std::borrow::Cow;

use fieldstone_core::key::FieldKey;
use fieldstone_core::{Error, Result};
use fieldstone_format::block::{Block, INLINE_BLOCKS, OPAQUE_SPLIT, pack, put_blocks};
use fieldstone_format::crc;
use fieldstone_format::keys::encode_key;
use fieldstone_journal::writer::{Encoded, INLINE_MAX, Payload, StoredParts};

use super::blocks::new_entry;
use crate::api::{ByteStream, Compression};

/// Bytes read at once: whole blocks.
const PART: u64 = 16 * OPAQUE_SPLIT;

/// Bytes with the places of their blocks.
pub struct Streamed<'a> {
    stream: ByteStream<'a>,
    level: Option<i32>,
    blocks: Vec<Block>,
}

/// Cuts bytes into blocks; reads all of them.
pub fn streamed<'a>(stream: ByteStream<'a>, compression: Compression) -> Result<Streamed<'a>> {
    let level = match compression {
        Compression::None => None,
        Compression::Zstd(level) => Some(level),
    };
    let mut blocks = Vec::new();
    each_block(&stream, &mut |raw| {
        let packed = pack(raw, level);
        blocks.push(Block { stored: packed.len() as u64, crc: crc(&packed), summary: None });
        Ok(())
    })?;
    Ok(Streamed { stream, level, blocks })
}

fn each_block(stream: &ByteStream<'_>, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut part = vec![0; PART.min(stream.nbytes) as usize];
    let mut at = 0;
    while at < stream.nbytes {
        let part = &mut part[..PART.min(stream.nbytes - at) as usize];
        (stream.read)(at, part)?;
        part.chunks(OPAQUE_SPLIT as usize).try_for_each(&mut *take)?;
        at += part.len() as u64;
    }
    Ok(())
}

impl Streamed<'_> {
    /// It as a value under a key. Few stored bytes are read now.
    pub fn encoded(&self, key: &FieldKey) -> Result<Encoded<'_>> {
        let mut table = Vec::new();
        if self.blocks.len() > INLINE_BLOCKS {
            put_blocks(&self.blocks, false, &mut table);
        }
        let payload = match self.nbytes() > INLINE_MAX as u64 {
            true => Payload::Parts(self),
            false => {
                let mut bytes = Vec::new();
                self.write(&mut |part| {
                    bytes.extend_from_slice(part);
                    Ok(())
                })?;
                Payload::from(Cow::Owned(bytes))
            }
        };
        Ok(Encoded {
            key: encode_key(key),
            entry: new_entry(true, self.stream.nbytes, None),
            size: OPAQUE_SPLIT,
            blocks: self.blocks.clone(),
            payload,
            table,
            digest: None,
            origin: None,
        })
    }
}

impl StoredParts for Streamed<'_> {
    fn nbytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.stored).sum()
    }

    fn write(&self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut blocks = self.blocks.iter();
        each_block(&self.stream, &mut |raw| {
            let packed = pack(raw, self.level);
            match blocks.next() {
                Some(block) if (block.stored, block.crc) == (packed.len() as u64, crc(&packed)) => {
                    out(&packed)
                }
                _ => Err(Error::conflict("bytes changed while they were read")),
            }
        })
    }
}
