//! The logs that takeovers replace, for those who follow: a follower that is up to a takeover hears only of logs that
//! later ones took.

use fieldstone_core::Result;
use fieldstone_format::Id;

use super::Feed;
use crate::marks::{Heads, Marks};

impl Feed {
    /// How far the logs go.
    pub fn heads(&self) -> Heads {
        let taken = &self.snapshot.taken;
        if !taken.is_whole() {
            return Heads { logs: self.logs(), taken: Vec::new() };
        }
        Heads {
            logs: self.snapshot.logs.iter().map(|log| (log.writer, log.record.sequence)).collect(),
            taken: taken.takeovers().newest().map(|takeover| takeover.name()).collect(),
        }
    }

    /// Number of logs, with those that takeovers replace.
    pub fn number_of_logs(&self) -> u64 {
        let taken = &self.snapshot.taken;
        match taken.is_whole() {
            true => self.snapshot.logs.len() as u64 + taken.takeovers().logs(),
            false => self.logs().len() as u64,
        }
    }

    /// Whether whoever has applied the logs up to these marks has something that this feed lacks: a commit beyond a log's
    /// last one, or a takeover that is not one of these or their predecessors.
    pub fn is_behind(&self, marks: &Marks) -> bool {
        let taken = &self.snapshot.taken;
        let has = |name| taken.is_whole() && taken.takeovers().reach(name);
        !marks.taken.iter().all(has)
            || marks.logs.iter().any(|(log, mark)| *mark > 0 && *mark > self.snapshot.head(*log))
    }

    /// Whether no later feed can have what these marks stand for: a log that is taken over ends before its mark, or another
    /// takeover has the number of an applied one.
    pub fn contradicts(&self, marks: &Marks) -> bool {
        let taken = &self.snapshot.taken;
        taken.is_whole()
            && (marks.taken.iter().any(|name| taken.takeovers().contradict(name))
                || marks.logs.iter().any(|(log, mark)| {
                    self.is_taken(*log) && taken.log(*log).is_some_and(|(_, log)| *mark > log.row.sequence)
                }))
    }

    /// Logs that have a mark although a takeover replaces them.
    pub fn taken_with_marks(&self, marks: &Marks) -> Vec<Id> {
        let is_taken = |log: &&Id| self.is_taken(**log) && self.snapshot.taken.log(**log).is_some();
        match self.snapshot.taken.is_whole() {
            true => marks.logs.keys().filter(is_taken).copied().collect(),
            false => Vec::new(),
        }
    }

    /// The last commit of a log that a follower with these marks has applied; `since` are the logs that were
    /// [taken over](Feed::taken_since) since.
    pub fn applied_of(&self, marks: &Marks, since: &[(Id, u64)], log: Id) -> u64 {
        let is_behind = since.iter().any(|(writer, _)| *writer == log);
        match self.is_taken(log) && !marks.logs.contains_key(&log) && !is_behind {
            true => u64::MAX,
            false => marks.of(log),
        }
    }

    /// The logs that were taken over since some marks, each with its last commit. Rows that are damaged are left out. None
    /// at an older version: its heads have all logs.
    pub fn taken_since(&self, marks: &Marks) -> Result<Vec<(Id, u64)>> {
        let (taken, mut since) = (&self.snapshot.taken, Vec::new());
        if !taken.is_whole() {
            return Ok(since);
        }
        for takeover in taken.takeovers().all() {
            let number = marks.number(takeover.owner());
            if number >= takeover.number() {
                continue;
            }
            let file = || takeover.shown.clone();
            if number == 0 {
                // All of them, in the order of the table.
                let each = takeover.each_log(|log| {
                    since.push((log.writer, log.row.sequence));
                    Ok(())
                });
                self.tolerate(file, each)?;
                continue;
            }
            for writer in self.tolerate(file, takeover.taken_since(number))?.unwrap_or_default() {
                let log = self.tolerate(file, takeover.log(writer))?.flatten();
                since.extend(log.map(|log| (writer, log.row.sequence)));
            }
        }
        since.retain(|(_, head)| *head > 0);
        Ok(since)
    }
}
