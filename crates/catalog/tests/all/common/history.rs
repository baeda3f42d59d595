//! Random histories of several writers, and the expected result, in the plainest form.
#![allow(dead_code)]

#[path = "arrays.rs"]
mod arrays;
#[path = "fields.rs"]
mod fields;
#[path = "history_records.rs"]
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use records::record;
use records::{run_name, variable};

use fieldstone_catalog::engine::{Database, Index, NO_STEP, NO_VARIABLE, RunSelect, Tables, Wait, stored};
use fieldstone_catalog::engine::{Flow, Probe, conflicts, dump};
use fieldstone_core::value::Value;
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    Annotate, AttributeId, Record, Removal, RunDecl, RunName, RunState, TagDecl, VariableDecl, VariableName,
};
use fieldstone_format::log::{Decision, SideRecord};
use fieldstone_journal::feed::{self, TransactionState};
use fieldstone_testkit::{Random, seeded};

type Order = (u64, Id);

#[derive(Clone, Debug)]
pub struct Commit {
    pub writer: Id,
    pub user: u32,
    pub sequence: u64,
    pub stamp: u64,
    pub transaction: Option<Id>,
    pub records: Vec<Record>,
    pub side: Vec<SideRecord>,
    pub fields: fields::Changes,
}

#[derive(Clone, Debug)]
pub struct Turn {
    order: Order,
    /// `None`: an abort.
    kinds: Option<u32>,
    covers: BTreeMap<Id, u64>,
}

/// Logs of writers, and the decisions on each transaction, oldest first.
#[derive(Debug)]
pub struct History {
    pub logs: Vec<Vec<Commit>>,
    pub turns: BTreeMap<Id, Vec<Turn>>,
    /// The owners of runs according to the store; an owner need not have written.
    pub claims: BTreeMap<RunName, u32>,
    /// The owner of the folder of logs, if known.
    pub folder: Option<u32>,
}

fn writer_id(n: u64) -> Id {
    let n = n + 1;
    let mut bytes = [0; 16];
    // Spread, so that the order of ids differs from the order of numbers.
    bytes[0] = (n.wrapping_mul(151) % 251) as u8;
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    Id(bytes)
}

impl History {
    pub fn random(dice: &mut Random, users: u64) -> History {
        let writers = 1 + dice.below(3);
        let transactions: Vec<Id> = (100..103).map(writer_id).collect();
        let mut logs = Vec::new();
        for writer in 0..writers {
            let (mut sequence, mut stamp) = (0, dice.below(20));
            let user = dice.below(users) as u32;
            let mut log = Vec::new();
            for _ in 0..1 + dice.below(8) {
                sequence += 1 + dice.below(2);
                stamp += 1 + dice.below(20);
                let mut records: Vec<Record> = Vec::new();
                for _ in 0..1 + dice.below(3) {
                    let next = record(dice, records.last(), writers);
                    records.push(next);
                }
                let transaction = dice.one_in(3).then(|| transactions[dice.below(3) as usize]);
                let side = records.iter().map(Record::encode).collect();
                let mut changes = fields::Changes::new();
                for _ in 0..dice.below(3) {
                    fields::change(dice, &log, &mut changes);
                }
                let writer = writer_id(writer);
                let fields = changes;
                log.push(Commit { writer, user, sequence, stamp, transaction, records, side, fields });
            }
            logs.push(log);
        }
        let mut turns = BTreeMap::new();
        for transaction in transactions {
            let (mut made, mut stamp) = (Vec::<Turn>::new(), dice.below(40));
            let (mut closed, decider) = (false, writer_id(200 + dice.below(2)));
            for _ in 0..dice.below(4) {
                stamp += 1 + dice.below(60);
                let covers: BTreeMap<Id, u64> =
                    (logs.iter()).map(|log: &Vec<Commit>| (log[0].writer, dice.below(14))).collect();
                let mut merged = made.last().map(|turn| turn.covers.clone()).unwrap_or_default();
                if !closed {
                    for (writer, upto) in covers {
                        let entry = merged.entry(writer).or_default();
                        *entry = upto.max(*entry);
                    }
                }
                let kinds = match dice.below(6) {
                    0 if !closed => None,
                    1 | 2 => Some(u32::MAX),
                    _ => Some(dice.below(256) as u32),
                };
                closed |= kinds == Some(u32::MAX);
                made.push(Turn { order: (stamp, decider), kinds, covers: merged });
                if kinds.is_none() {
                    break;
                }
            }
            turns.insert(transaction, made);
        }
        let mut claims = BTreeMap::new();
        for _ in 0..if users > 1 { dice.below(4) } else { 0 } {
            // One user more than there are: an owner need not have written.
            claims.insert(run_name(dice), dice.below(users + 1) as u32);
        }
        // Fields determine the owner, and entries of other users do not exist.
        if users > 1 {
            for commit in logs.iter_mut().flatten() {
                let user = commit.user;
                commit.fields.retain(|key, _| *claims.entry(key.run.clone()).or_insert(user) == user);
            }
        }
        let folder = dice.one_in(2).then(|| dice.below(users) as u32);
        History { logs, turns, claims, folder }
    }

