//! The sources of bytes for reading fields: the store's medium, and files outside the store.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Disk;
use fieldstone_format::Id;

use crate::medium::{Address, Medium};

/// The source of the bytes of a store's fields.
#[derive(Debug)]
pub struct Files {
    medium: Arc<dyn Medium>,
    outside: Arc<dyn Disk>,
}

impl Files {
    /// Nothing is opened yet.
    pub fn new(medium: Arc<dyn Medium>, outside: Arc<dyn Disk>) -> Files {
        Files { medium, outside }
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
