//! Attempts: of one field a reader takes one attempt alone, the one that began last.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_journal::Session;

use super::generations::{KEY, create, piece, read, read_filled, whole};
use super::*;

fn attempt(harness: &dyn Harness, process: usize, name: &str) -> Result<Store> {
    harness.open(process, &Opening { attempt: name.to_owned(), ..Opening::default() })
}

fn entries(store: &Store, masked: bool) -> Result<Vec<ListEntry>> {
    store.list(&Request::new(), &ListOptions { masked, ..ListOptions::default() })?.collect()
}

/// The pieces of a job that died and those of the one that was started again: the newer attempt hides the older
/// one from its first piece on, also what stragglers flush later, from logs old and new.
pub fn pieces_of_two_attempts_never_add_up(harness: &dyn Harness) -> Result<()> {
    let (old, late) = (attempt(harness, 0, "one")?, attempt(harness, 1, "one")?);
    piece(&old, 0, &[1.0; 5])?;
    flush(harness, &old)?;
    let (new, other) = (attempt(harness, 2, "two")?, attempt(harness, 3, "two")?);
    piece(&new, 5, &[2.0; 5])?;
    flush(harness, &new)?;
    for store in [&old, &new, &open(harness, 3)?] {
        let expected = [-1.0, -1.0, -1.0, -1.0, -1.0, 2.0, 2.0, 2.0, 2.0, 2.0];
        assert_eq!(read_filled(store)?, expected);
        let listed = entries(store, false)?;
        assert_eq!((listed.len(), listed[0].complete), (1, false));
        assert_eq!(listed[0].attempt.as_deref(), Some("two"));
    }
    // A straggler in the log it had, and one whose log is made only now: both are of the attempt that began first.
    piece(&old, 0, &[3.0; 10])?;
    flush(harness, &old)?;
    piece(&late, 0, &[4.0; 10])?;
    flush(harness, &late)?;
    assert!(!entries(&open(harness, 3)?, false)?[0].complete);
    piece(&other, 0, &[5.0; 5])?;
    flush(harness, &other)?;
    let whole: Vec<f64> = [[5.0; 5], [2.0; 5]].concat();
    for store in [&old, &new, &late, &open(harness, 1)?] {
        assert_eq!(read(store)?, whole);
    }
    // The versions that are hidden are each of one attempt.
    let all: Vec<(Option<String>, bool, bool)> = entries(&new, true)?
        .iter()
        .map(|entry| (entry.attempt.as_deref().map(str::to_owned), entry.complete, entry.masked))
        .collect();
    assert_eq!(all, [(Some("two".into()), true, false), (Some("one".into()), true, true)]);
    // A whole array of the old attempt is hidden as well.
    super::generations::whole(&old, 9.0)?;
    flush(harness, &old)?;
    assert_eq!(read(&new)?, whole);
    Ok(())
}

/// Values of writers without an attempt count by their order, next to the newest attempt.
pub fn what_has_no_attempt_counts_as_ever(harness: &dyn Harness) -> Result<()> {
    let (plain, one) = (open(harness, 0)?, attempt(harness, 1, "one")?);
    piece(&plain, 0, &[1.0; 4])?;
    flush(harness, &plain)?;
    piece(&one, 2, &[2.0; 4])?;
    flush(harness, &one)?;
    piece(&plain, 5, &[3.0; 5])?;
    flush(harness, &plain)?;
    let expected = [1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0];
    assert_eq!(read(&open(harness, 2)?)?, expected);
    let two = attempt(harness, 2, "two")?;
    piece(&two, 9, &[4.0])?;
    flush(harness, &two)?;
    // Among attempts only the newest counts; values without an attempt stay.
    let expected = [1.0, 1.0, 1.0, 1.0, -1.0, 3.0, 3.0, 3.0, 3.0, 4.0];
    assert_eq!(read_filled(&open(harness, 1)?)?, expected);
    whole(&plain, 5.0)?;
    flush(harness, &plain)?;
    assert_eq!(read(&two)?, [5.0; 10]);
    create(&one, None)?;
    flush(harness, &one)?;
    assert_eq!(read(&one)?, [5.0; 10], "a new generation of an old attempt");
    assert_eq!(entries(&two, false)?[0].attempt, None);
    Ok(())
}

