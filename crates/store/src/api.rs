//! The calls of a field store, whatever keeps its bytes.
//!
//! The trait is small: every option of a call stands in a struct with a default, so that a wrapper
//! forwards a call whole. What a caller does most is in [`FieldStoreExt`].
//!
//! Contract of every implementation (checked by [`conformance`](crate::conformance)):
//! * `archive` returns when the store has its own copy of the data; `flush` when everything this handle
//!   archived (outside transactions) is durable, indexed and visible; nothing is visible before;
//! * a key archived again is a new version; readers see the old one until the new one is flushed;
//! * reads pin a snapshot at the call and never mix in newer data;
//! * errors name the key, keyword or file at fault.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};

pub use fieldstone_core::compression::Compression;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary};
use fieldstone_core::key::{FieldKey, KeyValue};
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_core::{Error, Result};
pub use fieldstone_format::Id;
pub use fieldstone_format::log::SideRecord;

pub use crate::checkpoint::{CheckpointOptions, CheckpointReport};
pub use crate::feed::{Commit, EntryChange, Feed, TransactionState};
pub use crate::join::{Home, SideSource};
use crate::read::{Field, Fields};
pub use crate::snapshot::Problem;

/// Keyword → value pairs in any order.
pub type Pairs<'a> = [(&'a str, &'a str)];

/// What is archived under a key.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// Opaque bytes: a GRIB message, a file.
    Bytes(&'a [u8]),
    /// A whole array, in C order.
    Array {
        /// The elements' bytes.
        data: &'a [u8],
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: &'a [u64],
    },
    /// A piece of an array whose other pieces come from elsewhere.
    Piece {
        /// The elements' bytes, C order within the box.
        data: &'a [u8],
        /// Element type.
        dtype: DType,
        /// Start of the piece in the array.
        start: &'a [u64],
        /// Extents of the piece.
        count: &'a [u64],
        /// Shape of the whole array.
        shape: &'a [u64],
    },
}

/// Options of [`FieldStore::archive`] and [`FieldStore::create_field`].
#[derive(Debug, Clone, Default)]
pub struct ArchiveOptions {
    /// The transaction this belongs to.
    pub transaction: Option<Id>,
    /// zstd level for the blocks; `None` takes the store's setting.
    pub compression: Option<Compression>,
    /// Extents of the chunks of an array; chosen by size where absent.
    pub chunks: Option<Vec<u64>>,
    /// Whether values of equal bytes that this handle flushed share their place in the store. Each stays a
    /// field of its own.
    pub share: bool,
}

/// What [`FieldStore::create_field`] declares.
#[derive(Debug, Clone)]
pub struct FieldSpec<'a> {
    /// Element type.
    pub dtype: DType,
    /// Shape of the whole array.
    pub shape: &'a [u64],
    /// One element for what nobody writes; the type's missing value (NaN, NaT, else zero) if absent.
    pub fill: Option<&'a [u8]>,
    /// Extents of the chunks that pieces are cut by.
    pub chunks: Option<&'a [u64]>,
}

/// What stands in a file outside.
#[derive(Debug, Clone, Copy)]
pub enum ExternalContent<'a> {
    /// So many opaque bytes.
    Bytes(u64),
    /// A whole array, in C order.
    Array {
        /// Element type, with the byte order that the file has.
        dtype: DType,
        /// Extents.
        shape: &'a [u64],
    },
}

/// What a file was when somebody looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Bytes of the file.
    pub nbytes: u64,
    /// Its change time, nanoseconds since 1970.
    pub mtime: i64,
}

/// What [`FieldStore::archive_external`] takes: `parts` ranges of equal length, `stride` bytes from
/// beginning to beginning, that together are a field's bytes in order.
#[derive(Debug, Clone, Copy)]
pub struct ExternalSpec<'a> {
    /// The file.
    pub path: &'a Path,
    /// Where the first part begins.
    pub offset: u64,
    /// How many parts there are; 1 for bytes that follow one another.
    pub parts: u64,
    /// Distance of the parts; means nothing for one.
    pub stride: u64,
    /// What they hold.
    pub content: ExternalContent<'a>,
    /// What the file must still be; as it is now where absent.
    pub seen: Option<Seen>,
}

/// Options of [`FieldStore::remove`] and [`FieldStore::remove_fields`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RemoveOptions {
    /// The transaction this belongs to.
    pub transaction: Option<Id>,
}

/// Options of reading calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// See also what is prepared under this transaction.
    pub transaction: Option<Id>,
}

/// Options of [`FieldStore::list`].
#[derive(Debug, Clone, Copy)]
pub struct ListOptions {
    /// 1: datasets, 2: indexes, 3: fields.
    pub depth: u8,
    /// List versions that newer ones hide, too.
    pub masked: bool,
    /// See also what is prepared under this transaction.
    pub transaction: Option<Id>,
}

