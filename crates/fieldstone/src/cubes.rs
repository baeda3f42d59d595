//! Cubes: groups the fields that a request selects into arrays of fields (F-9).
//!
//! A cube holds fields that only differ in some keywords, its axes: the steps of one variable, the levels and members
//! of one parameter. A million fields are a few thousand cubes, whose size does not depend on their number of fields if
//! every combination of their axes exists; so one pass over the index describes a tree of thousands of runs, without
//! reading a field.
//!
//! Invariants: a cube's `key` and one value of each axis are the key of a field; the values of an axis are in typed
//! order, an absent keyword first; cubes come in key order of their first fields.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, Grouping, OpenOptions, ReadOptions, Request, Value, cubes};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! for step in ["0", "6", "12"] {
//!     let key = [("run", "a"), ("variable", "t"), ("step", step)];
//!     store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! }
//! store.flush(None)?;
//! let found = cubes(&store, &[Request::new()], Grouping::By(&["run", "variable"]), &ReadOptions::default())?;
//! assert_eq!(found.cubes[0].axes[0].values.len(), 3);
//! assert!(found.cubes[0].places.is_none()); // every combination is there
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::key::{FieldKey, KeyValue, LEVELS, Level};
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Result};
use fieldstone_store::api::{FieldStore, ListEntry, ListOptions, ReadOptions};

/// Keywords that distinguish cubes; the others are axes.
#[derive(Debug, Clone, Copy)]
pub enum Grouping<'a> {
    /// A cube for each combination of values of these keywords.
    By(&'a [&'a str]),
    /// These keywords are axes; there is a cube for each combination of all others.
    Along(&'a [&'a str]),
}

impl Grouping<'_> {
    fn is_axis(self, keyword: &str) -> bool {
        match self {
            Grouping::By(names) => !names.contains(&keyword),
            Grouping::Along(names) => names.contains(&keyword),
        }
    }
}

/// Keywords with their values, in the order of a key.
pub type Pairs = Vec<(Arc<str>, KeyValue)>;

/// A keyword along which the fields of a cube vary.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The keyword.
    pub keyword: Arc<str>,
    /// Its values, in typed order; [`KeyValue::Absent`] if some fields lack it. Equal axes are shared.
    pub values: Arc<[KeyValue]>,
}

/// Fields that differ only in their axes.
#[derive(Debug, Clone)]
pub struct Cube {
    /// The part of the key that all fields share.
    pub key: Pairs,
    /// Element type of the first field; `None` for opaque bytes.
    pub dtype: Option<DType>,
    /// Shape of the first field; `None` for opaque bytes.
    pub shape: Option<Arc<[u64]>>,
    /// Extents of the chunks of the first field; `None` if it is one block.
    pub chunks: Option<Arc<[u64]>>,
    /// Whether blocks of any field are compressed; `None` if no field has blocks that are chunks of an array.
    pub packed: Option<bool>,
    /// The field of fewest bytes; the first one if several have as few.
    pub shortest: (u64, FieldKey),
    /// The field of most bytes; the first one if several have as many.
    pub longest: (u64, FieldKey),
    /// The first field of another type or shape.
    pub odd: Option<ListEntry>,
    /// Its axes, outermost first.
    pub axes: Vec<Axis>,
    /// The combinations that exist, as positions in C order over the axes, ascending; `None`: all.
    pub places: Option<Vec<u64>>,
}

/// Result of [`cubes`].
#[derive(Debug, Clone, Default)]
pub struct Cubes {
    /// The cubes, in key order of their first fields.
    pub cubes: Vec<Cube>,
    /// The values of each axis over all cubes, in typed order.
    pub axes: Vec<Axis>,
}

/// Groups the fields that requests select into cubes. Memory grows with the number of cubes, and by a few bytes for
/// each field while it runs.
pub fn cubes(
    store: &dyn FieldStore,
    requests: &[Request],
    grouping: Grouping<'_>,
    options: &ReadOptions,
) -> Result<Cubes> {
    let mut builder = Builder::new(grouping);
    let options = ListOptions { session: options.session.clone(), ..ListOptions::default() };
    for request in requests {
        for entry in store.list(request, &options)? {
            builder.add(entry?);
        }
    }
    builder.finish(requests.len() > 1)
}

/// Marks a keyword that a field of the cube lacks.
const ABSENT: u32 = u32::MAX;

/// Values of one keyword, numbered in order of appearance.
#[derive(Default)]
struct Numbers {
    numbers: HashMap<KeyValue, u32>,
    values: Vec<KeyValue>,
}

