//! A client asks slots what they hold, and has them keep that while it is written to disk.

use fieldstone_core::Result;
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_segment::manifest::SplitVertex;

use crate::client::SlotClient;

/// The content that a slot reports: its segments, by their numbers in the storage, and its splits where they are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownShelf {
    /// The segments, the older first.
    pub segments: Vec<u64>,
    /// The splits.
    pub splits: Vec<SplitVertex>,
}

impl SlotClient {
    /// Asks all slots what they hold; with `freeze` they leave that as it is until they thaw. In the order of slots.
    pub fn show(&mut self, freeze: bool, splits: bool) -> Result<Vec<ShownShelf>> {
        let token = self.fresh_number();
        self.say_to_all(&Message::Show { token, freeze, splits });
        self.shown(token)
    }

    /// Has slots take what was written to disk, for each slot its segments, in place of what is frozen; `None`: nothing was
    /// written. Gives what they hold then.
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
