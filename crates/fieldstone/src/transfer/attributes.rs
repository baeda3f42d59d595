//! Attributes of a transfer: finds those that the target has, and carries the others over.
//!
//! They are read run by run and tag by tag, in the order of their places, and written in records of many rows. The
//! attributes of one place go together or not at all: they belong to one call and one commit, so that several values at
//! one place do not hide one another.
//!
//! Invariants:
//! * a copy skips a place whose values are all in the target, whoever wrote them;
//! * a move writes each place: an older attribute in the target may be on its way elsewhere, by another move, which
//!   removes that one and no newer one. The caller's other attributes at that place are written with it;
//! * memory holds a page of rows, 100 bytes for each attribute of one tag in one run of the target, and, as bytes of
//!   records, the attributes of one tag at one variable and step.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeBatch, Boxes, CellSets, Column, KeywordColumn, RunName, TagDecl, Values, VariableName, put_value,
};
use xxhash_rust::xxh3::xxh3_128;

use super::chosen::{Chosen, OfRun, of_run, query};
use super::declared::Tags;
use crate::Session;
use crate::Store;
use crate::catalog::Hit;
use crate::catalog::query::{Expr, NameTest, Term};

/// Rows of one record.
const ROWS: usize = 8192;
/// Maximum number of variables, and of cells, in one record.
const VARIABLES: usize = 64;
const CELLS: usize = 1 << 20;
/// Approximate number of rows of one commit.
const COMMIT: usize = 50_000;

/// Carries attributes over, in a transaction of the target.
pub struct Carrier<'a> {
    pub from: &'a Store,
    pub to: &'a Store,
    pub chosen: &'a Chosen,
    pub tags: Tags,
    pub transaction: Id,
    /// Whether the source loses them.
    moving: bool,
    /// Number of the source's attributes that are taken, and of those that the target lacked.
    pub taken: u64,
    pub written: u64,
    /// Number of unflushed ones.
    pub pending: usize,
    /// Number of those that others wrote, and these users.
    pub of_others: u64,
    pub authors: BTreeSet<u32>,
    /// The user who brings them.
    me: u32,
}

