//! Payload of small flushes, which lies in frames of logs: it is copied, as it is, into the data log of the takeover.
//!
//! Entries that share bytes go on sharing them, because a payload is copied as a whole. Frames were compared with their
//! checksums before; blocks of older takeovers are not, and damage in one stays damage, since entries keep the checksums.

use fieldstone_core::{Error, Result};
use fieldstone_format::{Id, data};

use super::inputs::Inputs;
use super::part::Progress;
use crate::medium::{DataWriter, Medium};

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// The number of the data log that holds a takeover's payload.
pub const DATA_LOG: u32 = 1;

/// The new places of payload.
#[derive(Debug, Default)]
pub struct Payload {
    /// Of each log: begin and end in the log, and the new begin; ascending.
    logs: Vec<Vec<(u64, u64, u64)>>,
    /// Of each takeover: the number of a data log, and the new begin of the bytes behind its header.
    takeovers: Vec<Vec<(u32, u64)>>,
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
        for log in &inputs.logs {
            let mut places = Vec::new();
            for commit in &log.commits {
                let (begin, length) = commit.payload;
                if length > 0 {
                    let at = self.copy_range(medium, id, (log.log.writer, 0), (begin, length), progress)?;
                    places.push((begin, begin + length, at));
                }
            }
            self.logs.push(places);
        }
        for takeover in &inputs.takeovers {
            let mut places = Vec::new();
            for (number, length) in &takeover.record.data_logs {
                let range = (data::HEADER_LEN, length.saturating_sub(data::HEADER_LEN));
                let from = (takeover.header.id, *number);
                places.push((*number, self.copy_range(medium, id, from, range, progress)?));
            }
            self.takeovers.push(places);
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
            if progress.is_due(first + copied) {
                sync(&mut **data)?;
                progress.note(DATA_LOG, data.synced())?;
            }
        }
        self.placed = first + length;
        Ok(first)
    }

    /// The new place of a byte in a frame of a log, by the number of the log among the inputs.
    pub fn of_log(&self, log: usize, offset: u64) -> Result<u64> {
        let places = &self.logs[log];
        let place =
            places.partition_point(|(begin, _, _)| *begin <= offset).checked_sub(1).map(|i| places[i]);
        match place {
            Some((begin, end, at)) if offset < end => Ok(at + (offset - begin)),
            _ => Err(Error::corrupt("an entry names bytes of the log that are not payload")),
        }
    }

    /// The new place of a byte in a data log of a takeover, by the number of the takeover among the inputs.
    pub fn of_takeover(&self, takeover: usize, file: u32, offset: u64) -> Result<u64> {
        let place = self.takeovers[takeover].iter().find(|(number, _)| *number == file);
        match place.zip(offset.checked_sub(data::HEADER_LEN)) {
            Some(((_, at), offset)) => Ok(at + offset),
            None => Err(Error::corrupt("an entry names a missing data log of a takeover")),
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

fn sync(data: &mut dyn DataWriter) -> Result<()> {
    let unsynced = data.unsynced()?;
    unsynced.sync()?;
    data.note_synced(unsynced.upto);
    Ok(())
}
