//! What an ingest took, under which keys, and what it left out, for which reasons.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fieldstone_core::request::{Request, Values};
use fieldstone_core::{Code, Result};

use super::{WHOLE_FILE, WHOLE_FOLDER, WHOLE_PATTERN};
use crate::interop::helper::Texts;

/// How many reasons, and how many files of one, an error and a line of text name.
const SHOWN: usize = 3;

/// A file that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The file.
    pub path: PathBuf,
    /// Fields that the store has now and had not before.
    pub fields: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Fields that the store had already, equal in every byte, what of provenance the graph had, and meshes that there were.
    pub unchanged: u64,
    /// Vertices and relations of the graph that are there now and were not before.
    pub relations: u64,
    /// Meshes that there are now and were not before.
    pub meshes: u64,
    /// What the keys of its fields have in common: of a netCDF file its run, of GRIB what all messages say.
    pub key: Texts,
    /// Keywords that no key of its fields has, and those of other files do that have the rest in common with it: with
    /// them the key selects this file alone.
    pub lacks: Vec<String>,
}

impl Taken {
    pub(super) fn nothing(path: &Path) -> Taken {
        let path = path.to_owned();
        Taken {
            path,
            fields: 0,
            bytes: 0,
            unchanged: 0,
            relations: 0,
            meshes: 0,
            key: Texts::new(),
            lacks: vec![],
        }
    }

    /// The request that selects its fields.
    pub fn request(&self) -> Request {
        let mut request = Request::new();
        for (keyword, value) in &self.key {
            request.set(keyword, Values::list([value]));
        }
        for keyword in &self.lacks {
            request.set(keyword, Values::Absent);
        }
        request
    }
}

/// Something that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// The part of it (a variable, a message), or `the file`.
    pub what: String,
    /// The reason, with what can be done about it.
    pub why: String,
}

impl Skipped {
    /// Whether it is a whole file, or a folder or pattern, and not a part of a file of which the rest was taken.
    pub fn is_whole(&self) -> bool {
        [WHOLE_FILE, WHOLE_FOLDER, WHOLE_PATTERN].contains(&self.what.as_str())
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path.display(), self.what, self.why)
    }
}

/// What [`ingest`](super::ingest) did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestReport {
    /// How many files were named, by themselves, by folders and patterns; a folder or pattern without one counts, too.
    pub files: usize,
    /// How many of them were looked at: all of them, unless the ingest ended early.
    pub done: usize,
    /// Files that were taken, whole or in part, in their order.
    pub taken: Vec<Taken>,
    /// Files and parts of files that were not, with the reasons.
    pub skipped: Vec<Skipped>,
    /// Whether the meshes of the files were asked for, and nothing else of them.
    pub of_meshes: bool,
}

/// What was left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason<'a> {
    /// The reason.
    pub why: &'a str,
    /// What was left out, in its order.
    pub skipped: Vec<&'a Skipped>,
}

impl IngestReport {
    /// Fields that the store has now and had not before.
    pub fn fields(&self) -> u64 {
        self.taken.iter().fold(0, |sum, taken| sum.saturating_add(taken.fields))
    }

    /// Their bytes.
    pub fn nbytes(&self) -> u64 {
        self.taken.iter().fold(0, |sum, taken| sum.saturating_add(taken.bytes))
    }

    /// How many files were looked at and not taken, not even a part of them.
    pub fn missed(&self) -> usize {
        self.done.saturating_sub(self.taken.len())
    }

    /// What was left out, by reasons, in the order in which these came up; whole files before parts of files.
    pub fn reasons(&self) -> Vec<Reason<'_>> {
        let mut found: Vec<Reason<'_>> = Vec::new();
        let mut places: HashMap<(bool, &str), usize> = HashMap::new();
        let (whole, parts): (Vec<&Skipped>, Vec<&Skipped>) =
            self.skipped.iter().partition(|skipped| skipped.is_whole());
        for skipped in whole.into_iter().chain(parts) {
            let why = skipped.why.as_str();
            let place = *places.entry((skipped.is_whole(), why)).or_insert_with(|| {
                found.push(Reason { why, skipped: Vec::new() });
                found.len() - 1
            });
            found[place].skipped.push(skipped);
        }
        found
    }

    /// Invalid where files were named and nothing of any was taken: with the reasons, as far as they are few.
    pub fn check(&self) -> Result<()> {
        if !self.taken.is_empty() || self.skipped.is_empty() {
            return Ok(());
        }
        let reasons = self.reasons();
        let shown: Vec<String> = reasons.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = reasons.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("; and {more} other reasons") } else { String::new() };
        let hint = match self.of_meshes {
            true => "name a file with an unstructured mesh: UGRID, Exodus, MPAS, SU2, gmsh, VTK …",
            false => "take netCDF, GRIB, containers, Darshan logs, text of sacct -P, or OpenLineage events",
        };
        Err(Code::NothingTaken
            .error(format!("nothing was taken: {}{more}", shown.join("; ")))
            .with_hint(hint))
    }
}

impl fmt::Display for Reason<'_> {
    /// `a.txt, b.txt and 3 more: neither GRIB nor netCDF`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, skipped) in self.skipped.iter().take(SHOWN).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}", skipped.path.display())?;
            if skipped.what != WHOLE_FILE {
                write!(f, ": {}", skipped.what)?;
            }
        }
        if let Some(more) = self.skipped.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            write!(f, " and {more} more")?;
        }
        write!(f, ": {}", self.why)
    }
}
