//! Fields as few requests: `run=a,variable=t,step=0/to/24/by/6` for five of them.
//!
//! Invariants:
//! * every field stands in one request; a request names exactly the fields it stands for, and beside them
//!   only fields that have a further keyword, because no request says that a keyword is absent;
//! * fields of one index (the key's first two levels) are held at a time, no more.

use std::collections::HashMap;
use std::fmt;
use std::iter::Peekable;
use std::sync::Arc;

use fieldstone::{FieldKey, KeyValue, Level, Listing, Quoted, Result, json};
use serde_json::Value;

/// Fewer whole numbers at even distances than this are listed, more are a range.
const RANGE: usize = 4;

/// One request, which names the product of its lists.
#[derive(Debug, Clone)]
pub struct Block {
    names: Vec<Arc<str>>,
    values: Vec<Vec<KeyValue>>,
    /// How many fields it names.
    pub fields: u64,
    /// Their bytes.
    pub nbytes: u64,
}

impl Block {
    /// `{"request": …, "key": {"step": ["0", "6"]}, "fields": 2, "nbytes": …}`
    pub fn json(&self) -> Value {
        let lists = self.names.iter().zip(&self.values).map(|(name, values)| (&**name, &values[..]));
        json::fields::compact(&self.to_string(), lists, self.fields, self.nbytes)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, values)) in self.names.iter().zip(&self.values).enumerate() {
            write!(f, "{}{name}=", if i > 0 { "," } else { "" })?;
            if let Some((first, last, by)) = range(values) {
                write!(f, "{first}/to/{last}")?;
                if by != 1 {
                    write!(f, "/by/{by}")?;
                }
                continue;
            }
            for (i, value) in values.iter().enumerate() {
                write!(f, "{}{}", if i > 0 { "/" } else { "" }, Quoted(&value.text()))?;
            }
        }
        Ok(())
    }
}

/// Whole numbers at even distances; steps count in hours.
fn range(values: &[KeyValue]) -> Option<(i64, i64, i64)> {
    let whole = |value: &KeyValue| match value {
        KeyValue::Int(i) => Some(*i),
        KeyValue::Span { start, end, .. } if start == end && start % 60 == 0 => Some(start / 60),
        _ => None,
    };
    let numbers = values.iter().map(whole).collect::<Option<Vec<i64>>>()?;
    let by = numbers.get(1)?.checked_sub(numbers[0])?;
    let even = numbers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(by));
    (numbers.len() >= RANGE && even && by > 0).then(|| (numbers[0], numbers[numbers.len() - 1], by))
}

/// The requests of a listing of fields, as a stream.
pub struct Compact {
    entries: Peekable<Listing>,
    ready: std::vec::IntoIter<Block>,
}

impl Compact {
    /// Takes a listing of depth 3, in key order.
    pub fn new(entries: Listing) -> Compact {
        Compact { entries: entries.peekable(), ready: Vec::new().into_iter() }
    }

    /// Reads the fields of the next index.
    fn next_index(&mut self) -> Result<Option<Vec<Block>>> {
        let Some(first) = self.entries.next().transpose()? else { return Ok(None) };
        let index: [Arc<Level>; 2] = [first.key.levels[0].clone(), first.key.levels[1].clone()];
        // Fields with different keywords never form a product.
        let mut kinds: Vec<Vec<Block>> = vec![vec![block(&first.key, first.nbytes)]];
        while let Some(entry) =
            self.entries.next_if(|e| e.as_ref().is_ok_and(|e| e.key.levels[..2] == index[..]))
        {
            let entry = entry?;
            let block = block(&entry.key, entry.nbytes);
            match kinds.iter_mut().find(|kind| kind[0].names == block.names) {
                Some(kind) => kind.push(block),
                None => kinds.push(vec![block]),
            }
        }
        Ok(Some(kinds.into_iter().flat_map(merge).collect()))
    }
}

