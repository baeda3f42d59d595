//! The workspace of applying records: the tables, the sums of what is in them, and who owns what.

use super::Database;
use super::ground::Ground;
use super::owners::Owners;
use super::summary::Sums;

/// A record of declarations (log, sequence, record), and which places of it were deleted one by one, each by whom.
pub(super) type DeletedAlone = ((i64, u64, i64), Vec<[i64; 2]>);

/// See the module.
#[derive(Debug)]
pub(super) struct Workspace {
    pub ground: Ground,
    pub sums: Sums,
    pub owners: Owners,
    /// Of the record of declarations that is applied.
    pub deleted_alone: Option<DeletedAlone>,
    /// Attributes that were inserted in this transaction.
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

    /// Forgets what belongs to one transaction of the database.
    pub fn forget(&mut self) {
        self.ground.forget();
        self.sums = Sums::default();
        self.owners.forget();
    }
}
