//! Communicators of C: a table of functions as the trait that all collectives of Fieldstone use.
//!
//! `include/fieldstone_mpi.h`, compiled by the user's own mpicc, fills the table from an MPI communicator, so
//! this library links no MPI (C-4). The hard parts are done here: ranks exchange lengths before data, and no
//! call of the table moves more than [`ROUND`] bytes to or from a rank. Each function of the table is
//! therefore a single MPI call whose counts fit a 32-bit integer.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use fieldstone::env::comm::check::check;
use fieldstone::env::comm::rounds::{Piece, in_rounds, rounds};
use fieldstone::env::comm::{
    Comm, CommFile, CommReader, CommWriter, FileMode, Hints, Parts, PartsMut, Reduce, Step, Team,
};
use fieldstone::env::real::refuse_waiting;
use fieldstone::{Code, Env, Error, Result};

use crate::arguments::{result, text};
use crate::status::call;

/// The most bytes that one call of the table moves to or from one rank.
const ROUND: usize = 1 << 30;
/// The most bytes and parts that one collective call of a file moves from or to one rank.
const FILE_ROUND: usize = 64 << 20;
const FILE_PARTS: usize = 1 << 16;

/// The longest name of a host, with its zero byte.
const HOST: usize = 1 << 10;

/// The ranks of a job, as include/fieldstone_mpi.h makes them from an MPI communicator. Lists of bytes are
/// concatenated in the order of ranks. Every function returns 0 or a number of errno.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fs_comm {
    /// The first argument of each function; it must live until every container and job that uses it is
    /// closed.
    pub context: *mut c_void,
    /// This rank's number.
    pub rank: c_int,
    /// Number of ranks.
    pub size: c_int,
    /// Returns after all ranks have called it.
    pub barrier: Option<unsafe extern "C" fn(context: *mut c_void) -> c_int>,
    /// Sends the bytes of `root` to every rank.
    pub broadcast: Option<
        unsafe extern "C" fn(context: *mut c_void, root: c_int, data: *mut c_void, length: c_int) -> c_int,
    >,
    /// Collects the bytes of each rank on every rank, or, if `root` is at least 0, on that rank alone.
    pub gather: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            root: c_int,
            send: *const c_void,
            length: c_int,
            receive: *mut c_void,
            lengths: *const c_int,
            places: *const c_int,
        ) -> c_int,
    >,
    /// Sends each rank its own bytes.
    pub alltoall: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            send: *const c_void,
            send_lengths: *const c_int,
            send_places: *const c_int,
            receive: *mut c_void,
            lengths: *const c_int,
            places: *const c_int,
        ) -> c_int,
    >,
    /// Replaces each value by its sum over the lower ranks; the result on rank 0 is undefined.
    pub exscan: Option<unsafe extern "C" fn(context: *mut c_void, values: *mut u64, count: c_int) -> c_int>,
    /// Replaces each value by its sum (`max` 0) or maximum over all ranks.
    pub allreduce: Option<
        unsafe extern "C" fn(context: *mut c_void, max: c_int, values: *mut u64, count: c_int) -> c_int,
    >,
    /// Opens a file on all ranks: `mode` 0 creates it and fails if it exists, 1 reads, 2 reads and writes.
    pub file_open: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            path: *const c_char,
            mode: c_int,
            file: *mut *mut c_void,
        ) -> c_int,
    >,
    /// Writes at an offset. Not collective.
    pub file_write_at: Option<
        unsafe extern "C" fn(file: *mut c_void, data: *const c_void, length: c_int, offset: u64) -> c_int,
    >,
    /// Reads at an offset, and sets the number of bytes read. Not collective.
    pub file_read_at: Option<
        unsafe extern "C" fn(
            file: *mut c_void,
            data: *mut c_void,
            length: c_int,
            offset: u64,
            done: *mut c_int,
        ) -> c_int,
    >,
    /// Collective: writes `count` parts, concatenated in `data`, at ascending offsets. `several` is the same
    /// on all ranks: whether any of them has more than one part.
    pub file_write_all: Option<
        unsafe extern "C" fn(
            file: *mut c_void,
            several: c_int,
            count: c_int,
            offsets: *const u64,
            lengths: *const c_int,
            data: *const c_void,
        ) -> c_int,
    >,
    /// Collective: as `file_write_all`, but reads.
    pub file_read_all: Option<
        unsafe extern "C" fn(
            file: *mut c_void,
            several: c_int,
            count: c_int,
            offsets: *const u64,
            lengths: *const c_int,
            data: *mut c_void,
        ) -> c_int,
    >,
    /// Sets `length` to the length of the file. Not collective.
    pub file_length: Option<unsafe extern "C" fn(file: *mut c_void, length: *mut u64) -> c_int>,
    /// Collective: shortens the file, or extends it with a hole.
    pub file_set_length: Option<unsafe extern "C" fn(file: *mut c_void, length: u64) -> c_int>,
    /// Collective: makes all ranks' writes durable.
    pub file_sync: Option<unsafe extern "C" fn(file: *mut c_void) -> c_int>,
    /// Collective: closes the file. No later call uses it.
    pub file_close: Option<unsafe extern "C" fn(file: *mut c_void) -> c_int>,
    /// As `file_open`, with `count` hints by key and value, the same on all ranks. May be null; hints are
    /// then ignored.
    pub file_open_with: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            path: *const c_char,
            mode: c_int,
            count: c_int,
            keys: *const *const c_char,
            values: *const *const c_char,
            file: *mut *mut c_void,
        ) -> c_int,
    >,
    /// Writes the hints in force into the `room` bytes of `text`: keys and values in turn, each followed by a
    /// zero byte. Sets `length` to the bytes that all of them take; if that exceeds `room`, some are left
    /// out. May be null.
    pub file_hints: Option<
        unsafe extern "C" fn(file: *mut c_void, room: c_int, text: *mut c_char, length: *mut c_int) -> c_int,
    >,
    /// Writes the name of this rank's host and a zero byte into the `room` bytes of `name`. May be null, on
    /// all ranks or none.
    pub host: Option<unsafe extern "C" fn(context: *mut c_void, room: c_int, name: *mut c_char) -> c_int>,
}

