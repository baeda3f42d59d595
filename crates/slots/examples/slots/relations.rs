//! The relations to put: pairs of numbers, or relations with names.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_graph::segment::{CommitOrder, Rows};

const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

/// Type, source and target.
type Named = (Arc<str>, VertexName, VertexName);

fn file(vertex: u32) -> VertexName {
    VertexName::new("file", &format!("/scratch/run/{vertex:08}"))
}

/// The commit of all rows.
pub fn commit(stamp: u64) -> CommitOrder {
    CommitOrder { known: CommitKnown { since: 1, stamp }, user: 1000 }
}

/// A graph to put.
pub enum Relations {
    /// `has` from one file to another, by their numbers.
    Pairs(Vec<(u32, u32)>),
    /// Vertices, and relations between them: type, source, target.
    Lines(Vec<VertexName>, Vec<(Arc<str>, u32, u32)>),
}

impl Relations {
    /// Reads a file of pairs of little-endian u32.
    pub fn pairs(path: &Path) -> Result<Relations> {
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
        Ok(Relations::Pairs(bytes.chunks_exact(8).map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect()))
    }

    /// Reads a file of lines: type, type and id of the source, type and id of the target, separated by tabs.
    pub fn lines(path: &Path) -> Result<Relations> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
        let (mut vertices, mut numbers): (Vec<VertexName>, HashMap<VertexName, u32>) = Default::default();
        let mut number = |kind: &str, id: &str| {
            let next = vertices.len() as u32;
            *numbers.entry(VertexName::new(kind, id)).or_insert_with_key(|name| {
                vertices.push(name.clone());
                next
            })
        };
        let mut kinds: HashMap<&str, Arc<str>> = HashMap::new();
        let mut relations = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let [kind, source_kind, source, target_kind, target] = line.split('\t').collect::<Vec<_>>()[..]
            else {
                return Err(Error::invalid(format!(
                    "line {} of {} is not a relation",
                    i + 1,
                    path.display()
                )));
            };
            let kind = kinds.entry(kind).or_insert_with(|| kind.into()).clone();
            relations.push((kind, number(source_kind, source), number(target_kind, target)));
        }
        Ok(Relations::Lines(vertices, relations))
    }

    /// Number of relations.
    pub fn len(&self) -> usize {
        match self {
            Relations::Pairs(pairs) => pairs.len(),
            Relations::Lines(_, relations) => relations.len(),
        }
    }

    /// A vertex by its number.
    pub fn vertex(&self, number: usize) -> Result<VertexName> {
        match self {
            Relations::Pairs(_) => Ok(file(number as u32)),
            Relations::Lines(vertices, _) => vertices
                .get(number)
                .cloned()
                .ok_or_else(|| Error::invalid(format!("there is no vertex {number}"))),
        }
    }

    fn relation(&self, number: usize) -> Named {
        match self {
            Relations::Pairs(pairs) => {
                let (source, target) = pairs[number];
                ("has".into(), file(source), file(target))
            }
            Relations::Lines(vertices, relations) => {
                let (kind, source, target) = &relations[number];
                let vertex = |number: u32| vertices[number as usize].clone();
                (kind.clone(), vertex(*source), vertex(*target))
            }
        }
    }

    /// The type of each relation and the places of both ends.
    pub fn places(&self) -> Vec<(Arc<str>, VertexPlace, VertexPlace)> {
        match self {
            Relations::Pairs(pairs) => {
                let kind: Arc<str> = "has".into();
                let mut places: HashMap<u32, VertexPlace> = HashMap::new();
                let mut place =
                    |vertex: u32| *places.entry(vertex).or_insert_with(|| VertexPlace::of(&file(vertex)));
                pairs.iter().map(|(from, to)| (kind.clone(), place(*from), place(*to))).collect()
            }
            Relations::Lines(vertices, relations) => {
                let places: Vec<VertexPlace> = vertices.iter().map(VertexPlace::of).collect();
                let place = |vertex: u32| places[vertex as usize];
                let all = relations.iter();
                all.map(|(kind, from, to)| (kind.clone(), place(*from), place(*to))).collect()
            }
        }
    }

    /// All relations in batches, ready to be put: each with a property of `property` random characters, and a
    /// stamp.
    pub fn batches(&self, batch: usize, property: usize) -> Result<Vec<Rows>> {
        let mut random = 88_172_645_463_325_252u64;
        let mut text = || -> String {
            let letter = |_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                char::from(LETTERS[random as usize % 64])
            };
            (0..property).map(letter).collect()
        };
        let mut batches = Vec::new();
        for begin in (0..self.len()).step_by(batch.max(1)) {
            let end = self.len().min(begin + batch.max(1));
            let mut relations = Vec::with_capacity(end - begin);
            for number in begin..end {
                let stamp = number as u64 + 1;
                let props = Props::of([("note", &Value::Text(text()))])?;
                let (kind, source, target) = self.relation(number);
                let version = Version { stamp, time: stamp as i64, deleted: false };
                relations.push(RelationRow { kind, source, target, version, until: None, props });
            }
            let mut rows = Rows::default();
            rows.add(commit(end as u64), &Record::Relations(relations).encode())?;
            batches.push(rows);
        }
        Ok(batches)
    }
}
