//! This writer's slot on a board of its host.
//!
//! A board is the only file that several processes write, all of one user. A slot is claimed by appending it,
//! which is atomic among the processes of one host, and then rewritten in place by its owner alone. On a file
//! system without append every process has a board of its own.
//!
//! A slot that no reader can see is useless: a writer gives up a board that cannot be written any more, or whose name
//! another file has taken, and takes another board.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, write_all_at};
use fieldstone_core::planted::{self, Planted};
use fieldstone_format::Id;
use fieldstone_format::board::{SLOT, Slot};
use fieldstone_format::log::{CommitRecord, FrameInfo};

use super::layout::Layout;

/// The name of this host in file names.
pub fn file_host(env: &Env) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' };
    env.identity.host().chars().map(plain).collect()
}

/// The content of the board slot of a log's writer once a commit is durable.
pub fn slot_of(env: &Env, writer: Id, ends: &FrameInfo, record: &CommitRecord) -> Slot {
    Slot {
        writer,
        closed: false,
        length: ends.end(),
        sequence: record.sequence,
        stamp: record.stamp,
        frame: ends.frame,
        hash: ends.hash,
        process: env.identity.process(),
        time: record.time,
    }
}

/// A claimed slot.
#[derive(Debug)]
pub struct BoardSlot {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    inode: u64,
    offset: u64,
}

impl BoardSlot {
    /// Claims a slot with its first content: on the host's board, on the host's board of this user, or on one
    /// of this writer's own.
    pub fn claim(env: &Env, layout: &Layout, slot: &Slot) -> io::Result<BoardSlot> {
        let host = file_host(env);
        let boards = layout.boards();
        for name in [format!("{host}.board"), format!("{host}-{}.board", env.identity.uid())] {
            match BoardSlot::append(env, &boards.join(name), slot) {
                Ok(Some(board)) => return Ok(board),
                // No append here.
                Err(e) if e.kind() == io::ErrorKind::Unsupported => break,
                Ok(None) | Err(_) => {}
            }
        }
        // Not the name that a board given up before may have.
        let mut salt = [0; 4];
        env.rand.fill(&mut salt);
        let path = boards.join(format!("{host}-{}-{:08x}.board", slot.writer, u32::from_le_bytes(salt)));
        let file = env.disk.create_alike(&path)?;
        let inode = file.stat()?.inode;
        let board = BoardSlot { path, file, inode, offset: 0 };
        board.write(env, slot)?;
        Ok(board)
    }

    /// Appends the slot to a board that several processes write; `None` where it is another user's.
    fn append(env: &Env, path: &Path, slot: &Slot) -> io::Result<Option<BoardSlot>> {
        let board = env.disk.open_append(path)?;
        let stat = board.stat()?;
        if stat.uid != env.identity.uid() {
            return Ok(None);
        }
        if planted::is(Planted::SlotReused) && stat.len >= SLOT as u64 {
            let file = env.disk.open_plain(path, true)?;
            let taken = BoardSlot { path: path.to_owned(), file, inode: stat.inode, offset: 0 };
            taken.write(env, slot)?;
            return Ok(Some(taken));
        }
        // Slots are found by their place: what a writer appended in part is filled up first.
        let filling = stat.len.wrapping_neg() as usize % SLOT;
        let bytes = [&[0; SLOT][..filling], &slot.encode()].concat();
        let offset = board.append(&bytes)? + filling as u64;
        if !offset.is_multiple_of(SLOT as u64) {
            return Ok(None);
        }
        let file = env.disk.open_plain(path, true)?;
        let same = file.stat()?.inode == stat.inode;
        Ok(same.then(|| BoardSlot { path: path.to_owned(), file, inode: stat.inode, offset }))
    }

    /// Rewrites the slot; fails where nobody would read it.
    pub fn write(&self, env: &Env, slot: &Slot) -> io::Result<()> {
        write_all_at(&*self.file, &slot.encode(), self.offset)?;
        match env.disk.stat(&self.path)?.inode == self.inode {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Makes the slot one that says nothing: one that says less than the log holds only costs time.
    pub fn give_up(self) {
        let _ = write_all_at(&*self.file, &[0; SLOT], self.offset);
    }
}
