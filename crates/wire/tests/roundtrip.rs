//! Everything is equal after a round trip; truncated or changed bytes are an error at worst, never a panic.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_catalog::live::Deletion;
use fieldstone_catalog::query::{
    Coded, Dim, Expr, HitTable, Key, NameTest, Pick, Query, Range, Relation, Scope, Term, Where, WriterPart,
};
use fieldstone_core::geometry::{IndexBox, Scalar};
use fieldstone_core::request::{Item, Request, Values as Wanted};
use fieldstone_core::schema::Schema;
use fieldstone_core::value::{Test, Value, ValueType};
use fieldstone_core::{Code, Error};
use fieldstone_format::Id;
use fieldstone_format::catalog::*;
use fieldstone_format::graph::{Props, RelationRow, Version, VertexName, VertexRow};
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_graph::travel::{Travel, TravelStep, VertexTest};
use fieldstone_journal::Session;
use fieldstone_journal::author::AuthorPart;
use fieldstone_journal::session::SessionId;
use fieldstone_store::api::{
    Advice, CompactProgress, CompactReport, Compaction, DatasetLock, Extremes, HiddenFields, Hiding,
    HoldInfo, Holding, LeftLog, ListEntry, LockKind, Locking, MaintainAction, MaintainProgress,
    MaintainReport, MaintainStep, Maintaining, PlaceFile, PurgeProgress, PurgeReport, Purging, Retaining,
    RetentionRule, WipeReport, Wiping,
};
use fieldstone_store::api::{Erasing, ErasureReport};
use fieldstone_store::api::{HandOverInfo, HandOverReport, HandingOver};
use fieldstone_store::api::{IndexedField, OverlaidFields, Overlaying, PointedFields, Pointing};
use fieldstone_wire::{In, NoEnds, Out, Wire};

/// Checks that an item survives a round trip, that every truncation is an error, and that a changed byte
/// never panics.
fn crosses<T: Wire + Debug>(item: &T) {
    let mut out = Out::new(&NoEnds);
    item.put(&mut out);
    let bytes = out.into_bytes();
    let read = |bytes: &[u8]| {
        let mut input = In::new(bytes, &NoEnds);
        let item = T::read(&mut input)?;
        input.end().map(|()| item)
    };
    assert_eq!(format!("{:?}", read(&bytes).unwrap()), format!("{item:?}"));
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end]).is_err(), "{item:?} is read from {end} bytes of {}", bytes.len());
    }
    for at in 0..bytes.len() {
        for flipped in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flipped;
            let _ = read(&changed);
        }
    }
}

fn id(byte: u8) -> Id {
    Id([byte; 16])
}

fn run() -> RunName {
    RunName { project: "p".into(), name: "r".into() }
}

#[test]
fn errors_and_requests() {
    crosses(&Code::RunExists.error("there is a run a").with_hint("take another name"));
    let result: Result<u64, Error> = Err(Error::corrupt("gone"));
    crosses(&result);
    let bound = Request::parse("variable=t/u").unwrap();
    let mut request = Request::parse("run=a*,step=0/to/24/by/6,x=*,y=?*,z=!*").unwrap().within(bound);
    request.set("odd", Wanted::List(vec![Item::One("a=b,\"c\"\n".into())]));
    crosses(&request);
    let schema = Schema::builtin("simulation").unwrap();
    let key = schema.resolve(&[("run", "a"), ("variable", "t"), ("step", "6")]).unwrap();
    crosses(&key);
    crosses(&IndexBox::new(vec![1, 2], vec![3, 4], &[8, 8]).unwrap());
}

#[test]
fn sessions_and_parts() {
    crosses(&Session::new(SessionId::of(7)).within(id(3)).of_user(1001).until(500));
    let name = VertexName::new("job", "1");
    let version = Version { stamp: 5, time: -5, deleted: true };
    let props = Props::of([("a", &Value::Int(1))]).unwrap();
    crosses(&AuthorPart {
        floor: 9,
        writer: Some(name.clone()),
        reads: vec![RelationRow {
            kind: "read".into(),
            source: name.clone(),
            target: name.clone(),
            version,
            until: Some(8),
            props: props.clone(),
        }],
        vertices: vec![VertexRow { vertex: name, version, fixed: Some(props.clone()), props }],
        relations: Vec::new(),
        ticket: 3,
    });
}

