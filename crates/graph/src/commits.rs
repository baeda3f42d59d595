//! Commits without an execution: plain archives, declarations, annotations, deletions, wipes, locks, rules, hand-overs,
//! accepted losses and decisions on transactions, from the logs of a user.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::Result;
use fieldstone_core::key::KeyValue;
use fieldstone_format::catalog::{Record, Removal, is_catalog};
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::graph::VertexName;
use fieldstone_format::keys::{encode_level, level_text};
use fieldstone_format::log::SideRecord;
use fieldstone_format::owner::Owner;
use fieldstone_format::store_record::{self, RangeAction, Selection, StoreRecord};
use fieldstone_format::{Id, acceptance, schema_extension};
use fieldstone_journal::feed::{EntryEffect, Feed};
use fieldstone_journal::session::Limits;
use fieldstone_journal::snapshot::ALL_KINDS;

use crate::audit::{AuditOptions, AuditRow, is_written_by};
use crate::state::GraphState;

/// An action, and its objects.
type Act = (&'static str, VertexName);

/// One commit of a log.
#[derive(Debug, Default)]
struct Deeds {
    stamp: u64,
    time: i64,
    acts: BTreeSet<Act>,
}

/// The deeds of commits, by log and sequence.
type ByCommit = BTreeMap<(Id, u64), Deeds>;

/// The actions of a user's commits, by stamp.
pub fn of_user(feed: &Feed, user: u32, options: &AuditOptions, limits: &mut Limits) -> Result<Vec<AuditRow>> {
    let mut rows = Vec::new();
    let Some(store) = feed.store() else { return Ok(rows) };
    for ((log, sequence), deeds) in deeds_of(feed, (user, store), limits)? {
        let within = options.since.is_none_or(|since| deeds.stamp >= since)
            && options.until.is_none_or(|until| deeds.stamp <= until);
        if !within {
            continue;
        }
        let commit = commit_of(store, log, sequence);
        rows.extend(deeds.acts.into_iter().map(|(action, object)| AuditRow {
            stamp: deeds.stamp,
            time: deeds.time,
            user: String::new(),
            execution: commit.clone(),
            action: action.to_owned(),
            object,
        }));
    }
    rows.sort_by_key(|row| row.stamp);
    Ok(rows)
}

/// The first rows of commits that no execution of their user wrote: more than `limit` of them, if there are
/// that many.
///
/// For commits that are not in `known`, asks the graph whether the user wrote them: a limit may have cut off
/// rows of executions.
pub fn without_execution(
    state: &GraphState,
    rows: &[AuditRow],
    known: &BTreeSet<&VertexName>,
    (user, limit): (&str, usize),
    limits: &mut Limits,
) -> Result<Vec<AuditRow>> {
    let mut found = Vec::new();
    // Rows of one commit are adjacent.
    for rows in rows.chunk_by(|a, b| a.execution == b.execution) {
        if found.len() > limit {
            break;
        }
        limits.step()?;
        if let Some(row) = rows.first()
            && !known.contains(&row.execution)
            && !is_written_by(state, &row.execution, user)?
        {
            found.extend_from_slice(rows);
        }
    }
    Ok(found)
}

fn commit_of(store: Id, log: Id, sequence: u64) -> VertexName {
    VertexName::new("commit", &CommitId { store, log, sequence }.to_string())
}

fn action(effect: EntryEffect) -> Option<&'static str> {
    match effect {
        EntryEffect::Field => Some("archive"),
        EntryEffect::Removal => Some("delete"),
        EntryEffect::AttemptTombstone => None,
    }
}

