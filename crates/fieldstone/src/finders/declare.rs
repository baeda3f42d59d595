//! Finders in a variable's declaration.
//!
//! ```text
//! finders = [ "min" | "max" | "mean" | { TEST: number | [number, number], "tag": text, "limit": int } ]
//! TEST    = above | at_least | below | at_most | between | equal
//! ```

use fieldstone_core::value::{Test, Value};
use fieldstone_core::{Error, Result};

use super::bounds::Bounds;
use super::{Finder, LIMIT};

impl Finder {
    /// Regions of elements that pass a test, with a tag such as `above_9000`.
    pub fn region(test: Test) -> Result<Finder> {
        let (name, values) = words(&test)?;
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        Finder::named(test, format!("{name}_{}", values.join("_")))
    }

    /// Regions with a tag that the caller chooses.
    pub fn named(test: Test, tag: String) -> Result<Finder> {
        Bounds::of(&test)?;
        if tag.is_empty() || ["min", "max", "mean"].contains(&tag.as_str()) {
            return Err(Error::invalid(format!("a region cannot have the tag {tag:?}"))
                .with_hint("min, max and mean are tags of whole pieces; give another name"));
        }
        Ok(Finder::Region { test, tag, limit: LIMIT })
    }

    /// Maximum number of features that this finder returns per piece, not counting the one with the number of omitted
    /// ones.
    pub fn limit(&self) -> u32 {
        match self {
            Finder::Region { limit, .. } => *limit,
            _ => 1,
        }
    }

    /// Reads a declaration: a list, or a single finder.
    pub fn parse(declared: &Value) -> Result<Vec<Finder>> {
        let list = match declared {
            Value::List(list) | Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut finders: Vec<Finder> = Vec::new();
        for value in list {
            let finder = parse_one(value)?;
            if finders.iter().any(|known| known.tag() == finder.tag()) {
                return Err(Error::invalid(format!("two finders have the tag {:?}", finder.tag()))
                    .with_hint("give one of them a name of its own"));
            }
            finders.push(finder);
        }
        Ok(finders)
    }

    /// Returns the declaration that [`Finder::parse`] reads.
    pub fn declare(finders: &[Finder]) -> Result<Value> {
        let one = |finder: &Finder| match finder {
            Finder::Region { test, tag, limit } => {
                let (name, mut values) = words(test)?;
                let value = if values.len() == 1 { values.remove(0) } else { Value::List(values) };
                Ok(Value::Map(vec![
                    (name.to_owned(), value),
                    ("tag".to_owned(), Value::Text(tag.clone())),
                    ("limit".to_owned(), Value::Int((*limit).into())),
                ]))
            }
            plain => Ok(Value::Text(plain.tag().to_owned())),
        };
        finders.iter().map(one).collect::<Result<_>>().map(Value::List)
    }

    /// Tag of its features.
    pub fn tag(&self) -> &str {
        match self {
            Finder::Min => "min",
            Finder::Max => "max",
            Finder::Mean => "mean",
            Finder::Region { tag, .. } => tag,
        }
    }
}

fn parse_one(value: &Value) -> Result<Finder> {
    let wrong = |what: &str| {
        Error::invalid(format!("{value} is not a finder: {what}"))
            .with_hint("use min, max, mean, or a test such as above(9000)")
    };
    let parts = match value {
        Value::Text(name) => {
            return match name.as_str() {
                "min" => Ok(Finder::Min),
                "max" => Ok(Finder::Max),
                "mean" => Ok(Finder::Mean),
                _ => Err(wrong("unknown word")),
            };
        }
        Value::Map(parts) => parts,
        _ => return Err(wrong("it is neither a word nor a map")),
    };
    let (mut test, mut tag, mut most) = (None, None, LIMIT);
    for (name, value) in parts {
        match (name.as_str(), value) {
            ("tag", Value::Text(text)) => tag = Some(text.clone()),
            ("tag", Value::Null) => {}
            ("limit", Value::Int(n)) => {
                most = u32::try_from(*n).ok().filter(|n| *n > 0).ok_or_else(|| wrong("its limit"))?;
            }
            (name, value) => {
                let known = read_test(name, value).ok_or_else(|| wrong("it has no such part"))?;
                if test.replace(known).is_some() {
                    return Err(wrong("it has two tests"));
                }
            }
        }
    }
    let test = test.ok_or_else(|| wrong("it has no test"))?;
    let finder = match tag {
        Some(tag) => Finder::named(test, tag)?,
        None => Finder::region(test)?,
    };
    Ok(match finder {
        Finder::Region { test, tag, .. } => Finder::Region { test, tag, limit: most },
        other => other,
    })
}

fn read_test(name: &str, value: &Value) -> Option<Test> {
    let value = value.clone();
    Some(match (name, value) {
        ("between", Value::List(ends) | Value::Array(ends)) => {
            let [from, to] = <[Value; 2]>::try_from(ends).ok()?;
            Test::Between(from, to)
        }
        ("above", value) => Test::Above(value),
        ("at_least", value) => Test::AtLeast(value),
        ("below", value) => Test::Below(value),
        ("at_most", value) => Test::AtMost(value),
        ("equal", value) => Test::Equal(value),
        _ => return None,
    })
}

fn words(test: &Test) -> Result<(&'static str, Vec<Value>)> {
    Bounds::of(test)?;
    let one = |name, value: &Value| Ok((name, vec![value.clone()]));
    match test {
        Test::Above(value) => one("above", value),
        Test::AtLeast(value) => one("at_least", value),
        Test::Below(value) => one("below", value),
        Test::AtMost(value) => one("at_most", value),
        Test::Equal(value) => one("equal", value),
        Test::Between(from, to) => Ok(("between", vec![from.clone(), to.clone()])),
        _ => Err(Error::internal("a finder's test without a name")),
    }
}
