//! The benchmark mdtest: clients create files of one shared directory at once. In slots a file is a vertex
//! with the fields of `stat` as static properties, and a relation from the directory; for comparison, files
//! of a folder.
//!
//! Neither is durable when a call returns. Slots only have it in memory: in a store the log keeps a put, and
//! slots follow the log. A file that was created and closed is in the page cache, until the file system
//! writes its journal.

use std::fs::OpenOptions;
use std::path::Path;

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName, VertexRow};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_graph::segment::Rows;
use fieldstone_graph::state::GraphState;

use crate::relations::commit;

const DIRECTORY: &str = "/scratch/mdtest";
/// Nanoseconds since 1970 of the first file.
const BEGIN: u64 = 1_795_000_000_000_000_000;

/// The files that clients create.
#[derive(Debug, Clone, Copy)]
pub struct SharedDirectory {
    /// Number of clients.
    pub clients: usize,
    /// Number of files of each client.
    pub files: usize,
    /// Number of files in one call.
    pub batch: usize,
}

fn directory() -> VertexName {
    VertexName::new("directory", DIRECTORY)
}

fn name(client: usize, number: usize) -> String {
    format!("file.mdtest.{client}.{number}")
}

fn file(client: usize, number: usize) -> VertexName {
    VertexName::new("file", &format!("{DIRECTORY}/{}", name(client, number)))
}

/// A vertex with the fields of `stat` for a new file or directory.
fn created(vertex: VertexName, stamp: u64, mode: i64) -> Result<VertexRow> {
    let values = [
        ("mode", Value::Int(mode)),
        ("uid", Value::Int(1000)),
        ("gid", Value::Int(1000)),
        ("size", Value::Int(0)),
        ("mtime", Value::DateTime(stamp as i64)),
    ];
    let fixed = Some(Props::of(values.iter().map(|(name, value)| (*name, value)))?);
    let version = Version { stamp, time: stamp as i64, deleted: false };
    Ok(VertexRow { vertex, version, fixed, props: Props::default() })
}

impl SharedDirectory {
    /// Number of files in the end.
    pub fn all(&self) -> usize {
        self.clients * self.files
    }

    /// The directory itself.
    pub fn directory(&self) -> Result<Rows> {
        let mut rows = Rows::default();
        rows.add(commit(BEGIN), &Record::Vertices(vec![created(directory(), BEGIN, 0o755)?]).encode())?;
        Ok(rows)
    }

    /// The calls of one client, ready to be put.
    pub fn calls(&self, client: usize) -> Result<Vec<Rows>> {
        let mut calls = Vec::new();
        for begin in (0..self.files).step_by(self.batch.max(1)) {
            let (mut vertices, mut relations, mut stamp) = (Vec::new(), Vec::new(), BEGIN);
            for number in begin..self.files.min(begin + self.batch.max(1)) {
                stamp = BEGIN + 1 + (number * self.clients + client) as u64;
                let vertex = created(file(client, number), stamp, 0o644)?;
                relations.push(RelationRow {
                    kind: "has".into(),
                    source: directory(),
                    target: vertex.vertex.clone(),
                    version: vertex.version,
                    until: None,
                    props: Props::default(),
                });
                vertices.push(vertex);
            }
            let mut rows = Rows::default();
            rows.add(commit(stamp), &Record::Vertices(vertices).encode())?;
            rows.add(commit(stamp), &Record::Relations(relations).encode())?;
            calls.push(rows);
        }
        Ok(calls)
    }

    /// Number of files in the directory, each with its `stat` fields.
    pub fn found(&self, state: &GraphState) -> Result<usize> {
        let relations =
            state.edges(VertexPlace::of(&directory()), &|kind, reverse| kind == "has" && !reverse)?;
        let mut found = 0;
        for relation in relations {
            let versions = state.vertex_versions(relation.far)?;
            let mode =
                versions.first().and_then(|version| version.fixed.as_ref()).map(|fixed| fixed.get("mode"));
            found += usize::from(mode.transpose()?.flatten() == Some(Value::Int(0o644)));
        }
        Ok(found)
    }

    /// The same files, empty, in a folder: each client creates its own with `open` and `close`.
    pub fn create_in(&self, client: usize, folder: &Path) -> Result<()> {
        for number in 0..self.files {
            let path = folder.join(name(client, number));
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            drop(made.map_err(|e| Error::io("create", &path, e))?);
        }
        Ok(())
    }
}
