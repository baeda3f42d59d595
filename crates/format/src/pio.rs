//! Decomposition files of ParallelIO (PIO, SCORPIO): the elements of a global array that each task of a job
//! holds. Normative text: `spec/array-files.md`, "Decomposition files of ParallelIO".
//!
//! There are two forms. [`PioText`] parses the text as it comes, so that a file of any size can be read in
//! pieces; [`PioTable`] locates the numbers in the netCDF form, and [`PioTable::entries`] reads them.
//!
//! Invariants: entries come out counted from 0, with -1 for no element, each below the number of elements;
//! every error is `Corrupt` and names the offset or the task; nothing but the extents is allocated.
//!
//! ```
//! use fieldstone_format::pio::PioText;
//! let mut maps = vec![Vec::new(); 2];
//! let mut text = PioText::default();
//! text.take(b"version 2001 npes 2 ndims 2 \n2 3 \n0 4\n1 2 0 3 \n1 3\n4 5 6 \n", |task, entry| {
//!     maps[task as usize].push(entry);
//! })?;
//! assert_eq!((text.end()?.shape, maps), (vec![2, 3], vec![vec![0, 1, -1, 2], vec![3, 4, 5]]));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::{Code, Error, Result};

use crate::netcdf::{Header, NcType, Var};

/// First bytes of the text form.
pub const TEXT: &[u8] = b"version";
/// The version of the text form.
const VERSION: u64 = 2001;
/// Most dimensions of an array: the limit of netCDF's library.
const DIMS: u64 = 1024;
/// Most tasks: they are counted by a C int.
const TASKS: u64 = 1 << 31;

/// The shape of a decomposed array, and the number of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PioShape {
    /// Tasks with a map.
    pub tasks: u64,
    /// Extents of the array, the slowest first.
    pub shape: Vec<u64>,
}

impl PioShape {
    /// Elements of the array.
    fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, len| n.checked_mul(*len)).filter(|n| *n <= i64::MAX as u64)
    }
}

/// The word that the parser expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Expected {
    /// `version`, `npes` and `ndims`, each before its number.
    #[default]
    VersionWord,
    Version,
    TasksWord,
    Tasks,
    DimsWord,
    Dims,
    Extent,
    Task,
    Length,
    Entry,
    /// All maps are complete; the rest of the file has no meaning.
    Nothing,
}

/// A parser of the text form, piece by piece.
#[derive(Debug, Default)]
pub struct PioText {
    expected: Expected,
    found: PioShape,
    dims: u64,
    elements: u64,
    task: u64,
    /// Remaining entries of this task's map.
    left: u64,
    /// An incomplete word at the end of the last piece.
    word: Vec<u8>,
    offset: u64,
}

/// Most bytes of a word.
const WORD: usize = 20;

impl PioText {
    /// Parses the next bytes of the file, and calls `act` with task and element of each entry.
    pub fn take(&mut self, bytes: &[u8], mut act: impl FnMut(u64, i64)) -> Result<()> {
        for byte in bytes {
            if self.is_complete() {
                return Ok(());
            }
            if !byte.is_ascii_whitespace() {
                if self.word.len() == WORD {
                    return Err(self.corrupt("is longer than any number"));
                }
                self.word.push(*byte);
            } else if !self.word.is_empty() {
                self.word(&mut act)?;
                self.word.clear();
            }
            self.offset += 1;
        }
        Ok(())
    }

    /// Whether all maps are complete.
    pub fn is_complete(&self) -> bool {
        self.expected == Expected::Nothing
    }

    /// The shape, after the first map has begun.
    pub fn shape(&self) -> &PioShape {
        &self.found
    }

    /// Ends the file.
    pub fn end(mut self) -> Result<PioShape> {
        if !self.word.is_empty() {
            // The last entry has been passed on by now, except in a file without a last line feed.
            return Err(self.corrupt("is the last word, without an end of line"));
        }
        match self.is_complete() {
            true => Ok(std::mem::take(&mut self.found)),
            false => Err(Code::Truncated.error(format!(
                "offset {}: the file ends within the map of task {} of {}",
                self.offset, self.task, self.found.tasks
            ))),
        }
    }

    fn corrupt(&self, why: &str) -> Error {
        let word = String::from_utf8_lossy(&self.word);
        let at = self.offset - self.word.len() as u64;
        Error::corrupt(format!("offset {at}: `{word}` {why}"))
    }

    fn is(&self, word: &str) -> Result<()> {
        match self.word == word.as_bytes() {
            true => Ok(()),
            false => Err(self.corrupt(&format!("is in the place of `{word}`"))),
        }
    }

