//! Hints for files: keys and values that an MPI library may follow or not (MPI_Info).
//!
//! Hints belong to a communicator: [`HintedComm`] is one over another, whose files are all opened with some. So whoever opens
//! files over a communicator need not know of hints. Which of them the file took is said by
//! [`CommFile::taken_hints`](super::CommFile::taken_hints).
//!
//! Invariants: keys are sorted and each there once; what a hint says never changes the bytes of a file.
//!
//! ```
//! use fieldstone_core::env::comm::hints::Hints;
//! # fn main() -> fieldstone_core::Result<()> {
//! let job = Hints::new([("cb_nodes", "2"), ("direct_write", "true")])?;
//! let call = Hints::new([("cb_nodes", "4")])?;
//! assert_eq!(job.with(&call).to_string(), "cb_nodes=4 direct_write=true");
//! assert_eq!(job.with(&call).owners(), Some(4));
//! # Ok(()) }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::layer::CommLayer;
use super::{Comm, CommFile, FileMode};
use crate::{Code, Result};

/// Characters of a key and of a value at most: what MPI libraries allow.
const KEY: usize = 255;
const VALUE: usize = 1023;
/// The number of ranks that write for the others.
const OWNERS: &str = "cb_nodes";

/// Keys and values. See the module's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints(BTreeMap<String, String>);

impl Hints {
    /// These keys and values; of a key that comes twice the later value.
    ///
    /// Errors: `Invalid` of a key or value that MPI_Info cannot hold, and of a `cb_nodes` that is no number of ranks.
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
            if key == OWNERS && hints.owners().is_none() {
                return Err(Code::Option
                    .error(format!("the hint {OWNERS} = {value:?}"))
                    .with_hint("give the number of ranks that write, from 1 on"));
            }
        }
        Ok(hints)
    }

    /// Keys and values that a communicator said, as they are.
    pub fn given(pairs: impl IntoIterator<Item = (String, String)>) -> Hints {
        Hints(pairs.into_iter().collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Keys and values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// These and `other`'s, which win: those of a call over those of a job.
    pub fn with(&self, other: &Hints) -> Hints {
        let mut all = self.0.clone();
        all.extend(other.0.iter().map(|(key, value)| (key.clone(), value.clone())));
        Hints(all)
    }

    /// How many ranks are to write for the others: `cb_nodes`, which an exchange of ours follows, too.
    pub fn owners(&self) -> Option<usize> {
        self.get(OWNERS)?.trim().parse().ok().filter(|owners| *owners > 0)
    }

    /// Those that our own algorithms follow, whatever a communicator does: `cb_nodes`.
    pub fn own(&self) -> Hints {
        Hints(self.0.iter().filter(|(key, _)| *key == OWNERS).map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    /// Those of which `taken` says something else, or nothing.
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

/// A communicator whose files are opened with hints. All ranks give the same: who makes one sees to it with
/// [`Team::agree_on_hints`](super::Team::agree_on_hints), as containers do.
#[derive(Debug)]
pub struct HintedComm {
    below: Arc<dyn Comm>,
    hints: Hints,
}

impl HintedComm {
    /// `comm` with hints, beside those that it has; as it is where there are none.
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

    /// Says of every file what it was opened with.
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
            assert_eq!(team.hints().owners(), Some(2));
            let path = Path::new("/f");
            team.open("create", path, FileMode::CreateNew)?;
            let call = Hints::new([("a", "3")])?;
            team.open_with("open", path, FileMode::Read, Ok(&call))?;
            assert_eq!(*telling.1.lock(), ["a=1 cb_nodes=2", "a=3 cb_nodes=2"]);
            // One rank alone gives hints of its own.
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
