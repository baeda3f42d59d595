//! A summary of a field's content: the kind of its bytes, its attributes, its first values.
//!
//! It reads no more than it shows: some elements of an array, the first bytes of an opaque field; but a whole GRIB
//! message, because eccodes needs it. Unknown facts are left out.

use fieldstone_core::Result;
use fieldstone_core::dtype::{DType, DTypeKind};
use fieldstone_core::elements::as_floats;
use fieldstone_core::geometry::{IndexBox, element_count};
use fieldstone_core::packing::Packing;
use fieldstone_store::Field;
use serde_json::{Number, Value};

use super::described::Described;
use crate::Store;
use crate::interop::helper::{Helper, HelperOptions};
use crate::values_json::value as value_json;

/// Elements that are shown.
const ELEMENTS: u64 = 6;
/// Bytes of an opaque field that are examined.
const LOOKED_AT: u64 = 64;
/// Longer messages are not given to eccodes.
const GRIB_MAX: u64 = 256 << 20;

/// The known facts about a field's content.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// Its kind: `array`, `GRIB edition 2`, `text`, …
    pub kind: String,
    /// Names and values, in their order.
    pub attributes: Vec<(String, Value)>,
    /// The first elements of an array, or the beginning of a text.
    pub values: Vec<Value>,
    /// Whether there are more.
    pub more: bool,
    /// Why a fact is not known, for people.
    pub note: Option<String>,
    /// The packing of its elements, if any.
    pub packing: Option<Packing>,
}

impl Content {
    /// Looks at a field.
    pub fn of(store: &Store, field: &Field) -> Result<Content> {
        match (field.dtype()?, field.shape()?) {
            (Some(dtype), Some(shape)) => of_array(store, field, dtype, &shape),
            _ => of_bytes(field),
        }
    }
}

fn of_array(store: &Store, field: &Field, dtype: DType, shape: &[u64]) -> Result<Content> {
    let mut content = Content { kind: "array".to_owned(), ..Content::default() };
    let mut packing = None;
    if let Some(described) = Described::of(store, &field.key()?) {
        let dims = described.dims.join(", ");
        content.attributes = vec![("dimensions".to_owned(), Value::from(dims))];
        packing = Some(described.packing(dtype)).filter(|packing| !packing.is_plain());
        let attrs = described.attrs.into_iter().map(|(name, value)| (name, value_json(&value)));
        content.attributes.extend(attrs);
    }
    let elements = element_count(shape)?;
    if elements == 0 {
        return Ok(content);
    }
    // The first elements of the last dimension, at the start of the others.
    let mut counts: Vec<u64> = vec![1; shape.len()];
    if let (Some(last), Some(extent)) = (counts.last_mut(), shape.last()) {
        *last = ELEMENTS.min(*extent);
    }
    let shown = IndexBox::new(vec![0; shape.len()], counts.clone(), shape)?;
    let data = field.read_box(Some(&shown))?;
    content.values = match &packing {
        Some(packing) => unpacked(packing, dtype, &data),
        None => elements_of(dtype, &data),
    };
    content.packing = packing;
    content.more = elements > content.values.len() as u64;
    Ok(content)
}

/// The numbers that packed elements represent.
fn unpacked(packing: &Packing, dtype: DType, data: &[u8]) -> Vec<Value> {
    let values = packing.decode(dtype, data).unwrap_or_default();
    // Sums of scaled integers have noise in their last digits: show as many digits as a 32-bit float has.
    let short = |v: f64| (v as f32).to_string().parse().unwrap_or(v);
    values.into_iter().map(|v| json_number(if dtype.size() <= 4 { short(v) } else { v })).collect()
}

fn json_number(v: f64) -> Value {
    Number::from_f64(v).map_or_else(|| Value::from(v.to_string()), Value::Number)
}

