//! What stands under one key: the visible generation, and what it hides.

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Uncovered, uncovered};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::Entry;
use fieldstone_format::keys::KeyDecoder;
use fieldstone_format::run::CommitInfo;

use crate::snapshot::{Order, Snapshot};

/// Most missing boxes that a message names.
const MISSING_NAMED: usize = 4;

/// An entry, with the commit it came by.
#[derive(Debug, Clone)]
pub struct Part {
    /// Index of its run in the snapshot.
    pub run: u32,
    /// Index of the block in the run, and place in the block.
    pub place: (u32, u32),
    /// Writer whose files hold its bytes.
    pub writer: Id,
    /// Its commit.
    pub commit: CommitInfo,
    /// Its place among all versions.
    pub order: Order,
    /// The entry.
    pub entry: Entry,
}

impl Part {
    /// An entry of run `run`, visible or not; its order is that of its own commit.
    pub fn decode(snapshot: &Snapshot, run: usize, place: (u32, u32), value: &[u8]) -> Result<Part> {
        let writer = snapshot.log_of(run).writer;
        let entry = Entry::decode(value)?;
        let commit = *usize::try_from(entry.commit)
            .ok()
            .and_then(|i| snapshot.runs[run].meta().ok()?.commits.get(i))
            .ok_or_else(|| Error::corrupt("an index entry names no commit"))?;
        Ok(Part { run: run as u32, place, writer, commit, order: (commit.stamp, writer), entry })
    }
}

/// Everything visible under one key, newest first; the first `live` parts are the visible generation.
#[derive(Debug, Clone)]
pub struct Versions {
    /// The encoded key.
    pub key: Vec<u8>,
    /// Parts, newest first.
    pub parts: Vec<Part>,
    /// How many of them make the field.
    pub live: usize,
}

impl Versions {
    /// Sorts what was found under a key; `None` where nothing is visible.
    pub fn new(key: &[u8], mut parts: Vec<Part>) -> Option<Versions> {
        if parts.is_empty() {
            return None;
        }
        if parts.len() > 1 {
            parts.sort_by(|a, b| {
                // Entries of one transaction share their order: among them the commits' own stamps count.
                let rank = |p: &Part| (p.order, p.commit.stamp, p.writer, p.commit.sequence, p.entry.ordinal);
                rank(b).cmp(&rank(a))
            });
        }
        let live = parts.iter().position(|p| p.entry.generation).map_or(parts.len(), |i| i + 1);
        Some(Versions { key: key.to_vec(), parts, live })
    }

    /// Adds an entry of run `run` if it is visible.
    pub fn collect(
        snapshot: &Snapshot,
        run: usize,
        place: (u32, u32),
        value: &[u8],
        own: Option<Id>,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let part = Part::decode(snapshot, run, place, value)?;
        if let Some(order) = snapshot.order(part.writer, &part.commit, own) {
            parts.push(Part { order, ..part });
        }
        Ok(())
    }

    /// The parts that make the field, newest first.
    pub fn live(&self) -> &[Part] {
        &self.parts[..self.live]
    }

    /// The newest part.
    pub fn newest(&self) -> &Part {
        &self.parts[0]
    }

    /// Element type and shape of an array; `None` for opaque bytes. Conflict where pieces disagree.
    pub fn array(&self) -> Result<Option<(DType, &[u64])>> {
        let live = self.live();
        let Some(first) = &live[0].entry.array else { return Ok(None) };
        for part in &live[1..] {
            let agrees =
                part.entry.array.as_ref().is_some_and(|a| (a.dtype, &a.shape) == (first.dtype, &first.shape));
            if !agrees {
                return Err(self.disagreement(&live[0], part));
            }
        }
        Ok(Some((first.dtype, &first.shape)))
    }

    fn disagreement(&self, a: &Part, b: &Part) -> Error {
        let say = |part: &Part| match &part.entry.array {
            Some(array) => format!("writer {} says {} {:?}", part.writer, array.dtype, array.shape),
            None => format!("writer {} wrote opaque bytes", part.writer),
        };
        Error::conflict(format!("the pieces of {} disagree: {}, {}", self.name(), say(a), say(b)))
            .with_hint("archive the whole field again, or create_field, to start a new generation")
    }

    /// Raw bytes of the field.
    pub fn nbytes(&self) -> Result<u64> {
        match self.array()? {
            Some((dtype, shape)) => fieldstone_core::geometry::element_count(shape)?
                .checked_mul(dtype.size() as u64)
                .ok_or_else(|| Error::corrupt("an array exceeds 64 bits")),
            None => Ok(self.newest().entry.length),
        }
    }

    /// Boxes that no piece covers.
    pub fn missing(&self, limit: usize) -> Result<Uncovered> {
        let Some((_, shape)) = self.array()? else { return uncovered(&[], &[IndexBox::whole(&[])?], 1) };
        let boxes = self
            .live()
            .iter()
            .filter(|part| part.entry.location != fieldstone_format::entry::Location::None)
            .filter_map(|part| part.entry.index_box().transpose())
            .collect::<Result<Vec<IndexBox>>>()?;
        uncovered(shape, &boxes, limit)
    }

    /// Whether every element is there.
    pub fn is_complete(&self) -> Result<bool> {
        let oldest = &self.live()[self.live - 1].entry;
        let whole = oldest.generation && oldest.location != fieldstone_format::entry::Location::None;
        Ok(whole || self.missing(1)?.is_complete())
    }

    /// NotFound with the missing boxes' names, unless every element is there.
    pub fn check_complete(&self) -> Result<()> {
        if self.is_complete()? {
            return Ok(());
        }
        let missing = self.missing(MISSING_NAMED)?;
        let mut names: Vec<String> = missing.boxes.iter().map(|b| format!("[{b}]")).collect();
        if missing.truncated {
            names.push("…".into());
        }
        Err(Error::not_found(format!(
            "{} is incomplete: nobody has written {}",
            self.name(),
            names.join(", ")
        ))
        .with_hint("retrieve with strict=False fills what is missing"))
    }

    /// An encoded key as text, for messages.
    pub fn text_of(key: &[u8]) -> String {
        key_text(key)
    }

    /// The key as text.
    pub fn name(&self) -> String {
        key_text(&self.key)
    }
}

/// An encoded key as text, for messages.
pub fn key_text(key: &[u8]) -> String {
    KeyDecoder::new().decode(key).map_or_else(|_| "a damaged key".to_owned(), |key| key.to_string())
}
