//! Transfers to another store: `copy` and `move_to`.
//!
//! By request, fields go with everything on them: parameters of their runs, steps with their times, declarations of
//! variables, tags and attributes. By hits, these attributes go, with the fields under them.
//!
//! | module | holds |
//! |---|---|
//! | `fields`, `content` | the fields: found, archived, compared, removed |
//! | `arrays` | the arrays among them that jobs wrote into files |
//! | `meshes` | meshes and kept partitions, with their files |
//! | `choice`, `chosen` | what goes: the fields, and the catalog's share |
//! | `declared` | runs, steps, variables and tags |
//! | `attributes` | attributes, page by page |
//! | `places` | variables and steps, with further keywords |
//! | `trail` | the graph's share: the lineage of the fields |
//! | `leaving`, `removal` | the entries that a move removes from the source, and how |
//! | `owners` | moves by root, in the names of the owners |
//! | `left` | the items that stay behind, for the report |
//! | `written` | declarations and attributes as lines of an exported file |
//!
//! Invariants:
//! * the target has everything of a call, or nothing: it is one transaction there;
//! * a declaration of the target that contradicts one of the call is Conflict, before any field moves;
//! * the target's durable fields (F-8) are read back and compared with those of the source before anything is visible
//!   or reported;
//! * a move removes from the source only after that, and exactly the versions, attributes and declarations that were
//!   carried over: a newer one stays. A crash leaves a field in the source, in the target, or in both, and never in
//!   neither;
//! * a move writes everything that it removes into the target, including data that the target already has: concurrent
//!   moves remove older versions there, and not this one. So no two moves, whatever their directions, and no ring of
//!   them, take each the copy that the other relies on;
//! * a copy skips fields that the target already has, equal in type, shape and every element;
//! * each part of a field keeps the commit that wrote it first, with time, attempt and place in the order; the places of a
//!   field are raised above what stands under its key in the target, so that it is seen (Q-40);
//! * a field that cannot be read is skipped, named in the report, and not removed;
//! * memory holds a part of one field (16 MiB, or a chunk if that is longer; all of an opaque field if the target is at the
//!   far end of a connection), and about 200 bytes per field; of attributes a page, and 100 bytes for each attribute of one tag in a run of the target.
//!
//! Arrays keep type, byte order, shape, chunks, and whether they are compressed. An incomplete field is copied as it
//! is: the written elements, and the fill for the others. The target keeps its own schema: if a key does not fit it,
//! the call is Invalid before any byte moves. In the target an attribute belongs to the caller, as all writes do:
//! records do not name a user, their log does; the report names the others.
//!
//! ```
//! use fieldstone::transfer::{TransferOptions, copy};
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, Request, Target, Value};
//!
//! let (hot, cold) = (
//!     fieldstone::open("memory:", &OpenOptions::default())?,
//!     fieldstone::open("memory:", &OpenOptions::default())?,
//! );
//! let run = hot.create_run("demo").param("nx", 4).create()?;
//! let key = [("run", "demo"), ("variable", "t"), ("step", "6")];
//! hot.archive(&key, Value::Bytes(b"hello"), &ArchiveOptions::default())?;
//! hot.flush(None)?;
//! run.annotate("quality", "good", &Target::variable("t").step(6))?;
//! let report = copy(&hot, vec![Request::parse("run=demo")?], &cold, &TransferOptions::default())?;
//! assert_eq!((report.fields, report.bytes, report.attributes), (1, 5, 1));
//! assert_eq!(cold.run("demo")?.info()?.decl.params.len(), 1);
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod arrays;
mod attributes;
mod choice;
mod chosen;
mod content;
mod declared;
mod fields;
mod leaving;
mod left;
pub(crate) mod meshes;
mod owners;
mod places;
mod removal;
mod trail;
mod written;

use std::collections::HashSet;
use std::fmt;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_store::api::{Admin, FieldAccess, FieldStore, Transactions};

pub(crate) use choice::{fields_under, found};
pub use left::LeftBehind;
pub(crate) use written::Written;
pub use written::written;