    /// The user of the oldest visible declaration of a run, living or deleted, with those of the folder's
    /// owner before all others; and whether it is another user.
    fn oldest(&self, run: &RunName) -> Option<(bool, u32)> {
        let declared = self.logs.iter().flatten().filter_map(|commit| {
            let of = |record: &Record| matches!(record, Record::Runs(all) if all[0].run == *run);
            let i = commit.records.iter().position(of)?;
            let (stamp, decider) = self.seen(commit, commit.records[i].kind_bit())?;
            let guest = self.folder != Some(commit.user);
            Some((guest, stamp, decider, commit.stamp, commit.writer, commit.sequence, commit.user))
        });
        declared.min().map(|(guest, .., user)| (guest, user))
    }

    /// The owner of a run.
    fn owner(&self, run: &RunName) -> Option<u32> {
        match self.oldest(run) {
            Some((false, user)) => Some(user),
            oldest => self.claims.get(run).copied().or(oldest.map(|(_, user)| user)),
        }
    }

    fn state(&self, transaction: Id, known: usize) -> Option<TransactionState> {
        let decision = |turn: &Turn| Decision {
            transaction,
            committed: turn.kinds.is_some(),
            kinds: turn.kinds.unwrap_or(0),
            covers: turn.covers.iter().map(|(writer, upto)| (*writer, *upto)).collect(),
        };
        let turns = &self.turns[&transaction][..known];
        let decisions: Vec<_> = turns.iter().map(|turn| (turn.order, decision(turn))).collect();
        (known > 0).then(|| TransactionState::of_one_user(transaction, &decisions))
    }

    /// Applies everything in a random order of logs, in random portions, some of it repeatedly.
    pub fn apply(&self, index: &mut Index, dice: &mut Random) {
        let mut at = vec![0; self.logs.len()];
        let mut known: BTreeMap<Id, usize> = self.turns.keys().map(|id| (*id, 0)).collect();
        let mut claims: BTreeMap<RunName, u32> = BTreeMap::new();
        let mut many = dice.one_in(2);
        loop {
            let last = dice.one_in(6);
            let mut upto = Vec::new();
            for (at, log) in at.iter().zip(&self.logs) {
                upto.push(if last { log.len() } else { (*at + dice.below(3) as usize).min(log.len()) });
            }
            claims.extend(self.claims.clone().into_iter().filter(|_| last || dice.one_in(3)));
            // The index checks users at the latest when there is a second one.
            let there = self.logs.iter().zip(&upto).flat_map(|(log, upto)| &log[..*upto]).map(|c| c.user);
            many |= there.chain(claims.values().copied()).collect::<BTreeSet<u32>>().len() > 1;
            let owners = claims.clone();
            let of = move |run: &RunName| owners.get(run).map(|user| (*user, 0_u64));
            let of = many.then(|| Arc::new(of) as fieldstone_catalog::engine::OwnerOf);
            index.set_owners(of, self.folder, &Arc::default());
            assert!(index.begin_apply(Wait::Yes).unwrap());
            for (id, known) in &mut known {
                let all = self.turns[id].len();
                *known = if last { all } else { (*known + dice.below(2) as usize).min(all) };
            }
            let states: Vec<TransactionState> =
                known.iter().filter_map(|(id, known)| self.state(*id, *known)).collect();
            let mut decided = index.apply_decisions(&states).unwrap();
            if !decided.rebuild && !decided.lacking.is_empty() {
                for id in std::mem::take(&mut decided.lacking) {
                    let applied = self.logs.iter().zip(&at).flat_map(|(log, at)| &log[..*at]);
                    let of = applied.filter(|commit| commit.transaction == Some(id));
                    fieldstone_catalog::engine::restore(index, id, &mut of.map(|commit| Ok(of_feed(commit))))
                        .unwrap();
                }
                let rest = index.apply_decisions(&states).unwrap();
                assert!(rest.lacking.is_empty());
                decided.rebuild = rest.rebuild;
                decided.fields.extend(rest.fields);
            }
            let mut from = at.clone();
            at = upto;
            if decided.rebuild {
                index.clear().unwrap();
                decided = index.apply_decisions(&states).unwrap();
                assert!(!decided.rebuild);
                from = vec![0; self.logs.len()];
            } else if dice.one_in(2) {
                from.iter_mut().for_each(|from| *from = dice.below(*from as u64 + 1) as usize);
            }
            for (log, at) in self.logs.iter().zip(&at) {
                let again =
                    |commit: &&Commit| commit.transaction.is_some_and(|id| decided.fields.contains(&id));
                let rows = log[..*at].iter().filter(again).flat_map(fields::rows);
                index.apply_entries(log[0].writer, &dice.shuffled(rows.collect())).unwrap();
            }
            self.apply_logs(index, dice, &from, &at);
            // The store may be ahead of the applied commits.
            let ahead = dice.one_in(3);
            let upto: Vec<usize> = if ahead { self.logs.iter().map(Vec::len).collect() } else { at.clone() };
            let all = self.turns.iter().map(|(id, turns)| (*id, turns.len())).collect();
            let standing = fields::standing(self, &upto, if ahead { &all } else { &known });
            fields::recheck(index, &standing, dice);
            let mut rounds = 0;
            while index.contested().unwrap() {
                rounds += 1;
                assert!(rounds < 3, "tables that are contested again and again");
                index.clear_contested().unwrap();
                assert!(!index.apply_decisions(&states).unwrap().rebuild);
                self.apply_logs(index, dice, &vec![0; self.logs.len()], &at);
                fields::recheck(index, &standing, dice);
            }
            index.end_apply().unwrap();
            if last {
                return;
            }
        }
    }

