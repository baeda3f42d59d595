//! Calls of a store as plain data, which any thread can make.

use std::path::Path;
use std::time::{Duration, SystemTime};

use fieldstone::catalog::query::{Expr, NameTest, Term};
use fieldstone::catalog::{
    Deletion as CatalogDeletion, Query, RunDecl, RunName, StepDecl, VariableDecl, VariableName,
};
use fieldstone::graph::{Deletion, RelationPut, VertexName};
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, CompactOptions, Compression, DType, DatasetAccess, Error, FieldSpec, Id, LockKind,
    PurgeOptions, RemoveOptions, Request, Result, Run, Session, Store, Target, Value, WipeOptions,
};
use fieldstone_core::env::{Env, create_dirs_alike, write_all_at};
use fieldstone_format::crc;
use fieldstone_journal::medium::posix::FileMedium;
use fieldstone_store::api::StoredArraySpec;

use crate::model::change::{AttributePlace, CELLS, Change, Key, Link, SHAPE, What};
use crate::model::fields::pattern;

/// A call.
#[derive(Debug, Clone)]
pub enum Call {
    /// Takes a change for a session's next flush, with or without compression.
    Take(Change, bool),
    /// Deletes the caller's attributes of a run under a tag.
    Erase(String, String),
    /// Flushes.
    Flush,
    /// Decides a transaction.
    Decide(Id, bool),
    /// Ends logs, as a process in this environment, with a grace in nanoseconds.
    EndLogs(Env, &'static str, u64),
    /// Takes ended logs over, with a grace in nanoseconds.
    Compact(u64),
    /// Drops what nothing shows any more, with a grace in nanoseconds.
    Purge(u64),
    /// Wipes what a request selects, or what of it is older than the world.
    Wipe(String, bool),
    /// Hides what a request selects, or shows it again.
    Hide(String, bool),
    /// Locks datasets against archives, or unlocks them.
    Lock(String, bool),
    /// Shows what a request selects as another run, too, or ends that.
    Overlay(String, &'static str, bool),
}

/// Makes calls in order, all for one session. An error ends them, and comes with the number of its call.
pub fn make(
    store: &Store,
    calls: &[Call],
    session: &Session,
) -> std::result::Result<(), (usize, fieldstone::Error)> {
    let each = calls.iter().enumerate();
    each.into_iter().try_for_each(|(number, call)| one(store, call, session).map_err(|error| (number, error)))
}

fn one(store: &Store, call: &Call, session: &Session) -> Result<()> {
    match call {
        Call::Take(change, is_compressed) => take(store, change, *is_compressed, session),
        Call::Erase(run, tag) => {
            let is = |name: &str| NameTest::Is(name.to_owned());
            let terms = vec![Expr::Term(Term::Run(is(run))), Expr::Term(Term::Tag(is(tag)))];
            let query = Query { expr: Expr::All(terms), session: session.clone(), ..Query::all() };
            store.catalog().delete(&CatalogDeletion::Attributes(query), false, true, session).map(drop)
        }
        Call::Flush => store.flush(session.clone()),
        Call::Decide(id, commit) => store.decide(*id, *commit),
        Call::EndLogs(env, root, grace) => {
            FileMedium::new(env.clone(), Path::new(root))?.end_logs(*grace).map(drop)
        }
        Call::Compact(grace) => {
            let options = CompactOptions { grace: Duration::from_nanos(*grace), ..CompactOptions::default() };
            store.compact(&options).map(drop)
        }
        Call::Purge(grace) => {
            let grace = Duration::from_nanos(*grace);
            store.purge(&PurgeOptions { all: true, doit: true, grace, ..PurgeOptions::default() }).map(drop)
        }
        Call::Wipe(request, is_young) => {
            let older_than = is_young.then_some(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
            let options = WipeOptions { older_than, doit: true, all: false };
            store.wipe(&Request::parse(request)?, &options).map(drop)
        }
        Call::Hide(request, true) => store.hide(&Request::parse(request)?).map(drop),
        Call::Hide(request, false) => store.unhide(&Request::parse(request)?).map(drop),
        Call::Lock(request, true) => store.lock(&Request::parse(request)?, LockKind::Archive).map(drop),
        Call::Lock(request, false) => store.unlock(&Request::parse(request)?, LockKind::Archive).map(drop),
        Call::Overlay(request, run, true) => {
            store.overlay(&Request::parse(request)?, &[("run", run)]).map(drop)
        }
        Call::Overlay(request, run, false) => {
            store.end_overlay(&Request::parse(request)?, &[("run", run)]).map(drop)
        }
    }
}

fn take(store: &Store, change: &Change, is_compressed: bool, session: &Session) -> Result<()> {
    match change {
        Change::Field(key, what) => field(store, key, what, is_compressed, session),
        Change::Run(run, variables) => {
            store.catalog().create_run(RunDecl::named(run_name(run)), false, session)?;
            let declared = variables.iter().map(|name| variable(name)).collect();
            store.catalog().create_variables(&run_name(run), declared, session)
        }
        Change::Step(run, number) => {
            let step = StepDecl { number: *number, time: None };
            store.catalog().create_steps(&run_name(run), vec![step], session)
        }
        Change::Attribute(place, value) => annotate(store, place, *value, session),
        // By a query: `Call::Erase`.
        Change::Erase(_) => Ok(()),
        Change::Relation(link, stamp, is_deletion) => relate(store, link, *stamp, *is_deletion, session),
    }
}

fn field(store: &Store, key: &Key, what: &What, is_compressed: bool, session: &Session) -> Result<()> {
    let step = key.step.to_string();
    let pairs = [("run", key.run.as_str()), ("variable", key.variable.as_str()), ("step", step.as_str())];
    let compression = is_compressed.then_some(Compression::Zstd(1));
    let options = ArchiveOptions { session: session.clone(), compression, ..ArchiveOptions::default() };
    let (dtype, shape) = (DType::I4, &SHAPE);
    match what {
        What::Bytes(seed, length) => store.archive(&pairs, Value::Bytes(&pattern(*seed, *length)), &options),
        What::Whole(value) if *value % 4 == 0 => in_file(store, key, *value, &options),
        What::Whole(value) => {
            let data = value.to_ne_bytes().repeat(CELLS);
            store.archive(&pairs, Value::Array { data: &data, dtype, shape }, &options)
        }
        What::Create(fill) => {
            let fill = fill.to_ne_bytes();
            store.create_field(&pairs, &FieldSpec { dtype, shape, fill: Some(&fill), chunks: None }, &options)
        }
        What::Piece(start, count, value) => {
            let data = value.to_ne_bytes().repeat((count[0] * count[1]) as usize);
            store.archive(&pairs, Value::Piece { data: &data, dtype, start, count, shape }, &options)
        }
        What::Remove => {
            let text = format!("run={},variable={},step={}", key.run, key.variable, key.step);
            let removed =
                store.remove(&Request::parse(&text)?, &RemoveOptions { session: session.clone() })?;
            match removed {
                1 => Ok(()),
                _ => Err(fieldstone::Error::internal(format!("{removed} fields were removed for {text}"))),
            }
        }
        // By a call of its own: `Call::Wipe`.
        What::Wiped | What::Hidden(..) => Ok(()),
    }
}

/// Archives an array of one value in a file of its own, as jobs do.
fn in_file(store: &Store, key: &Key, value: i32, options: &ArchiveOptions) -> Result<()> {
    let (Some(root), disk) = (store.backend().folder(), store.backend().env().disk.clone()) else {
        return Err(Error::internal("the store has no folder"));
    };
    let mut job = [0; 8];
    store.backend().env().rand.fill(&mut job);
    let within = format!("arrays/{}/{:016x}/g0", key.run, u64::from_ne_bytes(job));
    let (folder, path) = (root.join(&within), format!("{within}/{}-{}.nc", key.variable, key.step));
    let data = value.to_ne_bytes().repeat(CELLS);
    let failed = |e| Error::io("make", &root.join(&path), e);
    create_dirs_alike(&*disk, &root, &folder).map_err(failed)?;
    let file = disk.create_alike(&root.join(&path)).map_err(failed)?;
    write_all_at(&*file, &data, 0).and_then(|()| file.sync_data()).map_err(failed)?;
    for above in folder.ancestors().take(5) {
        disk.sync_dir(above).map_err(failed)?;
    }
    let step = key.step.to_string();
    let pairs = [("run", key.run.as_str()), ("variable", key.variable.as_str()), ("step", step.as_str())];
    let spec = StoredArraySpec {
        path: &path,
        offset: 0,
        dtype: DType::I4,
        shape: &SHAPE,
        fill: None,
        block: data.len() as u64,
        sums: &[crc(&data)],
        holes: 0,
    };
    store.archive_stored(&pairs, &spec, options)
}

fn relate(store: &Store, link: &Link, stamp: u64, is_deletion: bool, session: &Session) -> Result<()> {
    let (kind, source, target) = link;
    let (source, target) = (VertexName::new("job", source), VertexName::new("file", target));
    let graph = store.graph();
    if is_deletion {
        let what = Deletion::Relation(kind.as_str().into(), source, target);
        return graph.delete(vec![what], Some(stamp), session).map(drop);
    }
    let put = RelationPut { time: Some(stamp), ..RelationPut::new(kind, source, target) };
    graph.put_relations(vec![put], session).map(drop)
}

fn run_name(name: &str) -> RunName {
    RunName { project: String::new(), name: name.to_owned() }
}

fn variable(name: &str) -> VariableDecl {
    VariableDecl {
        variable: VariableName { name: name.to_owned(), version: 0 },
        dtype: Some(DType::I4),
        shape: Some(SHAPE.to_vec()),
        dims: Vec::new(),
        attrs: Vec::new(),
        coords: Vec::new(),
        decomposition: None,
        finders: None,
    }
}

fn annotate(store: &Store, place: &AttributePlace, value: i64, session: &Session) -> Result<()> {
    let on = match &place.variable {
        Some(variable) => Target::variable(variable),
        None => Target::run(),
    };
    let on = match place.step {
        Some(step) => on.step(step),
        None => on,
    };
    Run::new(store, run_name(&place.run), session).annotate(&*place.tag, value as f64 / 4.0, &on)
}
