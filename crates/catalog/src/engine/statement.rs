//! SQL statements of users over the views: which ones are allowed, and how both engines give equal answers.
//!
//! * A statement only reads: after comments and parentheses it begins with SELECT, WITH, VALUES or EXPLAIN.
//! * Every ORDER BY puts NULL last, ascending or descending, unless the statement says NULLS FIRST. By
//!   default PostgreSQL puts NULL first in descending order, SQLite in ascending order. The views show NaN as
//!   NULL, and it is never the best value.
//! * Columns of a result have distinct names: a second `run` is `run_2`.

use fieldstone_core::{Code, Result};

use super::Dialect;

/// Words with which a reading statement begins.
const READS: [&str; 4] = ["select", "with", "values", "explain"];
/// Words that end an ORDER BY.
const ENDS: [&str; 13] = [
    "limit",
    "offset",
    "fetch",
    "for",
    "rows",
    "range",
    "groups",
    "union",
    "intersect",
    "except",
    "window",
    "into",
    "returning",
];

/// A piece of a statement that is neither a comment nor white space.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Token {
    /// A bare word, or a number.
    Word,
    /// A text or a name in quotes.
    Quoted,
    /// Any other character.
    Sign(u8),
}

/// A token, with its start and end.
type Piece = (Token, usize, usize);

/// The tokens of a statement.
fn pieces(sql: &str, dialect: Dialect) -> Vec<Piece> {
    let (mut found, mut at): (Vec<Piece>, usize) = (Vec::new(), 0);
    while let Some(byte) = sql.as_bytes().get(at).copied() {
        let rest = &sql[at..];
        // PostgreSQL's E'…' has escapes.
        let behind_e = found.last().is_some_and(|(token, from, to)| {
            *token == Token::Word && *to == at && sql[*from..*to].eq_ignore_ascii_case("e")
        });
        let (token, length) = match byte {
            byte if byte.is_ascii_whitespace() => (None, 1),
            b'-' if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            b'/' if rest.starts_with("/*") => (None, rest[2..].find("*/").map_or(rest.len(), |end| end + 4)),
            b'\'' => (Some(Token::Quoted), quoted(rest, '\'', behind_e)),
            b'"' | b'`' => (Some(Token::Quoted), quoted(rest, char::from(byte), false)),
            b'[' if dialect == Dialect::Sqlite => {
                (Some(Token::Quoted), rest.find(']').map_or(rest.len(), |end| end + 1))
            }
            b'$' if dialect == Dialect::Postgres && dollar(rest) > 1 => (Some(Token::Quoted), dollar(rest)),
            byte if is_word(byte) => {
                (Some(Token::Word), rest.bytes().take_while(|byte| is_word(*byte)).count())
            }
            byte => (Some(Token::Sign(byte)), 1),
        };
        found.extend(token.map(|token| (token, at, at + length)));
        at += length;
    }
    found
}

/// Whether a byte belongs to a word; every byte of a character beyond ASCII does.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a quoted text; a quote inside it is written twice.
fn quoted(rest: &str, quote: char, escapes: bool) -> usize {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote {
            if chars.peek().is_none_or(|(_, next)| *next != quote) {
                return at + 1;
            }
            chars.next();
        }
    }
    rest.len()
}

/// The length of PostgreSQL's `$tag$text$tag$`; 1 for a `$` that does not begin one.
fn dollar(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$').map(|end| end + 2) else { return 1 };
    let tag = &rest[..end];
    if !tag[1..end - 1].chars().all(|c| c.is_alphanumeric() || c == '_')
        || tag[1..].starts_with(|c: char| c.is_ascii_digit())
    {
        return 1;
    }
    rest[end..].find(tag).map_or(rest.len(), |close| end + close + end)
}

