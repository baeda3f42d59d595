//! Expressions, and the words after them.

use fieldstone_core::Result;
use fieldstone_format::Id;

use super::super::{Expr, Key, Pick, Query, Relation, Where};
use super::scan::Scan;
use super::{boxes, one_or, terms};

const KEYS: [(&str, Key); 8] = [
    ("run", Key::Run),
    ("created", Key::Created),
    ("step", Key::Step),
    ("time", Key::Time),
    ("variable", Key::Variable),
    ("tag", Key::Tag),
    ("value", Key::Value),
    ("volume", Key::Volume),
];
/// Words that follow an expression.
const TAILS: [&str; 5] = ["first", "last", "order", "limit", "transaction"];
/// Words between two terms, or before one.
const JOINTS: [&str; 3] = ["and", "or", "not"];

pub(super) fn key_name(key: &Key) -> &'static str {
    KEYS.iter().find(|(_, known)| known == key).map_or("", |(name, _)| name)
}

pub(super) fn query(text: &str) -> Result<Query> {
    let mut scan = Scan::new(text);
    let mut query = Query::all();
    if scan.peek().is_some() && !at_tail(&mut scan) {
        query.expr = or(&mut scan)?;
    }
    tails(&mut scan, &mut query)?;
    Ok(query)
}

pub(super) fn expr(text: &str) -> Result<Expr> {
    let mut scan = Scan::new(text);
    if scan.peek().is_none() {
        return Ok(Expr::All(Vec::new()));
    }
    let expr = or(&mut scan)?;
    match scan.peek() {
        None => Ok(expr),
        Some(_) => Err(unjoined(&mut scan)),
    }
}

fn at_tail(scan: &mut Scan<'_>) -> bool {
    let word = scan.peek_ident();
    TAILS.iter().any(|tail| word.eq_ignore_ascii_case(tail))
}

/// The error for a word in the place of `and`, `or` or a word after the expression.
fn unjoined(scan: &mut Scan<'_>) -> fieldstone_core::Error {
    scan.peek();
    let (place, word) = (scan.at, scan.peek_ident());
    let joints: Vec<&str> = JOINTS.into_iter().chain(TAILS).collect();
    match fieldstone_core::nearest::did_you_mean(word, joints) {
        Some(hint) if !word.is_empty() && !terms::is_name(word) => {
            scan.error_at(place, &format!("`{word}` does not belong here")).with_hint(hint)
        }
        _ => scan
            .expected("`and`, `or` or the end")
            .with_hint("join terms with `and` or `or`; quote a text that holds spaces"),
    }
}

fn or(scan: &mut Scan<'_>) -> Result<Expr> {
    let mut any = vec![and(scan)?];
    while scan.keyword("or") {
        any.push(and(scan)?);
    }
    Ok(one_or(any, Expr::Any))
}

fn and(scan: &mut Scan<'_>) -> Result<Expr> {
    let mut all = vec![unary(scan)?];
    while scan.keyword("and") {
        all.push(unary(scan)?);
    }
    Ok(one_or(all, Expr::All))
}

fn unary(scan: &mut Scan<'_>) -> Result<Expr> {
    if scan.keyword("not") {
        return Ok(Expr::Not(Box::new(scan.deeper(unary)?)));
    }
    if scan.takes('(') {
        let expr = scan.deeper(or)?;
        scan.take(')')?;
        return Ok(expr);
    }
    if scan.keyword("everything") {
        return Ok(Expr::All(Vec::new()));
    }
    if scan.keyword("nothing") {
        return Ok(Expr::Any(Vec::new()));
    }
    for (word, with) in [("with", true), ("without", false)] {
        if scan.keyword(word) {
            let related = related(scan)?;
            return Ok(if with { related } else { Expr::Not(Box::new(related)) });
        }
    }
    for (word, relation) in RELATIONS {
        if scan.keyword(word) {
            if scan.keyword("box") {
                return Ok(Expr::Term(boxes::region(scan, relation)?));
            }
            return Err(scan
                .expected(&format!("`box` after `{word}`"))
                .with_hint(format!("write {word} box=z:50:100; to test values, write value contains X")));
        }
    }
    if scan.keyword("box") {
        return Ok(Expr::Term(boxes::region(scan, Relation::Overlaps)?));
    }
    terms::term(scan)
}

