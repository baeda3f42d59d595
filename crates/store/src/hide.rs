//! Hides: what a request selects vanishes for readers until somebody who may shows it again; its files stay (J-52).
//!
//! Invariants:
//! * one record hides what one version shows, whatever it holds, as that of a wipe does: what others flush meanwhile stays;
//! * hidden fields are to everything that gives space back what they were before: only reads pass them over.

use std::sync::Arc;

use fieldstone_core::key::{KeyValue, LEVELS, Names};
use fieldstone_core::request::{Request, Values};
use fieldstone_core::schema::{Constraint, Schema, Selection};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::store_record::{self, RangeAction, STORE_RECORDS_SINCE};
use fieldstone_journal::Journal;
use fieldstone_journal::snapshot::{Snapshot, StoreRange};

use crate::api::{HiddenFields, Hiding};
use crate::read::Scan;
use crate::wipe::{Foreign, Vanishing, vanish};

/// Hides what a request selects of whole datasets and indexes, or shows it again; returns how many fields that concerns.
pub fn set_hidden(journal: &Journal, request: &Request, how: &Hiding) -> Result<u64> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "a hide")?;
    let action = RangeAction::Hide;
    crate::wipe::check_levels(&journal.schema().now(), request, &action)?;
    let selection = select(journal, request)?;
    if !how.hides {
        return show(journal, request, selection, how);
    }
    if selection.names_nothing() {
        return Err(Code::RequestTooBroad
            .error("a hide of everything was asked for")
            .with_hint("list values of the datasets to hide, such as run=a"));
    }
    let what = Vanishing { action, age: None, doit: true, foreign: Foreign::Refused };
    Ok(vanish(journal, selection, &what, &how.session)?.fields)
}

/// The hides in force, oldest first.
pub fn hidden(journal: &Journal) -> Result<Vec<HiddenFields>> {
    let (snapshot, identity) = (journal.looks().snapshot()?, &journal.env().identity);
    let row = |made: &Arc<StoreRange>| HiddenFields {
        request: request_of(&made.range.selection),
        by: identity.user_name(made.user),
        since: made.time,
    };
    Ok(snapshot.wipes.hides().iter().map(row).collect())
}

/// Ends the hides that a request covers; the number of fields that are there again.
fn show(journal: &Journal, request: &Request, selection: Selection, how: &Hiding) -> Result<u64> {
    let snapshot = journal.looks().snapshot()?;
    let keywords = keywords(&journal.schema().now(), request);
    let (mut ended, mut broader) = (Vec::new(), None);
    for made in snapshot.wipes.hides() {
        match cover(&selection, &keywords, &made.range.selection) {
            Cover::Whole => ended.push(made),
            Cover::Part => broader = Some(made),
            Cover::Nothing => {}
        }
    }
    if let Some(made) = broader.filter(|_| ended.is_empty()) {
        let (hidden, by) = (request_of(&made.range.selection), journal.env().identity.user_name(made.user));
        return Err(Error::invalid(format!("{by} hid {hidden}, and {request} is a part of that"))
            .with_hint(format!("unhide {hidden}, then hide what is to stay hidden")));
    }
    if ended.is_empty() {
        return Ok(0);
    }
    for made in &ended {
        let shown = |by: &str| format!("{by} hid {}", request_of(&made.range.selection));
        journal.ranges().check_may_end(made, &snapshot, shown, &how.session)?;
    }
    let before = count(journal, &snapshot, &selection, how)?;
    journal.ranges().end_hides(&ended, &how.session)?;
    let after = count(journal, &journal.looks().snapshot()?, &selection, how)?;
    Ok(after.saturating_sub(before))
}

fn count(journal: &Journal, snapshot: &Arc<Snapshot>, selection: &Selection, how: &Hiding) -> Result<u64> {
    let mut scan = Scan::new(snapshot.clone(), selection.clone(), None)?.on(journal.files()).lenient(true);
    scan = scan.within(how.session.limits(&journal.env().clock));
    let mut fields = 0;
    while scan.next_key()?.is_some() {
        fields += 1;
    }
    Ok(fields)
}

fn select(journal: &Journal, request: &Request) -> Result<Selection> {
    let now = journal.env().clock.now();
    journal.schema().make(|schema| schema.select_at(request, now))
}

/// The keywords that a request and its bounds name, as the schema spells them.
fn keywords(schema: &Schema, request: &Request) -> Vec<Arc<str>> {
    let own = request.iter().map(|(keyword, _)| Arc::from(schema.spelling(keyword)));
    own.chain(request.bounds().iter().flat_map(|bound| keywords(schema, bound))).collect()
}

/// The part of a hide that a request covers.
#[derive(Debug, PartialEq, Eq)]
enum Cover {
    Nothing,
    Part,
    Whole,
}

/// The part of a hide's selection that another one covers, which names these keywords.
fn cover(selection: &Selection, keywords: &[Arc<str>], hidden: &store_record::Selection) -> Cover {
    let mut names: [Vec<Arc<str>>; LEVELS] = Default::default();
    for item in &hidden.items {
        if let Some(level) = names.get_mut(usize::from(item.level)) {
            level.push(item.keyword.clone());
        }
    }
    for keyword in keywords {
        if !names.iter().flatten().any(|known| known == keyword) {
            names[1].push(keyword.clone());
        }
    }
    let names: [Names; LEVELS] = names.map(Names::from);
    let [first, second, third] = &names;
    let Some(matcher) = selection.for_shape([first, second, third]) else { return Cover::Nothing };
    let mut cover = Cover::Whole;
    for (names, constraints) in names.iter().zip(&matcher.constraints) {
        for (name, constraint) in names.iter().zip(constraints) {
            if matches!(constraint, Constraint::Any) {
                continue;
            }
            // Without an item the hide is of every value.
            let Some(item) = hidden.items.iter().find(|item| item.keyword == *name) else {
                cover = Cover::Part;
                continue;
            };
            match item.values.iter().filter(|value| constraint.matches(value)).count() {
                0 => return Cover::Nothing,
                some if some < item.values.len() => cover = Cover::Part,
                _ => {}
            }
        }
    }
    cover
}

/// A selection as a request.
fn request_of(selection: &store_record::Selection) -> String {
    let mut request = Request::new();
    for item in &selection.items {
        let values: Vec<String> =
            item.values.iter().filter(|value| !value.is_absent()).map(KeyValue::to_string).collect();
        if !values.is_empty() {
            request.set(&*item.keyword, Values::list(values));
        }
    }
    request.to_string()
}