    fn apply_logs(&self, index: &mut Index, dice: &mut Random, from: &[usize], to: &[usize]) {
        let mut order: Vec<usize> = (0..self.logs.len()).collect();
        order.rotate_left(dice.below(self.logs.len() as u64) as usize);
        for i in order {
            let rows = self.logs[i][from[i]..to[i]].iter().flat_map(fields::rows);
            index.apply_entries(self.logs[i][0].writer, &dice.shuffled(rows.collect())).unwrap();
            for commit in &self.logs[i][from[i]..to[i]] {
                index.apply_commit(&of_feed(commit)).unwrap();
                if dice.one_in(2) {
                    index.set_watermark(commit.writer, commit.sequence).unwrap();
                }
            }
            if let Some(commit) = self.logs[i][..to[i]].last() {
                index.set_watermark(commit.writer, commit.sequence).unwrap();
            }
        }
    }

    /// The order at which a record became visible to all.
    fn seen(&self, commit: &Commit, bit: u32) -> Option<Order> {
        match commit.transaction {
            None => Some((commit.stamp, commit.writer)),
            Some(id) => visible(&self.turns[&id], bit, commit.writer, commit.sequence),
        }
    }
}

/// As a feed gives a commit.
fn of_feed(commit: &Commit) -> feed::Commit {
    let Commit { writer, user, sequence, stamp, transaction, side, .. } = commit;
    feed::Commit {
        writer: *writer,
        owner: *user,
        sequence: *sequence,
        stamp: *stamp,
        time: 0,
        transaction: *transaction,
        order: None,
        side: side.clone(),
    }
}

fn visible(turns: &[Turn], bits: u32, writer: Id, sequence: u64) -> Option<Order> {
    if turns.iter().any(|turn| turn.kinds.is_none()) {
        return None;
    }
    let mut since = None;
    for turn in turns.iter().rev() {
        let covered = turn.covers.get(&writer).is_some_and(|upto| sequence <= *upto);
        if !covered || turn.kinds.unwrap_or(0) & bits != bits {
            break;
        }
        since = Some(turn.order);
    }
    since
}

// ---- the expected result

/// (stamp, decider, own stamp, writer, sequence, call, row).
type AttributeOrder = (u64, Id, u64, Id, u64, usize, usize);

type Region = (Vec<i64>, Vec<i64>, Option<(usize, Vec<i64>)>);
type KeywordPairs = Vec<(String, String)>;

