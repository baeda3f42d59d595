//! Indexes of one segment: vertices by type, by the values of properties, and by words; relations by the
//! values of theirs.
//!
//! A segment never changes, and neither do its indexes. Each is made at its first use, in one pass over the
//! segment, and stays in memory as long as the segment is open (G-18). An index gives candidates: it also
//! holds versions that are hidden, or of another moment, so the caller checks the vertex or relation itself.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;
use fieldstone_core::value::{Glob, Test, Value};
use fieldstone_format::graph::Props;
use fieldstone_format::graph_segment::adjacency::groups;
use fieldstone_format::graph_segment::rows::{self, read_row, read_vertex, relations_at};

use super::{Segment, SegmentCursor, outside};

/// Bytes of a word by which it is sorted: longer words with the same beginning are distinguished at the
/// vertex.
const KEY: usize = 8;

/// The indexes of a segment.
#[derive(Debug, Default)]
pub struct SegmentIndex {
    kinds: OnceLock<HashMap<Arc<str>, Arc<[u32]>>>,
    values: Mutex<HashMap<String, Arc<ValueIndex>>>,
    words: Mutex<Option<(Vec<String>, Arc<WordIndex>)>>,
    sources: OnceLock<HashMap<Arc<str>, Arc<[u32]>>>,
    relations: Mutex<HashMap<(String, String), Arc<RelationIndex>>>,
}

/// Numbers of vertices, or of both ends of relations, by the values of a property in their versions.
#[derive(Debug, Default)]
pub struct ValueIndex<N = u32> {
    /// By [`Value::order`].
    entries: Vec<(Value, N)>,
    /// Whether a value is a range: ranges overlap, and their order does not find them.
    ranges: bool,
}

/// Relations of one type by the value of a property: the numbers of source and target.
pub type RelationIndex = ValueIndex<(u32, u32)>;

/// Numbers of vertices by the words of their ids, of the property `name`, and of other declared properties.
#[derive(Debug, Default)]
pub struct WordIndex {
    /// The first bytes of a word as a number, and the vertex; ascending.
    keys: Vec<(u64, u32)>,
}

/// The words of a text, in lower case: runs of letters and digits.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn key(word: &str) -> u64 {
    let mut bytes = [0; KEY];
    let len = word.len().min(KEY);
    bytes[..len].copy_from_slice(&word.as_bytes()[..len]);
    u64::from_be_bytes(bytes)
}

/// Visits the properties, including static ones, of all versions of all vertices.
fn each_version(segment: &Segment, mut visit: impl FnMut(u32, &Props) -> Result<()>) -> Result<()> {
    for number in 0..segment.vertices() {
        let (versions, _) = read_vertex(&segment.rows(number)?, segment.summary.base)?;
        for version in &versions {
            for props in version.fixed.iter().chain([&version.props]) {
                visit(number, props)?;
            }
        }
    }
    Ok(())
}

impl Segment {
    /// Numbers of the vertices of a type.
    pub fn of_kind(&self, kind: &str) -> Result<Arc<[u32]>> {
        if self.index.kinds.get().is_none() {
            let mut kinds: HashMap<Arc<str>, Vec<u32>> = HashMap::new();
            for number in 0..self.vertices() {
                let name = self.name_bytes(number)?;
                let (kind, _) = rows::read_name(&name)?;
                kinds.entry(self.kind(kind)?.clone()).or_default().push(number);
            }
            let kinds = kinds.into_iter().map(|(kind, numbers)| (kind, numbers.into())).collect();
            // Another thread may have set it first.
            let _ = self.index.kinds.set(kinds);
        }
        Ok(self.index.kinds.get().and_then(|kinds| kinds.get(kind)).cloned().unwrap_or_default())
    }

    /// The vertices by the values of a property.
    pub fn values_of(&self, name: &str) -> Result<Arc<ValueIndex>> {
        let known = self.index.values.lock().get(name).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let mut index = ValueIndex::default();
        each_version(self, |number, props| index.add(props, name, number))?;
        let index = Arc::new(index.in_order());
        let mut values = self.index.values.lock();
        Ok(values.entry(name.to_owned()).or_insert(index).clone())
    }

    /// Numbers of the vertices from which relations of a type lead.
    pub fn sources_of(&self, kind: &str) -> Result<Arc<[u32]>> {
        if self.index.sources.get().is_none() {
            let mut sources: HashMap<Arc<str>, Vec<u32>> = HashMap::new();
            let mut cursor = SegmentCursor::default();
            for number in 0..self.vertices() {
                let adjacency = self.adjacency_on(number, &mut cursor)?;
                for group in groups(&adjacency)? {
                    let group = group?;
                    if group.code & 1 == 0 {
                        sources.entry(self.kind(group.code / 2)?.clone()).or_default().push(number);
                    }
                }
            }
            let sources = sources.into_iter().map(|(kind, numbers)| (kind, numbers.into())).collect();
            // Another thread may have set it first.
            let _ = self.index.sources.set(sources);
        }
        Ok(self.index.sources.get().and_then(|sources| sources.get(kind)).cloned().unwrap_or_default())
    }

