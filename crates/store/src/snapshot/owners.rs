//! Who owns a dataset: the user whose log holds the oldest commit into it (promise 10). Logs of other
//! users do not count for that dataset, whatever they hold.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::Id;

use super::LogView;
use crate::run::RunCursor;

/// Owners of datasets, as far as they matter.
#[derive(Debug)]
pub enum Owners {
    /// All logs are of one user (or there is none).
    One(Option<u32>),
    /// Owner by the encoded first level of the keys.
    Many(HashMap<Vec<u8>, u32>),
}

impl Owners {
    /// Looks the owners up; reads no index while there is only one user.
    pub fn find(logs: &[Arc<LogView>]) -> Result<Owners> {
        let first = logs.first().map(|log| log.uid);
        if logs.iter().all(|log| Some(log.uid) == first) {
            return Ok(Owners::One(first));
        }
        let mut oldest: HashMap<Vec<u8>, (u64, Id, u32)> = HashMap::new();
        for log in logs {
            for run in &log.runs {
                // A run that cannot be read holds nothing that could be owned.
                let Ok(meta) = run.meta() else { continue };
                let mut note = |prefix: &[u8], commit: u64| {
                    let Some(info) = meta.commits.get(commit as usize) else { return };
                    let candidate = (info.stamp, log.writer, log.uid);
                    match oldest.get_mut(prefix) {
                        Some(known) => *known = (*known).min(candidate),
                        None => drop(oldest.insert(prefix.to_vec(), candidate)),
                    }
                };
                if let Some(datasets) = &meta.datasets {
                    datasets.iter().for_each(|(prefix, commit)| note(prefix, *commit));
                    continue;
                }
                let mut cursor = RunCursor::tolerant(run.clone(), 0);
                while cursor.advance()? {
                    let end = fieldstone_format::keys::level_ends(cursor.key())?[0];
                    let commit = fieldstone_format::bytes::Cursor::new(cursor.value()).varint()?;
                    note(&cursor.key()[..end], commit);
                }
            }
        }
        Ok(Owners::Many(oldest.into_iter().map(|(prefix, (_, _, uid))| (prefix, uid)).collect()))
    }

    /// The owner of the dataset with this encoded first level; `None` where it has none yet.
    pub fn of(&self, prefix: &[u8], exists: impl FnOnce() -> bool) -> Option<u32> {
        match self {
            Owners::One(owner) => owner.filter(|_| exists()),
            Owners::Many(owners) => owners.get(prefix).copied(),
        }
    }

    /// Whether entries of a log of `uid` count in the dataset with this encoded first level.
    #[inline]
    pub fn counts(&self, prefix: &[u8], uid: u32) -> bool {
        match self {
            Owners::One(_) => true,
            Owners::Many(owners) => owners.get(prefix) == Some(&uid),
        }
    }
}
