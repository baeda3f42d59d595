//! Messages between slots survive a round trip; damaged or truncated messages are refused; and the worked
//! examples of `spec/graph-messages.md`.

use std::sync::Arc;

use fieldstone_core::ErrorKind;
use fieldstone_core::value::{Test, Value};
use fieldstone_format::Id;
use fieldstone_format::bytes::Cursor;
use fieldstone_format::graph::{
    Archive, Props, Record, RelationRow, TypeDecl, Version, VertexName, VertexRow, VertexType,
};
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::plan::{WalkHop, WalkPlan, WalkTest};
use fieldstone_format::graph_message::rows::{PlacedRows, Refused, RowsCommit};
use fieldstone_format::graph_message::walk::{Asked, Expansion, Reaching, SlotStep, WalkLink, WalkNode};
use fieldstone_format::graph_message::{Frame, Message, VertexPartition, VertexSplits};
use fieldstone_format::graph_segment::manifest::SplitVertex;
use fieldstone_format::graph_segment::partitioning::{
    PartitionScheme, Partitioning, SLOTS_MAX, SlotLabels, put_partitioning, read_partitioning,
};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_testkit::{Random, random::seeds, seeded};

/// Number of kinds of messages.
const KINDS: u8 = 27;

/// A number; short and long ones are equally frequent.
fn number(dice: &mut Random) -> u64 {
    dice.next_u64() >> dice.below(64)
}

fn short(dice: &mut Random) -> u32 {
    number(dice) as u32 >> dice.below(32)
}

fn list<T>(dice: &mut Random, mut item: impl FnMut(&mut Random) -> T) -> Vec<T> {
    (0..dice.below(4)).map(|_| item(dice)).collect()
}

fn maybe<T>(dice: &mut Random, item: impl FnOnce(&mut Random) -> T) -> Option<T> {
    if dice.coin() { Some(item(dice)) } else { None }
}

fn text(dice: &mut Random) -> String {
    (0..dice.below(6)).map(|_| *dice.pick(&['a', '/', 'é', '\0', '7'])).collect()
}

fn place(dice: &mut Random) -> VertexPlace {
    VertexPlace(u128::from(dice.next_u64()) << 64 | u128::from(number(dice)))
}

fn name(dice: &mut Random) -> VertexName {
    let kind: &str = dice.pick::<&str>(&["file", "job"]);
    VertexName::new(kind, &format!("n{}", text(dice)))
}

fn node(dice: &mut Random) -> (VertexPlace, Option<u64>) {
    (place(dice), maybe(dice, number))
}

fn value(dice: &mut Random) -> Value {
    match dice.below(5) {
        0 => Value::Int(number(dice) as i64),
        1 => Value::Float(number(dice) as f64),
        2 => Value::Text(text(dice)),
        3 => Value::Bool(dice.coin()),
        _ => Value::List(vec![Value::Null, Value::Bytes(dice.bytes(3))]),
    }
}

fn test(dice: &mut Random, depth: u32) -> Test {
    match dice.below(if depth < 3 { 13 } else { 10 }) {
        0 => Test::Exists,
        1 => Test::Above(value(dice)),
        2 => Test::AtLeast(value(dice)),
        3 => Test::Below(value(dice)),
        4 => Test::AtMost(value(dice)),
        5 => Test::Between(value(dice), value(dice)),
        6 => Test::Equal(value(dice)),
        7 => Test::IsIn(list(dice, value)),
        8 => Test::Contains(value(dice)),
        9 => Test::Glob(text(dice)),
        10 => Test::All(list(dice, |dice| test(dice, depth + 1))),
        11 => Test::Any(list(dice, |dice| test(dice, depth + 1))),
        _ => Test::Not(Box::new(test(dice, depth + 1))),
    }
}

fn tests(dice: &mut Random) -> Vec<(String, Test)> {
    list(dice, |dice| (text(dice), test(dice, 0)))
}

fn versions(dice: &mut Random) -> Option<(u64, u64)> {
    maybe(dice, |dice| (number(dice), number(dice)))
}

fn vertex_test(dice: &mut Random) -> WalkTest {
    WalkTest {
        named: maybe(dice, |dice| list(dice, name)),
        kind: maybe(dice, text),
        tests: tests(dice),
        versions: versions(dice),
    }
}