    /// The relations of a type by the values of a property, for relations whose source is in this segment:
    /// there are their rows.
    pub fn relations_by(&self, kind: &str, name: &str) -> Result<Arc<RelationIndex>> {
        let key = (kind.to_owned(), name.to_owned());
        let known = self.index.relations.lock().get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let (mut index, mut cursor) = (RelationIndex::default(), SegmentCursor::default());
        for source in self.sources_of(kind)?.iter() {
            let (adjacency, rows) = (self.adjacency_on(*source, &mut cursor)?, self.rows(*source)?);
            let first = relations_at(&rows)?;
            for group in groups(&adjacency)? {
                let group = group?;
                if group.code & 1 == 1 || **self.kind(group.code / 2)? != *kind {
                    continue;
                }
                group.each_version(self.summary.base, |target, version, row| {
                    let from = usize::try_from(row).ok().and_then(|row| row.checked_add(first));
                    let to = from.and_then(|from| from.checked_add(version.row as usize));
                    let row = from.zip(to).and_then(|(from, to)| rows.get(from..to)).ok_or_else(outside)?;
                    let (_, props) = read_row(row, version.stamp)?;
                    index.add(&props, name, (*source, target))
                })?;
            }
        }
        let index = Arc::new(index.in_order());
        let mut relations = self.index.relations.lock();
        Ok(relations.entry(key).or_insert(index).clone())
    }

    /// The vertices by the words of their ids and of these properties.
    pub fn words_of(&self, names: &[String]) -> Result<Arc<WordIndex>> {
        let known = self.index.words.lock().clone();
        if let Some((of, known)) = known
            && of == names
        {
            return Ok(known);
        }
        let mut keys = Vec::new();
        for number in 0..self.vertices() {
            let name = self.name_bytes(number)?;
            keys.extend(words(rows::read_name(&name)?.1).map(|word| (key(&word), number)));
        }
        each_version(self, |number, props| {
            for name in names {
                if let Some(value) = props.get(name)? {
                    each_text(&value, &mut |text| {
                        keys.extend(words(text).map(|word| (key(&word), number)));
                    });
                }
            }
            Ok(())
        })?;
        keys.sort_unstable();
        keys.dedup();
        let index = Arc::new(WordIndex { keys });
        let mut slot = self.index.words.lock();
        *slot = Some((names.to_vec(), index.clone()));
        Ok(index)
    }
}

/// Visits the texts of a value.
pub fn each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::Text(text) => visit(text),
        Value::List(all) | Value::Array(all) => all.iter().for_each(|one| each_text(one, visit)),
        _ => {}
    }
}

impl<N: Copy + Ord> ValueIndex<N> {
    /// Adds the value of a property, if there is one.
    fn add(&mut self, props: &Props, name: &str, number: N) -> Result<()> {
        if let Some(value) = props.get(name)? {
            self.ranges |= matches!(value, Value::IntRange(..) | Value::FloatRange(..));
            self.entries.push((value, number));
        }
        Ok(())
    }

    fn in_order(mut self) -> ValueIndex<N> {
        self.entries.sort_by(|a, b| a.0.order(&b.0).then(a.1.cmp(&b.1)));
        self
    }

    /// Numbers of entries with a version that may pass a test, perhaps repeated.
    pub fn candidates(&self, test: &Test) -> Vec<N> {
        let mut numbers = Vec::new();
        for (from, to) in self.spans(test) {
            let passing = self.entries[from..to].iter().filter(|(value, _)| test.matches(value));
            numbers.extend(passing.map(|(_, number)| *number));
        }
        numbers
    }

