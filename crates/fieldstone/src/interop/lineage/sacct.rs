//! SLURM's accounting, as `sacct -P` lists it: jobs, their steps, owners and times.
//!
//! ```text
//! JobID|JobIDRaw|JobName|UID|Start|End|State|ExitCode|NodeList|WorkDir|SubmitLine
//! 17|17|forecast|1000|2026-11-21T07:00:00|2026-11-21T07:10:00|COMPLETED|0:0|n[1-4]|/home/ann|sbatch run.sh
//! 17.0|17.0|model||2026-11-21T07:00:05|2026-11-21T07:09:58|COMPLETED|0:0|n[1-4]||srun model
//! ```
//!
//! * The header names the columns, in any order; JobID or JobIDRaw and Start are required. Columns without a meaning
//!   here are kept in the property `slurm`.
//! * An allocation is the job `17`, a step the job `17.0` or `17.batch`, which the allocation contains: `srun` starts a
//!   step, whose tasks are the processes. If both ids are listed, SLURM's raw ones count, since a job finds those in
//!   its environment: the ids of arrays and of jobs with several parts, `17_4` and `17+1`, differ.
//! * Ids hold no cluster; a listing of several clusters is refused, because equal ids in it are different jobs.
//! * Jobs that have not begun are left out and noted.

use fieldstone_core::value::{Value, parse_moment};
use fieldstone_core::{Code, Result};

use super::props::{PropList, Span, put_execution, relation};
use super::{GraphRows, LineageOptions, VertexName};

/// Texts that mean no value.
const ABSENT: [&str; 6] = ["", "Unknown", "None", "N/A", "None assigned", "(null)"];
/// Columns that become properties or relations of their own.
const USED: [&str; 13] = [
    "JobID",
    "JobIDRaw",
    "JobName",
    "UID",
    "User",
    "Start",
    "End",
    "State",
    "ExitCode",
    "NodeList",
    "WorkDir",
    "SubmitLine",
    "Submit",
];
/// Columns about the course of a job, which belong to its end.
const LATE: [&str; 6] = ["Elapsed", "ElapsedRaw", "CPUTime", "CPUTimeRAW", "TotalCPU", "DerivedExitCode"];

/// Whether this begins with the header of a listing.
pub fn is_header(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut columns = line.split(|byte| *byte == b'|').map(<[u8]>::trim_ascii);
    line.contains(&b'|') && columns.any(|column| column == b"JobID" || column == b"JobIDRaw")
}

/// The rows of a listing from `sacct -P` (or `-p`) with its header.
pub fn sacct(listing: &[u8], options: &LineageOptions) -> Result<GraphRows> {
    let text = String::from_utf8_lossy(listing);
    let mut lines = text.lines().enumerate();
    let header = lines.next().map_or("", |(_, line)| line);
    let columns: Vec<&str> = header.split('|').map(str::trim).collect();
    let columns = ListingColumns { names: columns };
    if !columns.has("JobID") && !columns.has("JobIDRaw") || !columns.has("Start") {
        return Err(Code::Value
            .error("the listing has no column Start, or neither JobID nor JobIDRaw")
            .with_hint("sacct -P -o JobID,JobIDRaw,JobName,UID,Start,End,State,ExitCode,NodeList,WorkDir"));
    }
    let mut taken = Taken::default();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let Some(cells) = columns.cells(line) else {
            let why = "has other columns than the header: one of its texts contains '|' or a line break";
            taken.rows.notes.push(format!("line {} {why}", number + 1));
            continue;
        };
        let row = Line { columns: &columns, cells };
        taken.take(&row, options).map_err(|e| e.context(format_args!("line {}", number + 1)))?;
    }
    Ok(taken.finish())
}

/// The columns of a listing.
struct ListingColumns<'a> {
    names: Vec<&'a str>,
}

impl<'a> ListingColumns<'a> {
    fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// The cells of a line. The submitted command may hold any characters: as the last column it takes the rest.
    fn cells<'b>(&self, line: &'b str) -> Option<Vec<&'b str>> {
        let free = self.names.last() == Some(&"SubmitLine");
        let most = if free { self.names.len() } else { usize::MAX };
        let cells: Vec<&str> = line.splitn(most, '|').map(str::trim).collect();
        // sacct -p ends each line, including the header, with '|'.
        let ends = |(column, cell): (&&str, &&str)| !column.is_empty() || cell.is_empty();
        (cells.len() == self.names.len() && self.names.iter().zip(&cells).all(ends)).then_some(cells)
    }
}

