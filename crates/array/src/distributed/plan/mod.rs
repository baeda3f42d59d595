//! How elements go between the memory of ranks and a file that they write together.
//!
//! ```text
//!            direct    each rank writes its runs where they belong
//!  view ──▶  exchange  elements go to the owners of contiguous ranges of the file, who write them (A-3)
//!            view      each rank hands its runs to the communicator's collective call
//! ```
//!
//! A [`Planner`] keeps what was found out about views: a [`MovePlan`] is made once for a footprint on every rank, and
//! serves all arrays of that shape, whatever their elements are (A-4). Which method is taken is decided for all ranks
//! from what the plan knows, and said in words (A-6).
//!
//! | module | what it does |
//! |---|---|
//! | [`file_array`] | where the elements of an array lie in a file |
//! | `choose` | the costs of methods |
//! | [`model`] | what an exchange sends, for any number of ranks |
//! | `overlap` | whether boxes of ranks overlap |
//! | `ranges` | the ranges of the file that owners have |
//! | `routes` | which elements go to which owner, and where they belong there |
//! | `exchange` | the rounds in which they go |
//! | `round_parts` | what goes and comes in a round |
//! | `spans` | runs as few long spans of the file, in bounded rounds |
//! | `direct` | each rank on its own, or by the communicator's collective call |
//! | [`pieces`] | boxes of an array for whoever keeps it by boxes, and not in a file |
//!
//! Invariants: all calls are collective, and what fails on one rank fails on all; all methods leave the same bytes;
//! an element that several ranks write is the same on all of them, or the call fails; beside the caller's memory a
//! call takes at most two thirds of [`Settings::buffer`] three times over, or one block where that is more.

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

/// How elements go to the file and come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// The cheapest of `Direct` and `Exchange`.
    #[default]
    Auto,
    /// Each rank writes where its elements belong.
    Direct,
    /// Elements go to owners of contiguous ranges, who write.
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

    /// The word by which users choose it.
    pub fn word(self) -> &'static str {
        Method::WORDS.iter().find(|(_, method)| *method == self).map_or("", |(word, _)| word)
    }

    /// The method that a word stands for.
    ///
    /// Errors: `Invalid`, with the words that there are.
    pub fn parse(word: &str) -> Result<Method> {
        let known = Method::WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, method)| *method).ok_or_else(|| {
            Code::Option
                .error(format!("{word:?} is no method of a distributed array"))
                .with_hint("give auto, direct, exchange or view")
        })
    }
}

/// How a call goes about it; equal on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// Bytes that a rank may use for moving elements.
    pub buffer: usize,
    /// How many ranks own a range of the file in an exchange; `None`: as the communicator's hint `cb_nodes` says, else all.
    pub owners: Option<usize>,
}

impl Settings {
    /// Bytes for moving elements where nothing else is said.
    pub const BUFFER: usize = 64 << 20;
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { method: Method::Auto, buffer: Settings::BUFFER, owners: None }
    }
}

/// What a call did, on this rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// The method that was taken.
    pub method: Method,
    /// Why.
    pub why: String,
    /// Bytes that this rank sent to others.
    pub exchanged: u64,
    /// Bytes that it wrote.
    pub written: u64,
    /// Bytes that it read.
    pub read: u64,
    /// Whether a plan was made, and none that there was served.
    pub planned: bool,
    /// Elements of the array that no rank writes, in a call that writes.
    pub holes: u64,
    /// Entries of views that name an element which another one has named already, in a call that writes.
    pub repeated: u64,
}

/// What a rank writes.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// What of the array.
    pub view: &'a LocalView,
    /// Where the array lies.
    pub array: FileArray,
    /// The elements; [`Buffer::elements`] is the product of the view's local shape.
    pub from: &'a Buffer<'a>,
    /// One element, as in the file, for those that nobody writes; without it they stay as they are.
    pub fill: Option<&'a [u8]>,
    /// How.
    pub settings: Settings,
}

/// What a rank reads.
#[derive(Debug)]
pub struct Read<'a, 'b> {
    /// What of the array.
    pub view: &'a LocalView,
    /// Where the array lies.
    pub array: FileArray,
    /// Takes the elements.
    pub into: &'a mut BufferMut<'b>,
    /// What lies behind the end of the file.
    pub past_end: PastFileEnd,
    /// How.
    pub settings: Settings,
}

/// What is known of views that were used. Collective calls on it are made in the same order on all ranks.
#[derive(Debug, Default)]
pub struct Planner {
    plans: Mutex<Plans>,
    memory: RoundMemory,
}

/// What has to be equal where ranks are in one call: the hint where it is not.
const ALIKE: &str = "array, fill value, method, buffer and owners are equal on all ranks";
/// Of a rank that no plan serves.
const NO_SLOT: u64 = u64::MAX;
/// Plans that are kept: of more views than this the one unused longest is made again.
const PLANS: usize = 16;

#[derive(Debug, Default)]
struct Plans {
    /// In slots that are the same on all ranks.
    slots: Vec<Arc<MovePlan>>,
    /// The call that used each slot last.
    used: Vec<u64>,
    calls: u64,
}

