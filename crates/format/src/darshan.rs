//! The helper's frames on a Darshan log: its job, the names of its files, and its reads and writes. Normative
//! text: `spec/helper-protocol.md`, "Darshan".
//!
//! Invariants:
//! * the numbers of records are 64 bits and never pass through a float;
//! * an unrecorded value is `None`, never a negative number;
//! * a frame of another form is Corrupt.
//!
//! ```
//! use fieldstone_format::darshan::DarshanPart;
//! let frame = serde_json::json!({"names": [[15920181672442173319u64, "<STDOUT>"]]});
//! let part = DarshanPart::parse("darshan-names", &frame)?;
//! assert_eq!(part, Some(DarshanPart::Names(vec![(15920181672442173319, "<STDOUT>".to_owned())])));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::{Error, Result};
use serde_json::Value;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Columns of a record in a frame.
const COLUMNS: usize = 12;
/// Seconds that no job runs: a later moment counts as unrecorded.
const LONGEST: f64 = 1e9;

/// A part of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum DarshanPart {
    /// The job; comes first.
    Job(DarshanJob),
    /// Numbers of records with names.
    Names(Vec<(u64, String)>),
    /// Records of a module.
    Records(String, Vec<DarshanRecord>),
}

/// A log's description of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DarshanJob {
    /// Digest of the log's bytes, 64 hexadecimal digits.
    pub sha256: String,
    /// The job's number.
    pub number: i64,
    /// Its user.
    pub uid: i64,
    /// Its processes.
    pub nprocs: i64,
    /// When it began, nanoseconds since 1970.
    pub start: u64,
    /// When it ended; `None` if that is not recorded.
    pub end: Option<u64>,
    /// The program and its arguments, as one line.
    pub exe: String,
    /// Version of the log's format.
    pub version: String,
    /// Modules that it has.
    pub modules: Vec<String>,
    /// Modules that ran out of room for their records.
    pub partial: Vec<String>,
}

/// Reads or writes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DarshanAccess {
    /// Number of calls.
    pub count: Option<u64>,
    /// Number of bytes.
    pub bytes: Option<u64>,
    /// When the first began, nanoseconds since the job's start.
    pub begin: Option<u64>,
    /// When the last ended.
    pub end: Option<u64>,
}

/// Accesses of a process, or of all of them together, to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DarshanRecord {
    /// The file's number.
    pub file: u64,
    /// The process; `None` for all together.
    pub rank: Option<u64>,
    /// Reads.
    pub read: DarshanAccess,
    /// Writes.
    pub write: DarshanAccess,
    /// When it was first opened, nanoseconds since the job's start.
    pub opened: Option<u64>,
    /// When it was last closed.
    pub closed: Option<u64>,
}

impl DarshanPart {
    /// Parses a frame of this kind; `None` for a kind that does not belong to Darshan.
    pub fn parse(kind: &str, frame: &Value) -> Result<Option<DarshanPart>> {
        let part = match kind {
            "darshan-job" => DarshanPart::Job(job(frame).ok_or_else(|| broken(kind))?),
            "darshan-names" => {
                let name = |pair: &Value| match pair.as_array()?.as_slice() {
                    [number, name] => Some((number.as_u64()?, name.as_str()?.to_owned())),
                    _ => None,
                };
                DarshanPart::Names(list(frame, "names", name).ok_or_else(|| broken(kind))?)
            }
            "darshan-records" => {
                let module = frame.get("module").and_then(Value::as_str).ok_or_else(|| broken(kind))?;
                let records = list(frame, "records", record).ok_or_else(|| broken(kind))?;
                DarshanPart::Records(module.to_owned(), records)
            }
            _ => return Ok(None),
        };
        Ok(Some(part))
    }
}

fn broken(kind: &str) -> Error {
    Error::corrupt(format!("the helper sent a malformed frame {kind}"))
}

fn list<T>(frame: &Value, name: &str, one: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    frame.get(name)?.as_array()?.iter().map(one).collect()
}

fn job(frame: &Value) -> Option<DarshanJob> {
    let text = |name: &str| frame.get(name)?.as_str().map(str::to_owned);
    let number = |name: &str| frame.get(name)?.as_i64();
    let texts = |name: &str| list(frame, name, |text| text.as_str().map(str::to_owned));
    let sha256 = text("sha256").filter(|digest| digest.len() == 64 && digest.is_ascii())?;
    Some(DarshanJob {
        sha256,
        number: number("number")?,
        uid: number("uid")?,
        nprocs: number("nprocs")?,
        start: moment(frame.get("start")?)?,
        // 0 is the end of a log that does not record the job's end.
        end: moment(frame.get("end")?).filter(|end| *end > 0),
        exe: text("exe")?,
        version: text("version")?,
        modules: texts("modules")?,
        partial: texts("partial")?,
    })
}