// SAFETY: the caller promises that any thread that calls us may call the table's functions. The addresses in
// the table are only passed to those functions and never followed here.
unsafe impl Send for fs_comm {}
// SAFETY: as above.
unsafe impl Sync for fs_comm {}

/// Checks every call of a communicator, with parts of about `length` bytes and a new file `path`, which stays
/// behind empty. Collective. Sets `steps` (may be null) to the number of steps that the ranks agreed on. With
/// a `failing_rank` of at least 0, step `failing_step` of that rank (from 1) fails on purpose.
///
/// Fails on every rank if any rank finds a fault; the message names that rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_comm_check(
    comm: *const fs_comm,
    path: *const c_char,
    length: usize,
    failing_rank: c_int,
    failing_step: u64,
    steps: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes a table and a text that ends in a zero byte, or null.
        let (comm, path) = (unsafe { ranks(comm) }?, unsafe { text(path, "path") }?);
        let comm = comm.ok_or_else(|| Code::Argument.error("the communicator is null"))?;
        let fails = usize::try_from(failing_rank).ok().map(|rank| (rank, failing_step));
        let taken = check(comm, Path::new(path), length, fails)?;
        if !steps.is_null() {
            // SAFETY: not null, and the caller passes a place for a number.
            *unsafe { result(steps, 0, "steps") }? = taken;
        }
        Ok(())
    })
}

