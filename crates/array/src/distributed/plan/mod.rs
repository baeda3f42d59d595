//! Moves elements between the memory of ranks and a file that they share.
//!
//! ```text
//!            direct    each rank writes its runs where they belong
//!  view ──▶  exchange  elements go to the aggregators of contiguous ranges of the file, who write them (A-3)
//!            view      each rank hands its runs to the communicator's collective call
//! ```
//!
//! A [`Planner`] caches what it finds out about views: a [`MovePlan`] is made once for the footprints of all ranks,
//! and serves all arrays of that shape, whatever their elements (A-4). The plan decides the method for all ranks, and
//! gives the reason as text (A-6).
//!
//! | module | what it does |
//! |---|---|
//! | [`file_array`] | the layout of an array in a file |
//! | `choose` | the costs of methods |
//! | [`model`] | the costs of an exchange, for any number of ranks |
//! | `overlap` | the check whether boxes of ranks overlap |
//! | `ranges` | the aggregators' ranges of the file |
//! | `routes` | the assignment of elements to aggregators, and their places there |
//! | `exchange` | the rounds of an exchange |
//! | `round_parts` | the data sent and received in a round |
//! | `spans` | runs combined into a few long spans of the file, in bounded rounds |
//! | `direct` | moves by each rank on its own, or by the communicator's collective call |
//! | [`pieces`] | boxes of an array, for a caller that keeps boxes instead of a file |
//!
//! Invariants: all calls are collective, and a failure on one rank fails all; all methods leave the same bytes; an
//! element that several ranks write must be the same on all of them, or the call fails; in addition to the caller's
//! memory, a call takes at most three times two thirds of [`Settings::buffer`], or one block if that is more.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use fieldstone_core::env::comm::{Step, Team, TeamFile, TeamReader};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::agreed::differing;
use super::buffer::{Buffer, BufferMut};
use super::view::{Footprint, LocalView};

mod choose;
mod direct;
mod exchange;
pub mod file_array;
pub mod model;
mod overlap;
pub mod pieces;
mod ranges;
mod round_parts;
mod routes;
mod spans;

pub use file_array::{FileArray, PastFileEnd};
pub use round_parts::RoundMemory;
use routes::Routes;

/// The method of moving elements to and from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// The cheaper of `Direct` and `Exchange`.
    #[default]
    Auto,
    /// Each rank writes directly to the positions of its elements.
    Direct,
    /// Elements go to aggregators of contiguous ranges, which write them.
    Exchange,
    /// The communicator's collective call: MPI-IO.
    View,
}

impl Method {
    const WORDS: [(&str, Method); 4] = [
        ("auto", Method::Auto),
        ("direct", Method::Direct),
        ("exchange", Method::Exchange),
        ("view", Method::View),
    ];

    /// The name by which users choose it.
    pub fn word(self) -> &'static str {
        Method::WORDS.iter().find(|(_, method)| *method == self).map_or("", |(word, _)| word)
    }

    /// The method with this name.
    ///
    /// Errors: `Invalid`, with the valid names.
    pub fn parse(word: &str) -> Result<Method> {
        let known = Method::WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, method)| *method).ok_or_else(|| {
            Code::Option
                .error(format!("{word:?} is not a method of distributed arrays"))
                .with_hint("give auto, direct, exchange or view")
        })
    }
}

/// Settings of a call; equal on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// Bytes that a rank may use for moving elements.
    pub buffer: usize,
    /// The number of ranks that own a range of the file in an exchange; `None`: the communicator's hint `cb_nodes`,
    /// else all.
    pub aggregators: Option<usize>,
}

impl Settings {
    /// Default number of bytes for moving elements.
    pub const BUFFER: usize = 64 << 20;
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { method: Method::Auto, buffer: Settings::BUFFER, aggregators: None }
    }
}

/// Report of a call, on this rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// The method used.
    pub method: Method,
    /// The reason for the method.
    pub why: String,
    /// Bytes that this rank sent to others.
    pub exchanged: u64,
    /// Bytes that it wrote.
    pub written: u64,
    /// Bytes that it read.
    pub read: u64,
    /// Whether a plan was made, because none in the cache fitted.
    pub planned: bool,
    /// In a call that writes, the number of elements of the array that no rank writes.
    pub holes: u64,
    /// In a call that writes, the number of view entries whose element another entry has named already.
    pub repeated: u64,
}

/// The arguments of a rank's write.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// This rank's view of the array.
    pub view: &'a LocalView,
    /// The array's layout in the file.
    pub array: FileArray,
    /// The elements; [`Buffer::elements`] is the product of the view's local shape.
    pub from: &'a Buffer<'a>,
    /// One element, as in the file, for those that no rank writes; without it, they keep their bytes.
    pub fill: Option<&'a [u8]>,
    /// The settings.
    pub settings: Settings,
}

