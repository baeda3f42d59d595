//! Keys: the canonical, ordered name of a field.
//!
//! A caller gives keyword → text pairs in any order; [`Schema::resolve`](crate::schema::Schema::resolve)
//! turns them into a [`FieldKey`] of three levels (dataset, index, field), each a list of keywords and
//! their canonical values in the schema's order.
//!
//! Invariants:
//! * a level's `names` and `values` have equal length;
//! * a value determines its text, so `text(parse(x))` is canonical;
//! * `Ord` on [`KeyValue`] is the typed order ("2" before "10" for an integer keyword), and the order of the bytes
//!   that `fieldstone-format` writes.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One canonical value of a keyword. The order of the variants is the order on disk.
#[derive(Debug, Clone)]
pub enum KeyValue {
    /// An optional keyword that this key does not have.
    Absent,
    /// A whole number; its text is the plain decimal.
    Int(i64),
    /// A number with its canonical text ("0.333333"). Never NaN; -0 is stored as 0.
    Real(f64, Arc<str>),
    /// A span of whole numbers with its canonical text: a step ("6", "30m", "0-24"), in minutes; for a text with
    /// seconds ("15s"), the numbers are the minutes that contain its ends. Ordered by `start`, then `end`, then text.
    Span {
        /// First number of the span.
        start: i64,
        /// Last number of the span; equals `start` for a point.
        end: i64,
        /// Canonical text.
        text: Arc<str>,
    },
    /// Any text, with any characters and of any length; ordered by its UTF-8 bytes.
    Text(Arc<str>),
}

impl KeyValue {
    /// Canonical text; empty for an absent value.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            KeyValue::Absent => "".into(),
            KeyValue::Int(i) => i.to_string().into(),
            KeyValue::Real(_, text) | KeyValue::Span { text, .. } | KeyValue::Text(text) => {
                std::borrow::Cow::Borrowed(text)
            }
        }
    }

    /// Whether the keyword is absent from the key.
    pub fn is_absent(&self) -> bool {
        matches!(self, KeyValue::Absent)
    }

    fn rank(&self) -> u8 {
        match self {
            KeyValue::Absent => 0,
            KeyValue::Int(_) => 1,
            KeyValue::Real(..) => 2,
            KeyValue::Span { .. } => 3,
            KeyValue::Text(_) => 4,
        }
    }
}

impl Ord for KeyValue {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (KeyValue::Int(a), KeyValue::Int(b)) => a.cmp(b),
            (KeyValue::Real(a, s), KeyValue::Real(b, t)) => a.total_cmp(b).then_with(|| s.cmp(t)),
            (KeyValue::Span { start: a, end: b, text: s }, KeyValue::Span { start: c, end: d, text: t }) => {
                a.cmp(c).then(b.cmp(d)).then_with(|| s.cmp(t))
            }
            (KeyValue::Text(a), KeyValue::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for KeyValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KeyValue {}

impl Hash for KeyValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            KeyValue::Absent => {}
            KeyValue::Int(i) => i.hash(state),
            KeyValue::Real(_, text) | KeyValue::Text(text) => text.hash(state),
            KeyValue::Span { start, end, text } => (start, end, text).hash(state),
        }
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The keywords of one level of a key, in the schema's order. All keys of a kind share them.
pub type Names = Arc<[Arc<str>]>;

/// One level of a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level {
    /// Keywords, in the schema's order.
    pub names: Names,
    /// Canonical values, one for each name.
    pub values: Vec<KeyValue>,
}

/// Number of levels of every key: dataset, index, field.
pub const LEVELS: usize = 3;

/// A canonical key: dataset, index and field level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldKey {
    /// The three levels, outermost first; neighbours in a list mostly share them.
    pub levels: [Arc<Level>; LEVELS],
}

impl FieldKey {
    /// Keyword and value of every keyword that is present, level by level.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &KeyValue)> {
        self.levels
            .iter()
            .flat_map(|level| level.names.iter().zip(&level.values))
            .filter(|(_, value)| !value.is_absent())
    }

    /// The value of `keyword` at its deepest level; `None` if it is absent.
    pub fn get(&self, keyword: &str) -> Option<&KeyValue> {
        self.levels.iter().rev().find_map(|level| {
            let i = level.names.iter().position(|n| &**n == keyword)?;
            Some(&level.values[i]).filter(|v| !v.is_absent())
        })
    }
}

impl FieldKey {
    /// Appends the text of its first levels, in the form of [`Display`](fmt::Display).
    pub fn write(&self, levels: usize, text: &mut String) {
        for level in self.levels.iter().take(levels) {
            text.push('{');
            let mut first = true;
            for (name, value) in level.names.iter().zip(&level.values) {
                if value.is_absent() {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    text.push(',');
                }
                text.push_str(name);
                text.push('=');
                let value = value.text();
                match is_plain(&value) {
                    true => text.push_str(&value),
                    false => text.push_str(&Quoted(&value).to_string()),
                }
            }
            text.push('}');
        }
    }
}

/// Whether a value needs no quotes.
fn is_plain(value: &str) -> bool {
    let plain_ascii = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._+:@%".contains(byte);
    if value.as_bytes().iter().all(plain_ascii) {
        return !value.is_empty();
    }
    !value.chars().any(|c| c.is_control() || c.is_whitespace() || ",{}=\"\\/*'#".contains(c))
}

impl fmt::Display for FieldKey {
    /// `{run=a}{variable=t}{step=6}`: the form of `fieldstone list`. Values that contain one of `,{}="'#\` or a
    /// control character, or are empty, are quoted with JSON's escapes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(64);
        self.write(LEVELS, &mut text);
        f.write_str(&text)
    }
}

/// Prints a value so that it can be parsed again: bare if it is plain, otherwise quoted.
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain(self.0) {
            return f.write_str(self.0);
        }
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}
