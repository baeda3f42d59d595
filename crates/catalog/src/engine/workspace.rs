//! The state for applying records: the tables, the sums of their rows, and the owners of runs.

use super::Database;
use super::ground::Ground;
use super::order::UserAt;
use super::owners::Owners;
use super::summary::Sums;

/// A record of declarations (log, sequence, record), and the places in it that were deleted individually,
/// each with the user.
pub(super) type DeletedAlone = ((i64, u64, i64), Vec<(i64, UserAt)>);

/// See the module.
#[derive(Debug)]
pub(super) struct Workspace {
    pub ground: Ground,
    pub sums: Sums,
    pub owners: Owners,
    /// Those of the record of declarations that is being applied.
    pub deleted_alone: Option<DeletedAlone>,
    /// Attributes inserted in this transaction.
    pub attributes: u64,
}

impl Workspace {
    pub fn new(db: Box<dyn Database>) -> Workspace {
        Workspace {
            ground: Ground::new(db),
            sums: Sums::default(),
            owners: Owners::default(),
            deleted_alone: None,
            attributes: 0,
        }
    }

    /// Forgets everything that belongs to one transaction of the database.
    pub fn forget(&mut self) {
        self.ground.forget();
        self.sums = Sums::default();
        self.owners.forget();
    }
}
