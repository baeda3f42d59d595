//! The past of one log: its commits, one by one, and the log as it was at one of them.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::log::{CommitRecord, Ends};

use super::look::runs_of;
use super::walker::{Walker, read_header};
use super::{LogView, Refresher};

impl Refresher {
    /// `log` cut back to its commit `sequence`.
    pub fn log_at(&self, log: &Arc<LogView>, sequence: u64) -> Result<Arc<LogView>> {
        // Commits are found by going back from one to the one before.
        if log.record.sequence == sequence {
            return Ok(log.clone());
        }
        let path = self.files().layout().log(log.writer);
        let file = self.files().get(log.writer, 0)?;
        let walker = Walker { file: &*file, path: &path, end: log.ends.end() };
        let (mut ends, mut record) = (log.ends, log.record.clone());
        while record.sequence > sequence {
            if record.previous == 0 || record.previous >= ends.frame {
                return Err(super::gone(log.writer));
            }
            (ends, record) = walker.back_to(record.previous, ends.frame, &record)?;
        }
        let (decisions, broken) = walker.decisions(&ends, &record, None);
        if let Some(e) = broken {
            return Err(e);
        }
        let runs = runs_of(self.files(), self.cache(), log.writer, &record, Some(log));
        Ok(Arc::new(LogView { ends, record, decisions, runs, ..(**log).clone() }))
    }

    /// Every commit of a log, oldest first, with the outcome of checking all of its frame.
    pub fn commits(&self, log: &LogView, mut each: impl FnMut(Ends, Result<CommitRecord>)) -> Result<()> {
        let path = self.files().layout().log(log.writer);
        let file = self.files().get(log.writer, 0)?;
        let walker = Walker { file: &*file, path: &path, end: log.ends.end() };
        let mut frames = vec![log.ends];
        let mut previous = log.record.previous;
        let mut broken = None;
        while previous != 0 {
            let next = frames[frames.len() - 1].frame;
            let found = walker.ends(previous, Some(next)).and_then(|ends| Ok((ends, walker.record(&ends)?)));
            match found {
                Ok((ends, record)) if ends.end() == next => {
                    frames.push(ends);
                    previous = record.previous;
                }
                Ok(_) => {
                    broken = Some(walker.named(previous, Error::corrupt("the frame does not reach the next")))
                }
                Err(e) => broken = Some(e),
            }
            if broken.is_some() {
                break;
            }
        }
        for ends in frames.iter().rev() {
            each(*ends, walker.check_frame(ends));
        }
        broken.map_or(Ok(()), Err)
    }

    /// Reads a log's header again.
    pub fn check_header(&self, log: &LogView) -> Result<()> {
        let path = self.files().layout().log(log.writer);
        let file = self.files().get(log.writer, 0)?;
        match read_header(&*file, &path, log.file_len)? {
            Some((header, _)) if header.writer == log.writer => Ok(()),
            Some(_) => Err(Error::corrupt(format!("{} carries another log's name", path.display()))),
            None => Err(Code::Truncated.error(format!("the header of {} is cut", path.display()))),
        }
    }
}
