//! Targets of attributes: the run, a step, a variable, a box of it; for one attribute, or in columns for many.

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{Boxes, Column, KeywordColumn, VariableName};

/// The target of attributes. Without a variable it is the step; without a step, the run; without a box, the whole
/// variable.
///
/// Each part is one value for all rows, or a column with one per row; all columns have equal lengths.
///
/// ```
/// use fieldstone::Target;
/// let one = Target::variable("temperature").step(6).within(&[75, 60, 200], &[6, 21, 26]);
/// let many = Target::variable("temperature").steps(vec![0, 6, 12]);
/// assert_eq!((one.rows()?, many.rows()?), (None, Some(3)));
/// # Ok::<(), fieldstone::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    pub(super) step: Option<Column<i64>>,
    pub(super) variables: Vec<VariableName>,
    pub(super) variable: Option<Column<u32>>,
    pub(super) boxes: Option<Boxes>,
    /// Number of rows of boxes or cells, if they are a column.
    box_rows: Option<usize>,
    /// Cells of the variables, a set for all rows or one per row; they become boxes once the variables' shapes are
    /// known.
    pub(super) cells: Option<Vec<Arc<[i64]>>>,
    /// Further keywords of the field.
    pub(super) keywords: Vec<KeywordColumn>,
}

/// In ascending order; duplicates stay, so that the check finds them.
fn sorted(cells: impl IntoIterator<Item = i64>) -> Arc<[i64]> {
    let mut cells: Vec<i64> = cells.into_iter().collect();
    cells.sort_unstable();
    cells.into()
}

impl Target {
    /// The run itself.
    pub fn run() -> Target {
        Target::default()
    }

    /// A variable, of version 0.
    pub fn variable(name: &str) -> Target {
        Target::variables(vec![VariableName { name: name.to_owned(), version: 0 }], None)
    }

    /// Variables: the only one, or for each row the one at an index from `of_row`.
    pub fn variables(names: Vec<VariableName>, of_row: Option<Vec<u32>>) -> Target {
        let variable = of_row.map_or(Column::One(0), Column::Each);
        Target { variables: names, variable: Some(variable), ..Target::default() }
    }

    /// Of this version of the variables.
    pub fn version(mut self, version: i64) -> Target {
        self.variables.iter_mut().for_each(|name| name.version = version);
        self
    }

    /// At a step.
    pub fn step(mut self, step: i64) -> Target {
        self.step = Some(Column::One(step));
        self
    }

    /// At steps, one per row.
    pub fn steps(mut self, steps: Vec<i64>) -> Target {
        self.step = Some(Column::Each(steps));
        self
    }

    /// In a box, half-open, in elements.
    pub fn within(mut self, start: &[i64], count: &[i64]) -> Target {
        self.boxes =
            Some(Boxes { rank: start.len(), start: start.to_vec(), count: count.to_vec(), cells: None });
        (self.box_rows, self.cells) = (None, None);
        self
    }

    /// In boxes, one per row: each has `rank` numbers of `start` and of `count`.
    pub fn within_each(mut self, rank: usize, start: Vec<i64>, count: Vec<i64>) -> Target {
        self.box_rows = Some(start.len().checked_div(rank).unwrap_or(0));
        self.boxes = Some(Boxes { rank, start, count, cells: None });
        self.cells = None;
        self
    }

    /// On a set of cells: indices along the dimension of the variable's mesh, or along its first one if it has no mesh;
    /// in any order, each once. Other dimensions are covered entirely. The variable's shape must be known.
    ///
    /// ```
    /// use fieldstone::Target;
    /// let shock = Target::variable("p").step(6).on_cells([17, 4, 5]);
    /// ```
    pub fn on_cells(mut self, cells: impl IntoIterator<Item = i64>) -> Target {
        self.cells = Some(vec![sorted(cells)]);
        (self.boxes, self.box_rows) = (None, None);
        self
    }

    /// On sets of cells, one per row; see [`on_cells`](Self::on_cells).
    pub fn on_cells_each<C: IntoIterator<Item = i64>>(mut self, sets: impl IntoIterator<Item = C>) -> Target {
        let sets: Vec<Arc<[i64]>> = sets.into_iter().map(sorted).collect();
        self.box_rows = Some(sets.len());
        (self.boxes, self.cells) = (None, Some(sets));
        self
    }

    /// With a further keyword of the schema, such as the member of an ensemble, that is part of the field's key.
    ///
    /// ```
    /// use fieldstone::Target;
    /// let storm = Target::variable("t").step(6).keyword("number", "3");
    /// ```
    pub fn keyword(self, keyword: &str, value: &str) -> Target {
        self.with_keyword(keyword, vec![value.into()])
    }

    /// With a further keyword, one value per row; empty if a row lacks the keyword.
    pub fn keyword_each<T: AsRef<str>>(self, keyword: &str, values: impl IntoIterator<Item = T>) -> Target {
        self.with_keyword(keyword, values.into_iter().map(|value| value.as_ref().into()).collect())
    }

    fn with_keyword(mut self, keyword: &str, values: Vec<Arc<str>>) -> Target {
        self.keywords.retain(|column| *column.keyword != *keyword);
        self.keywords.push(KeywordColumn { keyword: keyword.into(), values });
        self
    }

    /// Numbers of rows of the columns, by the name of the part.
    fn columns(&self) -> Vec<(&str, Option<usize>)> {
        fn each<T>(column: Option<&Column<T>>) -> Option<usize> {
            match column {
                Some(Column::Each(cells)) => Some(cells.len()),
                _ => None,
            }
        }
        let keywords = self.keywords.iter().map(|column| match column.values.len() {
            1 => (&*column.keyword, None),
            rows => (&*column.keyword, Some(rows)),
        });
        let parts = [
            ("step", each(self.step.as_ref())),
            ("variable", each(self.variable.as_ref())),
            (if self.cells.is_some() { "cells" } else { "start" }, self.box_rows),
        ];
        parts.into_iter().chain(keywords).collect()
    }

    /// The number of rows that its columns agree on; `None` if no part is a column.
    pub fn rows(&self) -> Result<Option<usize>> {
        self.rows_with(None)
    }

    /// The same with a column of `values` values.
    pub(super) fn rows_with(&self, values: Option<usize>) -> Result<Option<usize>> {
        let mut first: Option<(&str, usize)> = None;
        for (name, rows) in [("values", values)].into_iter().chain(self.columns()) {
            match (first, rows) {
                (Some((other, n)), Some(rows)) if n != rows => {
                    return Err(Error::invalid(format!("{other} has {n} rows and {name} has {rows}"))
                        .with_hint("give columns of equal length, or one value for all rows"));
                }
                (None, Some(rows)) => first = Some((name, rows)),
                _ => {}
            }
        }
        Ok(first.map(|(_, rows)| rows))
    }

    /// Refuses columns for a single attribute.
    pub(super) fn check_single(&self) -> Result<()> {
        match self.columns().into_iter().find(|(_, rows)| rows.is_some()) {
            Some((name, _)) => Err(Error::invalid(format!("{name} is a column"))
                .with_hint("annotate takes one attribute; annotate_many takes columns")),
            None => Ok(()),
        }
    }
}
