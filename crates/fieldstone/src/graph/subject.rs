//! The subject of a lineage: a vertex, or data of a store, such as the fields of a request.
//!
//! Traces, exports, comparisons and scripts accept the same subjects, and find their starting vertices here (G-60).
//!
//! Invariants:
//! * something must name the vertex of a subject, and a request must select fields;
//! * fields stand for their commits, newest first, and looking for them does not count as a read.

use fieldstone_core::request::Request;
use fieldstone_core::{Code, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_graph::dossier::Dossier;
use fieldstone_graph::trace::{Lineage, TraceOptions};

use crate::Session;
use crate::Store;

/// The subject of a lineage.
///
/// ```
/// use fieldstone::graph::{LineageSubject, TraceOptions};
/// use fieldstone::prelude::*;
/// use fieldstone::{ArchiveOptions, OpenOptions, Request, Session, Value};
///
/// let store = fieldstone::open("memory:", &OpenOptions::default())?;
/// store.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
/// store.flush(None)?;
/// let subject = LineageSubject::from(Request::parse("run=a,variable=t")?);
/// assert_eq!(&*store.tracer(&Session::default()).trace(&subject, &TraceOptions::default())?.root.kind, "commit");
/// # Ok::<(), fieldstone::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum LineageSubject {
    /// A vertex: NotFound if nothing names it.
    Vertex(VertexName),
    /// Several data as one: vertices, and the fields of requests. NotFound if there are neither; data without any
    /// record have a lineage of their own vertex only.
    Data {
        /// Vertices.
        vertices: Vec<VertexName>,
        /// Requests for fields.
        requests: Vec<Request>,
    },
}

impl From<VertexName> for LineageSubject {
    fn from(vertex: VertexName) -> LineageSubject {
        LineageSubject::Vertex(vertex)
    }
}

impl From<Request> for LineageSubject {
    fn from(request: Request) -> LineageSubject {
        LineageSubject::Data { vertices: Vec::new(), requests: vec![request] }
    }
}

/// Traces data of a store to its origins, as a session sees the store. [`Store::tracer`] makes it.
#[derive(Debug, Clone, Copy)]
pub struct Tracer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) session: &'a Session,
}

impl Tracer<'_> {
    /// The lineage of a subject.
    pub fn trace(&self, subject: &LineageSubject, options: &TraceOptions) -> Result<Lineage> {
        let graph = self.store.graph();
        match subject {
            LineageSubject::Vertex(root) => graph.trace(root, options, self.session),
            LineageSubject::Data { vertices, requests } => {
                let (root, others) = self.roots(vertices, requests)?;
                graph.trace_all(&root, &others, options, self.session)
            }
        }
    }

    /// The lineage of a subject with all records of its vertices, and the users that ran its executions.
    pub fn dossier(&self, subject: &LineageSubject, options: &TraceOptions) -> Result<Dossier> {
        let graph = self.store.graph();
        match subject {
            LineageSubject::Vertex(root) => graph.dossier(root, options, self.session),
            LineageSubject::Data { vertices, requests } => {
                let (root, others) = self.roots(vertices, requests)?;
                graph.dossier_all(&root, &others, options, self.session)
            }
        }
    }

    /// The vertices from which the lineage of data begins.
    fn roots(&self, vertices: &[VertexName], requests: &[Request]) -> Result<(VertexName, Vec<VertexName>)> {
        let commits = self.commits(requests)?;
        let commits = commits.iter().map(|commit| VertexName::new("commit", &commit.to_string()));
        let mut roots = vertices.iter().cloned().chain(commits);
        let Some(root) = roots.next() else {
            let named: Vec<String> = requests.iter().map(|request| request.to_string()).collect();
            return Err(Code::FieldNotFound
                .error(format!("no field {}", named.join(" or ")))
                .with_hint("see what exists with axes or list"));
        };
        Ok((root, roots.collect()))
    }
}
