//! Terms: a subject and its test.

use fieldstone_core::nearest;
use fieldstone_core::value::{Glob, Test, Value};
use fieldstone_core::{Error, Result};

use super::super::{Dim, Expr, NameTest, Scope, Term, WriterPart};
use super::boxes::dimension;
use super::literal::{as_typed, value, value_or_pattern};
use super::scan::Scan;
use super::{name_test, one_or};

/// Every word that begins a term: for errors, and for callers that use keywords in place of text.
pub const SUBJECTS: &[&str] = &[
    "run",
    "project",
    "job",
    "param",
    "attr",
    "created",
    "step",
    "time",
    "variable",
    "version",
    "level",
    "tag",
    "tag_version",
    "unit",
    "value",
    "scope",
    "box",
    "extent",
    "volume",
    "keyword",
    "user",
    "writer",
];
const OPERATORS: &str = "= != > >= < <= in between contains like exists";
/// Maximum number of steps that `a/to/b/by/c` may select.
const STEPS_MAX: i64 = 100_000;

pub(super) fn is_name(word: &str) -> bool {
    SUBJECTS.iter().any(|subject| word.eq_ignore_ascii_case(subject))
}

pub(super) fn term(scan: &mut Scan<'_>) -> Result<Expr> {
    scan.peek();
    let place = scan.at;
    let word = scan.ident();
    let subject = word.to_ascii_lowercase();
    let named = |term: fn(NameTest) -> Term, scan: &mut Scan<'_>| -> Result<Expr> {
        let (test, not) = names(scan, &subject)?;
        Ok(negated(Expr::Term(term(test)), not))
    };
    let tested = |term: Term| Ok(Expr::Term(term));
    match subject.as_str() {
        "run" => named(Term::Run, scan),
        "project" => named(Term::Project, scan),
        "job" => named(Term::Job, scan),
        "variable" => named(Term::Variable, scan),
        "tag" => named(Term::Tag, scan),
        "unit" => named(Term::Unit, scan),
        "param" => {
            let name = part(scan, "param", "nx=256")?;
            tested(Term::Param(name, test(scan)?))
        }
        "attr" => {
            let name = part(scan, "attr", "units=K")?;
            tested(Term::Attr(name, test(scan)?))
        }
        "keyword" => {
            let name = part(scan, "keyword", "number=3")?;
            tested(Term::Keyword(name, test(scan)?))
        }
        "user" => named(Term::User, scan),
        "writer" => {
            let part = writer_part(scan)?;
            tested(Term::Writer(part, test(scan)?))
        }
        "created" => tested(Term::Created(test(scan)?)),
        "time" => tested(Term::Time(test(scan)?)),
        "value" => tested(Term::Value(test(scan)?)),
        "volume" => tested(Term::Volume(test(scan)?)),
        "extent" => {
            let dim = dim_of_extent(scan)?;
            tested(Term::Extent(dim, test(scan)?))
        }
        "version" | "tag_version" => {
            let (list, not) = integers(scan, &subject)?;
            let term =
                if subject == "version" { Term::VariableVersion(list) } else { Term::TagVersion(list) };
            Ok(negated(Expr::Term(term), not))
        }
        "step" => {
            let (ranges, not) = numbers(scan, "step")?;
            Ok(negated(Expr::Term(Term::Step(ranges)), not))
        }
        "level" => level(scan),
        "scope" => scope(scan),
        "" => Err(scan.expected("a term").with_hint("a term is a word and a test, such as value>9000")),
        _ => Err(unknown_term(scan, place, word)),
    }
}

/// The dimension after `extent`; a quoted number is a name.
fn dim_of_extent(scan: &mut Scan<'_>) -> Result<Dim> {
    let quoted = scan.rest().starts_with(".\"") || scan.rest().starts_with(".'");
    let name = part(scan, "extent", "z=256")?;
    Ok(match dimension(&name) {
        Some(dim) if !quoted => dim,
        _ => Dim::Name(name),
    })
}

fn level(scan: &mut Scan<'_>) -> Result<Expr> {
    scan.peek();
    let place = scan.at;
    let (ranges, not) = numbers(scan, "level")?;
    let term = Term::level(ranges).map_err(|error| {
        let hint = error.hint().unwrap_or_default().to_owned();
        scan.error_at(place, error.message()).with_hint(hint)
    })?;
    Ok(negated(Expr::Term(term), not))
}

fn scope(scan: &mut Scan<'_>) -> Result<Expr> {
    let not = equals(scan, "scope")?;
    scan.peek();
    let place = scan.at;
    let word = scan.ident().to_ascii_lowercase();
    let scope = match word.as_str() {
        "run" => Scope::Run,
        "step" => Scope::Step,
        "variable" => Scope::Variable,
        other => return Err(scan.unknown(place, "scope", other, &["run", "step", "variable"])),
    };
    Ok(negated(Expr::Term(Term::Scope(scope)), not))
}

