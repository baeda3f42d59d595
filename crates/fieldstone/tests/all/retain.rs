//! Rules of retention and maintenance at both ends of a connection, and in stores that are not in a folder.

use std::time::Duration;

use fieldstone::catalog::CatalogSettings;
use fieldstone::prelude::*;
use fieldstone::{
    Code, ErrorKind, ListOptions, MaintainAction, MaintainOptions, OpenOptions, Request, RetainOptions,
    Store, loopback,
};

use crate::shared::Both;

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn older(seconds: u64) -> RetainOptions {
    RetainOptions { older_than: Some(Duration::from_secs(seconds)), ..RetainOptions::default() }
}

#[test]
fn a_store_at_the_far_end_keeps_and_obeys_rules_alike() {
    let folder = tempfile::tempdir().unwrap();
    let near = Both::at(folder.path()).store;
    for far in [near.clone(), Store::over(loopback(near.backend().clone()), CatalogSettings::default())] {
        let both = Both { catalog: far.catalog_with(CatalogSettings::default()), store: far };
        both.archive(&[("run", "a"), ("variable", "t"), ("step", "0")], &[2], None);
        both.flush();
        let store = &both.store;
        let rule = store.retain(&request("run=a"), &older(0)).unwrap();
        assert_eq!((&rule.request[..], rule.older_than, rule.versions), ("run=a", Some(0), None));
        assert_eq!(store.rules().unwrap(), [rule]);
        for (text, options) in
            [("run=a,step=0", older(1)), ("run=a", RetainOptions::default()), ("", older(1))]
        {
            assert_eq!(store.retain(&request(text), &options).unwrap_err().kind(), ErrorKind::Invalid);
        }
        let heard = std::sync::Mutex::new(Vec::new());
        let progress = |now: fieldstone::MaintainProgress| {
            heard.lock().unwrap().push((now.action, now.request));
            Ok(())
        };
        let options = MaintainOptions { progress: Some(&progress), ..MaintainOptions::default() };
        let report = store.maintain(&options).unwrap();
        assert!(report.failed().is_none(), "{report}");
        assert_eq!((report.steps[1].done, report.steps[1].fields), (true, 1), "{report}");
        assert!(heard.into_inner().unwrap().contains(&(MaintainAction::Wipe, "run=a".into())));
        assert_eq!(store.list(&Request::new(), &ListOptions::default()).unwrap().count(), 0);
        let advice = store.status().unwrap().advice;
        assert!(advice.iter().any(|a| a.command.starts_with("fieldstone maintain")), "{advice:?}");
        store.retain(&request("run=a"), &RetainOptions { drop: true, ..RetainOptions::default() }).unwrap();
        assert_eq!(store.rules().unwrap(), []);
    }
}

#[test]
fn a_store_in_memory_obeys_ages_and_has_no_files_to_look_after() {
    let both = Both::memory();
    both.archive(&[("run", "a"), ("variable", "t"), ("step", "0")], &[2], None);
    both.flush();
    both.store.retain(&request("run=a"), &older(0)).unwrap();
    let report = both.store.maintain(&MaintainOptions::default()).unwrap();
    assert!(report.failed().is_none() && report.steps[1].done, "{report}");
    assert!(report.steps[3].why.as_deref().unwrap().contains("memory"), "{report}");
}

#[test]
fn a_filter_has_the_rules_of_its_store_and_makes_none() {
    let both = Both::memory();
    both.archive(&[("run", "a"), ("variable", "t"), ("step", "0")], &[2], None);
    both.flush();
    both.store.retain(&request("run=a"), &older(9)).unwrap();
    let winds = both.store.filtered(request("variable=u")).unwrap();
    assert_eq!(winds.rules().unwrap().len(), 1);
    let refused = [
        winds.retain(&request("run=a"), &older(1)).unwrap_err(),
        winds.maintain(&MaintainOptions::default()).unwrap_err(),
    ];
    assert!(
        refused.iter().all(|e| e.kind() != ErrorKind::Internal && e.code() != Code::Corrupt),
        "{refused:?}"
    );
}

#[test]
fn an_old_format_and_a_reader_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("s").display().to_string();
    let store = fieldstone::open(&url, &OpenOptions { format: Some(1), ..OpenOptions::default() }).unwrap();
    store.create_run("a").create().unwrap();
    store.flush(None).unwrap();
    assert_eq!(store.retain(&request("run=a"), &older(1)).unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(store.maintain(&MaintainOptions::default()).unwrap_err().kind(), ErrorKind::Denied);
    let advice = store.status().unwrap().advice;
    assert!(advice.iter().any(|a| a.command.starts_with("fieldstone upgrade")), "{advice:?}");
}
