//! Locates the nodes, edges, faces and volumes of a mesh, and finds those in ranges of coordinates.
//!
//! A node is at its coordinates, everything else at the centre of its nodes: on a sphere (with a longitude and a
//! latitude as coordinates), in the direction of the sum of their directions, so that a face across 180° or around a
//! pole is in the right place; elsewhere, at the mean of each coordinate.
//!
//! [`CoordinateAxis`] handles names of coordinates, and longitudes that wrap around.

use fieldstone_core::Result;
use fieldstone_core::geometry::CoordinateAxis;
use fieldstone_format::catalog::MeshLocation;
use fieldstone_format::netcdf::Header;

use super::{Mesh, MeshArray};

/// A coordinate of nodes, as its file names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshAxis {
    /// Its array.
    pub array: MeshArray,
    /// Its description; its name is `x`, `y` or `z`.
    pub axis: CoordinateAxis,
}

impl MeshAxis {
    /// The coordinates in a mesh's file.
    pub(super) fn all(header: &Header, arrays: impl Iterator<Item = (MeshArray, String)>) -> Vec<MeshAxis> {
        let axes = arrays.filter(|(array, _)| matches!(array, MeshArray::X | MeshArray::Y | MeshArray::Z));
        let axis = |(array, variable): (MeshArray, String)| {
            let var = header.vars.iter().find(|var| var.name() == variable);
            let text = |name: &str| {
                let attr = var.as_ref().and_then(|var| var.attrs().find(|attr| attr.name == name));
                attr.map_or_else(String::new, |attr| String::from_utf8_lossy(attr.value).trim().to_owned())
            };
            let axis = CoordinateAxis::new(array.word(), &text("standard_name"), &text("units"));
            MeshAxis { array, axis }
        };
        axes.map(axis).collect()
    }
}

/// The positions of the elements at one location of a mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshPoints {
    /// The coordinates.
    pub axes: Vec<MeshAxis>,
    /// For each coordinate, a value for each element.
    pub values: Vec<Vec<f64>>,
}

impl MeshPoints {
    /// The elements inside all of these ranges, ascending, and which ranges name a coordinate; ignores ranges that
    /// name none. `None` if no range names a coordinate.
    pub fn within(&self, ranges: &[(String, f64, f64)]) -> Option<(Vec<bool>, Vec<i64>)> {
        let axis_of = |name: &str| self.axes.iter().position(|of| of.axis.is_called(name));
        let asked: Vec<(usize, (f64, f64))> =
            ranges.iter().filter_map(|(name, low, high)| Some((axis_of(name)?, (*low, *high)))).collect();
        let decided = ranges.iter().map(|(name, ..)| axis_of(name).is_some()).collect();
        let lies_in = |at: &usize| {
            asked.iter().all(|(axis, range)| self.axes[*axis].axis.holds(*range, self.values[*axis][*at]))
        };
        let count = self.values.first().map_or(0, Vec::len);
        let elements = (0..count).filter(lies_in).map(|at| at as i64).collect();
        (!asked.is_empty()).then_some((decided, elements))
    }

    /// Approximate size in memory, in bytes.
    pub fn nbytes(&self) -> usize {
        self.values.iter().map(|values| 8 * values.len()).sum()
    }
}

impl Mesh {
    /// The coordinates of its nodes.
    pub fn axes(&self) -> &[MeshAxis] {
        &self.axes
    }

    /// The positions of all elements at a location. Not collective: the calling rank reads everything.
    ///
    /// Errors: `Corrupt` for an entry that is not a node, or a file that ends early.
    pub fn points(&self, location: MeshLocation) -> Result<MeshPoints> {
        let axes = self.axes.clone();
        let nodes = axes.iter().map(|axis| self.node_values(axis.array)).collect::<Result<Vec<_>>>()?;
        let rows = match location {
            MeshLocation::Node => return Ok(MeshPoints { axes, values: nodes }),
            MeshLocation::Edge => MeshArray::Edges,
            MeshLocation::Face => MeshArray::Faces,
            MeshLocation::Volume => MeshArray::Volumes,
        };
        let middle = Middle::of(&axes);
        let mut values = vec![Vec::new(); axes.len()];
        self.reader().for_each_row_in(rows, 0..self.count(location), |_, row| {
            middle.push(&nodes, row, &mut values);
            Ok(())
        })?;
        Ok(MeshPoints { axes, values })
    }

