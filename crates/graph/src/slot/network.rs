//! What carries frames between slots and clients.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use fieldstone_core::sync::{Condvar, Mutex};

/// Carries frames. Ends are numbers: slots from 0, clients behind them.
pub trait Network: Debug + Send + Sync {
    /// Sends a frame. On a network that is not reliable it may come late, twice or never.
    fn send(&self, to: u32, frame: Vec<u8>);

    /// The next frame for an end; `None` when none came for so long.
    fn receive(&self, end: u32, wait: Duration) -> Option<Vec<u8>>;

    /// Whether every frame comes once, and those of two ends in order.
    fn is_reliable(&self) -> bool;

    /// Whether the slot of this number still serves.
    fn serves(&self, slot: u32) -> bool;

    /// A slot does not serve any more: whoever waits for it hears of it.
    fn leave(&self, slot: u32);

    /// A client is gone: what comes for it is forgotten.
    fn close(&self, end: u32);
}

/// Makes networks, one for each time that slots are started.
pub trait Networks: Debug + Send + Sync {
    /// A network on which nobody is yet.
    fn network(&self) -> Arc<dyn Network>;
}

/// Frames that wait for one end.
#[derive(Debug, Default)]
struct Mailbox {
    frames: Mutex<VecDeque<Vec<u8>>>,
    came: Condvar,
}

/// Mailboxes in memory, between threads.
#[derive(Debug, Default)]
pub struct Mailboxes {
    boxes: Mutex<HashMap<u32, Arc<Mailbox>>>,
    gone: Mutex<Vec<u32>>,
}

impl Mailboxes {
    fn mailbox(&self, end: u32) -> Arc<Mailbox> {
        self.boxes.lock().entry(end).or_default().clone()
    }
}

impl Network for Mailboxes {
    fn send(&self, to: u32, frame: Vec<u8>) {
        let mailbox = self.mailbox(to);
        mailbox.frames.lock().push_back(frame);
        mailbox.came.notify_one();
    }

    fn receive(&self, end: u32, wait: Duration) -> Option<Vec<u8>> {
        let mailbox = self.mailbox(end);
        let mut frames = mailbox.frames.lock();
        if frames.is_empty() && !wait.is_zero() {
            let waited = mailbox.came.wait_timeout_while(frames, wait, |frames| frames.is_empty());
            frames = waited.0;
        }
        frames.pop_front()
    }

    fn is_reliable(&self) -> bool {
        true
    }

    fn serves(&self, slot: u32) -> bool {
        !self.gone.lock().contains(&slot)
    }

    fn leave(&self, slot: u32) {
        self.gone.lock().push(slot);
        let all: Vec<Arc<Mailbox>> = self.boxes.lock().values().cloned().collect();
        all.iter().for_each(|mailbox| mailbox.came.notify_all());
    }

    fn close(&self, end: u32) {
        self.boxes.lock().remove(&end);
    }
}
