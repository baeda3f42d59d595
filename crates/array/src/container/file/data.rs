//! Data mode: the state of an open container, how it is read from a file, and how it is finished.
//!
//! Invariants: the number of records is written after the records, and the magic last; while records may grow over an
//! index, the file does not have it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fieldstone_core::env::Env;
use fieldstone_core::env::comm::{FileMode, Step, Team, TeamFile};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::trailer::{IndexPart, Locator};
use fieldstone_format::netcdf::write;
use fieldstone_format::partitioned::{self as partitioned_format, Head};

use super::defined_header::DefinedHeader;
use super::handles::Handles;
use super::header::OpenHeader;
use super::indexed_header::IndexedHeader;
use super::loaded_header::{LoadedHeader, ParsedHeader, shown_name, var_info};
use super::name_index;
use super::options::{CreateOptions, Mode, agree_on};
use super::source::{FileSource, UnfinishedSource};
use super::staging::Staging;
use super::truncation;
use crate::container::access::fill::Job;
use crate::container::access::{self, FillVar, PastEnd, Records};
use crate::container::define::version_of;
use crate::container::enddef::{Indexing, Report};
use crate::container::model::{Format, Metadata};
use crate::container::partitioned::{self, Reader};
use crate::container::words::{Words, words};

/// This rank's part of the name index of a header that was defined here.
#[derive(Debug)]
pub(super) struct IndexShare {
    pub part: IndexPart,
    /// Offsets of the three lists of the header.
    pub lists: [u64; 3],
    /// Whether names in the header are escaped paths.
    pub escaped: bool,
}

/// The state of a container in data mode.
#[derive(Debug)]
pub(super) struct DataMode {
    pub file: TeamFile,
    pub(super) staging: Mutex<Staging>,
    pub options: CreateOptions,
    pub metadata: Arc<dyn OpenHeader>,
    pub records: Arc<Records>,
    /// The positions of data, for writers: for a file that is read through its index, it only has the header's length
    /// and the record size; [`OpenHeader::layout`] has everything.
    pub layout: Layout,
    pub writable: bool,
    /// Whether the file under the path is this container, complete.
    pub(super) finished: AtomicBool,
    /// Whether that file was ever finished: then it is never removed, even if a later redefinition fails.
    pub(super) ever_finished: AtomicBool,
    pub(super) index: Option<IndexShare>,
    pub report: Report,
    /// The record variables that this rank fills as records are added, if filling is on.
    pub filled: Option<Vec<FillVar>>,
    pub(super) vars: Handles,
    pub(super) dims: Handles,
    /// Whether it has changed since it was opened.
    pub(super) changed: Mutex<bool>,
    /// Whether bytes that records would grow over follow the data: the first change cuts them.
    pub(super) tail: bool,
    /// The treatment of bytes beyond the end of the file.
    pub(super) past_end: PastEnd,
}

/// The combined knowledge of all ranks about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AgreedState {
    /// Number of records: the maximum over all ranks and the number in the file.
    pub numrecs: u64,
    /// Whether any rank has changed it since it was opened.
    pub changed: bool,
    /// Length of the file in bytes.
    pub len: u64,
}

words!(AgreedState { numrecs: u64, changed: bool, len: u64 });

impl DataMode {
    /// Collective: data mode of an existing container.
    pub fn open(team: &Team, env: &Env, path: &Path, mode: Mode) -> Result<DataMode> {
        agree_on(team, "open", path, Ok(mode.named_options()), || Ok(String::new()))?;
        let file_mode = if mode == Mode::Read { FileMode::Read } else { FileMode::ReadWrite };
        let file = team.open("open", path, file_mode).map_err(|error| opening(error, path))?;
        let data = Staging::of(env, path).and_then(|staging| DataMode::read(file.clone(), staging, mode));
        let data = team.agree("open", data.map_err(|error| error.context(path.display())));
        let data = data.inspect_err(|_| file.give_up())?;
        if team.size() > 1 {
            // A rank that writes alone could not cut the bytes after the data: that takes all ranks.
            data.cut_tail().inspect_err(|_| data.file.give_up())?;
        }
        Ok(data)
    }

    /// Collective: cuts the bytes after the data of a file that is about to change, if records grow: no record may
    /// show them. An index is written again at the end.
    fn cut_tail(&self) -> Result<()> {
        let mut changed = self.changed.lock();
        if self.tail && !*changed {
            self.file.set_len("cut", self.data_end(self.records.get()))?;
            *changed = true;
        }
        Ok(())
    }

    /// Records that the file is about to change.
    pub(super) fn changing(&self) -> Result<()> {
        if self.file.team().size() == 1 {
            if self.tail {
                self.records.raise(self.stated_records()?);
            }
            self.cut_tail()?;
        }
        *self.changed.lock() = true;
        Ok(())
    }

