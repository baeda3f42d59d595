//! A hit as the query found it, borrowed by the receiver.

use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_format::catalog::AttributeId;

use super::{Hit, RowKeywords};

/// A found attribute, borrowed by the receiver of hits. Equal names of one run, variable or tag share one
/// `Arc` in a query.
#[derive(Debug)]
pub struct HitRef<'a> {
    /// The project; empty for none.
    pub project: &'a Arc<str>,
    /// The run.
    pub run: &'a Arc<str>,
    /// The step.
    pub step: Option<i64>,
    /// Time of the step.
    pub time: Option<f64>,
    /// The variable.
    pub variable: Option<&'a Arc<str>>,
    /// Its version.
    pub variable_version: i64,
    /// The tag.
    pub tag: &'a Arc<str>,
    /// Its version, as it is shown.
    pub tag_version: i64,
    /// Its unit.
    pub unit: &'a Arc<str>,
    /// The value.
    pub value: Value,
    /// Its own box: start and count; `None` for the whole variable, step or run.
    pub region: Option<(&'a [i64], &'a [i64])>,
    /// Its cells, if the box does not hold all of its elements: a dimension, and indices along it, ascending.
    pub cells: Option<(usize, &'a Arc<[i64]>)>,
    /// Further keywords of the field key that it leads to.
    pub keywords: Option<&'a RowKeywords>,
    /// The user who wrote it.
    pub user: u32,
    /// Which attribute it is.
    pub id: AttributeId,
}

impl HitRef<'_> {
    /// An owned copy.
    pub fn to_hit(self) -> Hit {
        Hit {
            project: self.project.clone(),
            run: self.run.clone(),
            step: self.step,
            time: self.time,
            variable: self.variable.cloned(),
            variable_version: self.variable_version,
            tag: self.tag.clone(),
            tag_version: self.tag_version,
            unit: self.unit.clone(),
            value: self.value,
            region: self.region.map(|(start, count)| (start.to_vec(), count.to_vec())),
            cells: self.cells.map(|(dim, cells)| (dim, cells.clone())),
            keywords: self.keywords.cloned(),
            user: self.user,
            id: self.id,
        }
    }
}

impl Hit {
    /// A borrowed copy, with this value.
    pub(super) fn with_value(&self, value: Value) -> HitRef<'_> {
        HitRef {
            project: &self.project,
            run: &self.run,
            step: self.step,
            time: self.time,
            variable: self.variable.as_ref(),
            variable_version: self.variable_version,
            tag: &self.tag,
            tag_version: self.tag_version,
            unit: &self.unit,
            value,
            region: self.region.as_ref().map(|(start, count)| (start.as_slice(), count.as_slice())),
            cells: self.cells.as_ref().map(|(dim, cells)| (*dim, cells)),
            keywords: self.keywords.as_ref(),
            user: self.user,
            id: self.id,
        }
    }
}