/// Seconds and nanoseconds.
fn moment(pair: &Value) -> Option<u64> {
    let [seconds, nanoseconds] = pair.as_array()?.as_slice() else { return None };
    let within = nanoseconds.as_u64().filter(|within| *within < SECOND)?;
    seconds.as_u64()?.checked_mul(SECOND)?.checked_add(within)
}

fn record(row: &Value) -> Option<DarshanRecord> {
    let row = row.as_array().filter(|row| row.len() == COLUMNS)?;
    // A negative counter is not recorded; it must still be a whole number.
    let counter = |at: usize| Some(u64::try_from(row.get(at)?.as_i64()?).ok());
    let since_start = |at: usize| {
        let seconds = row.get(at)?.as_f64()?;
        // 0 is the moment of an event that did not happen.
        let known = (seconds > 0.0 && seconds < LONGEST).then_some(seconds * SECOND as f64);
        Some(known.map(|nanoseconds| nanoseconds.round() as u64))
    };
    let access = |counters: usize, moments: usize| {
        Some(DarshanAccess {
            count: counter(counters)?,
            bytes: counter(counters + 1)?,
            begin: since_start(moments)?,
            end: since_start(moments + 1)?,
        })
    };
    let rank = row.get(1)?.as_i64().filter(|rank| *rank >= -1)?;
    Some(DarshanRecord {
        file: row.first()?.as_u64()?,
        rank: u64::try_from(rank).ok(),
        read: access(2, 6)?,
        write: access(4, 8)?,
        opened: since_start(10)?,
        closed: since_start(11)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn records(row: Value) -> Result<Option<DarshanPart>> {
        DarshanPart::parse("darshan-records", &json!({"module": "POSIX", "records": [row]}))
    }

    #[test]
    fn counters_below_zero_and_moments_of_zero_are_not_recorded() {
        let file = u64::MAX - 1;
        let row = json!([file, -1, 3, 10, -1, -1, 0.5, 1.25, 0.0, -1, 1e300, 2]);
        let Ok(Some(DarshanPart::Records(module, records))) = records(row) else { panic!("no records") };
        let read = DarshanAccess {
            count: Some(3),
            bytes: Some(10),
            begin: Some(SECOND / 2),
            end: Some(SECOND / 4 * 5),
        };
        let write = DarshanAccess::default();
        let expected =
            DarshanRecord { file, rank: None, read, write, opened: None, closed: Some(2 * SECOND) };
        assert_eq!((module.as_str(), records), ("POSIX", vec![expected]));
    }

    #[test]
    fn frames_of_another_form_are_refused() {
        for row in [
            json!([1, 0, 3, 10, 0, 0, 0, 0, 0, 0, 0]),
            json!([1.5, 0, 3, 10, 0, 0, 0, 0, 0, 0, 0, 0]),
            json!([1, -2, 3, 10, 0, 0, 0, 0, 0, 0, 0, 0]),
            json!([1, 0, 3, 10.5, 0, 0, 0, 0, 0, 0, 0, 0]),
            json!([1, 0, 3, 10, 0, 0, null, 0, 0, 0, 0, 0]),
        ] {
            assert!(records(row.clone()).is_err(), "{row}");
        }
        let job = json!({"sha256": "0".repeat(64), "number": 1, "uid": 2, "nprocs": 1, "start": [5, 7],
            "end": [0, 0], "exe": "", "version": "3.41", "modules": [], "partial": []});
        let Ok(Some(DarshanPart::Job(parsed))) = DarshanPart::parse("darshan-job", &job) else {
            panic!("no job")
        };
        assert_eq!((parsed.start, parsed.end), (5 * SECOND + 7, None));
        for (name, value) in [("start", json!([5, SECOND])), ("start", json!([-1, 0])), ("uid", json!("x"))] {
            let mut job = job.clone();
            job[name] = value;
            assert!(DarshanPart::parse("darshan-job", &job).is_err(), "{name}");
        }
        assert_eq!(DarshanPart::parse("rows", &json!({})).unwrap(), None);
    }
}