impl Default for ListOptions {
    fn default() -> Self {
        ListOptions { depth: 3, masked: false, transaction: None }
    }
}

/// Options of [`FieldStore::retrieve`].
#[derive(Debug, Clone, Copy)]
pub struct RetrieveOptions {
    /// Whether a listed value or combination without a field is an error.
    pub strict: bool,
    /// See also what is prepared under this transaction.
    pub transaction: Option<Id>,
}

impl Default for RetrieveOptions {
    fn default() -> Self {
        RetrieveOptions { strict: true, transaction: None }
    }
}

/// The file that holds a field's bytes. Its text is the path relative to the store's folder, or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceFile {
    /// A file of a writer: 0 is its log, n its data log n.
    Own(Id, u32),
    /// A file outside the store.
    Outside(Arc<str>),
}

impl fmt::Display for PlaceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceFile::Own(writer, 0) => write!(f, "logs/{}", fieldstone_format::log::file_name(*writer)),
            PlaceFile::Own(writer, n) => {
                write!(f, "data/{}", fieldstone_format::data::file_name(*writer, *n))
            }
            PlaceFile::Outside(url) => f.write_str(url),
        }
    }
}

/// Where the first bytes of a field are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PlaceFile,
    /// Offset of the first byte.
    pub offset: u64,
    /// Stored bytes, where known without reading more.
    pub length: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// One line of a list.
#[derive(Debug, Clone)]
pub struct ListEntry {
    /// The key; only its first `depth` levels count.
    pub key: FieldKey,
    /// How many levels of the key are listed.
    pub depth: u8,
    /// Raw bytes of the field when whole.
    pub nbytes: u64,
    /// Element type; `None` for opaque bytes.
    pub dtype: Option<DType>,
    /// Shape; `None` for opaque bytes.
    pub shape: Option<Arc<[u64]>>,
    /// Extents of the chunks it is stored in; `None` where it is one block, and for opaque bytes. Of a
    /// field in pieces: those it was created with, else of its largest piece.
    pub chunks: Option<Arc<[u64]>>,
    /// Whether every element is there.
    pub complete: bool,
    /// Where its newest piece is; nowhere for a created field without pieces.
    pub place: Option<Place>,
    /// When it was flushed, nanoseconds since 1970, by the writer's clock.
    pub time: i64,
    /// The user who wrote it.
    pub owner: Arc<str>,
    /// Extremes and missing elements, where every piece has them.
    pub summary: Option<Summary>,
    /// Whether a newer version hides it.
    pub masked: bool,
}

/// A stream of list entries.
pub type Listing = Box<dyn Iterator<Item = Result<ListEntry>> + Send>;

/// Something `verify` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The field, where the damage belongs to one.
    pub key: Option<String>,
    /// File, relative to the store's folder.
    pub file: String,
    /// What is wrong.
    pub why: String,
}

/// What [`FieldStore::verify`] looked at and found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Fields (versions and pieces) whose blocks were read.
    pub fields: u64,
    /// Bytes of blocks that were read and compared.
    pub bytes: u64,
    /// Files looked at.
    pub files: u64,
    /// What is damaged.
    pub damaged: Vec<Damage>,
    /// What is worth knowing but no damage: torn tails, orphaned bytes.
    pub notes: Vec<String>,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    pub fn ok(&self) -> bool {
        self.damaged.is_empty()
    }
}

/// Counts of a store or of what a request selects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Datasets.
    pub datasets: u64,
    /// Indexes (second level).
    pub indexes: u64,
    /// Visible fields.
    pub fields: u64,
    /// Raw bytes of the visible fields.
    pub bytes: u64,
    /// Stored bytes of their blocks (compressed).
    pub stored_bytes: u64,
    /// Versions and pieces that newer ones hide.
    pub masked: u64,
    /// Writers.
    pub writers: u64,
    /// Index runs.
    pub runs: u64,
    /// Bytes of all files of the store.
    pub file_bytes: u64,
    /// Files of the store.
    pub files: u64,
}

/// One writer as `status` shows it.
#[derive(Debug, Clone)]
pub struct WriterStatus {
    /// Its id, which names its log.
    pub writer: Id,
    /// Host it ran on.
    pub host: String,
    /// Process id there.
    pub process: u32,
    /// User.
    pub user: String,
    /// `open`, `closed`, or `gone` (the process ended without closing).
    pub state: &'static str,
    /// Commits.
    pub commits: u64,
    /// Index runs.
    pub runs: u64,
    /// When it last flushed, nanoseconds since 1970, by its clock.
    pub last_flush: i64,
    /// How far its clock is ahead of the file system's, nanoseconds, where it is off by a minute or more.
    pub clock_off: Option<i64>,
    /// Bytes behind its last commit: being written, or torn.
    pub tail: u64,
}

