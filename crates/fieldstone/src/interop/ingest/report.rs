//! Report of an ingest: the files that it took, under which keys, and those that it left out, for which reasons.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fieldstone_core::request::{Request, Values};
use fieldstone_core::{Code, Result};

use super::{WHOLE_FILE, WHOLE_FOLDER, WHOLE_PATTERN};
use crate::interop::helper::Texts;

/// Number of reasons, and of files per reason, that an error and a line of text name.
const SHOWN: usize = 3;

/// A file that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The file.
    pub path: PathBuf,
    /// Fields that the store has now and lacked before.
    pub fields: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Fields, provenance and meshes that the store already had, equal in every byte.
    pub unchanged: u64,
    /// Vertices and relations that the graph has now and lacked before.
    pub relations: u64,
    /// Meshes that the store has now and lacked before.
    pub meshes: u64,
    /// The part that the keys of its fields share: for netCDF the run, for GRIB the keywords equal in all messages.
    pub key: Texts,
    /// Keywords that the keys of its fields lack, but other files' keys have that agree with it otherwise: with them
    /// absent, the key selects this file alone.
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

/// A file or part that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// The part of it (a variable, a message), or `the file`.
    pub what: String,
    /// The reason, with advice.
    pub why: String,
}

impl Skipped {
    /// Whether it is a whole file, folder or pattern, rather than a part of a file whose rest was taken.
    pub fn is_whole(&self) -> bool {
        [WHOLE_FILE, WHOLE_FOLDER, WHOLE_PATTERN].contains(&self.what.as_str())
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path.display(), self.what, self.why)
    }
}

/// Report of [`ingest`](super::ingest).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestReport {
    /// Number of files, from single paths, folders and patterns; a folder or pattern without files counts, too.
    pub files: usize,
    /// Number of files that were examined: all of them, unless the ingest ended early.
    pub done: usize,
    /// Files that were taken, completely or in part, in their order.
    pub taken: Vec<Taken>,
    /// Files and parts of files that were not taken, with the reasons.
    pub skipped: Vec<Skipped>,
    /// Whether only the meshes of the files were asked for.
    pub of_meshes: bool,
}

/// The omissions for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason<'a> {
    /// The reason.
    pub why: &'a str,
    /// The omitted files and parts, in their order.
    pub skipped: Vec<&'a Skipped>,
}

impl IngestReport {
    /// Fields that the store has now and lacked before.
    pub fn fields(&self) -> u64 {
        self.taken.iter().fold(0, |sum, taken| sum.saturating_add(taken.fields))
    }

    /// Their bytes.
    pub fn nbytes(&self) -> u64 {
        self.taken.iter().fold(0, |sum, taken| sum.saturating_add(taken.bytes))
    }

    /// Number of examined files of which not even a part was taken.
    pub fn missed(&self) -> usize {
        self.done.saturating_sub(self.taken.len())
    }

    /// The omissions by reason, in the order of their first appearance; whole files before parts of files.
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

    /// Fails with Invalid if no part of any file was taken: names the reasons, up to a few.
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
