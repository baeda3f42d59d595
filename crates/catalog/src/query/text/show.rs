//! Prints queries as text.

use std::fmt::{self, Display, Formatter};

use fieldstone_core::value::{Glob, Size, Test, Value};

use super::super::{Dim, Expr, NameTest, Pick, Query, Range, Relation, Scope, Term, Where, WriterPart};
use super::parser::{RELATIONS, key_name};
use super::scan::is_ident;

/// How tightly the surrounding expression binds: an expression that binds less needs parentheses.
#[derive(PartialEq, PartialOrd)]
enum Binds {
    Or,
    And,
    Not,
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut blank = "";
        if !matches!(&self.expr, Expr::All(all) if all.is_empty()) {
            write!(f, "{}", self.expr)?;
            blank = " ";
        }
        let mut tail = |f: &mut Formatter<'_>, text: String| {
            write!(f, "{blank}{text}")?;
            blank = " ";
            Ok(())
        };
        match self.pick {
            Some(Pick::First) => tail(f, "first".into())?,
            Some(Pick::Last) => tail(f, "last".into())?,
            None => {}
        }
        if !self.order.is_empty() {
            let key = |(key, down): &(_, bool)| format!("{}{}", if *down { "-" } else { "" }, key_name(key));
            let keys: Vec<String> = self.order.iter().map(key).collect();
            tail(f, format!("order by {}", keys.join(", ")))?;
        }
        if let Some(limit) = self.limit {
            tail(f, format!("limit {limit}"))?;
        }
        if let Some(transaction) = self.session.transaction() {
            tail(f, format!("transaction={transaction}"))?;
        }
        Ok(())
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        expr(f, self, Binds::Or, 0)
    }
}

/// Prints an expression at nesting `depth`. Expressions that are too deep for a query are shown as `…`.
fn expr(f: &mut Formatter<'_>, shown: &Expr, around: Binds, depth: usize) -> fmt::Result {
    if depth > Size::MOST.levels {
        return f.write_str("…");
    }
    match shown {
        Expr::All(all) if all.is_empty() => f.write_str("everything"),
        Expr::Any(any) if any.is_empty() => f.write_str("nothing"),
        Expr::All(one) | Expr::Any(one) if one.len() == 1 => expr(f, &one[0], around, depth + 1),
        Expr::All(all) => bracketed(f, around > Binds::And, |f| joined(f, all, " and ", depth + 1)),
        Expr::Any(any) => bracketed(f, around > Binds::Or, |f| joined(f, any, " or ", depth + 1)),
        Expr::Not(inner) => match &**inner {
            Expr::Related(at, inner) => related(f, "without", *at, inner, depth + 1),
            inner => {
                f.write_str("not ")?;
                expr(f, inner, Binds::Not, depth + 1)
            }
        },
        Expr::Related(at, inner) => related(f, "with", *at, inner, depth),
        Expr::Term(shown) => term(f, shown),
    }
}

fn bracketed(
    f: &mut Formatter<'_>,
    brackets: bool,
    inner: impl FnOnce(&mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if brackets {
        f.write_str("(")?;
    }
    inner(f)?;
    if brackets { f.write_str(")") } else { Ok(()) }
}

/// Prints the parts of a list. A part that is such a list itself keeps its parentheses, so that it stays one
/// part.
fn joined(f: &mut Formatter<'_>, parts: &[Expr], joint: &str, depth: usize) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(joint)?;
        }
        expr(f, part, if joint == " and " { Binds::Not } else { Binds::And }, depth)?;
    }
    Ok(())
}

fn related(f: &mut Formatter<'_>, with: &str, at: Where, inner: &Expr, depth: usize) -> fmt::Result {
    let place = match at {
        Where::SameRun => "same run",
        Where::SameStep => "same step",
        Where::SameVariable => "same variable",
        Where::Overlapping => "overlapping",
    };
    write!(f, "{with} {place} (")?;
    expr(f, inner, Binds::Or, depth + 1)?;
    f.write_str(")")
}

