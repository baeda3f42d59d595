//! Darshan logs: reads and writes of a job's processes, file by file.
//!
//! The helper reads the log; this module turns its records into rows:
//!
//! * The job's id is `<number>-<start in seconds>-<first 12 digits of the log's SHA-256>`: all logs of a job's programs
//!   have its number, and numbers restart with the machine's counter; the digest distinguishes them.
//! * A file that all ranks opened has one record without a rank: its relations are the job's. All others belong to the
//!   process `<id of the job>/<rank>`. Only processes with a record appear.
//! * Several layers of one program see the same file. The lowest that saw data move gives the amount: POSIX or DFS,
//!   else MPI-IO, else PnetCDF's variables, else HDF5's data sets. STDIO is not built on the others, and is added.
//! * The program is a file if its path is absolute; `./a.out` means another file in each folder, and is only in `argv`.
//! * Standard input, output and error are not files, and files that were only opened have no relation.
//! * Older logs give a job's start in whole seconds, and events in fractions since the start. Their `until` is almost a
//!   second later than the log says, so that a write surely counts as earlier than a read in another job of the same
//!   second; the price is that it may also count as earlier when it was not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};

use super::props::{PropList, Span, count, put_execution, relation};
use super::{GraphRows, VertexName, VertexPut};
use crate::interop::helper::{DarshanAccess, DarshanJob, DarshanPart, DarshanRecord, Helper, HelperOptions};

const SECOND: u64 = 1_000_000_000;
/// Layers, the lowest first, each built on one before it; then the module next to them.
const MODULES: [&str; 6] = ["POSIX", "DFS", "MPI-IO", "PNETCDF_VAR", "H5D", "STDIO"];
/// Index of the module next to the layers.
const STDIO: usize = 5;
/// Darshan's names of the standard streams.
const STREAMS: [&str; 3] = ["<STDIN>", "<STDOUT>", "<STDERR>"];
/// The numbers of their records, which stay the same in anonymised logs.
const STREAM_NUMBERS: [u64; 3] =
    [14_734_109_647_742_566_553, 15_920_181_672_442_173_319, 7_238_257_241_479_193_519];
/// Digits of the digest in a job's id.
const DIGITS: usize = 12;

/// Reads a log through a helper, which is started if there is none.
pub fn read(helper: &mut Option<Helper>, options: &HelperOptions, path: &Path) -> Result<GraphRows> {
    let named = |error: Error| error.context(path.display());
    if helper.is_none() {
        *helper = Some(Helper::start(options)?);
    }
    let Some(running) = helper else { return Err(Error::internal("no helper runs")) };
    let mut log = DarshanRows::default();
    let outcome = running.darshan(path, |part| {
        log.add(part);
        Ok(())
    });
    if let Err(error) = outcome {
        // On a damaged log the library may have written to wrong memory: the next log gets a new process.
        *helper = None;
        if error.code() != Code::HelperFailed {
            return Err(named(error));
        }
        let why = format!("Darshan's library cannot read the log: {}", error.message());
        let hint = "the log is damaged, or newer than the Python package darshan";
        return Err(named(Error::corrupt(why).with_hint(hint)));
    }
    log.rows().map_err(named)
}

/// A log as it arrives from the helper.
#[derive(Debug, Clone, Default)]
pub struct DarshanRows {
    job: Option<DarshanJob>,
    names: HashMap<u64, String>,
    /// By file, each with the index of its module.
    files: BTreeMap<u64, Vec<(usize, DarshanRecord)>>,
    ranks: BTreeSet<u64>,
    /// The last moment that a record has, since the job's start.
    seen: Option<u64>,
}

/// Reads or writes of one execution and file.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    bytes: u64,
    begin: Option<u64>,
    end: Option<u64>,
}

