//! The points of a GRIB grid: eccodes reads them from one message, in the helper process.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::elements::as_floats;
use fieldstone_core::geometry::{byte_count, element_count};
use fieldstone_core::request::Request;
use fieldstone_store::api::{FieldAccess, RetrieveOptions};

use crate::interop::grib::grid_name;
use crate::interop::helper::HelperOptions;
use crate::interop::shared_helper::SharedHelper;

/// Latitudes and longitudes of a grid, by the digest in its variables' declarations: from the first message on it that
/// a request selects. `None` if there is no such message; both are empty if eccodes cannot compute the points.
///
/// Errors: `Unavailable` without eccodes, `Corrupt` for a damaged message.
pub fn points_of(fields: &dyn FieldAccess, request: &Request, grid: &str) -> Result<Option<[Vec<f64>; 2]>> {
    let all = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
    for field in fields.retrieve(request, &all)?.iter() {
        let field = field?;
        if field.dtype()?.is_some() {
            continue;
        }
        let message = field.read()?;
        if message.starts_with(b"GRIB") && grid_name(&message) == grid {
            return Ok(Some(decoded(&message)?.unwrap_or_default()));
        }
    }
    Ok(None)
}

fn decoded(message: &[u8]) -> Result<Option<[Vec<f64>; 2]>> {
    let options = HelperOptions::default();
    let (facts, payload) = SharedHelper::new(&options).get()?.decode(message)?;
    let mut rest = &payload[..];
    let mut take = |dtype: DType, shape: &[u64]| -> Result<Option<Vec<f64>>> {
        let length = byte_count(shape, dtype.size())?;
        let Some((own, others)) = rest.split_at_checked(length) else { return Ok(None) };
        rest = others;
        as_floats(dtype, own).map(Some)
    };
    take(facts.dtype, &facts.shape)?;
    let (mut latitudes, mut longitudes) = (None, None);
    for coordinate in &facts.coords {
        let values = take(coordinate.dtype, &coordinate.shape)?;
        match coordinate.name.as_str() {
            "latitude" => latitudes = values,
            "longitude" => longitudes = values,
            _ => {}
        }
    }
    let points = element_count(&facts.shape)?;
    Ok(latitudes.zip(longitudes).and_then(|both| match (both.0.len() as u64, both.1.len() as u64) {
        (a, b) if a == points && b == points => Some([both.0, both.1]),
        // A regular grid: longitudes wrap around in a row, so that they are not a coordinate on their own.
        (rows, columns) if rows.checked_mul(columns) == Some(points) => {
            let latitudes = both.0.iter().flat_map(|at| std::iter::repeat_n(*at, both.1.len())).collect();
            let longitudes = both.0.iter().flat_map(|_| both.1.iter().copied()).collect();
            Some([latitudes, longitudes])
        }
        _ => None,
    }))
}
