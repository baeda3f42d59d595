//! Options for creating and opening a container.

use std::path::Path;

use fieldstone_core::env::comm::{Step, Team};
use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::Version;
use fieldstone_format::netcdf::layout::Alignment;

use crate::container::enddef::Indexing;
use crate::container::model::{Format, Strategy};

/// Options of [`Container::create`](super::Container::create).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateOptions {
    /// The format; CDF-5 by default.
    pub format: Format,
    /// The method by which ranks build one header; `None` for the format's default.
    pub strategy: Option<Strategy>,
    /// Whether the file gets a name index.
    pub indexing: Indexing,
    /// Whether unwritten elements read as the fill value; otherwise they are zeros.
    pub fill: bool,
    /// Alignment of data, and space reserved for later definitions.
    pub alignment: Alignment,
}

impl Default for CreateOptions {
    fn default() -> CreateOptions {
        CreateOptions {
            format: Format::Classic(Version::Cdf5),
            strategy: None,
            indexing: Indexing::Auto,
            fill: false,
            alignment: Alignment::default(),
        }
    }
}

/// Options of a call by name and value, as text. All ranks pass the same.
pub(super) type NamedOptions = Vec<(&'static str, String)>;

impl CreateOptions {
    /// The options as text, with the resulting strategy.
    pub(super) fn named_options(&self, strategy: Strategy) -> NamedOptions {
        let slots = match strategy {
            Strategy::LibraryHash { slots } => Some(slots),
            _ => None,
        };
        let index = match self.indexing {
            Indexing::Auto => "auto",
            Indexing::Always => "always",
            Indexing::Never => "never",
        };
        let Alignment { v_align, r_align, h_minfree, v_minfree } = self.alignment;
        let words = [("format", self.format.word()), ("strategy", strategy.word()), ("index", index)];
        let mut given: NamedOptions = words.into_iter().map(|(name, word)| (name, word.to_owned())).collect();
        given.extend(slots.map(|slots| ("hash_size", slots.to_string())));
        given.push(("fill", self.fill.to_string()));
        let numbers =
            [("v_align", v_align), ("r_align", r_align), ("h_minfree", h_minfree), ("v_minfree", v_minfree)];
        given.extend(numbers.map(|(name, number)| (name, number.to_string())));
        given
    }
}

impl Mode {
    /// The mode as text.
    pub(super) fn named_options(self) -> NamedOptions {
        let word = if self == Mode::Read { "r" } else { "a" };
        vec![("mode", word.to_owned())]
    }
}

/// Collective, and the first step of `create` and `open`: checks that all ranks pass the same path and options.
/// Returns rank 0's decision on all ranks.
///
/// Errors: the error of any rank that cannot take part; `Conflict` that names the option and the values of two ranks.
pub(super) fn agree_on(
    team: &Team,
    step: impl Into<Step>,
    path: &Path,
    given: Result<NamedOptions>,
    decide: impl FnOnce() -> Result<String>,
) -> Result<String> {
    let step = step.into();
    // Parts end in zero bytes: neither values nor paths of files contain one.
    let own_path = path.as_os_str().as_encoded_bytes();
    let given = given.and_then(|given| match own_path.contains(&0) {
        true => Err(Code::Name.error(format!("the path {path:?} contains a zero byte"))),
        false => Ok(given),
    });
    let mut parts = Vec::new();
    let mut sent = given.map(|given| {
        parts = given;
        parts.push(("hints", team.hints().to_string()));
        Vec::new()
    });
    if team.rank() == 0 {
        sent = sent.and_then(|_| {
            let decided = decide()?.into_bytes();
            let values = parts.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
            Ok([&decided[..], own_path].into_iter().chain(values).collect::<Vec<_>>().join(&0))
        });
    }
    let received = team.broadcast(step, 0, sent)?;
    let mut received = received.split(|byte| *byte == 0);
    let decided = String::from_utf8_lossy(received.next().unwrap_or_default()).into_owned();
    let root_path = received.next().unwrap_or_default();
    let mut received = received.map(String::from_utf8_lossy);
    let shown = path.display();
    let mut same = Ok(());
    if root_path != own_path {
        let root_path = String::from_utf8_lossy(root_path);
        let text = format!("this rank {step}s {shown}, but rank 0 {step}s {root_path}");
        same = Err(Code::CollectiveMismatch.error(text).with_hint("pass the same path on all ranks"));
    }
    for (name, own) in &parts {
        let (root_name, root) = (received.next().unwrap_or_default(), received.next().unwrap_or_default());
        if same.is_ok() && (root_name != *name || root != *own) {
            let text =
                format!("this rank {step}s {shown} with {name} {own}, but rank 0 with {root_name} {root}");
            same = Err(Code::CollectiveMismatch.error(text).with_hint("pass the same options on all ranks"));
        }
    }
    team.agree(step, same.map(|()| decided))
}

/// The mode in which a container is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// For reading.
    Read,
    /// For reading, writing and further definitions.
    Append,
}
