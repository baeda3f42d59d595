//! The provenance graph of a store: the origins of results. [`Store::graph`](crate::Store::graph) returns it; its calls
//! are those of [`GraphAccess`]. A [`Tracer`] begins from data of the store, and continues in other stores.
//!
//! ```
//! use fieldstone::{OpenOptions, Session};
//! use fieldstone::graph::{RelationPut, VertexName};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let [job, file] = [VertexName::new("job", "17"), VertexName::new("file", "/data/a.nc")];
//! store.graph().put_relations(vec![RelationPut::new("write", job.clone(), file.clone())], &Session::default())?;
//! let writers = store.graph().edges(&file, Some("wasWrittenBy"), Default::default(), None, &Session::default())?;
//! assert_eq!(writers[0].far, job);
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod across;
mod archive;
mod origins;
mod subject;
mod text;

pub use across::LineageStore;
pub use archive::{archive, archive_into};
pub use fieldstone_core::graph::{
    Address, Archive, EdgeType, PartitionScheme, Partitioning, PropValue, RelationBatch, SLOTS_MAX,
    SlotLabels, SlotStep, THRESHOLD, TextColumn, TypeDecl, VertexName, VertexType,
};
pub use fieldstone_format::graph::{Props, push_props};
pub use fieldstone_graph::access::{GraphAccess, GraphAdmin, GraphReader, GraphWalks, GraphWriter};
pub use fieldstone_graph::archive::{ArchiveReport, HiddenVersions};
pub use fieldstone_graph::audit::{Audit, AuditOptions, AuditRow};
pub use fieldstone_graph::dossier::{Dossier, Properties};
pub use fieldstone_graph::live::{Check, Partitions, SlotContent, Stats};
pub use fieldstone_graph::put::{Deletion, RelationPut, VertexPut};
pub use fieldstone_graph::read::{Relation, Versions, Vertex};
pub use fieldstone_graph::relations::{RelationTest, TypeMatches};
pub use fieldstone_graph::slot::Engine;
pub use fieldstone_graph::trace::{Lineage, Step, TraceOptions, Way};
pub use fieldstone_graph::travel::{
    Path, PathStream, SlotFigures, StepFigures, Travel, TravelStep, Traversal, TraversalSummary, VertexTest,
};
pub use fieldstone_graph::vocabulary;
pub use fieldstone_slots::SlotOptions;
pub use fieldstone_slots::network::{Arrival, Mailboxes, Network, Networks};
pub use subject::{LineageSubject, Tracer};
pub use text::{parse_stamp, parse_travel};
