//! The picture that `fieldstone plot` draws: one or two dimensions of numbers, with their coordinates and words
//! where the store has them.
//!
//! Three kinds of fields have a picture: arrays, unpacked and with the coordinates that their file or run says
//! ([`Described`]); arrays on an unstructured mesh; and GRIB messages, which the helper process decodes.

use fieldstone::facts::{Coordinates, Described, Direction, with_unit};
use fieldstone::helper::{Helper, HelperOptions};
use fieldstone::{
    Code, CoordinateAxis, DType, Error, Field, FieldKey, IndexBox, Result, Store, as_floats, element_count,
};
use serde_json::json;

use crate::caption::{Caption, position};
use crate::elements::of_coordinate;
use crate::marks::Marks;
use crate::mesh_picture::{MeshShapes, OnMesh};
use crate::region::Region;

/// Numbers to draw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Picture {
    /// The numbers, NaN where there is none, in C order.
    pub values: Vec<f64>,
    /// Elements that are NaN since their value is not valid; `None` where all NaN is missing.
    pub masked: Option<Vec<bool>>,
    /// One or two extents.
    pub shape: Vec<usize>,
    /// The words above it.
    pub caption: Caption,
    /// The name of the numbers; empty for none.
    pub name: String,
    /// Their unit; empty for none.
    pub units: String,
    /// Names of the dimensions, as far as they are known.
    pub dims: Vec<String>,
    /// Positions across.
    pub x: Option<Coordinates>,
    /// Positions down.
    pub y: Option<Coordinates>,
    /// The mesh that the numbers stand on; then `x` and `y` are the middles of its parts.
    pub mesh: Option<MeshShapes>,
    /// Which part of a larger array was taken without being asked for.
    pub taken: Option<String>,
    /// Boxes and elements on which attributes stand.
    pub marks: Option<Marks>,
}

impl Picture {
    /// The picture of a field, or of the part of it that `region` leaves.
    /// With `tag`, marked are boxes and elements on which attributes with that tag stand.
    pub fn of(store: &Store, field: &Field, region: Option<&Region>, tag: Option<&str>) -> Result<Picture> {
        let key = field.key()?;
        let picture = match (field.dtype()?, field.shape()?) {
            (Some(dtype), Some(shape)) => of_array(store, field, (&key, dtype, &shape), region, tag),
            _ if region.is_some() => {
                Err(Code::NotAnArray.error("it is opaque bytes, and only an array has a box"))
            }
            _ => of_grib(&key, &field.read()?),
        };
        picture.map_err(|e| e.context(&key))
    }

    /// The name of the numbers with their unit; empty for neither.
    pub fn label(&self) -> String {
        with_unit(&self.name, &self.units)
    }

    /// Its PNG, from the helper process.
    pub fn png(&self, size: [u32; 2]) -> Result<Vec<u8>> {
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
                coords.push(of_coordinate(name, axis));
                parts.push(bytes(&axis.values));
            }
        }
        if let Some(masked) = &self.masked {
            coords.push(json!({"name": "masked", "dtype": "|b1", "shape": self.shape}));
            parts.push(masked.iter().map(|masked| u8::from(*masked)).collect());
        }
        let what = [
            ("dtype", "<f8".into()),
            ("shape", json!(self.shape)),
            ("title", self.caption.title().into()),
            ("label", self.name.as_str().into()),
            ("units", self.units.as_str().into()),
            ("dims", json!(self.dims)),
            ("size", json!(size)),
            ("coords", coords.into()),
        ];
        let marks = self.marks.as_ref().map(|marks| ("marks", marks.request()));
        let what = what.into_iter().chain(mesh.map(|mesh| ("mesh", mesh))).chain(marks);
        let what = what.map(|(name, value)| (name.to_owned(), value)).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Helper::start(&HelperOptions::default())?.plot(&what, &parts)
    }
}