impl<'a> Carrier<'a> {
    /// A carrier that has not carried anything yet.
    pub fn new(
        from: &'a Store,
        to: &'a Store,
        chosen: &'a Chosen,
        tags: Tags,
        transaction: Id,
        moving: bool,
    ) -> Carrier<'a> {
        let (taken, written, pending, of_others, authors) = (0, 0, 0, 0, BTreeSet::new());
        let me = to.catalog().user(&Session::default());
        Carrier {
            from,
            to,
            chosen,
            tags,
            transaction,
            moving,
            taken,
            written,
            pending,
            of_others,
            authors,
            me,
        }
    }

    /// Carries the attributes of one run; `heard` receives each attribute, and whether it is taken: in a move, all
    /// attributes.
    pub fn carry(
        &mut self,
        run: &RunName,
        own: &OfRun,
        heard: &mut dyn FnMut(&Hit, bool) -> Result<()>,
    ) -> Result<()> {
        let scope = self.chosen.attributes(run, own, self.moving);
        let (to, transaction) = (self.to, self.transaction);
        let mut give = |batch| to.catalog().carry(batch, &Session::from(transaction));
        let here = match self.to.catalog().run(Some(&run.project), &run.name, &Session::default()) {
            Err(e) if e.kind() == ErrorKind::NotFound => false,
            found => found.map(|_| true)?,
        };
        for name in names(self.from, &scope)? {
            let tagged = |mut expr: Vec<Expr>| {
                expr.push(Expr::Term(Term::Tag(NameTest::Is(name.clone()))));
                query(expr)
            };
            let asked = tagged(scope.clone());
            let mut there = if here { self.there(&asked, &tagged(of_run(run)), own)? } else { None };
            if let Some(there) = &there
                && there.missing.is_empty()
                && !self.moving
            {
                self.taken += there.taken;
                continue;
            }
            let mut rows = Rows::default();
            let mut last: Option<(Option<i64>, Option<Arc<str>>, i64)> = None;
            for hit in self.from.catalog().stream(&asked)? {
                let hit = hit?;
                let taken = self.chosen.takes(own, &hit);
                heard(&hit, taken)?;
                if !taken {
                    continue;
                }
                self.taken += 1;
                self.tags.put(self.from, self.to, self.transaction, &name)?;
                let Some(tag) = self.tags.get(&name, hit.tag_version, true) else { continue };
                let mut more = Vec::new();
                let at = if there.is_some() { digests(tag, &hit)?.0 } else { 0 };
                let known = there.as_mut().filter(|there| !there.missing.contains(&at));
                let is_new = known.is_none();
                if let Some(there) = known {
                    if !self.moving {
                        continue;
                    }
                    more = there.more.remove(&at).unwrap_or_default();
                }
                let place = (hit.step, hit.variable.clone(), hit.variable_version);
                if last.as_ref() != Some(&place) {
                    if self.pending >= COMMIT {
                        rows.give(run, &mut give)?;
                        self.to.flush(Some(self.transaction))?;
                        (rows, self.pending) = (Rows::default(), 0);
                    }
                    last = Some(place);
                }
                let tag = tag.clone();
                self.note_author(hit.user);
                self.written += u64::from(is_new);
                self.pending += 1 + more.len();
                for hit in std::iter::once(hit).chain(more) {
                    rows.push(run, tag.clone(), hit, &mut give)?;
                }
            }
            rows.give(run, &mut give)?;
        }
        Ok(())
    }

    /// Counts an attribute of another user.
    fn note_author(&mut self, user: u32) {
        if user != self.me {
            self.of_others += 1;
            self.authors.insert(user);
        }
    }

    /// The state of one tag's places in the target; `None` if it has none of the tag's attributes in the run.
    fn there(
        &self,
        asked: &crate::catalog::Query,
        there: &crate::catalog::Query,
        own: &OfRun,
    ) -> Result<Option<There>> {
        let mut known: HashMap<u128, u32> = HashMap::new();
        for hit in self.to.catalog().stream(there)? {
            let hit = hit?;
            if let Some(tag) = self.tags.get(&hit.tag, hit.tag_version, false) {
                *known.entry(digests(tag, &hit)?.1).or_default() += 1;
            }
        }
        if known.is_empty() {
            return Ok(None);
        }
        let mut found = There::default();
        let mut places = HashSet::new();
        for hit in self.from.catalog().stream(asked)? {
            let hit = hit?;
            let Some(tag) = self.tags.get(&hit.tag, hit.tag_version, true) else { continue };
            if !self.chosen.takes(own, &hit) {
                continue;
            }
            found.taken += 1;
            let (place, value) = digests(tag, &hit)?;
            match known.get_mut(&value).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => drop(found.missing.insert(place)),
            }
            if self.moving {
                places.insert(place);
            }
        }
        places.retain(|place| !found.missing.contains(place));
        if !places.is_empty() && known.values().any(|count| *count > 0) {
            self.more(there, &places, &mut known, &mut found)?;
        }
        Ok(Some(found))
    }

    /// The caller's attributes at these places in the target that the source lacks.
    fn more(
        &self,
        there: &crate::catalog::Query,
        places: &HashSet<u128>,
        known: &mut HashMap<u128, u32>,
        found: &mut There,
    ) -> Result<()> {
        let me = self.to.catalog().user(&Session::default());
        for hit in self.to.catalog().stream(there)? {
            let hit = hit?;
            let Some(tag) = self.tags.get(&hit.tag, hit.tag_version, false) else { continue };
            let (place, value) = digests(tag, &hit)?;
            if hit.user != me || !places.contains(&place) {
                continue;
            }
            if let Some(count) = known.get_mut(&value).filter(|count| **count > 0) {
                *count -= 1;
                found.more.entry(place).or_default().push(hit);
            }
        }
        Ok(())
    }
}

/// The state of the target for one tag in a run.
#[derive(Default)]
struct There {
    /// Places at which it lacks a value.
    missing: HashSet<u128>,
    /// Number of the source's attributes that are taken.
    taken: u64,
    /// The caller's other attributes there, by place, if it lacks nothing.
    more: HashMap<u128, Vec<Hit>>,
}

/// Names of the tags of attributes.
pub fn names(store: &Store, scope: &[Expr]) -> Result<Vec<String>> {
    let tags = store.catalog().tags(&query(scope.to_vec()))?;
    let mut names: Vec<String> = tags.into_iter().map(|tag| tag.decl.name).collect();
    names.dedup();
    Ok(names)
}

/// Digests of the place of an attribute, and of the place with the value.
fn digests(tag: &TagDecl, hit: &Hit) -> Result<(u128, u128)> {
    let mut bytes = Vec::with_capacity(128);
    let mut part = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    };
    part(tag.name.as_bytes());
    part(tag.unit.as_bytes());
    part(&tag.version.to_le_bytes());
    part(tag.kind.name().as_bytes());
    part(&hit.step.map_or_else(Vec::new, |step| step.to_le_bytes().to_vec()));
    part(hit.variable.as_deref().unwrap_or_default().as_bytes());
    part(&hit.variable_version.to_le_bytes());
    if let Some((start, count)) = &hit.region {
        start.iter().chain(count).for_each(|number| part(&number.to_le_bytes()));
    }
    if let Some((dim, cells)) = &hit.cells {
        part(&(*dim as u64).to_le_bytes());
        cells.iter().for_each(|cell| part(&cell.to_le_bytes()));
    }
    for (keyword, value) in hit.keywords.iter().flat_map(|all| all.iter()) {
        part(keyword.as_bytes());
        part(value.as_bytes());
    }
    let place = xxh3_128(&bytes);
    put_value(&mut bytes, &hit.value);
    Ok((place, xxh3_128(&bytes)))
}

