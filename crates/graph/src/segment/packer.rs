//! Compresses pages on a thread of its own while others are filled.
//!
//! Pages come back in the order in which they were given, and only on request, so that the calls that write
//! them do not depend on the speed of the thread.

use fieldstone_core::sync::thread;

use fieldstone_core::sync::mpsc::{Receiver, Sender, channel};

use fieldstone_core::{Error, Result};
use fieldstone_format::graph_segment::directory::Section;
use fieldstone_format::{block, crc};

/// The compression level of pages.
const LEVEL: i32 = 1;
/// Pages that may be given before the first is taken back.
const AHEAD: usize = 32;

/// A page as it is stored.
#[derive(Debug)]
pub(super) struct PackedPage {
    pub section: Section,
    pub stored: Vec<u8>,
    /// CRC-32C of the stored bytes.
    pub crc: u32,
}

impl PackedPage {
    /// Compresses a page.
    pub fn of(section: Section, raw: Vec<u8>) -> PackedPage {
        // Places are hashes: they cannot be compressed.
        let level = (section != Section::Places).then_some(LEVEL);
        let stored = block::pack(&raw, level).into_owned();
        PackedPage { section, crc: crc(&stored), stored }
    }
}

/// The thread.
#[derive(Debug)]
pub(super) struct PagePacker {
    pages: Sender<(Section, Vec<u8>)>,
    packed: Receiver<PackedPage>,
    given: usize,
}

impl PagePacker {
    /// Starts the thread, which ends when this is dropped; `None` if no thread can be started.
    pub fn start() -> Option<PagePacker> {
        let (pages, work) = channel::<(Section, Vec<u8>)>();
        let (done, packed) = channel();
        let run = move || {
            for (section, raw) in work {
                if done.send(PackedPage::of(section, raw)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("graph-pack".to_owned()).spawn(run).ok()?;
        Some(PagePacker { pages, packed, given: 0 })
    }

    /// Gives a page to the thread; returns an earlier one if many are under way.
    pub fn give(&mut self, section: Section, raw: Vec<u8>) -> Result<Option<PackedPage>> {
        self.pages.send((section, raw)).map_err(|_| stopped())?;
        self.given += 1;
        if self.given > AHEAD { self.take() } else { Ok(None) }
    }

    /// The first page that is still under way; `None` if all are back.
    pub fn take(&mut self) -> Result<Option<PackedPage>> {
        let Some(left) = self.given.checked_sub(1) else { return Ok(None) };
        self.given = left;
        self.packed.recv().map(Some).map_err(|_| stopped())
    }
}

fn stopped() -> Error {
    Error::internal("the thread that compresses pages stopped")
}
