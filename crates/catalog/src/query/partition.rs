//! One run and one tag, with the condition on their rows. The condition for each step and variable is
//! computed on its first use and kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;

use super::bounds::{Steps, Values};
use super::cond::{Cond, KnownRow, RunAt, Series, TagAt};
use super::region::shape_of;
use super::variable_at::VariableAt;
use crate::engine::{NO_STEP, NO_VARIABLE, Span, VariableId};

/// Variables of a run, by number.
pub(super) type VariableMap = HashMap<VariableId, Arc<VariableAt>>;

/// One run and one tag.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) run: Rc<RunAt>,
    pub(super) tag: Rc<TagAt>,
    pub(super) span: Span,
    /// The undecided part of the condition, without the steps.
    pub(super) cond: Cond,
    pub(super) steps: Steps,
    pub(super) values: Values,
    /// Every name of a variable.
    pub(super) names: Rc<VariableMap>,
    /// The run's declarations of its variables, if the condition needs them.
    pub(super) own: Option<Rc<VariableMap>>,
    pub(super) times: Option<Rc<HashMap<i64, f64>>>,
    /// Whether the condition depends on the step in more ways than `steps` says.
    pub(super) by_step: bool,
    pub(super) cells: RefCell<HashMap<(i64, VariableId), Rc<CellCondition>>>,
}

/// A place of rows: one step and variable, or all steps of a variable.
#[derive(Debug)]
pub(super) struct CellCondition {
    pub(super) cond: Cond,
    pub(super) variable: Option<Arc<VariableAt>>,
    /// Start and count of the whole variable.
    pub(super) whole: Option<(Vec<i64>, Vec<i64>)>,
}

impl Partition {
    /// Numbers of run and tag.
    pub(super) fn key(&self) -> (i64, i64) {
        (self.run.id, self.tag.id)
    }

    /// A variable, with the run's declaration if the condition needs it.
    pub(super) fn variable(&self, id: VariableId) -> Option<&Arc<VariableAt>> {
        let own = self.own.as_ref().and_then(|own| own.get(&id));
        own.or_else(|| self.names.get(&id).filter(|_| id != NO_VARIABLE))
    }

    /// The condition on rows at this step and variable.
    pub(super) fn cell(&self, step: i64, variable: VariableId) -> Result<Rc<CellCondition>> {
        let key = (if self.by_step { step } else { NO_STEP }, variable);
        if let Some(cell) = self.cells.borrow().get(&key) {
            return Ok(cell.clone());
        }
        let at = self.variable(variable).cloned();
        let place = Series {
            step: (step != NO_STEP).then_some(step),
            time: self.times.as_ref().and_then(|times| times.get(&step).copied()),
            variable: at.as_deref(),
        };
        let known = KnownRow { run: Some(&self.run), tag: Some(&self.tag), place: Some(place) };
        let cond = self.cond.known(&known)?;
        let whole = shape_of(at.as_deref()).map(|shape| (vec![0; shape.len()], shape));
        let cell = Rc::new(CellCondition { cond, variable: at, whole });
        let mut cells = self.cells.borrow_mut();
        if cells.len() > 100_000 {
            cells.clear(); // bounds the memory for any number of steps
        }
        cells.insert(key, cell.clone());
        Ok(cell)
    }
}
