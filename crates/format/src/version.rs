//! The text that names a snapshot: for every writer, the sequence of its last commit in the snapshot (J-14).
//! Stamps alone could not name one: a writer with a late clock may publish an older stamp later.
//!
//! ```text
//! version = "v" base64url(without padding) of
//!           n: varint  { prefix: 8 bytes of the writer's id, sequence: varint }  crc: u32
//!         | "w" the same with all 16 bytes of each id, if the first 8 bytes of two ids are equal
//!         | "t" or "T", as "v" and "w", if there are takeovers, of
//!           m: varint  { 01 uid: varint | 02 8 bytes of the subject's hash, number: varint, digest: u64 }
//!           n: varint  { …, … }  crc: u32
//! ```
//! Since version 2 of the format, a text with takeovers names for each owner the newest one that counts, and then the
//! living logs: so it stays short, however many writers there ever were.
//!
//! in the order of the ids. A writer that is not named has no commit in the snapshot. Ids are random, so only
//! made-up ids begin alike; if one of two such ids appeared after the text was written, the text means both.

use fieldstone_core::{Code, Error, Result};

use crate::bytes::{Cursor, Put};
use crate::owner::Owner;
use crate::{Id, crc};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The commits in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Version {
    /// Each writer's id, and the sequence of its last commit; sorted. From a text with prefixes, the other
    /// bytes are zero.
    writers: Vec<(Id, u64)>,
    /// Whether the ids are complete.
    whole: bool,
    /// The newest takeover of each owner; sorted.
    takeovers: Vec<TakeoverName>,
}

/// A takeover in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakeoverName {
    /// Its owner.
    pub owner: OwnerName,
    /// Its number.
    pub number: u64,
    /// Its digest.
    pub digest: u64,
}

impl TakeoverName {
    /// Appends owner, number and digest.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.owner.put(out);
        out.put_varint(self.number);
        out.put_u64(self.digest);
    }

    /// Reads a name that [`put`](TakeoverName::put) wrote.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<TakeoverName> {
        let owner = OwnerName::decode(cursor)?;
        Ok(TakeoverName { owner, number: cursor.varint()?, digest: cursor.u64()? })
    }
}

/// An owner, as far as a version names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerName {
    /// A user of the system.
    User(u32),
    /// The first bytes of the hash of a subject.
    Subject([u8; PREFIX]),
}

