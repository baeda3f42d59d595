//! Views from decomposition files of ParallelIO: a job that moves to Fieldstone keeps its decompositions.
//!
//! A file has the maps of some number of tasks, and serves any number of ranks: see `spec/array-files.md`. Rank 0
//! reads the text form piece by piece and sends each rank its entries; of the netCDF form, each rank reads its own.
//!
//! Invariants: all calls are collective, and all ranks raise an error in the file; in addition to its own map, a rank
//! holds a piece of [`PIECE`] bytes, and rank 0 the entries of one piece of the text form.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::comm::{FileMode, Team, TeamFile};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::parse::{self, Source};
use fieldstone_format::netcdf::write::MAGIC;
use fieldstone_format::pio::{PioNumbers, PioShape, PioTable, PioText, TEXT};

use super::View;

/// Bytes read at a time.
const PIECE: usize = 4 << 20;
const STEP: &str = "decomposition";

/// This rank's part in a decomposition file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decomposition {
    /// Extents of the decomposed array, slowest first.
    pub shape: Vec<u64>,
    /// Number of tasks in the file.
    pub tasks: u64,
    /// This rank's elements, in C order of the array; -1 for none.
    pub map: Arc<[i64]>,
}

impl Decomposition {
    /// Collective: this rank's part in the file `path`.
    ///
    /// Errors: `NotFound`; `Invalid` if it is not a decomposition file; `Corrupt` if it is damaged, with the
    /// position.
    pub fn read(team: &Team, path: &Path) -> Result<Decomposition> {
        let file = team.open(STEP, path, FileMode::Read)?;
        let named = |error: Error| error.context(path.display());
        let found = read(&file).map_err(named);
        let closed = file.close(STEP, Ok(()));
        found.and_then(|found| closed.map(|()| found))
    }

    /// The view: a map over all dimensions.
    pub fn view(&self) -> View {
        View::irregular(self.map.clone(), None, None)
    }
}

fn read(file: &TeamFile) -> Result<Decomposition> {
    let team = file.team();
    let head = match team.rank() {
        0 => {
            let mut head = vec![0; TEXT.len()];
            file.read_at(&mut head, 0).map(|n| {
                head.truncate(n);
                head
            })
        }
        _ => Ok(Vec::new()),
    };
    let head = team.broadcast(STEP, 0, head)?;
    if head == TEXT {
        return read_text(file);
    }
    if head.starts_with(&MAGIC[..3]) {
        return read_netcdf(file);
    }
    let hint = match head.starts_with(b"\x89HDF") {
        true => "it is a netCDF-4 file: convert it with `nccopy -k cdf5`",
        false => "give a file that PIOc_write_decomp or PIOc_write_nc_decomp made",
    };
    Err(Code::Argument.error("it is not a decomposition file of ParallelIO").with_hint(hint))
}

/// The tasks of a rank.
fn tasks_of(rank: usize, ranks: usize, tasks: u64) -> std::ops::Range<u64> {
    let (each, longer) = (tasks / ranks as u64, tasks % ranks as u64);
    let cut = |rank: u64| each * rank + rank.min(longer);
    cut(rank as u64)..cut(rank as u64 + 1)
}

/// The rank of a task.
fn rank_of(task: u64, ranks: usize, tasks: u64) -> usize {
    let (each, longer) = (tasks / ranks as u64, tasks % ranks as u64);
    let in_longer = longer * (each + 1);
    (if task < in_longer { task / (each + 1) } else { longer + (task - in_longer) / each.max(1) }) as usize
}

