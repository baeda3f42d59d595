//! Moves that meet: in opposite directions, in rings, the same one twice, each killed anywhere. Moved data are always
//! in one of the stores or in several: fields, attributes, and declarations of runs.
//!
//! A move reports progress between reading and writing each field, and once more before its decision: there other moves
//! run, completely or killed. `FIELDSTONE_CRASH=full` makes 2,000 kills of moves, otherwise 60.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Barrier;

use fieldstone::catalog::Query;
use fieldstone::catalog::query::text::parse;
use fieldstone::env::Env;
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::transfer::{OnProgress, TransferOptions, TransferReport, move_to};
use fieldstone::{
    ArchiveOptions, DType, ErrorKind, ListOptions, OpenOptions, ReadOptions, Request, Result, Store, Target,
    Value, open_in,
};
use fieldstone_testkit::errors::error;
use fieldstone_testkit::{Seeded, require, seeded};

const STORES: [&str; 3] = ["/one", "/two", "/three"];
const STEPS: i64 = 3;

fn world(seed: u64) -> SimWorld {
    let world = SimWorld::new(seed);
    world.set_tracing(false);
    world
}

fn open_as(env: &Env, path: &str) -> Result<Store> {
    open_in(env.clone(), path, Path::new(path), &OpenOptions::default())
}

fn open(world: &SimWorld, path: &str) -> Store {
    open_as(&world.process("a"), path).unwrap()
}

fn put(store: &Store, step: i64, value: i64) {
    let step = step.to_string();
    let key = [("run", "a"), ("variable", "t"), ("step", &*step)];
    let data: Vec<u8> = [value, value + 1, value + 2].iter().flat_map(|n| n.to_ne_bytes()).collect();
    let value = Value::Array { data: &data, dtype: DType::I8, shape: &[3] };
    store.archive(&key, value, &ArchiveOptions::default()).unwrap();
}

fn first_of(store: &Store, step: i64) -> Option<i64> {
    let step = step.to_string();
    let key = [("run", "a"), ("variable", "t"), ("step", &*step)];
    let data = store.get(&key, &ReadOptions::default()).ok()?.read().unwrap();
    Some(i64::from_ne_bytes(data[..8].try_into().unwrap()))
}

/// A run with fields, attributes on every kind of target, and declarations; the same in each of these stores.
fn fill(world: &SimWorld, stores: &[&str]) {
    for path in stores {
        let store = open(world, path);
        let run = store.create_run("a").param("nx", 7).created(5).create().unwrap();
        run.create_variable("t", DType::I8, &[3]).attr("units", "K").create().unwrap();
        run.create_variable("bare", DType::F4, &[9]).create().unwrap();
        run.create_steps((0..STEPS).collect(), Some((0..STEPS).map(|n| n as f64).collect())).unwrap();
        for step in 0..STEPS {
            put(&store, step, step);
            store.flush(None).unwrap();
            run.annotate("q", step, &Target::variable("t").step(step)).unwrap();
        }
        run.annotate("q", 10, &Target::default().step(1)).unwrap();
        run.annotate("q", 11, &Target::variable("t")).unwrap();
        run.annotate("q", 12, &Target::run()).unwrap();
        run.finish().unwrap();
        store.flush(None).unwrap();
    }
}

/// Whether something was ever moved into a store.
fn is_there(store: &Store) -> bool {
    !store.list(&Request::new(), &ListOptions::default()).is_err_and(|e| e.kind() == ErrorKind::NotFound)
}

/// A store's data of the run, one line for each item.
fn has(store: &Store) -> Vec<String> {
    if !is_there(store) {
        return Vec::new();
    }
    let (catalog, all) = (store.catalog(), Query::all());
    let fields = (0..STEPS).filter_map(|step| Some(format!("field {step}: {}", first_of(store, step)?)));
    let mut lines: Vec<String> = fields.collect();
    let hits = catalog.stream(&all).unwrap().map(|hit| hit.unwrap());
    lines.extend(hits.map(|h| format!("{} {:?} {:?} {:?}", h.tag, h.variable, h.step, h.value)));
    for run in catalog.runs(&all).unwrap().into_iter().filter(|run| run.declared) {
        lines.push(format!("{} {:?}", run.decl.run.name, run.decl.params));
        let phase = run.decl.state.map(|state| state.phase);
        lines.extend(phase.map(|phase| format!("{phase:?}")).filter(|phase| phase == "Finished"));
    }
    let variables = catalog.variables(&all).unwrap().into_iter().filter(|row| row.declared);
    lines.extend(variables.map(|row| format!("{:?} {:?}", row.decl.variable, row.decl.shape)));
    let steps = catalog.steps(&all).unwrap().into_iter().filter(|row| row.time.is_some());
    lines.extend(steps.map(|row| format!("step {} {:?}", row.step, row.time)));
    lines
}

