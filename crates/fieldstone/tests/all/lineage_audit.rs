//! Audits, and differences between executions.

use fieldstone::Session;
use fieldstone::graph::{AuditOptions, Dossier, LineageSubject, VertexName};
use fieldstone::lineage::{Difference, compare, compared_by};
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, CompactOptions, ErrorKind, Mode, OpenOptions, Request, Store, WipeOptions};
use fieldstone_core::value::Value;
use fieldstone_format::log::{FOOT, FrameInfo};

use crate::lineage_export::{put, relation, text, vertex};

const SECOND: u64 = 1_000_000_000;

fn memory() -> Store {
    fieldstone::open("memory:", &OpenOptions::default()).unwrap()
}

/// Puts an execution as the capture of executions records it.
fn execution(store: &Store, id: &str, time: u64, words: &[&str], env: &[(&str, &str)], input: &str) {
    let list = words.iter().map(|word| text(word)).collect();
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect();
    let git = vec![("commit".to_owned(), text("abc")), ("dirty".to_owned(), Value::Bool(false))];
    let props = [
        ("name", text(words[0])),
        ("argv", Value::List(list)),
        ("env", Value::Map(env)),
        ("cwd", text("/work")),
        ("host", text("n1")),
        ("git", Value::Map(git)),
        ("start", Value::DateTime((time * SECOND) as i64)),
    ];
    let relations = vec![
        relation(id, "exe", "file:/opt/model", time, &[("checksum", text("xxh3:aa"))]),
        relation(id, "read", "file:/in", time, &[("checksum", text(input))]),
        relation(id, "write", &format!("file:/out/{}", &id[4..]), time + 5, &[]),
    ];
    store.graph().put(vec![put(id, time, &props)], relations, &Session::default()).unwrap();
}

fn compared(store: &Store, names: &[&str]) -> Vec<Difference> {
    let each = names.iter().map(|name| {
        let name = LineageSubject::from(vertex(name));
        store.tracer(&Session::default()).dossier(&name, &compared_by(&name, None)).unwrap()
    });
    compare(&each.collect::<Vec<Dossier>>()).unwrap()
}

fn row(what: &str, name: &str, values: &[Option<&str>]) -> Difference {
    let values = values.iter().map(|value| value.map(str::to_owned)).collect();
    Difference { what: what.into(), name: name.into(), values }
}

#[test]
fn one_changed_variable_alone_is_listed() {
    let store = memory();
    let words = ["model", "--steps=10", "-v"];
    execution(&store, "job:a", 10, &words, &[("OMP_NUM_THREADS", "4"), ("LANG", "C")], "xxh3:01");
    execution(&store, "job:b", 100, &words, &[("OMP_NUM_THREADS", "8"), ("LANG", "C")], "xxh3:01");
    let expected = [row("environment", "OMP_NUM_THREADS", &[Some("4"), Some("8")])];
    assert_eq!(compared(&store, &["job:a", "job:b"]), expected);
    assert_eq!(compared(&store, &["file:/out/a", "file:/out/b"]), expected, "so do those that wrote results");
    assert!(compared(&store, &["job:a", "job:a", "file:/out/a"]).is_empty());
}

#[test]
fn arguments_inputs_and_what_one_alone_has_are_listed() {
    let store = memory();
    execution(&store, "job:a", 10, &["model", "--steps=10", "x"], &[], "xxh3:01");
    execution(&store, "job:b", 100, &["model", "--steps=20", "x"], &[("TZ", "UTC")], "xxh3:02");
    execution(&store, "job:c", 200, &["model", "--steps=20", "x", "-q"], &[], "xxh3:02");
    let expected = [
        row("argument", "--steps", &[Some("10"), Some("20"), Some("20")]),
        row("argument", "-q", &[None, None, Some("")]),
        row("environment", "TZ", &[None, Some("UTC"), None]),
        row("input", "file:/in", &[Some("xxh3:01"), Some("xxh3:02"), Some("xxh3:02")]),
    ];
    assert_eq!(compared(&store, &["job:a", "job:b", "job:c"]), expected);
}

