//! Takeovers as they are read: a takeover stands in for ended logs, and everything that they held is found in its tables
//! (spec/takeovers.md).
//!
//! Opening one reads its header and its record. A table is read block by block, on demand, through a cache. Invariants:
//! * a takeover never changes, so that what is decoded of it once is kept for all snapshots that have it;
//! * a log has exactly one row in the names of all takeovers that count, which says up to which commit it goes;
//! * no user of a table sees a block that does not match its checksum.
//!
//! | module | |
//! |---|---|
//! | here | the file: tables and their blocks |
//! | `leaves` | rows that are found by their number, decoded leaf by leaf |
//! | `logs` | the logs that it replaces: who wrote them, up to which commit |
//! | `commits` | their commits |

mod commits;
mod leaves;
mod logs;

use std::fmt;
use std::sync::Arc;

use fieldstone_core::sync::Mutex;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::owner::Owner;
use fieldstone_format::table::{BlockRef, BlockSource, CheckedRows, TableCursor};
use fieldstone_format::takeover::{TakeoverHeader, TakeoverRecord, TakeoverTable};
use fieldstone_format::version::{OwnerName, TakeoverName};

pub use commits::TakenCommit;
use leaves::Leaves;
pub use logs::TakenLog;

use crate::block_cache::BlockCache;

/// Reads bytes of a takeover's files.
pub trait TakeoverBytes: Send + Sync + fmt::Debug {
    /// Fills `buffer` from an offset of file 0, the takeover, or n, its data log n.
    fn read(&self, file: u32, buffer: &mut [u8], offset: u64) -> Result<()>;
}

/// A cursor over the rows of one of its tables.
pub type Rows = TableCursor<Arc<Takeover>>;

/// A takeover that counts.
#[derive(Debug)]
pub struct Takeover {
    /// Its header.
    pub header: TakeoverHeader,
    /// Its record.
    pub record: TakeoverRecord,
    /// The digest of both, which versions name.
    pub digest: u64,
    /// The user whose logs it replaces.
    pub user: u32,
    /// Its file as messages name it.
    pub shown: String,
    /// The same for lists, whose entries share it.
    pub place: Arc<str>,
    /// Bytes of its file.
    pub bytes: u64,
    source: Box<dyn TakeoverBytes>,
    cache: Arc<BlockCache>,
    cached_as: u64,
    commits: Leaves<TakenCommit>,
    logs: Leaves<TakenLog>,
    /// Blocks of its entries that were given up, which readers pass over if they are damaged: file and offset.
    given_up: Mutex<Vec<(u32, u64)>>,
}

impl Takeover {
    /// The takeover with this header and record, given also as the bytes that they were read from.
    pub fn new(
        (header, header_bytes): (TakeoverHeader, &[u8]),
        record_bytes: &[u8],
        (user, shown, bytes): (u32, String, u64),
        source: Box<dyn TakeoverBytes>,
        cache: Arc<BlockCache>,
    ) -> Result<Takeover> {
        let record = TakeoverRecord::decode(record_bytes, &header)?;
        let digest = TakeoverHeader::digest(header_bytes, record_bytes);
        let cached_as = cache.next();
        let (commits, logs, given_up) = (Leaves::default(), Leaves::default(), Mutex::default());
        let place = shown.as_str().into();
        Ok(Takeover {
            header,
            record,
            digest,
            user,
            shown,
            place,
            bytes,
            source,
            cache,
            cached_as,
            commits,
            logs,
            given_up,
        })
    }

    /// Lets readers of entries pass over a block, if it is damaged: somebody gave it up.
    pub fn give_up(&self, block: (u32, u64)) {
        let mut given_up = self.given_up.lock();
        if !given_up.contains(&block) {
            given_up.push(block);
        }
    }

    /// Whether somebody gave a block up; without one, whether there is any such block.
    pub fn gives_up(&self, block: Option<&BlockRef>) -> bool {
        let given_up = self.given_up.lock();
        block.map_or(!given_up.is_empty(), |block| given_up.contains(&(block.file, block.offset)))
    }

    /// Its number among the takeovers of its owner.
    pub fn number(&self) -> u64 {
        self.header.number
    }

    /// Its owner.
    pub fn owner(&self) -> OwnerName {
        OwnerName::of(&self.header.owner)
    }

    /// How versions name it.
    pub fn name(&self) -> TakeoverName {
        TakeoverName { owner: self.owner(), number: self.number(), digest: self.digest }
    }

    /// The owner that it is of, where that is a user of the system.
    pub fn owner_user(&self) -> Option<u32> {
        match self.header.owner {
            Owner::User(user) => Some(user),
            Owner::Subject { .. } => None,
        }
    }

    /// Number of rows of a table.
    pub fn rows(&self, table: TakeoverTable) -> u64 {
        self.record.table(table).map_or(0, |reference| reference.rows)
    }

    /// A cursor before the first row of a table; `None` if it has no rows.
    pub fn cursor(self: &Arc<Self>, table: TakeoverTable) -> Option<Rows> {
        Some(TableCursor::new(self.record.table(table)?, self.clone()))
    }

    /// The value of the row with this key.
    pub fn value(self: &Arc<Self>, table: TakeoverTable, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(mut rows) = self.cursor(table) else { return Ok(None) };
        let found = rows.seek(key).map_err(|e| self.named(e))? && rows.key() == key;
        Ok(found.then(|| rows.value().to_vec()))
    }

