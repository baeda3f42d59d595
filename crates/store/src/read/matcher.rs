//! Comparing encoded keys with a request, without decoding them, and skipping what cannot match.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::{KeyValue, LEVELS, Names};
use fieldstone_core::schema::{Constraint, Like, OneOf, Selection, ShapeMatcher};
use fieldstone_format::keys::{decode_names, decode_value, encode_value, skip_value};

use crate::snapshot::Overlay;

/// Lists longer than this are not encoded beforehand: their values are decoded and looked up.
const ENCODED_MAX: usize = 1 << 16;

/// Whether a key matches.
#[derive(Debug, PartialEq, Eq)]
pub enum Match {
    /// It does.
    Yes,
    /// It does not, nor does any key before this one.
    Seek(Vec<u8>),
}

/// A request, ready to be compared with encoded keys.
#[derive(Debug)]
pub struct Matcher {
    selection: Selection,
    unconstrained: bool,
    shapes: Vec<Shape>,
    last: usize,
    /// An overlay: keys match if it selects them, and the request matches the keys under which they appear.
    overlay: Option<Arc<Overlay>>,
}

/// The constraints of a request on keys with certain keywords.
#[derive(Debug)]
struct Shape {
    /// Encoded names of each level.
    names: [Box<[u8]>; LEVELS],
    /// Number of values per level.
    counts: [usize; LEVELS],
    /// `None` where no key of this shape matches.
    tests: Option<(ShapeMatcher, [Vec<Tests>; LEVELS])>,
}

/// The lists that one value must pass: none, one, or one for the request and one for each request that it is bound
/// to.
type Tests = Box<[Test]>;

#[derive(Debug)]
enum Test {
    /// Encoded values, sorted.
    Encoded(Vec<Box<[u8]>>),
    /// Too many to encode.
    Decoded(Arc<OneOf>),
    /// Patterns.
    Like(Arc<Like>),
    /// Any value but this one, an absent one as it is encoded.
    Present { absent: Box<[u8]> },
}

impl Matcher {
    pub fn new(selection: Selection) -> Matcher {
        let unconstrained = selection.is_unconstrained();
        Matcher { selection, unconstrained, shapes: Vec::new(), last: 0, overlay: None }
    }

    /// One of keys that an overlay selects, where the request matches the keys under which their fields appear.
    pub fn through(selection: Selection, overlay: Arc<Overlay>) -> Matcher {
        Matcher { unconstrained: false, overlay: Some(overlay), ..Matcher::new(selection) }
    }

    /// The request.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Compares a key.
    pub fn test(&mut self, key: &[u8]) -> Result<Match> {
        if self.unconstrained {
            return Ok(Match::Yes);
        }
        let index = self.shape_of(key)?;
        self.last = index;
        let shape = &self.shapes[index];
        let mut at = 0;
        for level in 0..LEVELS {
            at += shape.names[level].len();
            let Some((_, tests)) = &shape.tests else {
                for _ in 0..shape.counts[level] {
                    at += skip_value(&mut &key[at..])?.len();
                }
                if level + 1 < LEVELS {
                    continue;
                }
                // No key with these keywords matches: pass all of them under this index.
                let start = names_start(shape, key)?;
                return Ok(Match::Seek(after(&key[..start + shape.names[LEVELS - 1].len()])));
            };
            for (i, tests) in tests[level].iter().enumerate() {
                let value = skip_value(&mut &key[at..])?;
                for test in tests {
                    if let Some(next) = test.next(value)? {
                        return Ok(Match::Seek(seek_target(shape, key, level, i, at, next)));
                    }
                }
                at += value.len();
            }
        }
        Ok(Match::Yes)
    }

    /// The place of a matching key in request order.
    pub fn rank(&mut self, key: &[u8], positions: &mut Vec<usize>) -> Result<Option<u64>> {
        if self.unconstrained {
            positions.clear();
            return Ok(Some(0));
        }
        let index = self.shape_of(key)?;
        let shape = &self.shapes[index];
        let Some((matcher, _)) = &shape.tests else { return Ok(None) };
        let mut values: [Vec<_>; LEVELS] = Default::default();
        let mut rest = key;
        for level in 0..LEVELS {
            rest = &rest[shape.names[level].len()..];
            for _ in 0..shape.counts[level] {
                values[level].push(decode_value(&mut rest)?);
            }
        }
        let [a, b, c] = &values;
        if !matcher.listed_positions([a, b, c], positions) {
            return Ok(None);
        }
        let mut rank = 0u64;
        for ((_, list), position) in self.selection.listed_values().zip(positions) {
            rank = rank.saturating_mul(list.len() as u64).saturating_add(*position as u64);
        }
        Ok(Some(rank))
    }

    fn shape_of(&mut self, key: &[u8]) -> Result<usize> {
        for index in std::iter::once(self.last).chain(0..self.shapes.len()) {
            if let Some(shape) = self.shapes.get(index)
                && shape.fits(key)?
            {
                return Ok(index);
            }
        }
        let mut rest = key;
        let mut names = Vec::with_capacity(LEVELS);
        let mut encoded: [Box<[u8]>; LEVELS] = Default::default();
        for slot in &mut encoded {
            let before = rest;
            let level = decode_names(&mut rest)?;
            *slot = before[..before.len() - rest.len()].into();
            for _ in 0..level.len() {
                skip_value(&mut rest)?;
            }
            names.push(level);
        }
        let counts = [names[0].len(), names[1].len(), names[2].len()];
        let tests = self.selection.for_shape([&names[0], &names[1], &names[2]]).map(|matcher| {
            let tests = [0, 1, 2].map(|level| matcher.constraints[level].iter().map(Test::all).collect());
            (matcher, tests)
        });
        let tests = match (&self.overlay, tests) {
            (Some(overlay), Some((matcher, tests))) => {
                through(overlay, &names, tests)?.map(|tests| (matcher, tests))
            }
            (_, tests) => tests,
        };
        self.shapes.push(Shape { names: encoded, counts, tests });
        Ok(self.shapes.len() - 1)
    }
}