#[test]
fn an_input_without_a_checksum_is_known_by_the_write_that_was_read() {
    let store = memory();
    let relations = vec![
        relation("job:w1", "write", "file:/m", 1, &[]),
        relation("job:a", "read", "file:/m", 2, &[]),
        relation("job:w2", "write", "file:/m", 3, &[("checksum", text("xxh3:02"))]),
        relation("job:b", "read", "file:/m", 4, &[]),
        relation("job:c", "read", "file:/m", 5, &[("checksum", text("xxh3:02"))]),
    ];
    store.graph().put_relations(relations, &Session::default()).unwrap();
    let rows = compared(&store, &["job:a", "job:b"]);
    let first = "written by job:w1 at 1970-01-01T00:00:01Z";
    assert_eq!(rows, [row("input", "file:/m", &[Some(first), Some("xxh3:02")])]);
    assert!(compared(&store, &["job:b", "job:c"]).is_empty());
}

#[test]
fn ranks_speak_for_their_job_where_it_says_nothing() {
    let store = memory();
    for (job, time, mesh) in [("a", 10, "xxh3:01"), ("b", 20, "xxh3:02")] {
        for rank in 0..2 {
            let process = format!("process:{job}/{rank}");
            let argv = ("argv", Value::List(vec![text("model")]));
            store.graph().put_vertices(vec![put(&process, time, &[argv])], &Session::default()).unwrap();
            let relations = vec![
                relation(&format!("job:{job}"), "contains", &process, time, &[]),
                relation(&process, "read", "file:/mesh", time, &[("checksum", text(mesh))]),
            ];
            store.graph().put_relations(relations, &Session::default()).unwrap();
        }
    }
    let expected = [row("input", "file:/mesh", &[Some("xxh3:01"), Some("xxh3:02")])];
    assert_eq!(compared(&store, &["job:a", "job:b"]), expected);
}

#[test]
fn what_nobody_wrote_cannot_be_compared() {
    let store = memory();
    execution(&store, "job:a", 10, &["model"], &[], "xxh3:01");
    let name = LineageSubject::from(vertex("file:/in"));
    let of = store.tracer(&Session::default()).dossier(&name, &compared_by(&name, None)).unwrap();
    let error = compare(&[of.clone(), of]).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.message().contains("file:/in"), "{error}");
}

/// Users 1 and 2; job 17 with two ranks, job 18, job 19.
fn story() -> Store {
    let store = memory();
    let relations = vec![
        relation("user:4000000001", "run", "job:17", 1, &[]),
        relation("job:17", "contains", "process:17/0", 1, &[]),
        relation("job:17", "contains", "process:17/1", 1, &[]),
        relation("process:17/0", "read", "file:/mesh", 2, &[]),
        relation("process:17/1", "write", "file:/t", 10, &[]),
        relation("job:17", "exe", "file:/opt/model", 1, &[]),
        relation("user:4000000002", "run", "job:18", 20, &[]),
        relation("job:18", "read", "file:/t", 21, &[]),
        relation("job:18", "write", "file:/u", 25, &[]),
        relation("user:4000000001", "run", "job:19", 30, &[]),
        relation("job:19", "read", "file:/u", 31, &[]),
        relation("job:19", "write", "file:/plot", 35, &[]),
        relation("job:early", "read", "file:/t", 5, &[]),
        relation("job:early", "write", "file:/other", 6, &[]),
    ];
    store.graph().put_relations(relations, &Session::default()).unwrap();
    store
}

fn lines(store: &Store, options: &AuditOptions) -> Vec<String> {
    let audit = store.graph().audit(options, &Session::default()).unwrap();
    let line = |row: &fieldstone::graph::AuditRow| {
        format!("{} {} {} {} {}", row.stamp / SECOND, row.user, row.execution, row.action, row.object)
    };
    audit.rows.iter().map(line).collect()
}