struct Attribute {
    run: RunName,
    tag: TagDecl,
    step: Option<i64>,
    variable: Option<VariableName>,
    /// Start, count and cells, and further keywords.
    region: (Option<Region>, KeywordPairs),
    value: Value,
    place: AttributeOrder,
    id: AttributeId,
    user: u32,
}

/// Attributes and declarations that visible deletions name individually, with the deleting user.
fn removed_alone(history: &History) -> BTreeSet<(AttributeId, u32)> {
    let mut gone = BTreeSet::new();
    for commit in history.logs.iter().flatten() {
        for record in commit.records.iter().filter(|record| history.seen(commit, record.kind_bit()).is_some())
        {
            let Record::Remove(removals) = record else { continue };
            for removal in removals {
                let Removal::Attributes(ids) = removal else { continue };
                gone.extend(ids.iter().map(|id| match id.writer {
                    None => (
                        AttributeId { writer: Some(commit.writer), sequence: commit.sequence, ..*id },
                        commit.user,
                    ),
                    _ => (*id, commit.user),
                }));
            }
        }
    }
    gone
}

/// The content according to the plain model, as lines.
pub fn expected(history: &History) -> BTreeSet<String> {
    let mut attributes: Vec<Attribute> = Vec::new();
    let mut removals: Vec<(Removal, AttributeOrder, u32)> = Vec::new();
    let gone = removed_alone(history);
    let owner = |run: &RunName| history.owner(run);
    // A deletion by `by` covers rows of `of` if they are the same user, or `by` owns the run.
    let takes = |run: Option<&RunName>, by: u32, of: u32| by == of || run.and_then(owner) == Some(by);
    // Declared names, their declarations, and since when.
    let (mut runs, mut steps, mut variables, mut tags) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // For groups, imports, meshes and histories: run, kind, text, user, and since when.
    let mut moved: Vec<(RunName, Value, u32, AttributeOrder)> = Vec::new();
    let mut states: Vec<(RunName, RunState, u32, AttributeOrder)> = Vec::new();
    let mut of_arrays: Vec<(Option<RunName>, String, arrays::Words, u32, AttributeOrder)> = Vec::new();
    for commit in history.logs.iter().flatten() {
        let (mut call, user) = (0, commit.user);
        for (i, record) in commit.records.iter().enumerate() {
            if matches!(record, Record::Attributes(batch) if !batch.continues) {
                call = i;
            }
            let Some((stamp, decider)) = history.seen(commit, record.kind_bit()) else { continue };
            let place = |call, row| (stamp, decider, commit.stamp, commit.writer, commit.sequence, call, row);
            let id = |row: usize| AttributeId {
                writer: Some(commit.writer),
                sequence: commit.sequence,
                record: i as u32,
                row: row as u32,
            };
            // Whether the declaration at a place of the record was not removed individually.
            let stays_in = |run: Option<&RunName>, row: usize| {
                let of = gone.range((id(row), 0)..=(id(row), u32::MAX));
                !of.into_iter().any(|(_, by)| takes(run, *by, user))
            };
            let stays = |run: &RunName, row: usize| stays_in(Some(run), row);
            match record {
                Record::Runs(all) => {
                    let all = all.iter().enumerate().filter(|(row, run)| stays(&run.run, *row));
                    runs.extend(all.map(|(_, run)| (run.clone(), user, place(i, 0))));
                }
                Record::Steps(run, all) => {
                    let all = all.iter().enumerate().filter(|(row, _)| stays(run, *row));
                    steps.extend(all.map(|(_, step)| (run.clone(), *step, user, place(i, 0))));
                }
                Record::Variables(run, all) => {
                    let all = all.iter().enumerate().filter(|(row, _)| stays(run, *row));
                    variables.extend(all.map(|(_, one)| (run.clone(), one.clone(), user, place(i, 0))));
                }
                Record::Moved(all) => {
                    let all = all.iter().enumerate().filter(|(row, (run, _))| stays(run, *row));
                    moved.extend(all.map(|(_, (run, to))| (run.clone(), to.clone(), user, place(i, 0))));
                }
                Record::States(all) => {
                    let writer = commit.writer;
                    let all = all.iter().enumerate().filter(|(row, (run, _))| stays(run, *row));
                    let one = |(_, (run, state)): (usize, &(RunName, RunState))| {
                        (run.clone(), RunState { writer: Some(writer), ..state.clone() }, user, place(i, 0))
                    };
                    states.extend(all.map(one));
                }
                Record::Groups(..) | Record::Imports(..) | Record::Meshes(_) | Record::Histories(_) => {
                    let (run, what, words) = arrays::words(record);
                    if stays_in(run.as_ref(), 0) {
                        of_arrays.push((run, what, words, user, place(i, 0)));
                    }
                }
                Record::Tags(all) => tags.extend(all.iter().map(|tag| (tag.clone(), user, place(i, 0)))),
                Record::Remove(all) => {
                    removals.extend(all.iter().map(|removal| (removal.clone(), place(i, 0), user)));
                }
                Record::Attributes(batch) => {
                    for row in 0..batch.rows {
                        let (call, at) = if batch.singles { (i, row) } else { (call, 0) };
                        attributes.push(Attribute {
                            run: batch.run.clone(),
                            tag: batch.tag.clone(),
                            step: batch.step_of(row),
                            variable: batch.variable_of(row).cloned(),
                            region: (
                                batch.box_of(row).map(|(start, count)| {
                                    let cells = batch.boxes.as_ref().and_then(|boxes| boxes.cells(row));
                                    let cells = cells.map(|(dim, set)| (dim, set.to_vec()));
                                    (start.to_vec(), count.to_vec(), cells)
                                }),
                                batch.keywords_of(row).map(|(k, v)| (k.to_string(), v.to_string())).collect(),
                            ),
                            value: batch.value_of(row),
                            place: place(call, at),
                            id: id(row),
                            user,
                        });
                    }
                }
            }
        }
    }
    let removed =
        |run: Option<&RunName>, user: u32, place: &AttributeOrder, covers: &dyn Fn(&Removal) -> bool| {
            removals.iter().any(|(removal, at, by)| at > place && covers(removal) && takes(run, *by, user))
        };
    runs.retain(|(run, user, at)| {
        !removed(Some(&run.run), *user, at, &|r| *r == Removal::Run(run.run.clone()))
    });
    moved.retain(|(run, _, user, at)| !removed(Some(run), *user, at, &|r| *r == Removal::Run(run.clone())));
    states.retain(|(run, _, user, at)| !removed(Some(run), *user, at, &|r| *r == Removal::Run(run.clone())));
    steps.retain(|(run, step, user, at)| {
        let covers =
            |r: &Removal| *r == Removal::Run(run.clone()) || *r == Removal::Step(run.clone(), step.number);
        !removed(Some(run), *user, at, &covers)
    });
    variables.retain(|(run, one, user, at)| {
        let whole = Removal::Run(run.clone());
        let covers = |r: &Removal| *r == whole || *r == Removal::Variable(run.clone(), one.variable.clone());
        !removed(Some(run), *user, at, &covers)
    });
    of_arrays.retain(|(run, _, _, user, at)| {
        !removed(run.as_ref(), *user, at, &|r| run.clone().is_some_and(|run| *r == Removal::Run(run)))
    });
    tags.retain(|(tag, user, at)| !removed(None, *user, at, &|r| *r == Removal::Tag(tag.clone())));
    // Declarations by users other than the owner do not count.
    let counts = |run: &RunName, user: u32| owner(run).is_none_or(|owner| owner == user);
    let mut conflicts: BTreeMap<String, usize> = BTreeMap::new();
    let mut note = |what: String, counted: bool| {
        if !counted {
            *conflicts.entry(what).or_default() += 1;
        }
        counted
    };
    runs.retain(|(run, user, _)| note(text(&run.run), counts(&run.run, *user)));
    moved.retain(|(run, _, user, _)| {
        note(format!("the place of the data of {}", text(run)), counts(run, *user))
    });
    states.retain(|(run, _, user, _)| note(format!("the state of {}", text(run)), counts(run, *user)));
    steps.retain(|(run, step, user, _)| {
        note(format!("step {} of {}", step.number, text(run)), counts(run, *user))
    });
    variables.retain(|(run, one, user, _)| {
        note(format!("variable '{}' of {}", one.variable.name, text(run)), counts(run, *user))
    });
    of_arrays.retain(|(run, what, _, user, _)| {
        note(arrays::named(run, what), run.as_ref().is_none_or(|run| counts(run, *user)))
    });
    let closed = |run: &RunName| {
        let oldest = runs.iter().filter(|(decl, ..)| decl.run == *run).min_by_key(|(.., at)| *at);
        oldest.is_some_and(|(decl, ..)| decl.annotate == Annotate::Owner)
    };
    attributes.retain(|a| !closed(&a.run) || owner(&a.run) == Some(a.user));
    let living: Vec<&Attribute> = (attributes.iter())
        .filter(|a| {
            !gone.iter().any(|(id, by)| *id == a.id && takes(Some(&a.run), *by, a.user))
                && !removed(Some(&a.run), a.user, &a.place, &|removal| match removal {
                    Removal::Run(run) => *run == a.run,
                    Removal::Step(run, step) => *run == a.run && Some(*step) == a.step,
                    Removal::Variable(run, name) => *run == a.run && Some(name) == a.variable.as_ref(),
                    Removal::Tag(tag) => *tag == a.tag,
                    Removal::Attributes(_) => false,
                })
                && !attributes.iter().any(|b| {
                    b.place > a.place
                        && b.user == a.user
                        && b.run == a.run
                        && b.tag == a.tag
                        && b.step == a.step
                        && b.variable == a.variable
                        && b.region == a.region
                })
        })
        .collect();
    runs.sort_by_key(|(.., at)| *at);
    steps.sort_by_key(|(.., at)| *at);
    variables.sort_by_key(|(.., at)| *at);
    tags.sort_by_key(|(.., at)| *at);

    let mut lines = BTreeSet::new();
    of_arrays.sort_by_key(|(.., at)| *at);
    let of_arrays = of_arrays.into_iter().map(|(run, what, words, ..)| (arrays::named(&run, &what), words));
    lines.extend(arrays::holding(of_arrays, &mut conflicts));
    for a in &living {
        let AttributeId { writer, sequence, record, row } = a.id;
        lines.insert(format!(
            "attribute {:?} {:?} {:?} {:?} {:?} {:?} {} {writer:?} {sequence} {record} {row}",
            a.run, a.tag, a.step, a.variable, a.region, a.value, a.user
        ));
    }
    let mut sums: BTreeMap<String, (u64, f64, f64)> = BTreeMap::new();
    for a in &living {
        let num = match a.value {
            Value::Float(v) if !v.is_nan() => Some(v + 0.0),
            Value::Int(v) => Some(v as f64),
            _ => None,
        };
        let names = [
            format!("span {:?} {:?}", a.run, a.tag),
            format!("series {:?} {:?} {:?} {:?}", a.run, a.tag, a.step, a.variable),
        ];
        for name in names {
            let sum = sums.entry(name).or_insert((0, f64::INFINITY, f64::NEG_INFINITY));
            sum.0 += 1;
            if let Some(num) = num {
                (sum.1, sum.2) = (sum.1.min(num), sum.2.max(num));
            }
        }
    }
    lines.extend(sums.into_iter().map(|(name, (n, a, b))| {
        let numbers = (a <= b).then_some((a, b));
        format!("{name} {n} {numbers:?}")
    }));
    // Runs, steps and variables: the oldest declaration, or anything that uses them.
    let mut run_names: BTreeSet<RunName> = runs.iter().map(|(run, ..)| run.run.clone()).collect();
    let mut step_names: BTreeSet<(RunName, i64)> = BTreeSet::new();
    let mut variable_names: BTreeSet<(RunName, VariableName)> = BTreeSet::new();
    step_names.extend(steps.iter().map(|(run, step, ..)| (run.clone(), step.number)));
    variable_names.extend(variables.iter().map(|(run, one, ..)| (run.clone(), one.variable.clone())));
    let upto: Vec<usize> = history.logs.iter().map(Vec::len).collect();
    let decided = history.turns.iter().map(|(id, turns)| (*id, turns.len())).collect();
    let standing = fields::standing(history, &upto, &decided);
    for (run, variable, step) in fields::places(&standing) {
        step_names.extend(step.map(|step| (run.clone(), step)));
        variable_names.extend(variable.clone().map(|variable| (run.clone(), variable)));
        run_names.insert(run.clone());
        lines.extend(step.map(|step| format!("held {run:?} {variable:?} {step}")));
    }
    for a in &living {
        step_names.extend(a.step.map(|step| (a.run.clone(), step)));
        variable_names.extend(a.variable.clone().map(|variable| (a.run.clone(), variable)));
        run_names.insert(a.run.clone());
    }
    run_names.extend(step_names.iter().map(|(run, _)| run.clone()));
    run_names.extend(variable_names.iter().map(|(run, _)| run.clone()));
    for run in run_names {
        let all: Vec<&RunDecl> =
            runs.iter().filter(|(decl, ..)| decl.run == run).map(|(decl, ..)| decl).collect();
        let differ = all.iter().filter(|decl| said(decl) != said(all[0]));
        let newest = moved.iter().filter(|(of, ..)| *of == run).max_by_key(|(.., at)| *at);
        let outside = |decl: &RunDecl| newest.map(|(_, to, ..)| to.clone()).or(decl.outside.clone());
        let state = states.iter().filter(|(of, ..)| *of == run).max_by_key(|(.., at)| *at);
        let state = state.map(|(_, state, ..)| state.clone());
        let shown =
            all.first().map(|decl| (&decl.params, decl.created, decl.annotate, outside(decl), state.clone()));
        lines.insert(format!("run {run:?} {shown:?}"));
        *conflicts.entry(text(&run)).or_default() += differ.count();
    }
    for (run, number) in step_names {
        let times: Vec<f64> = (steps.iter())
            .filter(|(r, step, ..)| *r == run && step.number == number)
            .filter_map(|(_, step, ..)| step.time)
            .collect();
        lines.insert(format!("step {run:?} {number} {:?}", times.first()));
        let differ = times.iter().filter(|time| **time != times[0]);
        *conflicts.entry(format!("step {number} of {}", text(&run))).or_default() += differ.count();
    }
    for (run, name) in variable_names {
        let shapes: Vec<_> = (variables.iter())
            .filter(|(r, one, ..)| *r == run && one.variable == name)
            .map(|(_, one, ..)| one.shape.clone())
            .collect();
        let (dtype, shape) = fields::says(&standing, &run, &name).unzip();
        let shape = shapes.first().cloned().flatten().or(shape);
        let declared = !shapes.is_empty();
        lines.insert(format!("variable {run:?} {name:?} declared {declared} {dtype:?} {shape:?}"));
        let differ = shapes.iter().filter(|shape| **shape != shapes[0]);
        let what = format!("variable '{}' of {}", name.name, text(&run));
        *conflicts.entry(what).or_default() += differ.count();
    }
    for (what, n) in conflicts {
        lines.extend((0..n).map(|i| format!("conflict {what} {i}")));
    }
    // Tags: declared ones by age, then others; the first one that asks for a version gets it.
    let mut order: Vec<TagDecl> = Vec::new();
    for (tag, ..) in &tags {
        if !order.contains(tag) {
            order.push(tag.clone());
        }
    }
    let rest: BTreeSet<TagDecl> =
        living.iter().map(|a| a.tag.clone()).filter(|t| !order.contains(t)).collect();
    order.extend(rest);
    let mut shown: BTreeMap<(String, i64), TagDecl> = BTreeMap::new();
    for tag in &order {
        shown.entry((tag.name.clone(), tag.version)).or_insert(tag.clone());
    }
    for tag in &order {
        if shown[&(tag.name.clone(), tag.version)] == *tag {
            continue;
        }
        let mut version = tag.version + 1;
        while shown.contains_key(&(tag.name.clone(), version)) {
            version += 1;
        }
        shown.insert((tag.name.clone(), version), tag.clone());
    }
    lines.extend(shown.into_iter().map(|((_, version), tag)| format!("tag {tag:?} {version}")));
    lines
}