/// The tests of keys with these keywords that an overlay shows to a request with these tests; `None` if no such key matches.
fn through(
    overlay: &Overlay,
    names: &[Names],
    mut tests: [Vec<Tests>; LEVELS],
) -> Result<Option<[Vec<Tests>; LEVELS]>> {
    let has = |level: usize, keyword: &str| names[level].iter().any(|name| **name == *keyword);
    if !overlay.fits(has) {
        return Ok(None);
    }
    for (level, tests) in tests.iter_mut().enumerate() {
        for (name, tests) in names[level].iter().zip(tests) {
            let selected = overlay.values(level, name).map(|values| Test::Encoded(values.to_vec()));
            let Some(shown) = overlay.value(level, name) else {
                let own = std::mem::take(tests).into_vec();
                *tests = own.into_iter().chain(selected).collect();
                continue;
            };
            for test in tests.iter() {
                if test.next(shown)?.is_some() {
                    return Ok(None);
                }
            }
            *tests = selected.into_iter().collect();
        }
    }
    Ok(Some(tests))
}

impl Shape {
    fn fits(&self, key: &[u8]) -> Result<bool> {
        let mut rest = key;
        for level in 0..LEVELS {
            let Some(values) = rest.strip_prefix(&*self.names[level]) else { return Ok(false) };
            rest = values;
            if level + 1 < LEVELS {
                for _ in 0..self.counts[level] {
                    skip_value(&mut rest)?;
                }
            }
        }
        Ok(true)
    }
}

impl Test {
    /// A constraint on one value.
    fn all(constraint: &Constraint) -> Tests {
        if matches!(constraint, Constraint::Present | Constraint::Absent) {
            let mut absent = Vec::new();
            encode_value(&KeyValue::Absent, &mut absent);
            let test = match constraint {
                Constraint::Present => Test::Present { absent: absent.into() },
                _ => Test::Encoded(vec![absent.into()]),
            };
            return std::iter::once(test).collect();
        }
        let patterns = constraint.patterns().iter().map(|like| Test::Like(like.clone()));
        constraint.lists().iter().map(Test::new).chain(patterns).collect()
    }

    fn new(list: &Arc<OneOf>) -> Test {
        if list.len() > ENCODED_MAX {
            return Test::Decoded(list.clone());
        }
        let encoded = |value: KeyValue| {
            let mut out = Vec::new();
            encode_value(&value, &mut out);
            out.into()
        };
        let mut values: Vec<Box<[u8]>> = list.values().map(encoded).collect();
        values.sort();
        Test::Encoded(values)
    }

    /// `None` where an encoded value passes; else the least one behind it that may (`None`: there is none).
    fn next(&self, value: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        match self {
            Test::Present { absent } => Ok((**absent == *value).then(|| Some(after(value)))),
            Test::Encoded(values) => match values.binary_search_by(|v| (**v).cmp(value)) {
                Ok(_) => Ok(None),
                Err(next) => Ok(Some(values.get(next).map(|v| v.to_vec()))),
            },
            Test::Like(like) => match like.takes(&decode_value(&mut &value[..])?) {
                true => Ok(None),
                false => Ok(Some(Some(after(value)))),
            },
            Test::Decoded(list) => {
                let decoded = decode_value(&mut &value[..])?;
                if list.position(&decoded).is_some() {
                    return Ok(None);
                }
                Ok(Some(match (list.min(), list.max()) {
                    (Some(min), Some(max)) if decoded <= *max => {
                        let mut next = Vec::new();
                        encode_value(min, &mut next);
                        // Between least and greatest: just go on to the next value.
                        Some(if next.as_slice() > value { next } else { after(value) })
                    }
                    _ => None,
                }))
            }
        }
    }

    /// The least value that can match, where that is known.
    fn least(&self) -> Option<&[u8]> {
        match self {
            Test::Encoded(values) => values.first().map(|v| &**v),
            _ => None,
        }
    }
}

/// Offset of the third level's names.
fn names_start(shape: &Shape, key: &[u8]) -> Result<usize> {
    let mut at = 0;
    for level in 0..LEVELS - 1 {
        at += shape.names[level].len();
        for _ in 0..shape.counts[level] {
            at += skip_value(&mut &key[at..])?.len();
        }
    }
    Ok(at)
}

/// The least key that can match, given that value `i` of `level`, at `at`, does not and must become
/// `next` (`None`: no greater value matches).
fn seek_target(
    shape: &Shape,
    key: &[u8],
    level: usize,
    i: usize,
    at: usize,
    next: Option<Vec<u8>>,
) -> Vec<u8> {
    let Some(next) = next else { return after(&key[..at]) };
    let mut target = [&key[..at], &next].concat();
    let Some((_, tests)) = &shape.tests else { return target };
    // The values behind it in this level start at their least, as far as these are known. Deeper
    // levels may have other keywords there, which sort before these: nothing is known of them.
    for tests in &tests[level][i + 1..] {
        match tests.iter().filter_map(Test::least).max() {
            Some(least) => target.extend_from_slice(least),
            None => break,
        }
    }
    target
}

/// The least byte string that is greater than every one that starts with `prefix`.
fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    // Nothing is greater: no key starts with 0xff.
    vec![0xff]
}
