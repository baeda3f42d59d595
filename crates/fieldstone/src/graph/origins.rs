//! From fields to their commits, and from executions to the fields that they wrote: the graph has no fields, so lineage
//! finds them here.

use std::collections::{BTreeMap, HashSet};

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::graph::VertexName;
use fieldstone_graph::read::Versions;
use fieldstone_store::api::{ListOptions, Listing};

use crate::graph::Tracer;

impl Tracer<'_> {
    /// The commits of the fields that requests select, newest first.
    pub fn commits(&self, requests: &[Request]) -> Result<Vec<CommitId>> {
        let mut commits = BTreeMap::new();
        for request in requests {
            commits.extend(self.store.backend().origins(request, self.session)?);
        }
        let mut commits: Vec<(u64, CommitId)> = commits.into_iter().map(|(id, stamp)| (stamp, id)).collect();
        commits.sort_unstable_by(|a, b| b.cmp(a));
        Ok(commits.into_iter().map(|(_, id)| id).collect())
    }

    /// The current versions of this store's fields that an execution wrote, a job with its processes, or one commit.
    pub fn fields_of(&self, vertex: &VertexName) -> Result<Listing> {
        let mut commits = HashSet::new();
        let mut take = |name: &VertexName| {
            if &*name.kind == "commit"
                && let Some(id) = CommitId::parse(&name.id)
            {
                // Fields that were moved here are of commits of their first store.
                commits.insert((id.log, id.sequence));
            }
        };
        take(vertex);
        let (mut executions, graph) = (vec![vertex.clone()], self.store.graph());
        if &*vertex.kind == "job" {
            let parts = graph.edges(vertex, Some("contains"), Versions::NOW, None, self.session)?;
            executions.extend(parts.into_iter().map(|part| part.far));
        }
        for execution in &executions {
            let writes = graph.edges(execution, Some("write"), Versions::NOW, None, self.session)?;
            writes.iter().for_each(|write| take(&write.far));
        }
        let options = ListOptions { session: self.session.clone(), ..ListOptions::default() };
        self.store.backend().list_commits(commits, &options)
    }
}
