//! Checkpoints of a store in memory: what is visible, as an ordinary store in a folder (J-27).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fieldstone_core::env::Env;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};

use super::commit::Committer;
use crate::medium::posix::checkpoint::{Checkpoint, CheckpointOptions, CheckpointReport, Durable};
use crate::session::Session;

/// The folders that checkpoints of one process were written to, and how far.
#[derive(Debug, Default)]
pub struct Written(Mutex<HashMap<PathBuf, Durable>>);

/// Takes checkpoints.
///
/// Its lock is held as long as one is written: two into one folder would write the same files. The locks of a flush are
/// taken under it, never the other way round.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoints<'a> {
    pub(super) committer: Committer<'a>,
    pub(super) written: &'a Written,
}

impl Checkpoints<'_> {
    /// Flushes what is outside transactions, and writes all that is visible then to a folder, as an ordinary
    /// store, durable when this returns. Only for a store in memory.
    pub fn write(
        &self,
        folder: &Path,
        options: &CheckpointOptions,
        session: &Session,
    ) -> Result<CheckpointReport> {
        let looks = self.committer.looks();
        let (env, opened) = (looks.access.env(), looks.access.options());
        // In memory are those stores whose folder is not on the disk where files outside are.
        let Some(outside) = &opened.outside else {
            return Err(Code::WrongStore
                .error(format!("the store at {} is in a folder", opened.url))
                .with_hint("a checkpoint is taken of a memory: store; this one is durable at each flush"));
        };
        let target = Env { disk: outside.clone(), ..env.clone() };
        let folder = target.disk.absolute(folder).map_err(|e| Error::io("look at", folder, e))?;
        let mut written = self.written.0.lock();
        self.committer.flush(&session.within(None))?;
        let snapshot = looks.snapshot()?;
        let Some(source) = looks.medium.files() else {
            return Err(Error::invalid(format!("the store at {} is not one of files", opened.url))
                .with_hint("transfer its fields to a store in a folder"));
        };
        let what = (snapshot.logs.iter().map(|log| log.tip.clone()).collect(), snapshot.version().encode());
        let durable = written.remove(&folder).unwrap_or_default();
        let identity = looks.access.identity().clone();
        let mut checkpoint = Checkpoint::new(source, what, target, &folder, identity, durable);
        let report = checkpoint.write(options)?;
        written.insert(folder, checkpoint.into_durable());
        Ok(report)
    }
}
