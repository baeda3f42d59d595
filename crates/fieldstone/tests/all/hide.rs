//! Hides: the catalog shows no hidden fields, and all of them again, however its indexes got there.

use std::path::Path;
use std::time::Duration;

use fieldstone::catalog::CatalogSettings;
use fieldstone::prelude::*;
use fieldstone::{CompactOptions, ListOptions, Mode, OpenOptions, Request, Store, loopback};

use crate::shared::Both;

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn open(folder: &Path, at: Option<String>) -> Both {
    Both::open(&folder.display().to_string(), &OpenOptions { mode: Mode::Read, at, ..OpenOptions::default() })
}

#[test]
fn the_catalog_follows_hides_and_their_ends() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    both.prepare("a");
    for run in ["a", "b", "c"] {
        for step in ["0", "6", "12"] {
            both.archive(&[("run", run), ("variable", "t"), ("step", step)], &[8, 8], None);
            both.archive(&[("run", run), ("variable", "u"), ("step", step)], &[4], None);
        }
    }
    both.annotate("a", "peak", 6, [0, 0], 1.5);
    both.flush();
    let (before, version) = (both.answers(), both.store.version().unwrap());
    // One that follows all along, one that is made while fields are hidden, one that is made at the end.
    assert_eq!(both.store.hide(&request("run=a,variable=u")).unwrap(), 3);
    assert_eq!(both.store.hide(&request("run=b")).unwrap(), 6);
    let hidden = both.answers();
    assert!(!hidden.contains("name: \"b\"") && hidden.contains("peak"), "{hidden}");
    let late = open(folder.path(), None);
    late.catalog.rebuild().unwrap();
    assert_eq!(late.answers(), hidden);
    assert_eq!(open(folder.path(), Some(version)).answers(), before);
    both.store.compact(&CompactOptions { grace: Duration::ZERO, ..CompactOptions::default() }).unwrap();
    both.archive(&[("run", "c"), ("variable", "t"), ("step", "18")], &[8, 8], None);
    both.flush();
    assert_eq!(both.store.unhide(&Request::new()).unwrap(), 9);
    both.store.remove(&request("run=c,variable=t,step=18"), &Default::default()).unwrap();
    both.flush();
    for reader in [&both, &late, &open(folder.path(), None)] {
        assert_eq!(reader.answers(), before);
        let check = reader.catalog.verify().unwrap();
        assert!(check.ok(), "{check:?}");
    }
    late.catalog.rebuild().unwrap();
    assert_eq!(late.answers(), before);
}

#[test]
fn a_store_at_the_far_end_is_hidden_alike() {
    let near = Both::memory().store;
    for far in [near.clone(), Store::over(loopback(near.backend().clone()), CatalogSettings::default())] {
        let both = Both { catalog: far.catalog_with(CatalogSettings::default()), store: far };
        both.archive(&[("run", "a"), ("variable", "t"), ("step", "0")], &[2], None);
        both.flush();
        assert_eq!(both.store.hide(&request("run=a")).unwrap(), 1);
        assert_eq!(both.store.list(&Request::new(), &ListOptions::default()).unwrap().count(), 0);
        let hidden = both.store.hidden().unwrap();
        assert_eq!((hidden.len(), hidden[0].request.as_str()), (1, "run=a"));
        assert_eq!(both.store.unhide(&request("run=a")).unwrap(), 1);
        assert_eq!(both.store.list(&Request::new(), &ListOptions::default()).unwrap().count(), 1);
    }
}