use crate::Session;
use crate::Store;
use crate::catalog::{Hit, Query};
use crate::open::{Mode, OpenOptions};
use arrays::Arrays;
use attributes::Carrier;
use choice::{Choice, choose, wanted};
use chosen::{Chosen, OfRun, of_run, query};
use declared::{DeclaredRun, Outcome, Tags, declared};
use fields::{CarriedField, Carrying, FieldPlan, Search};
use leaving::Leaving;
use left::{FIELDS_ONLY, Left, why_not};
use meshes::Meshes;
use removal::Removal;
use trail::Trail;

/// Called with the number of fields done and the total; an error ends the transfer, and nothing of it stays.
pub type OnProgress<'a> = dyn Fn(u64, u64) -> Result<()> + 'a;

/// Options of [`copy`] and [`move_to`].
#[derive(Clone, Copy)]
pub struct TransferOptions<'a> {
    /// Whether a listed value or combination without a field is an error.
    pub strict: bool,
    /// Only fields; the report lists what stays.
    pub fields_only: bool,
    /// Only fields flushed before this moment, nanoseconds since 1970, and what stands on them: the newest part of a field
    /// counts, by its writer's clock.
    pub before: Option<i64>,
    /// Older values of the fields go with them, in their order.
    pub versions: bool,
    /// Only fields in datasets of the caller.
    pub own: bool,
    /// Receives progress reports.
    pub progress: Option<&'a OnProgress<'a>>,
}

impl Default for TransferOptions<'_> {
    fn default() -> Self {
        TransferOptions {
            strict: true,
            fields_only: false,
            before: None,
            versions: false,
            own: false,
            progress: None,
        }
    }
}

impl fmt::Debug for TransferOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferOptions")
            .field("strict", &self.strict)
            .field("fields_only", &self.fields_only)
            .field("before", &self.before)
            .field("versions", &self.versions)
            .field("own", &self.own)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The subject of a transfer.
#[derive(Debug, Clone)]
pub enum What {
    /// The fields that requests name, and everything on them.
    Requests(Vec<Request>),
    /// The attributes that a query finds, and the fields under them.
    Query(Query),
    /// These attributes, and the fields under them.
    Hits(Vec<Hit>),
    /// The fields under the attributes that a query finds, and everything on these fields.
    Under(Query),
}

impl From<Vec<Request>> for What {
    fn from(requests: Vec<Request>) -> What {
        What::Requests(requests)
    }
}

impl From<Query> for What {
    fn from(query: Query) -> What {
        What::Query(query)
    }
}

impl From<Vec<Hit>> for What {
    fn from(hits: Vec<Hit>) -> What {
        What::Hits(hits)
    }
}

/// Report of a transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferReport {
    /// Fields that the target has now and lacked before.
    pub fields: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Fields that the target already had, equal in every element. A move has written them there again.
    pub unchanged: u64,
    /// Older values that went with them.
    pub versions: u64,
    /// Attributes that the target has now and lacked before.
    pub attributes: u64,
    /// Fields removed from the source.
    pub removed: u64,
    /// Keys under which the source keeps a newer version, written during the move.
    pub kept: Vec<String>,
    /// Items on the fields that stayed behind.
    pub left: Vec<LeftBehind>,
    /// Fields that cannot be read: they are not in the target, and a move did not remove them.
    pub damaged: Vec<Unreadable>,
}

/// A field that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its key.
    pub key: String,
    /// The reason, with the file at fault.
    pub why: String,
}

/// Copies from one store to another.
pub fn copy(
    from: &Store,
    what: impl Into<What>,
    to: &Store,
    options: &TransferOptions<'_>,
) -> Result<TransferReport> {
    Transfer::plan(from, &what.into(), to, (options, false, false))?.transfer(false)
}