/// A line.
struct Line<'a> {
    columns: &'a ListingColumns<'a>,
    cells: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let place = self.columns.names.iter().position(|column| *column == name)?;
        self.cells.get(place).copied().filter(|cell| !ABSENT.contains(cell))
    }

    fn text(&self, name: &str) -> Option<Value> {
        self.get(name).map(|text| Value::Text(text.to_owned()))
    }

    fn time(&self, name: &str, ahead: i32) -> Result<Option<u64>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match moment(text, ahead) {
            Some(moment) => Ok(Some(moment)),
            None => Err(Code::Value
                .error(format!("{name} is '{text}', which is not a valid time"))
                .with_hint("leave SLURM_TIME_FORMAT unset, or give it %FT%T%z or %s")),
        }
    }
}

/// `2026-11-21T07:00:00`, with an offset or without, or seconds since 1970.
fn moment(text: &str, ahead: i32) -> Option<u64> {
    const SECOND: i64 = 1_000_000_000;
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse::<u64>().ok()?.checked_mul(SECOND as u64);
    }
    let (clock, zone) = match text.get(10..)?.find(['+', '-', 'Z', 'z']) {
        Some(at) => text.split_at_checked(at.checked_add(10)?)?,
        None => (text, ""),
    };
    // %z prints +0100, RFC 3339 has +01:00.
    let zone = match zone.len() {
        5 => format!("{}:{}", zone.get(..3)?, zone.get(3..)?),
        _ => zone.to_owned(),
    };
    let ahead = if zone.is_empty() { i64::from(ahead) * SECOND } else { 0 };
    let moment = parse_moment(&format!("{clock}{zone}"))?.checked_sub(ahead)?;
    u64::try_from(moment).ok()
}

/// Seconds that a zone is ahead of UTC: `UTC`, `Z`, `+01:00`, `+0100`, `-3`.
pub fn utc_offset(zone: &str) -> Result<i32> {
    let wrong = || {
        Code::Option
            .error(format!("'{zone}' is not a valid offset from UTC"))
            .with_hint("write UTC, +01:00 or -0330; if the clocks changed, list with TZ=UTC sacct")
    };
    if ["UTC", "GMT", "Z", "utc", "gmt", "z"].contains(&zone) {
        return Ok(0);
    }
    let zone = zone.strip_prefix("UTC").unwrap_or(zone);
    let (sign, digits) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (_, Some(digits)) => (-1, digits),
        _ => return Err(wrong()),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(both) => both,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |text: &str, most: i32| {
        let plain = text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|n| plain && *n <= most).ok_or_else(wrong)
    };
    Ok(sign * (number(hours, 14)? * 3600 + number(minutes, 59)? * 60))
}

/// The rows taken from a listing.
#[derive(Default)]
struct Taken {
    rows: GraphRows,
    cluster: Option<String>,
    waiting: u64,
    named: bool,
}

impl Taken {
    fn take(&mut self, row: &Line<'_>, options: &LineageOptions) -> Result<()> {
        let missing = || Code::Value.error("has no JobID");
        let id = row.get("JobIDRaw").or_else(|| row.get("JobID")).ok_or_else(missing)?;
        if let Some(cluster) = row.get("Cluster") {
            let first = self.cluster.get_or_insert_with(|| cluster.to_owned());
            if first != cluster {
                let why = format!("belongs to the cluster {cluster}, earlier lines to {first}");
                let hint = "clusters reuse job ids: list one cluster (sacct -M) per store";
                return Err(Code::Value.error(why).with_hint(hint));
            }
        }
        let (start, end) = (row.time("Start", options.ahead)?, row.time("End", options.ahead)?);
        let Some(begin) = start else {
            self.waiting += 1;
            return Ok(());
        };
        let span = Span { begin, end };
        let vertex = VertexName::new("job", id);
        let (begun, ended) = props(row, options)?;
        put_execution(&mut self.rows, &vertex, span, begun, &ended)?;
        if let Some(user) = row.get("UID").or_else(|| row.get("User")) {
            self.named |= row.get("UID").is_none();
            let user = VertexName::new("user", user);
            self.rows.relations.push(relation("run", &user, &vertex, span));
        }
        if let Some((allocation, _)) = id.split_once('.') {
            let allocation = VertexName::new("job", allocation);
            self.rows.relations.push(relation("contains", &allocation, &vertex, span));
        }
        Ok(())
    }

    fn finish(mut self) -> GraphRows {
        if self.waiting > 0 {
            let n = self.waiting;
            self.rows.notes.push(format!("left out {n} jobs or steps that had not begun"));
        }
        if self.named {
            let why = "users appear by name: list the column UID to get the numbers that other sources use";
            self.rows.notes.push(why.to_owned());
        }
        self.rows
    }
}

