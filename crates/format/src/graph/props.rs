//! Properties of a vertex or relation: names with values, kept as bytes until a caller reads them.
//!
//! ```text
//! props = nothing, if there are none | n: varint  n x { name: text  value }
//! ```

use fieldstone_core::graph::PropValue;
use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};

use crate::bytes::{Cursor, Put};
use crate::value::{put_text, put_value, read_value, skip_value};

/// Longest properties of one version, in bytes.
const PROPS_MAX: usize = 16 << 20;
/// The property with which a relation replaces the earlier content of its target.
const REPLACES: &str = "replaces";

/// Names with values, in the caller's order; names are unique.
///
/// ```
/// use fieldstone_core::value::Value;
/// use fieldstone_format::graph::Props;
/// let props = Props::of([("bytes", &Value::Int(10))])?;
/// assert_eq!(props.get("bytes")?, Some(Value::Int(10)));
/// assert_eq!(props.get("mode")?, None);
/// # Ok::<(), fieldstone_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Props(Box<[u8]>);

impl Props {
    /// Makes properties. Invalid for an empty or repeated name, for a value that may not be stored, and for
    /// properties that are too long for a record.
    pub fn of<'a, P, V>(pairs: P) -> Result<Props>
    where
        P: IntoIterator<Item = (&'a str, V)>,
        P::IntoIter: ExactSizeIterator + Clone,
        V: Into<PropValue<'a>>,
    {
        let pairs = pairs.into_iter();
        if pairs.len() == 0 {
            return Ok(Props::default());
        }
        for (i, (name, _)) in pairs.clone().enumerate() {
            if name.is_empty() || pairs.clone().take(i).any(|(other, _)| other == name) {
                return Err(Error::invalid(format!("the property name '{name}' is empty or repeated")));
            }
        }
        let mut bytes = Vec::with_capacity(32);
        put_props(&mut bytes, pairs.map(|(name, value)| (name, value.into())))?;
        Ok(Props(bytes.into()))
    }

    /// Whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn pairs(&self) -> Result<Vec<(String, Value)>> {
        let mut pairs = Vec::new();
        each(&self.0, |name, cursor| {
            pairs.push((name.to_owned(), read_value(cursor)?));
            Ok(true)
        })?;
        Ok(pairs)
    }

    /// Whether `replaces` is true among them. Unreadable properties replace nothing.
    pub fn replaces(&self) -> bool {
        check_props(&self.0).is_ok_and(|(_, replaces)| replaces)
    }

    /// Properties with `replaces` as true and nothing else.
    pub fn replacing() -> Props {
        let mut bytes = vec![1];
        bytes.put_bytes(REPLACES.as_bytes());
        put_value(&mut bytes, &Value::Bool(true));
        Props(bytes.into())
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Result<Option<Value>> {
        let mut found = None;
        each(&self.0, |known, cursor| {
            let value = read_value(cursor)?;
            if known == name {
                found = Some(value);
            }
            Ok(found.is_none())
        })?;
        Ok(found)
    }
}

/// Appends the bytes of properties to `out`, in the form of [`Props::of`]. Names must be unique and not
/// empty: the caller checks that once for all rows.
pub fn put_props<'a>(
    out: &mut Vec<u8>,
    pairs: impl ExactSizeIterator<Item = (&'a str, PropValue<'a>)>,
) -> Result<()> {
    if pairs.len() == 0 {
        return Ok(());
    }
    let begin = out.len();
    out.put_varint(pairs.len() as u64);
    for (name, value) in pairs {
        out.put_bytes(name.as_bytes());
        match value {
            PropValue::Text(text) => put_text(out, text),
            PropValue::Any(value) => {
                value.check().map_err(|e| e.context(format!("the property '{name}'")))?;
                put_value(out, value);
            }
        }
    }
    check_length(out.len() - begin)
}

fn check_length(bytes: usize) -> Result<()> {
    if bytes > PROPS_MAX {
        return Err(Error::invalid(format!("properties of {bytes} bytes"))
            .with_hint("they hold at most 16 MiB; larger things are fields or files"));
    }
    Ok(())
}

/// Properties from bytes that passed [`read_props`] before.
pub fn props_of_bytes(bytes: &[u8]) -> Props {
    Props(bytes.into())
}

/// Reads properties that take up all of these bytes; every defect is Corrupt.
pub fn read_props(bytes: &[u8]) -> Result<Props> {
    let (bytes, _) = check_props(bytes)?;
    Ok(Props(bytes.into()))
}

/// Checks like [`read_props`], without keeping the properties: returns their bytes (empty if there are no
/// properties) and whether `replaces` is true among them.
pub fn check_props(bytes: &[u8]) -> Result<(&[u8], bool)> {
    if bytes == [0] {
        return Ok((&[], false));
    }
    let mut names: Vec<&str> = Vec::new();
    let mut replaces = false;
    each(bytes, |name, cursor| {
        let begin = cursor.position();
        skip_value(cursor)?;
        if name == REPLACES {
            let value = read_value(&mut Cursor::new(&bytes[begin..]))?;
            replaces = matches!(value, Value::Bool(true));
        }
        // Most have one property; only the others allocate a list of names.
        if names.contains(&name) {
            return Err(Error::corrupt(format!("the property '{name}' is repeated")));
        }
        if !cursor.is_empty() {
            names.push(name);
        }
        Ok(true)
    })?;
    Ok((bytes, replaces))
}

/// The bytes of properties.
pub fn props_bytes(props: &Props) -> &[u8] {
    &props.0
}

/// Passes each name to `pair`, with the cursor at its value, until `pair` returns that it has enough.
fn each<'a>(bytes: &'a [u8], mut pair: impl FnMut(&'a str, &mut Cursor<'a>) -> Result<bool>) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut cursor = Cursor::new(bytes);
    for _ in 0..cursor.count(2)? {
        let name = cursor.text()?;
        if !pair(name, &mut cursor)? {
            return Ok(());
        }
    }
    if cursor.is_empty() { Ok(()) } else { Err(cursor.fail("properties are longer than their content")) }
}