    fn number(&self, most: u64, what: &str) -> Result<u64> {
        let number = std::str::from_utf8(&self.word).ok().and_then(|word| word.parse::<u64>().ok());
        let number = number.ok_or_else(|| self.corrupt(&format!("is not a valid {what}")))?;
        match number <= most {
            true => Ok(number),
            false => Err(self.corrupt(&format!("exceeds {most}, the greatest {what}"))),
        }
    }

    /// Parses one word.
    fn word(&mut self, act: &mut impl FnMut(u64, i64)) -> Result<()> {
        self.expected = match self.expected {
            Expected::VersionWord => self.is("version").map(|()| Expected::Version)?,
            Expected::Version => {
                if self.number(u64::MAX, "version")? != VERSION {
                    return Err(crate::unknown_version(
                        "the decomposition file",
                        String::from_utf8_lossy(&self.word),
                    ));
                }
                Expected::TasksWord
            }
            Expected::TasksWord => self.is("npes").map(|()| Expected::Tasks)?,
            Expected::Tasks => {
                self.found.tasks = self.number(TASKS, "number of tasks")?;
                if self.found.tasks == 0 {
                    return Err(self.corrupt("tasks hold nothing"));
                }
                Expected::DimsWord
            }
            Expected::DimsWord => self.is("ndims").map(|()| Expected::Dims)?,
            Expected::Dims => {
                self.dims = self.number(DIMS, "number of dimensions")?;
                self.after_extents()?
            }
            Expected::Extent => {
                self.found.shape.push(self.number(i64::MAX as u64, "extent")?);
                self.after_extents()?
            }
            Expected::Task => {
                if self.number(TASKS, "task")? != self.task {
                    return Err(self.corrupt(&format!("is in the place of the map of task {}", self.task)));
                }
                Expected::Length
            }
            Expected::Length => {
                self.left = self.number(i64::MAX as u64, "length of a map")?;
                self.after_entries()
            }
            Expected::Entry => {
                let number = self.number(self.elements, "element")?;
                act(self.task, number as i64 - 1);
                self.left -= 1;
                self.after_entries()
            }
            Expected::Nothing => Expected::Nothing,
        };
        Ok(())
    }

    fn after_extents(&mut self) -> Result<Expected> {
        if (self.found.shape.len() as u64) < self.dims {
            return Ok(Expected::Extent);
        }
        let elements = self.found.elements();
        self.elements =
            elements.ok_or_else(|| self.corrupt("is the last extent of 2^63 elements or more"))?;
        Ok(Expected::Task)
    }

    fn after_entries(&mut self) -> Expected {
        if self.left > 0 {
            return Expected::Entry;
        }
        self.task += 1;
        if self.task == self.found.tasks { Expected::Nothing } else { Expected::Task }
    }
}

/// Numbers of one variable in the netCDF form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PioNumbers {
    /// Offset of the first number.
    pub begin: u64,
    /// Number of values.
    pub count: u64,
    /// Bytes of each: 4 or 8.
    pub size: usize,
}

impl PioNumbers {
    /// Offset and size of `count` numbers from number `at`; `None` if there are fewer.
    pub fn range(&self, at: u64, count: u64) -> Option<(u64, u64)> {
        let end = at.checked_add(count).filter(|end| *end <= self.count)?;
        let size = self.size as u64;
        self.begin.checked_add(end.checked_mul(size)?)?;
        Some((self.begin + at * size, count * size))
    }

    /// Decodes the numbers in some bytes.
    pub fn read<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = i64> + use<'a> {
        let size = self.size;
        bytes.chunks_exact(size).map(move |number| match number.first_chunk::<8>() {
            Some(long) if size == 8 => i64::from_be_bytes(*long),
            _ => number.first_chunk::<4>().map_or(0, |short| i64::from(i32::from_be_bytes(*short))),
        })
    }
}

/// Positions of the numbers in the netCDF form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PioTable {
    /// Extents of the array.
    pub extents: PioNumbers,
    /// Length of each task's map.
    pub lengths: PioNumbers,
    /// Maps of all tasks, each padded to the longest.
    pub maps: PioNumbers,
    /// Entries of a padded map.
    pub room: u64,
}