/// An open transaction as `status` shows it.
#[derive(Debug, Clone)]
pub struct TransactionStatus {
    /// Its id.
    pub id: Id,
    /// Who flushed into it: user, host, process.
    pub owners: Vec<String>,
    /// Fields prepared.
    pub fields: u64,
    /// Kinds of content that are visible already, as bits.
    pub kinds: u32,
    /// When it was first flushed into, nanoseconds since 1970.
    pub since: i64,
}

/// What [`FieldStore::status`] shows.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Where the store is.
    pub url: String,
    /// Its id; `None` before the first commit.
    pub id: Option<Id>,
    /// Name of its schema, or `custom`.
    pub schema: String,
    /// Format version.
    pub format: u32,
    /// Its current version.
    pub version: String,
    /// Writers, by id.
    pub writers: Vec<WriterStatus>,
    /// Undecided transactions.
    pub transactions: Vec<TransactionStatus>,
    /// Owner of each dataset, where users differ; else the one owner.
    pub owners: Vec<String>,
    /// What is wrong with logs or boards.
    pub problems: Vec<String>,
    /// Free bytes of the file system.
    pub free_bytes: u64,
    /// Fields archived by this handle and not yet flushed.
    pub unflushed: u64,
}

/// A store of fields.
pub trait FieldStore: Send + Sync + fmt::Debug {
    /// Where the store is, as it was opened.
    fn url(&self) -> &str;
    /// The schema in force.
    fn schema(&self) -> Schema;
    /// What a request means under this schema today; nothing is looked up.
    fn select(&self, request: &Request) -> Result<Selection>;
    /// Takes a value under a key; see the contract above.
    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()>;
    /// Takes many values; all keys are checked before the first is taken.
    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()>;
    /// Starts a new generation of an array field, to which anyone adds pieces.
    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()>;
    /// Takes bytes that stay in a file outside the store: they are read once, for their checksums, and
    /// from there whenever the field is read. A file that is gone or not what it was is Corrupt then.
    /// The store never changes or removes the file.
    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()>;
    /// Removes the fields that a request selects, of what this handle sees and what it archived and did
    /// not flush; returns how many. From the flush on their keys have no field, until one is archived
    /// again; what they held stays readable in older versions. Invalid for a request that selects
    /// everything.
    fn remove(&self, request: &Request, options: &RemoveOptions) -> Result<u64>;
    /// Removes these very versions of fields. One that is not the newest any more when this becomes
    /// visible, whoever wrote the newer one and whenever, stays untouched.
    fn remove_fields(&self, fields: &[Field], options: &RemoveOptions) -> Result<()>;
    /// The user who owns what stands under an encoded first level of keys, a dataset or a run of the
    /// catalog; `None` where nobody does yet.
    fn owner(&self, level: &[u8]) -> Result<Option<u32>>;
    /// Makes what stands under an encoded first level ours, from the session's next flush on. Denied where
    /// another user owns it. Archiving a field claims its dataset by itself.
    fn claim(&self, level: Vec<u8>, transaction: Option<Id>) -> Result<()>;
    /// Carries catalog and graph changes with the next flush.
    fn archive_side(&self, records: Vec<SideRecord>, transaction: Option<Id>) -> Result<()>;
    /// Side records that this handle took for a session and did not flush yet, in their order.
    fn pending_side(&self, transaction: Option<Id>) -> Result<Vec<SideRecord>>;
    /// What the logs hold at this moment (or in the version this handle was opened at), commit by commit.
    fn feed(&self) -> Result<Feed>;
    /// Makes what was archived durable and visible; under a transaction: durable and prepared.
    ///
    /// Where it fails, what was archived and not flushed is lost, and the error names it; the store goes on.
    /// Unavailable also where a file that was written to, or the store, has been removed or replaced: each
    /// time, as long as the store is gone, which is not made anew.
    ///
    /// A failure may take more than the caller's own: what other threads archived, and what waits for other
    /// flushes of this handle and stood in the same files. Each thread that archived some of it gets the same
    /// kind of error, with its own keys, from its next flush or close, once; that call then flushes nothing. A
    /// transaction that lost a part so refuses every flush and commit from then on (decided by this handle, it
    /// can only be aborted).
    fn flush(&self, transaction: Option<Id>) -> Result<()>;
    /// Forgets what was archived and not flushed.
    fn discard(&self, transaction: Option<Id>) -> Result<()>;
    /// Raises what a flush would raise of earlier failures that took what this thread archived, and nothing
    /// else; it counts as told then.
    fn check_lost(&self, transaction: Option<Id>) -> Result<()>;
    /// Fields archived and not yet flushed.
    fn unflushed(&self) -> u64;
    /// Looks for newer commits now (every read does so by itself).
    fn refresh(&self) -> Result<()>;
    /// The text that names what is visible now.
    fn version(&self) -> Result<String>;
    /// What exists, as a stream in key order.
    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing>;
    /// The fields a request names, in request order, lazily.
    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<Fields>;
    /// Exactly one field: the one with this very key, or else the only one the key names as a request.
    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field> {
        get_by_request(self, key, options)
    }
    /// The values present, per keyword, in typed order.
    fn axes(&self, request: &Request, options: &ReadOptions) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>>;
    /// Counts.
    fn stats(&self, request: &Request) -> Result<Stats>;
    /// Writers, transactions, problems.
    fn status(&self) -> Result<Status>;
    /// Reads and compares everything a request selects, and the store's own structures.
    fn verify(&self, request: &Request) -> Result<VerifyReport>;
    /// The store's structures as text, line by line: logs, commits, runs, entries.
    fn dump(&self, request: &Request) -> Result<Vec<String>>;
    /// Opens a transaction that this handle will decide.
    fn begin(&self) -> Result<Id>;
    /// Decides a transaction: visible for all, or never. Written also where nothing was flushed into it, so
    /// that who joins it later is told.
    fn decide(&self, transaction: Id, commit: bool) -> Result<()>;
    /// Aborts a transaction of which nobody but this handle has the id: where nothing was flushed into it,
    /// nothing is written.
    fn abandon(&self, transaction: Id) -> Result<()>;
    /// Makes kinds of content of a transaction visible (`on`) or invisible again (`off`), given as bits
    /// (see [`fieldstone_format::log::kinds`]); `on` flushes first. What is prepared by now counts;
    /// the transaction stays open for more until it is decided, and a committed one stays committed.
    /// All 32 bits are the same as a commit. Conflict for an aborted transaction.
    fn decide_kinds(&self, transaction: Id, on: u32, off: u32) -> Result<()>;
    /// Flushes what was archived outside transactions, and writes all that is visible then to a folder,
    /// as an ordinary store, durable when this returns; meanwhile others go on writing. Prepared commits
    /// of undecided transactions go with it, undecided. Only for a store in memory.
    fn checkpoint(&self, folder: &Path, options: &CheckpointOptions) -> Result<CheckpointReport> {
        let _ = (folder, options);
        Err(Error::invalid(format!("the store at {} is not in memory", self.url()))
            .with_hint("a checkpoint is taken of a memory: store; others are durable at each flush"))
    }
    /// Flushes and says that this handle writes no more.
    fn close(&self) -> Result<()>;
    /// Where and what the store is.
    fn home(&self) -> Home;
    /// Asks `source` for side records before every flush of this process's handle, for as long as it lives.
    fn attach(&self, source: Weak<dyn SideSource>);
}