/// Refuses statements that do not only read; the database refuses the remaining ones. Returns the statement
/// in the form that the engine accepts.
///
/// # Errors
/// Invalid, naming the first word.
pub(super) fn taken(sql: &str, dialect: Dialect) -> Result<String> {
    // Some editors begin a file with a byte order mark.
    let sql = sql.trim_start_matches('\u{feff}');
    let mut pieces = pieces(sql, dialect);
    let first = pieces.iter().find(|(token, ..)| *token != Token::Sign(b'('));
    let word = first.map(|(_, from, to)| &sql[*from..*to]).unwrap_or_default();
    if !READS.iter().any(|read| word.eq_ignore_ascii_case(read)) {
        let what = if word.is_empty() {
            "there is no statement".to_owned()
        } else {
            format!("'{word}' is not allowed: give a statement that only reads")
        };
        return Err(Code::Sql
            .error(format!("SQL: {what}"))
            .with_hint("begin with SELECT, WITH or EXPLAIN; annotate writes attributes"));
    }
    let mut range = 0..sql.len();
    if dialect == Dialect::Sqlite {
        // SQLite does not accept a statement in parentheses.
        while let Some(inner) = unbracketed(&pieces) {
            range = inner.0..inner.1;
            pieces.retain(|(_, from, to)| *from >= inner.0 && *to <= inner.1);
        }
    }
    Ok(ordered(sql, range, &pieces))
}

/// The range inside the parentheses that enclose the whole statement.
fn unbracketed(pieces: &[Piece]) -> Option<(usize, usize)> {
    let end = pieces.iter().rposition(|(token, ..)| *token != Token::Sign(b';'))?;
    let (Token::Sign(b'('), _, from) = *pieces.first()? else { return None };
    let mut depth = 0;
    let closed = pieces.iter().position(|(token, ..)| {
        depth += match token {
            Token::Sign(b'(') => 1,
            Token::Sign(b')') => -1,
            _ => 0,
        };
        depth == 0
    })?;
    (closed == end).then(|| (from, pieces[end].1))
}

/// An ORDER BY that is being read.
struct Clause {
    depth: usize,
    /// Tokens of the current term.
    tokens: usize,
    /// Whether the statement itself gives the place of NULL.
    nulls: bool,
    /// The end of the clause so far.
    end: usize,
}

/// The statement, with the place of NULL added to every term of an ORDER BY.
fn ordered(sql: &str, range: std::ops::Range<usize>, pieces: &[Piece]) -> String {
    let mut places: Vec<usize> = Vec::new();
    let mut open: Vec<Clause> = Vec::new();
    let mut depth = 0;
    let mut before: Option<Piece> = None;
    let word = |piece: &Piece| (piece.0 == Token::Word).then(|| sql[piece.1..piece.2].to_ascii_lowercase());
    fn finish(clause: &Clause, places: &mut Vec<usize>) {
        if clause.tokens > 0 && !clause.nulls {
            places.push(clause.end);
        }
    }
    for piece in pieces {
        let own = word(piece);
        if matches!(piece.0, Token::Sign(b')' | b']')) {
            while open.last().is_some_and(|clause| clause.depth == depth) {
                open.pop().iter().for_each(|clause| finish(clause, &mut places));
            }
            depth = depth.saturating_sub(1);
        }
        if let Some(clause) = open.last_mut().filter(|clause| clause.depth == depth) {
            let complete = before.is_some_and(
                |(token, ..)| !matches!(token, Token::Sign(sign) if sign != b')' && sign != b']'),
            );
            let ends = own.as_ref().is_some_and(|own| ENDS.contains(&own.as_str()));
            if clause.tokens > 0 && complete && ends || piece.0 == Token::Sign(b';') {
                finish(clause, &mut places);
                open.pop();
            } else if piece.0 == Token::Sign(b',') {
                finish(clause, &mut places);
                *clause = Clause { depth, tokens: 0, nulls: false, end: piece.2 };
            } else {
                clause.nulls |= clause.tokens > 0 && own.as_deref() == Some("nulls");
                clause.tokens += 1;
                clause.end = piece.2;
            }
        }
        if matches!(piece.0, Token::Sign(b'(' | b'[')) {
            depth += 1;
        }
        if own.as_deref() == Some("by") && before.as_ref().and_then(&word).as_deref() == Some("order") {
            // The tokens of an inner clause do not count for the outer one.
            open.push(Clause { depth, tokens: 0, nulls: false, end: piece.2 });
        }
        before = Some(*piece);
    }
    open.iter().rev().for_each(|clause| finish(clause, &mut places));
    places.sort_unstable();
    let mut text = String::with_capacity(sql.len() + places.len() * 12);
    let mut from = range.start;
    for place in places {
        text.push_str(&sql[from..place]);
        text.push_str(" NULLS LAST");
        from = place;
    }
    text.push_str(&sql[from..range.end]);
    text
}