fn plan(dice: &mut Random) -> WalkPlan {
    let hop = |dice: &mut Random| WalkHop {
        stays: dice.coin(),
        directions: list(dice, |dice| (Arc::from(text(dice)), dice.coin())),
        versions: versions(dice),
        edges: tests(dice),
        tests: list(dice, vertex_test),
    };
    WalkPlan {
        at: number(dice),
        causal: dice.coin(),
        jobs: dice.coin(),
        linked: dice.coin(),
        starting: list(dice, vertex_test),
        hops: list(dice, hop),
        repeat: maybe(dice, |dice| (short(dice), short(dice))),
    }
}

fn version(dice: &mut Random) -> Version {
    Version { stamp: number(dice), time: number(dice) as i64, deleted: dice.one_in(4) }
}

fn props(dice: &mut Random) -> Props {
    let value = value(dice);
    if dice.coin() { Props::default() } else { Props::of([("n", &value)]).unwrap() }
}

fn relation_body(rows: Vec<RelationRow>) -> Box<[u8]> {
    let side = Record::Relations(rows).encode();
    Record::relations_body(&side).unwrap().unwrap().body.into_owned().into()
}

fn rows(dice: &mut Random) -> PlacedRows {
    let commit = |dice: &mut Random| {
        let known = CommitKnown { since: number(dice), stamp: number(dice) };
        let archive = maybe(dice, |dice| Archive { before: number(dice), url: text(dice).into() });
        RowsCommit { known, user: short(dice), archive }
    };
    let mut rows = PlacedRows { commits: list(dice, commit), ..PlacedRows::default() };
    let vertex = |dice: &mut Random| VertexRow {
        vertex: name(dice),
        version: version(dice),
        fixed: maybe(dice, props),
        props: props(dice),
    };
    let vertices = list(dice, vertex);
    let of = vertices.iter().map(|_| short(dice)).collect();
    rows.set_vertices(vertices, of);
    let relation = |dice: &mut Random| {
        let version = version(dice);
        let until = maybe(dice, number);
        let (source, target) = (name(dice), name(dice));
        RelationRow { kind: "has".into(), source, target, version, until, props: props(dice) }
    };
    let relations = list(dice, relation);
    rows.of_relations = relations.iter().map(|_| short(dice)).collect();
    if !relations.is_empty() {
        rows.relations = relation_body(relations);
    }
    if dice.coin() {
        let declared = VertexType { name: "dataset".into(), ..VertexType::default() };
        rows.declare(short(dice), vec![TypeDecl::Vertex(declared)]);
    }
    rows
}

fn step(dice: &mut Random) -> SlotStep {
    SlotStep {
        hop: short(dice),
        round: short(dice),
        frontier: number(dice),
        reached: number(dice),
        relations: number(dice),
        requests: number(dice),
        forwards: number(dice),
        frames: number(dice),
        bytes: number(dice),
        vertex_time: number(dice),
        edge_time: number(dice),
        prefetch_time: number(dice),
        prefetched: number(dice),
    }
}

fn partition(dice: &mut Random) -> VertexPartition {
    VertexPartition { vertex: place(dice), partition: short(dice) }
}

fn id(dice: &mut Random) -> Id {
    Id(std::array::from_fn(|_| dice.below(256) as u8))
}

fn address(dice: &mut Random) -> Address {
    if dice.coin() { Address::Slot(short(dice) as u16) } else { Address::Client(id(dice)) }
}

/// A message about the content of a slot, by the number of its kind.
fn of_shelves(dice: &mut Random, kind: u8) -> Message {
    let (token, segments) = (number(dice), list(dice, number));
    let splits = |dice: &mut Random| SplitVertex {
        vertex: place(dice).0,
        split: list(dice, short),
        finished: list(dice, short),
    };
    match kind {
        24 => Message::Show { token, freeze: dice.coin(), splits: dice.coin() },
        25 => Message::Shown { token, segments, splits: list(dice, splits) },
        _ => Message::Thaw { token, saved: dice.coin().then_some(segments) },
    }
}

/// A message about puts and splits, by the number of its kind.
fn of_rows(dice: &mut Random, kind: u8) -> Message {
    let batch = number(dice);
    match kind {
        0 => Message::Acknowledge { numbers: list(dice, number) },
        1 => Message::Insert { batch, rows: rows(dice) },
        2 => Message::Inserted {
            batch,
            refused: list(dice, |dice| Refused { row: short(dice), ends: dice.below(4) as u8 }),
            splits: list(dice, |dice| VertexSplits { vertex: place(dice), partitions: list(dice, short) }),
        },
        3 => Message::Move { batch, rows: rows(dice) },
        4 => Message::Moved { batch },
        5 => Message::Split { of: partition(dice) },
        6 => Message::Complete { of: partition(dice) },
        7 => Message::Finish { of: list(dice, partition) },
        8 => Message::Finished,
        9 => Message::Settle,
        _ => Message::Settled { moving: batch },
    }
}

