//! Writing objects: one for each commit, and one for the payloads of each large flush.

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{CommitRecord, FrameInfo, LogHeader};

use super::{ObjectMedium, address, object_name, split};
use crate::medium::{Address, DataWriter, LogWriter, Medium, Unsynced};

/// A log being written.
#[derive(Debug)]
pub struct ObjectLog {
    medium: ObjectMedium,
    writer: Id,
    header: Vec<u8>,
    /// Sequence of the last commit.
    sequence: u64,
    /// Whether a put was tried: its object may show.
    tried: bool,
}

impl ObjectLog {
    /// A log without an object.
    pub fn new(medium: ObjectMedium, header: &LogHeader) -> ObjectLog {
        ObjectLog { medium, writer: header.writer, header: header.encode(), sequence: 0, tried: false }
    }

    /// The bytes of the next object before the frame.
    fn before(&self) -> &[u8] {
        if self.sequence == 0 { &self.header } else { &[] }
    }
}

impl LogWriter for ObjectLog {
    fn next(&self) -> Address {
        address(self.sequence + 1, self.before().len() as u64)
    }

    fn append(&mut self, ends: &FrameInfo, parts: &[&[u8]]) -> Result<()> {
        let bytes = [&[self.before()], parts].concat().concat();
        self.tried = true;
        let name = object_name(self.writer, 0, ends.sequence);
        if !self.medium.put(&name, &bytes)? {
            return Err(Error::unavailable(format!("{name} is there already")));
        }
        self.sequence = ends.sequence;
        Ok(())
    }

    fn announce(&mut self, _: &FrameInfo, _: &CommitRecord) {}

    fn read(&self, buffer: &mut [u8], at: Address) -> Result<()> {
        self.medium.read(self.writer, 0, buffer, at)
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn is_ended(&self) -> bool {
        false
    }

    fn seal(self: Box<Self>) -> Option<Address> {
        self.tried.then(|| self.next())
    }

    fn close(self: Box<Self>) {
        if self.sequence > 0 {
            // Readers who do not know look for a next commit, and find none.
            let _ = self.medium.put(&format!("closed/{}", self.writer), &[]);
        }
    }
}

/// A data log being written.
#[derive(Debug)]
pub struct ObjectData {
    medium: ObjectMedium,
    writer: Id,
    number: u32,
    /// The object that is collected, and its bytes.
    part: u64,
    bytes: Vec<u8>,
    synced: Address,
}

impl ObjectData {
    /// A data log without an object.
    pub fn new(medium: ObjectMedium, writer: Id, number: u32) -> ObjectData {
        ObjectData { medium, writer, number, part: 1, bytes: Vec::new(), synced: 0 }
    }
}

impl DataWriter for ObjectData {
    fn number(&self) -> u32 {
        self.number
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Address> {
        let at = address(self.part, self.bytes.len() as u64);
        if split(at + bytes.len() as u64).0 != self.part {
            return Err(Error::unavailable("a flush has more bytes than an object may have")
                .with_hint("flush more often"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(at)
    }

    fn unsynced(&mut self) -> Result<Unsynced> {
        if self.bytes.is_empty() {
            return Ok(Unsynced::new(self.synced, || Ok(())));
        }
        let (medium, bytes) = (self.medium.clone(), std::mem::take(&mut self.bytes));
        let name = object_name(self.writer, self.number, self.part);
        self.part += 1;
        Ok(Unsynced::new(address(self.part, 0), move || match medium.put(&name, &bytes)? {
            true => Ok(()),
            false => Err(Error::unavailable(format!("{name} is there already"))),
        }))
    }

    fn note_synced(&mut self, upto: Address) {
        self.synced = self.synced.max(upto);
    }

    fn synced(&self) -> Address {
        self.synced
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    /// The collected bytes are in memory alone.
    fn give_up(self: Box<Self>) {}

    fn is_gone(&self) -> bool {
        false
    }
}
