//! Who writes: on whose behalf values are taken, and what he adds to the commits that hold them.
//!
//! An execution is the author of what it archives. The facade names the author of a call for as long as the call runs,
//! thread by thread; the journal keeps him with the batch and asks him when the commit is about to be written.
//!
//! Invariants:
//! * a commit holds values of one author, or of none: who archives into a session in which values of another one wait
//!   has these committed first (G-31);
//! * no lock of the journal is held while an author is asked;
//! * without an author nothing is done but to look at one thread-local value.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::log::SideRecord;

/// A commit that is about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitDraft {
    /// What it will be called.
    pub id: CommitId,
    /// Its stamp.
    pub stamp: u64,
    /// The clock at it, nanoseconds since 1970.
    pub time: i64,
    /// The transaction that it belongs to.
    pub transaction: Option<Id>,
    /// Fields in it.
    pub fields: u64,
    /// Their raw bytes.
    pub bytes: u64,
    /// Whether the catalog has records in it.
    pub catalog: bool,
}

/// Who writes commits.
pub trait CommitAuthor: Send + Sync + Debug {
    /// The stamp that the next commit's must exceed: what the author has read, he read before it.
    fn floor(&self) -> u64;

    /// Records that go into the commit, beside what it holds.
    fn records(&self, draft: &CommitDraft) -> Vec<SideRecord>;

    /// The commit is durable.
    fn landed(&self, draft: &CommitDraft);
}

/// An author, or nobody.
pub type Author = Option<Arc<dyn CommitAuthor>>;

thread_local! {
    static AUTHOR: RefCell<Author> = const { RefCell::new(None) };
}

/// While it lives, this thread writes for an author; then for whom it did before.
#[derive(Debug)]
#[must_use]
pub struct AuthorScope(Author);

impl AuthorScope {
    /// From here on this thread writes for this author.
    pub fn enter(author: Author) -> AuthorScope {
        AuthorScope(AUTHOR.with(|own| own.replace(author)))
    }
}

impl Drop for AuthorScope {
    fn drop(&mut self) {
        let before = self.0.take();
        // A thread that ends has no author any more.
        let _ = AUTHOR.try_with(|own| own.replace(before));
    }
}

/// For whom this thread writes.
pub fn current() -> Author {
    AUTHOR.with(|own| own.borrow().clone())
}

/// Whether two are one.
pub fn is_same(a: &Author, b: &Author) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}
