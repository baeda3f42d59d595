//! The journal: what the writers of a store wrote, and what of it counts. Field store and catalog stand on it,
//! and know nothing of one another.
//!
//! | module | |
//! |---|---|
//! | [`journal`] | [`Journal`]: one handle: what this process writes, and the snapshots it reads |
//! | [`writer`] | sessions, commits, the log and its segments |
//! | [`snapshot`] | which commits of which logs a read sees: decisions, owners, order |
//! | [`feed`], [`follower`], [`follow`] | what the logs hold, commit by commit, and what is kept up to date with it |
//! | [`marks`] | how far the logs go, and how far somebody has applied them |
//! | [`session`], [`author`] | for whom a call is made; on whose behalf a flush is |
//! | [`instant`] | what a session sees: what the logs hold, and what it has not flushed |
//! | [`participant`], [`beside`] | who has records for a flush, and works behind it |
//! | [`medium`] | where the bytes lie: files of a folder, or objects |
//! | [`conformance`] | what every follower must show, and the random histories it is shown on |
//!
//! Invariants:
//! * a commit record is the only thing that makes anything visible, and it is durable before it does;
//! * a log says the same for ever: commits are added, decisions on transactions change which of them count;
//! * every follower of the logs can be rebuilt from them.
//!
//! ```
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_format::log::SideRecord;
//! use fieldstone_journal::{Journal, Session};
//! use fieldstone_journal::journal::JournalOptions;
//!
//! let open = || JournalOptions { url: "memory:".into(), writable: true, ..Default::default() };
//! let env = SimWorld::memory();
//! let journal = Journal::open(env.clone(), "/store".as_ref(), open())?;
//! journal.unflushed().add(vec![SideRecord { kind: 1, bytes: (*b"a note").into() }], &Session::default())?;
//! journal.committer().flush(&Session::default())?;
//!
//! let other = Journal::open(env, "/store".as_ref(), open())?;
//! let feed = other.looks().feed()?;
//! let (writer, _) = feed.logs()[0];
//! let commits: Result<Vec<_>, _> = feed.commits(writer, 0)?.collect();
//! assert_eq!(*commits?[0].side[0].bytes, *b"a note");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

pub mod author;
pub mod beside;
pub mod block_cache;
pub mod compact;
pub mod conformance;
pub mod entry_source;
pub mod feed;
pub mod files;
pub mod follow;
pub mod follower;
pub mod fork;
pub mod home;
pub mod identity;
pub mod instant;
pub mod journal;
pub mod marks;
pub mod medium;
pub mod order;
pub mod participant;
pub mod segment;
pub mod session;
pub mod snapshot;
pub mod takeover;
pub mod writer;

pub use journal::Journal;
pub use session::Session;