/// Any message, by the number of its kind.
fn message(dice: &mut Random, kind: u8) -> Message {
    let query = QueryId { client: id(dice), number: number(dice) };
    let (hop, round) = (short(dice), short(dice));
    match kind {
        0..=10 => of_rows(dice, kind),
        11 => Message::Begin { query, engine: dice.below(256) as u8, plan: plan(dice), rows: rows(dice) },
        12 => Message::Begun { query },
        13 => Message::Step { query, hop, round },
        14 => {
            let reaching = |dice: &mut Random| Reaching {
                vertex: place(dice),
                moment: maybe(dice, number),
                name: maybe(dice, name),
                from: maybe(dice, node),
            };
            Message::Reach { query, set: hop, round, reached: list(dice, reaching) }
        }
        15 => {
            let expansion = |dice: &mut Random| Expansion {
                vertex: place(dice),
                node: place(dice),
                moments: list(dice, |dice| maybe(dice, number)),
                replacing: maybe(dice, |dice| list(dice, number)),
                splits: list(dice, short),
            };
            Message::Expand { query, hop, round, vertices: list(dice, expansion) }
        }
        16 => {
            let what = *dice.pick(&[Asked::Replacing, Asked::Jobs, Asked::Processes]);
            Message::Gather { query, token: number(dice), what, vertex: place(dice) }
        }
        17 => {
            let (found, names) = (list(dice, |dice| place(dice).0), list(dice, name));
            Message::Gathered { query, token: number(dice), found, names }
        }
        18 => {
            let (sent, received) = (list(dice, number), list(dice, number));
            Message::Report { query, sent, received, fresh: number(dice) }
        }
        19 => Message::Collect { query },
        20 => {
            let reached = |dice: &mut Random| {
                let (vertex, moment) = node(dice);
                WalkNode { set: short(dice), round: short(dice), vertex, moment }
            };
            let link = |dice: &mut Random| {
                let (from, to) = (node(dice), node(dice));
                WalkLink { before: short(dice), from, set: short(dice), to }
            };
            Message::Collected {
                query,
                nodes: list(dice, reached),
                links: list(dice, link),
                steps: list(dice, step),
            }
        }
        21 => Message::End { query },
        22 => {
            let hint = (dice.below(2) == 1).then(|| text(dice));
            Message::Failed { query: dice.coin().then_some(query), code: text(dice), why: text(dice), hint }
        }
        23 => Message::Stop,
        _ => of_shelves(dice, kind),
    }
}

fn frame(dice: &mut Random, kind: u8) -> Frame {
    Frame { from: address(dice), to: address(dice), number: number(dice), message: message(dice, kind) }
}