fn unknown_term(scan: &Scan<'_>, place: usize, word: &str) -> Error {
    let unknown = scan.unknown(place, "term of a query", word, SUBJECTS);
    match nearest::did_you_mean(word, SUBJECTS.iter().copied()) {
        Some(_) => unknown,
        None => unknown.with_hint(format!(
            "write `param.{word}` for a parameter of a run, `attr.{word}` for an attribute of a variable; known: {}",
            SUBJECTS.join(", ")
        )),
    }
}

fn negated(expr: Expr, not: bool) -> Expr {
    if not { Expr::Not(Box::new(expr)) } else { expr }
}

/// The `.NAME` of a parameter or dimension.
fn part(scan: &mut Scan<'_>, subject: &str, example: &str) -> Result<String> {
    if !scan.rest().starts_with('.') {
        return Err(scan
            .expected(&format!("`.` and a name after `{subject}`"))
            .with_hint(format!("write {subject}.{example}")));
    }
    scan.at += 1;
    if scan.rest().starts_with(['"', '\'']) {
        return Ok(scan.quoted()?.unwrap_or_default());
    }
    let rest = scan.rest();
    let ends = |c: char| c.is_whitespace() || c.is_control() || "(),=<>!\"'".contains(c);
    let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
    if name.is_empty() {
        return Err(scan.expected("a name"));
    }
    scan.at += name.len();
    Ok(name.to_owned())
}

/// The part of a writer after the word: `.rank` and the like; the writer's name if there is none.
fn writer_part(scan: &mut Scan<'_>) -> Result<WriterPart> {
    if !scan.rest().starts_with('.') {
        return Ok(WriterPart::Name);
    }
    let place = scan.at + 1;
    let word = part(scan, "writer", "rank=3")?;
    let known = WriterPart::WORDS.iter().find(|(known, _)| *known == word);
    let words = WriterPart::WORDS.map(|(word, _)| word);
    known.map(|(_, part)| *part).ok_or_else(|| scan.unknown(place, "part of a writer", &word, &words))
}

/// Consumes an operator sign; `==` and `<>` mean `=` and `!=`.
fn signs(scan: &mut Scan<'_>) -> Option<&'static str> {
    scan.peek();
    let known = [
        ("==", "="),
        ("!=", "!="),
        ("<>", "!="),
        (">=", ">="),
        ("<=", "<="),
        ("=", "="),
        (">", ">"),
        ("<", "<"),
    ];
    let (sign, meaning) = known.into_iter().find(|(sign, _)| scan.rest().starts_with(sign))?;
    scan.at += sign.len();
    Some(meaning)
}

/// Consumes `=` or `!=`; returns whether it was the latter.
fn equals(scan: &mut Scan<'_>, subject: &str) -> Result<bool> {
    scan.peek();
    let place = scan.at;
    match signs(scan) {
        Some("=") => Ok(false),
        Some("!=") => Ok(true),
        Some(_) => Err(scan.error_at(place, &format!("{subject} takes `=` or `!=`"))),
        None => Err(scan.expected(&format!("`=` after `{subject}`"))),
    }
}

/// A list in parentheses.
fn list<T>(scan: &mut Scan<'_>, mut item: impl FnMut(&mut Scan<'_>) -> Result<T>) -> Result<Vec<T>> {
    if !scan.takes('(') {
        return Err(scan.expected("`(`").with_hint("write in (a, b)"));
    }
    let mut items = Vec::new();
    if scan.takes(')') {
        return Ok(items);
    }
    loop {
        items.push(item(scan)?);
        if scan.takes(')') {
            return Ok(items);
        }
        if !scan.takes(',') {
            return Err(scan.expected("`,` or `)`"));
        }
    }
}

/// A name: a quoted one is exact, a bare one may be a pattern.
fn name(scan: &mut Scan<'_>) -> Result<NameTest> {
    if let Some(name) = scan.quoted()? {
        return Ok(NameTest::Is(name));
    }
    let word = scan.bare();
    if word.is_empty() {
        return Err(scan
            .expected("a name")
            .with_hint("quote a name that holds spaces or one of ( ) , = < >"));
    }
    Ok(name_test(word))
}

fn text(scan: &mut Scan<'_>) -> Result<String> {
    match scan.quoted()? {
        Some(text) => Ok(text),
        None => match scan.bare() {
            "" => Err(scan.expected("a text")),
            word => Ok(word.to_owned()),
        },
    }
}