/// What callers do most, in terms of [`FieldStore`].
pub trait FieldStoreExt: FieldStore {
    /// The one field a request names; Invalid where it names several.
    fn get_one(&self, request: &Request, options: &ReadOptions) -> Result<Field> {
        only_one(self, request, options)
    }

    /// A box of an array, or all of it.
    fn get_box(&self, key: &Pairs<'_>, region: Option<&IndexBox>, options: &ReadOptions) -> Result<Vec<u8>> {
        self.get(key, options)?.read_box(region)
    }
}

impl<S: FieldStore + ?Sized> FieldStoreExt for S {}

/// The one field that a key names as a request.
pub(crate) fn get_by_request<S: FieldStore + ?Sized>(
    store: &S,
    key: &Pairs<'_>,
    options: &ReadOptions,
) -> Result<Field> {
    let mut request = Request::new();
    for (keyword, value) in key {
        request.set(*keyword, fieldstone_core::request::Values::list([*value]));
    }
    only_one(store, &request, options)
}

fn only_one<S: FieldStore + ?Sized>(store: &S, request: &Request, options: &ReadOptions) -> Result<Field> {
    // Lenient, because another field that the request names may be incomplete; the one is checked when
    // it is read.
    let lenient = RetrieveOptions { strict: false, transaction: options.transaction };
    let fields = store.retrieve(request, &lenient)?;
    let mut fields = fields.iter();
    match (fields.next().transpose()?, fields.next().transpose()?) {
        (Some(field), None) => Ok(field.strict()),
        (None, _) => {
            Err(Error::not_found(format!("no field {request}"))
                .with_hint("see what exists with axes or list"))
        }
        (Some(a), Some(b)) => Err(Error::invalid(format!(
            "{request} names more than one field: {} and {} among them",
            a.key()?,
            b.key()?
        ))
        .with_hint("give every keyword, or use retrieve")),
    }
}
