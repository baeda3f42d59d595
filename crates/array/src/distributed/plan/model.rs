//! The costs of an exchange in messages, bytes and memory, as a function of its sizes: for numbers of ranks that are
//! not available for a test.
//!
//! The model follows the code step by step. A test compares it with the counters of 1 to 256 ranks, whose maps assign
//! elements to aggregators at random, and with an allocator that counts; the example `exchange_model` prints it for up to
//! 4,096.
//!
//! ```
//! use fieldstone_array::distributed::plan::model::ExchangeCase;
//! let case = ExchangeCase { ranks: 1024, aggregators: 1024, elements: 1 << 30, size: 8, buffer: 64 << 20 };
//! let (first, later) = (case.first_write(), case.later_write());
//! // Each rank has 1 Mi elements of 8 bytes, and sends each index in 4 bytes, once.
//! assert_eq!(later.sent >> 20, 7);
//! assert_eq!((first.sent - later.sent) >> 20, 4);
//! assert_eq!(later.rounds, 1);
//! ```

use super::exchange;
use super::ranges::Ranges;

/// Bytes of an agreement, which begins every collective and carries a few numbers of its own.
const AGREE: u64 = 56;

/// An exchange that writes a map over all elements of an array, with equally many elements on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeCase {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of ranks that own a range.
    pub aggregators: usize,
    /// Number of elements of the array.
    pub elements: u64,
    /// Bytes of an element.
    pub size: u64,
    /// Bytes that a rank may use.
    pub buffer: usize,
}

/// The work of the rank that sends most, for one write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExchangeCost {
    /// Number of rounds.
    pub rounds: u64,
    /// Number of messages sent.
    pub messages: u64,
    /// Number of bytes sent.
    pub sent: u64,
    /// The part of these bytes that are elements.
    pub elements: u64,
    /// Maximum memory in bytes at any time, without the caller's map and elements; for a later write also without the
    /// plan.
    pub memory: u64,
}

/// Bytes of an entry in a list of lists, and of the begin and end of a part.
const LIST: u64 = 24;
const PART: u64 = 16;

/// Messages and bytes so far.
struct Account {
    /// Number of messages in a tree over all ranks.
    depth: u64,
    pairs: u64,
    cost: ExchangeCost,
}

impl Account {
    fn tree(&mut self, bytes: u64) {
        self.cost.messages += self.depth;
        self.cost.sent += self.depth * bytes;
    }

    /// A maximum of a few numbers, which the agreement carries.
    fn agree(&mut self) {
        self.tree(AGREE);
    }

    /// Sums over all ranks, with agreement.
    fn total(&mut self, numbers: u64) {
        self.agree();
        self.tree(8 * numbers);
    }

    /// An all-to-all exchange, with agreement.
    fn all_to_all(&mut self, bytes: u64) {
        self.agree();
        self.exchange(bytes);
    }

    /// Parts whose lengths are known.
    fn exchange(&mut self, bytes: u64) {
        self.cost.messages += self.pairs;
        self.cost.sent += bytes;
    }
}

impl ExchangeCase {
    fn ranges(&self) -> Ranges {
        let ranges =
            Ranges::new(self.elements, 1, self.aggregators.clamp(1, self.ranks), &vec![0; self.ranks]);
        ranges.with_buckets(exchange::bucket(self.buffer) / 8)
    }

    fn account(&self) -> Account {
        let depth = u64::from(self.ranks.next_power_of_two().trailing_zeros());
        Account { depth, pairs: self.ranks as u64 - 1, cost: ExchangeCost::default() }
    }

    /// Elements that a rank sends to others: all except those of its own range.
    fn sent_elements(&self) -> u64 {
        let own = self.elements.div_ceil(self.ranks as u64);
        // A rank that owns nothing keeps nothing.
        let kept = if self.aggregators < self.ranks { 0 } else { own / self.aggregators as u64 };
        own - kept
    }

    /// The first write of a view, by a planner without plans.
    pub fn first_write(&self) -> ExchangeCost {
        let mut account = self.account();
        if self.ranks == 1 {
            return self.with_plan(self.write(account, false));
        }
        // Agreements: whether a plan serves; amounts; whether boxes overlap; which elements move together.
        account.agree();
        account.total(3);
        account.agree();
        account.agree();
        if self.aggregators < self.ranks {
            // Names of hosts.
            account.all_to_all(0);
        }
        // The number of elements in each bucket; whether these are too many; which elements.
        account.all_to_all(8 * self.ranges().buckets() * (self.aggregators as u64 - 1));
        account.agree();
        account.exchange(self.sent_elements() * self.widths().1);
        account.agree();
        // Whether an element comes twice.
        account.total(2);
        self.with_plan(self.write(account, true))
    }