    /// Data mode of a writable container in which nothing was finished or changed yet.
    pub(super) fn new(
        file: TeamFile,
        staging: Staging,
        options: CreateOptions,
        metadata: Arc<dyn OpenHeader>,
        records: Arc<Records>,
        layout: Layout,
    ) -> DataMode {
        DataMode {
            file,
            staging: Mutex::new(staging),
            options,
            metadata,
            records,
            layout,
            writable: true,
            finished: AtomicBool::new(false),
            ever_finished: AtomicBool::new(false),
            index: None,
            report: Report::default(),
            filled: None,
            vars: Handles::default(),
            dims: Handles::default(),
            changed: Mutex::new(false),
            tail: false,
            past_end: PastEnd::Zeros,
        }
    }

    fn read(file: TeamFile, staging: Staging, mode: Mode) -> Result<DataMode> {
        let mut data = match is_partitioned(&file)? {
            true => DataMode::read_partitioned(file, staging, mode)?,
            false => DataMode::read_classic(file, staging, mode)?,
        };
        data.writable = mode == Mode::Append;
        data.finished = true.into();
        data.ever_finished = true.into();
        Ok(data)
    }

    fn read_partitioned(file: TeamFile, staging: Staging, mode: Mode) -> Result<DataMode> {
        let options = CreateOptions { format: Format::Partitioned, ..CreateOptions::default() };
        let reader = Arc::new(Reader::open(file.clone())?);
        let (records, layout) = (reader.records(), reader.layout()?);
        if mode == Mode::Append {
            truncation::check(&*reader, &layout, records.get(), file.len()?)?;
        }
        let mut data = DataMode::new(file, staging, options, reader, records, layout);
        data.past_end = if mode == Mode::Append { PastEnd::Zeros } else { PastEnd::Corrupt };
        Ok(data)
    }

    fn read_classic(file: TeamFile, staging: Staging, mode: Mode) -> Result<DataMode> {
        let source = Arc::new(FileSource(file.clone()));
        let file_len = file.len()?;
        let mut options = CreateOptions { indexing: Indexing::Never, ..CreateOptions::default() };
        let indexed = IndexedHeader::open(source.clone())?;
        if indexed.is_some() {
            options.indexing = Indexing::Always;
        }
        if let (Some(indexed), Mode::Read) = (indexed, mode) {
            let (records, locator) = (indexed.shared_records(), *indexed.locator());
            options.format = indexed.format();
            let (header_len, record_size) = (locator.header_len, locator.record_size);
            let layout = Layout { header_len, record_size, ..Layout::default() };
            let mut data = DataMode::new(file, staging, options, Arc::new(indexed), records, layout);
            data.past_end = PastEnd::Corrupt;
            return Ok(data);
        }
        let read = ParsedHeader::from(&*source)?;
        let records = Arc::new(Records::new(read.numrecs(&*source)?, read.raw.version));
        options.format = Format::Classic(read.raw.version);
        let (header, layout) = read.shown();
        let loaded = Arc::new(LoadedHeader::new(header, layout, records.clone()));
        // Unwritten variables may be beyond the end of a file; if the file is cut inside a variable, the missing part
        // was lost.
        let untruncated = truncation::check(&*loaded, &layout, records.get(), file_len);
        let past_end = if untruncated.is_ok() { PastEnd::Zeros } else { PastEnd::Corrupt };
        let mut tail = false;
        if mode == Mode::Append {
            truncation::can_grow(loaded.header(), &layout)?;
            untruncated?;
            tail = layout.record_size > 0 && layout.file_len(records.get()).is_some_and(|end| end < file_len);
        }
        let mut data = DataMode::new(file, staging, options, loaded, records, layout);
        (data.tail, data.past_end) = (tail, past_end);
        Ok(data)
    }

    pub fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock()
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> u64 {
        self.metadata.memory() + self.index.as_ref().map_or(0, |index| index.part.memory())
    }

    /// Removes a file that was never finished.
    pub fn discard(&self) {
        if !self.ever_finished.load(Ordering::Acquire) {
            self.staging().discard();
        }
    }

    /// Checks that it accepts further definitions.
    pub(super) fn may_define(&self) -> Result<()> {
        let path = self.staging().path().to_owned();
        if !self.writable {
            return Err(Code::ReadOnly
                .error(format!("{} is open for reading", path.display()))
                .with_hint("open it with mode a"));
        }
        if self.options.format == Format::Partitioned {
            let path = path.display();
            return Err(Code::ContainerFormat
                .error(format!("{path}: the partitioned header takes no further definitions"))
                .with_hint("convert it to cdf5, or define everything before the first enddef"));
        }
        Ok(())
    }

