//! Merges many requests into one ascending list of byte ranges, in bounded rounds.
//!
//! The runs of each request ascend, so a heap with one entry for each request merges them as they come; no sorting
//! and no list in advance is needed. A round takes runs until its bytes are used up; the last runs may be cut, all at
//! the same offset. Adjacent and overlapping runs form one *span*, which is one part of a collective read or write.
//!
//! A rank on its own also bridges small gaps, as strided boxes have: it reads the span with its gaps and picks out
//! the elements. It writes that way too, and writes the bytes in the gaps back, while it excludes all other writers;
//! several ranks cannot exclude each other, so they write each element separately.
//!
//! Invariants: the spans of a round ascend and do not overlap; every round takes at least one element; if requests
//! overlap, all that touch a byte of a round are in that round, and the later one is copied last. In a damaged file,
//! whose runs do not ascend, a round ends early, without further harm.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::extents::{Extents, Run};
use fieldstone_format::netcdf::values::Misfit;

use super::request::{ALONE, FirstMisfit, PastEnd, Request, TOGETHER, Target};
use super::{GET, PUT};

/// Gaps of up to this size are bridged (C-10): copying them costs less than another system call.
const GAP: u64 = 1 << 12;
/// Limit on the pieces of a round, which take a few words each.
const PIECES: usize = 1 << 17;

/// Elements of one request, and their position in the round's buffer.
#[derive(Debug, Clone, Copy)]
struct JoinedPiece {
    request: usize,
    /// Index of the first one among the elements of the request.
    at: u64,
    elements: u64,
    span: usize,
    buffer_at: usize,
}

/// Bytes that one call reads or writes.
#[derive(Debug, Clone, Copy)]
struct Span {
    offset: u64,
    buffer_at: usize,
    len: usize,
    /// Whether it contains bytes that no piece covers.
    has_gaps: bool,
}

impl Span {
    fn end(&self) -> u64 {
        self.offset + self.len as u64
    }
}

/// The remainder of a request.
#[derive(Debug)]
struct Cursor {
    extents: Extents,
    run: Option<Run>,
    size: u64,
}

/// The rounds of some requests.
#[derive(Debug)]
struct Rounds {
    cursors: Vec<Cursor>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    budget: usize,
    gap: u64,
    spans: Vec<Span>,
    pieces: Vec<JoinedPiece>,
    bytes: usize,
    overlaps: bool,
}

impl Rounds {
    fn new<M>(requests: &[Request<'_, M>], budget: usize, gap: u64) -> Rounds {
        let cursor = |request: &Request<'_, M>| {
            let mut extents = request.extents.clone();
            Cursor { run: extents.next(), extents, size: request.external() }
        };
        let cursors: Vec<Cursor> = requests.iter().map(cursor).collect();
        let first = |(i, cursor): (usize, &Cursor)| Some(Reverse((cursor.run?.offset, i)));
        Rounds {
            heap: cursors.iter().enumerate().filter_map(first).collect(),
            cursors,
            budget,
            gap,
            spans: Vec::new(),
            pieces: Vec::new(),
            bytes: 0,
            overlaps: false,
        }
    }

    /// Moves to the next round; false if nothing is left.
    fn next(&mut self) -> bool {
        self.spans.clear();
        self.pieces.clear();
        (self.bytes, self.overlaps) = (0, false);
        while let Some(Reverse((offset, request))) = self.heap.peek().copied() {
            let last = self.spans.last().copied();
            // Runs of a damaged file may go back: end the round there, so that spans ascend.
            let ascends = last.is_none_or(|last| last.offset <= offset);
            if !ascends || (self.pieces.len() >= PIECES && last.is_none_or(|last| last.end() <= offset)) {
                break;
            }
            let Some(run) = self.cursors[request].run else { break };
            let size = self.cursors[request].size;
            let bridged = last.filter(|last| offset <= last.end().saturating_add(self.gap));
            let room = (self.budget - self.bytes) as u64;
            // A bridged run may fill the span up to its current end for free, and grow it by the room left.
            let until = bridged.map_or(offset, |last| last.end()).saturating_add(room);
            let take = (until.saturating_sub(offset) / size).min(run.elements);
            if take == 0 {
                break;
            }
            self.heap.pop();
            self.take(request, Run { elements: take, ..run }, bridged.is_some());
            let cursor = &mut self.cursors[request];
            cursor.run = match run.elements - take {
                0 => cursor.extents.next(),
                // All elements that begin before the rest come before it in the heap, and go into this round.
                elements => Some(Run { offset: offset + take * size, elements, at: run.at + take }),
            };
            self.heap.extend(cursor.run.map(|run| Reverse((run.offset, request))));
        }
        // Later requests must be copied last, so that they win.
        if self.overlaps {
            self.pieces.sort_by_key(|piece| piece.request);
        }
        !self.pieces.is_empty()
    }

