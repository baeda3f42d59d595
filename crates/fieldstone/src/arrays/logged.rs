//! Arrays that the ranks of a job write into the store's logs (`layout="fields"`): each rank archives its boxes, as
//! pieces of one field, into its own log.
//!
//! Between two flushes all of them belong to one transaction: the job's own, which rank 0 begins and decides, or the
//! one that the job was opened in. So they become visible together, or never, and no reader sees the pieces of a killed
//! job.
//!
//! Invariants:
//! * a rank archives nothing of an array before all ranks are ready, so that a failed write leaves nothing;
//! * pieces never lie on an older version of their field: rank 0 hides that version first;
//! * a write to an existing step that may not be written again fails before anything is archived (F-12);
//! * if a log could not be written, the next flush reports the loss and keeps nothing.

use std::sync::Arc;

use fieldstone_array::distributed::group::{Memory, READ, WRITE};
use fieldstone_array::distributed::plan::MoveReport;
use fieldstone_array::distributed::plan::pieces::PieceSink;
use fieldstone_core::compression::Compression;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::StorageOrder;
use fieldstone_store::api::{
    ArchiveOptions, FieldAccess, FieldSpec, IfExists, Pairs, ReadOptions, Transactions, Value,
};

use super::inner::{JobInner, JobState};
use super::source::pairs;
use crate::Session;

/// Boxes of one array for this rank to archive.
#[derive(Debug, Default)]
struct Pieces {
    boxes: Mutex<Vec<(IndexBox, Vec<u8>)>>,
}

impl PieceSink for Pieces {
    fn piece(&self, part: &IndexBox, bytes: &[u8]) -> Result<()> {
        let mut boxes = self.boxes.lock();
        boxes.push((part.clone(), bytes.to_vec()));
        Ok(())
    }
}

impl JobInner {
    /// Collective: writes a set at a step into the logs of the ranks. A rank that failed before passes its error.
    pub fn write_logged(
        &self,
        state: &mut JobState,
        group: usize,
        (set, step): (usize, i64),
        memory: Result<Memory<'_>>,
        hints: &Hints,
    ) -> Result<MoveReport> {
        let pieces = Arc::new(Pieces::default());
        let sink: Arc<dyn PieceSink> = pieces.clone();
        let (moved, shape) = state.groups[group].group.write_pieces(set, step, memory, (&sink, hints))?;
        let transaction = self.logged_transaction(state)?;
        let if_exists = self.if_exists_of_write(state, (group, set, step), transaction);
        let rules = (&shape[..], transaction, if_exists);
        let taken = self.take_pieces(state, (group, set, step), rules, (&pieces, &moved));
        if let Err(error) = taken {
            // Refused before any piece was taken.
            if error.code() == Code::FieldExists {
                return Err(error);
            }
            // The remaining content of this rank's log is unknown.
            let lost = error.replicate().context("writes since the last flush are lost");
            let _ = self.drop_logged(state);
            state.logged.lost = Some(lost);
            return Err(error);
        }
        state.logged.written.insert((group, set, step));
        Ok(moved)
    }

    /// Collective: archives the boxes of an array, each rank its own; rank 0 makes room for them.
    fn take_pieces(
        &self,
        state: &JobState,
        (group, set, step): (usize, usize, i64),
        (shape, transaction, if_exists): (&[u64], Id, Result<Option<IfExists>>),
        (pieces, moved): (&Pieces, &MoveReport),
    ) -> Result<()> {
        let record = &state.groups[group].record;
        let kept = &record.sets[set];
        let (dtype, total) = (kept.dtype.to_native(), shape.iter().product::<u64>());
        let compression = record.compression.as_deref().map(Compression::parse).transpose();
        let prepared = self.key(&kept.variable.name, step).and_then(|key| Ok((key, compression?)));
        let boxes = std::mem::take(&mut *pieces.boxes.lock());
        let whole = match &boxes[..] {
            [(_, bytes)] => self.team.size() == 1 && bytes.len() as u64 == total * dtype.size() as u64,
            _ => total == 0,
        };
        let rewritten = state.logged.written.contains(&(group, set, step));
        let fill = state.groups[group].group.decl(set).fill.clone();
        let ready = prepared.and_then(|(key, compression)| {
            let if_exists = if_exists?;
            // In the order of the field's dimensions.
            let mut chunks = record.chunks.clone();
            if let (StorageOrder::Fortran, Some(chunks)) = (record.order, &mut chunks) {
                chunks.reverse();
            }
            let options = ArchiveOptions {
                session: Session::from(transaction),
                compression,
                chunks,
                if_exists,
                ..Default::default()
            };
            if self.team.rank() == 0 && !whole {
                let chunks = options.chunks.as_deref();
                let spec = FieldSpec { dtype, shape, fill: fill.as_deref(), chunks };
                self.make_room(&pairs(&key), &spec, &options, rewritten || moved.holes == total)?;
            }
            // Rank 0 has looked already, or looks when it archives the whole array.
            let if_exists = if whole { if_exists } else { Some(IfExists::New) };
            Ok((key, ArchiveOptions { if_exists, ..options }))
        });
        // All pieces archived from here on are newer than the version that rank 0 hid.
        let (key, options) = self.team.agree(WRITE, ready)?;
        let key = pairs(&key);
        let archived = match (whole, &boxes[..]) {
            (true, _) if self.team.rank() > 0 => Ok(()),
            (true, boxes) => {
                let data = boxes.first().map_or(&[][..], |(_, data)| data);
                self.store.archive(&key, Value::Array { data, dtype, shape }, &options)
            }
            (false, boxes) => boxes.iter().try_for_each(|(part, data)| {
                let (start, count) = (part.start(), part.count());
                let piece = Value::Piece { data, dtype, start, count, shape };
                self.store.archive(&key, piece, &options)
            }),
        };
        self.team.agree(WRITE, archived)
    }

