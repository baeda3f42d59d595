//! Marks in a picture: the boxes of a grid or a line, and the elements of a mesh, on which attributes with a tag stand.
//!
//! Invariant: boxes are in elements of the picture, half-open, and lie within it; an attribute that stands on the whole
//! field, or on a part that is not drawn, is counted and marks nothing.

use fieldstone::catalog::Query;
use fieldstone::catalog::query::{Expr, NameTest, Term};
use fieldstone::prelude::*;
use fieldstone::{Code, FieldKey, IndexBox, Result, Store};
use serde_json::{Value as Json, json};

/// More marks hide the picture.
const MOST: u64 = 10_000;

/// Boxes and elements to mark.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Marks {
    /// The tag.
    tag: String,
    /// How many attributes were found.
    pub hits: usize,
    /// First and last element, half-open, along each dimension of the picture.
    boxes: Vec<Vec<[u64; 2]>>,
    /// Elements along the picture's one dimension.
    cells: Vec<u64>,
}

impl Marks {
    /// The marks of a tag on a field of which the box `inside` is drawn, along the dimensions `drawn`.
    pub fn find(
        store: &Store,
        key: &FieldKey,
        tag: &str,
        inside: &IndexBox,
        drawn: &[usize],
    ) -> Result<Marks> {
        let schema = store.schema();
        let (Some((project, run)), Some(variable)) = (schema.run_of(key), schema.variable_of(key)) else {
            return Err(Code::CommandLine.error("--tag needs a field of a run"));
        };
        let is = NameTest::Is;
        let mut terms = vec![
            Term::Project(is(project)),
            Term::Run(is(run)),
            Term::Variable(is(variable.into_owned())),
            Term::Tag(is(tag.to_owned())),
        ];
        terms.extend(schema.step_of(key).map(|step| Term::Step(vec![(step, step)])));
        let expr = Expr::All(terms.into_iter().map(Expr::Term).collect());
        let found = store.catalog().attributes(&Query { expr, limit: Some(MOST), ..Query::all() })?;
        let mut marks = Marks { tag: tag.to_owned(), hits: found.value.len(), ..Marks::default() };
        for hit in (0..found.value.len()).filter_map(|row| found.hit(row)) {
            match (hit.cells, hit.region) {
                (Some((dim, cells)), _) if drawn == [dim] => {
                    marks.cells.extend(cells.iter().filter_map(|cell| u64::try_from(*cell).ok()));
                }
                (None, Some((start, count))) => marks.boxes.extend(within(&start, &count, inside, drawn)),
                _ => {}
            }
        }
        Ok(marks)
    }

    /// The keyword of `plot` for them.
    pub fn request(&self) -> Json {
        json!({
            "label": format!("{} ({})", self.tag, self.hits),
            "boxes": self.boxes,
            "cells": self.cells,
        })
    }
}

/// The part of a box that lies in another one, in elements of the latter along the dimensions `drawn`.
fn within(start: &[i64], count: &[i64], inside: &IndexBox, drawn: &[usize]) -> Option<Vec<[u64; 2]>> {
    if start.len() != inside.start().len() {
        return None;
    }
    let ends = start.iter().zip(count).zip(inside.start().iter().zip(inside.count()));
    let ends = ends.map(|((start, count), (from, extent))| {
        let (start, stop) = (u64::try_from(*start).ok()?, u64::try_from(start.checked_add(*count)?).ok()?);
        let (first, last) = (start.max(*from), stop.min(from.checked_add(*extent)?));
        (first < last).then(|| [first - from, last - from])
    });
    let ends = ends.collect::<Option<Vec<_>>>()?;
    drawn.iter().map(|dim| ends.get(*dim).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_cut_to_the_part_that_is_drawn() {
        let inside = IndexBox::new(vec![1, 10, 0], vec![1, 5, 8], &[4, 20, 8]).unwrap();
        let cut = |start: &[i64], count: &[i64]| within(start, count, &inside, &[1, 2]);
        assert_eq!(cut(&[0, 8, 3], &[4, 4, 2]), Some(vec![[0, 2], [3, 5]]));
        assert_eq!(cut(&[2, 8, 3], &[1, 4, 2]), None, "another level");
        assert_eq!(cut(&[1, 15, 3], &[1, 4, 2]), None, "beside it");
        assert_eq!(cut(&[10, 3], &[1, 1]), None, "of another variable");
        assert_eq!(within(&[1, 12, 0], &[1, 1, 8], &inside, &[2]), Some(vec![[0, 8]]));
    }
}