    /// Calls `each` with every row of a table whose key begins so.
    pub fn each_below(
        self: &Arc<Self>,
        table: TakeoverTable,
        prefix: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(mut rows) = self.cursor(table) else { return Ok(()) };
        let named = |e: Error| self.named(e);
        let mut more = rows.seek(prefix).map_err(named)?;
        while more && rows.key().starts_with(prefix) {
            each(rows.key(), rows.value()).map_err(named)?;
            more = rows.advance().map_err(named)?;
        }
        Ok(())
    }

    /// Walks all rows of a table and checks the tree and its order, for `verify`.
    pub fn check(
        self: &Arc<Self>,
        table: TakeoverTable,
        each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(reference) = self.record.table(table) else { return Ok(()) };
        CheckedRows::walk(reference, Uncached(self), each).map(drop).map_err(|e| self.named(e))
    }

    /// Says which file an error is about.
    pub fn named(&self, error: Error) -> Error {
        error.context(&self.shown)
    }

    fn fetch(&self, reference: &BlockRef) -> Result<Arc<[u8]>> {
        // A damaged length must not become an allocation.
        let known = match reference.file {
            0 => self.bytes,
            file => self.record.data_logs.iter().find(|(n, _)| *n == file).map_or(0, |(_, length)| *length),
        };
        let end = reference.offset.checked_add(reference.stored);
        if end.is_none_or(|end| end > known) {
            return Err(Error::corrupt("a block lies outside its file"));
        }
        let mut stored = vec![0; reference.stored as usize];
        self.source.read(reference.file, &mut stored, reference.offset)?;
        Ok(reference.unpack(&stored)?.into())
    }
}

impl BlockSource for Takeover {
    fn block(&self, reference: &BlockRef) -> Result<Arc<[u8]>> {
        // File and offset are one number: a data log of a takeover is shorter than 2^56 bytes.
        let at = (self.cached_as, (u64::from(reference.file) << 56 ^ reference.offset) as usize);
        if let Some(block) = self.cache.get(at) {
            return Ok(block);
        }
        let block = self.fetch(reference)?;
        self.cache.put(at, &block);
        Ok(block)
    }
}

/// The blocks as they are on disk now.
struct Uncached<'a>(&'a Takeover);

impl BlockSource for Uncached<'_> {
    fn block(&self, reference: &BlockRef) -> Result<Arc<[u8]>> {
        self.0.fetch(reference)
    }
}

/// The takeovers that count, with the questions that are asked of all of them.
#[derive(Debug, Clone, Default)]
pub struct Takeovers(Vec<Arc<Takeover>>);

impl Takeovers {
    /// These takeovers.
    pub fn new(mut all: Vec<Arc<Takeover>>) -> Takeovers {
        all.sort_by_key(|takeover| (takeover.owner(), takeover.number()));
        Takeovers(all)
    }

    /// All of them, by owner and number.
    pub fn all(&self) -> &[Arc<Takeover>] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these are the same as others.
    pub fn is_same(&self, others: &Takeovers) -> bool {
        self.0.len() == others.0.len() && self.0.iter().zip(&others.0).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The newest of each owner.
    pub fn newest(&self) -> impl Iterator<Item = &Arc<Takeover>> {
        let last_of_owner =
            |pair: &[Arc<Takeover>]| pair.get(1).is_none_or(|next| next.owner() != pair[0].owner());
        (0..self.0.len()).filter(move |i| last_of_owner(&self.0[*i..])).map(|i| &self.0[i])
    }

    /// Number of logs that they replace.
    pub fn logs(&self) -> u64 {
        self.0.iter().map(|takeover| takeover.rows(TakeoverTable::Names)).sum()
    }

    /// Whether they have all that a takeover has: it is one of them, or a later one of its owner is.
    pub fn reach(&self, name: &TakeoverName) -> bool {
        let mut own = self.0.iter().filter(|takeover| takeover.owner() == name.owner);
        own.any(|takeover| takeover.number() >= name.number) && !self.contradict(name)
    }

    /// Whether another takeover has the number of this one.
    pub fn contradict(&self, name: &TakeoverName) -> bool {
        let is_same =
            |takeover: &Arc<Takeover>| (takeover.owner(), takeover.number()) == (name.owner, name.number);
        self.0.iter().any(|takeover| is_same(takeover) && takeover.digest != name.digest)
    }

    /// The log of a writer, where takeovers of this user replace it: nobody else's replace his logs.
    pub fn log_of(&self, writer: Id, user: u32) -> Result<Option<(&Arc<Takeover>, TakenLog)>> {
        for takeover in self.0.iter().filter(|takeover| takeover.user == user) {
            if let Some(log) = takeover.log(writer)? {
                return Ok(Some((takeover, log)));
            }
        }
        Ok(None)
    }

    /// The log of a writer, and the takeover that replaces it.
    pub fn log(&self, writer: Id) -> Result<Option<(&Arc<Takeover>, TakenLog)>> {
        for takeover in &self.0 {
            if let Some(log) = takeover.log(writer)? {
                return Ok(Some((takeover, log)));
            }
        }
        Ok(None)
    }
}
