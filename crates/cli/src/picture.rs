//! The input of `fieldstone plot`: numbers in one or two dimensions, with their coordinates and names if the store has
//! them.
//!
//! Three kinds of fields have a picture: arrays, unpacked and with the coordinates that their file or run says
//! ([`Described`]); arrays on an unstructured mesh; and GRIB messages, which the helper process decodes.

use fieldstone::facts::Described;
use fieldstone::helper::{Helper, HelperOptions};
use fieldstone::{Code, DType, Error, Field, FieldKey, Result, Store, as_floats, element_count};
use serde_json::json;

use crate::elements::Axis;
use crate::mesh_picture::{MeshShapes, OnMesh};
use crate::region::Region;

/// Numbers to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The numbers, NaN where there is none, in C order.
    pub values: Vec<f64>,
    /// One or two extents.
    pub shape: Vec<usize>,
    /// Their name, with the unit.
    pub label: String,
    /// Positions across.
    pub x: Option<Axis>,
    /// Positions down.
    pub y: Option<Axis>,
    /// The mesh that the numbers stand on; then `x` and `y` are the middles of its parts.
    pub mesh: Option<MeshShapes>,
    /// Which part of a larger array was taken without being asked for.
    pub taken: Option<String>,
}

impl Picture {
    /// The picture of a field, or of the part of it that `region` leaves.
    pub fn of(store: &Store, field: &Field, region: Option<&Region>) -> Result<Picture> {
        let key = field.key()?;
        let picture = match (field.dtype()?, field.shape()?) {
            (Some(dtype), Some(shape)) => of_array(store, field, &key, dtype, &shape, region),
            _ if region.is_some() => {
                Err(Code::NotAnArray.error("it is opaque bytes, and only an array has a box"))
            }
            _ => of_grib(&field.read()?),
        };
        picture.map_err(|e| e.context(&key))
    }

    /// Its PNG, from the helper process.
    pub fn png(&self, title: &str, size: [u32; 2]) -> Result<Vec<u8>> {
        let bytes = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let mut parts = vec![bytes(&self.values)];
        let mut coords = Vec::new();
        let mut mesh = None;
        if let Some(shapes) = &self.mesh {
            let (facts, listed, arrays) = shapes.request();
            (mesh, coords) = (Some(facts), listed);
            parts.extend(arrays);
        }
        for (name, axis) in [("x", &self.x), ("y", &self.y)] {
            if let (Some(axis), None) = (axis, &self.mesh) {
                coords.push(json!({"name": name, "dtype": "<f8", "shape": axis.shape, "label": axis.label}));
                parts.push(bytes(&axis.values));
            }
        }
        let what = [
            ("dtype", "<f8".into()),
            ("shape", json!(self.shape)),
            ("title", title.into()),
            ("label", self.label.as_str().into()),
            ("size", json!(size)),
            ("coords", coords.into()),
        ];
        let what = what.into_iter().chain(mesh.map(|mesh| ("mesh", mesh)));
        let what = what.map(|(name, value)| (name.to_owned(), value)).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Helper::start(&HelperOptions::default())?.plot(&what, &parts)
    }
}

