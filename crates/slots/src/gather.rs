//! Facts that need all relations of a vertex, which several slots may have, before the vertex's task
//! continues: the stamps at which it was replaced, the job of a process, the processes of a job.

use fieldstone_core::Result;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::walk::{Asked, Expansion};
use fieldstone_format::graph_segment::VertexPlace;

use crate::query::{Gathering, SlotQuery, SlotSide, Task};

impl SlotQuery {
    /// Gathers facts from all relations of a vertex, and then runs a task with them.
    pub(crate) fn gather(
        &mut self,
        id: QueryId,
        what: Asked,
        vertex: VertexPlace,
        then: Task,
        side: &SlotSide<'_>,
    ) -> Result<()> {
        self.next += 1;
        let (token, slots) = (self.next, self.slots_of(vertex, side));
        let found = self.answer(what, vertex)?;
        let left = slots.iter().filter(|slot| **slot != side.number).count();
        self.gatherings.insert(token, Gathering { left: left + 1, found: Vec::new(), then });
        for slot in slots.into_iter().filter(|slot| *slot != side.number) {
            self.others.push((Address::Slot(slot), Message::Gather { query: id, token, what, vertex }));
        }
        self.gathered(token, found);
        Ok(())
    }

    pub(crate) fn answer(&self, what: Asked, vertex: VertexPlace) -> Result<Vec<(u128, Option<VertexName>)>> {
        Ok(match what {
            Asked::Replacing => {
                let writes = |kind: &str, reverse: bool| kind == "write" && reverse;
                let edges = self.expander.state.edges(vertex, &writes)?;
                let stamps = self.expander.replacing(vertex, &edges)?;
                stamps.into_iter().map(|stamp| (u128::from(stamp), None)).collect()
            }
            Asked::Jobs => {
                let jobs = self.expander.jobs(vertex)?;
                jobs.into_iter().map(|(name, place)| (place.0, Some(name))).collect()
            }
            Asked::Processes => {
                let processes = self.expander.processes(vertex)?;
                processes.into_iter().map(|place| (place.0, None)).collect()
            }
        })
    }

    pub(crate) fn gathered(&mut self, token: u64, found: Vec<(u128, Option<VertexName>)>) {
        let Some(gathering) = self.gatherings.get_mut(&token) else { return };
        gathering.found.extend(found);
        gathering.left -= 1;
        if gathering.left > 0 {
            return;
        }
        let Some(Gathering { mut found, then, .. }) = self.gatherings.remove(&token) else { return };
        found.sort_unstable();
        found.dedup_by(|a, b| a.0 == b.0);
        self.tasks.push_back(Task::Gathered { found, then: Box::new(then) });
    }

    /// Continues a task when its facts are complete.
    pub(crate) fn go_on(&mut self, found: Vec<(u128, Option<VertexName>)>, then: Task, side: &SlotSide<'_>) {
        match then {
            Task::Expand { hop, round, mut expansion } => {
                expansion.replacing = Some(found.into_iter().map(|(stamp, _)| stamp as u64).collect());
                self.fan_out(expansion, (hop, round), side);
            }
            Task::Reach { set, round, mut reaching } => match found.into_iter().next() {
                None => self.tasks.push_back(Task::Arrive { set, round, reaching }),
                Some((job, name)) => {
                    (reaching.vertex, reaching.name) = (VertexPlace(job), name);
                    let home = side.partitioner.home(reaching.vertex);
                    self.send_home(home, (set, round), reaching, side);
                }
            },
            Task::Read { vertex, node, moments, hop, round } => {
                for (process, _) in found {
                    let process = VertexPlace(process);
                    let home = side.partitioner.home(process);
                    let moments = moments.clone();
                    if home == side.number {
                        self.tasks.push_back(Task::Read { vertex: process, node, moments, hop, round });
                    } else {
                        let (replacing, splits) = (None, Vec::new());
                        let expansion = Expansion { vertex: process, node, moments, replacing, splits };
                        self.expand.entry((home, hop, round)).or_default().push(expansion);
                    }
                }
                self.tasks.push_back(Task::Read { vertex, node, moments, hop, round });
            }
            other => self.tasks.push_back(other),
        }
    }
}
