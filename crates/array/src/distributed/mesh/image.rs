//! The header of a mesh's file: its dimensions, variables and attributes, by name.
//!
//! All names begin with that of the topology variable, so that a file of another tool can contain several meshes.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::MeshLocation;
use fieldstone_format::content_sum::BYTES;
use fieldstone_format::netcdf::layout::{Alignment, lay_out};
use fieldstone_format::netcdf::names::check_name;
use fieldstone_format::netcdf::{Attrs, Header, NcType, Version, write};

use super::{MeshArray, hex};

/// Alignment of the data: a block of most file systems.
const ALIGN: u64 = 4096;
/// The attribute that holds the checksum.
const CHECKSUM: &str = "mesh_checksum";
const CONVENTIONS: &str = "CF-1.8 UGRID-1.0";
const TOPOLOGY: &str = "mesh_topology";

/// Shapes of volumes by their number of nodes, as `volume_shape_type` numbers them.
pub(super) const SHAPES: [(u64, &str); 4] =
    [(4, "tetrahedron"), (5, "pyramid"), (6, "wedge"), (8, "hexahedron")];

const LOCATIONS: [(MeshLocation, &str); 4] = [
    (MeshLocation::Node, "node"),
    (MeshLocation::Edge, "edge"),
    (MeshLocation::Face, "face"),
    (MeshLocation::Volume, "volume"),
];

/// The index of a location in counts.
pub(super) fn place_of(location: MeshLocation) -> usize {
    LOCATIONS.iter().position(|(other, _)| *other == location).unwrap_or(0)
}

/// The dimension of a mesh for values at a location.
pub fn dimension(mesh: &str, location: MeshLocation) -> String {
    format!("n{mesh}_{}", LOCATIONS[place_of(location)].1)
}

fn variable_name(mesh: &str, array: MeshArray) -> String {
    match array {
        MeshArray::X | MeshArray::Y | MeshArray::Z => format!("{mesh}_node_{}", array.word()),
        MeshArray::Edges => format!("{mesh}_edge_nodes"),
        MeshArray::Faces => format!("{mesh}_face_nodes"),
        MeshArray::Volumes => format!("{mesh}_volume_nodes"),
    }
}

/// The description of a mesh in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshHead {
    /// Name of the topology variable.
    pub name: String,
    /// The numbers of nodes, edges, faces and volumes.
    pub counts: [u64; 4],
    /// Maximum number of nodes of an edge, face and volume; 0 if there are none.
    pub widths: [u64; 3],
    /// Whether nodes have a third coordinate.
    pub has_z: bool,
    /// Checksum of the content.
    pub checksum: [u8; BYTES],
}

impl MeshHead {
    /// The arrays of the mesh, and the names of their variables.
    pub fn variables(&self) -> impl Iterator<Item = (MeshArray, String)> {
        let is_there = |array: &MeshArray| match array {
            MeshArray::X | MeshArray::Y => true,
            MeshArray::Z => self.has_z,
            MeshArray::Edges => self.counts[1] > 0,
            MeshArray::Faces => self.counts[2] > 0,
            MeshArray::Volumes => self.counts[3] > 0,
        };
        MeshArray::ALL.into_iter().filter(is_there).map(|array| (array, variable_name(&self.name, array)))
    }

