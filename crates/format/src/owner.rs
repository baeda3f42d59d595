//! The owner of a log, and the process that writes it: parts of a log's header since version 2.
//!
//! A server, or root, writes logs for others: such a log's header names its owner. It counts only where the log's file
//! belongs to root or to the owner of the folder `logs`. Every other log belongs to the owner of its file.
//!
//! ```text
//! owner   = 01 uid: u32 | 02 issuer: text  subject: text
//! header, after the job:    u8 0 | owner
//! process = boot: text  namespace: u64  started: u64          empty and 0: not known
//! ```
//!
//! ```
//! use fieldstone_format::owner::Owner;
//!
//! let anna = Owner::User(1000);
//! assert_eq!(anna.name(), "u1000");
//! assert_eq!(Owner::decode(&mut fieldstone_format::bytes::Cursor::new(&anna.encode()))?, anna);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::Result;
use fieldstone_core::env::Lifetime;
use xxhash_rust::xxh3::Xxh3;

use crate::bytes::{Cursor, Put};

/// Longest issuer or subject, in bytes.
pub const SUBJECT_MAX: usize = 1024;

const USER: u8 = 1;
const SUBJECT: u8 = 2;

/// The user or the token's subject to whom a log belongs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A user of the system, by number.
    User(u32),
    /// The subject of a token.
    Subject {
        /// The issuer of the token.
        issuer: String,
        /// The subject's name at the issuer.
        subject: String,
    },
}

impl Owner {
    /// The part of a file's name that names the owner: `u` and the user's number, or `s` and the hash of the subject.
    pub fn name(&self) -> String {
        match self {
            Owner::User(uid) => format!("u{uid}"),
            Owner::Subject { .. } => format!("s{:032x}", self.subject_hash()),
        }
    }

    /// The hash of a subject; of a user, of nothing.
    pub(crate) fn subject_hash(&self) -> u128 {
        let mut hasher = Xxh3::new();
        if let Owner::Subject { issuer, subject } = self {
            hasher.update(issuer.as_bytes());
            hasher.update(&[0]);
            hasher.update(subject.as_bytes());
        }
        hasher.digest128()
    }

    /// The bytes of an owner.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Owner::User(uid) => {
                out.push(USER);
                out.put_u32(*uid);
            }
            Owner::Subject { issuer, subject } => {
                out.push(SUBJECT);
                out.put_bytes(issuer.as_bytes());
                out.put_bytes(subject.as_bytes());
            }
        }
    }

    /// Reads an owner.
    pub fn decode(cursor: &mut Cursor<'_>) -> Result<Owner> {
        Owner::decode_some(cursor)?.ok_or_else(|| cursor.fail("an owner is missing"))
    }

    pub(crate) fn put_some(owner: Option<&Owner>, out: &mut Vec<u8>) {
        match owner {
            None => out.push(0),
            Some(owner) => owner.put(out),
        }
    }

    pub(crate) fn decode_some(cursor: &mut Cursor<'_>) -> Result<Option<Owner>> {
        match cursor.u8()? {
            0 => Ok(None),
            USER => Ok(Some(Owner::User(cursor.u32()?))),
            SUBJECT => {
                let (issuer, subject) = (cursor.text()?.to_owned(), cursor.text()?.to_owned());
                if issuer.len().max(subject.len()) > SUBJECT_MAX {
                    return Err(cursor.fail("an owner's name is too long"));
                }
                Ok(Some(Owner::Subject { issuer, subject }))
            }
            _ => Err(cursor.fail("an owner has an unknown form")),
        }
    }
}

/// Writes the lifetime of the process that writes a log.
pub(crate) fn put_lifetime(lifetime: &Lifetime, out: &mut Vec<u8>) {
    out.put_bytes(lifetime.boot.as_bytes());
    out.put_u64(lifetime.namespace);
    out.put_u64(lifetime.started);
}

/// Reads it.
pub(crate) fn decode_lifetime(cursor: &mut Cursor<'_>) -> Result<Lifetime> {
    Ok(Lifetime { boot: cursor.text()?.to_owned(), namespace: cursor.u64()?, started: cursor.u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_have_names_of_their_own_and_are_read_back() {
        let of =
            |issuer: &str, subject: &str| Owner::Subject { issuer: issuer.into(), subject: subject.into() };
        let all = [Owner::User(0), Owner::User(7), of("a", "b"), of("ab", ""), of("", "ab"), of("a", "c")];
        let names: std::collections::BTreeSet<String> = all.iter().map(Owner::name).collect();
        assert_eq!(names.len(), all.len());
        for owner in &all {
            let bytes = owner.encode();
            assert_eq!(Owner::decode(&mut Cursor::new(&bytes)).ok().as_ref(), Some(owner));
            for end in 0..bytes.len() {
                assert!(Owner::decode(&mut Cursor::new(&bytes[..end])).is_err(), "cut at {end}");
            }
        }
        assert!(Owner::decode(&mut Cursor::new(&[0])).is_err());
        assert!(Owner::decode(&mut Cursor::new(&[3])).is_err());
        assert!(Owner::decode(&mut Cursor::new(&of(&"x".repeat(2000), "").encode())).is_err());
    }
}