/// Moves from one store to another: copies, then removes from the source. Fields that root moves stay their owners'.
pub fn move_to(
    from: &Store,
    what: impl Into<What>,
    to: &Store,
    options: &TransferOptions<'_>,
) -> Result<TransferReport> {
    let (source, target) = (from.status()?.id, to.status()?.id);
    if source.is_some() && source == target {
        return Err(Code::WrongStore
            .error(format!(
                "{} and {} are the same store, or one is a copy of the other's files",
                from.url(),
                to.url()
            ))
            .with_hint("move into another store"));
    }
    let what = what.into();
    match owners::move_for_owners(from, &what, to, options)? {
        Some(report) => Ok(report),
        None => move_within(from, &what, to, options, false),
    }
}

/// Moves what the user of these handles owns; `by_field`: nothing but fields and what stands on them.
fn move_within(
    from: &Store,
    what: &What,
    to: &Store,
    options: &TransferOptions<'_>,
    by_field: bool,
) -> Result<TransferReport> {
    let mut transfer = Transfer::plan(from, what, to, (options, true, by_field))?;
    // A caller who may not remove is refused before anything is copied.
    check_disk_takes_removals(from)?;
    transfer.fields.check_removable(from)?;
    let mut report = transfer.transfer(true)?;
    report.kept = transfer.fields.kept(from, &transfer.requests)?;
    report.removed = transfer.fields.count().saturating_sub(report.kept.len() as u64);
    Ok(report)
}

/// Fails with Denied where the file system of a store is mounted for reading only: a removal would fail when all is copied.
fn check_disk_takes_removals(from: &Store) -> Result<()> {
    let Some(folder) = from.backend().native_folder() else { return Ok(()) };
    match rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) {
        Err(rustix::io::Errno::ROFS) => Err(Code::ReadOnly
            .error(format!("a move cannot remove from {}: its file system is mounted read-only", from.url()))
            .with_hint("copy it instead, or mount the file system for writing")),
        _ => Ok(()),
    }
}

/// Opens the store that receives fields; a new one gets the source's schema.
pub fn open_target(url: &str, from: &dyn FieldStore) -> Result<Store> {
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let schema = match crate::open(url, &reading) {
        Err(e) if e.kind() == ErrorKind::NotFound => Some(from.schema().text().to_owned()),
        _ => None,
    };
    crate::open(url, &OpenOptions { schema, ..OpenOptions::default() })
}

/// A report, and the fields that the target received; `None` if it received nothing new.
type CarriedAll = (TransferReport, Option<Vec<CarriedField>>);

/// A planned transfer.
struct Transfer<'a> {
    from: &'a Store,
    to: &'a Store,
    options: &'a TransferOptions<'a>,
    requests: Vec<Request>,
    fields: FieldPlan,
    chosen: Chosen,
    /// The declarations of the runs, if they are taken.
    declared: Option<Vec<DeclaredRun>>,
    /// The meshes and kept partitions of these runs.
    meshes: Meshes,
    left: Vec<LeftBehind>,
    /// The lineage of the fields.
    trail: Trail,
}

