//! The sources of bytes for reading fields: the store's medium, and files outside the store.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use fieldstone_core::Result;
use fieldstone_core::env::Disk;
use fieldstone_format::Id;

use crate::medium::{Address, Medium};
use crate::snapshot::Snapshot;

/// Gives the newest snapshot: a takeover may have moved commits meanwhile.
pub trait Newest: Send + Sync + fmt::Debug {
    /// The snapshot of a look that begins after this call.
    fn snapshot(&self) -> Result<Arc<Snapshot>>;

    /// The same commits as those of a snapshot, wherever they are now; `None` if they are where they were.
    fn again(&self, snapshot: &Snapshot) -> Result<Option<Arc<Snapshot>>>;
}

/// The ways to bytes that a layer above adds.
pub trait Beyond: Any + Send + Sync + fmt::Debug {}

/// The source of the bytes of a store's fields.
#[derive(Debug)]
pub struct Files {
    medium: Arc<dyn Medium>,
    outside: Arc<dyn Disk>,
    newest: Arc<dyn Newest>,
    beyond: OnceLock<Arc<dyn Beyond>>,
}

impl Files {
    /// Nothing is opened yet.
    pub fn new(medium: Arc<dyn Medium>, outside: Arc<dyn Disk>, newest: Arc<dyn Newest>) -> Files {
        Files { medium, outside, newest, beyond: OnceLock::new() }
    }

    /// Adds ways to bytes, unless some were added.
    pub fn add_beyond(&self, beyond: Arc<dyn Beyond>) {
        let _known = self.beyond.set(beyond);
    }

    /// The ways that were added.
    pub fn beyond(&self) -> Option<&dyn Any> {
        self.beyond.get().map(|beyond| &**beyond as &dyn Any)
    }

    /// The newest snapshot, for a reader whose file is gone.
    pub fn newest(&self) -> Result<Arc<Snapshot>> {
        self.newest.snapshot()
    }

    /// The same commits as those of a snapshot, for a reader whose file is gone; `None` if takeovers did not move them.
    pub fn again(&self, snapshot: &Snapshot) -> Result<Option<Arc<Snapshot>>> {
        self.newest.again(snapshot)
    }

    /// The medium with the store's own bytes.
    pub fn medium(&self) -> &Arc<dyn Medium> {
        &self.medium
    }

    /// The file system of files outside the store.
    pub fn outside(&self) -> &dyn Disk {
        &*self.outside
    }

    /// A writer's log (number 0) or data log as messages name it.
    pub fn shown(&self, writer: Id, number: u32) -> String {
        self.medium.shown(writer, number)
    }

    /// Fills `buffer` from an address of a writer's log or data log.
    pub fn read(&self, writer: Id, number: u32, buffer: &mut [u8], at: Address) -> Result<()> {
        self.medium.read(writer, number, buffer, at)
    }

    /// Reads `length` bytes; Corrupt, before anything is allocated, where there are fewer.
    pub fn read_vec(&self, writer: Id, number: u32, at: Address, length: u64) -> Result<Vec<u8>> {
        self.medium.read_vec(writer, number, at, length)
    }
}