/// The arguments of a rank's read.
#[derive(Debug)]
pub struct Read<'a, 'b> {
    /// This rank's view of the array.
    pub view: &'a LocalView,
    /// The array's layout in the file.
    pub array: FileArray,
    /// Receives the elements.
    pub into: &'a mut BufferMut<'b>,
    /// The treatment of bytes beyond the end of the file.
    pub past_end: PastFileEnd,
    /// The settings.
    pub settings: Settings,
}

/// A cache of plans for the views in use. All ranks make collective calls on it in the same order.
#[derive(Debug, Default)]
pub struct Planner {
    plans: Mutex<Plans>,
    memory: RoundMemory,
}

/// The hint for ranks whose arguments must be equal in a call, but are not.
const ALIKE: &str = "use equal array, fill value, method, buffer and aggregators on all ranks";
/// The slot of a rank that no plan serves.
const NO_SLOT: u64 = u64::MAX;
/// Limit on the plans kept: a new view replaces the plan unused for longest.
const PLANS: usize = 16;

#[derive(Debug, Default)]
struct Plans {
    /// The plans, in slots that are the same on all ranks.
    slots: Vec<Arc<MovePlan>>,
    /// The call that used each slot last.
    used: Vec<u64>,
    calls: u64,
}

/// The plan for one footprint on each rank.
#[derive(Debug)]
struct MovePlan {
    footprint: Footprint,
    deal: u64,
    aggregators: usize,
    /// Limit on the bytes of a bucket.
    bucket: u64,
    /// Elements, runs and units: sums over all ranks, and those of the busiest rank.
    sum: Amounts,
    most: Amounts,
    /// For writes: known after the first query.
    coverage: OnceLock<Coverage>,
    routes: OnceLock<Routes>,
    /// The entries of the map that name an element, ordered by index.
    order: OnceLock<Vec<u32>>,
    /// The amounts moved in a round, by element size and buffer.
    windows: Mutex<BTreeMap<(usize, usize), exchange::Window>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    elements: u64,
    runs: u64,
    /// Blocks that must be verified as a whole, of those that long runs touch.
    blocks: u64,
}

/// Totals of a write over all ranks.
#[derive(Debug, Clone, Copy)]
struct Coverage {
    /// Number of elements that some rank writes.
    covered: u64,
    /// Number of entries beyond the first for an element.
    repeated: u64,
}

/// A write that all ranks have begun.
struct WriteCall<'a> {
    write: Write<'a>,
    plan: Arc<MovePlan>,
    coverage: Coverage,
    /// The report so far.
    report: MoveReport,
}

/// The arguments on which all ranks must agree, apart from views.
struct CallForm {
    writes: bool,
    array: FileArray,
    fill: Option<Vec<u8>>,
    settings: Settings,
}

impl Planner {
    /// Makes an empty planner.
    pub fn new() -> Planner {
        Planner::default()
    }

    /// Makes an empty planner; it shares the memory of exchanges with others.
    pub fn in_memory(memory: RoundMemory) -> Planner {
        Planner { memory, ..Planner::default() }
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock()
    }

    /// Collective: writes each rank's elements. A rank that failed before passes its error.
    ///
    /// Errors: `Conflict` if ranks write different bytes to an element, with the element and the ranks, or if ranks
    /// are in different calls; `Invalid` for a buffer of another shape. Which other elements were written by then is
    /// unspecified.
    pub fn write(
        &self,
        file: &TeamFile,
        step: impl Into<Step>,
        local: Result<Write<'_>>,
    ) -> Result<MoveReport> {
        let step = step.into();
        let team = file.team();
        let before = team.counters().sent;
        let WriteCall { write, plan, coverage, mut report } = self.begin_write(team, step, local)?;
        (report.method, report.why) = choose::for_writing(&plan, team.size(), &write, coverage);
        report.written = match report.method {
            Method::Exchange => {
                let routes = plan.routes(team, step)?;
                let (to, how) = (file.writer(), (&write, report.holes, Some(file)));
                self.memory.lend(|buffers| exchange::write(&plan, routes, &to, step, how, buffers))?
            }
            method => {
                let filled = match (write.fill, report.holes) {
                    (Some(fill), 1..) => direct::fill(file, step, write.array, plan.footprint.total(), fill)?,
                    _ => 0,
                };
                filled + direct::write(&plan, &file.writer(), step, &write, method)?
            }
        };
        report.exchanged = team.counters().sent - before;
        Ok(report)
    }

