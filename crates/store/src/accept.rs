//! Accepting a loss: what of a log, a data log or damaged entries is given up for good, so that reads go on without it.
//!
//! Invariants:
//! * what can still be read is never given up: a log counts up to its last commit that can be read, and of a data log that
//!   is there only entries whose blocks do not match their checksums are named;
//! * what the folder holds now decides, not what this handle read of it before.

use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::acceptance::{ACCEPTANCES_SINCE, Acceptance, KEYS_MAX, Lost};
use fieldstone_format::entry::Location;
use fieldstone_format::keys::key_text;
use fieldstone_format::{Id, data, log};
use fieldstone_journal::Session;
use fieldstone_journal::entry_source::{EntryCursor, EntrySource};
use fieldstone_journal::journal::FileState;
use fieldstone_journal::medium::DataLoss;

use crate::api::AcceptanceReport;
use crate::local::LocalStore;
use crate::read::{Part, Source};
use crate::report;
use crate::snapshot::Snapshot;

/// Fields that a loss concerns.
#[derive(Debug, Default)]
struct Concerned {
    /// Sequence and ordinal of each.
    entries: Vec<(u64, u64)>,
    keys: Vec<String>,
}

impl LocalStore {
    /// Accepts what a log or data log lost, durably and for good; see the facade's `Store::accept`.
    pub fn accept(&self, name: &str, why: &str, session: &Session) -> Result<AcceptanceReport> {
        let journal = self.journal();
        journal.access().check_writable()?;
        let (writer, number) = named_file(name)?;
        journal.looks().refresh()?;
        let snapshot = journal.looks().snapshot()?;
        let state = journal.acceptances().file_state(writer)?;
        journal.acceptances().check_may(writer, state.owner, &snapshot, session)?;
        journal.format().check(ACCEPTANCES_SINCE, "an accepted loss")?;
        let file = journal.medium().shown(writer, number);
        let (lost, concerned) = self.lost(&snapshot, (writer, number), &state, &file)?;
        let mut keys = concerned.keys;
        let fields = keys.len() as u64;
        keys.truncate(KEYS_MAX);
        let acceptance = Acceptance { writer, number, lost, why: why.to_owned(), fields, keys };
        let loss = journal.acceptances().accept(acceptance, session)?;
        Ok(report::acceptance(&*journal.env().identity, &loss, journal.files()))
    }

    /// The lost part of a file, and the fields that it held.
    fn lost(
        &self,
        snapshot: &Snapshot,
        (writer, number): (Id, u32),
        state: &FileState,
        file: &str,
    ) -> Result<(Lost, Concerned)> {
        if number == 0
            && let Some((last, known)) = state.beyond
            && snapshot.accepted.end(writer).is_none_or(|end| last < end)
        {
            if state.is_alive && last > 0 {
                return Err(Error::conflict(format!("the writer of {file} is alive: it may write there"))
                    .with_hint("end the process first; fieldstone status STORE --writers names it"));
            }
            return Ok((Lost::Beyond { last, known }, Concerned::default()));
        }
        let damaged = self.concerned(snapshot, (writer, number), true)?;
        if number > 0 {
            let living = snapshot.log(writer).map(|log| log.record.data_logs.clone());
            let taken = || snapshot.taken.log(writer).map(|(_, log)| log.row.data_logs.clone());
            let data_logs = living.or_else(taken).unwrap_or_default();
            let length = data_logs.iter().find(|(n, _)| *n == number).map(|(_, length)| *length);
            let length = length.ok_or_else(|| nothing(file, "no commit names it"))?;
            let missing = self.journal().medium().inspect().data_loss(writer, number, length)?
                == Some(DataLoss::Missing);
            if missing {
                return Ok((Lost::Whole, self.concerned(snapshot, (writer, number), false)?));
            }
        }
        match damaged.entries.is_empty() {
            true => Err(nothing(file, "all that commits name there can be read")),
            false => {
                let mut entries = damaged.entries.clone();
                entries.sort_unstable();
                entries.dedup();
                Ok((Lost::Entries(entries), damaged))
            }
        }
    }

    /// The entries with bytes in a file that are not given up yet; `damaged`: those that cannot be read.
    fn concerned(
        &self,
        snapshot: &Snapshot,
        (writer, number): (Id, u32),
        damaged: bool,
    ) -> Result<Concerned> {
        let mut concerned = Concerned::default();
        // Entries of a takeover may have their bytes in the data logs of any log that it replaces.
        let may_hold = |source: &EntrySource| match source {
            EntrySource::Segment(segment, _) => segment.writer == writer,
            EntrySource::Takeover(_) => number > 0,
        };
        for (index, source) in snapshot.sources.iter().enumerate().filter(|(_, source)| may_hold(source)) {
            let mut cursor = EntryCursor::tolerant(source, index);
            while cursor.advance()? {
                let part = Part::decode(snapshot, index, cursor.place(), cursor.value())?;
                let file = match &part.entry.location {
                    Location::Blocks { file, .. } => *file,
                    Location::Removed { .. }
                    | Location::None
                    | Location::Grown(_)
                    | Location::External(_) => continue,
                    _ => 0,
                };
                let is_there = part.holder == writer && file == number;
                if !is_there || snapshot.gives_up(&part.commit, part.holder, &part.entry) {
                    continue;
                }
                if damaged {
                    match Source::new(self.journal().files(), &part, cursor.key()).verify() {
                        Ok(_) => continue,
                        Err(e) if e.kind() == ErrorKind::Corrupt => {}
                        Err(e) => return Err(e),
                    }
                }
                concerned.entries.push((part.commit.sequence, part.entry.ordinal));
                concerned.keys.push(key_text(cursor.key()));
            }
        }
        Ok(concerned)
    }
}

/// The writer and the number of the file that a name, or a path, names as messages do.
fn named_file(name: &str) -> Result<(Id, u32)> {
    let last = name.rsplit('/').next().unwrap_or(name);
    let of_log = log::parse_file_name(last).or_else(|| Id::parse(last)).map(|writer| (writer, 0));
    of_log.or_else(|| data::parse_file_name(last)).ok_or_else(|| {
        Code::Value
            .error(format!("{name:?} is not the name of a log or a data log"))
            .with_hint("give the file as messages do, such as logs/0123….log or data/0123…-1.data")
    })
}

fn nothing(file: &str, why: &str) -> Error {
    Error::invalid(format!("there is no loss of {file} to accept: {why}"))
        .with_hint("fieldstone verify STORE names the files that lost something")
}