impl Iterator for Compact {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(block) = self.ready.next() {
                return Some(Ok(block));
            }
            match self.next_index() {
                Ok(Some(blocks)) => self.ready = blocks.into_iter(),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn block(key: &FieldKey, nbytes: u64) -> Block {
    let (names, values) = key.iter().map(|(name, value)| (name.clone(), vec![value.clone()])).unzip();
    Block { names, values, fields: 1, nbytes }
}

/// Joins blocks that differ in one keyword alone: keyword by keyword, the last first.
fn merge(mut blocks: Vec<Block>) -> Vec<Block> {
    let keywords = blocks.first().map_or(0, |block| block.names.len());
    for place in (0..keywords).rev() {
        let mut joined: Vec<Block> = Vec::new();
        let mut known: HashMap<Vec<Vec<KeyValue>>, usize> = HashMap::new();
        for mut block in blocks {
            let own = std::mem::take(&mut block.values[place]);
            match known.get(&block.values) {
                Some(&i) => {
                    joined[i].values[place].extend(own);
                    joined[i].fields += block.fields;
                    joined[i].nbytes = joined[i].nbytes.saturating_add(block.nbytes);
                }
                None => {
                    known.insert(block.values.clone(), joined.len());
                    block.values[place] = own;
                    joined.push(block);
                }
            }
        }
        for block in &mut joined {
            block.values[place].sort();
        }
        blocks = joined;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone::prelude::*;
    use fieldstone::{ArchiveOptions, ListOptions, OpenOptions, Request, Value as Data};

    fn compact(keys: &[&str]) -> (Vec<String>, std::sync::Arc<dyn fieldstone::FieldStore>) {
        let store = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
        for key in keys {
            let pairs: Vec<(&str, &str)> = key.split(' ').map(|p| p.split_once('=').unwrap()).collect();
            store.archive(&pairs, Data::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
        }
        store.flush(None).unwrap();
        let entries = store.list(&Request::new(), &ListOptions::default()).unwrap();
        let blocks: Vec<Block> = Compact::new(entries).collect::<Result<_>>().unwrap();
        assert_eq!(blocks.iter().map(|b| b.fields).sum::<u64>(), keys.len() as u64);
        (blocks.iter().map(Block::to_string).collect(), store.fields())
    }

    #[test]
    fn products_become_one_request_and_the_rest_another() {
        let (lines, _) = compact(&[
            "run=a variable=t step=0 level=1",
            "run=a variable=t step=0 level=2",
            "run=a variable=t step=6 level=1",
            "run=a variable=t step=6 level=2",
            "run=a variable=t step=12 level=1",
            "run=a variable=u",
        ]);
        assert_eq!(
            lines,
            ["run=a,variable=t,step=0/6,level=1/2", "run=a,variable=t,step=12,level=1", "run=a,variable=u"]
        );
    }

    #[test]
    fn even_distances_become_a_range() {
        let keys: Vec<String> = (0..5).map(|i| format!("run=a variable=t step={}", i * 6)).collect();
        let (lines, _) = compact(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(lines, ["run=a,variable=t,step=0/to/24/by/6"]);
        let keys: Vec<String> = [1, 2, 3, 4, 6].map(|i| format!("run=a variable=t step={i}")).into();
        let (lines, _) = compact(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(lines, ["run=a,variable=t,step=1/2/3/4/6"]);
        let keys: Vec<String> = [1, 2, 3, 4].map(|i| format!("run=a variable=t step={i}")).into();
        let (lines, _) = compact(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(lines, ["run=a,variable=t,step=1/to/4"]);
    }

    #[test]
    fn the_requests_name_the_fields_and_no_others() {
        // A pattern without order.
        let mut random = fieldstone_testkit::seeded(7);
        let mut keys = std::collections::BTreeSet::new();
        for _ in 0..120 {
            let (a, b, c, d) = (random.below(2), random.below(4), random.below(8), random.below(4));
            keys.insert(format!("run=r{a} variable=v/{b} step={c} member={d}"));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let (lines, store) = compact(&keys);
        assert!(lines.len() < keys.len());
        let mut named = std::collections::BTreeSet::new();
        for line in &lines {
            for entry in store.list(&Request::parse(line).unwrap(), &ListOptions::default()).unwrap() {
                let key = entry.unwrap().key.to_string();
                assert!(named.insert(key.clone()), "{key} twice");
            }
        }
        assert_eq!(named.len(), keys.len());
    }
}
