//! Hints for files: keys and values that an MPI library may follow or ignore (MPI_Info).
//!
//! Hints belong to a communicator: [`HintedComm`] wraps another communicator and opens all files with its hints. So
//! code that opens files over a communicator need not know about hints.
//! [`CommFile::taken_hints`](super::CommFile::taken_hints) reports the hints that a file accepted.
//!
//! Invariants: keys are sorted and unique; a hint never changes the bytes of a file.
//!
//! ```
//! use fieldstone_core::env::comm::hints::Hints;
//! # fn main() -> fieldstone_core::Result<()> {
//! let job = Hints::new([("cb_nodes", "2"), ("direct_write", "true")])?;
//! let call = Hints::new([("cb_nodes", "4")])?;
//! assert_eq!(job.with(&call).to_string(), "cb_nodes=4 direct_write=true");
//! assert_eq!(job.with(&call).aggregators(), Some(4));
//! # Ok(()) }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::layer::CommLayer;
use super::{Comm, CommFile, FileMode};
use crate::{Code, Result};

/// Limits on the characters of a key and of a value, as MPI libraries have them.
const KEY: usize = 255;
const VALUE: usize = 1023;
/// The number of ranks that write on behalf of the others.
const AGGREGATORS: &str = "cb_nodes";

/// Keys and values. See the module's documentation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints(BTreeMap<String, String>);

impl Hints {
    /// Collects keys and values; if a key occurs twice, its later value counts.
    ///
    /// Errors: `Invalid` for a key or value that MPI_Info cannot hold, and for a `cb_nodes` that is not a number of
    /// ranks.
    pub fn new<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Result<Hints> {
        let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value.into()));
        let hints = Hints(pairs.collect());
        for (key, value) in &hints.0 {
            let fits = |text: &str, most: usize| {
                !text.trim().is_empty() && text.len() <= most && !text.contains(['\0', '\n'])
            };
            if !fits(key, KEY) || !fits(value, VALUE) {
                return Err(Code::Option
                    .error(format!("the hint {key:?} = {value:?}"))
                    .with_hint("keys have 1 to 255 characters, values 1 to 1023, in one line"));
            }
            if key == AGGREGATORS && hints.aggregators().is_none() {
                return Err(Code::Option
                    .error(format!("the hint {AGGREGATORS} = {value:?}"))
                    .with_hint("give the number of ranks that write, at least 1"));
            }
        }
        Ok(hints)
    }

    /// Keys and values as a communicator reported them.
    pub fn given(pairs: impl IntoIterator<Item = (String, String)>) -> Hints {
        Hints(pairs.into_iter().collect())
    }

    /// Whether there are no hints.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Keys and values, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Merges two sets of hints; those of `other` win, as a call's hints win over a job's.
    pub fn with(&self, other: &Hints) -> Hints {
        let mut all = self.0.clone();
        all.extend(other.0.iter().map(|(key, value)| (key.clone(), value.clone())));
        Hints(all)
    }

    /// How many ranks are to write on behalf of the others: `cb_nodes`, which our own exchange follows, too.
    pub fn aggregators(&self) -> Option<usize> {
        self.get(AGGREGATORS)?.trim().parse().ok().filter(|aggregators| *aggregators > 0)
    }

    /// The hints that our own algorithms follow, whatever the communicator does: `cb_nodes`.
    pub fn own(&self) -> Hints {
        Hints(
            self.0
                .iter()
                .filter(|(key, _)| *key == AGGREGATORS)
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
        )
    }

    /// The hints that are missing from `taken`, or differ there.
    pub fn not_in(&self, taken: &Hints) -> Hints {
        let is_taken = |key: &str, value: &str| {
            taken.get(key).is_some_and(|other| other.trim().eq_ignore_ascii_case(value.trim()))
        };
        Hints(self.0.iter().filter(|(k, v)| !is_taken(k, v)).map(|(k, v)| (k.clone(), v.clone())).collect())
    }
}

impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// A communicator that opens files with hints. All ranks give the same hints: the caller ensures this with
/// [`Team::agree_on_hints`](super::Team::agree_on_hints), as containers do.
#[derive(Debug)]
pub struct HintedComm {
    below: Arc<dyn Comm>,
    hints: Hints,
}

impl HintedComm {
    /// Adds hints to those of `comm`; returns `comm` itself if `hints` is empty.
    pub fn over(comm: Arc<dyn Comm>, hints: &Hints) -> Arc<dyn Comm> {
        match hints.is_empty() {
            true => comm,
            false => Arc::new(HintedComm { hints: comm.hints().with(hints), below: comm }),
        }
    }
}

impl CommLayer for HintedComm {
    fn below(&self) -> &dyn Comm {
        &*self.below
    }
    fn hints(&self) -> Hints {
        self.hints.clone()
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        CommLayer::open_with(self, path, mode, &Hints::default())
    }
    fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
        let hints = self.hints.with(hints);
        self.below.open_with(path, mode, &hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::comm::{Team, threads};
    use crate::env::sim::SimWorld;

    /// Records the hints with which each file was opened.
    #[derive(Debug)]
    struct Telling(Arc<dyn Comm>, crate::sync::plain::Mutex<Vec<String>>);

    impl CommLayer for Telling {
        fn below(&self) -> &dyn Comm {
            &*self.0
        }
        fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
            self.1.lock().push(hints.to_string());
            self.0.open(path, mode)
        }
    }

    #[test]
    fn every_file_is_opened_with_the_hints_of_its_communicator_and_ranks_that_differ_are_named() {
        let disk = SimWorld::memory().disk;
        let outcomes = threads::run(3, None, disk, threads::Faults::none(), |comm| {
            let rank = comm.rank();
            let telling = Arc::new(Telling(comm, crate::sync::plain::Mutex::default()));
            let job = Hints::new([("a", "1"), ("cb_nodes", "2")])?;
            let team = Team::new(HintedComm::over(telling.clone(), &job));
            team.agree_on_hints("begin")?;
            assert_eq!(team.hints().aggregators(), Some(2));
            let path = Path::new("/f");
            team.open("create", path, FileMode::CreateNew)?;
            let call = Hints::new([("a", "3")])?;
            team.open_with("open", path, FileMode::Read, Ok(&call))?;
            assert_eq!(*telling.1.lock(), ["a=1 cb_nodes=2", "a=3 cb_nodes=2"]);
            // Only one rank gives different hints.
            let own = if rank == 1 { call } else { Hints::default() };
            let error = team.open_with("open", path, FileMode::Read, Ok(&own)).expect_err("ranks differ");
            team.barrier("go on")?;
            Ok(error)
        });
        for outcome in outcomes {
            let error = outcome.unwrap();
            assert_eq!(error.kind(), crate::ErrorKind::Conflict);
            assert!(
                error.message().contains("rank 1: this rank gives the hints `a=3 cb_nodes=2`, rank 0 `a=1 "),
                "{error}"
            );
        }
    }

    #[test]
    fn hints_are_checked_and_compared_with_what_was_taken() {
        for (key, value) in [("", "1"), ("k", ""), ("k", "a\nb"), ("cb_nodes", "0"), ("cb_nodes", "many")] {
            assert!(Hints::new([(key, value)]).is_err(), "{key} {value}");
        }
        assert!(Hints::new([("k".repeat(256), "1")]).is_err());
        let given = Hints::new([("a", "true"), ("b", "2"), ("c", "3")]).unwrap();
        let taken = Hints::new([("a", "TRUE"), ("b", "4"), ("d", "5")]).unwrap();
        assert_eq!(given.not_in(&taken).to_string(), "b=2 c=3");
    }
}