/// The properties known when the job began, and those known at its end.
fn props(row: &Line<'_>, options: &LineageOptions) -> Result<(PropList, PropList)> {
    let (mut begun, mut ended) = (PropList::of_source("sacct"), PropList::default());
    for (name, column) in
        [("name", "JobName"), ("cwd", "WorkDir"), ("submit_line", "SubmitLine"), ("nodes", "NodeList")]
    {
        begun.set_some(name, row.text(column));
    }
    if let Some(submitted) = row.time("Submit", options.ahead)? {
        begun.set_some("submit", super::props::moment(submitted));
    }
    ended.set_some("state", row.text("State"));
    // "exit:signal"
    if let Some((exit, signal)) = row.get("ExitCode").and_then(|code| code.split_once(':')) {
        let signal = signal.parse().ok().filter(|signal| *signal != 0);
        // After a signal there is no exit code of its own: 0 would mean success.
        let exit = exit.parse().ok().filter(|exit| *exit != 0 || signal.is_none());
        ended.set_some("exit", exit.map(Value::Int));
        ended.set_some("signal", signal.map(Value::Int));
    }
    let (mut early, mut late) = (PropList::default(), PropList::default());
    for column in row.columns.names.iter().filter(|column| !USED.contains(column)) {
        let list = if LATE.contains(column) { &mut late } else { &mut early };
        list.set_some(column, row.text(column));
    }
    if early.len() > 0 {
        begun.set("slurm", early.clone().map());
    }
    if late.len() > 0 {
        early.merge(&late);
        ended.set("slurm", early.map());
    }
    Ok((begun, ended))
}

#[cfg(test)]
mod tests {
    use fieldstone_core::Error;

    use super::*;
    use crate::interop::lineage::VertexPut;

    const LISTING: &str = "\
State|JobID|JobIDRaw|JobName|UID|User|Start|End|ExitCode|Partition|Elapsed|NodeList|WorkDir|SubmitLine
COMPLETED|17|17|forecast|1000|ann|2026-11-21T07:00:00|2026-11-21T07:10:00|0:0|big|00:10:00|n[1-4]|/home/ann|sbatch a|b
COMPLETED|17.batch|17.batch|batch|||2026-11-21T07:00:00|2026-11-21T07:10:00|0:0||00:10:00|n1||
FAILED|17.0|17.0|model|||2026-11-21T07:00:05|2026-11-21T07:09:58|1:9||00:09:53|n[1-4]||srun model
RUNNING|18_4|19|array|1000|ann|2026-11-21T07:00:00|Unknown|0:0|big|00:10:00|n5|/home/ann|sbatch c
PENDING|18_[5-9]|18|array|1000|ann|Unknown|Unknown|0:0|big|00:00:00|None assigned|/home/ann|sbatch c
";
    const SEVEN: u64 = 1_795_244_400_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn taken(listing: &str) -> GraphRows {
        sacct(listing.as_bytes(), &LineageOptions::default()).unwrap()
    }

    fn relations(rows: &GraphRows) -> Vec<String> {
        let since = |time: Option<u64>| {
            time.map_or_else(|| "-".into(), |t| (t.saturating_sub(SEVEN) / SECOND).to_string())
        };
        let one = |r: &super::super::RelationPut| {
            format!("{} {} {} {}..{}", r.source, r.kind, r.target, since(r.time), since(r.until))
        };
        rows.relations.iter().map(one).collect()
    }