    /// The ranges of entries that may pass.
    fn spans(&self, test: &Test) -> Vec<(usize, usize)> {
        let before = |value: &Value| self.entries.partition_point(|(known, _)| known.order(value).is_lt());
        let behind = |value: &Value| self.entries.partition_point(|(known, _)| known.order(value).is_le());
        let all = (0, self.entries.len());
        let ordered =
            |value: &Value| !self.ranges && !matches!(value, Value::IntRange(..) | Value::FloatRange(..));
        let span = match test {
            Test::Equal(value) => (before(value), behind(value)),
            Test::IsIn(values) => return values.iter().map(|value| (before(value), behind(value))).collect(),
            Test::Above(value) | Test::AtLeast(value) if ordered(value) => (before(value), all.1),
            Test::Below(value) | Test::AtMost(value) if ordered(value) => (0, behind(value)),
            Test::Between(from, to) if ordered(from) && ordered(to) => (before(from), behind(to)),
            Test::Glob(pattern) | Test::Typed(pattern) => {
                let prefix = Glob::new(pattern).prefix();
                let begins = |text: &str| *text < *prefix || text.starts_with(&prefix);
                let to = self.entries.partition_point(|(known, _)| match known {
                    Value::Text(text) => begins(text),
                    other => other.order(&Value::Text(String::new())).is_lt(),
                });
                (before(&Value::Text(prefix.clone())), to)
            }
            Test::All(tests) => {
                let narrowest = tests.iter().map(|test| self.spans(test));
                let size = |spans: &Vec<(usize, usize)>| -> usize {
                    spans.iter().map(|(from, to)| to.saturating_sub(*from)).sum()
                };
                return narrowest.min_by_key(size).unwrap_or_else(|| vec![all]);
            }
            _ => all,
        };
        vec![(span.0, span.1.max(span.0))]
    }
}

impl WordIndex {
    /// Distinct numbers of the vertices that may have a word, or one that begins like it; ascending.
    pub fn candidates(&self, word: &str, prefix: bool) -> Vec<u32> {
        let from = key(word);
        let to = match prefix && word.len() < KEY {
            true => from | (u64::MAX >> (8 * word.len())),
            false => from,
        };
        let first = self.keys.partition_point(|(known, _)| *known < from);
        let mut numbers: Vec<u32> = self.keys[first..]
            .iter()
            .take_while(|(known, _)| *known <= to)
            .map(|(_, number)| *number)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_miss_nothing_that_passes() {
        let values = [
            Value::Int(1),
            Value::Float(1.0),
            Value::Float(2.5),
            Value::UInt(7),
            Value::Float(f64::NAN),
            Value::Text("a".into()),
            Value::Text("ab".into()),
            Value::Text("b".into()),
            Value::Bool(true),
            Value::Null,
            Value::DateTime(5),
        ];
        let tests = |v: &Value, w: &Value| {
            vec![
                Test::Equal(v.clone()),
                Test::Above(v.clone()),
                Test::AtLeast(v.clone()),
                Test::Below(v.clone()),
                Test::AtMost(v.clone()),
                Test::Between(v.clone(), w.clone()),
                Test::IsIn(vec![v.clone(), w.clone()]),
                Test::Glob("a*".into()),
                Test::Glob("*b".into()),
                Test::Exists,
                Test::All(vec![Test::AtLeast(v.clone()), Test::AtMost(w.clone())]),
                Test::Not(Box::new(Test::Equal(v.clone()))),
            ]
        };
        for ranges in [false, true] {
            let mut entries: Vec<(Value, u32)> = values
                .iter()
                .cloned()
                .zip(0..)
                .chain(ranges.then_some((Value::IntRange(0, 9), 99)))
                .collect();
            let all = entries.clone();
            entries.sort_by(|a, b| a.0.order(&b.0));
            let index = ValueIndex { entries, ranges };
            for test in values.iter().flat_map(|v| values.iter().flat_map(move |w| tests(v, w))) {
                let mut found = index.candidates(&test);
                found.sort_unstable();
                found.dedup();
                let mut expected: Vec<u32> =
                    all.iter().filter(|(value, _)| test.matches(value)).map(|(_, number)| *number).collect();
                expected.sort_unstable();
                assert_eq!(found, expected, "{test:?}");
            }
        }
    }

    #[test]
    fn words_are_found_whole_and_by_their_beginning() {
        let texts = ["plasma turbulence", "plasmatic", "turbulences-of-2026", "Größe", "tur"];
        let mut keys: Vec<(u64, u32)> = (0..)
            .zip(texts)
            .flat_map(|(n, text)| words(text).map(move |word| (key(&word), n)).collect::<Vec<_>>())
            .collect();
        keys.sort_unstable();
        let index = WordIndex { keys };
        assert_eq!(index.candidates("tur", true), [0, 2, 4]);
        assert_eq!(index.candidates("tur", false), [4]);
        assert_eq!(index.candidates("größe", false), [3]);
        // Longer words with the same beginning are candidates, and the caller checks them.
        assert_eq!(index.candidates("plasmati", true), [1]);
        assert_eq!(index.candidates("turbulence", false), [0, 2]);
        assert_eq!(index.candidates("x", true), [0u32; 0]);
    }
}