    /// Removes a temporary file that was never finished, because another file will replace it.
    pub(super) fn discard_temporary(&self) {
        let staging = self.staging();
        if !self.finished.load(Ordering::Acquire) && staging.is_temporary() {
            staging.discard();
        }
    }

    /// Converts the callers' numbers to those in the file.
    pub(super) fn handles(&self) -> (Handles, Handles) {
        match self.metadata.local_ids() {
            Some(ids) => (self.vars.through(ids.vars), self.dims.through(ids.dims)),
            None => (self.vars.clone(), self.dims.clone()),
        }
    }

    /// Collective: writes the fill value into all new variables, from local number `first` on, if filling is on, and
    /// records which record variables this rank fills from now on.
    pub(super) fn fill_new(&mut self, header: &DefinedHeader, first: usize) -> Result<()> {
        if !self.options.fill {
            return Ok(());
        }
        let (jobs, filled) = match self.fill_vars(header, first) {
            Ok((jobs, filled)) => (Ok(jobs), filled),
            Err(error) => (Err(error), Vec::new()),
        };
        access::fill::write_shared(&self.file, jobs)?;
        self.filled = Some(filled);
        Ok(())
    }

    fn fill_vars(&self, header: &DefinedHeader, first: usize) -> Result<(Vec<Job>, Vec<FillVar>)> {
        let (mut jobs, mut filled) = (Vec::new(), Vec::new());
        let mut mine = header.mine();
        let header = mine.header();
        for var in header.vars.iter().filter(|var| var.begin() != 0) {
            // All ranks know the existing variables; rank 0 takes care of them.
            if var.id() < first && self.file.team().rank() > 0 {
                continue;
            }
            let info = var_info(header, var.id(), self.layout.record_size, 0);
            let fill = FillVar::of(&info)?;
            if header.is_record(var) {
                // Existing records have no data yet for a new variable.
                let there = if var.id() >= first { self.records.get() } else { 0 };
                jobs.extend(fill.jobs(0, there, false));
                filled.push(fill);
            } else if var.id() >= first {
                jobs.extend(fill.job());
            }
        }
        Ok((jobs, filled))
    }

    pub(super) fn data_end(&self, numrecs: u64) -> Result<u64> {
        self.layout.file_len(numrecs).ok_or_else(|| {
            Code::ContainerLimit.error(format!("{numrecs} records end beyond byte {} of the file", i64::MAX))
        })
    }

    /// Collective: combines this state with changes that other handles made to a finished file since it was opened,
    /// so that no record that they added is lost (C-9).
    ///
    /// Errors: `Conflict` if this handle changed the file, or is about to, and another file took its place.
    pub(super) fn agree_state(&self, team: &Team, step: impl Into<Step>) -> Result<AgreedState> {
        let step = step.into();
        let finished = self.finished.load(Ordering::Acquire);
        let changed = *self.changed.lock();
        // Another handle may have raised the number in the file since this one read it.
        let stated = if finished && team.rank() == 0 { self.stated_records() } else { Ok(0) };
        let mine = stated.and_then(|stated| {
            let numrecs = stated.max(self.records.get());
            Ok(AgreedState { numrecs, changed, len: self.file.len()? }.to_words())
        });
        let agreed = AgreedState::from_words(&team.max(step, mine)?)?;
        self.records.raise(agreed.numrecs);
        if finished && agreed.changed {
            let own = if team.rank() == 0 { self.staging().check_own() } else { Ok(()) };
            team.agree(step, own)?;
        }
        Ok(agreed)
    }

    /// Collective: puts all data that any rank wrote into the file, and gives the file its name.
    pub fn finish(&self, team: &Team, durable: bool, closing: bool) -> Result<()> {
        if !self.writable {
            return team.barrier(if closing { "close" } else { "sync" });
        }
        let step = if closing { "close" } else { "sync" };
        let finished = self.finished.load(Ordering::Acquire);
        let AgreedState { numrecs, changed, len } = self.agree_state(team, step)?;
        if finished && !changed {
            return if durable { self.file.sync(step, Ok(())) } else { Ok(()) };
        }
        // Records may grow over the index, so the file does not have it during that time.
        let indexed = closing || self.layout.record_size == 0;
        if indexed && self.wants_index() {
            self.write_index(numrecs)?;
        } else if self.options.format != Format::Partitioned || numrecs * self.layout.record_size.min(1) > 0 {
            // Bytes of other writers after it stay.
            let end = team.agree(step, self.data_end(numrecs))?;
            if len < end {
                self.file.set_len("finish", Ok(end))?;
            }
        }
        let head = match self.options.format {
            Format::Classic(version) => {
                let mut head = Vec::new();
                write::put_head(&mut head, version, Some(numrecs));
                head
            }
            Format::Partitioned => partitioned::finished(numrecs),
        };
        // The file has its magic already: sync the records first, then write their number, so that the number never
        // counts records that a power cut could take away.
        if finished {
            if durable {
                self.file.sync("finish", Ok(()))?;
            }
            let root = team.rank() == 0;
            let counted = if root { self.file.write_at(&head[4..], 4) } else { Ok(()) };
            team.agree("finish", counted)?;
            if durable {
                self.file.sync("finish", Ok(()))?;
            }
            return Ok(());
        }
        self.staging().publish(&self.file, &head, durable)?;
        self.finished.store(true, Ordering::Release);
        self.ever_finished.store(true, Ordering::Release);
        Ok(())
    }