/// Everything is in one of the stores, and no store has damage or contradictions.
fn nothing_is_lost(world: &SimWorld, stores: &[&str], all: &[String], what: &str) {
    let mut there = Vec::new();
    for path in stores {
        let store = open(world, path);
        if !is_there(&store) {
            continue;
        }
        there.extend(has(&store));
        assert!(store.verify(&Request::new()).unwrap().ok(), "{what}");
        assert!(store.catalog().conflicts().unwrap().is_empty(), "{what}");
    }
    for line in all {
        assert!(there.contains(line), "{what}: in no store: {line}; there is {there:?}");
    }
}

fn moved(from: &Store, to: &Store, progress: Option<&OnProgress<'_>>) -> Result<TransferReport> {
    let options = TransferOptions { strict: false, progress, ..TransferOptions::default() };
    move_to(from, vec![Request::parse("run=a")?], to, &options)
}

/// Number of a run's progress calls: before each field, after all are durable, and before the decision.
const CALLS: usize = 2 * STEPS as usize + 1;

#[test]
fn moves_that_cross_leave_what_they_carry_in_a_store() {
    // The other move runs completely between two steps of this one, or not at all.
    for at in 0..=CALLS {
        let world = world(at as u64 + 1);
        fill(&world, &STORES[..2]);
        let all = has(&open(&world, STORES[0]));
        assert_eq!(all.len(), 2 * STEPS as usize + 2 + 3 + 2 + STEPS as usize);
        let call = Cell::new(0);
        let progress = |_: u64, _: u64| {
            if call.replace(call.get() + 1) == at {
                let _ = moved(&open(&world, STORES[1]), &open(&world, STORES[0]), None);
            }
            Ok(())
        };
        let _ = moved(&open(&world, STORES[0]), &open(&world, STORES[1]), Some(&progress));
        assert_eq!(call.get(), CALLS);
        nothing_is_lost(&world, &STORES[..2], &all, &format!("crossed at {at}"));
    }
}

/// All moves have prepared their data before the first is decided.
#[test]
fn rings_of_moves_leave_what_they_carry_in_a_store() {
    for (round, length) in [2, 3, 2, 3, 3, 2].into_iter().enumerate() {
        let world = world(round as u64 + 1);
        let stores = &STORES[..length];
        fill(&world, stores);
        let all = has(&open(&world, stores[0]));
        let ready = Barrier::new(length);
        std::thread::scope(|scope| {
            for from in 0..length {
                let (world, ready) = (&world, &ready);
                scope.spawn(move || {
                    let call = Cell::new(0);
                    let progress = |_: u64, _: u64| {
                        if call.replace(call.get() + 1) + 1 == CALLS {
                            ready.wait();
                        }
                        Ok(())
                    };
                    let env = world.process(["a", "b", "c"][from]);
                    let from_to = [from, (from + 1) % length].map(|n| open_as(&env, stores[n]).unwrap());
                    moved(&from_to[0], &from_to[1], Some(&progress))
                });
            }
        });
        nothing_is_lost(&world, stores, &all, &format!("a ring of {length}"));
    }
}

#[test]
fn a_move_that_is_made_twice_at_once_moves_all() {
    for at in 0..CALLS {
        let world = world(at as u64 + 1);
        fill(&world, &STORES[..1]);
        let all = has(&open(&world, STORES[0]));
        let call = Cell::new(0);
        let progress = |_: u64, _: u64| {
            if call.replace(call.get() + 1) == at {
                moved(&open(&world, STORES[0]), &open(&world, STORES[1]), None)?;
            }
            Ok(())
        };
        let _ = moved(&open(&world, STORES[0]), &open(&world, STORES[1]), Some(&progress));
        assert_eq!(has(&open(&world, STORES[1])), all, "twice at {at}");
        assert_eq!(has(&open(&world, STORES[0])).len(), 0, "twice at {at}");
    }
}

/// Data written to the source during a move stay there, on any kind of target.
#[test]
fn what_is_written_on_a_run_while_it_moves_stays() {
    let world = world(1);
    fill(&world, &STORES[..1]);
    let (from, to) = (open(&world, STORES[0]), open(&world, STORES[1]));
    let other = open(&world, STORES[0]);
    let done = Cell::new(false);
    let progress = |_: u64, _: u64| {
        if !done.replace(true) {
            let run = other.run("a")?;
            run.annotate("late", 1, &Target::run())?;
            run.annotate("late", 2, &Target::variable("t").step(1))?;
            run.create_step(77, Some(7.5))?;
            run.create_variable("new", DType::F8, &[2]).create()?;
            other.flush(None)?;
        }
        Ok(())
    };
    moved(&from, &to, Some(&progress)).unwrap();
    let left = open(&world, STORES[0]);
    let late = left.catalog().count(&parse("tag=late").unwrap()).unwrap();
    // Of the carried data, attributes on the run stay with it; all else is gone.
    assert_eq!((late, left.catalog().count(&parse("tag=q").unwrap()).unwrap()), (2, 1));
    let steps = left.catalog().steps(&Query::all()).unwrap();
    assert!(steps.iter().any(|row| (row.step, row.time) == (77, Some(7.5))), "{steps:?}");
    let variables = left.catalog().variables(&Query::all()).unwrap();
    assert!(variables.iter().any(|row| row.declared && row.decl.variable.name == "new"), "{variables:?}");
}

