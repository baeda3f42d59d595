//! Channels: those of std; in a run, a thread that waits at one lets others run.

use std::sync::mpsc as std_mpsc;
use std::sync::mpsc::{TryRecvError, TrySendError};

pub use std::sync::mpsc::{RecvError, SendError};

use super::schedule::member;

/// As [`std::sync::mpsc::Sender`].
#[derive(Debug)]
pub struct Sender<T>(std_mpsc::Sender<T>);

/// As [`std::sync::mpsc::SyncSender`].
#[derive(Debug)]
pub struct SyncSender<T>(std_mpsc::SyncSender<T>);

/// As [`std::sync::mpsc::Receiver`].
#[derive(Debug)]
pub struct Receiver<T>(std_mpsc::Receiver<T>);

/// As [`std::sync::mpsc::channel`].
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = std_mpsc::channel();
    (Sender(sender), Receiver(receiver))
}

/// As [`std::sync::mpsc::sync_channel`].
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = std_mpsc::sync_channel(bound);
    (SyncSender(sender), Receiver(receiver))
}

impl<T> Sender<T> {
    /// Sends a value.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        super::pause();
        self.0.send(value)
    }
}

impl<T> SyncSender<T> {
    /// Sends a value once there is space.
    pub fn send(&self, mut value: T) -> Result<(), SendError<T>> {
        let Some(member) = member() else { return self.0.send(value) };
        loop {
            member.pause();
            match self.0.try_send(value) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(back)) => value = back,
                Err(TrySendError::Disconnected(back)) => return Err(SendError(back)),
            }
        }
    }
}

impl<T> Receiver<T> {
    /// Receives the next value.
    pub fn recv(&self) -> Result<T, RecvError> {
        let Some(member) = member() else { return self.0.recv() };
        loop {
            member.pause();
            match self.0.try_recv() {
                Ok(value) => return Ok(value),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(RecvError),
            }
        }
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

/// Values until every sender is gone.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}