impl OwnerName {
    /// The short name of an owner.
    pub fn of(owner: &Owner) -> OwnerName {
        match owner {
            Owner::User(uid) => OwnerName::User(*uid),
            Owner::Subject { .. } => {
                let mut hash = [0; PREFIX];
                hash.copy_from_slice(&owner.subject_hash().to_be_bytes()[..PREFIX]);
                OwnerName::Subject(hash)
            }
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            OwnerName::User(uid) => {
                out.push(1);
                out.put_varint(u64::from(*uid));
            }
            OwnerName::Subject(hash) => {
                out.push(2);
                out.extend_from_slice(hash);
            }
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<OwnerName> {
        match cursor.u8()? {
            1 => u32::try_from(cursor.varint()?)
                .map(OwnerName::User)
                .map_err(|_| cursor.fail("a user's number exceeds 32 bits")),
            2 => Ok(OwnerName::Subject(cursor.array()?)),
            _ => Err(cursor.fail("an owner has an unknown form")),
        }
    }
}

/// Bytes of an id that name it if no other id begins with them.
const PREFIX: usize = 8;

impl Version {
    /// The version that holds each writer's commits up to a sequence.
    pub fn new(mut writers: Vec<(Id, u64)>) -> Version {
        writers.sort_unstable();
        let whole = Version::has_twins(&writers);
        if !whole {
            writers.iter_mut().for_each(|(id, _)| id.0[PREFIX..].fill(0));
        }
        Version { writers, whole, takeovers: Vec::new() }
    }

    /// The same, of a store with takeovers: the newest of each owner.
    pub fn with_takeovers(mut self, mut takeovers: Vec<TakeoverName>) -> Version {
        takeovers.sort_unstable();
        self.takeovers = takeovers;
        self
    }

    /// The newest takeover of each owner.
    pub fn takeovers(&self) -> &[TakeoverName] {
        &self.takeovers
    }

    /// Each named writer (only the prefix, in a text with prefixes), and the sequence of its last commit.
    pub fn writers(&self) -> &[(Id, u64)] {
        &self.writers
    }

    fn prefix(&self) -> usize {
        if self.whole { 16 } else { PREFIX }
    }

    /// The sequence up to which `writer` belongs to the snapshot; 0 for none.
    pub fn sequence(&self, writer: Id) -> u64 {
        let prefix = self.prefix();
        match self.writers.binary_search_by(|(id, _)| id.0[..prefix].cmp(&writer.0[..prefix])) {
            Ok(i) => self.writers[i].1,
            Err(_) => 0,
        }
    }

    /// Whether these logs, in the order of their ids with their last sequences, contain for each named writer
    /// a log that reaches its commit.
    pub fn is_reached(&self, logs: &[(Id, u64)]) -> bool {
        let prefix = self.prefix();
        self.writers.iter().all(|(id, sequence)| {
            let first = logs.partition_point(|(log, _)| log.0[..prefix] < id.0[..prefix]);
            let alike = logs[first..].iter().take_while(|(log, _)| log.0[..prefix] == id.0[..prefix]);
            alike.into_iter().any(|(_, head)| head >= sequence)
        })
    }

    fn has_twins(writers: &[(Id, u64)]) -> bool {
        writers.windows(2).any(|pair| pair[0].0.0[..PREFIX] == pair[1].0.0[..PREFIX])
    }

    /// The version in a record of the store: the letter of its text, and the bytes that the text encodes.
    pub fn to_record(&self) -> Vec<u8> {
        [&[self.letter() as u8], &self.to_bytes()[..]].concat()
    }

    /// Reads a version from a record of the store.
    pub fn from_record(bytes: &[u8]) -> Result<Version> {
        match bytes.split_first() {
            Some((letter, body)) if b"vwtT".contains(letter) => {
                let version = Version::from_bytes(body, char::from(*letter))?;
                match version.to_record() == bytes {
                    true => Ok(version),
                    false => Err(Error::corrupt("a version in a record is not in its canonical form")),
                }
            }
            _ => Err(Error::corrupt("a version in a record has an unknown form")),
        }
    }

    fn from_bytes(body: &[u8], letter: char) -> Result<Version> {
        let (mut cursor, whole) = (Cursor::new(body), matches!(letter, 'w' | 'T'));
        let (mut takeovers, mut writers) = (Vec::new(), Vec::new());
        if matches!(letter, 't' | 'T') {
            for _ in 0..cursor.count(11)? {
                takeovers.push(TakeoverName::read(&mut cursor)?);
            }
        }
        for _ in 0..cursor.count(9)? {
            let mut id = Id([0; 16]);
            match whole {
                true => id = cursor.id()?,
                false => id.0[..PREFIX].copy_from_slice(&cursor.array::<PREFIX>()?),
            }
            writers.push((id, cursor.varint()?));
        }
        let in_order = writers.is_sorted_by(|a, b| a.0 < b.0)
            && takeovers.is_sorted_by(|a, b| a.owner < b.owner)
            && Version::has_twins(&writers) == whole;
        match in_order && cursor.is_empty() {
            true => Ok(Version { writers, whole, takeovers }),
            false => Err(cursor.fail("a version is not in its canonical form")),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !self.takeovers.is_empty() {
            bytes.put_varint(self.takeovers.len() as u64);
            self.takeovers.iter().for_each(|name| name.put(&mut bytes));
        }
        bytes.put_varint(self.writers.len() as u64);
        for (id, sequence) in &self.writers {
            bytes.extend_from_slice(&id.0[..self.prefix()]);
            bytes.put_varint(*sequence);
        }
        bytes
    }

    /// The letter before a text: what its bytes hold.
    fn letter(&self) -> char {
        match (self.takeovers.is_empty(), self.whole) {
            (true, false) => 'v',
            (true, true) => 'w',
            (false, false) => 't',
            (false, true) => 'T',
        }
    }

    /// Encodes the text.
    pub fn encode(&self) -> String {
        let mut bytes = self.to_bytes();
        let sum = crc(&bytes);
        bytes.put_u32(sum);
        let mut text = String::from(self.letter());
        for group in bytes.chunks(3) {
            let bits =
                group.iter().fold(0u32, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - group.len()));
            for i in 0..=group.len() {
                text.push(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize] as char);
            }
        }
        text
    }

    /// Decodes the text.
    pub fn decode(text: &str) -> Result<Version> {
        let bad = || {
            Code::Value
                .error(format!("'{text}' is not a version of a store"))
                .with_hint("use the text of store.version")
        };
        let letter = text.chars().next().filter(|letter| "vwtT".contains(*letter)).ok_or_else(bad)?;
        let digits = &text.as_bytes()[1..];
        let mut bytes = Vec::with_capacity(digits.len());
        for group in digits.chunks(4) {
            let mut bits = 0u32;
            for &c in group {
                bits = bits << 6 | ALPHABET.iter().position(|&a| a == c).ok_or_else(bad)? as u32;
            }
            bits <<= 6 * (4 - group.len());
            bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len().max(1)]);
        }
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(bad)?;
        if crc(body).to_le_bytes() != *sum {
            return Err(bad());
        }
        let version = Version::from_bytes(body, letter).map_err(|_| bad())?;
        // Base64 has spare bits and varints have long forms: each version has only one valid text.
        if version.encode() == text { Ok(version) } else { Err(bad()) }
    }
}
