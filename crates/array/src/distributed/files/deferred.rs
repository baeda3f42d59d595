//! Writes that a thread makes while the job computes.
//!
//! A [`DeferredFile`] is a layer over a group's file whose `write_at` copies the bytes into a queue and returns. One
//! thread of the rank, that of the [`DeferredWriter`], takes them out again: it writes through a handle of its own on
//! the same path, asks for write-back, and begins the sync once all data of a call are written. So the exchange
//! happens in the call, and the output after it.
//!
//! Invariants:
//! * the thread does not call the communicator: it waits for no rank;
//! * the queue, with the bytes being written, holds at most the bytes for which it was made; a call that brings more
//!   waits;
//! * writes of one rank happen in order; reads and syncs through the layer, and collective transfers, see them done;
//!   writes of different ranks have no order before [`settle`](DeferredFile::settle) and a visibility barrier;
//! * the first error of a file ends its writes; every call returns it until [`finish`](DeferredFile::finish) or
//!   [`discard`](DeferredFile::discard) takes it;
//! * dropping a file or the writer does not wait: queued bytes are discarded.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use fieldstone_core::env::comm::layer::FileLayer;
use fieldstone_core::env::comm::{CommFile, TeamFile};
use fieldstone_core::env::{DiskFile, write_all_at};
use fieldstone_core::sync::{Condvar, Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};

/// Bytes that wait to be written.
#[derive(Debug)]
struct QueuedWrite {
    file: u64,
    offset: u64,
    bytes: Vec<u8>,
}

/// The state of a file with deferred writes.
#[derive(Debug)]
struct DeferredState {
    handle: Arc<dyn DiskFile>,
    path: PathBuf,
    /// Writes that are queued or in progress.
    pending: usize,
    /// Whether a sync was requested and has not begun.
    unsynced: bool,
    syncing: bool,
    /// Number of callers that are about to sync the file themselves.
    finishing: usize,
    failed: Option<Error>,
}

#[derive(Debug, Default)]
struct WriterState {
    queue: VecDeque<QueuedWrite>,
    /// Bytes that are queued or being written.
    bytes: usize,
    /// Memory of completed writes, for the next ones: new pages cost more than the copy into them.
    spare: Vec<Vec<u8>>,
    files: BTreeMap<u64, DeferredState>,
    next: u64,
    /// Whether the thread was started, and whether it has ended.
    started: bool,
    ended: bool,
    closed: bool,
}

#[derive(Debug)]
struct WriterQueue {
    state: Mutex<WriterState>,
    moved: Condvar,
    buffer: usize,
}

impl WriterQueue {
    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock()
    }

    fn wait<'a>(&self, state: MutexGuard<'a, WriterState>) -> MutexGuard<'a, WriterState> {
        self.moved.wait(state)
    }
}

/// The writing thread of a rank, and its queue. The first write starts the thread.
#[derive(Debug)]
pub struct DeferredWriter {
    shared: Arc<WriterQueue>,
}

impl DeferredWriter {
    /// Makes a queue of `buffer` bytes, or of one write if that is more.
    pub fn new(buffer: usize) -> Arc<DeferredWriter> {
        let (state, moved) = (Mutex::default(), Condvar::new());
        Arc::new(DeferredWriter { shared: Arc::new(WriterQueue { state, moved, buffer: buffer.max(1) }) })
    }

    /// Bytes that are queued or being written.
    pub fn queued(&self) -> usize {
        self.shared.lock().bytes
    }

    fn start(&self, state: &mut WriterState) -> Result<()> {
        if !state.started {
            let shared = self.shared.clone();
            let started = thread::Builder::new().name("fieldstone-writer".into()).spawn(move || run(&shared));
            started.map_err(|cause| {
                Code::Unavailable
                    .error(format!("no thread for writes with wait=False: {cause}"))
                    .with_hint("write with wait=True, or allow this process more threads")
            })?;
            state.started = true;
        }
        Ok(())
    }
}

impl WriterState {
    /// Memory for a write of `len` bytes; limits the spare memory to the part of `room` that the queue leaves.
    fn memory(&mut self, len: usize, room: usize) -> Vec<u8> {
        let fits = self.spare.iter().position(|spare| spare.capacity() >= len);
        let mut memory = fits.map_or_else(Vec::new, |place| self.spare.swap_remove(place));
        memory.clear();
        self.trim(room);
        memory
    }

    /// Frees spare memory until the rest fits.
    fn trim(&mut self, room: usize) {
        let mut spare: usize = self.spare.iter().map(Vec::capacity).sum();
        while spare > room.saturating_sub(self.bytes) {
            spare -= self.spare.pop().map_or(spare, |memory| memory.capacity());
        }
    }
}

impl Drop for DeferredWriter {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.queue.clear();
        state.spare.clear();
        self.shared.moved.notify_all();
    }
}

/// Records that the thread has ended, in whatever way.
struct Ending<'a>(&'a WriterQueue);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.moved.notify_all();
    }
}