/// The actions of the visible commits in a user's logs.
fn deeds_of(feed: &Feed, (user, store): (u32, Id), limits: &mut Limits) -> Result<ByCommit> {
    let mut all = ByCommit::new();
    let logs: Vec<Id> = feed.logs().into_iter().map(|(log, _)| log).collect();
    let logs: Vec<Id> = logs.into_iter().filter(|log| feed.user_of(*log) == Some(user)).collect();
    let shows = |transaction: Option<Id>, log: Id, sequence: u64| match transaction {
        None => true,
        Some(id) => {
            let state = feed.snapshot().transaction_state(id, user);
            state.is_some_and(|state| !state.aborted() && state.covers_commit(log, sequence))
        }
    };
    let known = feed.problems().len();
    // One walk over the takeovers serves all logs that they replace.
    let living = logs.iter().filter(|log| !feed.is_taken(**log)).flat_map(|log| feed.entries(*log, 0));
    for entry in feed.taken_entries(None).chain(living) {
        limits.step()?;
        let entry = entry?;
        if entry.owner != user || !shows(entry.transaction, entry.writer, entry.sequence) {
            continue;
        }
        let Some(action) = action(entry.effect) else { continue };
        let mut level = Vec::new();
        encode_level(&entry.key.levels[0], &mut level);
        let deeds = all.entry((entry.writer, entry.sequence)).or_default();
        (deeds.stamp, deeds.time) = (entry.stamp, entry.time);
        deeds.acts.insert((action, VertexName::new("dataset", &level_text(&level))));
    }
    if feed.problems().len() > known {
        // Part of the index is damaged. A commit itself holds its time.
        for log in &logs {
            for commit in feed.commits_of_fields(*log)? {
                if shows(commit.transaction, *log, commit.sequence) {
                    let unreadable = ("unreadable", commit_of(store, *log, commit.sequence));
                    let deeds = all
                        .entry((*log, commit.sequence))
                        .or_insert_with(|| Deeds { acts: BTreeSet::from([unreadable]), ..Deeds::default() });
                    (deeds.stamp, deeds.time) = (commit.stamp, commit.time);
                }
            }
        }
    }
    for log in &logs {
        for commit in feed.commits(*log, 0)? {
            limits.step()?;
            let commit = commit?;
            if !shows(commit.transaction, *log, commit.sequence) {
                continue;
            }
            let mut acts: Vec<Act> =
                commit.side.iter().filter(|side| is_catalog(side)).flat_map(acts).collect();
            acts.extend(commit.side.iter().filter_map(|side| store_act(side, store)));
            if !acts.is_empty() {
                let deeds = all.entry((*log, commit.sequence)).or_default();
                (deeds.stamp, deeds.time) = (commit.stamp, commit.time);
                deeds.acts.extend(acts);
            }
        }
    }
    feed.snapshot().taken.store_records(&mut |owner, row| {
        if let Some(act) = store_act(&row.record, store).filter(|_| owner == user) {
            let deeds = all.entry((row.writer, row.sequence)).or_default();
            (deeds.stamp, deeds.time) = (row.stamp, row.time);
            deeds.acts.insert(act);
        }
    })?;
    add_decisions(feed, user, &mut all, limits)?;
    Ok(all)
}

/// Adds the decisions of a user on transactions, as long as the store remembers them.
fn add_decisions(feed: &Feed, user: u32, all: &mut ByCommit, limits: &mut Limits) -> Result<()> {
    for (transaction, _, state) in feed.snapshot().transaction_states().filter(|(_, by, _)| *by == user) {
        // Records of the store say themselves what their commits do.
        if transaction == schema_extension::FLAG {
            continue;
        }
        for ((stamp, log), decided) in state.decisions() {
            limits.step()?;
            // Somebody to whom it was handed over may have decided.
            if feed.user_of(log).is_some_and(|by| by != user) {
                continue;
            }
            let action = match &decided.decision {
                decision if !decision.committed => "abort",
                decision if decision.kinds == ALL_KINDS => "commit",
                _ => "activate",
            };
            let deeds = all.entry((log, decided.sequence)).or_default();
            deeds.stamp = stamp;
            if deeds.time == 0 {
                // A decision is on record without its time, and a stamp follows the clock.
                deeds.time = i64::try_from(stamp).unwrap_or(i64::MAX);
            }
            deeds.acts.insert((action, VertexName::new("transaction", &transaction.to_string())));
        }
    }
    Ok(())
}