    /// The cost of a write that makes its plan first.
    fn with_plan(&self, write: ExchangeCost) -> ExchangeCost {
        ExchangeCost { memory: self.planning().max(self.kept() + write.memory), ..write }
    }

    /// Bytes of a position in memory, and of an index in a range.
    fn widths(&self) -> (u64, u64) {
        let width = |limit: u64| if limit <= u64::from(u32::MAX) { 4 } else { 8 };
        let ranges = self.ranges();
        (width(self.own()), width(ranges.most_blocks() << ranges.shift))
    }

    fn own(&self) -> u64 {
        self.elements.div_ceil(self.ranks as u64)
    }

    /// Elements in an aggregator's range.
    fn range(&self) -> u64 {
        self.elements.div_ceil(self.aggregators.clamp(1, self.ranks) as u64)
    }

    /// Number of buckets of all aggregators.
    fn buckets(&self) -> u64 {
        self.ranges().buckets() * self.aggregators.clamp(1, self.ranks) as u64
    }

    /// Memory of a plan during its construction: its own positions and indices, and the indices it receives.
    fn planning(&self) -> u64 {
        let (place, index) = self.widths();
        let ranges = self.ranges();
        let (own, range, ranks) = (self.own(), self.range(), self.ranks as u64);
        // Units and buckets of blocks; begins of buckets, twice; the number of units received for each bucket.
        let tables = 12 * ranges.blocks + 16 * self.buckets() + (LIST + 8 * ranges.buckets()) * ranks;
        let sending = own * (place + index) + range * index + tables + PART * ranks;
        let keeping = own * place + range * index + range / 8 + tables;
        sending.max(keeping)
    }

    /// Memory that a plan keeps: positions, indices of the range, the number of units in each bucket, and the units.
    fn kept(&self) -> u64 {
        let (place, index) = self.widths();
        let range = self.range();
        let of_aggregator = range * index + range / 8 + 8 * self.ranges().buckets();
        self.own() * place + of_aggregator + 8 * self.buckets() + PART * self.ranks as u64
    }

    /// A repeated write of the same view.
    pub fn later_write(&self) -> ExchangeCost {
        let mut account = self.account();
        if self.ranks > 1 {
            // Whether a plan serves.
            account.agree();
        }
        self.write(account, false)
    }

    fn write(&self, mut account: Account, is_first: bool) -> ExchangeCost {
        let ranges = self.ranges();
        let share = exchange::share(self.buffer, self.ranks);
        let most = ranges.buckets().max(1);
        let mut window = (share / (self.size << ranges.bucket_shift())).clamp(1, most);
        // A rank sends to all aggregators in a round.
        let in_round = |window: u64| {
            let of_aggregators =
                (window << ranges.bucket_shift()).min(self.range()) * ranges.aggregators() as u64;
            of_aggregators.min(self.elements).div_ceil(self.ranks as u64) * self.size
        };
        while window > 1 && in_round(window) > share {
            window /= 2;
        }
        let rounds = ranges.buckets().div_ceil(window);
        // The bytes sent, those received, and the window that receives them.
        let taken = (window << ranges.bucket_shift()).min(self.range()) * self.size;
        let lists = LIST * self.ranks as u64;
        // A rank's own elements are not sent. All of it stays from round to round.
        let (sent, came) = (in_round(window), taken - taken / self.ranks as u64);
        account.cost.memory = lists + sent + came + taken;
        let elements = self.sent_elements() * self.size;
        if self.ranks > 1 {
            if is_first {
                account.agree();
            }
            account.cost.messages += rounds * account.pairs;
            // Between rounds, and at the end.
            let between = exchange::rounds_between(window * (self.size << ranges.bucket_shift()));
            for _ in 0..rounds.div_ceil(between) {
                account.agree();
            }
            account.cost.sent += elements;
            account.cost.elements = elements;
        }
        ExchangeCost { rounds, ..account.cost }
    }
}
