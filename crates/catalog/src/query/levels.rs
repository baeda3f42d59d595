//! Levels of an adaptive mesh in queries: which terms about names mean names on a level.

use fieldstone_core::{Result, amr};

use super::{Expr, Term};

impl Term {
    /// The variable is on one of these levels, both ends included.
    ///
    /// # Errors
    /// Invalid for levels below 0.
    pub fn level(ranges: Vec<(i64, i64)>) -> Result<Term> {
        ranges.iter().try_for_each(amr::check)?;
        Ok(Term::Level(ranges))
    }
}

impl Expr {
    /// Whether the expression requires or excludes a level for the variable. A term for related attributes
    /// does not count.
    pub(super) fn says_level(&self) -> bool {
        match self {
            Expr::All(list) => list.iter().any(Expr::says_level),
            Expr::Any(list) => !list.is_empty() && list.iter().all(Expr::says_level),
            Expr::Not(inner) => inner.says_level(),
            Expr::Term(term) => matches!(term, Term::Level(_)),
            Expr::Related(..) => false,
        }
    }
}

/// The name of a variable on its level; its whole name if it is on none.
pub(super) fn short_name(name: &str) -> &str {
    amr::split(name).map_or(name, |(_, short)| short)
}
