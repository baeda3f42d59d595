//! Accepting a loss: what of a log, a data log or damaged entries is given up for good, so that reads go on without it. Of files
//! that hold entries of several writers (takeovers, their data logs, array files), damaged entries are given up by writer.
//!
//! Invariants:
//! * what can still be read is never given up: a log counts up to its last commit that can be read, and of a data log that
//!   is there only entries whose blocks do not match their checksums are named; of an index, the blocks that cannot be read;
//! * what the folder holds now decides, not what this handle read of it before.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::acceptance::{ACCEPTANCES_SINCE, Acceptance, KEYS_MAX, Lost};
use fieldstone_format::entry::Location;
use fieldstone_format::keys::key_text;
use fieldstone_format::takeover::{self, TakeoverTable};
use fieldstone_format::{Id, data, log, marker};
use fieldstone_journal::entry_source::EntryCursor;
use fieldstone_journal::journal::FileState;
use fieldstone_journal::medium::DataLoss;
use fieldstone_journal::takeover::Takeover;
use fieldstone_journal::{Journal, Session};

use crate::api::AcceptanceReport;
use crate::files::Files;
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

impl Concerned {
    fn add(&mut self, part: &Part, key: &[u8]) {
        self.entries.push((part.commit.sequence, part.entry.ordinal));
        self.keys.push(key_text(key));
    }

    fn lost(&self) -> Lost {
        let mut entries = self.entries.clone();
        entries.sort_unstable();
        entries.dedup();
        Lost::Entries(entries)
    }
}

impl LocalStore {
    /// Accepts what a file lost, durably and for good; see the facade's `Store::accept`.
    pub fn accept(&self, name: &str, why: &str, session: &Session) -> Result<AcceptanceReport> {
        let journal = self.journal();
        journal.access().check_writable()?;
        let named = named_file(name)?;
        journal.looks().refresh()?;
        let snapshot = journal.looks().snapshot()?;
        let losses = Losses { journal, snapshot: &snapshot, why, session };
        match named {
            NamedFile::Writers(writer, number) if losses.is_shared(writer, number)? => {
                losses.accept_entries(&journal.files().shown(writer, number))
            }
            NamedFile::Writers(writer, number) => losses.accept(writer, number),
            NamedFile::Shared(file) => losses.accept_entries(&file),
            NamedFile::Beside(file) => losses.accept_file(&file),
        }
    }
}

/// Losses that one call accepts.
struct Losses<'a> {
    journal: &'a Journal,
    snapshot: &'a Snapshot,
    why: &'a str,
    session: &'a Session,
}

