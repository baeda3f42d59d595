//! The executions to run again, their order, and their external inputs.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::{Code, Result};
use fieldstone_graph::dossier::is_execution;
use fieldstone_graph::trace::Lineage;

use super::Command;
use crate::interop::lineage::VertexName;
use crate::interop::lineage::export::names::roots_text;
use crate::interop::lineage::units::{Contact, Unit};

/// The units to run: upstream from the result's writers, but not past a unit without a command.
pub fn chosen(lineage: &Lineage, all: &[Unit], commands: &[Vec<Command<'_>>]) -> Result<BTreeSet<usize>> {
    let root = &lineage.root;
    let mut writers: BTreeMap<&VertexName, Vec<usize>> = BTreeMap::new();
    for (i, unit) in all.iter().enumerate() {
        unit.writes.iter().for_each(|write| writers.entry(&write.data).or_default().push(i));
    }
    let mut open: Vec<usize> = match is_execution(&root.kind) {
        true => (0..all.len()).filter(|i| all[*i].name == *root || all[*i].parts.contains(root)).collect(),
        false => lineage.roots.iter().filter_map(|root| writers.get(root)).flatten().copied().collect(),
    };
    let silent = open.iter().filter(|i| commands[**i].is_empty()).count();
    if silent == open.len() {
        let why = match open.first() {
            Some(i) => format!("no source records the command of {}", all[*i].name),
            None => format!("no execution wrote {}", roots_text(lineage)),
        };
        let hint = "`fieldstone run` and fieldstone.execution record commands";
        return Err(Code::VertexNotFound.error(why).with_hint(hint));
    }
    let mut chosen = BTreeSet::new();
    while let Some(i) = open.pop() {
        if commands[i].is_empty() || !chosen.insert(i) {
            continue;
        }
        let inputs = all[i].reads.iter().chain(&all[i].programs);
        open.extend(inputs.filter_map(|input| writers.get(&input.data)).flatten());
    }
    Ok(chosen)
}

/// The units that wrote data, each with its first write.
pub type Writers<'a> = BTreeMap<&'a VertexName, Vec<(usize, u64)>>;

pub fn writers<'a>(all: &'a [Unit], chosen: &BTreeSet<usize>) -> Writers<'a> {
    let mut writers = Writers::new();
    for i in chosen {
        all[*i]
            .writes
            .iter()
            .for_each(|write| writers.entry(&write.data).or_default().push((*i, write.begin)));
    }
    writers
}

/// The other units that wrote an input before it was read.
fn wrote<'w>(
    writers: &'w Writers<'_>,
    reader: usize,
    input: &Contact,
) -> impl Iterator<Item = usize> + use<'w> {
    let (by, all) = (input.end, writers.get(&input.data).map(Vec::as_slice).unwrap_or_default());
    all.iter().filter(move |(writer, begin)| *writer != reader && *begin <= by).map(|(writer, _)| *writer)
}

/// Units in causal order: writers before their readers; by time if nothing else decides.
pub fn by_cause(all: &[Unit], chosen: &BTreeSet<usize>, writers: &Writers<'_>) -> Vec<usize> {
    let mut needs: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut needed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for reader in chosen {
        let inputs = all[*reader].reads.iter().chain(&all[*reader].programs);
        let before: BTreeSet<usize> = inputs.flat_map(|input| wrote(writers, *reader, input)).collect();
        before.iter().for_each(|writer| needed.entry(*writer).or_default().push(*reader));
        needs.insert(*reader, before);
    }
    let mut ready: BTreeSet<usize> =
        needs.iter().filter(|(_, before)| before.is_empty()).map(|(i, _)| *i).collect();
    let mut order = Vec::new();
    // In a cycle, the one that began first goes first. Units are sorted by their beginning.
    while let Some(next) = ready.pop_first().or_else(|| needs.keys().next().copied()) {
        if needs.remove(&next).is_none() {
            continue;
        }
        order.push(next);
        for reader in needed.get(&next).into_iter().flatten() {
            if let Some(before) = needs.get_mut(reader)
                && before.remove(&next)
                && before.is_empty()
            {
                ready.insert(*reader);
            }
        }
    }
    order
}

/// Inputs that no unit here makes, with the first use of each.
pub fn given<'a>(
    all: &'a [Unit],
    chosen: &BTreeSet<usize>,
    writers: &Writers<'_>,
) -> BTreeMap<&'a VertexName, &'a Contact> {
    let made = |reader: usize, input: &Contact| {
        // A read of its own write is not an input, unless the file was there before, or has another content.
        let own = all[reader].writes.binary_search_by(|write| write.data.cmp(&input.data));
        let own = own.ok().map(|at| &all[reader].writes[at]);
        wrote(writers, reader, input).next().is_some()
            || own.is_some_and(|write| {
                let same =
                    write.checksum.is_none() || input.checksum.is_none() || write.checksum == input.checksum;
                write.replaces && same && write.begin <= input.end
            })
    };
    let mut given: BTreeMap<&VertexName, &Contact> = BTreeMap::new();
    for i in chosen {
        for input in all[*i].reads.iter().chain(&all[*i].programs).filter(|input| !made(*i, input)) {
            let first = given.entry(&input.data).or_insert(input);
            if (input.checksum.is_none(), input.begin) < (first.checksum.is_none(), first.begin) {
                *first = input;
            }
        }
    }
    given
}
