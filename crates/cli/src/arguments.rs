//! Arguments that several verbs share: the store, the version to read, the request.

use std::sync::Arc;

use clap::Args;
use fieldstone::{Error, FieldStore, Mode, OpenOptions, Request, Result};

/// The store of a verb that reads.
#[derive(Debug, Args)]
pub struct Reading {
    /// The store: a folder
    pub store: String,
    /// Read the store as it was at this version (see `fieldstone version`)
    #[arg(long, value_name = "VERSION")]
    pub at: Option<String>,
}

impl Reading {
    /// Opens it for reading; NotFound where no store is.
    pub fn open(&self) -> Result<Arc<dyn FieldStore>> {
        let options = OpenOptions { mode: Mode::Read, at: self.at.clone(), ..OpenOptions::default() };
        fieldstone::open(&self.store, &options)
    }
}

/// The store of a verb that writes.
#[derive(Debug, Args)]
pub struct Writing {
    /// The store: a folder; made where it is absent
    pub store: String,
    /// simulation, mars, or a schema file's path; the store's own where it is not given
    #[arg(long)]
    pub schema: Option<String>,
    /// How bytes are compressed: none, zstd or zstd:LEVEL
    #[arg(long, value_name = "HOW")]
    pub compression: Option<String>,
}

impl Writing {
    /// Opens it for reading and writing.
    pub fn open(&self) -> Result<Arc<dyn FieldStore>> {
        let compression = self.compression.as_deref().map(fieldstone::Compression::parse).transpose()?;
        let schema = self.schema.clone();
        fieldstone::open(&self.store, &OpenOptions { mode: Mode::Append, schema, at: None, compression })
    }
}

/// What a verb is about.
#[derive(Debug, Args)]
pub struct Selecting {
    /// Which fields, such as run=a,step=0/to/24/by/6; all where it is not given
    #[arg(value_name = "REQUEST")]
    pub request: Vec<String>,
}

impl Selecting {
    /// The request; the one that selects everything where none is given.
    pub fn parse(&self) -> Result<Request> {
        Request::parse(&join(&self.request))
    }

    /// What to tell where nothing was found: a keyword that the schema does not name may be meant as
    /// another one, and is no error where the schema lets keys have further keywords.
    pub fn advice(&self, store: &dyn FieldStore) -> Option<String> {
        let request = self.parse().ok()?;
        let known = store.schema().keywords();
        let known = || known.iter().map(|k| &**k);
        let unknown = request.iter().map(|(k, _)| k).find(|k| known().all(|name| name != *k))?;
        let meant = fieldstone::nearest::did_you_mean(unknown, known())?;
        Some(format!("the schema has no keyword `{unknown}`: {meant}"))
    }
}

/// Joins what the shell split: `run=a step=1` as well as `retrieve, class = od , type = pf`. A comma is
/// put where neither side has a sign that goes on.
pub fn join<S: AsRef<str>>(arguments: &[S]) -> String {
    let mut text = String::new();
    for argument in arguments {
        let argument = argument.as_ref();
        let open = text.is_empty()
            || text.trim_end().ends_with([',', '=', '/'])
            || argument.trim_start().starts_with([',', '=', '/']);
        if !open {
            text.push(',');
        }
        text.push_str(argument);
    }
    text
}

/// Whole numbers separated by commas: `64,128`.
pub fn numbers(option: &str, text: &str) -> Result<Vec<u64>> {
    let number = |n: &str| {
        let wrong = || {
            Error::invalid(format!("{option}: '{n}' is no whole number"))
                .with_hint(format!("write one number per dimension, such as {option} 64,128"))
        };
        n.trim().parse::<u64>().map_err(|_| wrong())
    };
    text.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_joined_as_a_request_is_written() {
        for (arguments, text) in [
            (vec![], ""),
            (vec!["run=a,step=1"], "run=a,step=1"),
            (vec!["run=a", "step=1/to/5"], "run=a,step=1/to/5"),
            (vec!["run=a,", "step=1"], "run=a,step=1"),
            (vec!["retrieve,", "class", "=", "od", ",", "type", "=pf"], "retrieve,class=od,type=pf"),
            (vec!["step=1/", "to/", "5"], "step=1/to/5"),
        ] {
            assert_eq!(join(&arguments), text);
        }
    }

    #[test]
    fn numbers_are_read_and_named_when_wrong() {
        assert_eq!(numbers("--shape", "2, 3").unwrap(), [2, 3]);
        let error = numbers("--shape", "2,x").unwrap_err();
        assert_eq!(error.message(), "--shape: 'x' is no whole number");
    }
}