    /// The number of records in the header of the file under the path; 0 if its length gives the number.
    fn stated_records(&self) -> Result<u64> {
        let Format::Classic(version) = self.options.format else {
            let mut head = [0; Head::LEN];
            let read = self.file.read_at(&mut head, 0)?;
            return Ok(Head::decode(&head[..read])?.numrecs);
        };
        let (width, mut bytes) = (version.size_width(), [0; 8]);
        let read = self.file.read_at(&mut bytes[8 - width..], 4)?;
        let stated = u64::from_be_bytes(bytes);
        let in_range = read == width && stated <= self.records.most();
        Ok(if in_range { stated } else { 0 })
    }

    /// Whether the file gets an index: decided by its definition if it was defined here; otherwise if it had one.
    fn wants_index(&self) -> bool {
        let is_classic = self.options.format != Format::Partitioned;
        self.index.is_some() || (is_classic && self.options.indexing == Indexing::Always)
    }

    /// Collective.
    fn write_index(&self, numrecs: u64) -> Result<()> {
        let team = self.file.team();
        let end = self.data_end(numrecs);
        if let Some(IndexShare { part, lists, escaped }) = &self.index {
            let locator = self.metadata.counts().map(|counts| {
                let objects = (counts.dims as u32, counts.vars as u32);
                self.locator(objects, *lists, self.layout.header_len, *escaped)
            });
            let locator = team.agree("name index", locator)?;
            return name_index::write_index(&self.file, part, locator, end);
        }
        // These ranks have not defined the header: rank 0 reads it.
        let made = if team.rank() == 0 { self.part_from_file() } else { Ok(Default::default()) };
        let (part, locator) = match made {
            Ok((part, locator)) => (part, Ok(locator)),
            Err(error) => (IndexPart::default(), Err(error)),
        };
        let locator = team.broadcast("name index", 0, locator)?;
        let locator = Locator::decode(&locator);
        let locator = locator.ok_or_else(|| Error::internal("rank 0 has sent no locator of a name index"));
        name_index::write_index(&self.file, &part, team.agree("name index", locator)?, end)
    }

    /// The locator of this file's name index, without the checksum of its pages.
    fn locator(
        &self,
        (dims, vars): (u32, u32),
        [dims_at, attrs_at, vars_at]: [u64; 3],
        header_len: u64,
        escaped: bool,
    ) -> Locator {
        let record_size = self.layout.record_size;
        Locator { dims_at, attrs_at, vars_at, header_len, dims, vars, record_size, escaped, pages_crc: 0 }
    }

    fn part_from_file(&self) -> Result<(IndexPart, Vec<u8>)> {
        let version = version_of(self.options.format);
        let read = ParsedHeader::from(&UnfinishedSource(self.file.clone(), version))?;
        let (mut part, lists) = name_index::part_of(&read.raw, |name| shown_name(name, read.escaped));
        let end = read.layout.header_len;
        let (mut at, mut buffer) = (lists[0], vec![0; 1 << 20]);
        while at < end {
            let len = (end - at).min(buffer.len() as u64) as usize;
            let read = self.file.read_at(&mut buffer[..len], at)?;
            if read == 0 {
                return Err(Error::corrupt(format!("the header ends at byte {at}, {} too early", end - at)));
            }
            part.header.add(at, &buffer[..read]);
            at += read as u64;
        }
        let objects = (read.raw.dims.len() as u32, read.raw.vars.len() as u32);
        Ok((part, self.locator(objects, lists, end, read.escaped).encode().to_vec()))
    }
}

/// Whether a file has the partitioned header, finished or not.
fn is_partitioned(file: &TeamFile) -> Result<bool> {
    let mut magic = [0; 4];
    let read = file.read_at(&mut magic, 0)?;
    Ok(read == 4 && (magic.starts_with(b"FSP") || magic == partitioned_format::UNFINISHED))
}

fn opening(error: Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::NotFound => error.with_hint(format!("is {} the container's path?", path.display())),
        _ => error,
    }
}
