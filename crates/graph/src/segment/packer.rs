//! Pages are compressed by a thread of its own while others are made.
//!
//! Pages come back in the order in which they were given, and only when they are asked for: so the calls that write
//! them do not depend on how fast the thread is.

use fieldstone_core::sync::thread;

use fieldstone_core::sync::mpsc::{Receiver, Sender, channel};

use fieldstone_core::{Error, Result};
use fieldstone_format::graph_segment::directory::Section;
use fieldstone_format::{block, crc};

/// The level at which pages are compressed.
const LEVEL: i32 = 1;
/// Pages that are given before the first is taken back.
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
        // Places are hashes: they do not become shorter.
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
    /// Starts the thread, which ends with this; `None` where there can be none.
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

    /// Gives a page; returns an earlier one where many were given.
    pub fn give(&mut self, section: Section, raw: Vec<u8>) -> Result<Option<PackedPage>> {
        self.pages.send((section, raw)).map_err(|_| stopped())?;
        self.given += 1;
        if self.given > AHEAD { self.take() } else { Ok(None) }
    }

    /// The page that was given first of those that are not back; `None` where all are.
    pub fn take(&mut self) -> Result<Option<PackedPage>> {
        let Some(left) = self.given.checked_sub(1) else { return Ok(None) };
        self.given = left;
        self.packed.recv().map(Some).map_err(|_| stopped())
    }
}

fn stopped() -> Error {
    Error::internal("the thread that compresses pages stopped")
}