impl DarshanRows {
    /// Takes a part.
    pub fn add(&mut self, part: DarshanPart) {
        match part {
            DarshanPart::Job(job) => self.job = Some(job),
            DarshanPart::Names(names) => self.names.extend(names),
            DarshanPart::Records(module, records) => {
                let Some(place) = MODULES.iter().position(|known| *known == module) else { return };
                for record in records {
                    self.ranks.extend(record.rank);
                    self.seen = self.seen.max(record.read.end).max(record.write.end);
                    self.files.entry(record.file).or_default().push((place, record));
                }
            }
        }
    }

    /// The rows of the log. Corrupt if it describes no job, or an impossible one.
    pub fn rows(&self) -> Result<GraphRows> {
        let job = self.job.as_ref().ok_or_else(|| Error::corrupt("the log does not describe its job"))?;
        if job.start == 0 || job.nprocs < 1 {
            let why = format!("a job of {} processes that began at {}", job.nprocs, job.start);
            return Err(Error::corrupt(format!("the Darshan log is damaged: {why}")));
        }
        let mut rows = GraphRows::default();
        let times = Times::of(job, self.seen);
        let digest: String = job.sha256.chars().take(DIGITS).collect();
        let id = format!("{}-{}-{digest}", job.number, job.start / SECOND);
        let vertex = VertexName::new("job", &id);
        put_job(job, &vertex, &times, &mut rows)?;
        self.put_processes(&vertex, &times, &mut rows)?;
        let (mut opened, mut nameless) = (0u64, 0u64);
        for (&file, records) in &self.files {
            // 0 is a data set whose file is not in the log.
            if file == 0 || self.is_stream(file) {
                continue;
            }
            // Names may be lost, or anonymised; their hash is the same in every log.
            let name = self.names.get(&file).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| {
                nameless += 1;
                file.to_string()
            });
            let target = VertexName::new("file", &name);
            let before = rows.relations.len();
            for kind in ["read", "write"] {
                put_accesses(kind, records, (&vertex, &target), &times, &mut rows)?;
            }
            opened += u64::from(rows.relations.len() == before);
        }
        if opened > 0 {
            rows.notes.push(format!("job {id}: left out {opened} files that were only opened"));
        }
        if nameless > 0 {
            rows.notes.push(format!("job {id}: {nameless} files have a number but no name in the log"));
        }
        Ok(rows)
    }

    fn put_processes(&self, job: &VertexName, times: &Times, rows: &mut GraphRows) -> Result<()> {
        for &rank in &self.ranks {
            let process = process(job, rank);
            rows.relations.push(relation("contains", job, &process, times.job()));
            let rank = count(rank);
            let fixed = Some(super::Props::of([("rank", &rank)])?);
            rows.vertices.push(VertexPut { fixed, time: Some(times.start), ..VertexPut::new(process) });
        }
        Ok(())
    }

    fn is_stream(&self, file: u64) -> bool {
        STREAM_NUMBERS.contains(&file)
            || self.names.get(&file).is_some_and(|name| STREAMS.contains(&name.as_str()))
    }
}

fn put_job(job: &DarshanJob, vertex: &VertexName, times: &Times, rows: &mut GraphRows) -> Result<()> {
    let words: Vec<&str> = job.exe.split_whitespace().collect();
    let mut props = PropList::of_source("darshan");
    props.set("argv", Value::List(words.iter().map(|word| Value::Text((*word).to_owned())).collect()));
    props.set("nprocs", Value::Int(job.nprocs));
    props.set("number", Value::Int(job.number));
    props.set("log_version", Value::Text(job.version.clone()));
    let span = Span { begin: job.start, end: job.end };
    put_execution(rows, vertex, span, props, &PropList::default())?;
    let user = VertexName::new("user", &job.uid.to_string());
    rows.relations.push(relation("run", &user, vertex, times.job()));
    // `./a.out` is another program in each folder, and the log does not name the folder.
    if let Some(program) = words.first().filter(|program| program.starts_with('/')) {
        let program = VertexName::new("file", program);
        let begin = Span { begin: job.start, end: None };
        rows.relations.push(relation("exe", vertex, &program, begin));
    }
    if job.end.is_none() {
        rows.notes.push(format!("{vertex}: its end is not in the log: it was still running, or was stopped"));
    }
    if !job.partial.is_empty() {
        let modules = job.partial.join(", ");
        rows.notes.push(format!("{vertex}: the log is partial: it had no room for all records of {modules}"));
    }
    Ok(())
}