/// The thread's next task.
enum Task {
    Write(QueuedWrite, Arc<dyn DiskFile>),
    Sync(u64, Arc<dyn DiskFile>),
}

fn run(shared: &WriterQueue) {
    let _ending = Ending(shared);
    while let Some(task) = next(shared) {
        match task {
            Task::Write(write, handle) => {
                let outcome = write_all_at(&*handle, &write.bytes, write.offset);
                if outcome.is_ok() {
                    handle.start_writeback(write.offset, write.bytes.len() as u64);
                }
                let (file, bytes) = (write.file, write.bytes.len());
                shared.lock().spare.push(write.bytes);
                done(shared, file, bytes, outcome.map_err(|cause| ("write", cause)));
            }
            Task::Sync(file, handle) => {
                let outcome = handle.sync_data().map_err(|cause| ("sync", cause));
                done(shared, file, 0, outcome);
            }
        }
    }
}

/// Waits for a task; `None` once the writer is gone.
fn next(shared: &WriterQueue) -> Option<Task> {
    let mut state = shared.lock();
    loop {
        if state.closed {
            return None;
        }
        if let Some(write) = state.queue.pop_front() {
            let handle = state.files.get(&write.file).filter(|file| file.failed.is_none());
            match handle.map(|file| file.handle.clone()) {
                Some(handle) => return Some(Task::Write(write, handle)),
                None => {
                    // After a failure, nothing more of a file is written.
                    taken(shared, &mut state, write.file, write.bytes.len());
                    continue;
                }
            }
        }
        let idle = state.files.iter_mut().find(|(_, file)| {
            file.unsynced && file.pending == 0 && file.finishing == 0 && file.failed.is_none()
        });
        if let Some((number, file)) = idle {
            (file.unsynced, file.syncing) = (false, true);
            return Some(Task::Sync(*number, file.handle.clone()));
        }
        state = shared.wait(state);
    }
}

fn taken(shared: &WriterQueue, state: &mut WriterState, file: u64, bytes: usize) {
    state.bytes -= bytes;
    state.trim(shared.buffer);
    if let Some(file) = state.files.get_mut(&file) {
        file.pending -= 1;
    }
    shared.moved.notify_all();
}

fn done(
    shared: &WriterQueue,
    number: u64,
    bytes: usize,
    outcome: std::result::Result<(), (&'static str, std::io::Error)>,
) {
    let mut state = shared.lock();
    if let Some(file) = state.files.get_mut(&number) {
        match outcome {
            Ok(()) => {}
            Err((action, cause)) => {
                let error = Error::io(action, &file.path, cause);
                file.failed.get_or_insert(error);
            }
        }
        if bytes == 0 {
            file.syncing = false;
        }
    }
    match bytes {
        0 => shared.moved.notify_all(),
        _ => taken(shared, &mut state, number, bytes),
    }
}

/// A file for which the thread makes writes at an offset. See the module's documentation.
#[derive(Debug)]
pub struct DeferredFile {
    below: Arc<dyn CommFile>,
    writer: Arc<DeferredWriter>,
    number: u64,
}

impl DeferredFile {
    /// Adds a layer to the file that defers writes; the thread makes them through `handle`, a handle of this rank's
    /// own on the same `path`. Returns the file, and the layer. On this rank alone.
    pub fn over(
        file: &TeamFile,
        writer: &Arc<DeferredWriter>,
        handle: Arc<dyn DiskFile>,
        path: &Path,
    ) -> (TeamFile, Arc<DeferredFile>) {
        let mut state = writer.shared.lock();
        let number = state.next;
        state.next += 1;
        let path = path.to_owned();
        let (pending, finishing, unsynced, syncing, failed) = (0, 0, false, false, None);
        let known = DeferredState { handle, path, pending, unsynced, syncing, finishing, failed };
        state.files.insert(number, known);
        drop(state);
        let deferred = Arc::new(DeferredFile { below: file.below(), writer: writer.clone(), number });
        (file.over(deferred.clone()), deferred)
    }

    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.writer.shared.lock()
    }

    /// Waits until `is_done` holds for the file.
    fn wait_for<'a>(
        &'a self,
        mut state: MutexGuard<'a, WriterState>,
        is_done: impl Fn(&DeferredState) -> bool,
    ) -> (MutexGuard<'a, WriterState>, Result<()>) {
        while state.files.get(&self.number).is_some_and(|file| !is_done(file)) {
            if state.ended {
                return (
                    state,
                    Err(Error::internal("the thread that writes has ended before its work was done")),
                );
            }
            state = self.writer.shared.wait(state);
        }
        (state, Ok(()))
    }

    fn failed(&self, state: &WriterState) -> Result<()> {
        let failed = state.files.get(&self.number).and_then(|file| file.failed.as_ref());
        failed.map_or(Ok(()), |error| Err(error.replicate()))
    }

    /// All data of a call are queued: the sync begins once they are written.
    pub fn sync_soon(&self) {
        if let Some(file) = self.lock().files.get_mut(&self.number) {
            file.unsynced = true;
        }
        self.writer.shared.moved.notify_all();
    }

    /// The first error so far. It stays.
    pub fn check(&self) -> Result<()> {
        self.failed(&self.lock())
    }

    /// Returns when all writes of this rank so far are in the file, with the first error. The error stays.
    pub fn settle(&self) -> Result<()> {
        let (state, waited) = self.wait_for(self.lock(), |file| file.pending == 0);
        waited.and(self.failed(&state))
    }

    /// As [`settle`](Self::settle), for a caller that syncs the file next: waits for a sync that has begun, but
    /// begins none. Takes the error.
    pub fn finish(&self) -> Result<()> {
        let mut state = self.lock();
        if let Some(file) = state.files.get_mut(&self.number) {
            file.finishing += 1;
        }
        let (mut state, waited) = self.wait_for(state, |file| file.pending == 0 && !file.syncing);
        let Some(file) = state.files.get_mut(&self.number) else { return waited };
        file.finishing -= 1;
        file.unsynced = false;
        waited.and(file.failed.take().map_or(Ok(()), Err))
    }

    /// Waits as [`finish`](Self::finish) does, and ignores errors. Abandoned writes are made nevertheless: the bytes
    /// of a file depend on the calls, not on the progress of the thread.
    pub fn discard(&self) {
        let _ = self.finish();
    }

    /// Removes this file's writes from the queue.
    fn forget(&self, state: &mut WriterState) {
        let before = state.queue.len();
        let mut bytes = 0;
        state.queue.retain(|write| {
            let goes = write.file == self.number;
            bytes += if goes { write.bytes.len() } else { 0 };
            !goes
        });
        let gone = before - state.queue.len();
        state.bytes -= bytes;
        if let Some(file) = state.files.get_mut(&self.number) {
            file.pending -= gone;
        }
        self.writer.shared.moved.notify_all();
    }

    fn push(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let shared = &self.writer.shared;
        let mut state = self.lock();
        self.writer.start(&mut state)?;
        while state.bytes > 0 && state.bytes + bytes.len() > shared.buffer && !state.ended {
            state = shared.wait(state);
        }
        self.failed(&state)?;
        if state.ended {
            return Err(Error::internal("the thread that writes has ended"));
        }
        state.bytes += bytes.len();
        let mut memory = state.memory(bytes.len(), shared.buffer);
        drop(state);
        // The thread continues while bytes are copied.
        memory.extend_from_slice(bytes);
        let mut state = self.lock();
        state.queue.push_back(QueuedWrite { file: self.number, offset, bytes: memory });
        if let Some(file) = state.files.get_mut(&self.number) {
            file.pending += 1;
        }
        shared.moved.notify_all();
        Ok(())
    }
}

