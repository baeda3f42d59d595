//! Typing errors in a key that a schema with further keywords would accept: `stpe=6` would be a keyword for ever.

use super::Inner;
use crate::nearest::is_one_letter_away;
use crate::{Code, Result};

/// Refuses a further keyword that is one letter away from one of the schema's which the key lacks.
///
/// If the key also has the similar keyword, both are intended: `steps=3` with `step=6` is not an error. Neither is a
/// keyword for which `is_used` returns true; only similar keywords are passed to it.
pub fn check_slips(
    schema: &Inner,
    pairs: &[(&str, &str)],
    is_used: impl Fn(&str) -> Result<bool>,
) -> Result<()> {
    let known = |keyword: &str| schema.ids.contains_key(schema.keyword(keyword));
    let given = |name: &str| pairs.iter().any(|(keyword, _)| schema.keyword(keyword) == name);
    for (keyword, value) in pairs.iter().filter(|(keyword, _)| !known(keyword)) {
        let meant = schema.ids.keys().filter(|name| is_one_letter_away(keyword, name) && !given(name)).min();
        if let Some(meant) = meant
            && !is_used(keyword)?
        {
            return Err(Code::KeywordUnknown
                .error(format!("the schema has no keyword `{keyword}`: did you mean `{meant}`?"))
                .with_hint(format!(
                    "write {meant}={value}; the name of a further keyword must not look like a misspelt one of the schema"
                )));
        }
    }
    Ok(())
}
