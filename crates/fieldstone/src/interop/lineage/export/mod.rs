//! A lineage in the formats of other tools: PROV-JSON, OpenLineage, RO-Crate, Graphviz, a picture.
//!
//! Each is a function of a [`Dossier`] alone: the same lineage gives the same text, byte for byte, at any time and
//! place. Ids hold any characters, so every format has its own escapes (`names`).
//!
//! | form | content |
//! |---|---|
//! | `prov` | W3C PROV-JSON: data are entities, with a version for each writer if there are several |
//! | `openlineage` | run events; `ingest` takes them back as the same relations |
//! | `rocrate` | metadata of a Process Run Crate: an action for each job |
//! | `dot` | text for Graphviz |
//! | `svg` | a picture, laid out in layers |

mod dot;
mod layers;
pub(crate) mod names;
mod openlineage;
mod prov;
mod rocrate;
mod sketch;
mod svg;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use fieldstone_core::{Code, Error, Result};
use fieldstone_graph::dossier::Dossier;
use serde_json::Value as Json;

use crate::interop::export::whole_file;

/// A format for a lineage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineageFormat {
    /// W3C PROV-JSON.
    ProvJson,
    /// A list of OpenLineage events.
    OpenLineage,
    /// `ro-crate-metadata.json` of a Process Run Crate.
    RoCrate,
    /// Text for Graphviz.
    Dot,
    /// A picture.
    Svg,
}

impl LineageFormat {
    /// All of them.
    pub const ALL: [LineageFormat; 5] = [
        LineageFormat::ProvJson,
        LineageFormat::OpenLineage,
        LineageFormat::RoCrate,
        LineageFormat::Dot,
        LineageFormat::Svg,
    ];

    /// The name that callers use.
    pub fn name(self) -> &'static str {
        match self {
            LineageFormat::ProvJson => "prov-json",
            LineageFormat::OpenLineage => "openlineage",
            LineageFormat::RoCrate => "ro-crate",
            LineageFormat::Dot => "dot",
            LineageFormat::Svg => "svg",
        }
    }
}

impl fmt::Display for LineageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LineageFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<LineageFormat> {
        LineageFormat::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = LineageFormat::ALL.map(LineageFormat::name).join(", ");
            Code::Option
                .error(format!("'{name}' is not a lineage format"))
                .with_hint(format!("use one of {known}"))
        })
    }
}

/// The text of a lineage in a format.
pub fn export(dossier: &Dossier, format: LineageFormat) -> String {
    match format {
        LineageFormat::ProvJson => lines(&prov::document(dossier)),
        LineageFormat::OpenLineage => lines(&openlineage::events(dossier)),
        LineageFormat::RoCrate => lines(&rocrate::metadata(dossier)),
        LineageFormat::Dot => dot::text(dossier),
        LineageFormat::Svg => svg::picture(dossier),
    }
}

/// Writes a text to a file, replacing an existing one atomically: readers see a complete file.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let failed = |e| Error::io("write", path, e);
    // A device or a pipe is written in place, and keeps its name.
    if std::fs::metadata(path).is_ok_and(|known| !known.is_file()) {
        return std::fs::write(path, text).map_err(failed);
    }
    // Replaces the target of a link, not the link itself.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::metadata(folder).map_err(failed)?;
    whole_file(&target, true, &mut |to| to.write_all(text.as_bytes()).map_err(failed))
}

/// JSON as text for people; with these values it cannot fail.
fn lines(json: &Json) -> String {
    let mut text = serde_json::to_string_pretty(json).unwrap_or_default();
    text.push('\n');
    text
}
