//! Traversals of a slot: each handles its messages; the slot sends their output together.

use fieldstone_core::{Error, Result};
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::plan::WalkPlan;
use fieldstone_format::graph_message::rows::PlacedRows;
use fieldstone_graph::segment::{Rows, build};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::travel::plan::TravelPlan;

use crate::delivery::Outgoing;
use crate::query::{Pacing, SlotQuery, SlotSide};
use crate::server::{SlotServer, query_of, unexpected};

impl SlotServer {
    /// Begins a traversal, which sees the slot's present content.
    pub(crate) fn begin(
        &mut self,
        from: Address,
        query: QueryId,
        engine: u8,
        plan: WalkPlan,
        own: &PlacedRows,
    ) -> Result<()> {
        let pacing = match engine {
            0 => Pacing::StepsAhead,
            1 => Pacing::Steps,
            2 => Pacing::Free,
            _ => return Err(Error::corrupt("an engine has an unknown number")),
        };
        let content = self.shelf.content().clone();
        let mut segments = content.segments;
        let mut rows = Rows::default();
        rows.add_placed(own)?;
        if !rows.is_empty() {
            segments.push(build(&rows)?.into());
        }
        let (linked, plan) = (plan.linked, TravelPlan::of_message(plan)?);
        let ends = (from, usize::from(self.partitioner.slots()));
        let begun = SlotQuery::new(ends, pacing, plan, linked, GraphState::of(segments), content.splits);
        self.queries.insert(query, begun);
        Ok(())
    }

    /// Handles a message of a traversal; ignores it if the traversal has ended.
    pub(crate) fn walk(&mut self, from: Address, message: Message, out: &mut Outgoing) -> Result<()> {
        let Some(id) = query_of(&message) else { return Err(unexpected(&message)) };
        let Some(mut query) = self.queries.remove(&id) else { return Ok(()) };
        let outcome = if matches!(message, Message::Collect { .. }) {
            let collected = query.collect(id);
            self.say(from, collected, out);
            Ok(())
        } else {
            query.take(from, message, id, &self.side())
        };
        self.queries.insert(id, query);
        outcome
    }

    fn side(&self) -> SlotSide<'_> {
        SlotSide {
            number: self.number,
            partitioner: &*self.partitioner,
            clock: &*self.clock,
            delay: self.delay,
        }
    }

    /// Sends the output of traversals.
    pub(crate) fn flush(&mut self, out: &mut Outgoing) {
        let ids: Vec<QueryId> = self.queries.keys().copied().collect();
        for id in ids {
            let Some(mut query) = self.queries.remove(&id) else { continue };
            for (to, step, message) in query.outgoing(id) {
                self.say(to, message, out);
                let bytes = out.last().map_or(0, |(_, frame)| frame.len());
                query.was_sent(to, step, bytes);
            }
            self.queries.insert(id, query);
        }
    }

    /// Reports frames sent and received, then reads ahead for one vertex. Returns whether there may be more
    /// to do.
    pub(crate) fn between_frames(&mut self, out: &mut Outgoing) -> bool {
        let ids: Vec<QueryId> = self.queries.keys().copied().collect();
        let mut more = false;
        for id in ids {
            let Some(mut query) = self.queries.remove(&id) else { continue };
            if let Some(report) = query.report(id) {
                self.say(query.asker, report, out);
                more = true;
            } else {
                match query.read_ahead(&self.side()) {
                    Ok(read) => more |= read,
                    Err(error) => self.say(query.asker, Message::failed(Some(id), &error), out),
                }
            }
            self.queries.insert(id, query);
        }
        more
    }
}