fn read_text(file: &TeamFile) -> Result<Decomposition> {
    let team = file.team();
    let (mut text, mut at, mut map) = (PioText::default(), 0, Vec::new());
    let mut bytes = vec![0; if team.rank() == 0 { PIECE } else { 0 }];
    loop {
        let mut parts = vec![Vec::new(); team.size()];
        let mut more = Ok(vec![0]);
        if team.rank() == 0 {
            more =
                take_text(file, &mut text, &mut at, &mut bytes, &mut parts).map(|more| vec![u64::from(more)]);
        }
        let more = team.max(STEP, more)?;
        let came = team.alltoallv(STEP, Ok(parts))?;
        let words = came.first().map_or(&[][..], |part| part.as_chunks().0);
        map.extend(words.iter().map(|word| i64::from_le_bytes(*word)));
        if more.first() != Some(&1) {
            break;
        }
    }
    let shape = if team.rank() == 0 { text.end() } else { Ok(PioShape::default()) };
    let words = shape.map(|shape| [shape.tasks].into_iter().chain(shape.shape).collect::<Vec<u64>>());
    let bytes = words.map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let bytes = team.broadcast(STEP, 0, bytes)?;
    let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let tasks = words.next().unwrap_or(0);
    Ok(Decomposition { shape: words.collect(), tasks, map: map.into() })
}

/// Adds the next piece of the text; returns whether there may be more.
fn take_text(
    file: &TeamFile,
    text: &mut PioText,
    at: &mut u64,
    bytes: &mut [u8],
    parts: &mut [Vec<u8>],
) -> Result<bool> {
    let n = file.read_at(bytes, *at)?;
    *at += n as u64;
    let (ranks, mut tasks) = (parts.len(), text.shape().tasks);
    let mut entries = Vec::new();
    text.take(&bytes[..n], |task, entry| entries.push((task, entry)))?;
    tasks = tasks.max(text.shape().tasks);
    for (task, entry) in entries {
        parts[rank_of(task, ranks, tasks)].extend(entry.to_le_bytes());
    }
    Ok(n == bytes.len() && !text.is_complete())
}

/// A file as a source for the header parsers.
struct HeaderSource<'a>(&'a TeamFile);

impl Source for HeaderSource<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
}

fn read_netcdf(file: &TeamFile) -> Result<Decomposition> {
    let (rank, ranks) = (file.team().rank(), file.team().size());
    let own = || -> Result<Decomposition> {
        let (header, _) = parse::header(&HeaderSource(file))?;
        let table = PioTable::of(&header)?;
        let len = file.len()?;
        let found = table.shape(&numbers(file, len, &table.extents, (0, table.extents.count))?)?;
        let tasks = tasks_of(rank, ranks, found.tasks);
        let mut map = Vec::new();
        for task in tasks {
            let length = numbers(file, len, &table.lengths, (task, 1))?;
            let length = table.lengths.read(&length).next().unwrap_or(0);
            let length = table.length(task, length)?;
            let each = (PIECE / table.maps.size) as u64;
            for at in (0..length).step_by(each as usize) {
                let place = task.saturating_mul(table.room).saturating_add(at);
                let bytes = numbers(file, len, &table.maps, (place, each.min(length - at)))?;
                map.extend(table.entries(&found, (task, at), &bytes)?);
            }
        }
        Ok(Decomposition { shape: found.shape, tasks: found.tasks, map: map.into() })
    };
    file.team().agree(STEP, own())
}

/// The bytes of some numbers of a variable, in a file of `len` bytes.
fn numbers(file: &TeamFile, len: u64, of: &PioNumbers, (at, count): (u64, u64)) -> Result<Vec<u8>> {
    let range = of
        .range(at, count)
        .filter(|(offset, bytes)| offset.checked_add(*bytes).is_some_and(|end| end <= len));
    let (offset, bytes) = range.ok_or_else(|| {
        Code::Truncated.error(format!(
            "{count} numbers from number {at} on of a variable at {} end beyond byte {len}",
            of.begin
        ))
    })?;
    let mut found = vec![0; bytes as usize];
    let n = file.read_at(&mut found, offset)?;
    match n == found.len() {
        true => Ok(found),
        false => Err(Code::Truncated.error(format!("the file ends at byte {}", offset + n as u64))),
    }
}
