//! Updates ghosts with the values of their owners.
//!
//! The edges show which ranks need a rank's nodes: the rank at the other end has every node at this end as a ghost.
//! So a plan needs no message, and both sides have the nodes in the same order.

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};

use super::{FEWEST, Partition};
use crate::distributed::buffer::BufferMut;

const STEP: &str = "update";

/// The nodes whose values go to each rank, by index in memory.
#[derive(Debug)]
pub(super) struct UpdatePlan {
    /// For each rank, the own nodes that are its ghosts, ascending.
    sent: Vec<Vec<u32>>,
    /// For each rank, the ghosts that it owns, ascending.
    received: Vec<Vec<u32>>,
}

impl UpdatePlan {
    fn new(part: &Partition) -> UpdatePlan {
        let owned = part.owned as u32;
        let mut sent = vec![Vec::new(); part.key.ranks as usize];
        let mut received = sent.clone();
        for (ghost, rank) in (owned..).zip(&part.ghost_ranks) {
            received[*rank as usize].push(ghost);
        }
        let rank_of = |end: u32| part.ghost_ranks[(end - owned) as usize];
        let crossing = part.ends.iter().filter_map(|ends| match ends.map(|end| end < owned) {
            [true, false] => Some((rank_of(ends[1]), ends[0])),
            [false, true] => Some((rank_of(ends[0]), ends[1])),
            _ => None,
        });
        let mut needed: Vec<u64> =
            crossing.map(|(rank, node)| u64::from(rank) << 32 | u64::from(node)).collect();
        needed.sort_unstable();
        needed.dedup();
        for pair in needed {
            sent[(pair >> 32) as usize].push(pair as u32);
        }
        UpdatePlan { sent, received }
    }
}

impl Partition {
    /// Collective: gives ghosts their owners' values. Each buffer is an array at the nodes, whose first dimension is
    /// that of [`nodes`](Partition::nodes); all ranks pass the same number of arrays with the same element sizes.
    /// `buffer` limits the bytes of a round, and is equal on all ranks.
    ///
    /// Errors: `Invalid` for an array of another length; `Conflict` if ranks pass arrays of other sizes.
    pub fn update(&self, team: &Team, arrays: &mut [BufferMut<'_>], buffer: u64) -> Result<()> {
        let plan = self.plan.get_or_init(|| UpdatePlan::new(self));
        let units: Result<Vec<usize>> = arrays.iter().map(|array| self.unit(array)).collect();
        let node_bytes = units.as_ref().map_err(Error::replicate).map(|units| {
            let size = |(unit, array): (&usize, &BufferMut<'_>)| unit * array.element().size();
            units.iter().zip(arrays.iter()).map(size).sum::<usize>() as u64
        });
        let most = plan.sent.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let heads = node_bytes.map(|bytes| {
            // Ranks without nodes contribute nothing.
            let bytes = if self.nodes.is_empty() { [0, 0] } else { [bytes, u64::MAX - bytes] };
            vec![bytes[0], bytes[1], most, buffer, !buffer]
        });
        let agreed = team.max(STEP, heads)?;
        let units = units?;
        let bytes = agreed[0];
        if agreed[1] != u64::MAX - bytes && agreed[1] != 0 || agreed[3] != !agreed[4] {
            return Err(Code::CollectiveMismatch
                .error(format!(
                    "ranks update arrays of {} and of {bytes} bytes for each node, with buffers of {} and \
                     of {} bytes",
                    u64::MAX - agreed[1],
                    !agreed[4],
                    agreed[3]
                ))
                .with_hint("pass the same arrays on all ranks"));
        }
        let each = (buffer / bytes.max(1) / team.size() as u64).max(FEWEST / team.size() as u64).max(1);
        let mut outcome = Ok(());
        for round in 0..agreed[2].div_ceil(each) {
            let of = |list: &Vec<u32>| {
                let end = list.len() as u64;
                let (from, to) = ((round * each).min(end), (round + 1).saturating_mul(each).min(end));
                from as usize..to as usize
            };
            let parts = plan.sent.iter().map(|list| gather(arrays, &units, &list[of(list)])).collect();
            let mut came = team.alltoallv(STEP, outcome.map(|()| parts))?;
            let scatter =
                |(part, list): (&mut Vec<u8>, &Vec<u32>)| scatter(arrays, &units, &list[of(list)], part);
            outcome = came.iter_mut().zip(&plan.received).try_for_each(scatter);
        }
        team.agree(STEP, outcome)
    }

    /// Number of elements of an array at each node.
    fn unit(&self, array: &BufferMut<'_>) -> Result<usize> {
        let (elements, nodes) = (array.elements(), self.nodes.len() as u64);
        match elements.checked_rem(nodes) {
            Some(0) => Ok((elements / nodes) as usize),
            None if elements == 0 => Ok(0),
            _ => Err(Code::ShapeMismatch
                .error(format!("an array of {elements} elements does not fit {nodes} nodes"))
                .with_hint("include the ghosts: its first dimension is that of `nodes`")),
        }
    }
}

fn positions(nodes: &[u32], unit: usize) -> Vec<u64> {
    nodes.iter().map(|node| u64::from(*node) * unit as u64).collect()
}

fn gather(arrays: &[BufferMut<'_>], units: &[usize], nodes: &[u32]) -> Vec<u8> {
    let mut part = Vec::new();
    for (array, unit) in arrays.iter().zip(units) {
        let from = part.len();
        part.resize(from + nodes.len() * unit * array.element().size(), 0);
        if *unit > 0 {
            array.as_buffer().gather(&positions(nodes, *unit), *unit, &mut part[from..]);
        }
    }
    part
}

fn scatter(arrays: &mut [BufferMut<'_>], units: &[usize], nodes: &[u32], mut part: &mut [u8]) -> Result<()> {
    for (array, unit) in arrays.iter_mut().zip(units) {
        let length = nodes.len() * unit * array.element().size();
        let (own, rest) = part
            .split_at_mut_checked(length)
            .ok_or_else(|| Error::internal("another rank sent too few values of ghosts"))?;
        if *unit > 0 {
            array.scatter(&positions(nodes, *unit), *unit, own);
        }
        part = rest;
    }
    Ok(())
}
