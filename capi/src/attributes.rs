//! Attributes and hints from a caller: lists of names with values.

use std::ffi::{c_char, c_int, c_void};

use fieldstone::arrays::Hints;
use fieldstone::catalog::value::Value;
use fieldstone::{Code, DType, DTypeKind, Error, Result};

use crate::arguments::{bytes, count, dtype as element_type, items, text};

/// An attribute: `count` values of a type, or with type "S1" a text of `count` bytes.
#[repr(C)]
pub struct fs_attr {
    /// Its name.
    pub name: *const c_char,
    /// Type of its values.
    pub dtype: *const c_char,
    /// Number of values.
    pub count: usize,
    /// The values.
    pub values: *const c_void,
}

/// A hint: a key and a value of MPI_Info, such as "cb_nodes" and "4".
#[repr(C)]
pub struct fs_hint {
    /// Its key.
    pub key: *const c_char,
    /// Its value.
    pub value: *const c_char,
}

/// Reads a caller's hints.
///
/// # Safety
/// `hints` is null or leads to `nhints` hints whose texts end in a zero byte or are null.
pub unsafe fn hints(nhints: c_int, hints: *const fs_hint) -> Result<Hints> {
    // SAFETY: the caller's promise is the same.
    let hints = unsafe { items(hints, count(nhints, "hints")?, "list of hints") }?;
    let pair = |hint: &fs_hint| {
        // SAFETY: as above.
        unsafe { Ok((text(hint.key, "key of a hint")?, text(hint.value, "value of a hint")?)) }
    };
    Hints::new(hints.iter().map(pair).collect::<Result<Vec<_>>>()?)
}

/// Reads a caller's attributes into catalog values.
///
/// # Safety
/// `attrs` is null or leads to `nattrs` attributes. Their texts are null or end in a zero byte; their values
/// are null or as many as `count` says.
pub unsafe fn attributes(nattrs: c_int, attrs: *const fs_attr) -> Result<Vec<(String, Value)>> {
    // SAFETY: the caller's promise is the same.
    let attrs = unsafe { items(attrs, count(nattrs, "attributes")?, "list of attributes") }?;
    let named = |attr: &fs_attr| {
        // SAFETY: as above.
        let (name, dtype) = unsafe { (text(attr.name, "name of an attribute")?, element_type(attr.dtype)?) };
        let length = attr.count.checked_mul(dtype.size()).ok_or_else(|| Error::invalid("too many values"))?;
        // SAFETY: as above.
        let values = unsafe { bytes(attr.values, length, "values of an attribute") }?;
        Ok((name.to_owned(), value(name, dtype, values)?))
    };
    attrs.iter().map(named).collect()
}

/// Converts the values of one attribute.
fn value(name: &str, dtype: DType, values: &[u8]) -> Result<Value> {
    if (dtype.kind(), dtype.size()) == (DTypeKind::Bytes, 1) {
        let text = std::str::from_utf8(values);
        let text = text.map_err(|_| Code::Value.error(format!("the attribute {name} is not UTF-8")))?;
        return Ok(Value::Text(text.to_owned()));
    }
    let mut native = values.to_vec();
    if !dtype.is_native() {
        dtype.swap_bytes(&mut native);
    }
    let numbers = native.chunks_exact(dtype.size()).map(|bytes| number(dtype, bytes));
    let mut numbers: Vec<Value> = numbers.collect::<Option<_>>().ok_or_else(|| {
        Code::Dtype
            .error(format!("the attribute {name} has values of {}", dtype.name()))
            .with_hint("give integers, f4, f8, or S1 for a text")
    })?;
    Ok(if numbers.len() == 1 { numbers.remove(0) } else { Value::Array(numbers) })
}

fn number(dtype: DType, bytes: &[u8]) -> Option<Value> {
    let wide = |bytes: &[u8]| -> u64 {
        let byte = |all: u64, byte: &u8| (all << 8) | u64::from(*byte);
        match cfg!(target_endian = "big") {
            true => bytes.iter().fold(0, byte),
            false => bytes.iter().rev().fold(0, byte),
        }
    };
    let bits = wide(bytes);
    let unused = 64_u32.checked_sub(8 * u32::try_from(bytes.len()).ok()?)?;
    match (dtype.kind(), bytes.len()) {
        (DTypeKind::UInt, _) => Some(Value::UInt(bits)),
        (DTypeKind::Int, _) => Some(Value::Int((bits << unused) as i64 >> unused)),
        (DTypeKind::Float, 4) => Some(Value::Float(f64::from(f32::from_bits(u32::try_from(bits).ok()?)))),
        (DTypeKind::Float, 8) => Some(Value::Float(f64::from_bits(bits))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_texts_and_numbers() {
        let of = |dtype: &str, bytes: &[u8]| value("a", DType::parse(dtype).unwrap(), bytes);
        assert_eq!(of("S1", b"mV").unwrap(), Value::Text("mV".into()));
        assert_eq!(of("i2", &(-2_i16).to_ne_bytes()).unwrap(), Value::Int(-2));
        assert_eq!(of(">u4", &7_u32.to_be_bytes()).unwrap(), Value::UInt(7));
        assert_eq!(of("f4", &0.5_f32.to_ne_bytes()).unwrap(), Value::Float(0.5));
        let two = [1_f64.to_ne_bytes(), 2_f64.to_ne_bytes()].concat();
        assert_eq!(of("f8", &two).unwrap(), Value::Array(vec![Value::Float(1.0), Value::Float(2.0)]));
        assert!(of("c8", &[0; 8]).unwrap_err().message().contains("values of"));
        assert!(of("S1", b"\xff").is_err());
    }

    #[test]
    fn hints_are_keys_with_values() {
        let two = [
            fs_hint { key: c"cb_nodes".as_ptr(), value: c"2".as_ptr() },
            fs_hint { key: c"striping_unit".as_ptr(), value: std::ptr::null() },
        ];
        // SAFETY: constant texts and null; a list of two.
        unsafe {
            assert_eq!(hints(1, two.as_ptr()).unwrap().to_string(), "cb_nodes=2");
            assert!(hints(2, two.as_ptr()).unwrap_err().message().contains("value of a hint is null"));
            assert!(hints(-1, two.as_ptr()).is_err() && hints(1, std::ptr::null()).is_err());
            assert!(hints(0, std::ptr::null()).unwrap().is_empty());
        }
    }
}
