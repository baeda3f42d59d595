//! Collects bytes for a file into writes of about a mebibyte.
//!
//! Invariants: each byte is written once, in the order of the calls; nothing is written before a piece is full, the
//! position changes, or [`flush`](WriteBuffer::flush) is called.

use fieldstone_core::Result;
use fieldstone_core::env::comm::TeamFile;

/// Bytes written at a time.
pub(crate) const PIECE: usize = 1 << 20;

/// Collects bytes for a file, on this rank alone.
#[derive(Debug)]
pub(crate) struct WriteBuffer<'a> {
    file: &'a TeamFile,
    /// Offset of the first byte of `buffer`.
    at: u64,
    buffer: Vec<u8>,
    written: u64,
}

impl<'a> WriteBuffer<'a> {
    /// Makes a buffer at offset 0, with space for `room` bytes.
    pub fn new(file: &'a TeamFile, room: usize) -> WriteBuffer<'a> {
        WriteBuffer { file, at: 0, buffer: Vec::with_capacity(room), written: 0 }
    }

    /// Offset of the next byte.
    pub fn here(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Number of bytes written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The buffer to which the caller appends the next bytes; then call [`flush`](WriteBuffer::flush) if
    /// [`is_full`](WriteBuffer::is_full).
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The collected bytes, and their offset.
    pub fn gathered(&self) -> (u64, &[u8]) {
        (self.at, &self.buffer)
    }

    /// Whether a piece is full.
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= PIECE
    }

    /// Continues at `at`.
    pub fn seek(&mut self, at: u64) -> Result<()> {
        if self.here() != at {
            self.flush()?;
            self.at = at;
        }
        Ok(())
    }

    /// Appends bytes.
    pub fn add(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = PIECE.saturating_sub(self.buffer.len());
            let (now, rest) = bytes.split_at(bytes.len().min(room));
            self.buffer.extend_from_slice(now);
            bytes = rest;
            if self.is_full() {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the collected bytes.
    pub fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.file.write_at(&self.buffer, self.at)?;
        }
        self.at += self.buffer.len() as u64;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