/// The ranks of a table; `None` for a null pointer.
///
/// # Safety
/// `comm` is null or leads to a table whose functions do what their documentation says.
pub unsafe fn ranks(comm: *const fs_comm) -> Result<Option<Arc<dyn Comm>>> {
    if comm.is_null() {
        return Ok(None);
    }
    if !comm.is_aligned() {
        return Err(Code::Argument.error(format!("the communicator at {comm:p} is not aligned to its type")));
    }
    // SAFETY: not null, aligned, and the caller promises that it leads to a table.
    let table = unsafe { *comm };
    let (rank, size) = (usize::try_from(table.rank), usize::try_from(table.size));
    match (rank, size) {
        (Ok(rank), Ok(size)) if rank < size => Ok(Some(Arc::new(TableComm { table, rank, size }))),
        _ => Err(Code::Argument
            .error(format!("rank {} of {} is not a valid communicator", table.rank, table.size))),
    }
}

/// Reports an argument that this rank refused before it entered a collective call: the other ranks get the
/// error in the same step.
pub fn refuse<T>(comm: Option<&Arc<dyn Comm>>, step: impl Into<Step>, error: Error) -> Result<T> {
    let step = step.into();
    match comm {
        None => Err(error),
        Some(comm) => Team::new(comm.clone()).agree(step, Err(error)),
    }
}

/// Calls a function of a table. A missing function is `Unsupported`; otherwise returns its errno.
macro_rules! ask {
    ($table:expr, $function:ident ( $($argument:expr),* $(,)? )) => {
        match $table.$function {
            None => Err(io::Error::from(io::ErrorKind::Unsupported)),
            // SAFETY: by the promise of `ranks`; the memory in the arguments is ours during the call.
            Some(function) => match unsafe { function($($argument),*) } {
                0 => Ok(()),
                number => Err(io::Error::from_raw_os_error(number)),
            },
        }
    };
}

/// A number that the table takes as a C int; [`ROUND`] keeps it small enough.
fn int(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// For parts of these lengths, the lengths and positions of the pieces in the round that begins at `begin` of
/// each part, and their total.
fn chunk_of(lengths: &[usize], begin: usize, chunk: usize) -> (Vec<c_int>, Vec<c_int>, usize) {
    let mut total = 0;
    let mut places = Vec::with_capacity(lengths.len());
    let mut counts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let count = length.saturating_sub(begin).min(chunk);
        places.push(int(total));
        counts.push(int(count));
        total += count;
    }
    (counts, places, total)
}

/// The ranks of a table of functions.
struct TableComm {
    table: fs_comm,
    rank: usize,
    size: usize,
}

impl fmt::Debug for TableComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} of a table of functions", self.rank, self.size)
    }
}

impl TableComm {
    fn failed(&self, what: &str, cause: &io::Error) -> Error {
        Code::RankFailed.error(format!("rank {} of the communicator failed in {what}: {cause}", self.rank))
    }

    fn chunk(&self) -> usize {
        // The parts of all ranks in one round share a buffer, whose positions are C ints.
        (ROUND / self.size).max(1)
    }

    /// The bytes of each rank, on `root` or, without one, on all ranks.
    fn gathered(&self, root: Option<usize>, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut known = vec![0u64; self.size];
        known[self.rank] = data.len() as u64;
        // Each rank knows only its own length and has 0 for the others, so the maximum gives all lengths.
        self.allreduce(Reduce::Max, &mut known)?;
        let lengths: Vec<usize> = known.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        let receives = root.is_none_or(|root| root == self.rank);
        let mut parts = vec![Vec::new(); if receives { self.size } else { 0 }];
        let most = lengths.iter().copied().max().unwrap_or(0);
        for begin in (0..most).step_by(self.chunk()) {
            let (counts, places, total) = chunk_of(&lengths, begin, self.chunk());
            let mut buffer = vec![0u8; if receives { total } else { 0 }];
            let own = data.get(begin..).unwrap_or(&[]);
            let own = &own[..own.len().min(self.chunk())];
            ask!(
                self.table,
                gather(
                    self.table.context,
                    root.map_or(-1, int),
                    address(own),
                    int(own.len()),
                    address_mut(&mut buffer),
                    counts.as_ptr(),
                    places.as_ptr(),
                )
            )
            .map_err(|cause| self.failed("gather", &cause))?;
            append(&mut parts, &buffer, &counts);
        }
        Ok(parts)
    }