fn term(f: &mut Formatter<'_>, shown: &Term) -> fmt::Result {
    match shown {
        Term::Run(test) => name(f, "run", test),
        Term::Project(test) => name(f, "project", test),
        Term::Job(test) => name(f, "job", test),
        Term::Variable(test) => name(f, "variable", test),
        Term::Tag(test) => name(f, "tag", test),
        Term::Unit(test) => name(f, "unit", test),
        Term::Param(param, value) => {
            f.write_str("param.")?;
            part(f, param, false)?;
            test(f, value)
        }
        Term::Attr(attr, value) => {
            f.write_str("attr.")?;
            part(f, attr, false)?;
            test(f, value)
        }
        Term::Keyword(keyword, value) => {
            f.write_str("keyword.")?;
            part(f, keyword, false)?;
            test(f, value)
        }
        Term::User(test) => name(f, "user", test),
        Term::Writer(WriterPart::Name, value) => tested(f, "writer", value),
        Term::Writer(part, value) => {
            let word = WriterPart::WORDS.iter().find(|(_, of)| of == part).map_or("", |(word, _)| word);
            write!(f, "writer.{word}")?;
            test(f, value)
        }
        Term::Created(value) => tested(f, "created", value),
        Term::Time(value) => tested(f, "time", value),
        Term::Value(value) => tested(f, "value", value),
        Term::Volume(value) => tested(f, "volume", value),
        Term::Extent(dim, value) => {
            f.write_str("extent.")?;
            dimension(f, dim)?;
            test(f, value)
        }
        Term::VariableVersion(list) => integers(f, "version", list),
        Term::TagVersion(list) => integers(f, "tag_version", list),
        Term::Level(ranges) => numbers(f, "level", ranges),
        Term::Step(ranges) => numbers(f, "step", ranges),
        Term::Scope(Scope::Run) => f.write_str("scope=run"),
        Term::Scope(Scope::Step) => f.write_str("scope=step"),
        Term::Scope(Scope::Variable) => f.write_str("scope=variable"),
        Term::Region(parts, relation) => region(f, parts, *relation),
    }
}

/// A text in quotes, in JSON's syntax.
fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "{}", Value::Text(text.to_owned()))
}

/// Whether a word may stand bare.
fn is_bare(word: &str) -> bool {
    let sign = |c: char| "_-./:+*?[]{}@%~^&|;!".contains(c);
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || sign(c))
}

/// The name of a parameter or dimension; a name of digits alone is quoted if it would be an index.
fn part(f: &mut Formatter<'_>, word: &str, digits_are_index: bool) -> fmt::Result {
    let bare = !word.is_empty() && word.chars().all(is_ident);
    let index = digits_are_index && word.bytes().all(|b| b.is_ascii_digit());
    if bare && !index { f.write_str(word) } else { quoted(f, word) }
}

fn dimension(f: &mut Formatter<'_>, dim: &Dim) -> fmt::Result {
    match dim {
        Dim::Name(word) => part(f, word, true),
        Dim::Index(index) => write!(f, "{index}"),
    }
}

fn name(f: &mut Formatter<'_>, subject: &str, test: &NameTest) -> fmt::Result {
    f.write_str(subject)?;
    match test {
        NameTest::Is(_) => {
            f.write_str("=")?;
            name_item(f, test)
        }
        NameTest::Typed(pattern) if Glob::is_pattern(pattern) && is_bare(pattern) => write!(f, "={pattern}"),
        NameTest::Glob(pattern) | NameTest::Typed(pattern) => {
            f.write_str(" like ")?;
            quoted(f, pattern)
        }
        NameTest::Any(_) => {
            f.write_str(" in (")?;
            for (i, item) in flat(test).into_iter().enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                name_item(f, item)?;
            }
            f.write_str(")")
        }
    }
}

/// The names and patterns in a test, of which one must match.
fn flat(test: &NameTest) -> Vec<&NameTest> {
    match test {
        NameTest::Any(any) => any.iter().flat_map(flat).collect(),
        one => vec![one],
    }
}

fn name_item(f: &mut Formatter<'_>, item: &NameTest) -> fmt::Result {
    match item {
        // In a list, `like` begins a pattern.
        NameTest::Is(word)
            if is_bare(word) && !Glob::is_pattern(word) && !word.eq_ignore_ascii_case("like") =>
        {
            f.write_str(word)
        }
        NameTest::Is(word) => quoted(f, word),
        NameTest::Typed(pattern) if Glob::is_pattern(pattern) && is_bare(pattern) => f.write_str(pattern),
        NameTest::Glob(pattern) | NameTest::Typed(pattern) => {
            f.write_str("like ")?;
            quoted(f, pattern)
        }
        NameTest::Any(any) => any.iter().try_for_each(|item| name_item(f, item)),
    }
}

fn integers(f: &mut Formatter<'_>, subject: &str, list: &[i64]) -> fmt::Result {
    if let [one] = list {
        return write!(f, "{subject}={one}");
    }
    let words: Vec<String> = list.iter().map(i64::to_string).collect();
    write!(f, "{subject} in ({})", words.join(", "))
}