impl Drop for DeferredFile {
    fn drop(&mut self) {
        let mut state = self.lock();
        self.forget(&mut state);
        state.files.remove(&self.number);
    }
}

impl FileLayer for DeferredFile {
    fn below(&self) -> &dyn CommFile {
        &*self.below
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        // Copy in pieces, so that the thread can write some while others are copied.
        let piece = (self.writer.shared.buffer / 4).max(1);
        (0..).step_by(piece).zip(data.chunks(piece)).try_for_each(|(at, piece)| self.push(piece, offset + at))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.settle()?;
        self.below.read_at(buffer, offset)
    }

    // A rank that failed takes part in collective calls, because the others wait for it.

    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        let settled = self.settle();
        settled.and(self.below.write_all(parts))
    }

    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let settled = self.settle();
        settled.and(self.below.read_all(parts))
    }

    fn len(&self) -> Result<u64> {
        self.settle()?;
        self.below.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let settled = self.settle();
        settled.and(self.below.set_len(len))
    }

    fn sync(&self) -> Result<()> {
        let settled = self.settle();
        settled.and(self.below.sync())
    }

    fn visibility_barrier(&self) -> Result<()> {
        let settled = self.settle();
        settled.and(self.below.visibility_barrier())
    }

    fn close(&self) -> Result<()> {
        let settled = self.settle();
        settled.and(self.below.close())
    }
}

#[cfg(test)]
mod tests {
    use super::WriterState;

    #[test]
    fn memory_is_used_again_and_is_no_more_than_the_queue_may_have() {
        let mut state = WriterState { spare: vec![vec![1; 10], vec![2; 40]], ..WriterState::default() };
        let memory = state.memory(20, 100);
        assert!(memory.is_empty() && memory.capacity() >= 40, "{}", memory.capacity());
        assert_eq!(state.spare.iter().map(Vec::capacity).sum::<usize>(), 10);
        state.spare.push(memory);
        // The queued bytes leave space for one of them.
        state.bytes = 85;
        state.trim(100);
        assert_eq!(state.spare.iter().map(Vec::capacity).collect::<Vec<_>>(), [10]);
        assert!(state.memory(11, 100).capacity() == 0 && state.spare.len() == 1);
        state.bytes = 100;
        state.trim(100);
        assert!(state.spare.is_empty());
    }
}
