//! PostgreSQL as a [`Database`]: cells, scans, bulk insert, transactions, failures. The tests of the index
//! run on PostgreSQL and on SQLite alike.

use std::sync::atomic::{AtomicU8, Ordering};

use fieldstone_catalog::engine::{
    ATTR_DEFINITION, AttrRow, Cell, Database, Flow, NO_CURVE, NO_STEP, Postgres, Probe, Wait,
};
use fieldstone_core::ErrorKind;
use fieldstone_core::value::ValueType;
use fieldstone_format::Id;
use fieldstone_testkit::postgres::{Server, shared};

/// An id that no other test of this process uses.
fn store() -> Id {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let mut id = [0; 16];
    id[0] = NEXT.fetch_add(1, Ordering::Relaxed);
    Id(id)
}

fn open(server: &Server, store: Id) -> Postgres {
    Postgres::open(&server.url(), store).unwrap()
}

fn with_attr(server: &Server, store: Id) -> Postgres {
    let mut db = open(server, store);
    db.begin(true, Wait::Yes).unwrap();
    db.batch(ATTR_DEFINITION).unwrap();
    db.commit().unwrap();
    db
}

fn count(db: &mut Postgres, sql: &str) -> i64 {
    let mut n = -1;
    db.query(sql, &[], &mut |cells| {
        if let Cell::Int(v) = cells[0] {
            n = v;
        }
        Ok(Flow::More)
    })
    .unwrap();
    n
}