/// Steps or levels.
fn numbers(f: &mut Formatter<'_>, subject: &str, ranges: &[(i64, i64)]) -> fmt::Result {
    let word = |(from, to): &(i64, i64)| match (*from, *to) {
        (from, to) if from == to => from.to_string(),
        (i64::MIN, i64::MAX) => ":".into(),
        (i64::MIN, to) => format!(":{}", to + 1),
        (from, i64::MAX) => format!("{from}:"),
        (from, to) => format!("{from}:{}", to + 1),
    };
    let words: Vec<String> = ranges.iter().filter(|(from, to)| from <= to).map(word).collect();
    match &words[..] {
        [one] => write!(f, "{subject}={one}"),
        words => write!(f, "{subject} in ({})", words.join(", ")),
    }
}

fn region(f: &mut Formatter<'_>, parts: &[(Dim, Range)], relation: Relation) -> fmt::Result {
    if relation != Relation::Overlaps {
        let word = RELATIONS.iter().find(|(_, known)| *known == relation).map_or("", |(word, _)| word);
        write!(f, "{word} ")?;
    }
    let brackets = parts.is_empty() || parts.iter().any(|(_, range)| matches!(range, Range::Physical(..)));
    f.write_str(if brackets { "box(" } else { "box=" })?;
    for (i, (dim, range)) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        dimension(f, dim)?;
        match range {
            Range::Physical(low, high) => write!(f, "={low:?}..{high:?}")?,
            Range::Index(from, to) => {
                for end in [from, to] {
                    f.write_str(":")?;
                    end.iter().try_for_each(|end| write!(f, "{end}"))?;
                }
            }
        }
    }
    if brackets { f.write_str(")") } else { Ok(()) }
}

fn tested(f: &mut Formatter<'_>, subject: &str, value: &Test) -> fmt::Result {
    f.write_str(subject)?;
    test(f, value)
}

/// Prints a test after its subject.
fn test(f: &mut Formatter<'_>, shown: &Test) -> fmt::Result {
    test_at(f, shown, 0)
}

/// Like [`expr`].
fn test_at(f: &mut Formatter<'_>, shown: &Test, depth: usize) -> fmt::Result {
    if depth > Size::MOST.levels {
        return f.write_str("…");
    }
    match shown {
        Test::All(one) | Test::Any(one) if one.len() == 1 => test_at(f, &one[0], depth + 1),
        Test::All(tests) if tests.is_empty() => f.write_str(" exists"),
        Test::Any(tests) if tests.is_empty() => f.write_str(" in ()"),
        Test::All(tests) => tests_in(f, tests, "and", depth + 1),
        Test::Any(tests) => tests_in(f, tests, "or", depth + 1),
        Test::Not(inner) => match &**inner {
            Test::Equal(value) => write!(f, "!={value}"),
            Test::Typed(pattern) if is_typed(pattern) => write!(f, "!={pattern}"),
            inner => {
                f.write_str(" not ")?;
                test_at(f, inner, depth + 1)
            }
        },
        Test::Exists => f.write_str(" exists"),
        Test::Above(value) => write!(f, ">{value}"),
        Test::AtLeast(value) => write!(f, ">={value}"),
        Test::Below(value) => write!(f, "<{value}"),
        Test::AtMost(value) => write!(f, "<={value}"),
        Test::Equal(value) => write!(f, "={value}"),
        Test::Between(from, to) => write!(f, " between {from} and {to}"),
        Test::Contains(value) => write!(f, " contains {value}"),
        Test::IsIn(values) => {
            let words: Vec<String> = values.iter().map(Value::to_string).collect();
            write!(f, " in ({})", words.join(", "))
        }
        Test::Typed(pattern) if is_typed(pattern) => write!(f, "={pattern}"),
        Test::Glob(pattern) | Test::Typed(pattern) => {
            f.write_str(" like ")?;
            quoted(f, pattern)
        }
    }
}

/// Whether a pattern parses back as a typed value: one that begins a list or a map does not.
fn is_typed(pattern: &str) -> bool {
    Glob::is_pattern(pattern) && is_bare(pattern) && !pattern.starts_with(['[', '{'])
}

fn tests_in(f: &mut Formatter<'_>, tests: &[Test], joint: &str, depth: usize) -> fmt::Result {
    f.write_str(" (")?;
    for (i, inner) in tests.iter().enumerate() {
        if i > 0 {
            write!(f, " {joint} ")?;
        }
        test_at(f, inner, depth)?;
    }
    f.write_str(")")
}