impl PioTable {
    /// The table of a file with this header.
    pub fn of(header: &Header) -> Result<PioTable> {
        let lens =
            |var: Var<'_>| var.dims().iter().map(|dim| header.dims.lens[*dim as usize]).collect::<Vec<_>>();
        let find = |name: &str, dims: usize| {
            let var = header.vars.iter().find(|var| var.name() == name);
            let var = var.filter(|var| var.dims().len() == dims && !header.is_record(*var));
            let size = var.and_then(|var| match var.ty() {
                NcType::Int => Some(4),
                NcType::Int64 => Some(8),
                _ => None,
            });
            let found = var.zip(size).and_then(|(var, size)| {
                let lens = lens(var);
                let count = lens.iter().try_fold(1u64, |count, len| count.checked_mul(*len))?;
                Some((PioNumbers { begin: var.begin(), count, size }, lens))
            });
            found.ok_or_else(|| {
                Error::corrupt(format!("no variable `{name}` of whole numbers with {dims} fixed dimensions"))
                    .with_hint("a decomposition file of ParallelIO has global_size, maplen and map")
            })
        };
        let (extents, _) = find("global_size", 1)?;
        let (lengths, _) = find("maplen", 1)?;
        let (maps, lens) = find("map", 2)?;
        if lens.first() != Some(&lengths.count) || extents.count > DIMS || lengths.count > TASKS {
            return Err(Error::corrupt(format!(
                "`map` is of shape {lens:?}, `maplen` of {} tasks, `global_size` of {} dimensions",
                lengths.count, extents.count
            )));
        }
        Ok(PioTable { extents, lengths, maps, room: lens.get(1).copied().unwrap_or(0) })
    }

    /// Decodes the shape from the bytes of [`extents`](PioTable::extents).
    pub fn shape(&self, bytes: &[u8]) -> Result<PioShape> {
        let extent = |(dim, len): (usize, i64)| {
            u64::try_from(len).map_err(|_| Error::corrupt(format!("`global_size[{dim}]` is {len}")))
        };
        let shape = self.extents.read(bytes).enumerate().map(extent).collect::<Result<_>>()?;
        let found = PioShape { tasks: self.lengths.count, shape };
        match found.elements() {
            Some(_) => Ok(found),
            None => Err(Error::corrupt(format!("`global_size` is {:?}, 2^63 elements or more", found.shape))),
        }
    }

    /// The length of a task's map.
    pub fn length(&self, task: u64, length: i64) -> Result<u64> {
        u64::try_from(length).ok().filter(|length| *length <= self.room).ok_or_else(|| {
            Error::corrupt(format!("`maplen[{task}]` is {length}, and `map` has room for {}", self.room))
        })
    }

    /// Decodes entries of a task's map from entry `at`.
    pub fn entries(&self, shape: &PioShape, (task, at): (u64, u64), bytes: &[u8]) -> Result<Vec<i64>> {
        let elements = shape.elements().unwrap_or(0) as i64;
        let entry = |(place, entry): (u64, i64)| match (-1..elements).contains(&entry) {
            true => Ok(entry),
            false => Err(Error::corrupt(format!(
                "`map[{task}, {place}]` is {entry}, and the array has {elements} elements"
            ))),
        };
        (at..).zip(self.maps.read(bytes)).map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "version 2001 npes 3 ndims 2 \n4 5 \n0 2\n1 20 \n1 0\n\n2 3\n0 7 8 \n\n\nObtained 10 stack frames.\n";

    fn parse(text: &str, piece: usize) -> Result<(PioShape, Vec<(u64, i64)>)> {
        let (mut parser, mut entries) = (PioText::default(), Vec::new());
        for piece in text.as_bytes().chunks(piece) {
            parser.take(piece, |task, entry| entries.push((task, entry)))?;
        }
        parser.end().map(|shape| (shape, entries))
    }

    #[test]
    fn text_is_the_same_in_pieces_of_any_size_and_ends_with_the_last_map() {
        let shape = PioShape { tasks: 3, shape: vec![4, 5] };
        let entries = vec![(0, 0), (0, 19), (2, -1), (2, 6), (2, 7)];
        for piece in 1..FILE.len() {
            assert_eq!(parse(FILE, piece).unwrap(), (shape.clone(), entries.clone()));
        }
    }

    #[test]
    fn every_cut_and_every_wrong_word_is_named() {
        let maps = FILE.find("\n\n\nObtained").unwrap();
        for end in 0..maps {
            assert!(parse(&FILE[..end], 7).is_err(), "{end}");
        }
        for (from, to, says) in [
            ("version", "Version", "offset 0: `Version` is in the place of `version`"),
            ("2001", "2002", "version 2002"),
            ("npes 3", "npes 0", "offset 18: `0` tasks hold nothing"),
            ("npes 3", "npes x", "`x` is not a valid number of tasks"),
            ("4 5", "4 -5", "`-5` is not a valid extent"),
            ("4 5", "4611686018427387904 5", "2^63 elements or more"),
            ("1 20", "1 21", "`21` exceeds 20, the greatest element"),
            ("1 0", "2 0", "`2` is in the place of the map of task 1"),
            ("0 7", "0 777777777777777777777", "is longer than any number"),
        ] {
            let error = parse(&FILE.replacen(from, to, 1), 5).unwrap_err();
            assert!(error.message().contains(says), "{}", error.message());
        }
    }
}
