//! Mailboxes that count the traffic through them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fieldstone_format::bytes::Cursor;
use fieldstone_format::graph_message::ends::Address;
use fieldstone_format::graph_message::{Frame, Message};
use fieldstone_slots::network::{Arrival, Mailboxes, Network, Networks};

/// The number of the message with which a split hands rows over.
const MOVE: u8 = 3;

/// Mailboxes and their counts.
#[derive(Debug, Default)]
pub struct Counting {
    mailboxes: Mailboxes,
    frames: AtomicU64,
    bytes: AtomicU64,
    moved: AtomicU64,
}

impl Counting {
    /// Frames, their bytes, and relations that splits moved, so far.
    pub fn sent(&self) -> [u64; 3] {
        [&self.frames, &self.bytes, &self.moved].map(|count| count.load(Ordering::Relaxed))
    }
}

/// The kind of a frame's message, which follows the checksum, two addresses and a number.
fn kind(frame: &[u8]) -> Option<u8> {
    let mut cursor = Cursor::new(frame.get(4..)?);
    for _ in 0..2 {
        if cursor.varint().ok()? == 0 {
            cursor.take(16).ok()?;
        }
    }
    cursor.varint().ok()?;
    cursor.u8().ok()
}

impl Network for Counting {
    fn open(&self, end: Address) {
        self.mailboxes.open(end);
    }

    fn send(&self, to: Address, frame: Vec<u8>) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
        if kind(&frame) == Some(MOVE)
            && let Ok(Frame { message: Message::Move { rows, .. }, .. }) = Frame::decode(&frame)
        {
            self.moved.fetch_add(rows.of_relations.len() as u64, Ordering::Relaxed);
        }
        self.mailboxes.send(to, frame);
    }

    fn receive(&self, end: Address, wait: Duration) -> Arrival {
        self.mailboxes.receive(end, wait)
    }

    fn is_reliable(&self) -> bool {
        self.mailboxes.is_reliable()
    }

    fn close(&self, end: Address) {
        self.mailboxes.close(end);
    }
}

/// The one network of a program.
#[derive(Debug)]
pub struct OneNetwork(pub Arc<Counting>);

impl Networks for OneNetwork {
    fn network(&self) -> Arc<dyn Network> {
        self.0.clone()
    }
}
