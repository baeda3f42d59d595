//! Positions of elements as a request to the helper names them (`spec/helper-protocol.md`, Plot).

use fieldstone::facts::Coordinates;
use serde_json::{Value, json};

/// An array of positions: its name in the request, its type and shape, its words and its direction.
pub fn of_coordinate(name: &str, axis: &Coordinates) -> Value {
    json!({
        "name": name,
        "dtype": "<f8",
        "shape": axis.shape,
        "label": axis.name,
        "units": axis.units,
        "direction": axis.direction.word(),
    })
}
