//! Levels of the keywords that a request names: calls about whole datasets or indexes refuse deeper ones.

use fieldstone_core::key::LEVELS;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;

/// The first keyword of a request that the schema has below the first `levels` levels of keys alone, in its spelling.
pub fn keyword_below<'a>(schema: &'a Schema, request: &'a Request, levels: usize) -> Option<&'a str> {
    let rules = schema.rules();
    let is_below = |name: &&str| {
        let has = |level: usize| {
            rules.iter().any(|rule| rule.levels[level].keywords.iter().any(|known| *known.name == **name))
        };
        (levels..LEVELS).any(has) && !(0..levels).any(has)
    };
    request.iter().map(|(keyword, _)| schema.spelling(keyword)).find(is_below)
}
