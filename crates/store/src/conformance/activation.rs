//! Transactions that become visible kind by kind, and what a feed shows of them.

use fieldstone_core::Result;
use fieldstone_format::log::kinds::{FIELDS, TAG, VARIABLE_ATTRIBUTE};

use super::*;

/// A side record with a number.
fn record(n: u8) -> SideRecord {
    SideRecord { kind: 9, bytes: vec![n].into() }
}

/// Takes a side record for the next flush, where the store has such.
fn note(harness: &dyn Harness, store: &Store, n: u8, transaction: Option<Id>) -> Result<()> {
    match harness.joins(&**store) {
        Some(joins) => joins.archive_side(vec![record(n)], transaction),
        None => Ok(()),
    }
}

/// Flushes a field and a side record into a transaction.
fn join(harness: &dyn Harness, store: &Store, key: &str, value: &[u8], n: u8, id: Id) -> Result<()> {
    put_in(store, key, value, Some(id))?;
    note(harness, store, n, Some(id))?;
    store.flush(Some(id))?;
    harness.settle();
    Ok(())
}

/// Checks which side records have a kind that everybody sees, in the order of their place among all commits.
fn sees(harness: &dyn Harness, store: &Store, kind: u32, expected: &[u8]) -> Result<()> {
    let Some(joins) = harness.joins(&**store) else { return Ok(()) };
    let feed = joins.feed()?;
    let decisions = feed.decisions();
    let mut found = Vec::new();
    for (writer, _) in feed.heads() {
        for commit in feed.commits(writer, 0)? {
            let commit = commit?;
            let order = match commit.transaction {
                None => Some((commit.stamp, writer)),
                Some(id) => decisions
                    .iter()
                    .find(|decision| decision.transaction == id)
                    .and_then(|decision| decision.visible(kind, writer, commit.sequence)),
            };
            found.extend(order.map(|order| (order, commit.stamp, commit.side[0].bytes[0])));
        }
    }
    found.sort_unstable();
    assert_eq!(found.into_iter().map(|(_, _, n)| n).collect::<Vec<u8>>(), expected, "kind {kind:#x}");
    Ok(())
}

fn feed_of(harness: &dyn Harness, store: &Store) -> Result<Feed> {
    let joins = harness.joins(&**store);
    joins.ok_or_else(|| Error::internal("one handle has a feed, another has none"))?.feed()
}

fn decide(harness: &dyn Harness, store: &Store, id: Id, on: u32, off: u32) -> Result<()> {
    store.decide_kinds(id, on, off)?;
    harness.settle();
    Ok(())
}

/// Kinds become visible one by one, of what is prepared by then; the transaction stays open for more.
pub fn kinds_become_visible_one_by_one(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    join(harness, &b, "run=a,variable=t", b"b", 1, id)?;
    decide(harness, &a, id, TAG, 0)?;
    for store in [&a, &b] {
        sees(harness, store, TAG, &[1])?;
        sees(harness, store, VARIABLE_ATTRIBUTE, &[])?;
        assert_eq!(listed(store, "")?.len(), 0);
        assert_eq!(get_in(store, "run=a,variable=t", Some(id))?, b"b");
        let open: Vec<(Id, u32)> = store.status()?.transactions.iter().map(|t| (t.id, t.kinds)).collect();
        assert_eq!(open, [(id, TAG)]);
    }
    // What the opener did not flush is flushed by the decision; what is flushed after it is not covered.
    put_in(&a, "run=a,variable=u", b"a", Some(id))?;
    decide(harness, &a, id, FIELDS, 0)?;
    join(harness, &b, "run=a,variable=late", b"b", 2, id)?;
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?, ["{run=a}{variable=t}{}", "{run=a}{variable=u}{}"]);
        sees(harness, store, TAG, &[1])?;
        assert_eq!(get_in(store, "run=a,variable=late", Some(id))?, b"b");
    }
    a.decide(id, true)?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?.len(), 3);
        sees(harness, store, TAG, &[1, 2])?;
        sees(harness, store, VARIABLE_ATTRIBUTE, &[1, 2])?;
        assert!(store.status()?.transactions.is_empty());
    }
    put_in(&b, "run=a,variable=t", b"too late", Some(id))?;
    fails("a late flush", ErrorKind::Conflict, b.flush(Some(id)));
    b.discard(Some(id))
}

