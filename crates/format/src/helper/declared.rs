//! The declarations of a netCDF file's variables, as the helper sends them for the catalog.
//!
//! Invariants: every named coordinate is in the payload; an attribute has the value of its JSON form
//! (`spec/netcdf-header.md`, "Attributes").

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::value::Value;
use serde_json::Value as Json;

use super::{Frame, broken};

/// Names and values of attributes, in the file's order.
pub type DeclaredAttrs = Vec<(String, Value)>;

/// A file's attributes, variables and times; its coordinates are in the payload.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredFile {
    /// Attributes of the file.
    pub attrs: DeclaredAttrs,
    /// Its variables with fields.
    pub variables: Vec<DeclaredVariable>,
    /// Elements of each array in the payload.
    pub arrays: Vec<u64>,
    /// The array with a time for each step, NaN for a step without a time.
    pub times: Option<usize>,
}

/// A variable of a file: the description of one of its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredVariable {
    /// Its name, prefixed by its groups.
    pub name: String,
    /// Element type of its fields.
    pub dtype: DType,
    /// Extents of a field.
    pub shape: Vec<u64>,
    /// Names of its dimensions; empty if two are equal.
    pub dims: Vec<String>,
    /// Its attributes.
    pub attrs: DeclaredAttrs,
    /// Dimensions, and the arrays with their coordinates.
    pub coords: Vec<(u32, usize)>,
}

impl DeclaredFile {
    pub(super) fn parse(frame: &Frame<'_>, payload: u64) -> Result<DeclaredFile> {
        let arrays: Option<Vec<u64>> = list(frame.0, "arrays")?.iter().map(Json::as_u64).collect();
        let arrays = arrays.ok_or_else(|| broken("lengths of arrays that are not numbers".to_owned()))?;
        let bytes = arrays.iter().try_fold(0u64, |sum, n| sum.checked_add(n.checked_mul(8)?));
        if bytes != Some(payload) {
            return Err(broken(format!("{payload} bytes for {} coordinates", arrays.len())));
        }
        let array = |value: &Json| {
            let at = value.as_u64().and_then(|at| usize::try_from(at).ok());
            at.filter(|at| *at < arrays.len()).ok_or_else(|| broken(format!("a coordinate {value}")))
        };
        let times = match frame.0.get("times") {
            None | Some(Json::Null) => None,
            Some(at) => Some(array(at)?),
        };
        let variable = |facts: &Json| {
            let facts = Frame(facts);
            let shape = facts.extents("shape")?;
            let dims: Option<Vec<String>> =
                list(facts.0, "dims")?.iter().map(|dim| dim.as_str().map(str::to_owned)).collect();
            let dims = dims.filter(|dims| dims.is_empty() || dims.len() == shape.len());
            let coord = |pair: &Json| {
                let dim = pair[0].as_u64().and_then(|dim| u32::try_from(dim).ok());
                let dim = dim.ok_or_else(|| broken(format!("a coordinate along {}", pair[0])))?;
                let (at, extent) = (array(&pair[1])?, shape.get(dim as usize));
                if extent != arrays.get(at) {
                    return Err(broken(format!("a coordinate of another length than dimension {dim}")));
                }
                Ok((dim, at))
            };
            Ok(DeclaredVariable {
                name: facts.text("name")?.to_owned(),
                dtype: facts.dtype()?,
                dims: dims.ok_or_else(|| broken("invalid names of dimensions".to_owned()))?,
                attrs: attrs(facts.0)?,
                coords: list(facts.0, "coords")?.iter().map(coord).collect::<Result<_>>()?,
                shape,
            })
        };
        let variables = list(frame.0, "variables")?.iter().map(variable).collect::<Result<_>>()?;
        Ok(DeclaredFile { attrs: attrs(frame.0)?, variables, arrays, times })
    }

    /// The arrays of the payload.
    #[must_use]
    pub fn values(&self, payload: &[u8]) -> Vec<Vec<f64>> {
        let mut all = payload.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
        let length = |n: &u64| usize::try_from(*n).unwrap_or(usize::MAX);
        self.arrays.iter().map(|n| all.by_ref().take(length(n)).collect()).collect()
    }
}

fn list<'a>(facts: &'a Json, name: &str) -> Result<&'a [Json]> {
    let list = facts.get(name).and_then(Json::as_array).map(Vec::as_slice);
    list.ok_or_else(|| broken(format!("a frame without a list {name}")))
}

