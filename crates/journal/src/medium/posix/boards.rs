//! Reading boards: what the writers of each host say of their logs.
//!
//! A board is a hint and never proof (J-8). Therefore:
//! * a slot counts for logs of the user who owns the board, and for no other logs;
//! * the number of logs bounds the lengths of all boards together: bytes beyond that are not read;
//! * a board that cannot be read counts as empty, and is named.

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_core::env::{Disk, Env};
use fieldstone_format::Id;
use fieldstone_format::board::{SLOT, Slot};

use super::folder::{Listing, list_if_changed};
use super::layout::Layout;
use crate::medium::Problem;

/// Slots that a board may hold for each log of the store (a slot may have been given up for another), and
/// beside them.
const SLOTS_PER_LOG: u64 = 4;
const SLOTS_BESIDE: u64 = 1024;

/// A board as it was last read.
#[derive(Debug, PartialEq, Eq)]
struct Board {
    name: String,
    /// The user who owns the file.
    owner: u32,
    bytes: Vec<u8>,
}

/// The content of all boards.
#[derive(Debug, Default)]
pub struct Boards {
    folder: Listing,
    seen: Vec<Board>,
    /// The newest slot that each user's boards had for a log.
    slots: HashMap<(Id, u32), Slot>,
    /// Boards that are not read, or not whole.
    unread: Vec<Problem>,
    /// Slots that do not decode.
    torn: Vec<Problem>,
    /// Slots of a version that is not known here.
    foreign: Vec<String>,
}

impl Boards {
    /// Reads all boards of a store with this number of logs; returns whether anything in them changed.
    pub fn read(&mut self, env: &Env, layout: &Layout, logs: usize) -> Result<bool> {
        let folder = layout.boards();
        list_if_changed(env, &folder, &mut self.folder)?;
        let mut left = (SLOTS_PER_LOG * logs as u64 + SLOTS_BESIDE) * SLOT as u64;
        let mut boards = Vec::new();
        let mut unread = self.folder.problems("boards", |name| name.ends_with(".board"));
        for name in self.folder.names.iter().filter(|name| name.ends_with(".board")) {
            let note =
                |why: String| Problem { file: format!("boards/{name}"), why, damage: false, skipped: false };
            match read_board(&*env.disk, &folder.join(name), left) {
                Ok((owner, bytes, whole)) => {
                    left -= bytes.len() as u64;
                    if !whole {
                        unread.push(note("its end is not read: it has more slots than writers".to_owned()));
                    }
                    boards.push(Board { name: name.clone(), owner, bytes });
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => unread.push(note(format!("it is not read, its logs are read without it: {e}"))),
            }
        }
        if boards == self.seen && unread == self.unread {
            return Ok(false);
        }
        self.torn.clear();
        self.foreign.clear();
        // A slot that is gone or torn vouches for nothing any more: its log is looked at each time.
        let before = std::mem::take(&mut self.slots);
        for board in &boards {
            for (i, bytes) in board.bytes.chunks(SLOT).enumerate() {
                match Slot::decode(bytes) {
                    // A slot only ever grows: an older reading (another host's cache) is not news.
                    Ok(slot) => {
                        let at = (slot.writer, board.owner);
                        let seen = self.slots.get(&at).or(before.get(&at)).copied();
                        // A writer that finds its board replaced says in another slot that it closes.
                        let rank = |slot: &Slot| (slot.sequence, slot.closed);
                        let newest = seen.filter(|seen| rank(seen) > rank(&slot)).unwrap_or(slot);
                        self.slots.insert(at, newest);
                    }
                    // A slot of zeros is one being claimed.
                    Err(_) if bytes.iter().all(|&b| b == 0) => {}
                    // Nothing depends on it, and a writer that dies in its last write leaves the same.
                    Err(e) => {
                        let file = format!("boards/{}", board.name);
                        if let Some(version) = Slot::foreign(bytes) {
                            self.foreign.push(format!("slot {i} of {file} of format version {version}"));
                        }
                        let why =
                            format!("slot {i} is not read, its log is read without it: {}", e.message());
                        self.torn.push(Problem { file, why, damage: false, skipped: false });
                    }
                }
            }
        }
        (self.seen, self.unread) = (boards, unread);
        Ok(true)
    }

    /// Boards and slots that are not read.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.unread.iter().chain(&self.torn)
    }

    /// Slots of a version that is not known here.
    pub fn foreign(&self) -> &[String] {
        &self.foreign
    }

    /// The information that the boards of a log's owner have about it.
    pub fn slot(&self, writer: Id, owner: u32) -> Option<&Slot> {
        self.slots.get(&(writer, owner))
    }

    /// All slots, with the users whose boards hold them.
    pub fn slots(&self) -> impl Iterator<Item = (u32, &Slot)> {
        self.slots.iter().map(|((_, owner), slot)| (*owner, slot))
    }
}

/// Owner and content of a board, up to `left` bytes, and whether that is all of it.
fn read_board(disk: &dyn Disk, path: &std::path::Path, left: u64) -> std::io::Result<(u32, Vec<u8>, bool)> {
    let file = disk.open_plain(path, false)?;
    let stat = file.stat()?;
    let length = stat.len.min(left - left % SLOT as u64);
    let mut bytes = vec![0; length as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    Ok((stat.uid, bytes, length == stat.len))
}
