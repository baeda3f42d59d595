//! Objects that are put once, in memory: what shows that nothing above the line needs files.
//!
//! ```text
//! marker                     id and schema
//! logs/WRITER/SEQUENCE       a commit: its frame, in the first one behind the log's header
//! data/WRITER-NUMBER/PART    payloads of one large flush
//! claims/HASH                who owns a dataset or a segment
//! closed/WRITER              nothing more comes
//! ```
//!
//! An [`Address`] is the number of an object, in the high bits, and an offset in it. An object is there as a
//! whole or not at all, so that there are no torn commits, no zeros and no hints; a put whose answer was lost may
//! show later, and is then behind the end of a log that its writer's next log names.

mod bucket;
mod inspect;
mod watch;
mod write;

use std::ffi::OsStr;
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::log::{CommitRecord, FOOT, FrameInfo, LogHeader};
use fieldstone_format::marker::Marker;
use fieldstone_format::{Id, claim};

pub use self::bucket::{Fault, Object, Objects};
use self::watch::ObjectWatch;
use self::write::{ObjectData, ObjectLog};
use super::{Address, Claimed, Claims, DataWriter, Inspect, LogWriter, Medium, Watch, agree};
use crate::identity::StoreIdentity;

/// Bits of an address that count bytes in an object: up to 64 GiB.
const OFFSET_BITS: u32 = 36;

/// The position where an object begins.
fn address(number: u64, offset: u64) -> Address {
    number << OFFSET_BITS | offset
}

/// The number of an object, and an offset in it.
fn split(at: Address) -> (u64, u64) {
    (at >> OFFSET_BITS, at & ((1 << OFFSET_BITS) - 1))
}

/// The prefix of the objects of a log (number 0) or a data log.
fn prefix(writer: Id, number: u32) -> String {
    match number {
        0 => format!("logs/{writer}/"),
        number => format!("data/{writer}-{number}/"),
    }
}

fn object_name(writer: Id, number: u32, object: u64) -> String {
    format!("{}{object:020}", prefix(writer, number))
}

/// The number at the end of an object's name.
fn object_number(name: &str) -> Option<u64> {
    name.rsplit('/').next()?.parse().ok()
}

/// A store of objects.
#[derive(Debug, Clone)]
pub struct ObjectMedium {
    env: Env,
    objects: Arc<Objects>,
}

impl ObjectMedium {
    /// The store in these objects, which need not be there yet.
    pub fn new(env: Env, objects: Arc<Objects>) -> ObjectMedium {
        ObjectMedium { env, objects }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let (owner, time) = (self.env.identity.uid(), self.env.clock.now());
        self.objects.put(name, Object { bytes: bytes.into(), owner, time })
    }

    /// The object, and where the `length` bytes at an address stand in it.
    fn range(&self, writer: Id, number: u32, at: Address, length: u64) -> Result<(Object, usize)> {
        let (object, offset) = split(at);
        let name = object_name(writer, number, object);
        let found = self.objects.get(&name);
        let found = found.ok_or_else(|| Error::corrupt(format!("{name} is missing")))?;
        let size = found.bytes.len() as u64;
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok((found, offset as usize)),
            _ => {
                Err(Code::Truncated
                    .error(format!("{name} has {size} bytes, {length} are expected at {offset}")))
            }
        }
    }

    /// The commit that an object of a log holds.
    fn commit(&self, log: Id, sequence: u64) -> Result<(FrameInfo, CommitRecord, Object)> {
        let (object, _) = self.range(log, 0, address(sequence, 0), 0)?;
        let size = object.bytes.len() as u64;
        let named = |e: Error| e.context(object_name(log, 0, sequence));
        let foot = object.bytes.last_chunk::<FOOT>();
        let foot = foot.ok_or_else(|| named(Error::corrupt("it is too short for a commit")))?;
        let ends = FrameInfo::decode_foot(foot, address(sequence, size)).map_err(named)?;
        if split(ends.frame).0 != sequence || ends.sequence != sequence {
            return Err(named(Error::corrupt("it holds another commit")));
        }
        let [last, first] = ends.record_offsets();
        let copy = |at: Address| {
            let from = split(at).1 as usize;
            let bytes = object.bytes.get(from..from + ends.record_len as usize).unwrap_or_default();
            ends.record(bytes)
        };
        let record = copy(last).or_else(|e| copy(first).map_err(|_| e)).map_err(named)?;
        Ok((ends, record, object))
    }

    /// The header of a log, which stands before its first commit.
    fn header(&self, log: Id) -> Result<LogHeader> {
        let (first, _) = self.range(log, 0, address(1, 0), 0)?;
        let named = |e: Error| e.context(object_name(log, 0, 1));
        let length = LogHeader::length(&first.bytes).map_err(named)?;
        let bytes = first.bytes.get(..length as usize);
        LogHeader::decode(bytes.unwrap_or_default()).map_err(named)
    }
}

