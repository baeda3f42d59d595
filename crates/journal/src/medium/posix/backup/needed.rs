//! The files that a snapshot of a store needs, and how much of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::{Id, data, log};

use crate::medium::Tip;
use crate::takeover::Takeovers;

/// A snapshot, as far as a copy of it needs to know.
#[derive(Debug, Clone)]
pub struct SnapshotFiles {
    /// The living logs, each with its last commit.
    pub tips: Vec<Arc<Tip>>,
    /// The takeovers that count.
    pub takeovers: Takeovers,
}

/// Files by their paths in the store, each with the bytes that count.
#[derive(Debug, Default)]
pub struct Needed {
    /// Living logs.
    pub logs: BTreeMap<String, u64>,
    /// Data logs, of writers and of takeovers.
    pub data: BTreeMap<String, u64>,
    /// Takeovers.
    pub takeovers: BTreeMap<String, u64>,
    /// Whether a takeover left something out that older versions of the store have.
    pub is_purged: bool,
}

impl Needed {
    /// The files of a snapshot.
    pub fn of(content: &SnapshotFiles) -> Result<Needed> {
        let mut needed = Needed::default();
        for tip in &content.tips {
            needed.logs.insert(log_path(tip.writer), tip.ends.end());
            needed.add_data(tip.writer, &tip.record.data_logs);
        }
        for takeover in content.takeovers.all() {
            needed.takeovers.insert(takeover.shown.clone(), takeover.bytes);
            needed.is_purged |= takeover.header.purge;
            needed.add_data(takeover.header.id, &takeover.record.data_logs);
            takeover.each_log(|log| {
                needed.add_data(log.writer, &log.row.data_logs);
                Ok(())
            })?;
        }
        Ok(needed)
    }

    fn add_data(&mut self, writer: Id, data_logs: &[(u32, u64)]) {
        for (number, length) in data_logs {
            let most = self.data.entry(format!("data/{}", data::file_name(writer, *number))).or_default();
            *most = (*most).max(*length);
        }
    }

    /// How many bytes of a file count; 0 if it is not needed.
    pub fn bytes(&self, path: &str) -> u64 {
        let maps = [&self.logs, &self.data, &self.takeovers];
        maps.into_iter().find_map(|files| files.get(path)).copied().unwrap_or(0)
    }

    /// The paths.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        [&self.logs, &self.data, &self.takeovers].into_iter().flat_map(BTreeMap::keys)
    }
}

/// The path of a log in a store.
pub fn log_path(writer: Id) -> String {
    format!("logs/{}", log::file_name(writer))
}
