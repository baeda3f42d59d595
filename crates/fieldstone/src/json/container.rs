//! Containers: headers, variables and their places, counts by path, findings of a check.

use fieldstone_core::Result;
use fieldstone_format::netcdf::parse::Finding;
use serde_json::{Map, Number, Value, json};

use crate::container::look::Look;
use crate::container::offsets::VarExtent;
use crate::container::stats::{PathStats, Stats, Totals};
use crate::container::validate::Report;
use crate::container::{Attrs, Converted, Counts, DimInfo, Format, Metadata, NcType, VarInfo};

/// Objects per request.
const BATCH: usize = 256;

/// The usual name of a format.
pub fn format(format: Format) -> &'static str {
    match format {
        Format::Classic(version) => version.name(),
        Format::Partitioned => "partitioned",
    }
}

/// The shapes of all items of `next`, batch after batch; it gets the number of earlier items.
fn each<T>(next: impl Fn(u64) -> Result<Vec<T>>, shape: impl Fn(&T) -> Value) -> Result<Vec<Value>> {
    let mut shapes = Vec::new();
    loop {
        let batch = next(shapes.len() as u64)?;
        if batch.is_empty() {
            return Ok(shapes);
        }
        shapes.extend(batch.iter().map(&shape));
    }
}

/// A header; with `name` of the container, if given.
pub fn header(metadata: &dyn Metadata, name: Option<&str>) -> Result<Value> {
    let mut object = Map::new();
    let dims = each(|from| metadata.dims(from, BATCH), dimension)?;
    let vars = each(|from| metadata.vars(from, BATCH), variable)?;
    object.insert("format".into(), format(metadata.format()).into());
    object.insert("numrecs".into(), metadata.numrecs()?.into());
    object.insert("dims".into(), dims.into());
    object.insert("attrs".into(), attributes(&metadata.attrs()?));
    object.insert("vars".into(), vars.into());
    if let Some(name) = name {
        object.insert("name".into(), name.into());
    }
    Ok(Value::Object(object))
}

fn dimension(dim: &DimInfo) -> Value {
    json!({"name": dim.name, "len": dim.len, "record": dim.is_record})
}

/// A variable without its data.
pub fn variable(var: &VarInfo) -> Value {
    json!({
        "name": var.name,
        "type": var.ty.name(),
        "dims": dims_of(var),
        "shape": var.shape(),
        "attrs": attributes(&var.attrs),
    })
}

fn dims_of(var: &VarInfo) -> Vec<&str> {
    var.dims.iter().map(|dim| dim.name.as_str()).collect()
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

/// One element, from its bytes in the file.
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

/// JSON has neither NaN nor infinity: use a text.
fn real(value: f64) -> Value {
    Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}

/// The counts of a header, and the bytes of a file; `record` is the name of the record dimension.
pub fn summary(file: &Look, stats: &Stats, record: Option<&str>) -> Value {
    let (totals, counts) = (&stats.totals, stats.totals.counts);
    let types = stats.types.iter();
    let types = types.map(|(ty, vars, bytes)| json!({"name": ty.name(), "vars": vars, "bytes": bytes}));
    json!({
        "format": format(file.metadata().format()),
        "dims": counts.dims,
        "attrs": counts.attrs,
        "vars": counts.vars,
        "var_attrs": stats.var_attrs,
        "numrecs": totals.numrecs,
        "record_dim": record,
        "header_bytes": file.header_bytes(),
        "data_bytes": totals.bytes,
        "file_bytes": file.bytes(),
        "paths": totals.paths.iter().filter(|place| !place.path.is_empty()).count(),
        "types": types.collect::<Vec<_>>(),
    })
}

/// Objects and bytes, in all and below each path.
pub fn totals(format: Format, totals: &Totals) -> Value {
    json!({
        "format": self::format(format),
        "dims": totals.counts.dims,
        "attrs": totals.counts.attrs,
        "vars": totals.counts.vars,
        "bytes": totals.bytes,
        "paths": totals.paths.iter().map(path).collect::<Vec<_>>(),
    })
}

/// Objects and bytes below a path; the root is `/`.
pub fn path(place: &PathStats) -> Value {
    json!({
        "path": if place.path.is_empty() { "/" } else { &place.path },
        "dims": place.counts.dims,
        "attrs": place.counts.attrs,
        "vars": place.counts.vars,
        "bytes": place.bytes,
    })
}

/// The place of a variable in its file.
pub fn extent(place: &VarExtent) -> Value {
    json!({
        "name": place.var.name,
        "type": place.var.ty.name(),
        "dims": dims_of(&place.var),
        "record": place.var.is_record(),
        "begin": place.begin,
        "end": place.end(),
        "bytes": place.bytes,
        "gap": place.gap as i64,
    })
}

/// Findings in a file.
pub fn checked(file: &str, report: &Report) -> Value {
    let [dims, attrs, vars] = report.counts;
    json!({
        "file": file,
        "ok": report.ok,
        "format": report.format.map(format),
        "dims": dims,
        "attrs": attrs,
        "vars": vars,
        "numrecs": report.numrecs,
        "header_bytes": report.header_len,
        "paths": report.paths,
        "index": report.index,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "omitted": report.omitted,
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.name(),
        "offset": finding.offset,
        "object": finding.object,
        "message": finding.message,
        "rule": finding.rule,
    })
}

/// A container that was converted to another format.
pub fn converted(done: &Converted) -> Value {
    json!({"vars": done.vars, "bytes": done.bytes})
}

/// The counts of a container into which others were merged.
pub fn merged(counts: &Counts) -> Value {
    json!({"dims": counts.dims, "attrs": counts.attrs, "vars": counts.vars})
}