    /// Exchanges parts that are too long for one call of the table.
    fn copied(&self, sent: Parts<'_>, taken: PartsMut<'_>, longest: usize) -> Result<()> {
        let (mut rest, mut parts) = (sent.bytes, Vec::with_capacity(self.size));
        for len in sent.lens {
            let (part, behind) = rest.split_at(*len);
            parts.push(part.to_vec());
            rest = behind;
        }
        let mut rest = taken.bytes;
        for part in self.in_rounds(&parts, taken.lens, longest)? {
            let (into, behind) = rest.split_at_mut(part.len());
            into.copy_from_slice(&part);
            rest = behind;
        }
        Ok(())
    }

    fn in_rounds(&self, parts: &[Vec<u8>], incoming: &[usize], most: usize) -> Result<Vec<Vec<u8>>> {
        let outgoing: Vec<usize> = parts.iter().map(Vec::len).collect();
        let mut received = vec![Vec::new(); self.size];
        for begin in (0..most).step_by(self.chunk()) {
            let (sent, send_places, outgoing_total) = chunk_of(&outgoing, begin, self.chunk());
            let (counts, places, total) = chunk_of(incoming, begin, self.chunk());
            let mut send = Vec::with_capacity(outgoing_total);
            for part in parts {
                let rest = part.get(begin..).unwrap_or(&[]);
                send.extend_from_slice(&rest[..rest.len().min(self.chunk())]);
            }
            let mut buffer = vec![0u8; total];
            ask!(
                self.table,
                alltoall(
                    self.table.context,
                    address(&send),
                    sent.as_ptr(),
                    send_places.as_ptr(),
                    address_mut(&mut buffer),
                    counts.as_ptr(),
                    places.as_ptr(),
                )
            )
            .map_err(|cause| self.failed("alltoall", &cause))?;
            append(&mut received, &buffer, &counts);
        }
        Ok(received)
    }
}

/// The address of an empty buffer in calls of the table: Rust's own is 1, which Open MPI takes for "in
/// place".
static EMPTY: u64 = 0;

fn address(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() { (&raw const EMPTY).cast() } else { bytes.as_ptr().cast() }
}

/// The table never writes to the address of an empty buffer.
fn address_mut(bytes: &mut [u8]) -> *mut c_void {
    if bytes.is_empty() { address(bytes).cast_mut() } else { bytes.as_mut_ptr().cast() }
}

/// Appends to each part the bytes that a round brought for it.
fn append(parts: &mut [Vec<u8>], mut buffer: &[u8], counts: &[c_int]) {
    for (part, count) in parts.iter_mut().zip(counts) {
        let (piece, rest) = buffer.split_at(usize::try_from(*count).unwrap_or(0).min(buffer.len()));
        part.extend_from_slice(piece);
        buffer = rest;
    }
}

