use super::*;

const START: u64 = 1_000 * SECOND;

fn job() -> DarshanJob {
    DarshanJob {
        sha256: "0123456789abcdef".repeat(4),
        number: 17,
        uid: 1000,
        nprocs: 4,
        start: START + 1,
        end: Some(START + 9 * SECOND),
        exe: "/bin/model -v  in.nc".into(),
        version: "3.41".into(),
        modules: vec!["POSIX".into()],
        partial: Vec::new(),
    }
}

fn moved(count: u64, bytes: u64) -> DarshanAccess {
    DarshanAccess { count: Some(count), bytes: Some(bytes), begin: Some(SECOND), end: Some(2 * SECOND) }
}

fn record(file: u64, rank: Option<u64>, read: DarshanAccess, write: DarshanAccess) -> DarshanRecord {
    DarshanRecord { file, rank, read, write, opened: None, closed: None }
}

fn log(job: DarshanJob, modules: &[(&str, &[DarshanRecord])]) -> DarshanRows {
    let mut log = DarshanRows::default();
    log.add(DarshanPart::Job(job));
    let names = [(1, "/a"), (2, "/b"), (9, "<STDOUT>")];
    log.add(DarshanPart::Names(names.map(|(number, name)| (number, name.to_owned())).to_vec()));
    for (module, records) in modules {
        log.add(DarshanPart::Records((*module).to_owned(), records.to_vec()));
    }
    log
}

/// Relations of data, with bytes, calls and modules.
fn accesses(rows: &GraphRows) -> Vec<String> {
    let data = rows.relations.iter().filter(|r| matches!(&*r.kind, "read" | "write"));
    let get = |put: &super::super::RelationPut, name: &str| put.props.get(name).unwrap().unwrap().to_string();
    data.map(|r| {
        let [bytes, calls, modules] = ["bytes", "count", "modules"].map(|name| get(r, name));
        format!("{} {} {} {bytes} {calls} {modules}", r.source.id.replace(ID, "job"), r.kind, r.target.id)
    })
    .collect()
}

const ID: &str = "17-1000-0123456789ab";
const NONE: DarshanAccess = DarshanAccess { count: None, bytes: None, begin: None, end: None };

#[test]
fn the_lowest_layer_counts_and_stdio_is_added() {
    let mpiio = [record(1, None, NONE, moved(1, 1000)), record(2, None, moved(3, 30), NONE)];
    let posix = [
        record(1, Some(0), NONE, moved(2, 400)),
        record(1, Some(3), NONE, moved(3, 600)),
        record(2, None, moved(0, 0), moved(1, 0)),
    ];
    let stdio = [record(1, Some(3), NONE, moved(1, 5)), record(9, Some(2), NONE, moved(9, 9))];
    let hdf5 = [record(1, Some(1), moved(1, 7), moved(7, 7)), record(0, None, moved(1, 1), NONE)];
    let rows = log(job(), &[("MPI-IO", &mpiio), ("POSIX", &posix), ("STDIO", &stdio), ("H5D", &hdf5)]);
    let rows = rows.rows().unwrap();
    let expected = [
        "job/1 read /a 7 1 [\"H5D\"]",
        "job/0 write /a 400 2 [\"POSIX\",\"MPI-IO\",\"H5D\",\"STDIO\"]",
        "job/3 write /a 605 4 [\"POSIX\",\"MPI-IO\",\"H5D\",\"STDIO\"]",
        "job read /b 30 3 [\"MPI-IO\"]",
        "job write /b 0 1 [\"POSIX\"]",
    ];
    assert_eq!(accesses(&rows).iter().map(|line| line.replace(", ", ",")).collect::<Vec<_>>(), expected);
    let others = rows.relations.iter().filter(|r| !matches!(&*r.kind, "read" | "write"));
    let others: Vec<String> =
        others.map(|r| format!("{} {} {}", r.source, r.kind, r.target).replace(ID, "job")).collect();
    let expected = [
        "user:1000 run job:job",
        "job:job exe file:/bin/model",
        "job:job contains process:job/0",
        "job:job contains process:job/1",
        "job:job contains process:job/2",
        "job:job contains process:job/3",
    ];
    assert_eq!(others, expected);
    assert!(rows.notes.is_empty(), "{:?}", rows.notes);
}