    /// Collective: prepares a write, before any element is moved.
    fn begin_write<'w>(&self, team: &Team, step: Step, local: Result<Write<'w>>) -> Result<WriteCall<'w>> {
        let checked = local.and_then(|write| {
            let footprint = write.view.to_write()?;
            check_buffer(write.view, write.from.elements())?;
            check_array(footprint, write.array, write.from.element().size())?;
            let form = CallForm {
                writes: true,
                array: write.array,
                fill: write.fill.map(<[u8]>::to_vec),
                settings: write.settings,
            };
            Ok((write, form))
        });
        let (footprint, form) = match &checked {
            Ok((write, form)) => (Ok((write.view.written(), write.view.deal())), Some(form)),
            Err(error) => (Err(error.replicate()), None),
        };
        let (plan, planned) = self.plan(team, step, footprint, form)?;
        let (write, _) = checked?;
        let coverage = plan.coverage(team, step)?;
        let holes = plan.footprint.total() - coverage.covered.min(plan.footprint.total());
        let report = MoveReport { planned, holes, repeated: coverage.repeated, ..MoveReport::default() };
        Ok(WriteCall { write, plan, coverage, report })
    }

    /// Collective: reads each rank's elements. A rank that failed before passes its error.
    ///
    /// Errors: `Invalid` for a buffer of another shape; `Corrupt` if the file ends early; `Conflict` if ranks are in
    /// different calls.
    pub fn read(
        &self,
        file: &TeamReader,
        step: impl Into<Step>,
        local: Result<Read<'_, '_>>,
    ) -> Result<MoveReport> {
        let step = step.into();
        let team = file.team();
        let before = team.counters().sent;
        let checked = local.and_then(|read| {
            check_buffer(read.view, read.into.elements())?;
            check_array(read.view.read(), read.array, read.into.element().size())?;
            let form = CallForm { writes: false, array: read.array, fill: None, settings: read.settings };
            Ok((read, form))
        });
        let (footprint, form) = match &checked {
            Ok((read, form)) => (Ok((read.view.read(), 0)), Some(form)),
            Err(error) => (Err(error.replicate()), None),
        };
        let (plan, planned) = self.plan(team, step, footprint, form)?;
        let (mut read, _) = checked?;
        let mut report = MoveReport { planned, ..MoveReport::default() };
        (report.method, report.why) = choose::for_reading(&plan, team.size(), &read);
        report.read = match report.method {
            Method::Exchange => {
                let routes = plan.routes(team, step)?;
                self.memory.lend(|buffers| exchange::read(&plan, routes, file, step, &mut read, buffers))?
            }
            method => direct::read(&plan, file, step, &mut read, method)?,
        };
        report.exchanged = team.counters().sent - before;
        Ok(report)
    }

    /// Collective: the plan for these footprints, and whether it was made now.
    fn plan(
        &self,
        team: &Team,
        step: Step,
        footprint: Result<(&Footprint, u64)>,
        form: Option<&CallForm>,
    ) -> Result<(Arc<MovePlan>, bool)> {
        let asked = form.and_then(|form| form.settings.aggregators).or_else(|| team.hints().aggregators());
        let aggregators = asked.unwrap_or(team.size()).clamp(1, team.size());
        let bucket = exchange::bucket(form.map_or(Settings::BUFFER, |form| form.settings.buffer));
        let slots: Vec<_> = self.plans().slots.clone();
        let serves = |plan: &MovePlan, footprint: &Footprint, deal: u64| {
            plan.aggregators == aggregators
                && plan.bucket == bucket
                && (deal == 0 || plan.deal == deal)
                && plan.footprint == *footprint
        };
        let heads = footprint.as_ref().map_err(Error::replicate).map(|(footprint, deal)| {
            let text = form.map(|form| form.text(footprint.total())).unwrap_or_default();
            let served: Vec<bool> = slots.iter().map(|plan| serves(plan, footprint, *deal)).collect();
            (text, served)
        });
        let (heads, (text, served)) = match heads {
            Ok((text, served)) => {
                let hash = xxh3_64(text.as_bytes());
                let first = served.iter().position(|served| *served).map_or(NO_SLOT, |slot| slot as u64);
                (Ok(vec![hash, !hash, first, !first]), (text, served))
            }
            Err(error) => (Err(error), (String::new(), Vec::new())),
        };
        let agreed = team.max(step, heads)?;
        let (footprint, deal) = footprint?;
        if agreed[0] != !agreed[1] {
            return Err(differing(team, step, &text, "", ALIKE)?);
        }
        let found = match agreed[2] == !agreed[3] {
            true => usize::try_from(agreed[2]).ok().filter(|slot| *slot < slots.len()),
            // Another plan may serve all ranks.
            false => {
                let misses = served.iter().map(|served| u64::from(!served)).collect();
                team.max(step, Ok(misses))?.iter().position(|missing| *missing == 0)
            }
        };
        if let Some(slot) = found {
            self.plans().touch(slot);
            return Ok((slots[slot].clone(), false));
        }
        let plan = Arc::new(MovePlan::new(team, step, (footprint, deal), (aggregators, bucket))?);
        self.plans().keep(plan.clone());
        Ok((plan, true))
    }

    /// The number of plans kept.
    pub fn kept(&self) -> usize {
        self.plans().slots.len()
    }
}