    /// Reads the description from a header.
    ///
    /// Errors: `Invalid` if it is not the header of a mesh's file; `Corrupt` if it contradicts the format.
    pub fn parse(header: &Header) -> Result<MeshHead> {
        let checksum = header.attrs.find(CHECKSUM).map(|attr| attr.value);
        let topology = header
            .vars
            .iter()
            .find(|var| var.attrs().any(|attr| attr.name == "cf_role" && attr.value == TOPOLOGY.as_bytes()));
        let (Some(checksum), Some(topology)) = (checksum, topology) else {
            return Err(Code::FileFormat
                .error("this is not a mesh of a store: it lacks its checksum or a mesh_topology")
                .with_hint("ingest it with fst.ingest(store, path, mesh=NAME)"));
        };
        let damaged = |what: &str| Error::corrupt(format!("the header of the mesh {what}"));
        let checksum = parse_hex(checksum).ok_or_else(|| damaged("has an invalid checksum"))?;
        let name = topology.name().to_owned();
        let dim = |name: String| {
            let place = header.dims.iter().position(|dim| dim.name == name);
            place.map_or(0, |place| header.dims.lens[place])
        };
        let counts = LOCATIONS.map(|(location, _)| dim(dimension(&name, location)));
        // Type and shape of a variable.
        let form_of = |array: MeshArray| {
            let wanted = variable_name(&name, array);
            let var = header.vars.iter().find(|var| var.name() == wanted)?;
            let len = |dim: &u32| header.dims.lens.get(*dim as usize).copied().unwrap_or(0);
            Some((var.ty(), var.dims().iter().map(len).collect::<Vec<u64>>()))
        };
        let has_z = form_of(MeshArray::Z).is_some();
        let index = index_type(counts[0]);
        let mut widths = [0; 3];
        for (place, array) in [MeshArray::Edges, MeshArray::Faces, MeshArray::Volumes].into_iter().enumerate()
        {
            let count = counts[place + 1];
            widths[place] = match form_of(array) {
                None if count == 0 => 0,
                Some((ty, shape)) if ty == index && shape.first() == Some(&count) && shape.len() == 2 => {
                    shape[1]
                }
                _ => {
                    return Err(damaged(&format!(
                        "has an array of {} that does not fit their number, {count}",
                        array.word()
                    )));
                }
            };
        }
        for array in [MeshArray::X, MeshArray::Y, MeshArray::Z] {
            let is_right = form_of(array) == Some((NcType::Double, vec![counts[0]]));
            if !is_right && (array != MeshArray::Z || has_z) {
                return Err(damaged(&format!("has no {} for each of {} nodes", array.word(), counts[0])));
            }
        }
        Ok(MeshHead { name, counts, widths, has_z, checksum })
    }
}

fn parse_hex(text: &[u8]) -> Option<[u8; BYTES]> {
    let number = u128::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
    let checksum = number.to_be_bytes();
    (hex(&checksum).as_bytes() == text).then_some(checksum)
}

/// Checks a mesh's name: it becomes a part of names in lists separated by blanks.
pub(super) fn check_mesh_name(name: &str) -> Result<()> {
    check_name(name)?;
    match name.contains(char::is_whitespace) {
        false => Ok(()),
        true => Err(Code::Name
            .error(format!("the mesh's name `{name}` contains a blank"))
            .with_hint("use letters, digits and _")),
    }
}

/// A file of a mesh before its data.
#[derive(Debug)]
pub(super) struct MeshImage {
    header: Header,
    /// The begins of the variables with data: the arrays, and `volume_shape_type`.
    pub begins: Vec<(MeshArray, u64)>,
    pub shapes: Option<u64>,
    pub topology: u64,
}