/// The test of a name, and whether it is negated.
fn names(scan: &mut Scan<'_>, subject: &str) -> Result<(NameTest, bool)> {
    let not = scan.keyword("not");
    scan.peek();
    let place = scan.at;
    match signs(scan) {
        Some("=") => return Ok((name(scan)?, not)),
        Some("!=") => return Ok((name(scan)?, !not)),
        Some(sign) => {
            return Err(scan
                .error_at(place, &format!("`{sign}` compares values; {subject} is a name"))
                .with_hint(format!("names take = != in like contains: {subject}=temp*")));
        }
        None => {}
    }
    if scan.keyword("in") {
        let item = |scan: &mut Scan<'_>| {
            if scan.keyword("like") { text(scan).map(NameTest::Glob) } else { name(scan) }
        };
        return Ok((NameTest::Any(list(scan, item)?), not));
    }
    if scan.keyword("like") {
        return Ok((NameTest::Glob(text(scan)?), not));
    }
    if scan.keyword("contains") {
        return Ok((NameTest::Glob(format!("*{}*", Glob::escape(&text(scan)?))), not));
    }
    Err(scan.expected(&format!("a test after `{subject}`")).with_hint("names take = != in like contains"))
}

fn integer(scan: &mut Scan<'_>) -> Result<i64> {
    scan.peek();
    let place = scan.at;
    let word = scan.bare();
    word.parse().map_err(|_| scan.error_at(place, &format!("expected an integer, found `{word}`")))
}

fn integers(scan: &mut Scan<'_>, subject: &str) -> Result<(Vec<i64>, bool)> {
    let not = scan.keyword("not");
    if scan.keyword("in") {
        return Ok((list(scan, integer)?, not));
    }
    let unequal = equals(scan, subject)?;
    Ok((vec![integer(scan)?], not != unequal))
}

/// Ranges of steps or levels, both ends included, and whether they are negated.
fn numbers(scan: &mut Scan<'_>, subject: &str) -> Result<(Vec<(i64, i64)>, bool)> {
    let not = scan.keyword("not");
    let (least, most) = (i64::MIN, i64::MAX);
    scan.peek();
    let place = scan.at;
    let ranges = match signs(scan) {
        Some("=") => words(scan, subject)?,
        Some("!=") => return Ok((words(scan, subject)?, !not)),
        Some(">") => integer(scan)?.checked_add(1).map(|n| (n, most)).into_iter().collect(),
        Some(">=") => vec![(integer(scan)?, most)],
        Some("<") => integer(scan)?.checked_sub(1).map(|n| (least, n)).into_iter().collect(),
        Some(_) => vec![(least, integer(scan)?)],
        None if scan.keyword("in") => {
            list(scan, |scan| words(scan, subject))?.into_iter().flatten().collect()
        }
        None if scan.keyword("between") => {
            let from = integer(scan)?;
            if !scan.keyword("and") {
                return Err(scan.expected("`and`").with_hint(format!("write {subject} between 0 and 24")));
            }
            let to = integer(scan)?;
            if from > to {
                return Err(scan.error_at(place, &format!("no {subject} is between {from} and {to}")));
            }
            vec![(from, to)]
        }
        None => {
            return Err(scan.expected(&format!("a test after `{subject}`")).with_hint(format!(
                "{subject}s take = != > >= < <= in between: {subject}=0:10, {subject}=0/to/24/by/6"
            )));
        }
    };
    Ok((ranges, not))
}

/// `6`, `0:10`, `0/6/12`, `0/to/24/by/6`.
fn words(scan: &mut Scan<'_>, subject: &str) -> Result<Vec<(i64, i64)>> {
    scan.peek();
    let place = scan.at;
    let word = scan.bare();
    let wrong = |what: &str| {
        scan.error_at(place, what).with_hint(format!(
            "write {subject}=6, {subject}=0:10 (without 10), {subject}=0/6/12 or {subject}=0/to/24/by/6"
        ))
    };
    let number = |word: &str| {
        word.parse::<i64>()
            .map_err(|_| wrong(&format!("`{word}` is not a valid {subject}: {subject}s are integers")))
    };
    if let Some((from, to)) = word.split_once(':') {
        let from = if from.is_empty() { i64::MIN } else { number(from)? };
        let to = if to.is_empty() { Some(i64::MAX) } else { number(to)?.checked_sub(1) };
        return match to {
            Some(to) if from <= to => Ok(vec![(from, to)]),
            _ => Err(wrong(&format!("no {subject} is in {word}"))),
        };
    }
    let (mut ranges, mut words) = (Vec::new(), word.split('/').peekable());
    while let Some(word) = words.next() {
        let from = number(word)?;
        if words.peek() != Some(&"to") {
            ranges.push((from, from));
            continue;
        }
        words.next();
        let to = number(words.next().ok_or_else(|| wrong("the range has no end"))?)?;
        let by = if words.peek() == Some(&"by") {
            words.next();
            number(words.next().ok_or_else(|| wrong("the range has no interval"))?)?
        } else {
            1
        };
        if from > to || by < 1 {
            return Err(wrong(&format!("no {subject} is in {from} to {to} by {by}")));
        }
        if by == 1 {
            ranges.push((from, to));
            continue;
        }
        if i128::from(to) - i128::from(from) > i128::from(STEPS_MAX) * i128::from(by) {
            return Err(wrong(&format!("more than {STEPS_MAX} {subject}s in one range")));
        }
        let mut step = Some(from);
        while let Some(n) = step.filter(|n| *n <= to) {
            ranges.push((n, n));
            step = n.checked_add(by);
        }
    }
    Ok(ranges)
}

