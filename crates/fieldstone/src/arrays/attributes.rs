//! Values of the catalog as attributes of netCDF files.
//!
//! Numbers and texts keep their kind; an integer becomes an `int` if it fits, else an `int64`. A bool becomes a `byte`,
//! a time its ISO 8601 text, bytes become `ubyte`; lists and maps become the text that the catalog shows.

use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::{Attrs, NcType};

/// Attributes of a file, in this order.
pub fn netcdf_attrs(named: &[(String, Value)]) -> Result<Attrs> {
    let mut attrs = Attrs::default();
    for (name, value) in named {
        if attrs.find(name).is_some() {
            return Err(Code::Name.error(format!("the attribute `{name}` is given twice")));
        }
        let (ty, bytes) = external(name, value)?;
        attrs.push(name, ty, &bytes);
    }
    Ok(attrs)
}

/// The external type of a value and its bytes, as a file has them.
fn external(name: &str, value: &Value) -> Result<(NcType, Vec<u8>)> {
    let several = std::slice::from_ref(value);
    let items = match value {
        Value::Array(items) | Value::List(items) if is_numeric(items) => &items[..],
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => several,
        Value::Bytes(bytes) => return Ok((NcType::UByte, bytes.clone())),
        Value::Text(text) => return Ok((NcType::Char, text.clone().into_bytes())),
        other => return Ok((NcType::Char, other.to_string().into_bytes())),
    };
    numbers(items).ok_or_else(|| Error::internal(format!("attribute `{name}`: not numbers")))
}

fn is_numeric(items: &[Value]) -> bool {
    let number =
        |item: &Value| matches!(item, Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_));
    !items.is_empty() && items.iter().all(number)
}

/// Numbers of one type: the narrowest of byte, int, int64, uint64, double that holds all.
fn numbers(items: &[Value]) -> Option<(NcType, Vec<u8>)> {
    if items.iter().all(|item| matches!(item, Value::Bool(_))) {
        return Some((NcType::Byte, items.iter().map(|item| u8::from(*item == Value::Bool(true))).collect()));
    }
    let wide: Option<Vec<i128>> = items.iter().map(integer).collect();
    let Some(wide) = wide else {
        let floats: Option<Vec<f64>> = items.iter().map(float).collect();
        return Some((NcType::Double, floats?.iter().flat_map(|x| x.to_be_bytes()).collect()));
    };
    let fits = |least: i128, most: i128| wide.iter().all(|n| (least..=most).contains(n));
    Some(if fits(i32::MIN.into(), i32::MAX.into()) {
        (NcType::Int, wide.iter().flat_map(|n| (*n as i32).to_be_bytes()).collect())
    } else if fits(i64::MIN.into(), i64::MAX.into()) {
        (NcType::Int64, wide.iter().flat_map(|n| (*n as i64).to_be_bytes()).collect())
    } else if fits(0, u64::MAX.into()) {
        (NcType::UInt64, wide.iter().flat_map(|n| (*n as u64).to_be_bytes()).collect())
    } else {
        (NcType::Double, wide.iter().flat_map(|n| (*n as f64).to_be_bytes()).collect())
    })
}

fn integer(item: &Value) -> Option<i128> {
    match item {
        Value::Bool(b) => Some(i128::from(*b)),
        Value::Int(n) => Some(i128::from(*n)),
        Value::UInt(n) => Some(i128::from(*n)),
        _ => None,
    }
}

fn float(item: &Value) -> Option<f64> {
    match item {
        Value::Float(x) => Some(*x),
        other => integer(other).map(|n| n as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_what_netcdf_has() {
        let of = |value: Value| external("a", &value).unwrap();
        assert_eq!(of(Value::Text("K".into())), (NcType::Char, b"K".to_vec()));
        assert_eq!(of(Value::Int(-2)), (NcType::Int, (-2i32).to_be_bytes().to_vec()));
        assert_eq!(of(Value::Int(1 << 40)), (NcType::Int64, (1i64 << 40).to_be_bytes().to_vec()));
        assert_eq!(of(Value::UInt(u64::MAX)), (NcType::UInt64, vec![255; 8]));
        assert_eq!(of(Value::Bool(true)), (NcType::Byte, vec![1]));
        let mixed = Value::Array(vec![Value::Int(1), Value::Float(0.5)]);
        assert_eq!(of(mixed), (NcType::Double, [1f64.to_be_bytes(), 0.5f64.to_be_bytes()].concat()));
        assert_eq!(of(Value::List(vec![Value::Text("a".into())])).0, NcType::Char);
        let twice = [("a".to_owned(), Value::Int(1)), ("a".to_owned(), Value::Int(2))];
        assert!(netcdf_attrs(&twice).unwrap_err().message().contains("given twice"));
    }
}