/// A kind that is switched off is gone for all but those who name the transaction, also after the
/// commit; switched on again it counts as new.
pub fn kinds_are_switched_off_and_on_again(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    put(&b, "run=a,variable=t", b"before")?;
    flush(harness, &b)?;
    let id = a.begin()?;
    join(harness, &a, "run=a,variable=t", b"prepared", 1, id)?;
    a.decide(id, true)?;
    harness.settle();
    let committed = a.version()?;
    decide(harness, &a, id, 0, FIELDS)?;
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=t")?, b"before");
        assert_eq!(get_in(store, "run=a,variable=t", Some(id))?, b"prepared");
        sees(harness, store, TAG, &[1])?;
        sees(harness, store, FIELDS, &[])?;
        assert!(store.status()?.transactions.is_empty(), "it is committed all the same");
    }
    put(&b, "run=a,variable=t", b"between")?;
    note(harness, &b, 5, None)?;
    flush(harness, &b)?;
    decide(harness, &a, id, FIELDS, TAG)?;
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=t")?, b"prepared");
        sees(harness, store, FIELDS, &[5, 1])?;
        sees(harness, store, TAG, &[5])?;
    }
    // Nothing changes by what is so already, and an older version shows what was so then.
    let version = a.version()?;
    decide(harness, &a, id, FIELDS, TAG)?;
    assert_eq!(a.version()?, version);
    let then = harness.open(2, &Opening { at: Some(committed), ..Opening::default() })?;
    assert_eq!(get(&then, "run=a,variable=t")?, b"prepared");
    sees(harness, &then, TAG, &[1])?;
    put_in(&b, "run=a,variable=t", b"too late", Some(id))?;
    fails("a late flush", ErrorKind::Conflict, b.flush(Some(id)));
    fails("an abort of what is committed", ErrorKind::Conflict, a.decide(id, false));
    Ok(())
}

/// What a later decision covers counts from it on, what an earlier one covers from that one on.
pub fn what_is_covered_later_is_newer(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    join(harness, &a, "run=a,variable=first", b"prepared", 1, id)?;
    decide(harness, &a, id, FIELDS, 0)?;
    for variable in ["first", "second"] {
        put(&b, &format!("run=a,variable={variable}"), b"between")?;
    }
    flush(harness, &b)?;
    join(harness, &a, "run=a,variable=second", b"prepared", 2, id)?;
    a.decide(id, true)?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=first")?, b"between");
        assert_eq!(get(store, "run=a,variable=second")?, b"prepared");
    }
    Ok(())
}

/// An abort takes away what was visible by kind, for good.
pub fn an_abort_after_activation_is_final(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    join(harness, &b, "run=a,variable=t", b"x", 1, id)?;
    decide(harness, &a, id, FIELDS | TAG, 0)?;
    assert_eq!(listed(&b, "")?.len(), 1);
    sees(harness, &b, TAG, &[1])?;
    a.decide(id, false)?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?.len(), 0);
        sees(harness, store, TAG, &[])?;
        fails("an aborted field", ErrorKind::NotFound, get_in(store, "run=a,variable=t", Some(id)));
        let refused = fails("what is aborted", ErrorKind::Conflict, store.decide_kinds(id, FIELDS, 0));
        names(&refused, &id.to_string());
    }
    // Also where nothing was prepared yet when it was activated.
    let id = a.begin()?;
    decide(harness, &a, id, FIELDS, 0)?;
    a.decide(id, false)?;
    harness.settle();
    put_in(&b, "run=a,variable=t", b"x", Some(id))?;
    fails("a late flush", ErrorKind::Conflict, b.flush(Some(id)));
    fails("both at once", ErrorKind::Invalid, a.decide_kinds(a.begin()?, TAG, TAG));
    Ok(())
}

