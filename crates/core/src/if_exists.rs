//! The behaviour of an archive to an existing field: calls, runs and stores each may set it.

use crate::{Code, Result};

/// The behaviour of an archive to a key that has a field already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// It makes a newer version. "new"
    #[default]
    New,
    /// Conflict, at the call and again at the flush. "error"
    Error,
}

impl IfExists {
    /// Reads `new` or `error`.
    pub fn parse(text: &str) -> Result<IfExists> {
        match text {
            "new" => Ok(IfExists::New),
            "error" => Ok(IfExists::Error),
            _ => Err(Code::Option
                .error(format!("if_exists={text:?} is not known"))
                .with_hint("use \"new\" (a newer version) or \"error\" (Conflict)")),
        }
    }

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            IfExists::New => "new",
            IfExists::Error => "error",
        }
    }
}