impl MeshImage {
    /// `coordinates` are the attributes of x, y and z, `attrs` those of the topology; with `has_shapes`, the file has
    /// the shape of each volume.
    pub fn new(head: &MeshHead, coordinates: &[Attrs], attrs: &Attrs, has_shapes: bool) -> Result<MeshImage> {
        let mut header = Header::new(Version::Cdf5);
        let text =
            |attrs: &mut Attrs, name: &str, value: &str| attrs.push(name, NcType::Char, value.as_bytes());
        text(&mut header.attrs, "Conventions", CONVENTIONS);
        text(&mut header.attrs, CHECKSUM, &hex(&head.checksum));
        let name = &head.name;
        let mut dims = [None; 4];
        for (place, (location, _)) in LOCATIONS.into_iter().enumerate() {
            if head.counts[place] > 0 {
                dims[place] = Some(header.dims.push(&dimension(name, location), head.counts[place]));
            }
        }
        let mut width_dims = [0; 3];
        for (place, suffix) in ["edge", "face", "volume"].into_iter().enumerate() {
            if head.widths[place] > 0 {
                let dim = format!("n{name}_{suffix}_nodes_max");
                width_dims[place] = header.dims.push(&dim, head.widths[place]);
            }
        }
        let index = index_type(head.counts[0]);
        let mut places = Vec::new();
        for (array, variable) in head.variables() {
            let (ty, dims, attrs) = match array {
                MeshArray::X | MeshArray::Y | MeshArray::Z => {
                    let place = array as usize - MeshArray::X as usize;
                    let given = coordinates.get(place).cloned().unwrap_or_default();
                    (NcType::Double, dims[..1].to_vec(), coordinate_attrs(name, array, given))
                }
                MeshArray::Edges | MeshArray::Faces | MeshArray::Volumes => {
                    let place = array as usize - MeshArray::Edges as usize;
                    let location = LOCATIONS[place + 1].1;
                    let mut attrs = Attrs::default();
                    text(&mut attrs, "cf_role", &format!("{location}_node_connectivity"));
                    attrs.push("start_index", index, &index_bytes(0, index));
                    attrs.push("_FillValue", index, &index_bytes(-1, index));
                    (index, vec![dims[place + 1], Some(width_dims[place])], attrs)
                }
            };
            let dims: Vec<u32> = dims.into_iter().flatten().collect();
            places.push((array, header.vars.push(&variable, ty, &dims) as usize));
            for attr in attrs.iter() {
                header.vars.attrs_of_last(attr.name, attr.ty, attr.value);
            }
        }
        let shapes = has_shapes.then(|| {
            let dims: Vec<u32> = dims[3].into_iter().collect();
            let shapes = header.vars.push(&format!("{name}_volume_shapes"), NcType::Byte, &dims);
            let numbers: Vec<u8> = (0..SHAPES.len() as u8).collect();
            let words: Vec<&str> = SHAPES.iter().map(|(_, word)| *word).collect();
            header.vars.attrs_of_last("cf_role", NcType::Char, b"volume_shape_type");
            header.vars.attrs_of_last("flag_values", NcType::Byte, &numbers);
            header.vars.attrs_of_last("flag_meanings", NcType::Char, words.join(" ").as_bytes());
            shapes as usize
        });
        // Last, so that the first coordinate begins at a block, and the file's end needs no padding.
        let topology = header.vars.push(name, NcType::Int, &[]) as usize;
        for attr in topology_attrs(head, has_shapes).iter().chain(attrs.iter()) {
            header.vars.attrs_of_last(attr.name, attr.ty, attr.value);
        }
        let alignment = Alignment { v_align: ALIGN, r_align: ALIGN, ..Alignment::default() };
        lay_out(&mut header, &alignment, false, None)?;
        let begin = |var: usize| header.vars.get(var).begin();
        Ok(MeshImage {
            begins: places.into_iter().map(|(array, var)| (array, begin(var))).collect(),
            shapes: shapes.map(begin),
            topology: begin(topology),
            header,
        })
    }

    /// The bytes of the header.
    pub fn header(&self) -> Vec<u8> {
        write::header(&self.header, false)
    }

    /// Size of the file in bytes: the topology's value is its end.
    pub fn size(&self) -> u64 {
        self.topology + NcType::Int.size() as u64
    }

    /// The begin of an array.
    pub fn begin(&self, array: MeshArray) -> Result<u64> {
        let found = self.begins.iter().find(|(other, _)| *other == array);
        found.map(|(_, begin)| *begin).ok_or_else(|| Error::internal("the mesh does not have this array"))
    }
}

/// The type of node numbers.
pub(super) fn index_type(nodes: u64) -> NcType {
    match i32::try_from(nodes) {
        Ok(_) => NcType::Int,
        Err(_) => NcType::Int64,
    }
}

fn index_bytes(number: i64, ty: NcType) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    bytes[bytes.len() - ty.size()..].to_vec()
}

