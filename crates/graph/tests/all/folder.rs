//! Segments on disk: what several processes read back from them, and the fate of damaged ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::Id;
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName};
use fieldstone_format::graph_segment::manifest::Manifest;
use fieldstone_format::graph_segment::{CommitKnown, PAGE};
use fieldstone_graph::folder::{MergeOlder, SavedSlots, SegmentFolder, SlotSegments};
use fieldstone_graph::follower::{GraphFollower, dump};
use fieldstone_graph::segment::{CommitOrder, PageCache, Rows, Segment, build};
use fieldstone_graph::state::GraphState;
use fieldstone_journal::feed::Commit;
use fieldstone_journal::follower::{Follower, Wait};
use fieldstone_testkit::{Random, random::seeds, seeded};

use crate::common;

const STORE: Id = Id([5; 16]);

fn folder(env: &Env) -> SegmentFolder {
    env.disk.create_dir_all(Path::new("/graph")).unwrap();
    SegmentFolder::new(env.clone(), PathBuf::from("/graph"), STORE, PageCache::new(1 << 20))
}

/// Saves a follower in one piece.
fn save(
    folder: &SegmentFolder,
    segments: &[Arc<Segment>],
    list: Manifest,
    based_on: u64,
    older: MergeOlder,
) -> Option<(Manifest, Vec<Arc<Segment>>)> {
    let saved = folder.save(&[SlotSegments { segments, keep: None }], list, based_on, older).unwrap();
    saved.map(|SavedSlots { manifest, mut segments }| (manifest, segments.remove(0)))
}

fn segment(dice: &mut Random, rows: u64) -> Arc<Segment> {
    let mut all = Rows::default();
    for commit in 0..rows {
        let known = CommitKnown { since: commit, stamp: commit };
        all.add(CommitOrder { known, user: 1 }, &common::record(dice).encode()).unwrap();
    }
    Arc::new(build(&all).unwrap())
}

