//! Fill values for data not yet written; the ranks share the work.
//!
//! Each rank lists the variables that it takes care of. [`write_shared`] concatenates the jobs of all ranks and cuts
//! them into parts of equal size, and each rank writes one, no matter which rank defined which variable.
//!
//! Invariants: padding after a variable is filled like the variable; a job's pattern has eight bytes, a multiple of
//! every element size, so that jobs may be cut at any multiple of eight.

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::fill::fill_of;
use fieldstone_format::netcdf::pad4;

use super::super::VarInfo;
use crate::container::write_buffer::WriteBuffer;

/// Bytes of a job generated at a time: few enough to stay in the cache.
const CHUNK: u64 = 1 << 14;
const PACKED: usize = 48;

/// A variable that is to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillVar {
    begin: u64,
    /// Size of the whole variable, or of one of its records.
    bytes: u64,
    /// The same, with padding.
    padded: u64,
    record_stride: u64,
    pattern: [u8; 8],
}

impl FillVar {
    /// Makes a variable of `bytes` (in one record, if `record_stride` is not 0) that begins at `begin`. `value` is
    /// one element, big-endian.
    ///
    /// Errors: `Invalid` if its end exceeds every offset.
    pub fn new(begin: u64, bytes: u64, record_stride: u64, value: &[u8]) -> Result<FillVar> {
        let padded = pad4(bytes).filter(|padded| begin.checked_add(*padded).is_some());
        let padded = padded.ok_or_else(|| Error::invalid("the variable has 2^64 bytes or more"))?;
        // A single record variable has no padding between its records.
        let padded = if record_stride > 0 { padded.min(record_stride).max(bytes) } else { padded };
        let mut pattern = [0; 8];
        for (byte, value) in pattern.iter_mut().zip(value.iter().cycle()) {
            *byte = *value;
        }
        Ok(FillVar { begin, bytes, padded, record_stride, pattern })
    }

    /// The variable that `var` describes, with its own fill value.
    pub fn of(var: &VarInfo) -> Result<FillVar> {
        let dims = var.dims.iter().filter(|dim| !dim.is_record);
        let size = var.ty.size() as u64;
        let bytes = dims.map(|dim| dim.len).try_fold(size, |bytes, len| bytes.checked_mul(len));
        bytes
            .ok_or_else(|| Error::invalid("2^64 bytes or more"))
            .and_then(|bytes| {
                FillVar::new(var.begin, bytes, var.record_stride, fill_of(var.ty, var.attrs.iter()))
            })
            .map_err(|error| error.context(format_args!("variable `{}`", var.name)))
    }

    /// Offset of its first byte.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// All of a variable without record dimension.
    pub fn job(&self) -> Option<Job> {
        let Self { begin, padded, pattern, .. } = *self;
        (padded > 0).then_some(Job { begin, len: padded, stride: 0, from: 0, to: 1, pattern })
    }

    /// The records from `from` to `to`, or only their padding if the rest is about to be written.
    pub(crate) fn jobs(&self, from: u64, to: u64, is_covered: bool) -> Option<Job> {
        let skip = if is_covered { self.bytes } else { 0 };
        let mut pattern = self.pattern;
        pattern.rotate_left((skip % 8) as usize);
        let (begin, len) = (self.begin + skip, self.padded - skip);
        (len > 0 && from < to).then_some(Job { begin, len, stride: self.record_stride, from, to, pattern })
    }
}

/// A job: fill `len` bytes from `begin` on, in each record from `from` to `to`; records are `stride` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    begin: u64,
    len: u64,
    stride: u64,
    from: u64,
    to: u64,
    pattern: [u8; 8],
}

impl Job {
    fn bytes(&self) -> Result<u64> {
        (self.to - self.from).checked_mul(self.len).ok_or_else(|| Error::invalid("2^64 bytes to fill"))
    }

    /// Splits the job after about `at` bytes.
    fn split(mut self, at: u64) -> (Option<Job>, Option<Job>) {
        let mut head = self;
        if self.to - self.from > 1 {
            let middle = self.from + at.div_ceil(self.len).min(self.to - self.from);
            (head.to, self.from) = (middle, middle);
        } else {
            let cut = at.next_multiple_of(8).min(self.len);
            (head.len, self.len, self.begin) = (cut, self.len - cut, self.begin + cut);
        }
        let some = |job: Job| (job.len > 0 && job.from < job.to).then_some(job);
        (some(head), some(self))
    }

