//! Positions that a picture has.

/// Positions along an axis, or of every point.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its name, with its unit.
    pub label: String,
    /// Extents: one dimension, or those of the picture.
    pub shape: Vec<usize>,
    /// The positions.
    pub values: Vec<f64>,
}
