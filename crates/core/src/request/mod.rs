//! Requests: they select fields, in the MARS language.
//!
//! A request gives keywords lists (`t/u`), ranges (`0/to/24/by/6`), patterns (`t*`), everything (`*`), any value but
//! not none (`?*`: keys that have the keyword), or none (`!*`: keys that lack it); keywords that it does not name are
//! free. Here, values are only text; the schema interprets them ([`Schema::select`](crate::schema::Schema::select)).
//!
//! ```
//! use fieldstone_core::request::Request;
//! let request = Request::parse("retrieve, run=a, variable=t/u, step=0/to/24/by/6")?;
//! assert_eq!(request.to_string(), "run=a,variable=t/u,step=0/to/24/by/6");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```
//!
//! A program may bind a request to others ([`Request::within`]): it then selects the fields that all of them select,
//! in its own order. A store that shows only a part of another one queries it this way.
//!
//! Invariant: `parse(print(request))` gives the request, whatever characters its values have, except for its bounds,
//! which are not part of its text.

mod parser;

use std::fmt;

use crate::key::Quoted;
use crate::{Code, Error, Result};

/// A request or key with more keywords than this is refused.
pub(crate) const MAX_KEYWORDS: usize = 4096;
/// The value for a keyword that keys must lack.
pub const ABSENT: &str = "!*";
/// Keyword that names the output file of an answer.
pub(crate) const TARGET: &str = "target";

/// One item of a list of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Item {
    /// One value, as the user wrote it.
    One(String),
    /// `from/to/to[/by/by]`, both ends included.
    Range {
        /// First value.
        from: String,
        /// Last value.
        to: String,
        /// Interval; the type's default if it is not given.
        by: Option<String>,
    },
}

/// One item of a list that contains a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// One value, as the user wrote it.
    One(String),
    /// The values that a pattern matches, as in queries: `tos*`, `*_mean`, `run-??-*`.
    Glob(String),
}

/// The values of a keyword.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Values {
    /// `*`: any value, and keys without the keyword.
    Any,
    /// Existing values that a pattern matches or that the list names. None of them can be missing.
    Like(Vec<Wanted>),
    /// `?*`: any value, but no key without the keyword.
    Present,
    /// `!*`: keys without the keyword.
    Absent,
    /// These values, in this order.
    List(Vec<Item>),
}

impl Values {
    /// Makes a list of single values.
    pub fn list<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Values {
        Values::List(values.into_iter().map(|v| Item::One(v.into())).collect())
    }
}

/// A request: keywords with their values, in the order given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Request {
    pairs: Vec<(String, Values)>,
    bounds: Vec<Request>,
}

impl Request {
    /// The request that names no keyword, and so selects everything.
    pub fn new() -> Request {
        Request::default()
    }

    /// Parses `run=a,variable=t/u,step=0/to/24/by/6`, with white space anywhere and an optional MARS verb in front,
    /// or a key as it is printed: `{run=a}{variable=t}{step=6}`.
    pub fn parse(text: &str) -> Result<Request> {
        parser::parse(text)
    }

    /// Parses a text of several requests: one on each line, or a MARS request file, in which each has a verb. A line
    /// continues if it ends with `,`, `/` or `=`, or the next one begins so. A request with a verb inherits the
    /// keywords that it does not name from the previous request with this verb; `keyword=off` drops one.
    ///
    /// ```
    /// use fieldstone_core::request::Request;
    /// let all = Request::parse_many("retrieve, param=t, step=0\nretrieve, step=6 # the same, later")?;
    /// assert_eq!(all[1].to_string(), "param=t,step=6");
    /// let all = Request::parse_many("run=a,variable=t,step=0/to/12\nrun=b,variable=u")?;
    /// assert_eq!(all[1].to_string(), "run=b,variable=u");
    /// # Ok::<(), fieldstone_core::Error>(())
    /// ```
    pub fn parse_many(text: &str) -> Result<Vec<Request>> {
        parser::parse_many(text)
    }

    /// The file for the answer (`target="output.grib"`), if the request names one.
    pub fn target(&self) -> Option<&str> {
        let (_, values) = self.pairs.iter().find(|(k, _)| k.eq_ignore_ascii_case(TARGET))?;
        match values {
            Values::List(items) => match &items[..] {
                [Item::One(file)] => Some(file),
                _ => None,
            },
            Values::Any | Values::Present | Values::Absent | Values::Like(_) => None,
        }
    }

    /// Sets the values of a keyword, replacing earlier ones.
    pub fn set(&mut self, keyword: impl Into<String>, values: Values) {
        let keyword = keyword.into();
        match self.pairs.iter_mut().find(|(k, _)| *k == keyword) {
            Some((_, old)) => *old = values,
            None => self.pairs.push((keyword, values)),
        }
    }

    /// A request with the keywords of both; Invalid if both name a keyword.
    pub fn with(&self, other: &Request) -> Result<Request> {
        let mut both = self.clone();
        for (keyword, values) in &other.pairs {
            both.add(keyword.clone(), values.clone(), false)?;
        }
        both.bounds.extend(other.bounds.iter().cloned());
        Ok(both)
    }