#[test]
fn a_compaction_and_its_report() {
    let requests = vec![Request::parse("run=a,step=0/6").unwrap(), Request::new()];
    let session = Session::new(SessionId::of(7)).of_user(1001);
    crosses(&Compaction {
        requests,
        max_bytes: Some(1 << 40),
        rate: Some(1 << 25),
        grace: 3_600_000_000_000,
        session,
    });
    crosses(&CompactProgress { logs: 3, entries: 70_000 });
    let left = |accepted| LeftLog { file: "logs/a.log".into(), why: "does not match".into(), accepted };
    crosses(&CompactReport {
        logs: (300, 2),
        segments: (600, 3),
        files: (310, 4),
        nbytes: u64::MAX,
        waiting: 300,
        left: vec![left(false), left(true)],
    });
}

#[test]
fn a_hold() {
    let (name, why) = (String::from("nightly"), String::from("rsync to tape"));
    let session = Session::new(SessionId::of(7)).of_user(1001);
    crosses(&Holding { name: name.clone(), lasts: 7_200_000_000_000, why: why.clone(), session });
    crosses(&HoldInfo { name, why, by: "anna".into(), since: -1, until: i64::MAX, version: "v".into() });
}

#[test]
fn a_purge_and_its_report() {
    let requests = vec![Request::parse("run=a").unwrap(), Request::new()];
    let session = Session::new(SessionId::of(7)).of_user(1001);
    let engine = Some("postgresql://host/name".to_owned());
    crosses(&Purging {
        requests,
        all: true,
        doit: true,
        max_bytes: Some(1 << 40),
        rate: Some(1 << 25),
        grace: 0,
        engine,
        session,
    });
    crosses(&PurgeProgress { keys: 70_000, nbytes: 1 << 50 });
    for kept in [None, Some("the hold \"tape\" keeps everything".to_owned())] {
        crosses(&PurgeReport {
            fields: 3,
            versions: 17,
            nbytes: u64::MAX,
            condemned: 4,
            waiting: 5,
            files: (310, 4),
            kept,
            left: vec![LeftLog { file: "logs/a.log".into(), why: "does not match".into(), accepted: false }],
            more: true,
        });
    }
}

#[test]
fn an_erasure_and_its_report() {
    for engine in [None, Some("postgresql://server/db".to_owned())] {
        let requests = vec![Request::parse("run=a").unwrap()];
        crosses(&Erasing { requests, doit: true, engine, session: Session::default() });
    }
    let left =
        vec![LeftLog { file: "logs/x.log".into(), why: "a process writes it".into(), accepted: false }];
    crosses(&ErasureReport {
        fields: 3,
        versions: 5,
        attributes: 7,
        visible: 1,
        nbytes: u64::MAX,
        files: 2,
        left,
        done: true,
    });
}

#[test]
fn a_wipe_and_its_report() {
    let session = Session::new(SessionId::of(7)).of_user(1001);
    for older_than in [None, Some(i64::MIN), Some(1_700_000_000_000_000_000)] {
        crosses(&Wiping { older_than, doit: true, all: false, session: session.clone() });
    }
    crosses(&WipeReport { fields: 3, nbytes: u64::MAX, foreign: vec!["stray.txt".into()], done: true });
}

#[test]
fn a_lock_and_how_it_is_set() {
    for what in LockKind::ALL {
        crosses(&Locking { what, locks: true, session: Session::new(SessionId::of(7)) });
        crosses(&Hiding { hides: true, session: Session::new(SessionId::of(7)) });
        crosses(&HiddenFields { request: "run=a/b".into(), by: "alice".into(), since: i64::MIN });
        crosses(&DatasetLock { dataset: "run=a".into(), what, by: "alice".into(), since: i64::MIN });
    }
}

#[test]
fn an_overlay_and_how_it_is_made() {
    let values = vec![("run".to_owned(), "b".to_owned())];
    crosses(&Overlaying { values, shows: true, session: Session::new(SessionId::of(7)) });
    let (request, values, by) = ("run=a".into(), "run=b".into(), "alice".into());
    crosses(&OverlaidFields { request, values, by, since: i64::MIN });
}

#[test]
fn a_hand_over_and_what_it_says() {
    let (from, to, by) = (String::from("alice"), String::from("502"), String::from("root"));
    crosses(&HandingOver { from: from.clone(), to: to.clone(), session: Session::new(SessionId::of(7)) });
    crosses(&HandOverReport { from: from.clone(), to: to.clone(), datasets: u64::MAX });
    crosses(&HandOverInfo { from, to, by, since: i64::MIN });
}

