//! Queries as text (Q-21): the language of `fieldstone find` and `store.find`.
//!
//! ```text
//! query   = [ expr ] { first | last | order by key { "," key } | limit N | transaction "=" ID }
//! expr    = and { or and }                    and = unary { and unary }
//! unary   = not unary | "(" expr ")" | everything | nothing | related | [ relation ] box | term
//! related = ( with | without ) ( same run | same step | same variable | overlapping ) "(" expr ")"
//! term    = name tests | number tests | steps | levels
//!   names     run project job variable tag unit      = != in like contains
//!   values    value param.NAME attr.NAME keyword.NAME created time    test
//!   numbers   extent.DIM volume                      test
//!   integers  version tag_version                    = != in
//!   steps     step = 6 | 0:10 | 0/6/12 | 0/to/24/by/6,   step in (…), step > 3 …
//!   levels    as steps, from 0 on: level = 1, level in (0, 1), level >= 1 …
//!   scope     = run | step | variable
//! test    = [ not ] op | "(" tests with and, or, not ")"
//! op      = ( "=" | "!=" | ">" | ">=" | "<" | "<=" | contains ) value | in "(" values ")"
//!         | between value and value | like PATTERN | exists
//! box     = "box" "=" range { "," range }  |  "box" "(" range { "," range } ")"
//! range   = FROM:TO (of the next dimension) | DIM:FROM:TO | DIM=LOW..HIGH   (the last only in parentheses)
//! relation = overlaps | within | contains
//! key     = [ "-" ] ( run created step time variable tag value volume ) [ asc | desc ]
//! ```
//!
//! Words are bare or quoted. A bare word with `*`, `?` or `[` is a pattern in reads; changes and removals
//! take it literally, and use `like` for patterns. Quoted words are always literal. Values are numbers,
//! `true`, `false`, moments (`2026-11-21T06:00`), ranges (`5..9`), bytes (`0x0aff`), lists, maps, and texts.
//! Boxes and steps with `:` are half-open; `LOW..HIGH` includes both ends.
//!
//! [`Query`] and [`Expr`] print as text that parses to the same query.
//!
//! ```
//! use fieldstone_catalog::query::text::parse;
//! let query = parse("tag=maximum and variable=temp* and value>9000 and box=z:50:100 limit 5")?;
//! assert_eq!(query.limit, Some(5));
//! let error = parse("tag=maximum and vlaue>9000").unwrap_err();
//! assert!(error.hint().is_some_and(|hint| hint.contains("`value`")));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod boxes;
mod literal;
mod parser;
mod scan;
mod show;
mod terms;

use fieldstone_core::Result;
use fieldstone_core::value::{Glob, Size, Test, Value, ValueType};

use super::{Expr, NameTest, Query};

pub use terms::SUBJECTS;

/// Maximum depth of nested parentheses.
const DEPTH: usize = Size::MOST.levels;

/// Parses a query. Errors point at the character.
pub fn parse(text: &str) -> Result<Query> {
    let query = parser::query(text)?;
    query.expr.size().check()?;
    Ok(query)
}

/// Parses an expression alone.
pub fn parse_expr(text: &str) -> Result<Expr> {
    let expr = parser::expr(text)?;
    expr.size().check()?;
    Ok(expr)
}

/// Parses one value for storing: by the syntax of queries, if that keeps everything in the text. Any other
/// text stands for itself, and so does one that would lose something: leading zeros, digits beyond 64 bits, a
/// text that looks like a hash. Quoted text is text.
pub fn parse_value(text: &str) -> Result<Value> {
    literal::whole(text)
}

/// Parses one value of a declared type, which decides what the text means. `None` if it is not a value of
/// this type.
pub fn parse_value_of(text: &str, kind: ValueType) -> Option<Value> {
    if kind == ValueType::Text {
        let unquoted = text.trim().starts_with(['"', '\'']).then(|| literal::whole(text).ok()).flatten();
        return Some(unquoted.unwrap_or_else(|| Value::Text(text.to_owned())));
    }
    let number = literal::declared_number(text).and_then(|number| number.stands_for(kind));
    number.or_else(|| literal::whole(text).ok()?.stands_for(kind))
}

/// Parses a name with a test of its value, such as `size > 9000` or `unit in (K, degC)`.
pub fn parse_test(text: &str) -> Result<(String, Test)> {
    let mut scan = scan::Scan::new(text);
    let name = match scan.quoted()? {
        Some(name) => name,
        None => scan.ident().to_owned(),
    };
    if name.is_empty() {
        return Err(scan.expected("a name").with_hint("write a name and a test: size > 9000"));
    }
    let test = terms::test(&mut scan)?;
    match scan.peek() {
        None => Ok((name, test)),
        Some(_) => Err(scan.expected("the end of the test")),
    }
}

/// Joins several expressions, or returns the only one.
fn one_or<T>(mut items: Vec<T>, join: impl FnOnce(Vec<T>) -> T) -> T {
    match items.pop() {
        Some(only) if items.is_empty() => only,
        Some(last) => {
            items.push(last);
            join(items)
        }
        None => join(items),
    }
}

/// The test of a name for a bare word: a pattern if it contains `*`, `?` or `[`.
pub fn name_test(word: &str) -> NameTest {
    if Glob::is_pattern(word) { NameTest::Typed(word.to_owned()) } else { NameTest::Is(word.to_owned()) }
}