/// The parts in which two declarations of a run may contradict each other.
fn said(decl: &RunDecl) -> String {
    format!("{:?} {:?} {:?}", decl.params, decl.annotate, decl.outside)
}

pub fn text(run: &RunName) -> String {
    match run.project.as_str() {
        "" => format!("run '{}'", run.name),
        project => format!("run '{}' of project '{project}'", run.name),
    }
}

/// The content of the index, as the same lines.
pub fn found(index: &mut Index) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    index.begin_read().unwrap();
    let runs = index.runs(&RunSelect::All).unwrap();
    let names: BTreeMap<i64, VariableName> = index.variable_names().unwrap().into_iter().collect();
    let name = |variable: i64| (variable != NO_VARIABLE).then(|| names[&variable].clone());
    let step_of = |step: i64| (step != NO_STEP).then_some(step);
    arrays::found(index, &mut lines);
    let tags = index.tags().unwrap();
    for tag in &tags {
        assert!(lines.insert(format!("tag {:?} {}", tag.decl, tag.version)));
    }
    for row in &runs {
        let run = &row.decl.run;
        let decl = &row.decl;
        let shown = (&decl.params, decl.created, decl.annotate, decl.outside.clone(), decl.state.clone());
        let shown = row.declared.then_some(shown);
        lines.insert(format!("run {run:?} {shown:?}"));
        for step in index.steps(row.id, i64::MIN..=i64::MAX).unwrap() {
            lines.insert(format!("step {run:?} {} {:?}", step.step, step.time.as_ref()));
        }
        for variable in index.variables(row.id).unwrap() {
            let VariableDecl { variable: name, dtype, shape, .. } = &variable.decl;
            let declared = variable.declared;
            lines.insert(format!("variable {run:?} {name:?} declared {declared} {dtype:?} {shape:?}"));
        }
        for variable in names.keys().copied().chain([NO_VARIABLE]) {
            for step in index.held(row.id, variable).unwrap() {
                lines.insert(format!("held {run:?} {:?} {step}", name(variable)));
            }
        }
        let spans = index.spans_of_run(row.id).unwrap();
        for span in spans {
            let tag = &tags.iter().find(|tag| tag.id == span.tag).unwrap().decl;
            assert_eq!(index.spans(span.tag, Some(row.id)).unwrap(), std::slice::from_ref(&span));
            lines.insert(format!("span {run:?} {tag:?} {} {:?}", span.n, span.numbers));
            let all = index.series(row.id, span.tag, i64::MIN..=i64::MAX).unwrap();
            assert_eq!(span.steps, (all[0].step, all.last().unwrap().step));
            for one in all {
                let (step, variable) = (step_of(one.step), name(one.variable));
                lines.insert(format!(
                    "series {run:?} {tag:?} {step:?} {variable:?} {} {:?}",
                    one.n, one.numbers
                ));
            }
            let mut rows = Vec::new();
            let steps = i64::MIN..=i64::MAX;
            let probe = Probe::Key { run: row.id, tag: span.tag, steps, variable: None, curve: None };
            let scanned = index.scan(&[probe], &mut |row| {
                let cells = stored::region_cells(row.region)?.map(|(dim, set)| (dim, set.to_vec()));
                let region = stored::decode_region(row.region)?.map(|(start, count)| (start, count, cells));
                let keywords = stored::region_keywords(row.region)?;
                let keywords = keywords.iter().flat_map(|all| all.iter());
                let keywords: KeywordPairs = keywords.map(|(k, v)| (k.to_string(), v.to_string())).collect();
                let region = (region, keywords);
                let (step, variable) = (step_of(row.step), name(row.variable));
                let value = row.value()?;
                let text = format!("{run:?} {tag:?} {step:?} {variable:?} {region:?} {value:?}");
                rows.push((row.batch, row.row, text));
                Ok(Flow::More)
            });
            assert_eq!(scanned.unwrap(), span.n);
            for (batch, row, text) in rows {
                let (AttributeId { writer, sequence, record, .. }, user) = index.source(batch).unwrap();
                lines.insert(format!("attribute {text} {user} {writer:?} {sequence} {record} {row}"));
            }
        }
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for conflict in conflicts(index.database()).unwrap() {
        let what = conflict.split(" has ").next().unwrap().to_owned();
        let n = seen.entry(what.clone()).or_default();
        lines.insert(format!("conflict {what} {n}"));
        *n += 1;
    }
    index.end_read().unwrap();
    lines
}

/// Applies one history in two ways to databases that `open` makes: the dumps must be equal, and equal to the
/// model.
pub fn check(seed: u64, users: u64, open: &mut dyn FnMut() -> Box<dyn Database>) {
    let mut dice = seeded(seed);
    let history = History::random(&mut dice, users);
    let mut dumps = Vec::new();
    for _ in 0..2 {
        let mut index = Index::open(open(), writer_id(7)).unwrap();
        history.apply(&mut index, &mut dice);
        let (found, expected) = (found(&mut index), expected(&history));
        let missing: Vec<&String> = expected.difference(&found).collect();
        let surplus: Vec<&String> = found.difference(&expected).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "seed {seed}, {users} users\nmissing {missing:#?}\nsurplus {surplus:#?}"
        );
        index.begin_read().unwrap();
        dumps.push(dump(&mut index).unwrap());
        index.end_read().unwrap();
        assert!(index.take_problems().is_empty());
    }
    assert_eq!(dumps[0], dumps[1], "seed {seed}, {users} users");
}