fn attrs(facts: &Json) -> Result<DeclaredAttrs> {
    let one = |pair: &Json| {
        let name = pair[0].as_str().zip(attribute_value(&pair[1]));
        name.map(|(name, value)| (name.to_owned(), value))
            .ok_or_else(|| broken(format!("an attribute {} of an unknown form", pair[0])))
    };
    list(facts, "attrs")?.iter().map(one).collect()
}

/// The value of an attribute's JSON form (`spec/netcdf-header.md`, "Attributes"): a single number or text as
/// itself, several as an array.
pub fn attribute_value(coded: &Json) -> Option<Value> {
    // Files pad characters with NUL, which netCDF readers do not show.
    let shown = |text: &Json| text.as_str().map(|text| Value::Text(text.replace('\0', "")));
    if let Some(text) = coded.get("text") {
        return shown(text);
    }
    let (items, texts) = match coded.get("strings") {
        Some(strings) => (strings.as_array()?, true),
        None => (coded.get("values")?.as_array()?, false),
    };
    let number = |item: &Json| match item {
        Json::String(name) => Some(Value::Float(match name.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => return None,
        })),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) if number.is_i64() || number.is_u64() => Some(Value::Int(int)),
            (_, Some(uint)) => Some(Value::UInt(uint)),
            _ => number.as_f64().map(Value::Float),
        },
        _ => None,
    };
    // A whole float is written as 1.0 and read as a float.
    let mut values: Vec<Value> = match texts {
        true => items.iter().map(shown).collect(),
        false => items.iter().map(number).collect::<Option<_>>(),
    }?;
    if values.len() == 1 {
        return values.pop();
    }
    // An array has one type: if some numbers exceed the signed range, all become unsigned.
    if values.iter().any(|value| matches!(value, Value::UInt(_))) {
        for value in &mut values {
            if let Value::Int(int) = value {
                *value = Value::UInt(u64::try_from(*int).ok()?);
            }
        }
    }
    Some(Value::Array(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn attributes_have_the_values_that_they_stand_for() {
        let of = |coded: Json| attribute_value(&coded);
        assert_eq!(of(json!({"text": "K"})), Some(Value::Text("K".into())));
        assert_eq!(of(json!({"strings": ["a"]})), Some(Value::Text("a".into())));
        assert_eq!(
            of(json!({"text": "m/s\u{0}\u{0}"})),
            Some(Value::Text("m/s".into())),
            "padding is not shown"
        );
        assert_eq!(of(json!({"dtype": "<i2", "values": [-3]})), Some(Value::Int(-3)));
        assert!(
            matches!(of(json!({"dtype": "<f4", "values": [1.0]})), Some(Value::Float(one)) if one == 1.0)
        );
        assert!(
            matches!(of(json!({"dtype": "<f8", "values": ["NaN"]})), Some(Value::Float(n)) if n.is_nan())
        );
        let large = u64::MAX;
        let both = Some(Value::Array(vec![Value::UInt(1), Value::UInt(large)]));
        assert_eq!(of(json!({"dtype": "<u8", "values": [1, large]})), both);
        for wrong in [json!({"dtype": "<f8", "values": ["two"]}), json!({"text": 3}), json!({})] {
            assert_eq!(of(wrong), None);
        }
    }

    #[test]
    fn frames_that_do_not_fit_are_refused() {
        let good = json!({"attrs": [["title", {"text": "a"}]], "arrays": [2, 1], "times": 1, "variables": [
            {"name": "t", "dtype": "<f4", "shape": [2, 3], "dims": ["y", "x"], "attrs": [], "coords": [[0, 0]]}
        ]});
        let parse = |facts: &Json, payload| DeclaredFile::parse(&Frame(facts), payload);
        let file = parse(&good, 24).expect("a good frame");
        assert_eq!((file.times, &file.variables[0].coords), (Some(1), &vec![(0, 0)]));
        let bytes: Vec<u8> = [1.5f64, 2.5, 9.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(file.values(&bytes), [vec![1.5, 2.5], vec![9.0]]);
        assert!(parse(&good, 16).is_err());
        for (place, wrong) in [
            ("/times", json!(2)),
            ("/arrays", json!([2, "one"])),
            ("/variables/0/coords", json!([[1, 0]])),
            ("/variables/0/coords", json!([[0, 7]])),
            ("/variables/0/coords", json!([[-1, 0]])),
            ("/variables/0/dims", json!(["y"])),
            ("/variables/0/dtype", json!("object")),
            ("/variables/0/attrs", json!([["a", {}]])),
            ("/attrs", json!(null)),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(place).expect("a place of the frame") = wrong;
            assert!(parse(&bad, 24).is_err(), "{place}");
        }
    }
}