fn corrupt(bytes: &[u8]) {
    let error = Frame::decode(bytes).expect_err("an invalid frame");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn every_message_comes_back_and_no_damaged_one_is_taken() {
    for seed in seeds(60) {
        let dice = &mut *seeded(seed);
        for kind in 0..KINDS {
            let frame = frame(dice, kind);
            let mut bytes = frame.encode();
            assert_eq!(Frame::decode(&bytes).unwrap(), frame);
            assert_eq!(bytes[kind_at(&bytes)], kind);
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                corrupt(&bytes);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            (0..bytes.len()).for_each(|len| corrupt(&bytes[..len]));
            bytes.push(0);
            corrupt(&bytes);
        }
    }
}

/// Offset of the number of the kind.
fn kind_at(bytes: &[u8]) -> usize {
    let mut cursor = Cursor::new(&bytes[4..]);
    for _ in 0..2 {
        if cursor.varint().unwrap() == 0 {
            cursor.take(16).unwrap();
        }
    }
    cursor.varint().unwrap();
    bytes.len() - cursor.remaining()
}

fn with_sum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = fieldstone_format::crc(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn what_has_a_right_checksum_and_is_no_message_is_refused() {
    for seed in seeds(60) {
        let dice = &mut *seeded(seed);
        for kind in 0..KINDS {
            let bytes = frame(dice, kind).encode();
            // Every truncation: a part is missing, and no message is a part of another.
            (4..bytes.len()).for_each(|len| corrupt(&with_sum(bytes[..len].to_vec())));
            corrupt(&with_sum([&*bytes, &[0]].concat()));
            let mut unknown = bytes.clone();
            unknown[kind_at(&bytes)] = KINDS + dice.below(100) as u8;
            corrupt(&with_sum(unknown));
            // If changed bytes can be read, their content can be written and read again.
            let mut changed = bytes;
            for _ in 0..20 {
                let at = 4 + dice.index(changed.len() - 4);
                changed[at] = dice.below(256) as u8;
                changed = with_sum(changed);
                match Frame::decode(&changed) {
                    Ok(read) => {
                        let again = read.encode();
                        assert_eq!(Frame::decode(&again).unwrap().encode(), again);
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
                }
            }
        }
    }
}

#[test]
fn how_an_index_is_cut_comes_back_and_nothing_impossible_is_read() {
    for seed in seeds(300) {
        let dice = &mut *seeded(seed);
        let partitioning = Partitioning {
            slots: 1 + dice.below(SLOTS_MAX.into()) as u16,
            scheme: *dice.pick(&PartitionScheme::ALL),
            threshold: short(dice).max(1),
            labels: *dice.pick(&SlotLabels::ALL),
        };
        let mut bytes = Vec::new();
        put_partitioning(&partitioning, &mut bytes);
        let read = |bytes: &[u8]| read_partitioning(&mut Cursor::new(bytes));
        assert_eq!(read(&bytes).unwrap(), partitioning);
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len]).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
    // Slots, scheme, threshold, labels.
    for impossible in [[0, 3, 1, 0], [1, 4, 1, 0], [1, 3, 0, 0], [1, 3, 1, 2]] {
        let error = read_partitioning(&mut Cursor::new(&impossible)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{impossible:?}");
    }
    assert!(read_partitioning(&mut Cursor::new(&[0x81, 0x08, 3, 1, 0])).is_err(), "1,025 slots");
}

/// The bytes of one of the examples, from their columns in its lines.
fn example(n: usize) -> String {
    let path = format!("{}/../../spec/graph-messages.md", env!("CARGO_MANIFEST_DIR"));
    let all = std::fs::read_to_string(path).unwrap();
    let part = all.split("## 6. Worked examples").nth(1).unwrap();
    let lines = part.split("```").nth(2 * n + 1).unwrap().lines().skip(1);
    let columns = lines.map(|line| line.get(..line.len().min(51)).unwrap_or(""));
    let words = columns.flat_map(|columns| columns.split_whitespace());
    words.map(|byte| format!("{:02x} ", u8::from_str_radix(byte, 16).unwrap())).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

#[test]
fn the_examples_are_what_is_written() {
    let a = VertexName::new("file", "/a.nc");
    let row = RelationRow {
        kind: "write".into(),
        source: VertexName::new("job", "17"),
        target: a.clone(),
        version: Version { stamp: 1000, time: 1000, deleted: false },
        until: Some(1600),
        props: Props::of([("n", &Value::Int(10))]).unwrap(),
    };
    let commit = RowsCommit { known: CommitKnown { since: 2000, stamp: 2000 }, user: 1000, archive: None };
    let rows = PlacedRows {
        commits: vec![commit],
        relations: relation_body(vec![row]),
        of_relations: vec![2],
        ..PlacedRows::default()
    };
    let client = Id(std::array::from_fn(|n| 0xa0 + n as u8));
    let (from, to) = (Address::Client(client), Address::Slot(2));
    let insert = Frame { from, to, number: 1, message: Message::Insert { batch: 5, rows } };
    assert_eq!(hex(&insert.encode()), example(0));

    let (query, vertex) = (QueryId { client, number: 1 }, VertexPlace::of(&a));
    let (moments, replacing, splits) = (vec![None], None, vec![1, 3]);
    let expansion = Expansion { vertex, node: vertex, moments, replacing, splits };
    let message = Message::Expand { query, hop: 0, round: 1, vertices: vec![expansion] };
    assert_eq!(hex(&Frame { from: to, to: Address::Slot(3), number: 0, message }.encode()), example(1));

    let mut bytes = Vec::new();
    put_partitioning(&Partitioning { slots: 32, ..Partitioning::default() }, &mut bytes);
    assert_eq!(hex(&bytes), example(2));
}