impl Numbers {
    fn of(&mut self, value: &KeyValue) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        // A store with 2^32 values of one keyword does not fit in memory.
        let number = u32::try_from(self.values.len()).unwrap_or(ABSENT);
        self.numbers.insert(value.clone(), number);
        self.values.push(value.clone());
        number
    }
}

/// A level of the last key, divided.
#[derive(Default)]
struct Divided {
    level: Option<Arc<Level>>,
    common: Pairs,
    axes: Vec<(usize, u32)>,
}

/// A cube while its fields come in.
struct Open {
    first: Cube,
    fields: usize,
    /// Number of the keyword, and for each field the number of its value.
    axes: Vec<(usize, Vec<u32>)>,
}

struct Builder<'a> {
    grouping: Grouping<'a>,
    keywords: Vec<(Arc<str>, Numbers)>,
    last: [Divided; LEVELS],
    cubes: Vec<Open>,
    by_key: HashMap<Pairs, usize>,
    current: usize,
}

impl<'a> Builder<'a> {
    fn new(grouping: Grouping<'a>) -> Builder<'a> {
        Builder {
            grouping,
            keywords: Vec::new(),
            last: Default::default(),
            cubes: Vec::new(),
            by_key: HashMap::new(),
            current: 0,
        }
    }

    fn add(&mut self, entry: ListEntry) {
        if self.divide(&entry.key) || self.cubes.is_empty() {
            let key: Pairs = self.last.iter().flat_map(|part| part.common.iter().cloned()).collect();
            self.current = match self.by_key.get(&key) {
                Some(known) => *known,
                None => {
                    self.by_key.insert(key.clone(), self.cubes.len());
                    self.cubes.push(Open::new(key, &entry));
                    self.cubes.len() - 1
                }
            };
        }
        if let Some(cube) = self.cubes.get_mut(self.current) {
            cube.add(entry, self.last.iter().flat_map(|part| part.axes.iter().copied()));
        }
    }

    /// Divides a key into its cube's common part and its axes; true if the common part differs from the last key's.
    /// Neighbours share their levels, which are divided once.
    fn divide(&mut self, key: &FieldKey) -> bool {
        let mut changed = false;
        for depth in 0..LEVELS {
            let level = &key.levels[depth];
            let same = self.last[depth].level.as_ref().is_some_and(|last| Arc::ptr_eq(last, level));
            let deeper = &key.levels[depth + 1..];
            // If a key has a keyword at several levels, the deepest counts.
            let repeats = level.names.iter().any(|name| deeper.iter().any(|level| has(level, name)));
            if same && !repeats {
                continue;
            }
            let (mut common, mut axes) = (Pairs::new(), Vec::new());
            for (name, value) in level.names.iter().zip(&level.values) {
                if value.is_absent() || (repeats && deeper.iter().any(|level| has(level, name))) {
                    continue;
                }
                if self.grouping.is_axis(name) {
                    let keyword = self.keyword(name);
                    axes.push((keyword, self.keywords[keyword].1.of(value)));
                } else {
                    common.push((name.clone(), value.clone()));
                }
            }
            let last = &mut self.last[depth];
            changed |= last.common != common;
            // A level that repeats a deeper keyword must be divided again for each key.
            let level = (!repeats).then(|| level.clone());
            *last = Divided { level, common, axes };
        }
        changed
    }

    fn keyword(&mut self, name: &Arc<str>) -> usize {
        let known = self.keywords.iter().position(|(known, _)| Arc::ptr_eq(known, name) || known == name);
        known.unwrap_or_else(|| {
            self.keywords.push((name.clone(), Numbers::default()));
            self.keywords.len() - 1
        })
    }

    fn finish(self, repeated: bool) -> Result<Cubes> {
        // For each keyword the rank of each value in typed order, by the value's number.
        let mut order = Vec::with_capacity(self.keywords.len());
        for (keyword, numbers) in self.keywords {
            let mut sorted: Vec<u32> = (0..numbers.values.len() as u32).collect();
            sorted.sort_unstable_by(|a, b| numbers.values[*a as usize].cmp(&numbers.values[*b as usize]));
            let mut ranks = vec![0; sorted.len()];
            for (rank, number) in (0u32..).zip(&sorted) {
                ranks[*number as usize] = rank;
            }
            let values: Arc<[KeyValue]> =
                sorted.iter().map(|number| numbers.values[*number as usize].clone()).collect();
            order.push(Order { axis: Axis { keyword, values }, ranks, shared: HashMap::new() });
        }
        let cubes = self.cubes.into_iter().map(|cube| cube.finish(&mut order, repeated));
        let cubes = cubes.collect::<Result<Vec<_>>>()?;
        Ok(Cubes { cubes, axes: order.into_iter().map(|order| order.axis).collect() })
    }
}

fn has(level: &Level, keyword: &Arc<str>) -> bool {
    level.names.iter().zip(&level.values).any(|(name, value)| name == keyword && !value.is_absent())
}

/// The values of a keyword in typed order, and the axes made of them so far.
struct Order {
    axis: Axis,
    ranks: Vec<u32>,
    shared: HashMap<Vec<u32>, Arc<[KeyValue]>>,
}

impl Open {
    fn new(key: Pairs, entry: &ListEntry) -> Open {
        let first = Cube {
            key,
            dtype: entry.dtype,
            shape: entry.shape.clone(),
            chunks: entry.chunks.clone(),
            packed: entry.packed,
            shortest: (entry.nbytes, entry.key.clone()),
            longest: (entry.nbytes, entry.key.clone()),
            odd: None,
            axes: Vec::new(),
            places: None,
        };
        Open { first, fields: 0, axes: Vec::new() }
    }