pub(super) const RELATIONS: [(&str, Relation); 3] =
    [("overlaps", Relation::Overlaps), ("within", Relation::Within), ("contains", Relation::Contains)];

fn related(scan: &mut Scan<'_>) -> Result<Expr> {
    scan.peek();
    let place = scan.at;
    let word = scan.ident().to_ascii_lowercase();
    scan.peek();
    let second_at = scan.at;
    let at = match word.as_str() {
        "overlapping" => Where::Overlapping,
        "same" => match scan.ident().to_ascii_lowercase().as_str() {
            "run" => Where::SameRun,
            "step" => Where::SameStep,
            "variable" => Where::SameVariable,
            other => {
                return Err(scan.unknown(second_at, "place", other, &["run", "step", "variable"]));
            }
        },
        other => return Err(scan.unknown(place, "place", other, &["same", "overlapping"])),
    };
    if !scan.takes('(') {
        return Err(scan
            .expected("`(`")
            .with_hint("put the query for the other attribute in parentheses: with same step (tag=b)"));
    }
    let inner = if scan.peek() == Some(')') { Expr::All(Vec::new()) } else { scan.deeper(or)? };
    scan.take(')')?;
    Ok(Expr::Related(at, Box::new(inner)))
}

fn tails(scan: &mut Scan<'_>, query: &mut Query) -> Result<()> {
    while scan.peek().is_some() {
        let place = scan.at;
        let twice = if scan.keyword("first") {
            query.pick.replace(Pick::First).is_some()
        } else if scan.keyword("last") {
            query.pick.replace(Pick::Last).is_some()
        } else if scan.keyword("limit") {
            query.limit.replace(limit(scan)?).is_some()
        } else if scan.keyword("order") {
            let twice = !query.order.is_empty();
            scan.keyword("by");
            query.order = keys(scan)?;
            twice
        } else if scan.keyword("transaction") {
            let before = query.session.transaction();
            query.session = query.session.within(transaction(scan)?);
            before.is_some()
        } else {
            return Err(unjoined(scan));
        };
        if twice {
            return Err(scan.error_at(place, "it is given twice"));
        }
    }
    Ok(())
}

fn limit(scan: &mut Scan<'_>) -> Result<u64> {
    scan.peek();
    let place = scan.at;
    scan.bare()
        .parse()
        .map_err(|_| scan.error_at(place, "expected a number after `limit`").with_hint("write limit 10"))
}

fn transaction(scan: &mut Scan<'_>) -> Result<Id> {
    scan.takes('=');
    scan.peek();
    let place = scan.at;
    Id::parse(scan.bare()).ok_or_else(|| {
        scan.error_at(place, "expected the id of a transaction")
            .with_hint("an id has 32 hexadecimal digits; `fieldstone status` lists the open transactions")
    })
}

fn keys(scan: &mut Scan<'_>) -> Result<Vec<(Key, bool)>> {
    let mut keys: Vec<(Key, bool)> = Vec::new();
    loop {
        let mut down = scan.takes('-');
        scan.peek();
        let place = scan.at;
        let word = scan.ident().to_ascii_lowercase();
        let Some((_, key)) = KEYS.iter().find(|(name, _)| *name == word) else {
            if word.is_empty() {
                return Err(scan.expected("a column to order by").with_hint("write order by -value, step"));
            }
            return Err(scan.unknown(place, "order", &word, &KEYS.map(|(name, _)| name)));
        };
        if scan.keyword("desc") {
            down = true;
        } else {
            scan.keyword("asc");
        }
        keys.push((key.clone(), down));
        if !scan.takes(',') {
            return Ok(keys);
        }
    }
}