#[test]
fn a_field_that_another_store_names() {
    let (key, store) = (vec![("run".to_owned(), "a".to_owned())], Id([7; 16]));
    crosses(&IndexedField { key, encoded: vec![2, 3], parts: vec![vec![1], Vec::new()] });
    let session = Session::new(SessionId::of(7));
    crosses(&Pointing { store, url: "/s".into(), names: true, session });
    let (request, url, by) = ("run=a".into(), "/s".into(), "alice".into());
    crosses(&PointedFields { request, store, url, by, since: 5 });
}

#[test]
fn rules_of_retention_and_maintenance() {
    let session = Session::new(SessionId::of(7)).of_user(1001);
    for (older_than, versions) in [(None, Some(u64::MAX)), (Some(1), None)] {
        let (query, to) = (older_than.map(|_| "max > 3".to_owned()), versions.map(|_| "/cold".to_owned()));
        let (drop, all, session) = (true, false, session.clone());
        let (of, at) = (query.clone(), to.clone());
        crosses(&Retaining { query, to, older_than, versions, drop, all, session });
        let (request, owner) = ("run=a".into(), "anna".into());
        crosses(&RetentionRule { request, query: of, to: at, older_than, versions, owner, since: i64::MIN });
    }
    crosses(&Maintaining { grace: 0, max_bytes: Some(1 << 40), rate: None, dry_run: true, session });
    use MaintainAction::{Compact, Move, Purge, Sweep, Wipe};
    for action in [Sweep, Move, Wipe, Purge, Compact] {
        crosses(&MaintainProgress { step: 2, action, request: "run=a".into(), done: 3, nbytes: 1 << 50 });
        let (why, code) = (Some("no room".to_owned()), Some(Code::DiskFull));
        let step =
            MaintainStep { action, fields: 3, versions: 9, nanoseconds: 7, why, code, ..Default::default() };
        crosses(&MaintainReport { steps: vec![step], waiting: 4, more: true });
    }
    crosses(&Advice { command: "fieldstone compact s".into(), gain: "13 files".into(), is_estimate: true });
}

#[test]
fn every_term_of_a_query() {
    let name = || {
        NameTest::Any(vec![
            NameTest::Is("a".into()),
            NameTest::Glob("b*".into()),
            NameTest::Typed("c?".into()),
        ])
    };
    let test = || {
        Test::All(vec![
            Test::Not(Box::new(Test::Between(Value::Float(-0.0), Value::Float(f64::INFINITY)))),
            Test::IsIn(vec![Value::Text("ü".into()), Value::DateTime(-1), Value::Null]),
            Test::Any(vec![Test::Exists, Test::Typed("x*".into()), Test::Glob("x*".into())]),
        ])
    };
    let terms = vec![
        Term::Run(name()),
        Term::Project(name()),
        Term::Job(name()),
        Term::Param("n".into(), test()),
        Term::Attr("n".into(), test()),
        Term::Created(test()),
        Term::Step(vec![(i64::MIN, i64::MAX)]),
        Term::Time(test()),
        Term::Variable(name()),
        Term::VariableVersion(vec![-1, 2]),
        Term::Level(vec![(0, 3)]),
        Term::Tag(name()),
        Term::TagVersion(vec![0]),
        Term::Unit(name()),
        Term::Value(test()),
        Term::Scope(Scope::Variable),
        Term::Region(
            vec![
                (Dim::Name("x".into()), Range::Index(None, Some(4))),
                (Dim::Index(1), Range::Physical(0.5, 1.5)),
            ],
            Relation::Within,
        ),
        Term::Extent(Dim::Index(2), test()),
        Term::Volume(test()),
        Term::Keyword("level".into(), test()),
        Term::User(name()),
        Term::Writer(WriterPart::Attempt, test()),
    ];
    let query = Query {
        expr: Expr::Any(vec![
            Expr::All(terms.into_iter().map(Expr::Term).collect()),
            Expr::Not(Box::new(Expr::Related(Where::Overlapping, Box::new(Expr::All(Vec::new()))))),
        ]),
        session: Session::default(),
        pick: Some(Pick::Last),
        order: vec![(Key::Value, true), (Key::Run, false)],
        limit: Some(u64::MAX),
    };
    crosses(&Deletion::Runs(query));
}

#[test]
fn a_refusal_is_left_to_the_call() {
    // A value that no graph accepts crosses all the same: the store explains why it refuses it.
    crosses(&Partitioning { slots: 0, threshold: 0, ..Partitioning::default() });
}

