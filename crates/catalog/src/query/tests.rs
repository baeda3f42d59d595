//! Walk, lookup and planner over tables of two runs and two tags, which count how often they are read.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::ops::RangeInclusive;

use fieldstone_core::value::ValueType;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{AttributeId, RunDecl, RunName, TagDecl, VariableName};

use super::Scope;
use super::bounds::ALL_STEPS;
use super::cond::{Cond, Leaf};
use super::lookup::Lookup;
use super::plan::{Piece, Plan, Planner, merge};
use super::walk::{Ask, Walk};
use crate::engine::{
    AttrRow, CoordinateRange, Flow, GridRegion, MeshRegion, NO_STEP, Probe, RunId, RunRow, RunSelect, Series,
    Span, StepRow, Tables, TagId, TagRow, VariableId, VariableRow, WriterRow,
};

/// Two runs, each with steps 0 to 9 of two tags; `n` rows of each.
#[derive(Default)]
struct Few {
    n: u64,
    reads_of_tags: usize,
    reads_of_steps: usize,
}

impl Few {
    fn span(&self, tag: TagId, run: RunId) -> Span {
        Span { tag, run, n: self.n, numbers: Some((0.0, 1.0)), steps: (0, 9) }
    }
}

impl Tables for Few {
    fn mesh_regions(
        &mut self,
        _: RunId,
        _: &[CoordinateRange],
    ) -> Result<Vec<(Vec<VariableName>, MeshRegion)>> {
        Ok(Vec::new())
    }
    fn grid_regions(
        &mut self,
        _: RunId,
        _: &[VariableRow],
        _: &[bool],
        _: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>> {
        Ok(Vec::new())
    }
    fn runs(&mut self, _: &RunSelect) -> Result<Vec<RunRow>> {
        let run = |id, name: &str| {
            let decl = RunDecl::named(RunName { project: String::new(), name: name.to_owned() });
            RunRow { id, decl, declared: false, first: None }
        };
        Ok(vec![run(1, "b"), run(2, "a")])
    }
    fn run_names(&mut self, row: &mut dyn FnMut(RunId, &RunName) -> Result<Flow>) -> Result<()> {
        for run in self.runs(&RunSelect::All)? {
            row(run.id, &run.decl.run)?;
        }
        Ok(())
    }
    fn steps(&mut self, run: RunId, steps: RangeInclusive<i64>) -> Result<Vec<StepRow>> {
        self.reads_of_steps += 1;
        let all = (0..10).filter(|step| steps.contains(step));
        Ok(all.map(|step| StepRow { run, step, time: Some(step as f64 / 2.0) }).collect())
    }
    fn variables(&mut self, _: RunId) -> Result<Vec<VariableRow>> {
        Ok(Vec::new())
    }
    fn variable_names(&mut self) -> Result<Vec<(VariableId, VariableName)>> {
        Ok(Vec::new())
    }
    fn held(&mut self, _: RunId, _: VariableId) -> Result<Vec<i64>> {
        Ok(Vec::new())
    }
    fn tags(&mut self) -> Result<Vec<TagRow>> {
        self.reads_of_tags += 1;
        let tag = |id, name: &str| {
            let decl =
                TagDecl { name: name.to_owned(), version: 0, kind: ValueType::Float, unit: String::new() };
            TagRow { id, decl, version: 0 }
        };
        Ok(vec![tag(7, "wet"), tag(8, "hot")])
    }
    fn spans(&mut self, tag: TagId, run: Option<RunId>) -> Result<Vec<Span>> {
        Ok([1, 2]
            .into_iter()
            .filter(|id| run.is_none_or(|run| run == *id))
            .map(|run| self.span(tag, run))
            .collect())
    }
    fn spans_of_run(&mut self, run: RunId) -> Result<Vec<Span>> {
        Ok(vec![self.span(7, run), self.span(8, run)])
    }
    fn series(&mut self, run: RunId, tag: TagId, steps: RangeInclusive<i64>) -> Result<Vec<Series>> {
        let all = (0..10).filter(|step| steps.contains(step));
        let of = |step| Series {
            run,
            tag,
            step,
            variable: 1,
            n: self.n / 10,
            numbers: Some((0.0, 1.0)),
            levels: 0,
            extent: 0,
        };
        Ok(all.map(of).collect())
    }
    fn scan(&mut self, _: &[Probe], _: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64> {
        Ok(0)
    }
    fn source(&mut self, _: i64) -> Result<(AttributeId, u32)> {
        Err(Error::internal("no batches"))
    }
    fn writers(&mut self) -> Result<Vec<WriterRow>> {
        Ok(Vec::new())
    }
    fn batches_of(&mut self, _: &[i64]) -> Result<Vec<(i64, i64)>> {
        Ok(Vec::new())
    }
}

fn ask(cond: &Cond) -> Ask<'_> {
    Ask { cond, run: None, steps: None, boxes: false, few: None }
}

/// Names of runs and tags that a walk visits.
fn walked(tables: &mut Few, cond: &Cond) -> Vec<(String, String)> {
    let mut lookup = Lookup::new(tables, cond, &[]);
    let mut walk = Walk::of(&mut lookup, ask(cond)).unwrap();
    let mut found = Vec::new();
    while let Some(partition) = walk.next(&mut lookup).unwrap() {
        found.push((partition.run.name.to_string(), partition.tag.name.to_string()));
    }
    assert_eq!(lookup.stats.partitions, found.len() as u64);
    found
}

#[test]
fn a_walk_goes_by_names_and_passes_over_what_cannot_match() {
    let pair = |run: &str, tag: &str| (run.to_owned(), tag.to_owned());
    let mut few = Few { n: 20, ..Few::default() };
    let all = [pair("a", "hot"), pair("a", "wet"), pair("b", "hot"), pair("b", "wet")];
    assert_eq!(walked(&mut few, &Cond::Const(true)), all);
    assert!(walked(&mut few, &Cond::Leaf(Leaf::Step([(10, 20)].into()))).is_empty());
    assert!(walked(&mut Few::default(), &Cond::Const(true)).is_empty(), "no rows");
    // Rows without a step are outside of all spans.
    assert!(walked(&mut few, &Cond::Leaf(Leaf::Scope(Scope::Run))).is_empty());
}

#[test]
fn lookups_read_once() {
    let mut few = Few { n: 20, ..Few::default() };
    let cond = Cond::Const(true);
    let mut lookup = Lookup::new(&mut few, &cond, &[]);
    let first = lookup.tags().unwrap();
    assert_eq!(first.iter().map(|tag| &*tag.name).collect::<Vec<_>>(), ["hot", "wet"]);
    lookup.tags().unwrap();
    assert_eq!(lookup.times_at(1, &[3, NO_STEP]).unwrap().len(), 1);
    assert_eq!(lookup.times(1).unwrap().get(&4), Some(&2.0));
    assert_eq!(lookup.times_at(1, &[3]).unwrap().len(), 10, "those of all are known");
    drop(lookup);
    assert_eq!((few.reads_of_tags, few.reads_of_steps), (1, 2));
}

#[test]
fn plans_say_what_they_read() {
    let plans = |n: u64, cond: &Cond| {
        let mut few = Few { n, ..Few::default() };
        let mut lookup = Lookup::new(&mut few, cond, &[]);
        let partition = Walk::of(&mut lookup, ask(cond)).unwrap().next(&mut lookup).unwrap().unwrap();
        let mut planner = Planner::default();
        planner.notes = Some(Vec::new());
        let plan = planner.plan(&mut lookup, &partition, false).unwrap();
        (plan, planner.notes.unwrap(), partition)
    };
    let (plan, notes, _) = plans(20, &Cond::Const(true));
    assert!(matches!(plan, Plan::Direct { expected: 20, guessed: false, .. }), "few rows are read whole");
    assert!(notes.is_empty());
    let (plan, notes, partition) = plans(100, &Cond::Leaf(Leaf::Step([(2, 4)].into())));
    let Plan::Series(pieces) = plan else { panic!("{plan:?}") };
    assert_eq!(notes, ["run 'a', tag 'hot': 3 series in 3 ranges, about 30 of 100 rows"]);
    assert!(pieces.iter().all(|piece| piece.all == Some(10)));
    // Adjacent steps become one range.
    let joined = merge(&partition, pieces);
    let [Piece { probes, expected: 30, .. }] = &joined[..] else { panic!("{joined:?}") };
    let [Probe::Key { steps, variable: None, .. }] = &probes[..] else { panic!("{probes:?}") };
    assert_eq!(*steps, 2..=4);
    assert!(*steps.start() > ALL_STEPS.0);
}
