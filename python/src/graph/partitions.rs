//! The partition of the view into slots, for `Partitions` in Python.

use fieldstone::graph::{Engine, PartitionScheme, Partitioning, Partitions, SlotContent, SlotLabels};
use pyo3::prelude::*;

use super::PyGraph;
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;

/// Slots, partitioner, threshold, labels; of each slot segments, vertices, relations, bytes; splits, unfinished
/// splits.
type PartitionsRow = ((u16, &'static str, u32, &'static str), Vec<(u64, u64, u64, u64)>, u64, u64);

fn row(partitions: &Partitions) -> PartitionsRow {
    let Partitioning { slots, scheme, threshold, labels } = partitions.partitioning;
    let slot = |slot: &SlotContent| (slot.segments, slot.vertices, slot.relations, slot.bytes);
    let contents = partitions.slots.iter().map(slot).collect();
    ((slots, scheme.name(), threshold, labels.name()), contents, partitions.splits, partitions.unfinished)
}

fn one_of<T: Copy>(all: &[T], name: fn(T) -> &'static str, given: &str, what: &str) -> PyResult<T> {
    all.iter().copied().find(|known| name(*known) == given).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|known| name(*known)).collect();
        invalid(format!("{given:?} is not a valid {what}"), &format!("use one of: {}", names.join(", ")))
    })
}

/// The engine with this name.
pub fn engine(given: &str) -> PyResult<Engine> {
    one_of(&Engine::ALL, Engine::name, given, "engine")
}

/// Partitions the view into slots in another way.
#[pyfunction]
#[pyo3(name = "_partition_graph")]
pub fn partition(
    py: Python<'_>,
    graph: &Bound<'_, PyGraph>,
    slots: u16,
    partitioner: &str,
    threshold: u32,
    labels: &str,
) -> PyResult<PartitionsRow> {
    let scheme = one_of(&PartitionScheme::ALL, PartitionScheme::name, partitioner, "partitioner")?;
    let labels = one_of(&SlotLabels::ALL, SlotLabels::name, labels, "kind of labels")?;
    let graph = graph.get().open()?;
    let partitioning = Partitioning { slots, scheme, threshold, labels };
    py.waiting(|| graph.partition(partitioning)).or_raise().map(|partitions| row(&partitions))
}

/// The partition of the view into slots, and the contents of each slot.
#[pyfunction]
#[pyo3(name = "_graph_partitions")]
pub fn partitions_of(py: Python<'_>, graph: &Bound<'_, PyGraph>) -> PyResult<PartitionsRow> {
    let graph = graph.get().open()?;
    py.waiting(|| graph.partitions()).or_raise().map(|partitions| row(&partitions))
}
