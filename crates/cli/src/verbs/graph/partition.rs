//! `fieldstone graph partition`: how the view of the graph is cut into slots.

use clap::Args;
use fieldstone::graph::{PartitionScheme, Partitioning, Partitions, SlotLabels, THRESHOLD};
use fieldstone::json;

use crate::graph::Graphed;
use crate::output::{Done, Out, count};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph partition store
  fieldstone graph partition store --slots 8
  fieldstone graph partition store --slots 32 --partitioner giga+ --threshold 256

With --slots it rebuilds the graph's index from the logs in this number of slots and writes it to disk; answers stay the
same. Without --slots it prints the current partitioning. A slot is a thread with its own folder; the slots walk
traversals together.

With --json: partitioner, threshold, labels, splits, unfinished, and slots with segments, vertices, relations, bytes.";

/// Cut the view of the graph into slots, or say how it is cut
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// How many slots
    #[arg(long, value_name = "COUNT")]
    slots: Option<u16>,
    /// The placement of a vertex's relations
    #[arg(long, default_value = "dido", requires = "slots",
        value_parser = clap::builder::PossibleValuesParser::new(PartitionScheme::ALL.map(PartitionScheme::name)))]
    partitioner: String,
    /// Relations of a partition, above which it splits
    #[arg(long, value_name = "COUNT", default_value_t = THRESHOLD, requires = "slots")]
    threshold: u32,
    /// How DIDO's slots are numbered
    #[arg(long, default_value = "low", requires = "slots",
        value_parser = clap::builder::PossibleValuesParser::new(SlotLabels::ALL.map(SlotLabels::name)))]
    labels: String,
}

/// Cuts it, or says how it is cut.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let partitions = match arguments.slots {
        None => store.graph().partitions()?,
        Some(slots) => {
            let scheme = PartitionScheme::ALL.into_iter().find(|known| known.name() == arguments.partitioner);
            let labels = SlotLabels::ALL.into_iter().find(|known| known.name() == arguments.labels);
            let (scheme, labels) = (scheme.unwrap_or_default(), labels.unwrap_or_default());
            store.graph().partition(Partitioning { slots, scheme, threshold: arguments.threshold, labels })?
        }
    };
    store.close()?;
    show(&partitions, out)
}

fn show(partitions: &Partitions, out: &mut Out) -> Done {
    let Partitioning { slots, scheme, threshold, .. } = partitions.partitioning;
    if out.json() {
        return out.document(&json::graph::partitions(partitions));
    }
    let splits = count(partitions.splits, "split");
    out.line(format_args!(
        "{} by {}, threshold {threshold}: {splits}",
        count(slots.into(), "slot"),
        scheme.name()
    ))?;
    let numbers = ["slot", "segments", "vertices", "relations", "bytes"];
    let mut table = Table::new(numbers.map(|name| Column::number(name).rank(5)));
    for (number, slot) in partitions.slots.iter().enumerate() {
        let counts = [number as u64, slot.segments, slot.vertices, slot.relations, slot.bytes];
        table.row(counts.iter().map(u64::to_string).collect(), out)?;
    }
    table.finish(out)
}