impl Plans {
    fn touch(&mut self, slot: usize) {
        self.calls += 1;
        self.used[slot] = self.calls;
    }

    fn keep(&mut self, plan: Arc<MovePlan>) {
        if self.slots.len() < PLANS {
            self.slots.push(plan);
            self.used.push(0);
            return self.touch(self.slots.len() - 1);
        }
        let oldest = (0..self.used.len()).min_by_key(|slot| self.used[*slot]).unwrap_or(0);
        self.slots[oldest] = plan;
        self.touch(oldest);
    }
}

impl CallForm {
    fn text(&self, total: u64) -> String {
        let CallForm { writes, array, fill, settings } = self;
        let verb = if *writes { "writes" } else { "reads" };
        let Settings { method, buffer, aggregators } = settings;
        let aggregators = aggregators.map_or("all".to_owned(), |aggregators| aggregators.to_string());
        format!(
            "{verb} {total} elements of {} bytes at byte {} (records of {} elements, {} bytes apart), fill {fill:?}, \
             method {}, buffer {buffer}, aggregators {aggregators}",
            array.size,
            array.begin,
            array.record,
            array.record_stride,
            method.word()
        )
    }
}

fn check_buffer(view: &LocalView, given: u64) -> Result<()> {
    let expected: u64 = view.local_shape().iter().product();
    match expected == given {
        true => Ok(()),
        false => Err(Code::ShapeMismatch
            .error(format!(
                "the view has the local shape {:?}, but {given} elements are given",
                view.local_shape()
            ))
            .with_hint("a halo makes memory wider; see View.local_shape")),
    }
}

fn check_array(footprint: &Footprint, array: FileArray, size: usize) -> Result<()> {
    array.check(footprint.total())?;
    match array.size == size as u64 {
        true => Ok(()),
        false => Err(Code::Dtype
            .error(format!("elements of {size} bytes do not fit an array with elements of {}", array.size))),
    }
}

impl MovePlan {
    /// Collective: computes the part of the plan that is always needed.
    fn new(
        team: &Team,
        step: Step,
        (footprint, deal): (&Footprint, u64),
        (aggregators, bucket): (usize, u64),
    ) -> Result<MovePlan> {
        let runs = footprint.run_count();
        let own = vec![footprint.elements(), runs, choose::blocks(footprint, runs)];
        let (most, sum) = team.max_and_total(step, Ok(own))?;
        let amounts = |values: &[u64]| Amounts { elements: values[0], runs: values[1], blocks: values[2] };
        Ok(MovePlan {
            footprint: footprint.clone(),
            deal,
            aggregators,
            bucket,
            sum: amounts(&sum),
            most: amounts(&most),
            coverage: OnceLock::new(),
            routes: OnceLock::new(),
            order: OnceLock::new(),
            windows: Mutex::default(),
        })
    }

    /// The totals of a write over all ranks. Collective in its first call.
    fn coverage(&self, team: &Team, step: Step) -> Result<Coverage> {
        if let Some(coverage) = self.coverage.get() {
            return Ok(*coverage);
        }
        let coverage = match overlap::is_disjoint(team, step, &self.footprint, self.deal)? {
            true => Coverage { covered: self.sum.elements, repeated: 0 },
            false => {
                let routes = self.routes(team, step)?;
                let total = team.total(step, Ok(vec![routes.covered(), routes.repeated()]))?;
                Coverage { covered: total[0], repeated: total[1] }
            }
        };
        Ok(*self.coverage.get_or_init(|| coverage))
    }

    /// The assignment of elements to aggregators. Collective in its first call.
    fn routes(&self, team: &Team, step: Step) -> Result<&Routes> {
        if let Some(routes) = self.routes.get() {
            return Ok(routes);
        }
        let routes = Routes::new(team, step, &self.footprint, (self.aggregators, self.bucket))?;
        Ok(self.routes.get_or_init(|| routes))
    }

    /// The entries of the map that name an element, ordered by index; `None` if there is no map.
    fn order(&self) -> Option<&[u32]> {
        let (map, count) = self.footprint.map()?;
        Some(self.order.get_or_init(|| {
            let mut order: Vec<u32> = (0..count as u32).filter(|entry| map[*entry as usize] >= 0).collect();
            order.sort_by_key(|entry| map[*entry as usize]);
            order
        }))
    }

    fn windows(&self) -> MutexGuard<'_, BTreeMap<(usize, usize), exchange::Window>> {
        self.windows.lock()
    }
}