impl Comm for TableComm {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }
    fn barrier(&self) -> Result<()> {
        ask!(self.table, barrier(self.table.context)).map_err(|cause| self.failed("barrier", &cause))
    }
    fn broadcast(&self, root: usize, data: Vec<u8>, len: usize) -> Result<Vec<u8>> {
        let mut data = if root == self.rank { data } else { vec![0; len] };
        for part in data.chunks_mut(ROUND) {
            let (start, length) = (part.as_mut_ptr().cast(), int(part.len()));
            ask!(self.table, broadcast(self.table.context, int(root), start, length))
                .map_err(|cause| self.failed("broadcast", &cause))?;
        }
        Ok(data)
    }
    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.gathered(None, data)
    }
    fn gather(&self, root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.gathered(Some(root), data)
    }
    fn exscan(&self, values: &mut [u64]) -> Result<()> {
        let (start, count) = (values.as_mut_ptr(), int(values.len()));
        ask!(self.table, exscan(self.table.context, start, count))
            .map_err(|cause| self.failed("exscan", &cause))?;
        if self.rank == 0 {
            values.fill(0);
        }
        Ok(())
    }
    fn allreduce(&self, reduce: Reduce, values: &mut [u64]) -> Result<()> {
        let (start, count) = (values.as_mut_ptr(), int(values.len()));
        let max = c_int::from(reduce == Reduce::Max);
        ask!(self.table, allreduce(self.table.context, max, start, count))
            .map_err(|cause| self.failed("allreduce", &cause))
    }
    fn alltoallv(&self, parts: Vec<Vec<u8>>, longest: usize) -> Result<Vec<Vec<u8>>> {
        if parts.len() != self.size {
            let given = parts.len();
            return Err(Error::invalid(format!("alltoallv with {given} parts for {} ranks", self.size)));
        }
        let lengths: Vec<Vec<u8>> = parts.iter().map(|p| (p.len() as u64).to_ne_bytes().to_vec()).collect();
        let incoming = self.in_rounds(&lengths, &vec![8; self.size], 8)?;
        let number = |bytes: Vec<u8>| bytes.try_into().map_or(0, |bytes| u64::from_ne_bytes(bytes) as usize);
        let incoming: Vec<usize> = incoming.into_iter().map(number).collect();
        self.in_rounds(&parts, &incoming, longest)
    }
    fn exchange(&self, sent: Parts<'_>, taken: PartsMut<'_>, longest: usize) -> Result<()> {
        if sent.lens.len() != self.size || taken.lens.len() != self.size {
            let (given, asked) = (sent.lens.len(), taken.lens.len());
            return Err(Error::internal(format!("{given} and {asked} parts for {} ranks", self.size)));
        }
        let (sent_lens, sent_places, sent_total) = chunk_of(sent.lens, 0, ROUND);
        let (lens, places, total) = chunk_of(taken.lens, 0, ROUND);
        if sent_total > sent.bytes.len() || total > taken.bytes.len() {
            return Err(Error::internal("parts that are longer than their bytes"));
        }
        if longest > self.chunk() {
            return self.copied(sent, taken, longest);
        }
        // Moves the bytes from their old positions to their new ones in one call.
        ask!(
            self.table,
            alltoall(
                self.table.context,
                address(sent.bytes),
                sent_lens.as_ptr(),
                sent_places.as_ptr(),
                address_mut(taken.bytes),
                lens.as_ptr(),
                places.as_ptr(),
            )
        )
        .map_err(|cause| self.failed("alltoall", &cause))
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        self.open_with(path, mode, &Hints::default())
    }
    fn host(&self) -> Option<String> {
        let mut name = vec![0u8; HOST];
        ask!(self.table, host(self.table.context, int(HOST), name.as_mut_ptr().cast())).ok()?;
        let end = name.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&name[..end]).into_owned())
    }
    fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
        let (action, number) = match mode {
            FileMode::CreateNew => ("create", 0),
            FileMode::Read => ("open", 1),
            FileMode::ReadWrite => ("open", 2),
        };
        let failed = |cause| Error::io(action, path, cause);
        // MPI would take a prefix with a colon in a relative path for the name of a file system.
        let absolute = Env::real().disk.absolute(path).map_err(failed)?;
        refuse_waiting(&absolute).map_err(failed)?;
        let name = CString::new(absolute.as_os_str().as_bytes())
            .map_err(|_| Code::Name.error(format!("{} holds a zero byte", path.display())))?;
        let mut file = std::ptr::null_mut();
        if hints.is_empty() || self.table.file_open_with.is_none() {
            ask!(self.table, file_open(self.table.context, name.as_ptr(), number, &mut file))
                .map_err(failed)?;
        } else {
            // Neither holds a zero byte: `Hints` checked that.
            let texts: Vec<(CString, CString)> = hints
                .iter()
                .filter_map(|(key, value)| Some((CString::new(key).ok()?, CString::new(value).ok()?)))
                .collect();
            let (keys, values): (Vec<_>, Vec<_>) =
                texts.iter().map(|(key, value)| (key.as_ptr(), value.as_ptr())).unzip();
            let (keys, values, count) = (keys.as_ptr(), values.as_ptr(), int(texts.len()));
            ask!(
                self.table,
                file_open_with(self.table.context, name.as_ptr(), number, count, keys, values, &mut file)
            )
            .map_err(failed)?;
        }
        let comm = TableComm { table: self.table, rank: self.rank, size: self.size };
        Ok(Arc::new(TableFile { comm, file: Address(file), path: path.to_owned(), open: RwLock::new(true) }))
    }
}

