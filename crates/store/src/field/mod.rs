//! Many fields at once, whatever store they come from.
//!
//! * `bulk` reads many of them into one buffer;
//! * `stream` gives them as one file.

mod bulk;
mod stream;

pub(crate) use bulk::read_many;
pub use stream::FieldsReader;