fn topology_attrs(head: &MeshHead, has_shapes: bool) -> Attrs {
    let (name, mut attrs) = (&head.name, Attrs::default());
    let dimension_of = (0..4).rev().find(|place| head.counts[*place] > 0).unwrap_or(0);
    attrs.push("cf_role", NcType::Char, TOPOLOGY.as_bytes());
    attrs.push("topology_dimension", NcType::Int, &(dimension_of as i32).to_be_bytes());
    let mut coordinates = vec![variable_name(name, MeshArray::X), variable_name(name, MeshArray::Y)];
    // UGRID has three coordinates only in meshes of volumes; in others, z is a variable at nodes.
    if dimension_of == 3 && head.has_z {
        coordinates.push(variable_name(name, MeshArray::Z));
    }
    attrs.push("node_coordinates", NcType::Char, coordinates.join(" ").as_bytes());
    for (place, (location, word)) in LOCATIONS.into_iter().enumerate() {
        if head.counts[place] > 0 {
            attrs.push(&format!("{word}_dimension"), NcType::Char, dimension(name, location).as_bytes());
        }
    }
    for (array, variable) in head.variables() {
        let word = match array {
            MeshArray::Edges => "edge",
            MeshArray::Faces => "face",
            MeshArray::Volumes => "volume",
            _ => continue,
        };
        attrs.push(&format!("{word}_node_connectivity"), NcType::Char, variable.as_bytes());
    }
    if has_shapes {
        attrs.push("volume_shape_type", NcType::Char, format!("{name}_volume_shapes").as_bytes());
    }
    attrs
}

/// The caller's attributes for a coordinate; if they give neither its kind nor its unit, adds that it belongs to a
/// plane.
fn coordinate_attrs(mesh: &str, array: MeshArray, given: Attrs) -> Attrs {
    let mut attrs = given;
    if attrs.find("standard_name").is_none() && attrs.find("units").is_none() {
        if array != MeshArray::Z {
            let standard = format!("projection_{}_coordinate", array.word());
            attrs.push("standard_name", NcType::Char, standard.as_bytes());
        }
        if attrs.find("axis").is_none() {
            attrs.push("axis", NcType::Char, array.word().to_uppercase().as_bytes());
        }
    }
    for (name, value) in [("mesh", mesh), ("location", "node")] {
        if array == MeshArray::Z && attrs.find(name).is_none() {
            attrs.push(name, NcType::Char, value.as_bytes());
        }
    }
    attrs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_says_is_read_again_with_wide_numbers_where_nodes_need_them() {
        for (nodes, ty) in
            [(i32::MAX as u64, NcType::Int), (1 << 31, NcType::Int64), (1 << 40, NcType::Int64)]
        {
            let head = MeshHead {
                name: "m".into(),
                counts: [nodes, 0, 7, 0],
                widths: [0, 3, 0],
                has_z: nodes.is_multiple_of(2),
                checksum: [7; BYTES],
            };
            let image = MeshImage::new(&head, &[], &Attrs::default(), false).unwrap();
            assert_eq!(MeshHead::parse(&image.header).unwrap(), head);
            let faces = image.header.vars.iter().find(|var| var.name() == "m_face_nodes").unwrap();
            let fill = faces.attrs().find(|attr| attr.name == "_FillValue").unwrap();
            assert_eq!((faces.ty(), fill.ty, fill.value), (ty, ty, &vec![0xff; ty.size()][..]));
            assert_eq!(image.begin(MeshArray::Faces).unwrap(), faces.begin());
            assert!(image.begin(MeshArray::Edges).is_err());
            let x = image.header.vars.iter().find(|var| var.name() == "m_node_x").unwrap();
            let attrs: Vec<_> =
                x.attrs().map(|attr| String::from_utf8_lossy(attr.value).into_owned()).collect();
            assert_eq!((x.begin() % ALIGN, attrs), (0, vec!["projection_x_coordinate".into(), "X".into()]));
        }
    }
}