/// The table's address of a file.
#[derive(Debug, Clone, Copy)]
struct Address(*mut c_void);

// SAFETY: it is never followed here, only passed back to the table; see `fs_comm`.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// A file of a table.
#[derive(Debug)]
struct TableFile {
    comm: TableComm,
    file: Address,
    path: PathBuf,
    /// Every call holds it for reading, so that no call uses an address that the table has taken back.
    open: RwLock<bool>,
}

impl TableFile {
    fn failed(&self, action: &str, cause: io::Error) -> Error {
        Error::io(action, &self.path, cause)
    }

    fn length(&self) -> Result<u64> {
        let mut length = 0;
        ask!(self.comm.table, file_length(self.file.0, &mut length))
            .map_err(|cause| self.failed("stat", cause))?;
        Ok(length)
    }

    fn using(&self) -> Result<RwLockReadGuard<'_, bool>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match *open {
            true => Ok(open),
            false => Err(self.was_closed()),
        }
    }

    fn was_closed(&self) -> Error {
        Code::Closed.error(format!("{} was closed", self.path.display()))
    }
}

/// The arguments that one round of a file passes to the table.
fn listed(round: &[Piece], offset_of: impl Fn(usize) -> u64) -> (Vec<u64>, Vec<c_int>, usize) {
    let offsets = round.iter().map(|piece| offset_of(piece.part) + piece.begin as u64).collect();
    let lengths = round.iter().map(|piece| int(piece.end - piece.begin)).collect();
    (offsets, lengths, round.iter().map(|piece| piece.end - piece.begin).sum())
}

impl CommReader for TableFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let _using = self.using()?;
        let mut total = 0;
        for part in buffer.chunks_mut(ROUND) {
            let (start, length) = (part.as_mut_ptr().cast(), int(part.len()));
            let mut done = 0;
            let at = offset.saturating_add(total as u64);
            ask!(self.comm.table, file_read_at(self.file.0, start, length, at, &mut done))
                .map_err(|cause| self.failed("read", cause))?;
            let done = usize::try_from(done).unwrap_or(0).min(part.len());
            total += done;
            if done < part.len() {
                break;
            }
        }
        Ok(total)
    }

    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let _using = self.using()?;
        // MPI does not report reliably how many bytes of a view exist.
        let end = parts.iter().map(|(offset, part)| offset.saturating_add(part.len() as u64)).max();
        let there = self.length().and_then(|len| match end.is_some_and(|end| end > len) {
            true => Err(self.failed("read", io::ErrorKind::UnexpectedEof.into())),
            false => Ok(()),
        });
        let lengths = parts.iter().map(|(_, part)| part.len());
        // A rank that fails still takes part in the collective rounds, without bytes, so that no other
        // waits.
        let own = if there.is_ok() { rounds(lengths, FILE_ROUND, FILE_PARTS) } else { Vec::new() };
        let read = in_rounds(&self.comm, &own, |round, several| {
            let (offsets, lengths, total) = listed(round, |part| parts[part].0);
            let mut data = vec![0u8; total];
            ask!(
                self.comm.table,
                file_read_all(
                    self.file.0,
                    c_int::from(several),
                    int(round.len()),
                    offsets.as_ptr(),
                    lengths.as_ptr(),
                    address_mut(&mut data),
                )
            )
            .map_err(|cause| self.failed("read", cause))?;
            let mut rest = &data[..];
            for piece in round {
                let (own, after) = rest.split_at(piece.end - piece.begin);
                parts[piece.part].1[piece.begin..piece.end].copy_from_slice(own);
                rest = after;
            }
            Ok(())
        });
        there.and(read)
    }

    fn len(&self) -> Result<u64> {
        let _using = self.using()?;
        self.length()
    }
}