    /// Adds elements to the round, in its last span or a new one.
    fn take(&mut self, request: usize, run: Run, is_bridged: bool) {
        let end = run.offset + run.elements * self.cursors[request].size;
        if !is_bridged {
            self.spans.push(Span { offset: run.offset, buffer_at: self.bytes, len: 0, has_gaps: false });
        }
        let index = self.spans.len() - 1;
        let span = &mut self.spans[index];
        self.overlaps |= run.offset < span.end();
        span.has_gaps |= run.offset > span.end();
        span.len = span.len.max((end - span.offset) as usize);
        self.bytes = span.buffer_at + span.len;
        let buffer_at = span.buffer_at + (run.offset - span.offset) as usize;
        self.pieces.push(JoinedPiece { request, at: run.at, elements: run.elements, span: index, buffer_at });
    }

    /// Resizes the buffer to the round's bytes.
    fn resize(&self, buffer: &mut Vec<u8>) {
        if buffer.len() < self.bytes {
            buffer.resize(self.bytes, 0);
        }
    }
}

/// Copies the elements of a round into its buffer.
fn encode(rounds: &Rounds, requests: &[Request<'_, &[u8]>], buffer: &mut [u8], first: &mut FirstMisfit) {
    for piece in &rounds.pieces {
        let request = &requests[piece.request];
        let (elements, at, size) = (piece.elements as usize, piece.at as usize, request.internal());
        let memory = &request.memory[at * size..(at + elements) * size];
        let external = &mut buffer[piece.buffer_at..piece.buffer_at + elements * request.external() as usize];
        if let Some(mut misfit) = request.conversion.write(memory, external, request.fill) {
            misfit.index += piece.at;
            earliest(first, piece.request, misfit);
        }
    }
}

/// Copies the elements of a round out of its buffer.
fn decode(rounds: &Rounds, requests: &mut [Request<'_, &mut [u8]>], buffer: &[u8], first: &mut FirstMisfit) {
    for piece in &rounds.pieces {
        let request = &mut requests[piece.request];
        let (elements, at, size) = (piece.elements as usize, piece.at as usize, request.internal());
        let external = &buffer[piece.buffer_at..piece.buffer_at + elements * request.external() as usize];
        let memory = &mut request.memory[at * size..(at + elements) * size];
        if let Some(mut misfit) = request.conversion.read(external, memory, request.fill) {
            misfit.index += piece.at;
            earliest(first, piece.request, misfit);
        }
    }
}

fn earliest(first: &mut FirstMisfit, request: usize, misfit: Misfit) {
    if first.as_ref().is_none_or(|(r, m)| (request, misfit.index) < (*r, m.index)) {
        *first = Some((request, misfit));
    }
}

/// Writes, on this rank alone.
pub(super) fn put(target: &Target<'_>, requests: &[Request<'_, &[u8]>]) -> Result<FirstMisfit> {
    let is_alone = target.file.team().size() == 1;
    let mut rounds = Rounds::new(requests, ALONE, if is_alone { GAP } else { 0 });
    let (mut buffer, mut misfit) = (Vec::new(), None);
    while rounds.next() {
        rounds.resize(&mut buffer);
        let has_gaps = rounds.spans.iter().any(|span| span.has_gaps);
        // The bytes in gaps are read and written back, so no other writer may change them in between.
        let _excluding = has_gaps.then(|| target.records.excluding());
        let _sharing = (!has_gaps).then(|| target.records.sharing());
        for span in rounds.spans.iter().filter(|span| span.has_gaps) {
            let bytes = &mut buffer[span.buffer_at..span.buffer_at + span.len];
            let n = target.file.read_at(bytes, span.offset)?;
            bytes[n..].fill(0);
        }
        encode(&rounds, requests, &mut buffer, &mut misfit);
        for span in &rounds.spans {
            target.file.write_at(&buffer[span.buffer_at..span.buffer_at + span.len], span.offset)?;
        }
    }
    Ok(misfit)
}

/// Writes, on all ranks together.
pub(super) fn put_all(target: &Target<'_>, requests: &[Request<'_, &[u8]>]) -> Result<FirstMisfit> {
    let team = target.file.team();
    let mut rounds = Rounds::new(requests, TOGETHER, 0);
    let (mut buffer, mut misfit) = (Vec::new(), None);
    loop {
        let more = rounds.next();
        if team.max(PUT, Ok(vec![u64::from(more)]))? == [0] {
            return Ok(misfit);
        }
        rounds.resize(&mut buffer);
        encode(&rounds, requests, &mut buffer, &mut misfit);
        let part = |span: &Span| (span.offset, &buffer[span.buffer_at..span.buffer_at + span.len]);
        target.file.write_all(PUT, Ok(&rounds.spans.iter().map(part).collect::<Vec<_>>()))?;
    }
}