impl<'a> Transfer<'a> {
    /// Finds everything to carry over, and checks that it fits the target. `goes`: it goes away from the source; `by_field`:
    /// declarations without a field stay.
    fn plan(
        from: &'a Store,
        what: &What,
        to: &'a Store,
        (options, goes, by_field): (&'a TransferOptions<'a>, bool, bool),
    ) -> Result<Transfer<'a>> {
        to.will_write();
        // A store with only fields gets no engine just for a copy.
        let has_catalog = from.catalog().has_records()?;
        let Choice { mut chosen, requests, under } =
            choose(from, what, has_catalog, by_field || options.before.is_some())?;
        let by_hits = chosen.hits().is_some();
        let schema = from.schema();
        let is_chosen = wanted(from, under.as_ref().or(by_hits.then_some(&chosen)), options, goes);
        let search = Search {
            // Declarations and attributes without a field also count as found.
            strict: &|request, found| {
                options.strict
                    && !by_hits
                    && (options.fields_only || !chosen.is_named(request) || !found.is_empty())
            },
            wanted: &is_chosen,
        };
        let fields = FieldPlan::new(from, &requests, to, &search)?;
        drop(is_chosen);
        let mut transfer = Transfer {
            from,
            to,
            options,
            requests,
            fields,
            chosen: Chosen::default(),
            declared: None,
            meshes: Meshes::default(),
            left: Vec::new(),
            trail: Trail::default(),
        };
        let trail = Trail::of(from, &transfer.fields)?;
        let left_of_graph = left::of_graph(&trail, options.fields_only);
        if !options.fields_only {
            transfer.trail = trail;
        }
        transfer.left.extend(left_of_graph.clone());
        if !has_catalog {
            return Ok(transfer);
        }
        if !by_hits {
            for key in transfer.fields.each_key() {
                chosen.add_field(&schema, &key?);
            }
        }
        let declared = declared(from, &chosen)?;
        let runs = declared.iter().map(|declared| &declared.run);
        let why = options.fields_only.then_some(FIELDS_ONLY).or_else(|| why_not(&schema, &to.schema(), runs));
        (transfer.left, transfer.declared) = match why {
            Some(why) => (Left::all(from, &chosen, &declared, why)?, None),
            None => {
                let mut left = Left::default();
                transfer.meshes = Meshes::of(from, to, &declared, chosen.everything)?;
                transfer.meshes.report(&mut left);
                (left.end(), Some(declared))
            }
        };
        transfer.left.extend(left_of_graph);
        transfer.chosen = chosen;
        Ok(transfer)
    }

    /// Carries everything over, and in a move then removes it from the source. If parts of a field were written that
    /// cannot be read to its end, starts again without that field.
    fn transfer(&mut self, moving: bool) -> Result<TransferReport> {
        loop {
            let removal = moving.then(|| Removal::begin(self.from, self.rows()?)).transpose()?;
            let report = match self.copy(removal.as_ref()) {
                Ok(Some(report)) => report,
                unfinished => {
                    if let Some(removal) = removal {
                        let _ = removal.give_up(self.from);
                    }
                    unfinished?;
                    continue;
                }
            };
            if let Some(removal) = removal {
                let undone = "the target has everything; move again to remove it from the source";
                let removed = removal.make(self.from);
                removed.map_err(|e| e.context("removing from the source").with_hint(undone))?;
            }
            return Ok(report);
        }
    }

    /// How many fields and attributes go, at most.
    fn rows(&self) -> Result<u64> {
        let fields = self.fields.count();
        if self.declared.is_none() {
            return Ok(fields);
        }
        let attributes = match self.chosen.hits() {
            Some(hits) => hits,
            None => {
                let of = |run| self.from.catalog().count(&query(of_run(run)));
                self.chosen.runs.keys().map(of).sum::<Result<u64>>()?
            }
        };
        Ok(fields.saturating_add(attributes))
    }

    /// Carries everything over, in one transaction of the target, and prepares its removal from the source. `None`: it
    /// must be repeated.
    fn copy(&mut self, leaving: Option<&Removal>) -> Result<Option<TransferReport>> {
        let mut arrays = Arrays::of(self.from, self.to, self.declared.as_deref())?;
        let _naming = self.meshes.naming(self.to)?;
        let transaction = self.to.begin()?;
        match self.carry(transaction, leaving, &mut arrays) {
            Ok(Some((report, Some(carried)))) => {
                if let Some(removal) = leaving.filter(|_| planted::is(Planted::MoveRemovesFirst)) {
                    removal.make(self.from)?;
                }
                // If this fails, nobody knows whether it was decided: the files of arrays stay.
                self.to.decide(transaction, true)?;
                arrays.end(true);
                if leaving.is_some() {
                    self.fields.check_arrived(self.to, &carried)?;
                }
                Ok(Some(report))
            }
            Ok(carried) => {
                let abandoned = self.to.abandon(transaction, &Session::default());
                arrays.end(false);
                abandoned.map(|()| carried.map(|(report, _)| report))
            }
            Err(error) => {
                let _ = self.to.abandon(transaction, &Session::default());
                arrays.end(false);
                Err(error)
            }
        }
    }

    /// The report, and the fields that the target received, if it received anything new.
    fn carry(
        &mut self,
        transaction: Id,
        leaving: Option<&Removal>,
        arrays: &mut Arrays,
    ) -> Result<Option<CarriedAll>> {
        let Transfer { from, to, options, fields, chosen, declared, left, trail, meshes, .. } = self;
        let moving = leaving.is_some();
        let mut report = TransferReport { left: left.clone(), ..TransferReport::default() };
        let (mut late, mut foreign) = (Vec::new(), HashSet::new());
        meshes.put(from, to, transaction)?;
        for run in declared.iter().flatten() {
            match run.put(to, transaction, moving)? {
                Outcome::Declared => {}
                Outcome::Later => late.push(run),
                Outcome::Foreign => drop(foreign.insert(&run.run)),
            }
        }
        trail.put(to, transaction)?;
        let mut changed = to.backend().has_pending(&transaction.into());
        let mut going = Vec::new();
        if declared.is_some() {
            let carrier = carried_attributes(from, to, chosen, fields, (transaction, leaving), &mut going)?;
            report.attributes = carrier.written;
            report.left.extend(left::of_attributes(from, &carrier));
            changed |= carrier.written > 0
                || moving && carrier.taken > 0
                || to.backend().has_pending(&transaction.into());
        }
        let Carrying::Done(carried) =
            fields.carry(to, (transaction, moving), arrays, options, &mut report)?
        else {
            return Ok(None);
        };
        for run in late {
            run.put(to, transaction, moving)?;
        }
        report.versions = carried.iter().map(CarriedField::versions).sum();
        report.left.extend(left::of_arrays(arrays));
        report.left.extend(left::of_fields(from, to, fields, &carried, moving)?);
        changed |= !carried.is_empty() || to.backend().has_pending(&transaction.into());
        report.damaged = fields.damaged().map(|(_, unreadable)| unreadable.clone()).collect();
        if let Some(removal) = leaving {
            fields.remove(*from, removal.session())?;
        }
        for (mut leaving, own) in going {
            leaving.fields_stay(fields.damaged().map(|(key, _)| key));
            let of_run = declared.iter().flatten().find(|of| of.run == *leaving.run());
            let rows = of_run.filter(|of| !foreign.contains(&of.run)).map(|of| &of.rows[..]);
            let groups = of_run.map_or(&[][..], |of| &of.groups);
            leaving.end(own, rows, groups)?;
        }
        fields.check_unchanged(to, &carried)?;
        Ok(Some((report, changed.then_some(carried))))
    }
}