    /// How a write treats an existing step. A step that the job wrote since its last flush is created again in the
    /// transaction of that flush; only rank 0 looks.
    fn if_exists_of_write(
        &self,
        state: &mut JobState,
        write: (usize, usize, i64),
        transaction: Id,
    ) -> Result<Option<IfExists>> {
        if self.team.rank() > 0 || state.logged.written.contains(&write) {
            return Ok(Some(IfExists::New));
        }
        if let Some(known) = state.logged.if_exists {
            return Ok(known);
        }
        let if_exists = self.if_exists(&Session::from(transaction))?;
        state.logged.if_exists = Some(if_exists);
        Ok(if_exists)
    }

    /// On rank 0: hides the field under a key, if there is one, or makes a field that must exist without a piece.
    fn make_room(
        &self,
        key: &Pairs<'_>,
        spec: &FieldSpec<'_>,
        options: &ArchiveOptions,
        anyway: bool,
    ) -> Result<()> {
        let session = &options.session;
        let is_there = match self.store.get(key, &ReadOptions { session: session.clone() }) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_there && !anyway {
            return Ok(());
        }
        self.store.create_field(key, spec, options)?;
        self.store.flush(session.clone())
    }

    /// Collective in the first write after a flush: the transaction of all writes until the next one.
    fn logged_transaction(&self, state: &mut JobState) -> Result<Id> {
        if let Some(known) = state.session(&self.options).transaction() {
            return Ok(known);
        }
        let begun = match self.team.rank() {
            0 => self.store.begin().map(|id| id.0.to_vec()),
            _ => Ok(Vec::new()),
        };
        let begun = self.team.broadcast(WRITE, 0, begun)?;
        let id = begun.try_into().map_err(|_| Error::internal("rank 0 began another write"))?;
        state.logged.transaction = Some(Id(id));
        Ok(Id(id))
    }

    /// Collective: makes writes durable if a read of this set and step needs them; returns the session to read in.
    pub fn flush_written(
        &self,
        state: &JobState,
        group: usize,
        (set, step): (usize, i64),
    ) -> Result<Session> {
        if !state.logged.written.contains(&(group, set, step)) {
            return Ok(self.options.session.clone());
        }
        let own = state.session(&self.options);
        self.team.agree(READ, self.store.flush(own.clone()))?;
        Ok(own)
    }

    /// Makes this rank's writes since the last flush durable; readers do not see them yet.
    ///
    /// Errors: also the loss of earlier writes.
    pub fn flush_logged(&self, state: &mut JobState) -> Result<()> {
        if let Some(lost) = state.logged.lost.take() {
            return Err(lost);
        }
        match state.logged.written.is_empty() {
            true => Ok(()),
            false => self.store.flush(state.session(&self.options)),
        }
    }

    /// Collective: forgets the writes since the last flush.
    pub fn drop_logged(&self, state: &mut JobState) -> Result<()> {
        let forgotten = self.forget_logged(state);
        self.team.agree("discard", forgotten)
    }

    /// Forgets this rank's part of the writes; rank 0 rolls the transaction back.
    pub fn forget_logged(&self, state: &mut JobState) -> Result<()> {
        let session = state.session(&self.options);
        let logged = std::mem::take(&mut state.logged);
        if logged.written.is_empty() && logged.transaction.is_none() {
            return Ok(());
        }
        let discarded = self.store.discard(session);
        match logged.transaction {
            Some(own) if self.team.rank() == 0 => discarded.and(self.store.decide(own, false)),
            _ => discarded,
        }
    }
}