/// The relations of one kind between a file and its readers or writers.
fn put_accesses(
    kind: &str,
    records: &[(usize, DarshanRecord)],
    (job, target): (&VertexName, &VertexName),
    times: &Times,
    rows: &mut GraphRows,
) -> Result<()> {
    let is_moved = |(_, record): &&(usize, DarshanRecord)| {
        let access = access(record, kind);
        access.count.unwrap_or(0) > 0 || access.bytes.unwrap_or(0) > 0
    };
    let moved: Vec<&(usize, DarshanRecord)> = records.iter().filter(is_moved).collect();
    let seen: BTreeSet<usize> = moved.iter().map(|(place, _)| *place).collect();
    let lowest = seen.first().copied();
    let mut sums: BTreeMap<Option<u64>, Sum> = BTreeMap::new();
    for (place, record) in &moved {
        if *place == STDIO || Some(*place) == lowest {
            sums.entry(record.rank).or_default().add(access(record, kind), record);
        }
    }
    let text = |module: &&str| Value::Text((*module).to_owned());
    let modules = Value::List(seen.iter().filter_map(|place| MODULES.get(*place)).map(text).collect());
    for (rank, sum) in sums {
        let source = rank.map_or_else(|| job.clone(), |rank| process(job, rank));
        let mut put = relation(kind, &source, target, times.span(&sum));
        let mut props = PropList::default();
        props.set("bytes", count(sum.bytes));
        props.set("count", count(sum.count));
        props.set("modules", modules.clone());
        put.props = props.props()?;
        rows.relations.push(put);
    }
    Ok(())
}

fn access(record: &DarshanRecord, kind: &str) -> DarshanAccess {
    if kind == "read" { record.read } else { record.write }
}

fn process(job: &VertexName, rank: u64) -> VertexName {
    VertexName::new("process", &format!("{}/{rank}", job.id))
}

impl Sum {
    fn add(&mut self, access: DarshanAccess, record: &DarshanRecord) {
        self.count = self.count.saturating_add(access.count.unwrap_or(0));
        self.bytes = self.bytes.saturating_add(access.bytes.unwrap_or(0));
        let (begin, end) = (access.begin.or(record.opened), access.end.or(record.closed));
        self.begin = [self.begin, begin].into_iter().flatten().min();
        self.end = [self.end, end].into_iter().flatten().max();
    }
}

/// The times of a job.
struct Times {
    start: u64,
    end: Option<u64>,
    /// The last moment that a record has, since the start.
    seen: Option<u64>,
    /// How much later than the log says events may have happened.
    slack: u64,
}

impl Times {
    fn of(job: &DarshanJob, seen: Option<u64>) -> Times {
        let whole = |moment: u64| moment.is_multiple_of(SECOND);
        let coarse = whole(job.start) && job.end.is_none_or(whole);
        Times { start: job.start, end: job.end, seen, slack: if coarse { SECOND - 1 } else { 0 } }
    }

    fn job(&self) -> Span {
        Span { begin: self.start, end: self.end.map(|end| self.late(end)) }
    }

    /// From the first to the last access; if the log has no times, the duration of the job.
    fn span(&self, sum: &Sum) -> Span {
        let since = |moment: u64| self.start.saturating_add(moment);
        let end = sum.end.map(since).or(self.end).or(self.seen.map(since)).unwrap_or(self.start);
        Span { begin: sum.begin.map_or(self.start, since), end: Some(self.late(end)) }
    }

    fn late(&self, moment: u64) -> u64 {
        moment.saturating_add(self.slack)
    }
}

#[cfg(test)]
#[path = "darshan_tests.rs"]
mod tests;
