//! Compression of blocks: a setting of a schema, a handle or a call.

use crate::{Code, Result};

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// zstd with this level (1 to 22).
    Zstd(i32),
}

impl Compression {
    /// Reads `none`, `zstd` or `zstd:LEVEL`.
    pub fn parse(text: &str) -> Result<Compression> {
        match text.split_once(':').unwrap_or((text, "3")) {
            ("none", _) if text == "none" => Ok(Compression::None),
            ("zstd", level) => match level.parse() {
                Ok(level @ 1..=22) => Ok(Compression::Zstd(level)),
                _ => Err(Code::Option.error(format!("'{text}': the zstd level is a number from 1 to 22"))),
            },
            _ => Err(Code::Option
                .error(format!("'{text}' is not a compression"))
                .with_hint("use none, zstd or zstd:LEVEL")),
        }
    }
}