/// Reads, on this rank alone.
pub(super) fn get(target: &Target<'_>, requests: &mut [Request<'_, &mut [u8]>]) -> Result<FirstMisfit> {
    let mut rounds = Rounds::new(requests, ALONE, GAP);
    let (mut buffer, mut misfit) = (Vec::new(), None);
    while rounds.next() {
        rounds.resize(&mut buffer);
        for (i, span) in rounds.spans.iter().enumerate() {
            let bytes = &mut buffer[span.buffer_at..span.buffer_at + span.len];
            let n = target.file.read_at(bytes, span.offset)?;
            if n < span.len {
                bytes[n..].fill(0);
                check_file_end(target, &rounds, requests, i, span.offset + n as u64)?;
            }
        }
        decode(&rounds, requests, &buffer, &mut misfit);
    }
    Ok(misfit)
}

/// Reads, on all ranks together.
pub(super) fn get_all(target: &Target<'_>, requests: &mut [Request<'_, &mut [u8]>]) -> Result<FirstMisfit> {
    let team = target.file.team();
    let file_len = team.agree(GET, target.file.len())?;
    let mut rounds = Rounds::new(requests, TOGETHER, GAP);
    let (mut buffer, mut misfit) = (Vec::new(), None);
    loop {
        let more = rounds.next();
        if team.max(GET, Ok(vec![u64::from(more)]))? == [0] {
            return Ok(misfit);
        }
        rounds.resize(&mut buffer);
        let mut parts = parts(&rounds, &mut buffer, file_len);
        let cut = |(i, span): (usize, &Span)| match span.end() > file_len {
            true => check_file_end(target, &rounds, requests, i, file_len.max(span.offset)),
            false => Ok(()),
        };
        let checked = rounds.spans.iter().enumerate().try_for_each(cut);
        target.file.read_all(GET, checked.map(|()| &mut parts[..]))?;
        decode(&rounds, requests, &buffer, &mut misfit);
    }
}

/// The spans of a round as parts of its buffer, up to the end of the file; puts zeros after that.
fn parts<'a>(rounds: &Rounds, mut buffer: &'a mut [u8], file_len: u64) -> Vec<(u64, &'a mut [u8])> {
    let mut parts = Vec::with_capacity(rounds.spans.len());
    for span in &rounds.spans {
        let (bytes, rest) = std::mem::take(&mut buffer).split_at_mut(span.len);
        buffer = rest;
        let there = (file_len.saturating_sub(span.offset)).min(span.len as u64) as usize;
        let (there, behind) = bytes.split_at_mut(there);
        behind.fill(0);
        if !there.is_empty() {
            parts.push((span.offset, there));
        }
    }
    parts
}

/// Returns an error if the file must not end in this span; it ends at `end`.
fn check_file_end<M>(
    target: &Target<'_>,
    rounds: &Rounds,
    requests: &[Request<'_, M>],
    span: usize,
    end: u64,
) -> Result<()> {
    if target.past_end == PastEnd::Zeros {
        return Ok(());
    }
    let Span { offset, buffer_at, .. } = rounds.spans[span];
    let cut_off = |piece: &&JoinedPiece| {
        let size = requests[piece.request].external();
        piece.span == span && offset + (piece.buffer_at - buffer_at) as u64 + piece.elements * size > end
    };
    match rounds.pieces.iter().find(cut_off) {
        Some(piece) => Err(cut_short(&requests[piece.request], target.file.len()?)),
        None => Ok(()),
    }
}

/// The error for a file that ends before a request does.
pub(super) fn cut_short<M>(request: &Request<'_, M>, end: u64) -> Error {
    let (name, needed) = (&request.var.name, request.extents.end());
    Code::Truncated
        .error(format!(
            "variable `{name}`: the file ends at byte {end}, but the requested elements end at byte {needed}"
        ))
        .with_hint("the file was cut, or its writer never wrote the variable: restore it, or write it again")
}

#[cfg(test)]
mod tests;
