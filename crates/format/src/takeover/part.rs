//! `data/<id>.part`: how far a takeover has come that copies much payload (takeovers.md, 9.3).
//!
//! ```text
//! file = "FIELDSTONE-PART\0"  version: u32  length: u32  id  store: id  owner  host: text  process: u32  lifetime
//!        inputs: varint { name: text }  data logs: varint { number: varint length: varint }  crc: u32
//! ```
//! ```
//! use fieldstone_format::Id;
//! use fieldstone_format::owner::Owner;
//! use fieldstone_format::takeover::part::TakeoverPart;
//!
//! let part = TakeoverPart {
//!     id: Id([1; 16]), store: Id([2; 16]), owner: Owner::User(1000), host: "node1".into(), process: 7,
//!     lifetime: Default::default(), inputs: vec!["logs/a.log".into()], data_logs: vec![(1, 900)],
//! };
//! assert_eq!(TakeoverPart::decode(&part.encode())?, part);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::env::Lifetime;
use fieldstone_core::{Code, Error, Result};

use crate::bytes::{Cursor, Put, sealed};
use crate::owner::{Owner, decode_lifetime, put_lifetime};
use crate::{Id, crc, unknown_version};

const MAGIC: &[u8; 16] = b"FIELDSTONE-PART\0";
/// The only version of these files.
const VERSION: u32 = 2;
/// Number of bytes before the body.
const PREFIX: usize = 24;

/// Longest file accepted.
pub const PART_MAX: u64 = 16 << 20;

/// Name of the file, inside the folder `data`.
pub fn file_name(id: Id) -> String {
    format!("{id}.part")
}

/// The id in the file's name.
pub fn parse_file_name(name: &str) -> Option<Id> {
    Id::parse(name.strip_suffix(".part")?)
}

/// How far a takeover has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverPart {
    /// The takeover's id, which its data logs have.
    pub id: Id,
    /// The store.
    pub store: Id,
    /// The owner of the logs.
    pub owner: Owner,
    /// The host of its maker.
    pub host: String,
    /// Its maker's process.
    pub process: u32,
    /// The lifetime of that process.
    pub lifetime: Lifetime,
    /// The files that it takes over, in the order in which their payload is copied.
    pub inputs: Vec<String>,
    /// Its data logs, and how much of each is durable.
    pub data_logs: Vec<(u32, u64)>,
}

impl TakeoverPart {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_id(self.id);
        body.put_id(self.store);
        self.owner.put(&mut body);
        body.put_bytes(self.host.as_bytes());
        body.put_u32(self.process);
        put_lifetime(&self.lifetime, &mut body);
        body.put_varint(self.inputs.len() as u64);
        self.inputs.iter().for_each(|name| body.put_bytes(name.as_bytes()));
        body.put_varint(self.data_logs.len() as u64);
        for (number, length) in &self.data_logs {
            body.put_varint(u64::from(*number));
            body.put_varint(*length);
        }
        sealed(MAGIC, VERSION, &body)
    }

    /// Decodes the whole file.
    pub fn decode(bytes: &[u8]) -> Result<TakeoverPart> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(16)? != MAGIC {
            return Err(cursor.fail("a part of a takeover does not begin with its magic"));
        }
        let (version, length) = (cursor.u32()?, cursor.u32()?);
        if version != VERSION {
            return Err(unknown_version("the part of a takeover", version));
        }
        let Some((body, sum)) = bytes.split_last_chunk::<4>() else {
            return Err(Code::Truncated.error("a part of a takeover is truncated"));
        };
        if length as usize != bytes.len() || crc(body).to_le_bytes() != *sum {
            return Err(Code::Checksum.error("a part of a takeover does not match its checksum"));
        }
        let mut cursor = Cursor::new(body);
        cursor.take(PREFIX)?;
        let mut part = TakeoverPart {
            id: cursor.id()?,
            store: cursor.id()?,
            owner: Owner::decode(&mut cursor)?,
            host: cursor.text()?.to_owned(),
            process: cursor.u32()?,
            lifetime: decode_lifetime(&mut cursor)?,
            inputs: Vec::new(),
            data_logs: Vec::new(),
        };
        for _ in 0..cursor.count(1)? {
            part.inputs.push(cursor.text()?.to_owned());
        }
        for _ in 0..cursor.count(2)? {
            let number = u32::try_from(cursor.varint()?);
            let number = number.map_err(|_| Error::corrupt("a data log's number exceeds 32 bits"))?;
            part.data_logs.push((number, cursor.varint()?));
        }
        if cursor.is_empty() { Ok(part) } else { Err(cursor.fail("a part of a takeover is too long")) }
    }
}