/// Names of the further keywords of an attribute, ascending.
fn keywords_of(hit: &Hit) -> Vec<Arc<str>> {
    hit.keywords.iter().flat_map(|all| all.iter()).map(|(keyword, _)| keyword.clone()).collect()
}

/// Rows for a record: of one tag, all with the same parts.
#[derive(Default)]
pub struct Rows {
    tag: Option<TagDecl>,
    hits: Vec<Hit>,
    variables: HashMap<(Arc<str>, i64), u32>,
    cells: usize,
    /// Whether the commit already has a record of the tag.
    continues: bool,
}

/// Receives a record of attributes.
type Give<'a> = dyn FnMut(AttributeBatch) -> Result<()> + 'a;

impl Rows {
    /// Adds an attribute; if it does not fit the rows before it, passes these on first.
    pub fn push(&mut self, run: &RunName, tag: TagDecl, hit: Hit, give: &mut Give<'_>) -> Result<()> {
        let parts = |hit: &Hit| {
            let rank = hit.region.as_ref().map(|(start, _)| start.len());
            let along = hit.cells.as_ref().map(|(dim, _)| *dim);
            (hit.step.is_some(), hit.variable.is_some(), rank, along, keywords_of(hit))
        };
        let other = self.tag.as_ref().is_some_and(|own| *own != tag);
        let full = self.hits.len() >= ROWS || self.variables.len() >= VARIABLES || self.cells >= CELLS;
        if other || full || self.hits.first().is_some_and(|first| parts(first) != parts(&hit)) {
            self.give(run, give)?;
            self.continues &= !other;
        }
        self.tag = Some(tag);
        if let Some(name) = &hit.variable {
            let next = self.variables.len() as u32;
            self.variables.entry((name.clone(), hit.variable_version)).or_insert(next);
        }
        self.cells += hit.cells.as_ref().map_or(0, |(_, cells)| cells.len());
        self.hits.push(hit);
        Ok(())
    }

    /// Passes the rows on as a record.
    pub fn give(&mut self, run: &RunName, give: &mut Give<'_>) -> Result<()> {
        let hits = std::mem::take(&mut self.hits);
        let known = std::mem::take(&mut self.variables);
        self.cells = 0;
        let (Some(tag), Some(first)) = (self.tag.clone(), hits.first()) else { return Ok(()) };
        let index = |hit: &Hit| {
            let name = hit.variable.clone().map(|name| (name, hit.variable_version));
            name.and_then(|name| known.get(&name).copied()).unwrap_or_default()
        };
        let mut variables: Vec<(&(Arc<str>, i64), &u32)> = known.iter().collect();
        variables.sort_by_key(|(_, index)| **index);
        let variables = variables
            .into_iter()
            .map(|((name, version), _)| VariableName { name: name.to_string(), version: *version });
        let boxes = first.region.as_ref().map(|(start, _)| Boxes {
            rank: start.len(),
            start: hits.iter().filter_map(|hit| hit.region.as_ref()).flat_map(|(a, _)| a.clone()).collect(),
            count: hits.iter().filter_map(|hit| hit.region.as_ref()).flat_map(|(_, n)| n.clone()).collect(),
            cells: first.cells.as_ref().map(|(dim, _)| CellSets {
                dim: *dim,
                sets: hits.iter().filter_map(|hit| hit.cells.clone()).map(|(_, cells)| cells).collect(),
            }),
        });
        let keywords = keywords_of(first).into_iter().enumerate().map(|(at, keyword)| KeywordColumn {
            keyword,
            values: hits.iter().filter_map(|hit| Some(hit.keywords.as_ref()?.get(at)?.1.clone())).collect(),
        });
        let batch = AttributeBatch {
            keywords: keywords.collect(),
            run: run.clone(),
            rows: hits.len(),
            step: first.step.map(|_| Column::Each(hits.iter().filter_map(|hit| hit.step).collect())),
            variables: variables.collect(),
            variable: if known.len() > 1 {
                Column::Each(hits.iter().map(index).collect())
            } else {
                Column::One(0)
            },
            boxes,
            one_value: false,
            continues: self.continues,
            singles: false,
            values: Values::of(tag.kind, hits.into_iter().map(|hit| hit.value).collect::<Vec<Value>>()),
            tag,
        };
        self.continues = true;
        give(batch)
    }
}