#[test]
fn times_are_since_the_start_and_late_where_the_log_has_seconds_only() {
    let records = [record(1, None, NONE, moved(1, 1))];
    let write = |job: DarshanJob, record: DarshanRecord| {
        let rows = log(job, &[("POSIX", &[record])]).rows().unwrap();
        rows.relations
            .iter()
            .find(|r| &*r.kind == "write")
            .map(|r| (r.time.unwrap(), r.until.unwrap()))
            .unwrap()
    };
    let fine = START + 1;
    assert_eq!(write(job(), records[0]), (fine + SECOND, fine + 2 * SECOND));
    let coarse = DarshanJob { start: START, ..job() };
    assert_eq!(write(coarse.clone(), records[0]), (START + SECOND, START + 3 * SECOND - 1));
    // Without times of writes: while it was open; without these: while the job ran.
    let bare = DarshanAccess { begin: None, end: None, ..moved(1, 1) };
    let open = DarshanRecord { opened: Some(5), closed: Some(7), ..record(1, None, NONE, bare) };
    assert_eq!(write(job(), open), (fine + 5, fine + 7));
    assert_eq!(write(job(), record(1, None, NONE, bare)), (fine, START + 9 * SECOND));
    let endless = DarshanJob { end: None, ..job() };
    assert_eq!(write(endless, record(1, None, NONE, bare)), (fine, fine));
}

#[test]
fn what_is_less_than_whole_is_noted_or_refused() {
    let partial = DarshanJob { end: None, partial: vec!["POSIX".into()], ..job() };
    let records = [record(1, None, NONE, NONE), record(77, Some(0), moved(1, 1), NONE)];
    let rows = log(partial, &[("POSIX", &records)]).rows().unwrap();
    assert_eq!(accesses(&rows), ["job/0 read 77 1 1 [\"POSIX\"]"]);
    let notes = rows.notes.join("\n");
    for said in [
        "partial",
        "its end is not in the log",
        "1 files that were only opened",
        "1 files have a number but no name",
    ] {
        assert!(notes.contains(said), "{notes}");
    }
    // In anonymised logs, numbers identify the streams.
    let streams = STREAM_NUMBERS.map(|number| record(number, None, moved(1, 1), moved(1, 1)));
    let rows = log(job(), &[("STDIO", &streams)]).rows().unwrap();
    assert_eq!((accesses(&rows).len(), rows.notes.len()), (0, 0));
    for damaged in [DarshanJob { nprocs: 0, ..job() }, DarshanJob { start: 0, ..job() }] {
        assert!(log(damaged, &[]).rows().is_err());
    }
    assert!(DarshanRows::default().rows().is_err());
}

#[test]
fn a_program_named_by_a_relative_path_is_no_file_and_its_secrets_are_hidden() {
    let exe = "./a.out --password=hunter2 in.nc".into();
    let rows = log(DarshanJob { exe, ..job() }, &[]).rows().unwrap();
    assert!(rows.relations.iter().all(|put| &*put.kind != "exe"));
    let argv = rows.vertices.iter().find_map(|put| put.props.get("argv").unwrap());
    assert_eq!(argv.unwrap().to_string(), r#"["./a.out", "--password=${FIELDSTONE_SECRET_1}", "in.nc"]"#);
    let named = log(self::job(), &[]).rows().unwrap();
    let exe = named.relations.iter().find(|put| &*put.kind == "exe").unwrap();
    assert_eq!(exe.target.to_string(), "file:/bin/model");
}