impl Losses<'_> {
    /// Accepts what a log, or a data log, lost.
    fn accept(&self, writer: Id, number: u32) -> Result<AcceptanceReport> {
        let state = self.journal.acceptances().file_state(writer)?;
        let owner = state.owner.or_else(|| Some(takeover_of(self.snapshot, writer)?.user));
        self.check_may(writer, owner)?;
        let file = self.journal.medium().shown(writer, number);
        let (lost, concerned) = self.lost((writer, number), &state, &file)?;
        self.record(writer, number, lost, concerned.keys)
    }

    /// Checks that the caller may accept a loss of this owner, before anything is said of it.
    fn check_may(&self, writer: Id, owner: Option<u32>) -> Result<()> {
        self.journal.acceptances().check_may(writer, owner, self.snapshot, self.session)?;
        self.journal.format().check(ACCEPTANCES_SINCE, "an accepted loss")
    }

    /// Puts a loss on record.
    fn record(&self, writer: Id, number: u32, lost: Lost, mut keys: Vec<String>) -> Result<AcceptanceReport> {
        let fields = if number == 0 && lost == Lost::Entries(Vec::new()) { 0 } else { keys.len() as u64 };
        keys.truncate(KEYS_MAX);
        let acceptance = Acceptance { writer, number, lost, why: self.why.to_owned(), fields, keys };
        let loss = self.journal.acceptances().accept(acceptance, self.session)?;
        Ok(report::acceptance(&*self.journal.env().identity, &loss, self.journal.files()))
    }

    /// Whether a data log is there, and one of a takeover: it holds entries of several writers.
    fn is_shared(&self, id: Id, number: u32) -> Result<bool> {
        let there = || self.journal.medium().inspect().data_loss(id, number, 0).map(|loss| loss.is_none());
        Ok(number > 0 && takeover_of(self.snapshot, id).is_some() && there()?)
    }

    /// Whether parts of a log cannot be read that belong to no entry.
    fn has_damage(&self, writer: Id) -> bool {
        let Some(log) = self.snapshot.log(writer) else { return false };
        let (accepted, mut damaged) = (&self.snapshot.accepted, false);
        let walked = self.journal.medium().inspect().check(log, &mut |ends, outcome| {
            let is_accepted = accepted.concerns_commit(writer, ends.sequence)
                || accepted.has_block_within(writer, &(ends.frame..ends.end()));
            damaged |= outcome.is_err() && !is_accepted;
        });
        damaged || walked.is_err()
    }

    /// Accepts what a file lost that holds entries of several writers, a takeover, a data log of one, or an array file: the
    /// entries that cannot be read are named, by writer.
    fn accept_entries(&self, file: &str) -> Result<AcceptanceReport> {
        let files = self.journal.files();
        let mut by_writer: BTreeMap<Id, Concerned> = BTreeMap::new();
        self.each_entry(&mut |part, key| {
            let is_there = file_of(files, part).is_some_and(|held| held == file);
            if is_there && is_damaged(files, part, key)? {
                by_writer.entry(part.commit.writer).or_default().add(part, key);
            }
            Ok(())
        })?;
        if by_writer.is_empty() {
            return self.accept_index(file);
        }
        for writer in by_writer.keys() {
            self.check_may(*writer, self.snapshot.user_of(*writer))?;
        }
        let (mut entries, mut keys, mut report) = (0, Vec::new(), None);
        for (writer, concerned) in by_writer {
            entries += concerned.entries.len();
            keys.extend(concerned.keys.iter().cloned());
            report = Some(self.record(writer, 0, concerned.lost(), concerned.keys)?);
        }
        let report = report.ok_or_else(|| Error::internal("nothing was accepted"))?;
        let (file, fields) = (file.to_owned(), keys.len() as u64);
        keys.truncate(KEYS_MAX);
        let what = format!("{entries} damaged entries are given up");
        Ok(AcceptanceReport { file, what, fields, keys, ..report })
    }

    /// Accepts what the index of a takeover lost: nobody knows which entries stood in its damaged blocks.
    fn accept_index(&self, file: &str) -> Result<AcceptanceReport> {
        let mut takeovers = self.snapshot.taken.takeovers().all().iter();
        let Some(takeover) = takeovers.find(|takeover| takeover.shown == file) else {
            return Err(self.no_entries(file));
        };
        let blocks = damaged_blocks(takeover)?;
        if blocks.is_empty() {
            return Err(self.no_entries(file));
        }
        let id = takeover.header.id;
        self.check_may(id, Some(takeover.user))?;
        let report = self.record(id, 0, Lost::Index(blocks), Vec::new())?;
        Ok(AcceptanceReport { file: file.to_owned(), ..report })
    }

    /// The blocks of a log's index that cannot be read.
    fn damaged_segments(&self, writer: Id) -> Result<Vec<(u32, u64)>> {
        let mut blocks = Vec::new();
        for segment in self.snapshot.log(writer).iter().flat_map(|log| &log.segments) {
            // Without its list of blocks nobody knows where they are.
            let Ok(meta) = segment.meta() else { return Ok(Vec::new()) };
            for (index, place) in meta.directory.iter().enumerate() {
                match segment.block_uncached(index) {
                    Err(e) if e.kind() == ErrorKind::Corrupt && !segment.gives_up(index) => {
                        blocks.push((segment.reference.file, segment.reference.offset + place.offset));
                    }
                    Err(e) if e.kind() != ErrorKind::Corrupt => return Err(e),
                    _ => {}
                }
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        Ok(blocks)
    }

    /// Why no entry of a file can be given up.
    fn no_entries(&self, file: &str) -> Error {
        let mut takeovers = self.snapshot.taken.takeovers().all().iter();
        let is_whole = |takeover: &Arc<Takeover>| {
            let is_sound = |table| {
                table == TakeoverTable::Entries && takeover.gives_up(None)
                    || takeover.check(table, |_, _| Ok(())).is_ok()
            };
            TakeoverTable::ALL.into_iter().all(is_sound)
        };
        let is_named = self.snapshot.problems.iter().any(|problem| problem.damage && problem.file == file);
        match takeovers.find(|takeover| takeover.shown == file) {
            Some(takeover) if is_whole(takeover) => nothing(file, "all that it holds can be read"),
            None if !is_named => nothing(file, "all that commits name there can be read"),
            _ => unnamed(file),
        }
    }

    /// Accepts the loss of a mesh or a kept partition, which the facade has found damaged: the record names the file.
    fn accept_file(&self, file: &str) -> Result<AcceptanceReport> {
        let files = self.journal.medium().files();
        let root = files.map(|files| files.root().to_owned()).unwrap_or_default();
        let owner = self.journal.env().disk.stat(&root.join(file)).ok().map(|stat| stat.uid);
        let user = self.journal.access().user(self.session);
        // Any log or takeover of the user's: it says who may.
        let own = self.snapshot.logs.iter().find(|log| log.uid == user).map(|log| log.writer);
        let taken = || {
            let mut all = self.snapshot.taken.takeovers().all().iter();
            all.find(|takeover| takeover.user == user).map(|takeover| takeover.header.id)
        };
        let writer = own.or_else(taken).unwrap_or(Id::LEAST);
        self.check_may(writer, owner)?;
        self.record(writer, 0, Lost::Entries(Vec::new()), vec![file.to_owned()])
    }

    /// Calls `each` with all entries that are not given up yet, of sources that can be read.
    fn each_entry(&self, each: &mut dyn FnMut(&Part, &[u8]) -> Result<()>) -> Result<()> {
        let snapshot = self.snapshot;
        for (index, source) in snapshot.sources.iter().enumerate() {
            let mut cursor = EntryCursor::tolerant(source, index);
            while cursor.advance()? {
                let part = Part::decode(snapshot, index, cursor.place(), cursor.value())?;
                if !snapshot.gives_up(&part.commit, part.holder, &part.entry) {
                    each(&part, cursor.key())?;
                }
            }
        }
        Ok(())
    }

    /// The lost part of a file, and the fields that it held.
    fn lost(&self, (writer, number): (Id, u32), state: &FileState, file: &str) -> Result<(Lost, Concerned)> {
        let snapshot = self.snapshot;
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
        let damaged = self.concerned((writer, number), true)?;
        if number > 0 {
            let living = snapshot.log(writer).map(|log| log.record.data_logs.clone());
            let taken = || snapshot.taken.log(writer).map(|(_, log)| log.row.data_logs.clone());
            let own = || takeover_of(snapshot, writer).map(|takeover| takeover.record.data_logs.clone());
            let data_logs = living.or_else(taken).or_else(own).unwrap_or_default();
            let length = data_logs.iter().find(|(n, _)| *n == number).map(|(_, length)| *length);
            let length = length.ok_or_else(|| nothing(file, "no commit names it"))?;
            let missing =
                self.journal.medium().inspect().data_loss(writer, number, length)? == Some(DataLoss::Missing);
            if missing {
                return Ok((Lost::Whole, self.concerned((writer, number), false)?));
            }
        }
        let in_index = if number == 0 { self.damaged_segments(writer)? } else { Vec::new() };
        match damaged.entries.is_empty() {
            true if !in_index.is_empty() => Ok((Lost::Index(in_index), damaged)),
            true if number == 0 && self.has_damage(writer) => Err(unnamed(file)),
            true => Err(nothing(file, "all that commits name there can be read")),
            false => Ok((damaged.lost(), damaged)),
        }
    }

    /// The entries with bytes in a file that are not given up yet; `damaged`: those that cannot be read.
    fn concerned(&self, (writer, number): (Id, u32), damaged: bool) -> Result<Concerned> {
        let mut concerned = Concerned::default();
        let files = self.journal.files();
        self.each_entry(&mut |part, key| {
            let file = match &part.entry.location {
                Location::Blocks { file, .. } => *file,
                Location::Removed { .. } | Location::None | Location::Grown(_) | Location::External(_) => {
                    return Ok(());
                }
                _ => 0,
            };
            let is_there = part.holder == writer && file == number;
            if is_there && (!damaged || is_damaged(files, part, key)?) {
                concerned.add(part, key);
            }
            Ok(())
        })?;
        Ok(concerned)
    }
}

/// The blocks with entries of a takeover that cannot be read; with one of the inner blocks goes all below it.
fn damaged_blocks(takeover: &Arc<Takeover>) -> Result<Vec<(u32, u64)>> {
    let Some(mut rows) = takeover.cursor(TakeoverTable::Entries) else { return Ok(Vec::new()) };
    let mut blocks: Vec<(u32, u64)> = Vec::new();
    loop {
        match rows.advance() {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                let failed = rows.failed().filter(|block| !takeover.gives_up(Some(*block)));
                blocks.extend(failed.map(|block| (block.file, block.offset)));
                if !rows.is_inside() {
                    break;
                }
            }
            Err(e) => return Err(e),
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    Ok(blocks)
}

/// Whether the bytes of an entry cannot be read.
fn is_damaged(files: &Files, part: &Part, key: &[u8]) -> Result<bool> {
    match Source::new(files, part, key).verify() {
        Ok(_) => Ok(false),
        Err(e) if e.kind() == ErrorKind::Corrupt => Ok(true),
        Err(e) => Err(e),
    }
}

/// The file that holds an entry's bytes, as messages name it.
fn file_of(files: &Files, part: &Part) -> Option<String> {
    match &part.entry.location {
        Location::Removed { .. } | Location::None | Location::External(_) => None,
        Location::Grown(grown) => Some(grown.path.clone()),
        Location::Blocks { file, .. } => Some(files.shown(part.holder, *file)),
        _ => Some(files.shown(part.holder, 0)),
    }
}

/// The takeover that has this id, as its data logs are named.
fn takeover_of(snapshot: &Snapshot, id: Id) -> Option<&Arc<Takeover>> {
    snapshot.taken.takeovers().all().iter().find(|takeover| takeover.header.id == id)
}

/// A file that a name, or a path, names as messages do.
enum NamedFile {
    /// The log (0), or a data log, of a writer.
    Writers(Id, u32),
    /// A file with entries of several writers, relative to the store's folder.
    Shared(String),
    /// A mesh or a kept partition, the same.
    Beside(String),
}

fn named_file(name: &str) -> Result<NamedFile> {
    let last = name.rsplit('/').next().unwrap_or(name);
    let of_log = log::parse_file_name(last).or_else(|| Id::parse(last)).map(|writer| (writer, 0));
    if let Some((writer, number)) = of_log.or_else(|| data::parse_file_name(last)) {
        return Ok(NamedFile::Writers(writer, number));
    }
    if takeover::parse_file_name(last).is_some() {
        return Ok(NamedFile::Shared(format!("logs/{last}")));
    }
    // The path within the store, also of one that was given from elsewhere.
    let within = |folder: &str| {
        let begin = name.starts_with(&format!("{folder}/")).then_some(0);
        begin.or_else(|| name.rfind(&format!("/{folder}/")).map(|at| at + 1)).map(|at| name[at..].to_owned())
    };
    if let Some(path) = within("arrays") {
        return Ok(NamedFile::Shared(path));
    }
    if let Some(path) = within("meshes").or_else(|| within("histories")) {
        return Ok(NamedFile::Beside(path));
    }
    let hint = match last {
        marker::FILE_NAME => "nothing is lost with it: fieldstone repair STORE --doit writes it again",
        _ => {
            "give the file as messages do, such as logs/0123….log, data/0123…-1.data, logs/u1000-3.takeover or \
             arrays/RUN/FILE.nc"
        }
    };
    Err(Code::Value
        .error(format!("{name:?} is not the name of a file whose loss can be accepted"))
        .with_hint(hint))
}

/// The error of a loss that has no names: it may be anything.
fn unnamed(file: &str) -> Error {
    Code::Checksum
        .error(format!("the index in {file} is damaged: nobody can say which fields are lost with it"))
        .with_hint(
            "mend it with fieldstone repair STORE --from BACKUP; without a backup, copy what can be read into another \
             store: fieldstone copy passes over what is damaged, and names it",
        )
}

fn nothing(file: &str, why: &str) -> Error {
    Error::invalid(format!("there is no loss of {file} to accept: {why}")).with_hint(
        "fieldstone verify STORE names the files that lost something; fieldstone repair STORE --doit mends what the store has \
         twice",
    )
}