/// What is known of one footprint a rank.
#[derive(Debug)]
struct MovePlan {
    footprint: Footprint,
    deal: u64,
    owners: usize,
    /// Bytes of a bucket at most.
    bucket: u64,
    /// Elements, runs and units of all ranks, and of the rank that has most.
    sum: Amounts,
    most: Amounts,
    /// Of writing: known once it was asked.
    coverage: OnceLock<Coverage>,
    routes: OnceLock<Routes>,
    /// The entries of the map that name an element, by index.
    order: OnceLock<Vec<u32>>,
    /// What goes in a round, by the size of elements and the buffer.
    windows: Mutex<BTreeMap<(usize, usize), exchange::Window>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    elements: u64,
    runs: u64,
    /// Blocks that are checked as a whole, of those that long runs touch.
    blocks: u64,
}

/// What all ranks write together.
#[derive(Debug, Clone, Copy)]
struct Coverage {
    /// Elements that some rank writes.
    covered: u64,
    /// Entries beyond the first for an element.
    repeated: u64,
}

/// A write that all ranks have begun.
struct WriteCall<'a> {
    write: Write<'a>,
    plan: Arc<MovePlan>,
    coverage: Coverage,
    /// What is known of it by now.
    report: MoveReport,
}

/// What all ranks have to agree upon, apart from views.
struct CallForm {
    writes: bool,
    array: FileArray,
    fill: Option<Vec<u8>>,
    settings: Settings,
}

impl Planner {
    /// No plan yet.
    pub fn new() -> Planner {
        Planner::default()
    }

    /// No plan yet; the memory of exchanges is shared with others.
    pub fn in_memory(memory: RoundMemory) -> Planner {
        Planner { memory, ..Planner::default() }
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock()
    }

    /// Collective: writes what each rank holds. A rank that failed before passes its error.
    ///
    /// Errors: `Conflict` where ranks write an element and not the same bytes, naming it and the ranks, or where
    /// ranks are in different calls; `Invalid` for a buffer of another shape. What of other elements was written by
    /// then is not said.
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

    /// Collective: what is known of a write before an element is moved.
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

    /// Collective: reads what each rank asks for. A rank that failed before passes its error.
    ///
    /// Errors: `Invalid` for a buffer of another shape; `Corrupt` where the file ends early; `Conflict` where ranks
    /// are in different calls.
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

    /// Collective: the plan of these footprints, and whether it was made now.
    fn plan(
        &self,
        team: &Team,
        step: Step,
        footprint: Result<(&Footprint, u64)>,
        form: Option<&CallForm>,
    ) -> Result<(Arc<MovePlan>, bool)> {
        let asked = form.and_then(|form| form.settings.owners).or_else(|| team.hints().owners());
        let owners = asked.unwrap_or(team.size()).clamp(1, team.size());
        let bucket = exchange::bucket(form.map_or(Settings::BUFFER, |form| form.settings.buffer));
        let slots: Vec<_> = self.plans().slots.clone();
        let serves = |plan: &MovePlan, footprint: &Footprint, deal: u64| {
            plan.owners == owners
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
            // Another one may serve all.
            false => {
                let misses = served.iter().map(|served| u64::from(!served)).collect();
                team.max(step, Ok(misses))?.iter().position(|missing| *missing == 0)
            }
        };
        if let Some(slot) = found {
            self.plans().touch(slot);
            return Ok((slots[slot].clone(), false));
        }
        let plan = Arc::new(MovePlan::new(team, step, (footprint, deal), (owners, bucket))?);
        self.plans().keep(plan.clone());
        Ok((plan, true))
    }

    /// How many plans are kept.
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
        let Settings { method, buffer, owners } = settings;
        let owners = owners.map_or("all".to_owned(), |owners| owners.to_string());
        format!(
            "{verb} {total} elements of {} bytes at byte {} (records of {} elements, {} bytes apart), fill {fill:?}, \
             method {}, buffer {buffer}, owners {owners}",
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
        false => Err(Code::Dtype.error(format!("elements of {size} bytes for an array of {}", array.size))),
    }
}

impl MovePlan {
    /// Collective: what is to be known of these footprints at once.
    fn new(
        team: &Team,
        step: Step,
        (footprint, deal): (&Footprint, u64),
        (owners, bucket): (usize, u64),
    ) -> Result<MovePlan> {
        let runs = footprint.run_count();
        let own = vec![footprint.elements(), runs, choose::blocks(footprint, runs)];
        let (most, sum) = team.max_and_total(step, Ok(own))?;
        let amounts = |values: &[u64]| Amounts { elements: values[0], runs: values[1], blocks: values[2] };
        Ok(MovePlan {
            footprint: footprint.clone(),
            deal,
            owners,
            bucket,
            sum: amounts(&sum),
            most: amounts(&most),
            coverage: OnceLock::new(),
            routes: OnceLock::new(),
            order: OnceLock::new(),
            windows: Mutex::default(),
        })
    }

    /// Collective in its first call: what all ranks write together.
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

    /// Collective in its first call: which elements go to which owner.
    fn routes(&self, team: &Team, step: Step) -> Result<&Routes> {
        if let Some(routes) = self.routes.get() {
            return Ok(routes);
        }
        let routes = Routes::new(team, step, &self.footprint, (self.owners, self.bucket))?;
        Ok(self.routes.get_or_init(|| routes))
    }

    /// The entries of the map that name an element, by index; `None` where there is no map.
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