fn of_array(
    store: &Store,
    field: &Field,
    (key, dtype, shape): (&FieldKey, DType, &[u64]),
    region: Option<&Region>,
    tag: Option<&str>,
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
    let described = Described::of(store, key);
    let mut picture = Picture {
        values: as_floats(dtype, &raw)?,
        shape: extents,
        caption: Caption::of_array(store, key, described.as_ref()),
        taken,
        ..Picture::default()
    };
    if let Some(described) = &described {
        picture.unpack(described, dtype);
        picture.place(store, key, described, &inside, kept.len() == shape.len());
    }
    if let Some(tag) = tag {
        let drawn = drawn_dims(&inside, kept.len() == shape.len()).0;
        picture.marks = Some(Marks::find(store, key, tag, &inside, &drawn)?);
    }
    if let Some(on) = on.filter(|on| kept.len() == 1 && inside.count()[on.dimension] == shape[on.dimension]) {
        let (x, y) = on.points()?;
        (picture.x, picture.y, picture.mesh) = (Some(x), Some(y), Some(on.shapes()?));
    }
    Ok(picture)
}

impl Picture {
    /// Undoes packing, and takes values out that are not valid.
    fn unpack(&mut self, described: &Described, dtype: DType) {
        let packing = described.packing(dtype);
        self.masked = packing.masked(&self.values).filter(|masked| masked.contains(&true));
        packing.undo(&mut self.values);
        for (value, _) in
            self.values.iter_mut().zip(self.masked.iter().flatten()).filter(|(_, masked)| **masked)
        {
            *value = f64::NAN;
        }
        (self.name, self.units) = (described.name(), described.units().to_owned());
    }

    /// Finds where the elements of a box stand, and says where the box itself does.
    fn place(
        &mut self,
        store: &Store,
        key: &FieldKey,
        described: &Described,
        inside: &IndexBox,
        whole: bool,
    ) {
        let (start, count) = (inside.start(), inside.count());
        let (drawn, fixed) = drawn_dims(inside, whole);
        let along = |dim: &usize| described.coordinates(store, key, *dim, start[*dim], count[*dim]);
        for dim in &fixed {
            let name = described.dims.get(*dim).map_or_else(|| format!("dimension {dim}"), Clone::clone);
            self.caption.more.push(match along(dim) {
                Some(axis) if axis.values.len() == 1 => {
                    format!("{} {}", axis.name, position(&axis, axis.values[0]))
                }
                _ => format!("{name} [{}]", start[*dim]),
            });
        }
        if drawn.len() != self.shape.len() {
            return;
        }
        let within: (Vec<u64>, Vec<u64>) = drawn.iter().map(|dim| (start[*dim], count[*dim])).unzip();
        let (mut x, mut y) = (drawn.last().and_then(along), None);
        if drawn.len() == 2 {
            y = drawn.first().and_then(along);
        }
        let on_globe =
            |axis: &Option<Coordinates>| axis.as_ref().is_some_and(|axis| axis.direction.is_on_globe());
        if !(on_globe(&x) && on_globe(&y))
            && let Some((lon, lat)) = described.places(store, key, &drawn, (&within.0, &within.1))
        {
            (x, y) = (Some(lon), Some(lat));
        }
        (self.x, self.y) = (x, y);
        self.dims = drawn.iter().map(|dim| described.dims.get(*dim).cloned().unwrap_or_default()).collect();
    }
}

/// The dimensions of a box that are drawn, and those at one index. Of the `whole` array all are drawn.
fn drawn_dims(inside: &IndexBox, whole: bool) -> (Vec<usize>, Vec<usize>) {
    (0..inside.count().len()).partition(|dim| whole || inside.count()[*dim] > 1)
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
fn of_grib(key: &FieldKey, message: &[u8]) -> Result<Picture> {
    if !message.starts_with(b"GRIB") {
        return Err(
            Code::NotAnArray.error("it is opaque bytes and not a GRIB message: there is nothing to draw")
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
        let axis = CoordinateAxis::new(&coordinate.name, &coordinate.name, "degrees");
        let found = Coordinates::new(&axis, &coordinate.name, None, shape, values);
        match found.direction {
            Direction::Longitude => x = Some(found),
            Direction::Latitude => y = Some(found),
            _ => {}
        }
    }
    let attribute = |name: &str| facts.attrs.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str());
    let caption = Caption::of_grib(key, attribute);
    let (name, units) = (caption.name.clone(), attribute("units").unwrap_or_default().to_owned());
    Ok(Picture { values, shape, caption, name, units, x, y, ..Picture::default() })
}
