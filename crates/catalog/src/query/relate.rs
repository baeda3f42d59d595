//! Related attributes: at the same run, step or variable, or with an overlapping box.
//!
//! Rows that depend on a related attribute are decided a batch at a time. One query finds the related
//! attributes, only in the batch's run, at its steps, on its variables or in the hull of its boxes. So the
//! memory is bounded by the matches there.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;

use super::bounds::Steps;
use super::cond::{Cond, Leaf, Related, Row};
use super::exec::{Exec, Out};
use super::lookup::Lookup;
use super::matched::{Batch, MatchedRow};
use super::place::{OwnedRegion, RowRegion};
use super::region::BoxTest;
use super::walk::Ask;
use super::{Relation, Where};
use crate::engine::{Flow, NO_STEP, NO_VARIABLE};

/// Identifies a row in one state of the tables.
type Own = (i64, i64);

fn own(found: &MatchedRow) -> Own {
    (found.batch, found.row)
}

/// The attributes found for the rows of a batch.
struct Mates {
    place: Where,
    /// Two rows are enough to know that a row has another one.
    by_place: HashMap<(i64, i64), Vec<Own>>,
    /// Rows with their boxes, by step and rank.
    by_box: HashMap<(i64, usize), Boxes<Own>>,
}

/// Boxes of one rank, each with an item.
pub(super) struct Boxes<T> {
    /// Ordered by start once they are sorted.
    boxes: Vec<(OwnedRegion, T)>,
    /// Greatest extent along the first dimension.
    extent: i64,
}

impl<T> Default for Boxes<T> {
    fn default() -> Boxes<T> {
        Boxes { boxes: Vec::new(), extent: 0 }
    }
}

impl<T> Boxes<T> {
    pub(super) fn push(&mut self, place: OwnedRegion, of: T) {
        self.extent = self.extent.max(place.count.first().copied().unwrap_or(0));
        self.boxes.push((place, of));
    }

    /// Prepares the boxes for [`Boxes::overlapping`].
    pub(super) fn sort(&mut self) {
        self.boxes.sort_by(|a, b| a.0.start.cmp(&b.0.start));
    }

    /// The items whose boxes share an element with a box of their rank.
    pub(super) fn overlapping<'b>(&'b self, place: &'b RowRegion<'b>) -> impl Iterator<Item = &'b T> {
        let (first, end) = place.side(0).unwrap_or((0, 0));
        let from = first.saturating_sub(self.extent);
        let begin = |mate: &(OwnedRegion, T)| mate.0.start.first().copied();
        let at = self.boxes.partition_point(|mate| begin(mate).is_some_and(|first| first < from));
        let near = self.boxes.iter().skip(at);
        let near = near.take_while(move |mate| begin(mate).is_some_and(|first| first < end));
        near.filter(|mate| place.overlaps(&mate.0.as_ref())).map(|(_, of)| of)
    }
}

/// The key that rows of a run at one place share; `None` for boxes, which are compared.
pub(super) fn place_key(place: Where, step: i64, variable: i64) -> Option<(i64, i64)> {
    match place {
        Where::SameRun => Some((0, 0)),
        Where::SameStep => (step != NO_STEP).then_some((step, 0)),
        Where::SameVariable => (variable != NO_VARIABLE).then_some((step, variable)),
        Where::Overlapping => None,
    }
}

impl Mates {
    /// Whether another attribute is related to this row.
    fn related(&self, found: &MatchedRow, bounds: Option<RowRegion<'_>>) -> bool {
        let me = own(found);
        if self.place != Where::Overlapping {
            let mates =
                place_key(self.place, found.step, found.variable).and_then(|key| self.by_place.get(&key));
            return mates.is_some_and(|mates| mates.iter().any(|mate| *mate != me));
        }
        let Some(place) = bounds else { return false };
        let Some(mates) = self.by_box.get(&(found.step, place.start.len())) else { return false };
        mates.overlapping(&place).any(|mate| *mate != me)
    }

    fn sort(&mut self) {
        self.by_box.values_mut().for_each(Boxes::sort);
    }
}

impl Out for Mates {
    fn take(&mut self, _: &mut Lookup<'_>, batch: &mut Batch) -> Result<Flow> {
        for found in &batch.found {
            if self.place == Where::Overlapping {
                let Some(place) = batch.bounds(found) else { continue };
                let mates = self.by_box.entry((found.step, place.start.len())).or_default();
                mates.push(place.to_own(), own(found));
            } else if let Some(key) = place_key(self.place, found.step, found.variable) {
                let mates = self.by_place.entry(key).or_default();
                if mates.len() < 2 {
                    mates.push(own(found));
                }
                if self.place == Where::SameRun && mates.len() == 2 {
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::More)
    }
}

/// A stored row, with its related attributes.
struct RelatedRow<'a> {
    found: &'a MatchedRow,
    bounds: Option<RowRegion<'a>>,
    mates: &'a HashMap<usize, Mates>,
}

impl Row for RelatedRow<'_> {
    fn bounds(&mut self) -> Result<Option<RowRegion<'_>>> {
        Ok(self.bounds)
    }
    fn keyword(&mut self, name: &str) -> Result<Option<Arc<str>>> {
        let mut all = self.found.keywords.iter().flat_map(|all| all.iter());
        Ok(all.find(|(known, _)| **known == *name).map(|(_, value)| value.clone()))
    }
    fn batch(&self) -> Option<i64> {
        Some(self.found.batch)
    }
    fn value(&mut self) -> Result<&Value> {
        Ok(&self.found.value)
    }
    fn related(&self, index: usize) -> Option<bool> {
        Some(self.mates.get(&index).is_some_and(|mates| mates.related(self.found, self.bounds)))
    }
}