fn of_array(
    store: &Store,
    field: &Field,
    key: &FieldKey,
    dtype: DType,
    shape: &[u64],
    region: Option<&Region>,
) -> Result<Picture> {
    let on = OnMesh::of(store, key, shape)?;
    let (region, taken) = match region {
        Some(region) => (region.clone(), None),
        None => part_to_draw(on.as_ref(), shape)?,
    };
    let (inside, kept) = region.within(shape)?;
    let mut extents = kept.iter().map(|&n| n as usize).collect::<Vec<_>>();
    if extents.len() > 2 {
        return Err(Error::invalid(format!(
            "the box leaves {} dimensions, and at most 2 are drawn",
            kept.len()
        ))
        .with_hint("give an index for each further dimension, such as --box 0,3,:,:"));
    }
    if extents.is_empty() {
        extents.push(1);
    }
    let raw = field.read_box(Some(&inside))?;
    let mut values = as_floats(dtype, &raw)?;
    let mut picture = Picture {
        values: Vec::new(),
        shape: extents,
        label: String::new(),
        x: None,
        y: None,
        mesh: None,
        taken,
    };
    if let Some(on) = on.filter(|on| kept.len() == 1 && inside.count()[on.dimension] == shape[on.dimension]) {
        let shapes = on.shapes()?;
        let (x, y) = shapes.points();
        (picture.x, picture.y, picture.mesh) = (Some(x), Some(y), Some(shapes));
    } else if let Some(described) = Described::of(store, key) {
        described.packing(dtype).undo(&mut values);
        picture.label = described.label();
        let extents = inside.start().iter().zip(inside.count()).enumerate();
        let drawn: Vec<_> =
            extents.filter(|(_, (_, count))| **count > 1 || kept.len() == shape.len()).collect();
        let axis = |(dim, (start, count)): &(usize, (&u64, &u64))| {
            let found = described.coordinates(store, key, *dim, **start, **count)?;
            Some(Axis { label: found.label, shape: vec![found.values.len()], values: found.values })
        };
        if drawn.len() == picture.shape.len() {
            picture.x = drawn.last().and_then(axis);
            picture.y = (drawn.len() == 2).then(|| drawn.first().and_then(axis)).flatten();
        }
    }
    picture.values = values;
    Ok(picture)
}

/// The part of an array that is drawn where none is asked for, and its text where it is not all of the array.
fn part_to_draw(on: Option<&OnMesh>, shape: &[u64]) -> Result<(Region, Option<String>)> {
    // Of a field on a mesh one value at each place, at the first index of the other dimensions.
    if let Some(on) = on {
        let text = on.region(shape.len());
        return Ok((Region::parse(&text)?, (shape.len() > 1).then_some(text)));
    }
    // Of more than two dimensions the last two are drawn, at the first index of the others.
    if shape.is_empty() {
        return Ok((Region::default(), None));
    }
    let text: Vec<&str> = (0..shape.len()).map(|d| if d + 2 < shape.len() { "0" } else { ":" }).collect();
    let text = text.join(",");
    Ok((Region::parse(&text)?, (shape.len() > 2).then_some(text)))
}

/// The values of a GRIB message.
fn of_grib(message: &[u8]) -> Result<Picture> {
    if !message.starts_with(b"GRIB") {
        return Err(
            Code::NotAnArray.error("it is opaque bytes and no GRIB message: there is nothing to draw")
        );
    }
    let (facts, payload) = Helper::start(&HelperOptions::default())?.decode(message)?;
    let wrong = || Error::internal("the helper's answer to decode is not what the protocol says");
    let mut rest = &payload[..];
    let mut take = |dtype: DType, shape: &[u64]| -> Option<(Vec<usize>, Vec<f64>)> {
        let bytes = element_count(shape).ok()?.checked_mul(dtype.size() as u64)?;
        let (own, others) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        rest = others;
        Some((shape.iter().map(|&n| n as usize).collect(), as_floats(dtype, own).ok()?))
    };
    let (shape, values) = take(facts.dtype, &facts.shape).ok_or_else(wrong)?;
    if shape.is_empty() || shape.len() > 2 {
        return Err(wrong());
    }
    let (mut x, mut y) = (None, None);
    for coordinate in &facts.coords {
        let (shape, values) = take(coordinate.dtype, &coordinate.shape).ok_or_else(wrong)?;
        let axis = Axis { label: coordinate.name.clone(), shape, values };
        match coordinate.name.as_str() {
            "longitude" => x = Some(axis),
            "latitude" => y = Some(axis),
            _ => {}
        }
    }
    let attribute = |name: &str| facts.attrs.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str());
    let name = attribute("long_name").or(attribute("short_name")).unwrap_or_default();
    let label = match attribute("units") {
        Some(unit) => format!("{name} ({unit})"),
        None => name.to_owned(),
    };
    Ok(Picture { values, shape, label, x, y, mesh: None, taken: None })
}
