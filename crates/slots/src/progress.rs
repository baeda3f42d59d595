//! Work of a traversal in one slot between its messages: reading ahead, sending, reporting to the client.

use fieldstone_core::Result;
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::walk::WalkNode;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_graph::travel::expand::Moment;

use crate::query::{Pacing, SlotQuery, SlotSide, count};

/// Most relations to read ahead of their step.
const AHEAD_MAX: usize = 1 << 20;
/// Most vertices in one message.
const TOGETHER: usize = 1000;

impl SlotQuery {
    /// Reads the relations of one vertex that waits for the next hop; returns whether there may be more to
    /// read.
    pub fn read_ahead(&mut self, side: &SlotSide<'_>) -> Result<bool> {
        if self.pacing != Pacing::StepsAhead || self.ahead.len() >= AHEAD_MAX {
            return Ok(false);
        }
        let plan = self.expander.plan.clone();
        let body = plan.body() as u32;
        for ((set, round), waiting) in &self.fresh {
            let at = self.ahead_of.entry((*set, *round)).or_default();
            let (hop, round) = match *set {
                0 => (0, u32::from(body > 0)),
                set if body > 0 && set == body => (0, round + 1),
                set => (set, *round),
            };
            let stays = |hop: &u32| plan.hops.get(*hop as usize).is_none_or(|hop| hop.stays);
            let Some((vertex, _)) = waiting.get(*at).copied().filter(|_| !stays(&hop)) else { continue };
            *at += 1;
            if self.ahead.contains_key(&(hop, vertex)) {
                return Ok(true);
            }
            let begun = side.clock.monotonic();
            let edges = self.edges(vertex, hop as usize, side)?;
            self.ahead.insert((hop, vertex), edges);
            let step = self.step(hop, round);
            step.prefetched += 1;
            step.prefetch_time += side.clock.monotonic().saturating_sub(begun);
            return Ok(true);
        }
        Ok(false)
    }

    /// Messages to send, each with the hop and round that count it.
    pub fn outgoing(&mut self, id: QueryId) -> Vec<(Address, (u32, u32), Message)> {
        let mut out = Vec::new();
        for ((to, set, round), reached) in std::mem::take(&mut self.reach) {
            let hop = set.saturating_sub(1);
            for part in reached.chunks(TOGETHER) {
                let reached = part.to_vec();
                out.push((
                    Address::Slot(to),
                    (hop, round),
                    Message::Reach { query: id, set, round, reached },
                ));
            }
        }
        for ((to, hop, round), vertices) in std::mem::take(&mut self.expand) {
            for part in vertices.chunks(TOGETHER) {
                let vertices = part.to_vec();
                out.push((
                    Address::Slot(to),
                    (hop, round),
                    Message::Expand { query: id, hop, round, vertices },
                ));
            }
        }
        let (round, hop) = self.last;
        out.extend(self.others.drain(..).map(|(to, message)| (to, (hop, round), message)));
        out
    }

    /// Counts a frame of the traversal that was sent.
    pub fn was_sent(&mut self, to: Address, (hop, round): (u32, u32), bytes: usize) {
        count(&mut self.sent, to);
        self.reported = false;
        let step = self.step(hop, round);
        step.frames += 1;
        step.bytes += bytes as u64;
    }

    /// A report of the frames sent and received since the last report; `None` if the client knows all of
    /// them.
    pub fn report(&mut self, id: QueryId) -> Option<Message> {
        // After a failure a report could arrive first, and the client would take the partial result for the
        // whole.
        if self.reported || self.failed {
            return None;
        }
        self.reported = true;
        let fresh = self.fresh.values().map(|waiting| waiting.len() as u64).sum();
        Some(Message::Report { query: id, sent: self.sent.clone(), received: self.received.clone(), fresh })
    }

    /// The results of this slot.
    pub fn collect(&self, id: QueryId) -> Message {
        let last = self.expander.plan.hops.len() as u32;
        let asked = |set: u32| self.linked || set == last;
        let nodes = self.nodes.iter().filter(|((set, ..), _)| asked(*set));
        let node = |((set, vertex, moment), round): (&(u32, VertexPlace, Moment), &u32)| WalkNode {
            set: *set,
            round: *round,
            vertex: *vertex,
            moment: *moment,
        };
        let steps = self.steps.values().copied().collect();
        Message::Collected { query: id, nodes: nodes.map(node).collect(), links: self.links.clone(), steps }
    }
}