impl Exec<'_> {
    /// Decides the rows of a batch that depend on related attributes; removes those that fail.
    pub(super) fn relate(&mut self, batch: &mut Batch) -> Result<()> {
        let related = self.related.clone();
        let mut keep = vec![true; batch.found.len()];
        let mut from = 0;
        while let Some(first) = batch.found.get(from) {
            let Some(partition) = batch.partitions.get(first.partition).cloned() else { break };
            let same = |found: &MatchedRow| {
                let of = batch.partitions.get(found.partition);
                of.is_some_and(|of| Rc::ptr_eq(&of.run, &partition.run) || of.run.id == partition.run.id)
            };
            let rest = batch.found.get(from..).unwrap_or_default();
            let to = from + rest.iter().position(|found| !same(found)).unwrap_or(rest.len());
            let open: Vec<&MatchedRow> =
                batch.found.get(from..to).unwrap_or_default().iter().filter(|found| found.open).collect();
            let mut mates = HashMap::new();
            for (index, one) in related.iter().enumerate() {
                let asked = |found: &&MatchedRow| {
                    let partition = batch.partitions.get(found.partition);
                    partition.is_some_and(|partition| {
                        partition.cond.has(&|leaf| matches!(leaf, Leaf::Related(of) if *of == index))
                    })
                };
                let asking: Vec<&MatchedRow> = open.iter().copied().filter(asked).collect();
                if !asking.is_empty() {
                    mates.insert(index, self.mates(&partition.run, one, &asking, batch)?);
                }
            }
            for (found, keep) in batch.found.iter().zip(&mut keep).take(to).skip(from) {
                let Some(partition) = batch.partitions.get(found.partition).filter(|_| found.open) else {
                    continue;
                };
                let cell = partition.cell(found.step, found.variable)?;
                let mut row = RelatedRow { found, bounds: batch.bounds(found), mates: &mates };
                *keep = cell.cond.test(&mut row)? == Some(true);
            }
            from = to;
        }
        let mut keep = keep.into_iter();
        batch.found.retain(|_| keep.next().unwrap_or(false));
        Ok(())
    }

    /// The attributes related to rows of one run.
    fn mates(
        &mut self,
        run: &super::cond::RunAt,
        related: &Related,
        asking: &[&MatchedRow],
        batch: &Batch,
    ) -> Result<Mates> {
        let mut cond = related.cond.clone();
        let steps: BTreeSet<i64> = asking.iter().map(|found| found.step).collect();
        let steps: Steps = steps.into_iter().map(|step| (step, step)).collect();
        if related.place == Where::SameVariable {
            let on: BTreeSet<i64> = asking.iter().map(|found| found.variable).collect();
            cond = cond.and(Cond::Leaf(Leaf::On(on.into_iter().collect())));
        }
        if related.place == Where::Overlapping
            && let Some(hull) = hull(asking, batch)
        {
            cond = cond.and(Cond::Leaf(Leaf::Boxed(Arc::new(hull))));
        }
        let ask = Ask {
            cond: &cond,
            run: Some(run),
            steps: (related.place != Where::SameRun).then_some(&steps),
            boxes: related.place == Where::Overlapping,
            few: (related.place == Where::SameRun).then_some(2),
        };
        let mut mates = Mates { place: related.place, by_place: HashMap::new(), by_box: HashMap::new() };
        self.ask(&ask, &mut mates)?;
        mates.sort();
        Ok(mates)
    }
}

/// The region that holds the boxes of all rows, if they have the same rank.
fn hull(asking: &[&MatchedRow], batch: &Batch) -> Option<BoxTest> {
    let mut sides: Option<Vec<(i64, i64)>> = None;
    for RowRegion { start, count, .. } in asking.iter().filter_map(|found| batch.bounds(found)) {
        let own = start.iter().zip(count).map(|(first, extent)| (*first, first.saturating_add(*extent)));
        match &mut sides {
            None => sides = Some(own.collect()),
            Some(sides) if sides.len() != start.len() => return None,
            Some(sides) => {
                for (side, own) in sides.iter_mut().zip(own) {
                    *side = (side.0.min(own.0), side.1.max(own.1));
                }
            }
        }
    }
    let sides = sides?.into_iter().enumerate().map(|(dim, (from, to))| (dim, Some(from), Some(to)));
    Some(BoxTest { sides: sides.collect(), points: Vec::new(), relation: Relation::Overlaps })
}
