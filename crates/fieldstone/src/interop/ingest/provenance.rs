//! Takes external provenance into the graph: logs, listings, events, directory trees.
//!
//! A file's rows are a transaction, as its fields are; rows that the graph already has are not written again (`added`).
//! Events of one run may be in several files and ingests, so OpenLineage's rows follow the last file, merged with the
//! graph's records of their runs.

use std::path::Path;

use fieldstone_core::env::Env;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;

use super::added::{new_relations, new_vertices, recorded_jobs};
use super::tree::KnownTree;
use super::{IngestOptions, Skipped, Taken, WHOLE_FILE};
use crate::Session;
use crate::Store;
use crate::graph::Versions;
use crate::interop::lineage::{
    GraphRows, HEAD, LineageOptions, LineageReader, LineageSource, TreePart, recognise, tree,
};

/// State that an ingest of provenance keeps from file to file.
pub struct Provenance<'a> {
    store: &'a Store,
    /// The world of the files, which differs from that of a store in memory.
    outside: &'a Env,
    reader: LineageReader<'a>,
    /// The last file of events, as its index in the files taken.
    events: Option<usize>,
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    /// A file of provenance.
    File(LineageSource),
    /// A directory.
    Tree,
}

/// Whether a path holds provenance.
pub fn look(path: &Path) -> Option<Recognised> {
    if path.is_dir() {
        return Some(Recognised::Tree);
    }
    let mut head = super::read_head(path).ok()?;
    head.truncate(HEAD);
    recognise(path, &head).map(Recognised::File)
}

impl<'a> Provenance<'a> {
    pub fn new(store: &'a Store, outside: &'a Env, options: &'a LineageOptions) -> Provenance<'a> {
        let reader = LineageReader::new(outside, options);
        Provenance { store, outside, reader, events: None }
    }

    /// Takes a file or tree; `None` if nothing of it was taken. Faults of it go to `skipped`. `at`: number of files
    /// taken before.
    pub fn take(
        &mut self,
        path: &Path,
        what: Recognised,
        options: &IngestOptions<'_>,
        at: usize,
        skipped: &mut Vec<Skipped>,
    ) -> Result<Option<Taken>> {
        let mut taken = Taken::nothing(path);
        let outcome = match what {
            Recognised::Tree if !options.tree => {
                let why = "directories are taken only with tree=True (--tree)".to_owned();
                skipped.push(Skipped { path: path.to_owned(), what: WHOLE_FILE.to_owned(), why });
                return Ok(None);
            }
            Recognised::Tree => self.tree(path, &mut taken, skipped),
            Recognised::File(source) => match self.reader.read(path) {
                Ok(rows) if source == LineageSource::OpenLineage => {
                    self.events = Some(at);
                    self.put(rows, path, &mut taken, skipped)
                }
                Ok(mut rows) => {
                    if source == LineageSource::Darshan {
                        rows.relations.extend(recorded_jobs(self.store, &rows.vertices)?);
                    }
                    self.put(rows, path, &mut taken, skipped)
                }
                Err(error) => Err(error),
            },
        };
        match outcome {
            Ok(()) => Ok(Some(taken)),
            // Faults of the store, or of the Python that reads, end the ingest.
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Denied) => Err(error),
            Err(error) => {
                let why = error.to_string();
                skipped.push(Skipped { path: path.to_owned(), what: WHOLE_FILE.to_owned(), why });
                Ok(None)
            }
        }
    }

    /// Puts the combined events of all files; the last of these files gets the counts.
    pub fn finish(self, taken: &mut [Taken], skipped: &mut Vec<Skipped>) -> Result<()> {
        let Provenance { store, mut reader, events, .. } = self;
        let Some(last) = events.and_then(|at| taken.get_mut(at)) else { return Ok(()) };
        for job in reader.events().jobs() {
            let versions = store.graph().versions(&job, &Session::default())?;
            let relations = store.graph().edges(&job, None, Versions::ALL, None, &Session::default())?;
            reader.events().remember(&job, &versions, &relations);
        }
        let rows = reader.finish()?;
        let path = last.path.clone();
        put(store, rows, &path, last, skipped)
    }

    fn put(&self, rows: GraphRows, path: &Path, taken: &mut Taken, skipped: &mut Vec<Skipped>) -> Result<()> {
        put(self.store, rows, path, taken, skipped)
    }

    fn tree(&self, path: &Path, taken: &mut Taken, skipped: &mut Vec<Skipped>) -> Result<()> {
        let transaction = self.store.transaction()?;
        let id = transaction.writing()?;
        let mut known = KnownTree::new(self.store, id);
        let report = tree(self.outside, path, &mut |part| match part {
            TreePart::Rows(mut rows) => {
                taken.unchanged += known.meet(&mut rows)?;
                put_within(self.store, rows, id, taken)
            }
            TreePart::Listing(listing) => {
                taken.relations += known.end_absent(&listing)?;
                Ok(())
            }
        })?;
        transaction.commit()?;
        let note = |why: String| Skipped { path: path.to_owned(), what: "an entry".to_owned(), why };
        skipped.extend(report.notes.into_iter().chain(known.notes).map(note));
        Ok(())
    }
}

fn put(
    store: &Store,
    rows: GraphRows,
    path: &Path,
    taken: &mut Taken,
    skipped: &mut Vec<Skipped>,
) -> Result<()> {
    let note = |why: &String| Skipped { path: path.to_owned(), what: "a part".to_owned(), why: why.clone() };
    skipped.extend(rows.notes.iter().map(note));
    let transaction = store.transaction()?;
    let id = transaction.writing()?;
    put_within(store, rows, id, taken)?;
    if taken.relations > 0 { transaction.commit() } else { transaction.abort() }
}

fn put_within(store: &Store, rows: GraphRows, transaction: Id, taken: &mut Taken) -> Result<()> {
    let all = rows.len() as u64;
    let GraphRows { vertices, relations, whole, .. } = rows;
    let vertices = new_vertices(store, vertices, whole, transaction)?;
    let relations = new_relations(store, relations, whole, transaction)?;
    let new = (vertices.len() + relations.len()) as u64;
    store.graph().put_vertices(vertices, &Session::from(transaction))?;
    store.graph().put_relations(relations, &Session::from(transaction))?;
    taken.relations += new;
    taken.unchanged += all.saturating_sub(new);
    Ok(())
}