    /// Adds a keyword as the parser meets it; a repeated keyword is an error or replaces the first.
    fn add(&mut self, keyword: String, values: Values, replace: bool) -> Result<()> {
        if !replace && self.get(&keyword).is_some() {
            return Err(Code::KeyContradiction
                .error(format!("`{keyword}` is given twice"))
                .with_hint("list its values: keyword=a/b"));
        }
        self.set(keyword, values);
        match self.pairs.len() {
            n if n > MAX_KEYWORDS => Err(Error::invalid(format!("more than {MAX_KEYWORDS} keywords"))),
            _ => Ok(()),
        }
    }

    /// The values of a keyword.
    pub fn get(&self, keyword: &str) -> Option<&Values> {
        self.pairs.iter().find(|(k, _)| k == keyword).map(|(_, v)| v)
    }

    /// The same request, limited to the fields that `bound` selects. The lists of the bound neither order the answer
    /// nor count as missing fields.
    ///
    /// ```
    /// use fieldstone_core::request::Request;
    /// use fieldstone_core::schema::Schema;
    /// let schema = Schema::parse("[run [variable [step]]]")?;
    /// let request = Request::parse("step=6/0")?.within(Request::parse("variable=t")?);
    /// let selection = schema.select(&request)?;
    /// assert!(selection.takes(&schema.resolve(&[("run", "a"), ("variable", "t"), ("step", "0")])?));
    /// assert!(!selection.takes(&schema.resolve(&[("run", "a"), ("variable", "u"), ("step", "0")])?));
    /// assert_eq!(selection.count_listed(), Some(2), "two steps");
    /// # Ok::<(), fieldstone_core::Error>(())
    /// ```
    pub fn within(mut self, bound: Request) -> Request {
        self.bounds.push(bound);
        self
    }

    /// The requests to which it is bound, in addition to its own keywords.
    pub fn bounds(&self) -> &[Request] {
        &self.bounds
    }

    /// Whether it names no keyword, and so selects everything.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.bounds.iter().all(Request::is_empty)
    }

    /// Keywords and values, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Values)> {
        self.pairs.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// The request as the pairs of one key, without the keywords that must be absent; an error if a keyword has a
    /// list, a range or `*`.
    pub fn single_pairs(&self) -> Result<Vec<(String, String)>> {
        let single = |(keyword, values): &(String, Values)| match values {
            Values::List(items) if items.len() == 1 => match &items[0] {
                Item::One(value) => Ok((keyword.clone(), value.clone())),
                Item::Range { .. } => Err(not_single(keyword, "a range")),
            },
            Values::List(_) => Err(not_single(keyword, "a list")),
            Values::Any => Err(not_single(keyword, "`*`")),
            Values::Like(_) => Err(not_single(keyword, "a pattern")),
            Values::Present => Err(not_single(keyword, "`?*`")),
            Values::Absent => Err(not_single(keyword, "`!*`")),
        };
        self.pairs.iter().filter(|(_, values)| *values != Values::Absent).map(single).collect()
    }
}

fn not_single(keyword: &str, found: &str) -> Error {
    Code::RequestTooBroad
        .error(format!("{keyword} has {found}, but a key needs one value"))
        .with_hint("quote a value that contains / or *")
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (keyword, values)) in self.pairs.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match is_keyword(keyword) {
                true => write!(f, "{keyword}={values}")?,
                false => write!(f, "{}={values}", AlwaysQuoted(keyword))?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Any => f.write_str("*"),
            Values::Present => f.write_str("?*"),
            Values::Absent => f.write_str(ABSENT),
            Values::List(items) => slashed(f, items),
            Values::Like(wanted) => slashed(f, wanted),
        }
    }
}

fn slashed<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str("/")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::One(value) => write!(f, "{}", Printed(value)),
            Wanted::Glob(pattern) => f.write_str(pattern),
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::One(value) => write!(f, "{}", Printed(value)),
            Item::Range { from, to, by: None } => write!(f, "{}/to/{}", Printed(from), Printed(to)),
            Item::Range { from, to, by: Some(by) } => {
                write!(f, "{}/to/{}/by/{}", Printed(from), Printed(to), Printed(by))
            }
        }
    }
}

/// A value as a request prints it: words of the language are quoted.
struct Printed<'a>(&'a str);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_word(self.0, "to") || is_word(self.0, "by") {
            true => AlwaysQuoted(self.0).fmt(f),
            false => Quoted(self.0).fmt(f),
        }
    }
}

struct AlwaysQuoted<'a>(&'a str);

impl fmt::Display for AlwaysQuoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `Quoted` leaves plain text bare; an empty text in front of it never is.
        let quoted = Quoted(self.0).to_string();
        if quoted.starts_with('"') { f.write_str(&quoted) } else { write!(f, "\"{quoted}\"") }
    }
}

fn is_word(text: &str, word: &str) -> bool {
    text.eq_ignore_ascii_case(word)
}

/// Whether a text can be a keyword: letters, digits and `_ . - +`, at most 255 bytes.
pub(crate) fn is_keyword(text: &str) -> bool {
    !text.is_empty() && text.len() <= 255 && text.chars().all(|c| c.is_alphanumeric() || "_.-+".contains(c))
}

/// "line 2, column 7" of a byte offset.
pub(crate) fn line_and_column(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    format!("line {line}, column {column}")
}
