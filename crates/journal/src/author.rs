//! Authors: the executions on whose behalf values are archived, and the records that they add to commits.
//!
//! An execution is the author of the values that it archives. A call's [`Session`](crate::Session) names the author,
//! and the journal keeps the name with the batch. Before the journal writes a commit, the author hands in its
//! records; the commit's name and stamp, which do not exist yet, are blanks that the writer fills in.
//!
//! Invariants:
//! * a commit holds values of one author, or of none: when a session archives values while values of another author
//!   wait in it, the journal commits those first (G-31);
//! * the journal calls an author before a commit is written and after it is durable, never in between, and holds no
//!   lock during the call.

use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName, VertexRow};
use fieldstone_format::log::SideRecord;

/// The rows that an author adds to a commit.
#[derive(Debug, Clone, Default)]
pub struct AuthorPart {
    /// The stamp that the commit's must exceed: what the author has read, he read before it.
    pub floor: u64,
    /// The vertex from which a relation `write` goes to the commit, where that holds fields or records of the catalog.
    pub writer: Option<VertexName>,
    /// Relations of reads that the store does not know yet.
    pub reads: Vec<RelationRow>,
    /// Vertices that say who the author is, where the store does not know it.
    pub vertices: Vec<VertexRow>,
    /// Relations that do.
    pub relations: Vec<RelationRow>,
    /// By which the author knows the part again when it is durable.
    pub ticket: u64,
}

/// A part of an author that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Landed {
    /// The store that has the commit.
    pub store: Id,
    /// The stamp of the commit.
    pub stamp: u64,
    /// The part's ticket; `None` where nothing of it went into the commit.
    pub ticket: Option<u64>,
}

/// The commit that fills the blanks of a part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitFacts {
    pub id: CommitId,
    pub stamp: u64,
    /// The clock at it, nanoseconds since 1970.
    pub time: i64,
    /// Fields in it, and their raw bytes.
    pub fields: u64,
    pub bytes: u64,
    /// Whether it holds fields, or records of the catalog.
    pub writes: bool,
}

impl AuthorPart {
    /// The side records for a commit; none where there is nothing to say of it.
    pub(crate) fn records(self, commit: &CommitFacts) -> Result<Vec<SideRecord>> {
        let written = self.writer.filter(|_| commit.writes).map(|writer| commit.written_by(writer));
        let written = written.transpose()?;
        if self.reads.is_empty() && written.is_none() {
            return Ok(Vec::new());
        }
        let relations: Vec<RelationRow> =
            self.reads.into_iter().chain(self.relations).chain(written).collect();
        Ok(Record::encode_rows(&self.vertices, &relations))
    }
}

impl CommitFacts {
    fn written_by(&self, source: VertexName) -> Result<RelationRow> {
        let count = |n: u64| i64::try_from(n).map_or(Value::UInt(n), Value::Int);
        let (fields, bytes) = (count(self.fields), count(self.bytes));
        Ok(RelationRow {
            kind: "write".into(),
            source,
            target: VertexName::new("commit", &self.id.to_string()),
            version: Version { stamp: self.stamp, time: self.time, deleted: false },
            until: None,
            props: Props::of([("fields", &fields), ("bytes", &bytes)])?,
        })
    }
}

/// An author of commits.
pub trait CommitAuthor: Send + Sync + Debug {
    /// Hands in the rows for the next commit to a store. A commit does not fail for them: the author notes those that he
    /// cannot make.
    fn hand_in(&self, store: Id) -> AuthorPart;

    /// A commit is durable.
    fn landed(&self, landed: &Landed);
}

/// An author, or nobody.
pub type Author = Option<Arc<dyn CommitAuthor>>;

/// Whether two are one.
pub fn is_same(a: &Author, b: &Author) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relations(part: AuthorPart, writes: bool) -> Vec<RelationRow> {
        let id = CommitId { store: Id([1; 16]), log: Id([2; 16]), sequence: 3 };
        let commit = CommitFacts { id, stamp: 50, time: 49, fields: 2, bytes: 10, writes };
        let records = part.records(&commit).unwrap();
        let rows = records.iter().map(|side| match Record::decode(side).unwrap() {
            Record::Relations(rows) => rows,
            other => panic!("{other:?}"),
        });
        rows.flatten().collect()
    }

    #[test]
    fn the_writer_fills_in_name_and_stamp() {
        let job = VertexName::new("job", "1");
        let read = RelationRow {
            kind: "read".into(),
            source: job.clone(),
            target: VertexName::new("commit", "other"),
            version: Version { stamp: 5, time: 5, deleted: false },
            until: None,
            props: Props::default(),
        };
        let part = AuthorPart { writer: Some(job), reads: vec![read.clone()], ..AuthorPart::default() };
        let [first, written] = &relations(part.clone(), true)[..] else { panic!("two relations") };
        assert_eq!(first, &read);
        assert!(&*written.kind == "write" && written.target.id.contains(&Id([2; 16]).to_string()));
        assert_eq!((written.version.stamp, written.version.time), (50, 49));
        assert_eq!(written.props.get("bytes").unwrap(), Some(Value::Int(10)));
        assert_eq!(relations(part.clone(), false), [read]);
        assert!(relations(AuthorPart { reads: Vec::new(), ..part }, false).is_empty());
    }
}