#[test]
fn nesting_is_bounded() {
    let deep = (0..100_000).fold(vec![0u8; 0], |mut bytes, _| {
        bytes.push(2);
        bytes
    });
    let error = Expr::read(&mut In::new(&deep, &NoEnds)).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt, "{error}");
}

#[test]
fn a_count_makes_no_room_beyond_what_follows() {
    let mut out = Out::new(&NoEnds);
    u64::MAX.put(&mut out);
    let bytes = out.into_bytes();
    assert!(Vec::<HitTable>::read(&mut In::new(&bytes, &NoEnds)).is_err());
    assert!(Vec::<u8>::read(&mut In::new(&bytes, &NoEnds)).is_err());
}

#[test]
fn declarations_attributes_and_hits() {
    let variable = VariableDecl {
        dtype: Some(fieldstone_core::dtype::DType::parse(">i2").unwrap()),
        shape: Some(vec![8, 8]),
        coords: vec![
            (0, Coordinate::Uniform { first: 1.0, spacing: -0.5 }),
            (1, Coordinate::Other("odd".into())),
        ],
        attrs: vec![("units".into(), Value::Text("K".into()))],
        ..VariableDecl::named(VariableName { name: "t".into(), version: -3 })
    };
    crosses(&Record::Variables(run(), vec![variable]));
    crosses(&Record::States(vec![(
        run(),
        RunState { phase: RunPhase::Failed, note: "why".into(), writer: Some(id(1)) },
    )]));
    let batch = AttributeBatch {
        run: run(),
        tag: TagDecl { name: "m".into(), version: 1, kind: ValueType::Float, unit: "K".into() },
        rows: 2,
        step: Some(Column::Each(vec![1, -2])),
        variables: vec![VariableName { name: "t".into(), version: 0 }],
        variable: Column::One(0),
        boxes: Some(Boxes {
            rank: 1,
            start: vec![0, 4],
            count: vec![2, 2],
            cells: Some(CellSets { dim: 0, sets: vec![Arc::from([0, 1]), Arc::from([4, 5])] }),
        }),
        keywords: vec![KeywordColumn { keyword: "level".into(), values: vec!["1".into(), "".into()] }],
        values: Values::Float(vec![f64::NEG_INFINITY, 0.1]),
        one_value: false,
        continues: true,
        singles: false,
    };
    crosses(&batch);
    let column = || Coded { codes: vec![0, u32::MAX], words: vec!["a".into()] };
    crosses(&HitTable {
        project: column(),
        run: column(),
        step: vec![Some(1), None],
        value: vec![
            Value::Float(1.5),
            Value::List(vec![Value::Map(vec![("k".into(), Value::Bytes(vec![0, 255]))])]),
        ],
        offsets: vec![0, 1, 1],
        start: vec![3],
        count: vec![2],
        cells: vec![(0, (0, Arc::from([3i64, 4])))],
        keywords: vec![(1, Arc::from([("level".into(), "7".into())]))],
        user: vec![1000, 0],
        ..HitTable::default()
    });
}

#[test]
fn lists_and_traversals() {
    let schema = Schema::builtin("simulation").unwrap();
    crosses(&ListEntry {
        key: schema.resolve(&[("run", "a"), ("variable", "t"), ("step", "6")]).unwrap(),
        depth: 3,
        nbytes: 1 << 40,
        dtype: None,
        shape: Some(Arc::from([4u64, 5])),
        chunks: None,
        packed: Some(true),
        complete: false,
        place: Some(fieldstone_store::api::FieldLocation {
            file: PlaceFile::Own(id(2), 7),
            offset: 9,
            length: None,
        }),
        time: -1,
        owner: "alice".into(),
        summary: Some(Extremes {
            min: Some(Scalar::Int(-4)),
            max: Some(Scalar::UInt(u64::MAX)),
            missing: None,
        }),
        attempt: None,
        masked: true,
    });
    crosses(&Travel {
        at: Some(3),
        causal: true,
        jobs: false,
        limit: Some(10),
        steps: vec![
            TravelStep::Vertices(VertexTest {
                named: Some(vec![VertexName::new("file", "/a")]),
                kind: None,
                tests: vec![("size".into(), Test::Above(Value::Int(3)))],
                versions: Some((0, u64::MAX)),
            }),
            TravelStep::Edges { kinds: vec!["read".into()], versions: None },
            TravelStep::Repeat(Some(4)),
            TravelStep::FullPaths,
        ],
    });
}
