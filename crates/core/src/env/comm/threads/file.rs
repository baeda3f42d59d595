//! A file that the threads of a run share through one handle.

use std::sync::Arc;

use super::meeting::{Call, Meeting};
use super::{Contribution, for_all};
use crate::env::comm::single::DiskCommFile;
use crate::env::comm::{CommFile, CommReader, CommWriter};
use crate::{Error, Result};

/// The file as one rank sees it.
#[derive(Debug)]
pub(super) struct ThreadFile {
    pub(super) meeting: Arc<Meeting>,
    pub(super) rank: usize,
    pub(super) file: Arc<DiskCommFile>,
    /// The file's number, the same on all ranks.
    pub(super) number: u64,
}

impl ThreadFile {
    fn together(&self, call: Call) -> Result<()> {
        let join = |parts: Vec<Contribution>| for_all(parts.len(), Contribution::Nothing);
        self.meeting.meet(self.rank, call, Contribution::Nothing, join).map(drop)
    }

    /// Runs `act` on rank 0 once all ranks have arrived, and returns its result on all.
    fn by_first(&self, call: Call, act: impl FnOnce(&DiskCommFile) -> Result<()>) -> Result<()> {
        self.meeting.enter(self.rank)?;
        self.together(call.clone())?;
        let outcome = match self.rank {
            0 => act(&self.file)
                .map_or_else(|error| Contribution::Failed(Arc::new(error)), |()| Contribution::Nothing),
            _ => Contribution::Nothing,
        };
        let first = |mut parts: Vec<Contribution>| {
            let outcome = parts.swap_remove(0);
            for_all(parts.len() + 1, outcome)
        };
        match self.meeting.meet(self.rank, call, outcome, first)? {
            Contribution::Failed(error) => Err(error.replicate()),
            _ => Ok(()),
        }
    }

    /// Does this rank's part of a collective, which ends when all ranks have done theirs.
    fn by_all(&self, call: Call, act: impl FnOnce(&DiskCommFile) -> Result<()>) -> Result<()> {
        self.meeting.enter(self.rank)?;
        let outcome = act(&self.file);
        self.together(call)?;
        outcome
    }
}

impl CommWriter for ThreadFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.meeting.point(self.rank)?;
        self.file.write_at(data, offset)
    }

    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        self.by_all(Call::WriteAll { file: self.number }, |file| {
            check_parts(parts.iter().map(|(offset, part)| (*offset, part.len())))?;
            file.write_all(parts)
        })
    }
}

impl CommReader for ThreadFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.meeting.point(self.rank)?;
        self.file.read_at(buffer, offset)
    }

    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        self.by_all(Call::ReadAll { file: self.number }, |file| {
            check_parts(parts.iter().map(|(offset, part)| (*offset, part.len())))?;
            file.read_all(parts)
        })
    }

    fn len(&self) -> Result<u64> {
        self.meeting.point(self.rank)?;
        self.file.len()
    }
}

impl CommFile for ThreadFile {
    fn set_len(&self, len: u64) -> Result<()> {
        self.by_first(Call::SetLen { file: self.number, len }, |file| file.set_len(len))
    }

    fn visibility_barrier(&self) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.by_first(Call::Sync { file: self.number }, |file| file.sync())
    }
}

/// MPI-IO hangs or fails if parts of a rank overlap or go back, so the simulation refuses them.
fn check_parts(parts: impl Iterator<Item = (u64, usize)>) -> Result<()> {
    let mut end = 0;
    for (offset, len) in parts {
        if offset < end {
            return Err(Error::internal(format!(
                "a part begins at byte {offset}, but an earlier part ends at {end}"
            )));
        }
        end = offset.saturating_add(len as u64);
    }
    Ok(())
}
