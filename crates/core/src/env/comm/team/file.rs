//! A file of a team: each rank reads and writes independently, and the ranks agree upon their collective calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Team;
use crate::Result;
use crate::env::comm::{CommFile, CommReader, CommWriter, Hints, Step};

/// An open file of a team. Each rank reads and writes at an offset independently; all other calls are collective,
/// with an agreement before and after.
#[derive(Debug)]
pub struct TeamFile<F: ?Sized = dyn CommFile> {
    team: Team,
    file: Arc<F>,
}

/// Bytes that a team can read.
pub type TeamReader = TeamFile<dyn CommReader>;
/// A place to which a team can write.
pub type TeamWriter = TeamFile<dyn CommWriter>;

impl<F: ?Sized> Clone for TeamFile<F> {
    fn clone(&self) -> TeamFile<F> {
        TeamFile::new(&self.team, self.file.clone())
    }
}

impl<F: ?Sized> TeamFile<F> {
    pub(super) fn new(team: &Team, file: Arc<F>) -> TeamFile<F> {
        TeamFile { team: team.clone(), file }
    }

    /// The team to which this file belongs.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// The file below, for a layer over it.
    pub fn below(&self) -> Arc<F> {
        self.file.clone()
    }

    /// The same file through a layer. Close the original file; the layer cannot be closed.
    pub fn over(&self, layer: Arc<F>) -> TeamFile<F> {
        TeamFile::new(&self.team, layer)
    }
}

impl<F: CommReader + ?Sized> TeamFile<F> {
    /// See [`CommReader::read_at`].
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buffer, offset)
    }

    /// See [`CommReader::len`].
    pub fn len(&self) -> Result<u64> {
        self.file.len()
    }

    /// See [`CommReader::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.file.is_empty()
    }

    /// Collective: see [`CommReader::read_all`].
    pub fn read_all(&self, step: impl Into<Step>, local: Result<&mut [(u64, &mut [u8])]>) -> Result<()> {
        let step = step.into();
        let parts = self.team.agree(step, local)?;
        self.team.agree(step, self.file.read_all(parts))
    }
}

impl<F: CommWriter + ?Sized> TeamFile<F> {
    /// See [`CommWriter::write_at`].
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(data, offset)
    }

    /// Collective: see [`CommWriter::write_all`].
    pub fn write_all(&self, step: impl Into<Step>, local: Result<&[(u64, &[u8])]>) -> Result<()> {
        let step = step.into();
        let parts = self.team.agree(step, local)?;
        self.team.agree(step, self.file.write_all(parts))
    }
}

impl TeamFile {
    /// The file, with its read calls only.
    pub fn reader(&self) -> TeamReader {
        TeamFile::new(&self.team, self.file.clone())
    }

    /// The file, with its write calls only.
    pub fn writer(&self) -> TeamWriter {
        TeamFile::new(&self.team, self.file.clone())
    }

    /// See [`CommFile::is_concurrent`].
    pub fn is_concurrent(&self) -> bool {
        self.file.is_concurrent()
    }

    /// See [`CommFile::taken_hints`].
    pub fn taken_hints(&self) -> Result<Hints> {
        self.file.taken_hints()
    }

    /// Collective: see [`CommFile::set_len`].
    pub fn set_len(&self, step: impl Into<Step>, local: Result<u64>) -> Result<()> {
        let step = step.into();
        let len = self.team.agree(step, local)?;
        self.team.agree(step, self.file.set_len(len))
    }

    /// Collective: see [`CommFile::sync`].
    pub fn sync(&self, step: impl Into<Step>, local: Result<()>) -> Result<()> {
        let step = step.into();
        self.team.agree(step, local)?;
        self.team.agree(step, self.file.sync())
    }

    /// Collective: see [`CommFile::visibility_barrier`]. All ranks have agreed to make this call; a rank that failed
    /// since then passes its error.
    pub fn visibility_barrier(&self, step: impl Into<Step>, local: Result<()>) -> Result<()> {
        let step = step.into();
        if self.team.size() == 1 {
            return self.team.agree(step, local);
        }
        let made = self.file.visibility_barrier();
        self.team.agree(step, local.and(made))
    }

    /// Collective: see [`CommFile::make_durable`]. All ranks have agreed to make this call; a rank that failed since
    /// then passes its error.
    pub fn make_durable(&self, step: impl Into<Step>, local: Result<()>) -> Result<()> {
        let step = step.into();
        let made = self.file.make_durable();
        self.team.agree(step, local.and(made))
    }

    /// Collective: see [`CommFile::close`]. If a rank has failed, all close the file nevertheless; if ranks are in
    /// different steps, none does.
    pub fn close(&self, step: impl Into<Step>, local: Result<()>) -> Result<()> {
        let step = step.into();
        if let Err(error) = self.team.agree(step, local) {
            self.give_up();
            return Err(error);
        }
        self.forget();
        self.team.agree(step, self.file.close())
    }

    /// Closes the file if the team's last step failed with all ranks in it; else leaves it open. All ranks in that
    /// step call this next.
    pub fn give_up(&self) {
        if self.team.failed_together.load(Ordering::Acquire) && self.forget() {
            let _ = self.file.close();
        }
    }

    /// Removes the file from its team's list; returns whether it was open.
    fn forget(&self) -> bool {
        let mut known = self.team.teams.known();
        let Some(open) = known.files.get_mut(&self.team.number()) else { return false };
        let place = open.iter().position(|other| Arc::ptr_eq(other, &self.file));
        place.map(|place| open.remove(place)).is_some()
    }
}
