//! Moves one long run in pieces that stay in the cache: it reads a piece directly to its destination and swaps its
//! bytes there, or swaps into a small buffer and writes from that.
//!
//! If the file allows it, two threads share the pieces, so that one swaps bytes while the other is in a system call.
//! They need no further coordination: pieces do not overlap, and either thread may take any piece.
//!
//! Invariants: in addition to the caller's memory, each thread holds at most [`ALONE`] bytes; the first error ends
//! the work; if several values do not fit, the error names the first one in memory order.

use std::sync::OnceLock;
use std::thread;

use fieldstone_core::sync::Mutex;
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::extents::{Extents, Run};
use fieldstone_format::netcdf::values::{Misfit, turn};

use fieldstone_core::env::comm::TeamFile;

use super::join;
use super::request::{ALONE, PastEnd, Request, Target};

/// From this many bytes on, a second thread is worth its start.
const SHARED: u64 = 1 << 23;

/// Memory that can be split in two.
trait Memory: Default {
    fn cut(self, at: usize) -> (Self, Self);
}

impl Memory for &[u8] {
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }
}

impl Memory for &mut [u8] {
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }
}

/// Elements at `offset` in the file; the first one has index `at` in the request.
struct StreamPiece<M> {
    offset: u64,
    at: u64,
    memory: M,
}

/// The pieces left to do.
struct Pieces<M> {
    extents: Extents,
    run: Option<Run>,
    memory: M,
    most: u64,
    external: u64,
    internal: usize,
}

impl<M: Memory> Pieces<M> {
    fn new<R>(request: &Request<'_, R>, memory: M) -> Pieces<M> {
        let (external, internal) = (request.external(), request.internal());
        let most = ALONE as u64 / external.max(internal as u64);
        let mut extents = request.extents.clone();
        Pieces { run: extents.next(), extents, memory, most, external, internal }
    }

    fn next(&mut self) -> Option<StreamPiece<M>> {
        let run = self.run?;
        let take = run.elements.min(self.most);
        let (memory, rest) = std::mem::take(&mut self.memory).cut(take as usize * self.internal);
        self.memory = rest;
        self.run = match run.elements - take {
            0 => self.extents.next(),
            elements => Some(Run { offset: run.offset + take * self.external, elements, at: run.at + take }),
        };
        Some(StreamPiece { offset: run.offset, at: run.at, memory })
    }
}

/// Runs `job` for all pieces; each worker has its own buffer.
fn each<M: Memory + Send>(
    pieces: Pieces<M>,
    workers: usize,
    job: impl Fn(&mut Vec<u8>, StreamPiece<M>) -> Result<Option<Misfit>> + Sync,
) -> Result<Option<Misfit>> {
    let pieces = Mutex::new(pieces);
    let next = || pieces.lock().next();
    let work = || -> Result<Option<Misfit>> {
        let (mut buffer, mut first) = (Vec::new(), None);
        while let Some(piece) = next() {
            let at = piece.at;
            match job(&mut buffer, piece) {
                Ok(misfit) => {
                    let misfit = misfit.map(|misfit| Misfit { index: misfit.index + at, ..misfit });
                    first = earlier(first, misfit);
                }
                Err(error) => {
                    // Stop the other worker, too.
                    pieces.lock().run = None;
                    return Err(error);
                }
            }
        }
        Ok(first)
    };
    thread::scope(|scope| {
        // If no thread can be started, this one does all the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..workers).filter_map(spawn).collect();
        let mut outcome = work();
        for other in others {
            let other =
                other.join().unwrap_or_else(|_| Err(Error::internal("a thread that moves data ended early")));
            outcome = match (outcome, other) {
                (Ok(one), Ok(other)) => Ok(earlier(one, other)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
        outcome
    })
}

fn earlier(one: Option<Misfit>, other: Option<Misfit>) -> Option<Misfit> {
    one.into_iter().chain(other).min_by_key(|misfit| misfit.index)
}

fn workers(file: &TeamFile, bytes: u64) -> usize {
    // The query reads several files.
    static CORES: OnceLock<usize> = OnceLock::new();
    if bytes < SHARED || !file.is_concurrent() {
        return 1;
    }
    (*CORES.get_or_init(|| thread::available_parallelism().map_or(1, |cores| cores.get()))).min(2)
}

/// Writes one request, on this rank alone.
pub(super) fn put(file: &TeamFile, request: &Request<'_, &[u8]>) -> Result<Option<Misfit>> {
    let (external, internal) = (request.external() as usize, request.internal());
    each(Pieces::new(request, request.memory), workers(file, request.bytes()), |buffer, piece| {
        let len = piece.memory.len() / internal * external;
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let bytes = &mut buffer[..len];
        let misfit = request.conversion.write(piece.memory, bytes, request.fill);
        file.write_at(bytes, piece.offset)?;
        Ok(misfit)
    })
}

/// Reads one request, on this rank alone.
pub(super) fn get(target: &Target<'_>, request: &mut Request<'_, &mut [u8]>) -> Result<Option<Misfit>> {
    let memory = std::mem::take(&mut request.memory);
    let (external, internal) = (request.external() as usize, request.internal());
    let request = &*request;
    let read = |bytes: &mut [u8], offset: u64| {
        let n = target.file.read_at(bytes, offset)?;
        if n < bytes.len() {
            bytes[n..].fill(0);
            if target.past_end == PastEnd::Corrupt {
                return Err(join::cut_short(request, target.file.len()?));
            }
        }
        Ok(())
    };
    each(Pieces::new(request, memory), workers(target.file, request.bytes()), |buffer, piece| {
        if request.conversion.copies() {
            read(piece.memory, piece.offset)?;
            turn(external, piece.memory);
            return Ok(None);
        }
        let len = piece.memory.len() / internal * external;
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        read(&mut buffer[..len], piece.offset)?;
        Ok(request.conversion.read(&buffer[..len], piece.memory, request.fill))
    })
}
