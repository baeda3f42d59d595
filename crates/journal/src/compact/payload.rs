//! Payload of small flushes, which lies in frames of logs: it is copied, as it is, into the data log of the takeover. A purge
//! copies what is live of it, and of data logs that are mostly dead.
//!
//! Entries that share bytes go on sharing them, because ranges are copied as a whole. Frames were compared with their
//! checksums before; blocks of older takeovers are not, and damage in one stays damage, since entries keep the checksums.

use std::collections::HashMap;

use fieldstone_core::{Error, Result};
use fieldstone_format::{Id, data};

use super::inputs::Inputs;
use super::part::Progress;
use super::plan::FileOf;
use crate::medium::{DataWriter, Medium};

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// The number of the data log that holds a takeover's payload.
pub const DATA_LOG: u32 = 1;

/// Ranges of a file: begin and end of each, ascending.
type Ranges = Vec<(u64, u64)>;

/// The new places of payload.
#[derive(Debug, Default)]
pub struct Payload {
    /// Of each file: begin and end there, and the new begin; ascending.
    places: HashMap<FileOf, Vec<(u64, u64, u64)>>,
    /// The data log, where there is any payload.
    data: Option<Box<dyn DataWriter>>,
    /// Bytes of the data log, its header among them, that have a place, and how many of them a maker before this one wrote.
    placed: u64,
    adopted: u64,
}

impl Payload {
    /// Copies the payload of all inputs; `adopted`: the data log of a maker of the same inputs that is gone, and how many
    /// bytes of it are there.
    pub fn copy(
        inputs: &Inputs,
        medium: &dyn Medium,
        id: Id,
        adopted: Option<(Box<dyn DataWriter>, u64)>,
        progress: &mut Progress<'_>,
    ) -> Result<Payload> {
        let (data, adopted) = adopted.map_or((None, 0), |(data, length)| (Some(data), length));
        let mut payload = Payload { data, adopted, placed: data::HEADER_LEN, ..Payload::default() };
        match payload.copy_all(inputs, medium, id, progress) {
            Ok(()) => Ok(payload),
            Err(e) => {
                payload.give_up(medium, id);
                Err(e)
            }
        }
    }

    fn copy_all(
        &mut self,
        inputs: &Inputs,
        medium: &dyn Medium,
        id: Id,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        if self.adopted > 0 {
            progress.note(DATA_LOG, self.adopted)?;
        }
        for (file, ranges) in wanted(inputs)? {
            let mut places = Vec::with_capacity(ranges.len());
            for (begin, end) in ranges {
                let at = self.copy_range(medium, id, file, (begin, end - begin), progress)?;
                places.push((begin, end, at));
            }
            self.places.insert(file, places);
        }
        Ok(())
    }

    /// Copies a range of a file; returns its new begin.
    fn copy_range(
        &mut self,
        medium: &dyn Medium,
        id: Id,
        (writer, file): (Id, u32),
        (begin, length): (u64, u64),
        progress: &mut Progress<'_>,
    ) -> Result<u64> {
        let data = match &mut self.data {
            Some(data) => data,
            none => none.insert(medium.data_log(id, DATA_LOG)?),
        };
        // The same inputs have the same places.
        let first = self.placed;
        let mut copied = self.adopted.saturating_sub(first).min(length);
        while copied < length {
            let piece = medium.read_vec(writer, file, begin + copied, PIECE.min(length - copied))?;
            if data.write(&piece)? != first + copied {
                return Err(Error::internal("payload has another place than the maker before gave it"));
            }
            copied += piece.len() as u64;
            progress.keep_pace(piece.len() as u64);
            if progress.is_due(first + copied) {
                sync(&mut **data)?;
                progress.note(DATA_LOG, data.synced())?;
            }
        }
        self.placed = first + length;
        Ok(first)
    }

    /// Whether anything of a file is copied.
    pub fn has(&self, file: FileOf) -> bool {
        self.places.contains_key(&file)
    }

    /// The new place of a byte of a file.
    pub fn place_of(&self, file: FileOf, offset: u64) -> Result<u64> {
        let missing = || match file.1 {
            0 => Error::corrupt("an entry names bytes of the log that are not payload"),
            _ => Error::corrupt("an entry names a missing data log of a takeover"),
        };
        let places = self.places.get(&file).ok_or_else(missing)?;
        let place =
            places.partition_point(|(begin, _, _)| *begin <= offset).checked_sub(1).map(|i| places[i]);
        match place {
            Some((begin, end, at)) if offset < end => Ok(at + (offset - begin)),
            _ => Err(missing()),
        }
    }

    /// Makes all of it durable; the data log and its length, where there is one.
    pub fn finish(&mut self) -> Result<Vec<(u32, u64)>> {
        let Some(data) = &mut self.data else { return Ok(Vec::new()) };
        sync(&mut **data)?;
        Ok(vec![(data.number(), data.synced())])
    }

    /// Closes the data log, which stays for another takeover of the same inputs.
    pub fn keep(self) {
        drop(self.data);
    }

    /// Removes the copy: the takeover was not made.
    pub fn give_up(self, medium: &dyn Medium, id: Id) {
        let Some(data) = self.data else { return };
        drop(data);
        if let Some(files) = medium.files() {
            let path = format!("data/{}", data::file_name(id, DATA_LOG));
            // The name of the takeover goes next: nothing says afterwards whose copy it was.
            let _ = files.remove_condemned(vec![path]).and_then(|_| files.sync_data());
        }
    }
}

/// The ranges that are copied, file by file: those of the logs, then those of the takeovers, then those of data logs of which
/// little is live.
fn wanted(inputs: &Inputs) -> Result<Vec<(FileOf, Ranges)>> {
    let mut files = Vec::new();
    for log in &inputs.logs {
        let payload = log.commits.iter().map(|commit| commit.payload).filter(|(_, length)| *length > 0);
        let payload: Ranges = payload.map(|(begin, length)| (begin, begin + length)).collect();
        files.push(((log.log.writer, 0), payload));
    }
    for takeover in &inputs.takeovers {
        for (number, length) in &takeover.record.data_logs {
            files.push((
                (takeover.header.id, *number),
                vec![(data::HEADER_LEN, (*length).max(data::HEADER_LEN))],
            ));
        }
    }
    let Some(plan) = &inputs.purge else { return Ok(files) };
    for (file, whole) in &mut files {
        let live = plan.ranges(*file).to_vec();
        let is_within = |(begin, end): &(u64, u64)| {
            let at = whole.partition_point(|(first, _)| first <= begin);
            at.checked_sub(1).is_some_and(|at| *end <= whole[at].1)
        };
        if !live.iter().all(is_within) {
            return Err(Error::corrupt("an entry names bytes that are not payload"));
        }
        *whole = live;
    }
    let condemned = plan.condemned.iter().map(|file| (*file, plan.ranges(*file).to_vec()));
    files.extend(condemned);
    files.retain(|(_, ranges)| !ranges.is_empty());
    Ok(files)
}

fn sync(data: &mut dyn DataWriter) -> Result<()> {
    let unsynced = data.unsynced()?;
    unsynced.sync()?;
    data.note_synced(unsynced.upto);
    Ok(())
}
