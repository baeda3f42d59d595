//! The description of a GRIB message whose values a library has decoded.

use crate::dtype::DType;

/// An array in the payload of a decoded message.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedCoordinate {
    /// `latitude` or `longitude`.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
}

/// A decoded GRIB message: the payload holds its values and then each coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Element type of the values.
    pub dtype: DType,
    /// Extents of the values.
    pub shape: Vec<u64>,
    /// Meaning of the values: `short_name`, `units` and so on.
    pub attrs: Vec<(String, String)>,
    /// The coordinates, in the order of the payload.
    pub coords: Vec<DecodedCoordinate>,
}