    /// A coordinate of all nodes.
    fn node_values(&self, array: MeshArray) -> Result<Vec<f64>> {
        let mut bytes = Vec::new();
        self.import.read_range(self.array(array)?, 0..self.head.counts[0], &mut bytes)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|value| f64::from_be_bytes(*value)).collect())
    }
}

/// The method of finding the centre of a row of nodes.
enum Middle {
    /// Indices of longitude and latitude among the axes, and radians in their units.
    OnSphere {
        longitude: (usize, f64),
        latitude: (usize, f64),
    },
    Flat,
}

impl Middle {
    fn of(axes: &[MeshAxis]) -> Middle {
        let find = |is: fn(&CoordinateAxis) -> bool| {
            let at = axes.iter().position(|of| is(&of.axis))?;
            Some((at, if axes[at].axis.is_in_radians() { 1.0 } else { 1f64.to_radians() }))
        };
        match (find(CoordinateAxis::is_longitude), find(CoordinateAxis::is_latitude)) {
            (Some(longitude), Some(latitude)) => Middle::OnSphere { longitude, latitude },
            _ => Middle::Flat,
        }
    }

    /// Appends the centre of a row's nodes to `values`; a row without nodes has none.
    fn push(&self, nodes: &[Vec<f64>], row: &[i64], values: &mut [Vec<f64>]) {
        for (values, nodes) in values.iter_mut().zip(nodes) {
            values.push(row.iter().map(|node| nodes[*node as usize]).sum::<f64>() / row.len() as f64);
        }
        let Middle::OnSphere { longitude, latitude } = self else { return };
        let mut sum = [0f64; 3];
        for node in row {
            let angle = |(axis, unit): (usize, f64)| nodes[axis][*node as usize] * unit;
            let ((sin_lon, cos_lon), (sin_lat, cos_lat)) =
                (angle(*longitude).sin_cos(), angle(*latitude).sin_cos());
            sum = [sum[0] + cos_lat * cos_lon, sum[1] + cos_lat * sin_lon, sum[2] + sin_lat];
        }
        let flat = sum[0].hypot(sum[1]);
        let found = [(*longitude, sum[1].atan2(sum[0])), (*latitude, sum[2].atan2(flat))];
        // Nodes all around the sphere have no centre: use their mean.
        if sum != [0.0; 3] {
            for ((axis, unit), angle) in found {
                if let Some(last) = values[axis].last_mut() {
                    *last = angle / unit;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(array: MeshArray, standard_name: &str, units: &str) -> MeshAxis {
        MeshAxis { array, axis: CoordinateAxis::new(array.word(), standard_name, units) }
    }

    #[test]
    fn the_middle_of_a_face_across_the_date_line_or_a_pole_is_where_the_face_is() {
        let axes = [
            axis(MeshArray::X, "longitude", "degrees_east"),
            axis(MeshArray::Y, "latitude", "degrees_north"),
        ];
        let nodes = [
            vec![179.0, -179.0, -179.0, 179.0, 0.0, 90.0, 180.0, 270.0],
            vec![1.0, 1.0, -1.0, -1.0, 80.0, 80.0, 80.0, 80.0],
        ];
        let mut values = vec![Vec::new(); 2];
        let middle = Middle::of(&axes);
        middle.push(&nodes, &[0, 1, 2, 3], &mut values);
        middle.push(&nodes, &[4, 5, 6, 7], &mut values);
        assert!((values[0][0].abs() - 180.0).abs() < 1e-9 && values[1][0].abs() < 1e-9, "{values:?}");
        assert!((values[1][1] - 90.0).abs() < 1e-9, "{values:?}");
    }
}
