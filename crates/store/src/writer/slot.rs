//! This writer's slot on its host's board.
//!
//! The board is the only file that several processes write. A slot is claimed by appending it, which
//! is atomic among the processes of one host, and then rewritten in place by its owner alone. On a file
//! system without append every process has a board of its own.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::board::{SLOT, Slot};

use crate::layout::Layout;

/// A claimed slot.
#[derive(Debug)]
pub struct BoardSlot {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl BoardSlot {
    /// Claims a slot with its first content.
    pub fn claim(env: &Env, layout: &Layout, slot: &Slot) -> Result<BoardSlot> {
        let host: String = env
            .identity
            .host()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' })
            .collect();
        let path = layout.boards().join(format!("{host}.board"));
        let failed = |path: &PathBuf, e| Error::io("write", path, e);
        match env.disk.open_append(&path) {
            Ok(board) => {
                // Slots are found by their place: what a writer appended in part is filled up first.
                let length = board.stat().map_err(|e| failed(&path, e))?.len;
                let filling = length.wrapping_neg() as usize % SLOT;
                let bytes = [&[0; SLOT][..filling], &slot.encode()].concat();
                let offset = board.append(&bytes).map_err(|e| failed(&path, e))? + filling as u64;
                if offset.is_multiple_of(SLOT as u64) {
                    let file = env.disk.open_write(&path).map_err(|e| failed(&path, e))?;
                    return Ok(BoardSlot { path, file, offset });
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => {}
            Err(e) => return Err(failed(&path, e)),
        }
        let path = layout.boards().join(format!("{host}-{}.board", slot.writer));
        let file = env.disk.create_new(&path).map_err(|e| failed(&path, e))?;
        let board = BoardSlot { path, file, offset: 0 };
        board.write(slot)?;
        Ok(board)
    }

    /// Rewrites the slot.
    pub fn write(&self, slot: &Slot) -> Result<()> {
        write_all_at(&*self.file, &slot.encode(), self.offset).map_err(|e| Error::io("write", &self.path, e))
    }

    /// Makes the slot one that says nothing.
    pub fn give_up(self, _env: &Env) {
        let _ = write_all_at(&*self.file, &[0; SLOT], self.offset);
    }
}