/// A value without an attempt that a whole field of an attempt has hidden does not come back with a newer attempt; one that only a
/// straggler's whole field stands above was never hidden.
pub fn what_a_generation_hid_stays_hidden(harness: &dyn Harness) -> Result<()> {
    let (plain, one) = (open(harness, 0)?, attempt(harness, 1, "one")?);
    piece(&plain, 0, &[1.0; 4])?;
    flush(harness, &plain)?;
    whole(&one, 2.0)?;
    flush(harness, &one)?;
    let two = attempt(harness, 2, "two")?;
    piece(&two, 9, &[4.0])?;
    flush(harness, &two)?;
    let expected = [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 4.0];
    assert_eq!(read_filled(&open(harness, 1)?)?, expected);
    piece(&plain, 0, &[5.0; 4])?;
    flush(harness, &plain)?;
    whole(&one, 3.0)?;
    flush(harness, &one)?;
    let expected = [5.0, 5.0, 5.0, 5.0, -1.0, -1.0, -1.0, -1.0, -1.0, 4.0];
    assert_eq!(read_filled(&open(harness, 1)?)?, expected, "a straggler hides nothing");
    Ok(())
}

/// An attempt began with its first commit, also one that is prepared; decisions and older versions are taken into
/// account as ever.
pub fn attempts_in_transactions_and_versions(harness: &dyn Harness) -> Result<()> {
    let (one, two) = (attempt(harness, 0, "one")?, attempt(harness, 1, "two")?);
    piece(&one, 0, &[1.0; 10])?;
    flush(harness, &one)?;
    let before = one.version()?;
    let id = two.begin()?;
    let inside = ArchiveOptions { session: Session::from(id), ..ArchiveOptions::default() };
    let data = doubles([2.0; 5]);
    let value = Value::Piece { data: &data, dtype: DType::F8, start: &[0], count: &[5], shape: &[10] };
    with_key(KEY, |pairs| two.archive(pairs, value, &inside))?;
    two.flush(&Session::from(id))?;
    harness.settle();
    assert_eq!(read(&one)?, [1.0; 10], "what is prepared hides nothing");
    let own = ReadOptions { session: Session::from(id) };
    let seen = with_key(KEY, |pairs| two.get(pairs, &own))?;
    assert!(!seen.is_complete()?);
    two.decide(id, true, &Session::default())?;
    harness.settle();
    assert!(!entries(&one, false)?[0].complete);
    // A value of the older attempt is older, even if it is committed later.
    piece(&one, 0, &[3.0; 10])?;
    flush(harness, &one)?;
    assert!(!entries(&open(harness, 2)?, false)?[0].complete);
    let then = harness.open(2, &Opening { at: Some(before), ..Opening::default() })?;
    assert_eq!(read(&then)?, [1.0; 10]);
    Ok(())
}

/// A removal is of an attempt, too.
pub fn removals_of_attempts(harness: &dyn Harness) -> Result<()> {
    let (one, two) = (attempt(harness, 0, "one")?, attempt(harness, 1, "two")?);
    whole(&one, 1.0)?;
    flush(harness, &one)?;
    // The newer attempt removes what the older one wrote, and a straggler brings nothing back.
    assert_eq!(two.remove(&request(KEY)?, &RemoveOptions::default())?, 1);
    flush(harness, &two)?;
    whole(&one, 2.0)?;
    flush(harness, &one)?;
    assert_eq!(entries(&open(harness, 2)?, false)?.len(), 0);
    whole(&two, 3.0)?;
    flush(harness, &two)?;
    // The older attempt cannot remove it: what it does is hidden.
    assert_eq!(one.remove(&request(KEY)?, &RemoveOptions::default())?, 1);
    flush(harness, &one)?;
    assert_eq!(read(&open(harness, 2)?)?, [3.0; 10]);
    // A writer without an attempt can.
    let plain = open(harness, 2)?;
    assert_eq!(plain.remove(&request(KEY)?, &RemoveOptions::default())?, 1);
    flush(harness, &plain)?;
    assert_eq!(entries(&two, false)?.len(), 0);
    Ok(())
}

/// A removal finds the visible version, however late an older attempt wrote the hidden one.
pub fn a_visible_version_is_removed_behind_a_straggler(harness: &dyn Harness) -> Result<()> {
    let (one, two) = (attempt(harness, 0, "one")?, attempt(harness, 1, "two")?);
    whole(&one, 1.0)?;
    flush(harness, &one)?;
    whole(&two, 2.0)?;
    flush(harness, &two)?;
    whole(&one, 3.0)?;
    flush(harness, &one)?;
    let plain = open(harness, 2)?;
    assert_eq!(read(&plain)?, [2.0; 10]);
    let seen = plain.retrieve(&request(KEY)?, &RetrieveOptions::default())?;
    let fields = seen.iter().collect::<Result<Vec<_>>>()?;
    plain.remove_fields(&fields, &RemoveOptions::default())?;
    flush(harness, &plain)?;
    assert_eq!(entries(&open(harness, 2)?, false)?.len(), 0);
    Ok(())
}
