//! A client asks slots for their content, and freezes it while it is written to disk.

use fieldstone_core::Result;
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_segment::manifest::SplitVertex;

use crate::client::SlotClient;

/// The content that a slot reports: its segments, by their numbers in the storage, and its splits if
/// requested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownShelf {
    /// The segments, the oldest first.
    pub segments: Vec<u64>,
    /// The splits.
    pub splits: Vec<SplitVertex>,
}

impl SlotClient {
    /// Asks all slots for their content, in the order of slots; with `freeze` they do not change it until
    /// they are thawed.
    pub fn show(&mut self, freeze: bool, splits: bool) -> Result<Vec<ShownShelf>> {
        let token = self.fresh_number();
        self.say_to_all(&Message::Show { token, freeze, splits });
        self.shown(token)
    }

    /// Replaces the frozen content of slots by the content written to disk, a list of segments for each slot;
    /// `None`: nothing was written. Returns their content afterwards.
    pub fn thaw(&mut self, saved: Option<Vec<Vec<u64>>>) -> Result<Vec<ShownShelf>> {
        let token = self.fresh_number();
        let mut saved = saved.map(Vec::into_iter);
        for slot in 0..self.slots() {
            let saved = saved.as_mut().map(|saved| saved.next().unwrap_or_default());
            self.say(slot, Message::Thaw { token, saved });
        }
        self.shown(token)
    }

    fn shown(&mut self, of: u64) -> Result<Vec<ShownShelf>> {
        let slots = usize::from(self.slots());
        let (mut shelves, mut left) = (vec![ShownShelf::default(); slots], slots);
        while left > 0 {
            let (from, message) = self.receive()?;
            let Message::Shown { token, segments, splits } = message else { continue };
            if let Some(shelf) = shelves.get_mut(usize::from(from)).filter(|_| token == of) {
                *shelf = ShownShelf { segments, splits };
                left -= 1;
            }
        }
        Ok(shelves)
    }
}