impl Medium for ObjectMedium {
    /// Memory is not shared with a forked child: it goes on with a copy.
    fn forked(&self) -> Arc<dyn Medium> {
        Arc::new(self.clone())
    }

    fn name(&self) -> &OsStr {
        OsStr::new("objects:")
    }

    fn shown(&self, writer: Id, number: u32) -> String {
        prefix(writer, number).trim_end_matches('/').to_owned()
    }

    fn marker(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.objects.get("marker").map(|object| object.bytes.to_vec()))
    }

    fn note_exists(&self, _: Id) {}

    fn create(&self, identity: StoreIdentity) -> Result<StoreIdentity> {
        let ours = Marker { id: identity.id, schema: identity.schema.clone() };
        self.put("marker", &ours.encode())?;
        let marker = self.marker()?.ok_or_else(|| Error::unavailable("the marker is gone"))?;
        agree(Marker::decode(&marker)?, &identity, &self.name().display())
    }

    fn claim(&self, levels: &[&Vec<u8>]) -> Result<std::result::Result<bool, Claimed>> {
        for &level in levels {
            if let Some(owner) = self.claim_level(level)? {
                return Ok(Err((level.clone(), owner)));
            }
        }
        Ok(Ok(true))
    }

    fn watch(&self) -> Box<dyn Watch> {
        Box::new(ObjectWatch::new(self.clone()))
    }

    fn read(&self, writer: Id, number: u32, buffer: &mut [u8], at: Address) -> Result<()> {
        let (object, from) = self.range(writer, number, at, buffer.len() as u64)?;
        buffer.copy_from_slice(&object.bytes[from..from + buffer.len()]);
        Ok(())
    }

    fn read_vec(&self, writer: Id, number: u32, at: Address, length: u64) -> Result<Vec<u8>> {
        let (object, from) = self.range(writer, number, at, length)?;
        Ok(object.bytes[from..from + length as usize].to_vec())
    }

    fn commit_before(
        &self,
        log: Id,
        target: Address,
        from: &FrameInfo,
        _: &CommitRecord,
    ) -> Result<(FrameInfo, CommitRecord)> {
        if target >= from.frame {
            return Err(Error::corrupt(format!("commit {} does not lead back", from.sequence)));
        }
        let (ends, record, _) = self.commit(log, split(target).0)?;
        Ok((ends, record))
    }

    fn first_commits(&self, log: Id, until: Address) -> Result<Vec<(FrameInfo, CommitRecord)>> {
        let commits = (1..split(until).0).map_while(|sequence| self.commit(log, sequence).ok());
        Ok(commits.map(|(ends, record, _)| (ends, record)).collect())
    }

    fn log(&self, header: LogHeader) -> Box<dyn LogWriter> {
        Box::new(ObjectLog::new(self.clone(), &header))
    }

    fn data_log(&self, writer: Id, number: u32) -> Result<Box<dyn DataWriter>> {
        Ok(Box::new(ObjectData::new(self.clone(), writer, number)))
    }

    fn inspect(&self) -> &dyn Inspect {
        self
    }
}

impl ObjectMedium {
    /// Claims a level; the other user whose it is.
    fn claim_level(&self, level: &[u8]) -> Result<Option<u32>> {
        for number in 0..claim::NAMES {
            let name = format!("claims/{}", claim::file_name(level, number));
            if self.put(&name, &claim::encode(level))? {
                return Ok(None);
            }
            if let Some(there) = self.objects.get(&name).filter(|there| is_claim(there, level)) {
                return Ok(Some(there.owner).filter(|owner| *owner != self.env.identity.uid()));
            }
        }
        Err(Error::denied("all names of a claim are taken"))
    }
}

impl Claims for ObjectMedium {
    fn owner(&self, level: &[u8]) -> Option<u32> {
        let name = |number| format!("claims/{}", claim::file_name(level, number));
        let mut claims = (0..claim::NAMES).map_while(|number| self.objects.get(&name(number)));
        claims.find(|there| is_claim(there, level)).map(|there| there.owner)
    }
}

fn is_claim(there: &Object, level: &[u8]) -> bool {
    claim::decode(&there.bytes).is_ok_and(|of| of == level)
}