/// The action in a record of the store.
fn store_act(side: &SideRecord, store: Id) -> Option<Act> {
    if let Ok(Some(acceptance)) = acceptance::decode(side) {
        return Some(("accept", VertexName::new("log", &acceptance.writer.to_string())));
    }
    match store_record::decode(side) {
        Ok(Some(StoreRecord::Range(range))) => {
            let action = match &range.action {
                RangeAction::Wipe => "wipe",
                RangeAction::Hide => "hide",
                RangeAction::Lock(_) => "lock",
                RangeAction::End(ended) => match **ended {
                    RangeAction::Hide => "unhide",
                    RangeAction::Lock(_) => "unlock",
                    RangeAction::Overlay(_) => "end-overlay",
                    _ => return None,
                },
                RangeAction::Overlay(_) => "overlay",
            };
            Some((action, selected(&range.selection, store)))
        }
        Ok(Some(StoreRecord::HandOver(made))) => Some(("hand-over", owner_vertex(&made.from))),
        Ok(Some(StoreRecord::Rule(rule))) => Some(("retain", VertexName::new("request", &rule.text))),
        Ok(Some(StoreRecord::Erasure(erasure))) => Some(("erase", VertexName::new("request", &erasure.what))),
        _ => None,
    }
}

/// The user whose things were handed over.
fn owner_vertex(owner: &Owner) -> VertexName {
    match owner {
        Owner::User(user) => VertexName::new("user", &user.to_string()),
        Owner::Subject { subject, .. } => VertexName::new("user", subject),
    }
}

/// A selection as a request; the store, where it selects everything.
fn selected(selection: &Selection, store: Id) -> VertexName {
    if selection.items.is_empty() {
        return VertexName::new("store", &store.to_string());
    }
    let values = |values: &[KeyValue]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join("/");
    let named = selection.items.iter().filter(|item| !item.values.iter().all(KeyValue::is_absent));
    let items: Vec<String> = named.map(|item| format!("{}={}", item.keyword, values(&item.values))).collect();
    VertexName::new("request", &items.join(","))
}

/// The actions in a record of the catalog.
fn acts(side: &SideRecord) -> Vec<Act> {
    let named = |kind: &str, name: &str| VertexName::new(kind, name);
    let Ok(record) = Record::decode(side) else { return Vec::new() };
    match record {
        Record::Runs(runs) => runs.iter().map(|run| ("declare", named("run", &run.run.name))).collect(),
        Record::Steps(run, _)
        | Record::Variables(run, _)
        | Record::Groups(run, _)
        | Record::Imports(run, _) => {
            vec![("declare", named("run", &run.name))]
        }
        Record::Tags(tags) => tags.iter().map(|tag| ("declare", named("tag", &tag.name))).collect(),
        Record::Attributes(batch) => vec![("annotate", named("run", &batch.run.name))],
        Record::Remove(removals) => removals.iter().map(|removal| ("delete", removed(removal))).collect(),
        Record::Meshes(meshes) => meshes.iter().map(|mesh| ("declare", named("mesh", &mesh.name))).collect(),
        Record::Histories(_) => Vec::new(),
        Record::Moved(moved) => moved.iter().map(|(run, _)| ("repoint", named("run", &run.name))).collect(),
        Record::States(states) => states.iter().map(|(run, _)| ("end", named("run", &run.name))).collect(),
    }
}

fn removed(removal: &Removal) -> VertexName {
    match removal {
        Removal::Run(run) => VertexName::new("run", &run.name),
        Removal::Step(run, step) => VertexName::new("step", &format!("{}/{step}", run.name)),
        Removal::Variable(run, variable) => {
            VertexName::new("variable", &format!("{}/{}", run.name, variable.name))
        }
        Removal::Tag(tag) => VertexName::new("tag", &tag.name),
        Removal::Attributes(attributes) => VertexName::new("attributes", &attributes.len().to_string()),
    }
}