/// The older value does not hide other users' writes in the target under a key that is being moved there.
#[test]
fn a_newer_version_in_the_target_is_not_hidden() {
    for there in [false, true] {
        let world = world(1);
        fill(&world, if there { &STORES[..2] } else { &STORES[..1] });
        let (from, to) = (open(&world, STORES[0]), open(&world, STORES[1]));
        let other = open(&world, STORES[1]);
        let progress = |done: u64, of: u64| {
            if done == of && first_of(&other, 1) != Some(100) {
                put(&other, 1, 100);
                other.flush(None)?;
            }
            Ok(())
        };
        let refused = error(moved(&from, &to, Some(&progress)), ErrorKind::Conflict);
        assert!(refused.message().contains("step=1") && refused.hint().is_some(), "{refused}");
        assert_eq!((first_of(&to, 1), first_of(&from, 1), first_of(&from, 0)), (Some(100), Some(1), Some(0)));
        // The same value does not count as hidden.
        let progress = |done: u64, of: u64| {
            if done == of {
                put(&other, 1, 1);
                other.flush(None)?;
            }
            Ok(())
        };
        moved(&from, &to, Some(&progress)).unwrap();
        assert_eq!((first_of(&to, 1), has(&open(&world, STORES[0])).len()), (Some(1), 0));
    }
}

/// Several values of one place, some of which the source has, all stay.
#[test]
fn a_move_keeps_what_the_target_says_beside_what_it_carries() {
    let world = world(1);
    let (from, to) = (open(&world, STORES[0]), open(&world, STORES[1]));
    for (store, values) in [(&from, vec![1, 2]), (&to, vec![1, 2, 3])] {
        let run = store.create_run("a").created(5).create().unwrap();
        put(store, 0, 0);
        store.flush(None).unwrap();
        let values = fieldstone::catalog::Values::Int(values);
        run.annotate_many("q", values, &Target::variable("t").step(0)).unwrap();
        store.flush(None).unwrap();
    }
    let report = moved(&from, &to, None).unwrap();
    assert_eq!((report.attributes, report.unchanged), (0, 1));
    let count = |store: &Store| store.catalog().count(&Query::all()).unwrap();
    assert_eq!((count(&from), count(&to)), (0, 3));
}

/// A move from one store to another, by a process of its own that may be killed; with luck, another one runs during it.
fn random_move(world: &SimWorld, dice: &RefCell<Seeded>, kills: &Cell<u64>, depth: u32) {
    let (from, to, kill, within) = {
        let mut dice = dice.borrow_mut();
        let from = dice.below(3) as usize;
        let to = (from + 1 + dice.below(2) as usize) % 3;
        (from, to, dice.one_in(2).then(|| 1 + dice.below(220)), dice.below(3 * CALLS as u64) as usize)
    };
    let env = world.process(&format!("mover{depth}-{from}-{to}"));
    if let Some(n) = kill {
        world.kill_nth(&env, None, n);
    }
    let call = Cell::new(0);
    let progress = |_: u64, _: u64| {
        if call.replace(call.get() + 1) == within && depth < 2 {
            random_move(world, dice, kills, depth + 1);
        }
        Ok(())
    };
    let stores = open_as(&env, STORES[from]).and_then(|from| Ok((from, open_as(&env, STORES[to])?)));
    let done = stores.and_then(|(from, to)| moved(&from, &to, Some(&progress)));
    if kill.is_some() && done.is_err() {
        kills.set(kills.get() + 1);
    }
}

#[test]
fn killed_moves_in_rings_lose_nothing() {
    let dice = RefCell::new(seeded(31));
    let (kills, wanted) = (Cell::new(0), if require::full() { 2_000 } else { 60 });
    let (mut round, mut moves) = (0, 0);
    while kills.get() < wanted {
        round += 1;
        let mut world = world(round);
        fill(&world, &STORES[..1 + dice.borrow_mut().below(3) as usize]);
        let all = has(&open(&world, STORES[0]));
        for _ in 0..5 {
            random_move(&world, &dice, &kills, 0);
            moves += 1;
            if dice.borrow_mut().one_in(3) {
                world = world.power_cut(round);
            }
            nothing_is_lost(&world, &STORES, &all, &format!("round {round}, move {moves}"));
        }
        // An interrupted move can be completed.
        for from in [1, 2] {
            match moved(&open(&world, STORES[from]), &open(&world, STORES[0]), None) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                done => drop(done.unwrap()),
            }
        }
        assert_eq!(has(&open(&world, STORES[0])).len(), all.len(), "round {round}");
        let listed = |path| {
            open(&world, path)
                .list(&Request::new(), &ListOptions::default())
                .map_or(0, |listed| listed.count())
        };
        assert_eq!((listed(STORES[1]), listed(STORES[2])), (0, 0), "round {round}");
    }
    println!("{moves} moves, with others within them, {} of them killed: nothing is lost", kills.get());
}