/// A feed gives the side records of each log commit by commit, from where one was before, and nothing of
/// commits without.
pub fn a_feed_gives_commits_in_their_order(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let (Some(of_a), Some(of_b)) = (harness.joins(&*a), harness.joins(&*b)) else { return Ok(()) };
    assert_eq!((of_a.feed()?.heads(), of_a.pending_side(None)?), (vec![], vec![]));
    for n in 1..=6u8 {
        put(&a, &format!("run=a,variable=t,step={n}"), &[n])?;
        if n % 2 == 0 {
            of_a.archive_side(vec![record(n), record(n + 10)], None)?;
            assert_eq!(of_a.pending_side(None)?, [record(n), record(n + 10)]);
        }
        flush(harness, &a)?;
        assert_eq!(of_a.pending_side(None)?, []);
    }
    let id = b.begin()?;
    of_b.archive_side(vec![record(7)], Some(id))?;
    assert_eq!((of_b.pending_side(None)?, of_b.pending_side(Some(id))?), (vec![], vec![record(7)]));
    b.flush(Some(id))?;
    harness.settle();
    let feed = of_a.feed()?;
    let heads = feed.heads();
    let of = |length: u64| heads.iter().find(|(_, sequence)| *sequence == length).copied();
    let (Some((first, _)), Some((second, _))) = (of(6), of(1)) else {
        return Err(Error::internal(format!("the logs are {heads:?}")));
    };
    let sides = |writer: Id, after: u64| -> Result<Vec<(u64, Vec<u8>)>> {
        let numbers = |commit: Commit| (commit.sequence, commit.side.iter().map(|r| r.bytes[0]).collect());
        feed.commits(writer, after)?.map(|commit| Ok(numbers(commit?))).collect()
    };
    assert_eq!(sides(first, 0)?, [(2, vec![2, 12]), (4, vec![4, 14]), (6, vec![6, 16])]);
    assert_eq!(sides(first, 2)?, [(4, vec![4, 14]), (6, vec![6, 16])]);
    assert_eq!(sides(first, 3)?, [(4, vec![4, 14]), (6, vec![6, 16])]);
    assert_eq!((sides(first, 6)?, sides(Id::NONE, 0)?), (vec![], vec![]));
    let commits: Vec<Commit> = feed.commits(second, 0)?.collect::<Result<_>>()?;
    assert_eq!((commits.len(), commits[0].transaction, commits[0].writer), (1, Some(id), second));
    // It shows one moment, as does the feed of an older version.
    of_a.archive_side(vec![record(99)], None)?;
    flush(harness, &a)?;
    assert_eq!(sides(first, 4)?.len(), 1);
    let then = harness.open(2, &Opening { at: Some(feed.version()), ..Opening::default() })?;
    let then = feed_of(harness, &then)?;
    assert_eq!((then.heads(), then.problems().len()), (heads.clone(), 0));
    assert_eq!(then.commits(first, 4)?.count(), 1);
    assert_eq!(of_a.feed()?.commits(first, 4)?.count(), 2);
    Ok(())
}

/// A feed gives the entries of each log: fields with type and shape, pieces and removals.
pub fn a_feed_gives_entries(harness: &dyn Harness) -> Result<()> {
    let a = open(harness, 0)?;
    if harness.joins(&*a).is_none() {
        return Ok(());
    }
    put(&a, "run=a,variable=bytes", b"x")?;
    flush(harness, &a)?;
    let data = doubles([1.0; 6]);
    let value =
        Value::Array { data: &data, dtype: fieldstone_core::dtype::DType::parse("<f8")?, shape: &[2, 3] };
    with_key("run=a,variable=array,step=1", |key| a.archive(key, value, &ArchiveOptions::default()))?;
    flush(harness, &a)?;
    a.remove(&request("run=a,variable=bytes")?, &RemoveOptions::default())?;
    flush(harness, &a)?;
    let id = a.begin()?;
    put_in(&a, "run=tx,variable=t", b"x", Some(id))?;
    a.flush(Some(id))?;
    harness.settle();
    let feed = feed_of(harness, &open(harness, 1)?)?;
    let (writer, _) = feed.heads()[0];
    let entries = |after: u64| -> Result<Vec<(String, u64, bool)>> {
        let of = |entry: EntryChange| (entry.key.to_string(), entry.sequence, entry.removal);
        feed.entries(writer, after).map(|entry| Ok(of(entry?))).collect()
    };
    let all = [
        ("{run=a}{variable=array}{step=1}", 2, false),
        ("{run=a}{variable=bytes}{}", 1, false),
        ("{run=a}{variable=bytes}{}", 3, true),
        ("{run=tx}{variable=t}{}", 4, false),
    ];
    for after in 0..5 {
        let mut found = entries(after)?;
        found.sort();
        let expected: Vec<_> = all.iter().filter(|(_, n, _)| *n > after).collect();
        assert_eq!(found.len(), expected.len());
        for ((key, n, removal), found) in expected.into_iter().zip(&found) {
            assert_eq!((*key, *n, *removal), (&*found.0, found.1, found.2));
        }
    }
    let array = feed.entries(writer, 1).find_map(|e| e.ok().filter(|e| e.sequence == 2));
    let array = array.ok_or_else(|| Error::internal("the array is not there"))?;
    assert_eq!(array.dtype.map(|dtype| dtype.to_string()).as_deref(), Some("<f8"));
    assert_eq!((array.shape.as_deref(), array.transaction), (Some(&[2, 3][..]), None));
    let prepared: Vec<EntryChange> = feed.entries_under(writer, id).collect::<Result<_>>()?;
    assert_eq!((prepared.len(), prepared[0].transaction, prepared[0].sequence), (1, Some(id), 4));
    assert_eq!(feed.problems(), []);
    Ok(())
}