#[test]
fn cells_come_back_as_they_went() {
    let Some(server) = shared() else { return };
    let mut db = open(server, store());
    db.batch("CREATE TABLE t(i bigint, r double precision, t text COLLATE \"C\", b bytea)").unwrap();
    let rows: [[Cell<'_>; 4]; 4] = [
        [Cell::Int(i64::MIN), Cell::Real(f64::INFINITY), Cell::Text("a\0b\u{1}c"), Cell::Bytes(&[0, 1, 255])],
        [Cell::Int(i64::MAX), Cell::Real(-0.0), Cell::Text("ä"), Cell::Bytes(&[])],
        [Cell::Int(-1), Cell::Real(5e-324), Cell::Text(""), Cell::Null],
        [Cell::Null, Cell::Null, Cell::Null, Cell::Null],
    ];
    for row in &rows {
        assert_eq!(db.execute("INSERT INTO t VALUES ($1, $2, $3, $4)", row).unwrap(), 1);
    }
    let mut got = Vec::new();
    db.query("SELECT * FROM t ORDER BY i NULLS LAST", &[], &mut |cells| {
        got.push(format!("{cells:?}"));
        Ok(Flow::More)
    })
    .unwrap();
    let mut want: Vec<String> = [0, 2, 1, 3].iter().map(|i| format!("{:?}", rows[*i])).collect();
    assert_eq!(got, want);
    // One row and no more.
    got.clear();
    want.truncate(1);
    db.query("SELECT * FROM t ORDER BY i NULLS LAST", &[], &mut |cells| {
        got.push(format!("{cells:?}"));
        Ok(Flow::Stop)
    })
    .unwrap();
    assert_eq!(got, want);
    // A sum of bigint is an integer here too.
    assert_eq!(count(&mut db, "SELECT sum(i) FROM t WHERE i > 0"), i64::MAX);
}

#[test]
fn many_rows_are_one_statement() {
    let Some(server) = shared() else { return };
    let mut db = open(server, store());
    db.batch("CREATE TABLE t(a bigint PRIMARY KEY, b text COLLATE \"C\", c bytea, d double precision)")
        .unwrap();
    let texts: Vec<String> = (0..10_000).map(|i| format!("text {i}\0")).collect();
    let cells: Vec<Cell<'_>> = (0..10_000i64)
        .flat_map(|i| {
            let b = if i % 3 == 0 { Cell::Null } else { Cell::Text(&texts[i as usize]) };
            [Cell::Int(i), b, Cell::Bytes(b"\0\x01"), Cell::Real(i as f64 / 2.0)]
        })
        .collect();
    let sql = "INSERT INTO t VALUES ($1, $2, $3, $4) ON CONFLICT (a) DO UPDATE SET d = t.d + excluded.d";
    assert_eq!(db.execute_many(sql, 4, &cells).unwrap(), 10_000);
    assert_eq!(db.execute_many(sql, 4, &cells[..8]).unwrap(), 2);
    assert_eq!(db.execute_many("DELETE FROM t WHERE a = $1", 1, &[Cell::Int(7), Cell::Int(8)]).unwrap(), 2);
    let mut got = Vec::new();
    db.query("SELECT * FROM t ORDER BY a", &[], &mut |cells| {
        got.push(format!("{cells:?}"));
        Ok(Flow::More)
    })
    .unwrap();
    assert_eq!(got.len(), 9_998);
    assert_eq!(got[1], r#"[Int(1), Text("text 1\0"), Bytes([0, 1]), Real(1.0)]"#);
    assert_eq!(got[2], r#"[Int(2), Text("text 2\0"), Bytes([0, 1]), Real(1.0)]"#);
    assert_eq!(got[9_997], r#"[Int(9999), Null, Bytes([0, 1]), Real(4999.5)]"#);
}

#[test]
fn people_may_only_read() {
    let Some(server) = shared() else { return };
    let (mut db, _) = filled(server, store());
    let found = db.select("SELECT run, count(*) AS n FROM attr GROUP BY run ORDER BY run", None).unwrap();
    let (names, rows) = (found.names, found.rows);
    assert_eq!(names, ["run", "n"]);
    assert_eq!(format!("{rows:?}"), "[[Int(1), Int(360)], [Int(2), Int(360)]]");
    for wrong in [
        "DELETE FROM attr",
        "COPY attr TO STDOUT",
        "SELECT 1; DELETE FROM attr",
        "WITH gone AS (DELETE FROM attr RETURNING run) SELECT * FROM gone",
        "EXPLAIN ANALYZE DELETE FROM attr",
        "SELECT nonsense FROM attr",
    ] {
        let error = db.select(wrong, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}: {error}");
    }
    assert_eq!(count(&mut db, "SELECT count(*) FROM attr"), 720);
}

/// Run, tag, step, variable, curve; the value; the box.
type Line = ([i64; 5], ValueType, Option<f64>, Cell<'static>, &'static [u8]);

/// Rows of all kinds, in key order.
fn rows() -> Vec<Line> {
    let mut rows = Vec::new();
    for run in 1..=2 {
        for tag in 1..=3 {
            for step in [NO_STEP, 0, 6] {
                for i in 0..40i64 {
                    let n = run * 1000 + tag * 100 + i;
                    let (kind, num, payload) = match tag {
                        1 => (ValueType::Float, (i % 7 != 0).then_some(n as f64 / 3.0), Cell::Null),
                        2 => (ValueType::Text, None, Cell::Text(["", "a", "a\0", "b", "ba"][i as usize % 5])),
                        _ => (
                            ValueType::Int,
                            Some(n as f64),
                            if i % 2 == 0 { Cell::Int(n) } else { Cell::Bytes(b"\0x") },
                        ),
                    };
                    let (variable, curve) = if step == NO_STEP { (0, NO_CURVE) } else { (1 + i / 20, i) };
                    let region: &[u8] = if curve == NO_CURVE { b"" } else { &[1, 2, 3] };
                    rows.push(([run, tag, step, variable, curve], kind, num, payload, region));
                }
            }
        }
    }
    rows
}

type Key = (i64, i64, i64, i64, i64, i64);

fn filled(server: &Server, store: Id) -> (Postgres, Vec<(Key, Option<f64>, String)>) {
    let mut db = with_attr(server, store);
    let rows = rows();
    let attrs = || {
        rows.iter().enumerate().map(|(i, r)| AttrRow {
            run: r.0[0],
            tag: r.0[1],
            step: r.0[2],
            variable: r.0[3],
            curve: r.0[4],
            batch: 9,
            row: i as i64,
            kind: r.1,
            num: r.2,
            payload: r.3,
            region: r.4,
        })
    };
    db.begin(true, Wait::Yes).unwrap();
    assert_eq!(db.insert_attrs(&mut attrs()).unwrap(), rows.len() as u64);
    db.commit().unwrap();
    let all = attrs().map(|r| said(&r)).collect();
    (db, all)
}

fn said(r: &AttrRow<'_>) -> (Key, Option<f64>, String) {
    let key = (r.run, r.tag, r.step, r.variable, r.curve, r.row);
    (key, r.num, format!("{:?} {:?} {:?} {}", r.kind, r.payload, r.region, r.batch))
}

fn scan(db: &mut Postgres, probes: &[Probe]) -> Vec<(Key, Option<f64>, String)> {
    let mut got = Vec::new();
    db.begin(false, Wait::Yes).unwrap();
    let n = db
        .scan(probes, &mut |row| {
            got.push(said(row));
            Ok(Flow::More)
        })
        .unwrap();
    db.commit().unwrap();
    assert_eq!(n, got.len() as u64);
    got
}

#[test]
fn scans_give_what_their_ranges_hold_in_order() {
    let Some(server) = shared() else { return };
    let (mut db, all) = filled(server, store());
    let key = |steps, variable, curve| Probe::Key { run: 1, tag: 3, steps, variable, curve };
    let of = |keep: &dyn Fn(&Key) -> bool| -> Vec<_> {
        all.iter().filter(|(k, _, _)| k.0 == 1 && k.1 == 3 && keep(k)).cloned().collect()
    };
    assert_eq!(scan(&mut db, &[key(NO_STEP..=i64::MAX, None, None)]), of(&|_| true));
    assert_eq!(scan(&mut db, &[key(1..=6, None, None)]), of(&|k| k.2 == 6));
    assert_eq!(scan(&mut db, &[key(6..=6, Some(2), None)]), of(&|k| k.2 == 6 && k.3 == 2));
    // Ranges come one after the other, in the order of the request.
    let (late, early) = (key(6..=6, Some(2), Some(30..=33)), key(6..=6, Some(1), Some(2..=3)));
    let mut want = of(&|k| k.2 == 6 && k.3 == 2 && (30..=33).contains(&k.4));
    want.extend(of(&|k| k.2 == 6 && k.3 == 1 && (2..=3).contains(&k.4)));
    assert_eq!(want.len(), 6);
    assert_eq!(scan(&mut db, &[late, early]), want);
    // Probes of several shapes in one call.
    let number = |numbers| Probe::Number { run: 2, tag: 1, numbers };
    let text = |from: &str, to: Option<&str>| Probe::Text {
        run: 2,
        tag: 2,
        from: from.to_owned(),
        to: to.map(str::to_owned),
    };
    let got = scan(
        &mut db,
        &[number(700.0..=702.0), text("a", Some("b")), text("b", None), key(0..=0, None, None)],
    );
    let numbers: Vec<f64> = got.iter().filter(|g| g.0.1 == 1).map(|g| g.1.unwrap()).collect();
    assert_eq!(numbers.len(), 3 * (2100..=2106).filter(|n| (n - 2100) % 7 != 0).count());
    assert!(numbers.is_sorted());
    let texts: Vec<&str> =
        got.iter().filter(|g| g.0.1 == 2).map(|g| g.2.split(" [").next().unwrap()).collect();
    assert_eq!(texts.len(), 3 * (8 + 8 + 8) + 3 * (8 + 8));
    assert!(texts[..72].is_sorted() && texts[72..].is_sorted(), "{texts:?}");
    assert!(texts[..72].iter().any(|t| t.contains("a\\0")), "{texts:?}");
    assert_eq!(got[got.len() - 40..], of(&|k| k.2 == 0)[..]);
    // All numbers, infinities included; and none.
    assert_eq!(scan(&mut db, &[number(f64::NEG_INFINITY..=f64::INFINITY)]).len(), 3 * (40 - 6));
    assert_eq!(
        scan(&mut db, &[Probe::Key { run: 7, tag: 1, steps: 0..=9, variable: None, curve: None }]),
        []
    );
}

#[test]
fn a_scan_may_stop_anywhere_and_long_ones_come_piece_by_piece() {
    let Some(server) = shared() else { return };
    let mut db = with_attr(server, store());
    let many = 40_000i64;
    db.begin(true, Wait::Yes).unwrap();
    let mut rows = (0..many).map(|row| AttrRow {
        run: 1,
        tag: 1,
        step: 0,
        variable: 1,
        curve: row,
        batch: 1,
        row,
        kind: ValueType::Float,
        num: Some(row as f64),
        payload: Cell::Null,
        region: &[],
    });
    db.insert_attrs(&mut rows).unwrap();
    db.commit().unwrap();
    let all = Probe::Key { run: 1, tag: 1, steps: NO_STEP..=i64::MAX, variable: None, curve: None };
    let got = scan(&mut db, &[all.clone(), all.clone()]);
    assert_eq!(got.len(), 2 * many as usize);
    assert!(got[..many as usize].iter().enumerate().all(|(i, r)| r.0.5 == i as i64));
    assert!(got[many as usize..].iter().enumerate().all(|(i, r)| r.0.5 == i as i64));
    db.begin(false, Wait::Yes).unwrap();
    for stop in [1, 16_384, 16_385, 33_000] {
        let mut n = 0;
        let read = db
            .scan(&[all.clone(), all.clone()], &mut |row| {
                assert_eq!(row.row, n);
                n += 1;
                Ok(if n == stop { Flow::Stop } else { Flow::More })
            })
            .unwrap();
        assert_eq!((n, read), (stop, stop as u64));
    }
    db.commit().unwrap();
}

#[test]
fn no_scan_of_a_whole_table() {
    let Some(server) = shared() else { return };
    let (mut db, _) = filled(server, store());
    for plan in db.explain_scans().unwrap() {
        assert!(plan.contains("Index Scan") || plan.contains("Index Only Scan"), "{plan}");
        assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
    }
}

#[test]
fn one_writes_and_the_others_are_told() {
    let Some(server) = shared() else { return };
    let id = store();
    let (mut a, mut b, mut other) = (with_attr(server, id), open(server, id), open(server, store()));
    assert!(a.begin(true, Wait::No).unwrap());
    assert!(!b.begin(true, Wait::No).unwrap());
    assert!(other.begin(true, Wait::No).unwrap(), "another store is none of a's business");
    // A reader does not wait, and sees nothing of it, then or later in its own transaction.
    assert!(b.begin(false, Wait::No).unwrap());
    assert_eq!(count(&mut b, "SELECT count(*) FROM attr"), 0);
    a.execute("INSERT INTO attr VALUES (1,1,1,1,1,1,1,2,1,NULL,NULL,NULL,NULL,'')", &[]).unwrap();
    a.commit().unwrap();
    assert_eq!(count(&mut b, "SELECT count(*) FROM attr"), 0);
    b.commit().unwrap();
    // A writer that waited sees the other's result.
    assert!(a.begin(true, Wait::No).unwrap());
    let waiting = std::thread::spawn(move || {
        assert!(b.begin(true, Wait::Yes).unwrap());
        let n = count(&mut b, "SELECT count(*) FROM attr");
        b.rollback().unwrap();
        n
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    a.execute("INSERT INTO attr VALUES (1,1,1,1,1,1,2,2,1,NULL,NULL,NULL,NULL,'')", &[]).unwrap();
    a.commit().unwrap();
    assert_eq!(waiting.join().unwrap(), 2);
    // A rollback leaves no trace; the lock is free again.
    assert!(a.begin(true, Wait::No).unwrap());
    a.execute("DELETE FROM attr", &[]).unwrap();
    a.rollback().unwrap();
    assert!(a.begin(true, Wait::No).unwrap());
    assert_eq!(count(&mut a, "SELECT count(*) FROM attr"), 2);
    a.commit().unwrap();
}

#[test]
fn a_lost_server_is_unavailable_and_comes_back() {
    let Some(server) = Server::start() else { return };
    let mut db = with_attr(&server, store());
    // Otherwise the crash might lose the table too: a commit does not wait for the disk.
    db.batch("CHECKPOINT").unwrap();
    db.begin(true, Wait::Yes).unwrap();
    db.execute("INSERT INTO attr VALUES (1,1,1,1,1,1,1,2,1,NULL,NULL,NULL,NULL,'')", &[]).unwrap();
    server.stop();
    let error = db.execute("SELECT 1", &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    db.rollback().unwrap();
    let error = db.begin(false, Wait::Yes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains(&server.folder().display().to_string()), "{error}");
    server.resume();
    assert!(db.begin(true, Wait::Yes).unwrap());
    assert_eq!(count(&mut db, "SELECT count(*) FROM attr"), 0, "what was not committed is not there");
    db.commit().unwrap();
    // The server restarts between two calls: a caller that holds earlier rows gets one error.
    server.stop();
    server.resume();
    let error = db.begin(false, Wait::Yes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(db.begin(false, Wait::Yes).unwrap());
    db.commit().unwrap();
}

#[test]
fn tables_that_are_gone_are_corrupt_and_can_be_made_again() {
    let Some(server) = shared() else { return };
    let id = store();
    let (mut db, all) = filled(server, id);
    let probe = Probe::Key { run: 1, tag: 1, steps: 0..=0, variable: None, curve: None };
    assert!(!all.is_empty() && !scan(&mut db, std::slice::from_ref(&probe)).is_empty());
    let schema = db.schema().to_owned();
    let mut other = open(server, store());
    other.batch(&format!("DROP SCHEMA {schema} CASCADE")).unwrap();
    db.begin(false, Wait::Yes).unwrap();
    let error = db.scan(std::slice::from_ref(&probe), &mut |_| Ok(Flow::More)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    db.rollback().unwrap();
    let mut again = with_attr(server, id);
    assert_eq!(count(&mut again, "SELECT count(*) FROM attr"), 0);
    assert_eq!(scan(&mut db, &[probe]), [], "an older connection finds the new tables");
}

#[test]
fn many_write_and_read_at_once() {
    let Some(server) = shared() else { return };
    let id = store();
    with_attr(server, id);
    std::thread::scope(|scope| {
        for writer in 0..8i64 {
            scope.spawn(move || {
                let mut db = open(server, id);
                for turn in 0..10i64 {
                    assert!(db.begin(true, Wait::Yes).unwrap());
                    let mut rows = (0..50).map(|row| AttrRow {
                        run: 1,
                        tag: writer,
                        step: turn,
                        variable: 0,
                        curve: NO_CURVE,
                        batch: turn,
                        row,
                        kind: ValueType::Int,
                        num: Some(1.0),
                        payload: Cell::Int(1),
                        region: &[],
                    });
                    db.insert_attrs(&mut rows).unwrap();
                    db.commit().unwrap();
                    db.begin(false, Wait::Yes).unwrap();
                    let one = count(&mut db, "SELECT count(*) FROM attr");
                    let two = count(&mut db, "SELECT count(*) FROM attr");
                    db.commit().unwrap();
                    assert_eq!(one, two, "one state within a transaction");
                    assert_eq!(one % 50, 0, "no part of another's transaction");
                }
            });
        }
    });
    assert_eq!(count(&mut open(server, id), "SELECT count(*) FROM attr"), 8 * 10 * 50);
}

#[test]
fn what_cannot_be_reached_says_why() {
    let refused = |url: &str| Postgres::open(url, store()).unwrap_err();
    let error = refused("postgresql://x:secret@127.0.0.1:1/none");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(
        error.to_string().contains("127.0.0.1:1/none") && !error.to_string().contains("secret"),
        "{error}"
    );
    for url in ["postgresql://h/d?sslmode=require", "postgresql://h/d?sslmode=verify-full"] {
        let error = refused(url);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("TLS") && error.hint().is_some(), "{error}");
    }
    let error = refused("postgresql://h/d?nonsense=1");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let Some(server) = shared() else { return };
    let error = refused(&format!("postgresql:///absent?host={}&user=postgres", server.folder().display()));
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let error = refused(&format!("postgresql:///postgres?host={}&user=nobody", server.folder().display()));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}
