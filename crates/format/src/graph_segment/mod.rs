//! Segments of the graph's index: sorted, immutable, made from the logs. The normative text is
//! `spec/graph-segments.md`.
//!
//! A segment has two tables of vertices in the order of their places. **Rows** hold the versions of a vertex
//! and the properties of its outgoing relations; one contiguous read gets them. **Adjacency** holds the
//! relations in both directions: far ends as numbers in the segment, stamps, lengths of rows. Names of
//! vertices are a section of their own. Sections are cut into pages of 16 KiB, each with a checksum and
//! compressed if that is shorter; the directory after them gives their positions.
//!
//! | module | bytes |
//! |---|---|
//! | [`adjacency`] | incoming and outgoing relations of one vertex |
//! | [`rows`] | name and versions of one vertex, properties of one relation |
//! | [`directory`] | sections, pages, names, users |
//! | [`manifest`] | the list of live segments, with a mark for each living log |
//! | [`partitioning`] | the division of the index into slots |

pub mod adjacency;
pub mod directory;
pub mod manifest;
pub mod partitioning;
pub mod rows;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::graph::VertexName;

/// The place of a vertex, which gives its position in a segment and its slot: a hash of its type and id, 128
/// bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexPlace(pub u128);

/// Longest name, including its length prefix, that is hashed in one piece.
const NAME_SHORT: usize = 256;

impl VertexPlace {
    /// The place of a vertex.
    pub fn of(vertex: &VertexName) -> VertexPlace {
        VertexPlace::named(&vertex.kind, &vertex.id)
    }

    /// The place of a vertex of this type and id.
    pub fn named(kind: &str, id: &str) -> VertexPlace {
        let parts = [&(kind.len() as u64).to_le_bytes(), kind.as_bytes(), id.as_bytes()];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        // Setting up a hasher for parts takes several times as long as hashing a short text.
        let mut short = [0; NAME_SHORT];
        if let Some(name) = short.get_mut(..length) {
            let mut at = 0;
            for part in parts {
                name[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            return VertexPlace(xxh3_128(name));
        }
        let mut hasher = Xxh3::new();
        parts.iter().for_each(|part| hasher.update(part));
        VertexPlace(hasher.digest128())
    }
}

/// The two stamps of a visible commit: the stamp that made it visible (its own, or that of the decision on
/// its transaction), and its own. Of two otherwise equal versions the one that became known later counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitKnown {
    /// Stamp of the commit or decision that made it visible.
    pub since: u64,
    /// Its own stamp.
    pub stamp: u64,
}

/// Bytes of an entry of the section of commits: two stamps.
pub const KNOWN_BYTES: usize = 16;
/// Raw bytes of a page.
pub const PAGE: usize = 16 << 10;
/// Bytes of a place in its section, big-endian, so that their order is the bytes' order.
pub const PLACE_BYTES: usize = 16;
/// Bytes of an entry of the section of offsets: three of six bytes.
pub const OFFSETS_BYTES: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_have_places_by_the_same_rule() {
        for length in [1, 200, NAME_SHORT - 13, NAME_SHORT - 12, NAME_SHORT - 11, 5000] {
            let id = "x".repeat(length);
            let mut whole = 4u64.to_le_bytes().to_vec();
            whole.extend_from_slice(format!("file{id}").as_bytes());
            assert_eq!(VertexPlace::named("file", &id).0, xxh3_128(&whole), "{length}");
        }
    }
}