/// A test of a value: an operator, perhaps with `not`, or several in parentheses.
pub(super) fn test(scan: &mut Scan<'_>) -> Result<Test> {
    if scan.keyword("not") {
        return Ok(Test::Not(Box::new(scan.deeper(test)?)));
    }
    if scan.takes('(') {
        let inner = scan.deeper(any_test)?;
        scan.take(')')?;
        return Ok(inner);
    }
    operator(scan)
}

fn any_test(scan: &mut Scan<'_>) -> Result<Test> {
    let mut any = vec![all_tests(scan)?];
    while scan.keyword("or") {
        any.push(all_tests(scan)?);
    }
    Ok(one_or(any, Test::Any))
}

fn all_tests(scan: &mut Scan<'_>) -> Result<Test> {
    let mut all = vec![test(scan)?];
    while scan.keyword("and") {
        all.push(test(scan)?);
    }
    Ok(one_or(all, Test::All))
}

fn operator(scan: &mut Scan<'_>) -> Result<Test> {
    scan.peek();
    let place = scan.at;
    if let Some(sign) = signs(scan) {
        let value_at = {
            scan.peek();
            scan.at
        };
        let (value, pattern) = value_or_pattern(scan)?;
        let typed = as_typed(scan, value_at, &value);
        let test = match (sign, pattern, value) {
            ("=" | "!=", _, value) if typed.is_some() => {
                let both = either(value, typed);
                if sign == "=" { both } else { Test::Not(Box::new(both)) }
            }
            ("=", true, Value::Text(pattern)) => Test::Typed(pattern),
            ("!=", true, Value::Text(pattern)) => Test::Not(Box::new(Test::Typed(pattern))),
            ("=", _, value) => Test::Equal(value),
            ("!=", _, value) => Test::Not(Box::new(Test::Equal(value))),
            (">", _, value) => Test::Above(value),
            (">=", _, value) => Test::AtLeast(value),
            ("<", _, value) => Test::Below(value),
            (_, _, value) => Test::AtMost(value),
        };
        refuse_nan(scan, value_at, &test)?;
        return Ok(test);
    }
    if scan.keyword("exists") {
        return Ok(Test::Exists);
    }
    if scan.keyword("in") {
        let item = |scan: &mut Scan<'_>| {
            scan.peek();
            let at = scan.at;
            let value = value(scan)?;
            let typed = as_typed(scan, at, &value).map(Value::Text);
            Ok(std::iter::once(value).chain(typed).collect::<Vec<_>>())
        };
        return Ok(Test::IsIn(list(scan, item)?.concat()));
    }
    if scan.keyword("contains") {
        return Ok(Test::Contains(value(scan)?));
    }
    if scan.keyword("like") {
        return Ok(Test::Glob(text(scan)?));
    }
    if scan.keyword("between") {
        let from = value(scan)?;
        if !scan.keyword("and") {
            return Err(scan.expected("`and`").with_hint("write value between 1 and 5"));
        }
        let test = Test::Between(from, value(scan)?);
        refuse_nan(scan, place, &test)?;
        return Ok(test);
    }
    Err(scan.expected("a test").with_hint(format!("tests are {OPERATORS}")))
}

/// A number, or the text that was typed for it.
fn either(number: Value, text: Option<String>) -> Test {
    Test::IsIn(std::iter::once(number).chain(text.map(Value::Text)).collect())
}

/// NaN passes no test but `exists`, so a user who compares with it means something else.
fn refuse_nan(scan: &Scan<'_>, place: usize, test: &Test) -> std::result::Result<(), Error> {
    let nan = |value: &Value| matches!(value, Value::Float(n) if n.is_nan());
    let asked = match test {
        Test::Equal(v) | Test::Above(v) | Test::AtLeast(v) | Test::Below(v) | Test::AtMost(v) => nan(v),
        Test::Between(a, b) => nan(a) || nan(b),
        Test::Not(inner) => return refuse_nan(scan, place, inner),
        _ => false,
    };
    if asked {
        return Err(scan
            .error_at(place, "NaN cannot be compared")
            .with_hint("not value>=-inf finds NaN and values that are not numbers"));
    }
    Ok(())
}