/// Carries attributes over, in a transaction; in a move they are removed, and `going` has those to report once the fields
/// are there.
fn carried_attributes<'c>(
    from: &'c Store,
    to: &'c Store,
    chosen: &'c Chosen,
    fields: &FieldPlan,
    (transaction, leaving): (Id, Option<&'c Removal>),
    going: &mut Vec<(Leaving<'c>, &'c OfRun)>,
) -> Result<Carrier<'c>> {
    let tags = Tags::of(from, to)?;
    let mut carrier = Carrier::new(from, to, chosen, tags, transaction, leaving.is_some());
    if chosen.everything {
        for name in carrier.tags.names() {
            carrier.tags.put(from, to, transaction, &name)?;
        }
    }
    for (run, own) in &chosen.runs {
        let Some(removal) = leaving else {
            carrier.carry(run, own, &mut |_, _| Ok(()))?;
            continue;
        };
        let mut leaving = Leaving::new(from, run, fields, removal, chosen.hits().is_some())?;
        carrier.carry(run, own, &mut |hit, taken| leaving.hear(hit, taken))?;
        going.push((leaving, own));
    }
    if let Some(hits) = chosen.hits().filter(|hits| *hits > carrier.taken) {
        let (gone, url) = (hits - carrier.taken, from.url());
        return Err(Error::conflict(format!(
            "{gone} of {hits} hits are not, or no longer, attributes of {url}"
        ))
        .with_hint("nothing was copied; ask for the hits again"));
    }
    Ok(carrier)
}
