//! What a store says of itself: verify, status, stats, dump.

mod dump;
mod stats;
mod status;
mod verify;

pub use dump::dump;
pub use stats::stats;
pub use status::status;
pub use verify::verify;

use fieldstone_core::key::Level;
use fieldstone_format::keys::{decode_names, decode_value};

/// An encoded first level as text: `{run=a}`.
pub fn dataset_text(prefix: &[u8]) -> String {
    let mut rest = prefix;
    let decode = |rest: &mut &[u8]| -> fieldstone_core::Result<Level> {
        let names = decode_names(rest)?;
        let values = names.iter().map(|_| decode_value(rest)).collect::<fieldstone_core::Result<_>>()?;
        Ok(Level { names, values })
    };
    match decode(&mut rest) {
        Ok(level) => {
            let pairs: Vec<String> = level
                .names
                .iter()
                .zip(&level.values)
                .filter(|(_, value)| !value.is_absent())
                .map(|(name, value)| format!("{name}={}", fieldstone_core::key::Quoted(&value.text())))
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
        Err(_) => "a damaged dataset".to_owned(),
    }
}