#[test]
fn an_audit_of_a_user_takes_in_the_processes_of_his_jobs() {
    let store = story();
    let user = AuditOptions { user: Some("4000000001".into()), ..AuditOptions::default() };
    let expected = [
        "1 4000000001 job:17 run job:17",
        "1 4000000001 job:17 exe file:/opt/model",
        "2 4000000001 process:17/0 read file:/mesh",
        "10 4000000001 process:17/1 write file:/t",
        "30 4000000001 job:19 run job:19",
        "31 4000000001 job:19 read file:/u",
        "35 4000000001 job:19 write file:/plot",
    ];
    assert_eq!(lines(&store, &user), expected);
    let between = AuditOptions { since: Some(10 * SECOND), until: Some(31 * SECOND), ..user.clone() };
    assert_eq!(lines(&store, &between), expected[3..6]);
    let error = store
        .graph()
        .audit(&AuditOptions { user: Some("5".into()), ..user }, &Session::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn an_audit_of_a_file_shows_who_and_all_that_it_reached() {
    let store = story();
    let file = AuditOptions { file: Some(vertex("file:/t")), ..AuditOptions::default() };
    let expected = [
        "5 root? job:early read file:/t",
        "10 4000000001 process:17/1 write file:/t",
        "21 4000000002 job:18 read file:/t",
    ];
    let found = lines(&store, &file);
    assert_eq!(found[1..], expected[1..]);
    assert!(found[0].ends_with("job:early read file:/t"), "who put it is named: {found:?}");
    let derived = |options: &AuditOptions| store.graph().audit(options, &Session::default()).unwrap().derived;
    let names = |list: &[&str]| list.iter().map(|name| vertex(name)).collect::<Vec<VertexName>>();
    let all = ["job:early", "job:18", "file:/other", "file:/u", "job:19", "file:/plot"];
    let mut reached = derived(&file);
    reached.sort();
    let mut wanted = names(&all);
    wanted.sort();
    assert_eq!(reached, wanted);
    // Damaged at 12: earlier readers are not affected.
    let since = AuditOptions { since: Some(12 * SECOND), ..file.clone() };
    assert_eq!(derived(&since), names(&["job:18", "file:/u", "job:19", "file:/plot"]));
    let both = AuditOptions { user: Some("4000000002".into()), ..file.clone() };
    assert_eq!(lines(&store, &both), ["21 4000000002 job:18 read file:/t"]);
    let few = store.graph().audit(&AuditOptions { limit: 2, ..file }, &Session::default()).unwrap();
    assert!(few.truncated && few.rows.len() == 2 && few.derived.len() == 2, "{few:?}");
}

#[test]
fn an_audit_of_nobody_and_nothing_is_invalid() {
    let error = memory().graph().audit(&AuditOptions::default(), &Session::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let file = AuditOptions { file: Some(vertex("file:/none")), ..AuditOptions::default() };
    assert_eq!(memory().graph().audit(&file, &Session::default()).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Removals, wipes and decisions have rows, also once their logs are taken over.
#[test]
fn an_audit_names_removals_wipes_and_decisions() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("store").display().to_string();
    let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
    let archive = |run: &str, session: Session| {
        let key = [("run", run), ("variable", "t"), ("step", "0")];
        let options = ArchiveOptions { session, ..ArchiveOptions::default() };
        store.archive(&key, fieldstone::Value::Bytes(b"x"), &options).unwrap();
    };
    ["a", "b", "c"].iter().for_each(|run| archive(run, Session::default()));
    store.flush(None).unwrap();
    let mut ids = Vec::new();
    for commits in [true, false] {
        let transaction = store.transaction().unwrap();
        archive("d", Session::from(Some(transaction.id())));
        transaction.flush().unwrap();
        ids.push(transaction.id());
        if commits { transaction.commit() } else { transaction.abort() }.unwrap();
    }
    let doit = |all| WipeOptions { older_than: None, doit: true, all };
    store.wipe(&Request::parse("run=a/b,variable=t").unwrap(), &doit(false)).unwrap();
    store.remove(&Request::parse("run=c").unwrap(), &Default::default()).unwrap();
    store.flush(None).unwrap();
    store.wipe(&Request::new(), &doit(true)).unwrap();
    let user = store.status().unwrap().writers[0].user.clone();
    let user = store.graph().user_number(&user).map_or(user, |uid| uid.to_string());
    store.close().unwrap();
    let expected = [
        "archive dataset:{run=a}".to_owned(),
        "archive dataset:{run=b}".to_owned(),
        "archive dataset:{run=c}".to_owned(),
        "archive dataset:{run=d}".to_owned(),
        format!("commit transaction:{}", ids[0]),
        format!("abort transaction:{}", ids[1]),
        "wipe request:run=a/b,variable=t".to_owned(),
        "delete dataset:{run=c}".to_owned(),
    ];
    for round in 0..3 {
        let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
        let options = AuditOptions { user: Some(user.clone()), ..AuditOptions::default() };
        let audit = store.graph().audit(&options, &Session::default()).unwrap();
        let rows: Vec<String> =
            audit.rows.iter().map(|row| format!("{} {}", row.action, row.object)).collect();
        assert_eq!(rows[..expected.len()], expected, "{round}");
        assert!(
            rows.len() == expected.len() + 1 && rows[expected.len()].starts_with("wipe store:"),
            "{rows:?}"
        );
        assert!(audit.rows.iter().all(|row| row.execution.to_string().starts_with("commit:")));
        assert!(audit.rows.iter().all(|row| row.time > 1_700_000_000 * SECOND as i64), "{:#?}", audit.rows);
        let at_once = CompactOptions { grace: std::time::Duration::ZERO, ..CompactOptions::default() };
        store.compact(&at_once).unwrap();
        store.close().unwrap();
    }
}

/// Damages the index of one of three commits: its two meta parts, or the bytes between.
#[test]
fn an_audit_of_a_damaged_store_has_a_row_for_each_commit() {
    for between in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let url = folder.path().join("store").display().to_string();
        let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
        for step in ["0", "1", "2"] {
            let key = [("run", "a"), ("variable", "t"), ("step", step)];
            store.archive(&key, fieldstone::Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
            store.flush(None).unwrap();
        }
        let user = store.status().unwrap().writers[0].user.clone();
        let user = store.graph().user_number(&user).map_or(user, |uid| uid.to_string());
        store.close().unwrap();
        let logs = std::fs::read_dir(folder.path().join("store/logs")).unwrap();
        let log =
            logs.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "log").unwrap();
        let mut bytes = std::fs::read(&log).unwrap();
        let ends = FrameInfo::decode_foot(&bytes[bytes.len() - FOOT..], bytes.len() as u64).unwrap();
        let record = ends.record_offsets()[0] as usize;
        let record = ends.record(&bytes[record..record + ends.record_len as usize]).unwrap();
        let segment = &record.segments[0];
        let places = match between {
            true => vec![segment.offset + segment.meta_len + 3],
            false => segment.meta_offsets().to_vec(),
        };
        places.iter().for_each(|at| bytes[*at as usize] ^= 0x55);
        std::fs::write(&log, &bytes).unwrap();
        let store =
            fieldstone::open(&url, &OpenOptions { mode: Mode::Read, ..OpenOptions::default() }).unwrap();
        assert!(!store.verify(&Request::new()).unwrap().ok());
        let audit = store
            .graph()
            .audit(&AuditOptions { user: Some(user), ..AuditOptions::default() }, &Session::default())
            .unwrap();
        let mut commits: Vec<_> = audit.rows.iter().map(|row| row.execution.to_string()).collect();
        commits.sort();
        commits.dedup();
        assert_eq!(commits.len(), 3, "{:#?}", audit.rows);
        assert!(
            audit.rows.iter().all(|row| row.stamp > 1_700_000_000 * SECOND && row.time > 0),
            "{:#?}",
            audit.rows
        );
        let unreadable = audit.rows.iter().filter(|row| row.action == "unreadable");
        assert!(unreadable.clone().count() > 0 && unreadable.clone().all(|row| row.object == row.execution));
    }
}
