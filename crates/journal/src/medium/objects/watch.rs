//! Keeping up with logs of objects: by listing what is behind the last commit of each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{CommitRecord, FrameInfo, LogHeader};

use super::{ObjectMedium, object_name, object_number, prefix};
use crate::medium::{Address, Claims, Ended, Findings, Look, Medium, Problem, Tip, Watch, is_believed};

/// The known state of the logs.
#[derive(Debug)]
pub struct ObjectWatch {
    medium: ObjectMedium,
    /// Headers of all logs that were read, and their owners.
    headers: BTreeMap<Id, (Arc<LogHeader>, u32)>,
    tips: BTreeMap<Id, Arc<Tip>>,
    closed: BTreeSet<Id>,
    /// The ends of logs whose last put failed, and the user who reports that.
    sealed: HashMap<Id, (Address, u32)>,
    /// Whether a commit of this process's own was taken since the last look.
    moved: bool,
    findings: Findings,
}

impl ObjectWatch {
    /// A watch that has seen nothing yet.
    pub fn new(medium: ObjectMedium) -> ObjectWatch {
        ObjectWatch {
            medium,
            headers: BTreeMap::new(),
            tips: BTreeMap::new(),
            closed: BTreeSet::new(),
            sealed: HashMap::new(),
            moved: false,
            findings: Findings::default(),
        }
    }

    /// Reads the header of a log that is new.
    fn read_header(&mut self, log: Id) -> Result<()> {
        if self.headers.contains_key(&log) {
            return Ok(());
        }
        let (header, owner) = (self.medium.header(log)?, self.medium.range(log, 0, super::address(1, 0), 0)?);
        let owner = owner.0.owner;
        self.sealed.extend(header.sealed.iter().map(|(ended, end)| (*ended, (*end, owner))));
        self.headers.insert(log, (Arc::new(header), owner));
        Ok(())
    }

    /// Whether a log may have more commits than are known.
    fn may_grow(&self, log: Id) -> bool {
        !self.closed.contains(&log) || !self.tips.contains_key(&log)
    }

    /// Takes the last commit of a log that counts; whether it is another one.
    fn read_tip(&mut self, log: Id) -> Result<bool> {
        let Some((header, owner)) = self.headers.get(&log) else { return Ok(false) };
        let known = self.tips.get(&log);
        let after = known.map(|tip| object_name(log, 0, tip.record.sequence));
        let names = self.medium.objects.list(&prefix(log, 0), after.as_deref());
        let end = self.sealed.get(&log).filter(|(_, user)| user == owner).map_or(u64::MAX, |(end, _)| *end);
        let mut sequences = names.iter().rev().filter_map(|name| object_number(name));
        let last = sequences.find(|sequence| super::address(*sequence, 0) < end);
        let Some(last) = last else { return Ok(false) };
        let (ends, record, object) = self.medium.commit(log, last)?;
        if ends.frame >= end {
            return Ok(false);
        }
        let tip = Tip {
            writer: log,
            uid: *owner,
            header: header.clone(),
            header_damage: None,
            record: Arc::new(record),
            ends,
            changed: object.time,
        };
        tip.check(known.map(|tip| &**tip), self.medium.env.clock.now())?;
        self.tips.insert(log, Arc::new(tip));
        Ok(true)
    }
}

impl Watch for ObjectWatch {
    fn look(&mut self, _: Look) -> Result<bool> {
        let closed = self.medium.objects.list("closed/", None);
        let closed: BTreeSet<Id> = closed.iter().filter_map(|name| Id::parse(name.get(7..)?)).collect();
        let logs = self.medium.objects.folders("logs/");
        let logs: Vec<Id> = logs.iter().filter_map(|name| Id::parse(name)).collect();
        let mut problems = Vec::new();
        let mut note = |log: Id, outcome: Result<bool>, medium: &ObjectMedium| match outcome {
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                let (file, why) = (medium.shown(log, 0), e.message().to_owned());
                problems.push(Problem { file, why, damage: true, skipped: false });
                Ok(false)
            }
            outcome => outcome,
        };
        // All headers first: one may say where another log ends.
        for &log in &logs {
            let read = self.read_header(log).map(|()| false);
            note(log, read, &self.medium)?;
        }
        for &log in &logs {
            if self.may_grow(log) {
                let read = self.read_tip(log);
                self.moved |= note(log, read, &self.medium)?;
            }
        }
        // Only now: what was closed before the look has shown all that it has.
        self.closed = closed;
        self.moved |= problems != self.findings.problems;
        self.findings = Findings { problems, ..Findings::default() };
        Ok(std::mem::take(&mut self.moved))
    }

    fn wrote(&mut self, log: Id, ends: &FrameInfo, record: &Arc<CommitRecord>) {
        let follows = |tip: &&mut Arc<Tip>| tip.record.sequence + 1 == record.sequence;
        if let Some(tip) = self.tips.get_mut(&log).filter(follows) {
            *tip = Arc::new(tip.followed_by(record, *ends));
            self.moved = true;
        }
    }

    fn tips(&self) -> Vec<Arc<Tip>> {
        self.tips.values().cloned().collect()
    }

    fn findings(&self) -> Findings {
        self.findings.clone()
    }

    fn max_stamp(&self) -> u64 {
        let now = self.medium.env.clock.now();
        let stamps = self.tips.values().map(|tip| tip.record.stamp);
        stamps.filter(|stamp| is_believed(*stamp, now)).max().unwrap_or(0)
    }

    fn claims(&self) -> Arc<dyn Claims> {
        Arc::new(self.medium.clone())
    }

    fn folder_owner(&self) -> Option<u32> {
        None
    }

    fn owner(&self, log: Id) -> Option<u32> {
        self.headers.get(&log).map(|(_, owner)| *owner)
    }

    fn announced(&self, log: &Tip) -> Option<(u64, bool)> {
        Some((log.record.sequence, self.closed.contains(&log.writer)))
    }

    fn ended(&self, log: &Tip) -> Option<Ended> {
        self.closed.contains(&log.writer).then_some(Ended::Closed)
    }
}