    fn add(&mut self, entry: ListEntry, axes: impl Iterator<Item = (usize, u32)>) {
        for (i, (keyword, value)) in axes.enumerate() {
            let at = match self.axes.get(i) {
                Some((known, _)) if *known == keyword => i,
                _ => match self.axes.iter().position(|(known, _)| *known == keyword) {
                    Some(at) => at,
                    None => {
                        self.axes.push((keyword, Vec::new()));
                        self.axes.len() - 1
                    }
                },
            };
            let column = &mut self.axes[at].1;
            column.resize(self.fields, ABSENT);
            column.push(value);
        }
        self.fields += 1;
        self.first.packed = self.first.packed.max(entry.packed);
        if entry.nbytes < self.first.shortest.0 {
            self.first.shortest = (entry.nbytes, entry.key.clone());
        }
        if entry.nbytes > self.first.longest.0 {
            self.first.longest = (entry.nbytes, entry.key.clone());
        }
        if self.first.odd.is_none() && (entry.dtype != self.first.dtype || entry.shape != self.first.shape) {
            self.first.odd = Some(entry);
        }
    }

    fn finish(self, order: &mut [Order], repeated: bool) -> Result<Cube> {
        let (mut cube, fields) = (self.first, self.fields);
        let mut columns = Vec::with_capacity(self.axes.len());
        let mut product = Some(1u64);
        for (keyword, mut column) in self.axes {
            column.resize(fields, ABSENT);
            let order = &mut order[keyword];
            // An absent keyword comes first: rank 0, then the others.
            for number in &mut column {
                *number = order.ranks.get(*number as usize).map_or(0, |rank| rank + 1);
            }
            let mut ranks = column.clone();
            ranks.sort_unstable();
            ranks.dedup();
            let values = order.shared.entry(ranks.clone()).or_insert_with(|| {
                let value = |rank: &u32| match rank.checked_sub(1) {
                    Some(rank) => order.axis.values[rank as usize].clone(),
                    None => KeyValue::Absent,
                };
                ranks.iter().map(value).collect()
            });
            product = product.and_then(|product| product.checked_mul(ranks.len() as u64));
            cube.axes.push(Axis { keyword: order.axis.keyword.clone(), values: values.clone() });
            columns.push((column, ranks));
        }
        if repeated || product != Some(fields as u64) {
            if product.is_none_or(|product| product > i64::MAX as u64) {
                let names: Vec<&str> = cube.axes.iter().map(|axis| &*axis.keyword).collect();
                return Err(Code::RequestTooBroad
                    .error(format!("{} have too many combinations", names.join(", ")))
                    .with_hint("give a request that selects fewer fields"));
            }
            let mut places = vec![0u64; fields];
            for (column, ranks) in &columns {
                for (place, rank) in places.iter_mut().zip(column) {
                    // The search succeeds, because `ranks` holds all values of `column`; the product bounds the result,
                    // so nothing overflows.
                    *place = *place * ranks.len() as u64 + ranks.partition_point(|r| r < rank) as u64;
                }
            }
            places.sort_unstable();
            places.dedup();
            cube.places = Some(places).filter(|places| product != Some(places.len() as u64));
        }
        Ok(cube)
    }
}
