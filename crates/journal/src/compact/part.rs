//! How far a takeover has come that copies much payload (R67): noted now and then, so that its inputs stay its own, and
//! another maker goes on from there once this one is gone.

use fieldstone_core::Result;
use fieldstone_core::env::{Env, Pace};
use fieldstone_format::Id;
use fieldstone_format::owner::Owner;
use fieldstone_format::takeover::part::TakeoverPart;

use super::CompactOptions;
use super::inputs::Inputs;
use crate::medium::posix::FileMedium;

/// The note of one maker.
#[derive(Debug)]
pub struct Progress<'a> {
    files: &'a FileMedium,
    part: TakeoverPart,
    /// Bytes after which it is noted again.
    every: u64,
    /// Bytes that are noted.
    noted: u64,
    pace: Pace,
}

impl<'a> Progress<'a> {
    /// Nothing is noted yet.
    pub fn new(
        env: &Env,
        files: &'a FileMedium,
        inputs: &Inputs,
        id: Id,
        how: &CompactOptions,
    ) -> Progress<'a> {
        let who = &env.identity;
        let part = TakeoverPart {
            id,
            store: inputs.store.0,
            owner: Owner::User(inputs.user),
            host: who.host(),
            process: who.process(),
            lifetime: who.lifetime(),
            inputs: inputs.names(),
            data_logs: Vec::new(),
        };
        Progress { files, part, every: how.part_every, noted: 0, pace: Pace::new(&env.clock, how.rate) }
    }

    /// Whether so much was copied since the last note that it is due again.
    pub fn is_due(&self, copied: u64) -> bool {
        copied.saturating_sub(self.noted) >= self.every
    }

    /// Waits after bytes were copied, as long as the rate says.
    pub fn keep_pace(&mut self, bytes: u64) {
        self.pace.spend(bytes);
    }

    /// Notes how much of the data log is durable.
    pub fn note(&mut self, number: u32, durable: u64) -> Result<()> {
        self.part.data_logs = vec![(number, durable)];
        self.files.note_part(&self.part)?;
        self.noted = durable;
        Ok(())
    }

    /// Whether anything was noted.
    pub fn is_noted(&self) -> bool {
        self.noted > 0
    }

    /// Takes the note away.
    pub fn end(&self) -> Result<()> {
        if self.is_noted() { self.files.remove_part(self.part.id) } else { Ok(()) }
    }
}