/// The column names of a result, made distinct: the second of several equal names gets `_2` at its end, and
/// so on.
pub(super) fn distinct(names: Vec<String>) -> Vec<String> {
    let mut own: Vec<String> = Vec::with_capacity(names.len());
    for name in &names {
        let (mut free, mut number) = (name.clone(), 1);
        while own.contains(&free) || (number > 1 && names.contains(&free)) {
            number += 1;
            free = format!("{name}_{number}");
        }
        own.push(free);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(sql: &str) -> String {
        taken(sql, Dialect::Sqlite).unwrap()
    }

    #[test]
    fn null_is_last_in_every_order() {
        for (given, taken) in [
            ("select a from t", "select a from t"),
            ("select a from t order by a desc limit 1", "select a from t order by a desc NULLS LAST limit 1"),
            (
                "select a from t ORDER  BY a, b asc nulls first;",
                "select a from t ORDER  BY a NULLS LAST, b asc nulls first;",
            ),
            (
                "select rank() over (partition by x order by max(y, 1) rows unbounded preceding) from t -- order by z",
                "select rank() over (partition by x order by max(y, 1) NULLS LAST rows unbounded preceding) from t -- order by z",
            ),
            (
                "select (select a from u order by a) from t order by (select b from v order by b limit 1), 'order by', c",
                "select (select a from u order by a NULLS LAST) from t order by (select b from v order by b NULLS LAST limit 1) \
                 NULLS LAST, 'order by' NULLS LAST, c NULLS LAST",
            ),
            ("select 1 order by range - offset", "select 1 order by range - offset NULLS LAST"),
            (
                "select \"order by\" from t order by `a)` /* x */ limit 3",
                "select \"order by\" from t order by `a)` NULLS LAST /* x */ limit 3",
            ),
        ] {
            assert_eq!(sqlite(given), taken);
        }
        let of_postgres =
            "select array_agg(a order by a) from t order by array[a, b], $x$order by ;$x$, E'\\'' limit 1";
        assert_eq!(
            taken(of_postgres, Dialect::Postgres).unwrap(),
            "select array_agg(a order by a NULLS LAST) from t order by array[a, b] NULLS LAST, $x$order by ;$x$ NULLS LAST, \
             E'\\'' NULLS LAST limit 1"
        );
    }

    #[test]
    fn statements_begin_behind_comments_and_brackets() {
        assert_eq!(sqlite("-- runs\n/* all */ select 1"), "-- runs\n/* all */ select 1");
        assert_eq!(sqlite("\u{feff}-- by an editor\nselect 1"), "-- by an editor\nselect 1");
        assert_eq!(sqlite(" ((select run from runs)) ;"), "select run from runs");
        assert_eq!(sqlite("(select 1) union (select 2)"), "(select 1) union (select 2)");
        assert_eq!(taken("(select 1)", Dialect::Postgres).unwrap(), "(select 1)");
        for (wrong, named) in
            [("drop table run", "'drop' is not allowed"), ("-- select", "there is no statement")]
        {
            assert!(taken(wrong, Dialect::Sqlite).unwrap_err().message().contains(named), "{wrong}");
        }
    }

    #[test]
    fn equal_names_are_distinguished() {
        let names = ["run", "run", "run_2", "n", "run"].map(str::to_owned).to_vec();
        assert_eq!(distinct(names), ["run", "run_3", "run_2", "n", "run_4"]);
    }
}