    fn put<'a>(rows: &'a GraphRows, id: &str) -> Vec<&'a VertexPut> {
        rows.vertices.iter().filter(|put| &*put.vertex.id == id).collect()
    }

    #[test]
    fn jobs_steps_and_users_of_a_listing() {
        let rows = taken(LISTING);
        let expected = [
            "user:1000 run job:17 0..600",
            "job:17 contains job:17.batch 0..600",
            "job:17 contains job:17.0 5..598",
            "user:1000 run job:19 0..-",
        ];
        assert_eq!(relations(&rows), expected);
        assert_eq!(rows.notes, ["left out 1 jobs or steps that had not begun"]);
        let get = |put: &VertexPut, name: &str| put.props.get(name).unwrap();
        let [begun, ended] = put(&rows, "17")[..] else { panic!("two versions") };
        assert_eq!((begun.time, ended.time), (Some(SEVEN), Some(SEVEN + 600 * SECOND)));
        assert_eq!(get(begun, "submit_line"), Some(Value::Text("sbatch a|b".into())));
        assert_eq!((get(begun, "state"), get(begun, "end")), (None, None));
        assert_eq!(get(ended, "state"), Some(Value::Text("COMPLETED".into())));
        assert_eq!(get(ended, "start"), Some(Value::DateTime(SEVEN as i64)));
        let text = |name: &str, text: &str| (name.to_owned(), Value::Text(text.into()));
        assert_eq!(get(begun, "slurm"), Some(Value::Map(vec![text("Partition", "big")])));
        let all = vec![text("Partition", "big"), text("Elapsed", "00:10:00")];
        assert_eq!(get(ended, "slurm"), Some(Value::Map(all)));
        let [_, step] = put(&rows, "17.0")[..] else { panic!("two versions") };
        assert_eq!((get(step, "exit"), get(step, "signal")), (Some(Value::Int(1)), Some(Value::Int(9))));
        assert_eq!(put(&rows, "19").len(), 1, "it runs still");
    }

    #[test]
    fn a_job_listed_while_it_ran_has_the_same_beginning_afterwards() {
        let now = taken(LISTING);
        let later = LISTING.replace("RUNNING", "COMPLETED").replacen("Unknown", "2026-11-21T08:00:00", 1);
        let later = taken(&later.replace("00:10:00|n5", "01:00:00|n5"));
        assert_eq!(put(&now, "19")[0], put(&later, "19")[0]);
        assert_eq!(put(&later, "19").len(), 2);
    }

    #[test]
    fn times_are_of_the_zone_that_is_given_or_written() {
        let begin = |text: &str, ahead: i32| {
            let listing = format!("JobID|Start\n1|{text}\n");
            let options = LineageOptions { ahead, ..LineageOptions::default() };
            let rows = sacct(listing.as_bytes(), &options)?;
            Ok::<_, Error>(rows.vertices[0].time.unwrap())
        };
        assert_eq!(begin("2026-11-21T07:00:00", 0).unwrap(), SEVEN);
        assert_eq!(begin("2026-11-21T07:00:00", 3600).unwrap(), SEVEN - 3600 * SECOND);
        assert_eq!(begin("2026-11-21T07:00:00+0100", 7200).unwrap(), SEVEN - 3600 * SECOND);
        assert_eq!(begin("2026-11-21T07:00:00-01:30", 0).unwrap(), SEVEN + 5400 * SECOND);
        assert_eq!(begin("1795244400", 3600).unwrap(), SEVEN);
        for wrong in
            ["yesterday", "07:00:00", "2026-11-21T07:00:00+1", "99999999999999999999", "é026-11-21T07:00:00"]
        {
            let error = begin(wrong, 0).unwrap_err();
            assert!(error.message().contains("line 2") && error.message().contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_zone_is_an_offset() {
        for (zone, ahead) in
            [("UTC", 0), ("Z", 0), ("+01:00", 3600), ("-0330", -12600), ("+2", 7200), ("UTC+14", 50400)]
        {
            assert_eq!(utc_offset(zone).unwrap(), ahead, "{zone}");
        }
        for wrong in ["", "Europe/Berlin", "+", "+15", "1", "+1:2:3", "+é", "+01:60", "+-1", "+001"] {
            assert_eq!(utc_offset(wrong).unwrap_err().code(), Code::Option, "{wrong}");
        }
    }

    #[test]
    fn what_a_signal_ended_has_no_exit_code_of_0() {
        let rows = taken("JobID|Start|End|State|ExitCode\n1|1|5|FAILED|0:9\n2|1|5|FAILED|1:9\n");
        let get = |id: &str, name: &str| put(&rows, id).last().unwrap().props.get(name).unwrap();
        assert_eq!((get("1", "exit"), get("1", "signal")), (None, Some(Value::Int(9))));
        assert_eq!((get("2", "exit"), get("2", "signal")), (Some(Value::Int(1)), Some(Value::Int(9))));
    }

    #[test]
    fn what_is_odd_is_refused_or_noted() {
        let noted = taken("JobID|JobName|User|Start|\n1|a|b|ann|1\n2|x|ann|5|\n");
        assert_eq!((noted.vertices.len(), noted.notes.len()), (1, 2), "{:?}", noted.notes);
        assert!(noted.notes[0].starts_with("line 2 "), "{:?}", noted.notes);
        assert_eq!(relations(&noted), ["user:ann run job:2 0..-"]);
        for wrong in
            ["", "JobID|End\n", "Start|End\n", "JobID|Start\n|5\n", "JobID|Cluster|Start\n1|a|5\n1|b|6\n"]
        {
            assert!(sacct(wrong.as_bytes(), &LineageOptions::default()).is_err(), "{wrong}");
        }
    }
}