impl CommWriter for TableFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let _using = self.using()?;
        for (n, part) in data.chunks(ROUND).enumerate() {
            let at = offset.saturating_add((n * ROUND) as u64);
            let (start, length) = (part.as_ptr().cast(), int(part.len()));
            ask!(self.comm.table, file_write_at(self.file.0, start, length, at))
                .map_err(|cause| self.failed("write", cause))?;
        }
        Ok(())
    }

    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        let _using = self.using()?;
        let own = rounds(parts.iter().map(|(_, data)| data.len()), FILE_ROUND, FILE_PARTS);
        in_rounds(&self.comm, &own, |round, several| {
            let (offsets, lengths, _) = listed(round, |part| parts[part].0);
            let data: Vec<u8> =
                round.iter().flat_map(|p| &parts[p.part].1[p.begin..p.end]).copied().collect();
            ask!(
                self.comm.table,
                file_write_all(
                    self.file.0,
                    c_int::from(several),
                    int(round.len()),
                    offsets.as_ptr(),
                    lengths.as_ptr(),
                    address(&data),
                )
            )
            .map_err(|cause| self.failed("write", cause))
        })
    }
}

impl CommFile for TableFile {
    fn set_len(&self, len: u64) -> Result<()> {
        let _using = self.using()?;
        ask!(self.comm.table, file_set_length(self.file.0, len))
            .map_err(|cause| self.failed("set the length of", cause))
    }

    fn sync(&self) -> Result<()> {
        let _using = self.using()?;
        let sync =
            || ask!(self.comm.table, file_sync(self.file.0)).map_err(|cause| self.failed("sync", cause));
        // The first sync hands over this rank's writes. After all ranks have done so, the second makes the
        // others' visible.
        let handed = sync();
        let met = self.comm.barrier();
        handed.and(met).and(sync())
    }

    fn make_durable(&self) -> Result<()> {
        let _using = self.using()?;
        ask!(self.comm.table, file_sync(self.file.0)).map_err(|cause| self.failed("sync", cause))
    }

    fn taken_hints(&self) -> Result<Hints> {
        let _using = self.using()?;
        let Some(function) = self.comm.table.file_hints else { return Ok(Hints::default()) };
        let (mut text, mut length) = (vec![0u8; 1 << 12], 0);
        loop {
            // SAFETY: by the promise of `ranks`; `text` has as much room as `room` says, and both are ours
            // during the call.
            let number =
                unsafe { function(self.file.0, int(text.len()), text.as_mut_ptr().cast(), &mut length) };
            if number != 0 {
                return Err(self.failed("ask for the hints of", io::Error::from_raw_os_error(number)));
            }
            let length = usize::try_from(length).unwrap_or(0);
            if length <= text.len() {
                text.truncate(length);
                break;
            }
            text.resize(length, 0);
        }
        let texts: Vec<String> =
            text.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        Ok(Hints::given(texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()))))
    }

    fn close(&self) -> Result<()> {
        // Calls that other threads have begun finish first; of two closing threads, one closes.
        let was_open =
            std::mem::replace(&mut *self.open.write().unwrap_or_else(PoisonError::into_inner), false);
        if !was_open {
            return Err(self.was_closed());
        }
        ask!(self.comm.table, file_close(self.file.0)).map_err(|cause| self.failed("close", cause))
    }
}
