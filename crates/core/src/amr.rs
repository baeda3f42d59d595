//! Levels of an adaptive mesh: groups of variables, named as AMR codes name them in their files; `level_0` is the
//! coarsest.
//!
//! Only the first part of a variable's name gives its level: a variable written by its full name, `level_1/rho`, is
//! on level 1. So a name and a level give one variable, and a variable gives one name and level ([`split`],
//! [`name_at`]).
//!
//! ```
//! use fieldstone_core::amr::{name_at, split};
//! assert_eq!(name_at("rho", 1)?, "level_1/rho");
//! assert_eq!(split("level_1/rho"), Some((1, "rho")));
//! assert_eq!(split("ocean/rho"), None);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use crate::{Error, Result};

const PREFIX: &str = "level_";

/// Splits a variable's name into its level and its name on that level; `None` if it is not on a level.
pub fn split(name: &str) -> Option<(i64, &str)> {
    let (group, name) = name.split_once('/')?;
    let digits = group.strip_prefix(PREFIX)?;
    let is_plain = digits == "0" || digits.starts_with(|c: char| ('1'..='9').contains(&c));
    let level = digits.parse().ok().filter(|_| is_plain && !name.is_empty())?;
    Some((level, name))
}

/// The name of the group of a level.
///
/// # Errors
/// Invalid for a level below 0.
pub fn group_of(level: i64) -> Result<String> {
    check(&(level, level))?;
    Ok(format!("{PREFIX}{level}"))
}

/// The full name of a variable on a level. A name that already includes this level is returned unchanged.
///
/// # Errors
/// Invalid for a level below 0, and for a name that includes another level.
pub fn name_at(name: &str, level: i64) -> Result<String> {
    let group = group_of(level)?;
    match split(name) {
        Some((own, _)) if own == level => Ok(name.to_owned()),
        Some((_, short)) => Err(Error::invalid(format!("variable '{name}' is not on level {level}"))
            .with_hint(format!("give its name there, '{short}', or leave the level out"))),
        None => Ok(format!("{group}/{name}")),
    }
}

/// Refuses a range of levels, with both ends included, that cannot contain a level.
///
/// # Errors
/// Invalid if the range ends below 0.
pub fn check(&(_, last): &(i64, i64)) -> Result<()> {
    match last {
        0.. => Ok(()),
        last => Err(Error::invalid(format!("there is no level {last}"))
            .with_hint("levels count from 0, the coarsest: level=0, level>=1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_level_are_one_variable() {
        for (name, parts) in [
            ("level_0/rho", Some((0, "rho"))),
            ("level_12/gas/rho", Some((12, "gas/rho"))),
            ("level_1/level_2/rho", Some((1, "level_2/rho"))),
            ("rho", None),
            ("level_1", None),
            ("level_1/", None),
            ("level_01/rho", None),
            ("level_+1/rho", None),
            ("level_-1/rho", None),
            ("level_/rho", None),
            ("level_1x/rho", None),
            ("Level_1/rho", None),
            ("gas/level_1/rho", None),
            ("level_99999999999999999999/rho", None),
        ] {
            assert_eq!(split(name), parts, "{name}");
        }
        assert_eq!(name_at("gas/rho", 3).unwrap(), "level_3/gas/rho");
        assert_eq!(name_at("level_3/rho", 3).unwrap(), "level_3/rho");
        for (name, level) in [("rho", -1), ("level_3/rho", 2)] {
            let error = name_at(name, level).unwrap_err();
            assert!(error.hint().is_some(), "{name} at {level}: {error}");
        }
    }
}
