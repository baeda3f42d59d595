//! Rows of a session that the journal does not have yet.

use fieldstone_format::graph::{Record, RelationRow, VertexRow};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::participant::Growing;

/// Rows of vertices and relations. They become records when the journal takes them.
#[derive(Debug, Default)]
pub struct RowBuffer {
    /// Of vertices.
    pub vertices: Vec<VertexRow>,
    /// Of relations.
    pub relations: Vec<RelationRow>,
}

impl Growing for RowBuffer {
    fn rows(&self) -> u64 {
        (self.vertices.len() + self.relations.len()) as u64
    }

    fn into_records(self) -> Vec<SideRecord> {
        Record::encode_rows(&self.vertices, &self.relations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_format::graph::{Props, Version, VertexName};

    #[test]
    fn rows_are_counted_and_become_records_of_their_kind() {
        let [job, file] = [VertexName::new("job", "1"), VertexName::new("file", "a")];
        let version = Version { stamp: 1, time: 1, deleted: false };
        let vertex = VertexRow { vertex: file.clone(), version, fixed: None, props: Props::default() };
        let (kind, source, target) = ("write".into(), job, file);
        let relation = RelationRow { kind, source, target, version, until: None, props: Props::default() };
        let buffer = RowBuffer { vertices: vec![vertex], relations: vec![relation] };
        assert_eq!(buffer.rows(), 2);
        assert_eq!(buffer.into_records().len(), 2, "one of vertices, one of relations");
        assert!(RowBuffer::default().into_records().is_empty());
    }
}