fn names(env: &Env) -> Vec<String> {
    let mut names: Vec<String> =
        env.disk.list_dir(Path::new("/graph")).unwrap().into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

#[test]
fn what_was_written_is_what_another_reads() {
    for seed in seeds(40) {
        let dice = &mut *seeded(seed);
        let env = SimWorld::new(seed).process("a");
        let mut segments: Vec<Arc<Segment>> = Vec::new();
        let mut number = 0;
        for _ in 0..4 {
            let rows = 1 + dice.below(60);
            segments.push(segment(dice, rows));
            let whole = dump(&GraphState::of(segments.clone())).unwrap();
            let list = Manifest { marks: vec![(Id([1; 16]), number + 1)], ..Manifest::default() };
            let saved = save(&folder(&env), &segments, list, number, MergeOlder::Tiers(u64::MAX));
            let (manifest, written) = saved.unwrap();
            assert!(written.iter().all(|segment| !segment.is_in_memory()));
            assert_eq!(dump(&GraphState::of(written.clone())).unwrap(), whole);
            let (read, loaded) = folder(&env).load().unwrap();
            assert_eq!(read, manifest);
            assert_eq!(dump(&GraphState::of(loaded)).unwrap(), whole);
            assert_eq!(names(&env).len(), 1 + written.len(), "only what the list names is left");
            (segments, number) = (written, manifest.revision);
        }
    }
}

#[test]
fn who_finds_the_lock_taken_or_a_newer_list_writes_nothing() {
    let world = SimWorld::new(1);
    let env = world.process("a");
    let own = [segment(&mut seeded(1), 9)];
    let first = save(&folder(&env), &own, Manifest::default(), 0, MergeOlder::Tiers(u64::MAX));
    assert!(first.is_some());
    let before = names(&env);
    assert!(
        save(&folder(&env), &own, Manifest::default(), 0, MergeOlder::Tiers(u64::MAX)).is_none(),
        "it is not the newest"
    );
    let lock = env.disk.create_new(Path::new("/graph/lock")).unwrap();
    let text = format!("{} {}", env.identity.process(), env.identity.host());
    lock.write_at(text.as_bytes(), 0).unwrap();
    assert!(save(&folder(&env), &own, Manifest::default(), 1, MergeOlder::Tiers(u64::MAX)).is_none());
    env.disk.unlink(Path::new("/graph/lock")).unwrap();
    let dead = env.disk.create_new(Path::new("/graph/lock")).unwrap();
    dead.write_at(format!("4000000 {}", env.identity.host()).as_bytes(), 0).unwrap();
    assert!(
        save(&folder(&env), &own, Manifest::default(), 1, MergeOlder::Tiers(u64::MAX)).is_some(),
        "who had it is gone"
    );
    assert_eq!(names(&env).len(), before.len());
}

/// No byte of the files can change unnoticed.
#[test]
fn a_flipped_byte_gives_the_same_answer_or_none() {
    let world = SimWorld::new(3);
    let env = world.process("a");
    let own = [segment(&mut seeded(3), 12)];
    save(&folder(&env), &own, Manifest::default(), 0, MergeOlder::Tiers(u64::MAX)).unwrap();
    let whole = dump(&GraphState::of(own.to_vec())).unwrap();
    for name in names(&env) {
        let path = PathBuf::from("/graph").join(name);
        let file = env.disk.open_plain(&path, true).unwrap();
        for at in 0..file.stat().unwrap().len {
            let mut byte = [0];
            file.read_at(&mut byte, at).unwrap();
            file.write_at(&[byte[0] ^ 0x10], at).unwrap();
            if let Some((_, segments)) = folder(&env).load() {
                let state = GraphState::of(segments);
                assert!(dump(&state).is_err(), "byte {at} of {} is not looked at", path.display());
            }
            file.write_at(&byte, at).unwrap();
        }
    }
    assert_eq!(dump(&GraphState::of(folder(&env).load().unwrap().1)).unwrap(), whole);
}

/// A commit of one record, the first of its log.
fn commit(log: u8, record: &Record) -> Commit {
    Commit {
        writer: Id([log; 16]),
        owner: 1,
        sequence: 1,
        stamp: 1,
        time: 0,
        transaction: None,
        order: None,
        side: vec![record.encode()],
    }
}

fn apply(follower: &mut GraphFollower, log: u8, from_scratch: bool) {
    follower.begin(Wait::Yes).unwrap();
    if from_scratch {
        follower.clear().unwrap();
    }
    let row = common::relation_row(&mut seeded(u64::from(log)));
    follower.commit(&commit(log, &Record::Relations(vec![row]))).unwrap();
    follower.mark(Id([log; 16]), 1).unwrap();
    follower.end().unwrap();
}

#[test]
fn what_was_written_takes_the_place_of_what_it_was_written_from_alone() {
    for rebuilt in [false, true] {
        let env = SimWorld::new(4).process("a");
        let mut follower = GraphFollower::new();
        apply(&mut follower, 1, false);
        let frozen = follower.freeze().unwrap();
        let saved = frozen.save(&folder(&env), MergeOlder::Tiers(u64::MAX)).unwrap();
        assert!(saved.is_some());
        apply(&mut follower, 2, rebuilt);
        let before = follower.dump().unwrap();
        follower.install(&frozen, saved);
        assert_eq!(follower.dump().unwrap(), before, "rebuilt: {rebuilt}");
        assert_eq!(follower.applied().segments[0].is_in_memory(), rebuilt);
    }
}

/// However many are written, few files remain, and merging all of them keeps the content.
#[test]
fn many_small_segments_become_few_and_all_may_become_one() {
    let env = SimWorld::new(6).process("a");
    let dice = &mut *seeded(6);
    let (mut segments, mut number): (Vec<Arc<Segment>>, u64) = (Vec::new(), 0);
    for _ in 0..30 {
        segments.push(segment(dice, 3));
        let saved = save(&folder(&env), &segments, Manifest::default(), number, MergeOlder::Tiers(u64::MAX));
        let (manifest, written) = saved.unwrap();
        (segments, number) = (written, manifest.revision);
        assert!(segments.len() < 4, "{} segments of the first tier", segments.len());
    }
    let whole = dump(&GraphState::of(segments.clone())).unwrap();
    segments.push(segment(dice, 0));
    let room = save(&folder(&env), &segments, Manifest::default(), number, MergeOlder::None).unwrap();
    assert_eq!(room.1.len(), segments.len(), "those on the disk stay as they are");
    let one =
        save(&folder(&env), &room.1, Manifest::default(), number + 1, MergeOlder::UpTo(u64::MAX)).unwrap();
    assert_eq!(one.1.len(), 1);
    assert_eq!(dump(&GraphState::of(one.1)).unwrap(), whole);
}

/// If four segments of a tier have more bytes than one may have, they stay as they are.
#[test]
fn segments_of_a_tier_become_one_unless_it_were_too_large() {
    for (largest, left) in [(u64::MAX, 1), (1, 4)] {
        let env = SimWorld::new(6).process("a");
        let dice = &mut *seeded(6);
        let (mut segments, mut number): (Vec<Arc<Segment>>, u64) = (Vec::new(), 0);
        for _ in 0..4 {
            segments.push(segment(dice, 3));
            let older = MergeOlder::Tiers(largest);
            let (manifest, written) =
                save(&folder(&env), &segments, Manifest::default(), number, older).unwrap();
            (segments, number) = (written, manifest.revision);
        }
        assert_eq!(segments.len(), left);
    }
}

/// Content that is too large for one segment becomes several, each of adjacent times.
#[test]
fn all_become_segments_of_a_given_size_at_most() {
    let env = SimWorld::new(7).process("a");
    let dice = &mut *seeded(7);
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    for number in 0..12 {
        segments.push(segment(dice, 20));
        let room = save(&folder(&env), &segments, Manifest::default(), number, MergeOlder::None).unwrap();
        segments = room.1;
    }
    let whole = dump(&GraphState::of(segments.clone())).unwrap();
    let largest = segments.iter().map(|segment| segment.bytes).max().unwrap();
    segments.push(segment(dice, 20));
    segments.push(segment(dice, 20));
    let with_new = dump(&GraphState::of(segments.clone())).unwrap();
    let few = save(&folder(&env), &segments, Manifest::default(), 12, MergeOlder::UpTo(4 * largest)).unwrap();
    assert!((3..=5).contains(&few.1.len()), "{} segments", few.1.len());
    assert!(few.1.iter().all(|segment| !segment.is_in_memory() && segment.bytes <= 4 * largest));
    assert_eq!(dump(&GraphState::of(few.1.clone())).unwrap(), with_new);
    assert_ne!(with_new, whole);
    assert_eq!(names(&env).len(), 1 + few.1.len());
    let (_, read) = folder(&env).load().unwrap();
    assert_eq!(dump(&GraphState::of(read)).unwrap(), with_new);

    let alone = save(&folder(&env), &few.1, Manifest::default(), 13, MergeOlder::UpTo(1)).unwrap();
    let paths = |segments: &[Arc<Segment>]| -> Vec<_> {
        segments.iter().map(|segment| segment.path().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(&alone.1), paths(&few.1), "what is large enough is not written again");
}

/// A large file goes through a thread: its pages are equal to those that one call after another makes.
#[test]
fn a_large_segment_is_written_the_same_each_time_and_says_what_it_said() {
    let row = |i: u64| RelationRow {
        kind: "read".into(),
        source: VertexName::new("job", &(i / 10).to_string()),
        target: VertexName::new("file", &format!("/data/{}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
        version: Version { stamp: 1 + i, time: 0, deleted: false },
        until: None,
        props: Props::default(),
    };
    let mut rows = Rows::default();
    let known = CommitKnown { since: 1, stamp: 1 };
    rows.begin(CommitOrder { known, user: 1 });
    let records = Record::Relations((0..40_000).map(row).collect());
    rows.add(CommitOrder { known, user: 1 }, &records.encode()).unwrap();
    let segment = Arc::new(build(&rows).unwrap());
    let whole = dump(&GraphState::of(vec![segment.clone()])).unwrap();
    let written = [7, 8].map(|seed| {
        let env = SimWorld::new(seed).process("a");
        let saved =
            save(&folder(&env), std::slice::from_ref(&segment), Manifest::default(), 0, MergeOlder::None);
        let (_, segments) = saved.unwrap();
        assert!(!segments[0].is_in_memory());
        assert!(segments[0].bytes > 64 * PAGE as u64, "{} bytes are few pages", segments[0].bytes);
        // Through a cache of its own, so that each page is read from the file and its checksum compared.
        let (_, read) = folder(&env).load().unwrap();
        assert_eq!(dump(&GraphState::of(read)).unwrap(), whole);
        let named = names(&env).into_iter().find(|name| name.ends_with(".segment")).unwrap();
        let file = env.disk.open_plain(&Path::new("/graph").join(named), false).unwrap();
        let mut bytes = vec![0; file.stat().unwrap().len as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    });
    assert!(written[0] == written[1], "the order of pages depends on the thread");
}
