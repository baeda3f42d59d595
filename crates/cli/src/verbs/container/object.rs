//! The JSON shapes that verbs of containers share.

use fieldstone::Result;
use fieldstone::container::{Attrs, DimInfo, Format, Metadata, NcType, VarInfo};
use serde_json::{Map, Number, Value, json};

/// Objects asked for at once.
const BATCH: usize = 256;

/// A container's format, as people name it.
pub fn format(format: Format) -> &'static str {
    match format {
        Format::Classic(version) => version.name(),
        Format::Partitioned => "partitioned",
    }
}

/// All dimensions, one after another.
pub fn each_dim<E: From<fieldstone::Error>>(
    metadata: &dyn Metadata,
    mut to: impl FnMut(DimInfo) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut from = 0;
    loop {
        let dims = metadata.dims(from, BATCH)?;
        if dims.is_empty() {
            return Ok(());
        }
        from += dims.len() as u64;
        dims.into_iter().try_for_each(&mut to)?;
    }
}

/// All variables, one after another.
pub fn each_var<E: From<fieldstone::Error>>(
    metadata: &dyn Metadata,
    mut to: impl FnMut(VarInfo) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut from = 0;
    loop {
        let vars = metadata.vars(from, BATCH)?;
        if vars.is_empty() {
            return Ok(());
        }
        from += vars.len() as u64;
        vars.into_iter().try_for_each(&mut to)?;
    }
}

/// A header.
pub fn header(metadata: &dyn Metadata) -> Result<Map<String, Value>> {
    let mut dims = Vec::new();
    each_dim(metadata, |dim| {
        dims.push(json!({"name": dim.name, "len": dim.len, "record": dim.is_record}));
        Ok::<(), fieldstone::Error>(())
    })?;
    let mut vars = Vec::new();
    each_var(metadata, |var| {
        vars.push(variable(&var));
        Ok::<(), fieldstone::Error>(())
    })?;
    let mut object = Map::new();
    object.insert("format".into(), format(metadata.format()).into());
    object.insert("numrecs".into(), metadata.numrecs()?.into());
    object.insert("dims".into(), dims.into());
    object.insert("attrs".into(), attributes(&metadata.attrs()?));
    object.insert("vars".into(), vars.into());
    Ok(object)
}

/// A variable without its data.
pub fn variable(var: &VarInfo) -> Value {
    json!({
        "name": var.name,
        "type": var.ty.name(),
        "dims": var.dims.iter().map(|dim| dim.name.as_str()).collect::<Vec<_>>(),
        "shape": var.shape(),
        "attrs": attributes(&var.attrs),
    })
}

/// Attributes by name.
pub fn attributes(attrs: &Attrs) -> Value {
    let pairs = attrs.iter().map(|attr| {
        if attr.ty == NcType::Char {
            return (attr.name.to_owned(), String::from_utf8_lossy(attr.value).into());
        }
        let elements: Vec<Value> =
            attr.value.chunks_exact(attr.ty.size()).map(|bytes| element(attr.ty, bytes)).collect();
        let value = match <[Value; 1]>::try_from(elements) {
            Ok([one]) => one,
            Err(many) => many.into(),
        };
        (attr.name.to_owned(), value)
    });
    Value::Object(pairs.collect())
}

/// One element out of its bytes in the file.
fn element(ty: NcType, bytes: &[u8]) -> Value {
    let raw = bytes.iter().fold(0_u64, |raw, byte| raw << 8 | u64::from(*byte));
    match ty {
        NcType::Byte => (raw as u8 as i8).into(),
        NcType::Short => (raw as u16 as i16).into(),
        NcType::Int => (raw as u32 as i32).into(),
        NcType::Int64 => (raw as i64).into(),
        NcType::Char | NcType::UByte | NcType::UShort | NcType::UInt | NcType::UInt64 => raw.into(),
        NcType::Float => real(f64::from(f32::from_bits(raw as u32))),
        NcType::Double => real(f64::from_bits(raw)),
    }
}

/// JSON has no NaN and no infinity: a text, rather than nothing.
fn real(value: f64) -> Value {
    Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}
