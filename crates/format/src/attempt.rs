//! Attempts: the execution of a job to which a log belongs (J-32), since version 2.
//!
//! A job that dies and starts again makes a new attempt. A reader takes each field from one attempt only, so
//! that pieces of the dead attempt and of the new one never mix. A log belongs to one attempt, or to none.
//! Its header names the attempt, the job and the rank for people to read; each of its commits names the
//! attempt again, and only the commits count.
//!
//! ```text
//! header, after sealed:     attempt: text  job: text  rank: varint      "" and 0: none; a rank is counted from 1
//! record, after decision:   u8 0 | 1 { attempt: text  began: u64 }
//! ```
//! `began` is the stamp of the log's first commit.

use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put};

/// The first version of the format that can store attempts.
pub const ATTEMPTS_SINCE: u32 = 2;

/// Longest name of an attempt or a job, in bytes.
pub const NAME_MAX: usize = 255;

/// The job to which a log belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The attempt's name; empty if there is none.
    pub attempt: String,
    /// The scheduler's name of the job; empty if there is none.
    pub job: String,
    /// The writer's rank in the job.
    pub rank: Option<u32>,
}

impl Origin {
    /// Refuses names that are too long or hold control characters.
    pub fn check(&self) -> Result<()> {
        for (what, name) in [("attempt", &self.attempt), ("job", &self.job)] {
            if name.len() > NAME_MAX || name.chars().any(char::is_control) {
                return Err(Code::Value
                    .error(format!(
                        "the name of an {what} has at most {NAME_MAX} bytes and no control characters"
                    ))
                    .with_hint("name it after the job, such as 1177.2"));
            }
        }
        Ok(())
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_bytes(self.attempt.as_bytes());
        out.put_bytes(self.job.as_bytes());
        out.put_varint(self.rank.map_or(0, |rank| u64::from(rank) + 1));
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Origin> {
        let (attempt, job) = (cursor.text()?.to_owned(), cursor.text()?.to_owned());
        let rank = match cursor.varint()? {
            0 => None,
            rank => Some(u32::try_from(rank - 1).map_err(|_| cursor.fail("a rank exceeds 32 bits"))?),
        };
        Ok(Origin { attempt, job, rank })
    }
}

/// The attempt to which a commit belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its name; never empty.
    pub name: String,
    /// Stamp of the first commit of the log.
    pub began: u64,
}

impl Attempt {
    pub(crate) fn encode(attempt: Option<&Attempt>, out: &mut Vec<u8>) {
        out.push(u8::from(attempt.is_some()));
        if let Some(attempt) = attempt {
            out.put_bytes(attempt.name.as_bytes());
            out.put_u64(attempt.began);
        }
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Option<Attempt>> {
        if !cursor.flag()? {
            return Ok(None);
        }
        match cursor.text()?.to_owned() {
            name if name.is_empty() => Err(cursor.fail("an attempt has no name")),
            name => Ok(Some(Attempt { name, began: cursor.u64()? })),
        }
    }
}