    fn pack(&self, bytes: &mut Vec<u8>) {
        for word in [self.begin, self.len, self.stride, self.from, self.to] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.pattern);
    }

    fn unpack(bytes: &[u8; PACKED]) -> Job {
        let [begin, len, stride, from, to, pattern] = [0, 1, 2, 3, 4, 5].map(|i| bytes.as_chunks::<8>().0[i]);
        let [begin, len, stride, from, to] = [begin, len, stride, from, to].map(u64::from_le_bytes);
        Job { begin, len, stride, from, to, pattern }
    }
}

/// Collective: writes the jobs of all ranks; each rank writes about the same number of bytes.
pub fn write_shared(file: &TeamFile, jobs: Result<Vec<Job>>) -> Result<()> {
    const STEP: &str = "fill";
    let team = file.team();
    if team.size() == 1 {
        return write(file, &jobs?);
    }
    let bytes = jobs.and_then(|jobs| {
        let bytes = jobs.iter().map(Job::bytes).collect::<Result<Vec<_>>>()?;
        let sum = bytes.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes));
        Ok((jobs, sum.ok_or_else(|| Error::invalid("2^64 bytes to fill"))?))
    });
    let (jobs, sum) = team.agree(STEP, bytes)?;
    let sums = team.sums(STEP, Ok(vec![sum]))?;
    let (mut at, total) = (sums.before[0], sums.total[0]);
    if total == 0 {
        return Ok(());
    }
    let size = team.size() as u64;
    let share_end = |rank: u64| (u128::from(total) * u128::from(rank + 1) / u128::from(size)) as u64;
    let mut parts = vec![Vec::new(); team.size()];
    let mut rank = 0;
    for job in jobs {
        let mut left = Some(job);
        while let Some(job) = left {
            while rank + 1 < size && share_end(rank) <= at {
                rank += 1;
            }
            let room = if rank + 1 < size { share_end(rank) - at } else { u64::MAX };
            let bytes = job.bytes()?;
            let (head, rest) = if bytes <= room { (Some(job), None) } else { job.split(room) };
            if let Some(head) = head {
                head.pack(&mut parts[rank as usize]);
                at += head.bytes()?;
            }
            left = rest;
        }
    }
    let parts = team.alltoallv(STEP, Ok(parts))?;
    let jobs: Vec<Job> = parts.iter().flat_map(|part| part.as_chunks().0).map(Job::unpack).collect();
    // The ranks that write the elements are not those that filled them.
    file.visibility_barrier(STEP, write(file, &jobs))
}

/// Writes jobs on this rank alone. Merges adjacent jobs into one write.
pub(super) fn write(file: &TeamFile, jobs: &[Job]) -> Result<()> {
    let mut jobs = jobs.to_vec();
    jobs.sort_unstable_by_key(|job| job.begin);
    let from = jobs.iter().map(|job| job.from).min().unwrap_or(0);
    let to = jobs.iter().map(|job| job.to).max().unwrap_or(0);
    let mut buffer = WriteBuffer::new(file, 0);
    for record in from..to {
        for job in jobs.iter().filter(|job| job.from <= record && record < job.to) {
            add(&mut buffer, job, job.stride.checked_mul(record))?;
        }
    }
    buffer.flush()
}

/// Adds a job's bytes, at the offset `above` its begin.
fn add(buffer: &mut WriteBuffer<'_>, job: &Job, above: Option<u64>) -> Result<()> {
    let begin = above.and_then(|above| job.begin.checked_add(above));
    let begin = begin.filter(|begin| begin.checked_add(job.len).is_some());
    let begin = begin.ok_or_else(|| Error::invalid("filling would reach byte 2^64 of the file"))?;
    buffer.seek(begin)?;
    // A chunk is a multiple of the pattern, so each chunk begins as the job does.
    let chunk = job.pattern.repeat((job.len.min(CHUNK) as usize).div_ceil(job.pattern.len()));
    let mut left = job.len;
    while left > 0 {
        let n = left.min(chunk.len() as u64);
        buffer.add(&chunk[..n as usize])?;
        left -= n;
    }
    Ok(())
}