fn elements_of(dtype: DType, data: &[u8]) -> Vec<Value> {
    let size = dtype.size().max(1);
    match dtype.kind() {
        DTypeKind::Bytes => data
            .chunks(size)
            .map(|text| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
            .map(|text| Value::from(format!("{text:?}")))
            .collect(),
        DTypeKind::Int | DTypeKind::UInt | DTypeKind::Float | DTypeKind::Bool => {
            let float = |v: f64| match v.fract() == 0.0 && v.abs() < 9e15 {
                true if dtype.kind() != DTypeKind::Float => Value::from(v as i64),
                _ => json_number(v),
            };
            // Show as many digits as the type has.
            let short = |v: f64| match (dtype.size(), dtype.kind()) {
                (2 | 4, DTypeKind::Float) => (v as f32).to_string().parse().unwrap_or(v),
                _ => v,
            };
            as_floats(dtype, data).unwrap_or_default().into_iter().map(|v| float(short(v))).collect()
        }
        _ => Vec::new(),
    }
}

fn of_bytes(field: &Field) -> Result<Content> {
    let nbytes = field.nbytes()?;
    let mut start = vec![0; nbytes.min(LOOKED_AT) as usize];
    field.read_range(0, &mut start)?;
    let mut content = Content { more: nbytes > LOOKED_AT, ..Content::default() };
    content.kind = match &start[..] {
        [] => "nothing".to_owned(),
        [b'G', b'R', b'I', b'B', _, _, _, edition, ..] => {
            if nbytes <= GRIB_MAX {
                of_grib(&field.read()?, &mut content);
            }
            return Ok(Content { kind: format!("GRIB edition {edition}"), ..content });
        }
        [b'C', b'D', b'F', 1 | 2 | 5, ..] => "netCDF classic file".to_owned(),
        [0x89, b'H', b'D', b'F', ..] => "HDF5 or netCDF-4 file".to_owned(),
        _ => match readable(&start, content.more) {
            Some(text) => {
                content.values.push(Value::from(text));
                "text".to_owned()
            }
            None => {
                let bytes: String = start.iter().take(16).map(|b| format!("{b:02x}")).collect();
                content.values.push(Value::from(bytes));
                content.more = nbytes > 16;
                "bytes".to_owned()
            }
        },
    };
    Ok(content)
}

/// The first line of a text; `None` for bytes that are not text. If there is more, the last character may be cut.
fn readable(start: &[u8], more: bool) -> Option<String> {
    let whole = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(e) if more && e.error_len().is_none() => std::str::from_utf8(&start[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let text = whole.chars().all(|c| !c.is_control() || c.is_whitespace());
    text.then(|| whole.lines().next().unwrap_or_default().to_owned())
}

/// Attributes and first values of a message that eccodes reads, if there is a helper.
fn of_grib(message: &[u8], content: &mut Content) {
    let decoded = Helper::start(&HelperOptions::default()).and_then(|mut helper| helper.decode(message));
    let (facts, payload) = match decoded {
        Ok(decoded) => decoded,
        Err(error) => {
            content.note = Some(format!("cannot show its header: {}", error.message()));
            return;
        }
    };
    let shape = facts.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
    content.attributes.push(("grid".to_owned(), Value::from(shape)));
    content
        .attributes
        .extend(facts.attrs.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))));
    let size = facts.dtype.size().saturating_mul(ELEMENTS as usize).min(payload.len());
    content.values = elements_of(facts.dtype, &payload[..size]);
    content.more = element_count(&facts.shape).is_ok_and(|n| n > ELEMENTS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_distinguished_from_bytes() {
        assert_eq!(readable(b"a line\nanother", false).as_deref(), Some("a line"));
        assert_eq!(readable("grö".as_bytes(), false).as_deref(), Some("grö"));
        assert_eq!(readable(&"grö".as_bytes()[..3], true).as_deref(), Some("gr"));
        assert_eq!(readable(&"grö".as_bytes()[..3], false), None);
        assert_eq!(readable(b"\x00\x01", false), None);
    }

    #[test]
    fn elements_have_the_digits_of_their_type() {
        let text = |dtype: &str, data: &[u8]| {
            let values = elements_of(DType::parse(dtype).unwrap(), data);
            values.iter().map(Value::to_string).collect::<Vec<_>>()
        };
        assert_eq!(text("<f4", &0.1f32.to_le_bytes()), ["0.1"]);
        assert_eq!(text("<f8", &[0.1f64.to_le_bytes(), f64::NAN.to_le_bytes()].concat()), ["0.1", "\"NaN\""]);
        assert_eq!(text("<i2", &[7, 0, 0xff, 0xff]), ["7", "-1"]);
        assert_eq!(text("S3", b"ab\0xyz"), [r#""\"ab\"""#, r#""\"xyz\"""#]);
        assert_eq!(text("<c8", &[0; 8]), [""; 0]);
    }
}
