//! Files out of a store: GRIB messages unchanged, one after the other; netCDF through the helper process.
//!
//! Invariants:
//! * a file is written under a temporary name next to its target and renamed when it is complete and durable; an
//!   existing target is only replaced if the caller says so;
//! * memory holds one part of a message;
//! * GRIB bytes are those of the store, in the order of the request.
//!
//! ```no_run
//! use fieldstone::{OpenOptions, Request, export};
//!
//! let store = fieldstone::open("forecasts", &OpenOptions::default())?;
//! let request = Request::parse("param=130,step=0/6/12")?;
//! let report = export::export(&store, &[request], "t.grib".as_ref(), &Default::default())?;
//! println!("{} messages, {} bytes", report.fields, report.bytes);
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use fieldstone_core::request::Request;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_store::api::{FieldStore, RetrieveOptions};
use fieldstone_store::{Field, Fields};
use serde_json::{Map, Value, json};

use crate::Skipped;
use crate::interop::helper::{Helper, HelperOptions};

/// Bytes read and written at a time.
const PART: u64 = 1 << 20;
/// Suffixes of GRIB files, and of netCDF files.
const GRIB: [&str; 7] = ["grib", "grib1", "grib2", "grb", "grb1", "grb2", "bin"];
const NETCDF: [&str; 5] = ["nc", "nc4", "cdf", "netcdf", "h5"];

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Messages, byte for byte.
    Grib,
    /// One of the formats of netCDF.
    Netcdf,
}

impl Form {
    /// The kind that `format` names, or else the suffix of `path`; a folder gets netCDF files.
    pub fn of(path: &Path, format: Option<&str>) -> Result<Form> {
        match format {
            Some("grib") => return Ok(Form::Grib),
            Some(_) => return Ok(Form::Netcdf),
            None => {}
        }
        let suffix = path.extension().map(|s| s.to_string_lossy().to_lowercase()).unwrap_or_default();
        if GRIB.contains(&suffix.as_str()) {
            Ok(Form::Grib)
        } else if NETCDF.contains(&suffix.as_str()) || path.is_dir() {
            Ok(Form::Netcdf)
        } else {
            Err(Code::FileFormat
                .error(format!("the name {} does not imply a format", path.display()))
                .with_hint("end it in .nc or .grib, or give the format: netcdf4, netcdf3, cdf5, grib"))
        }
    }
}

/// Options of [`export`].
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// `grib`, `netcdf4`, `netcdf4-classic`, `netcdf3`, `cdf1`, `cdf2` or `cdf5`; if absent, the path's suffix decides
    /// between GRIB and netCDF, and an ingested file keeps its own format.
    pub format: Option<String>,
    /// Whether to replace an existing file.
    pub overwrite: bool,
    /// Options for starting the helper.
    pub helper: HelperOptions,
}

/// Report of [`export`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Their format.
    pub format: String,
    /// Number of fields in them.
    pub fields: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Parts that a file lacks or has in another form.
    pub skipped: Vec<Skipped>,
}

/// Writes the fields that `requests` select, one request after another.
pub fn export(
    store: &dyn FieldStore,
    requests: &[Request],
    path: &Path,
    options: &ExportOptions,
) -> Result<ExportReport> {
    match Form::of(path, options.format.as_deref())? {
        Form::Grib => export_grib(store, requests, path, options.overwrite),
        Form::Netcdf => export_netcdf(store, requests, path, options),
    }
}

/// Writes GRIB messages. Fails with Invalid for a field that is not one, and names it.
pub fn export_grib(
    store: &dyn FieldStore,
    requests: &[Request],
    path: &Path,
    overwrite: bool,
) -> Result<ExportReport> {
    if !overwrite && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let options = RetrieveOptions::default();
    let selected =
        requests.iter().map(|request| store.retrieve(request, &options)).collect::<Result<Vec<_>>>()?;
    if selected.iter().all(Fields::is_empty) {
        return Err(Code::FieldNotFound
            .error("no field matches the request")
            .with_hint("see what exists with fieldstone axes or list"));
    }
    let mut report =
        ExportReport { files: vec![path.to_owned()], format: "GRIB".to_owned(), ..Default::default() };
    whole_file(path, overwrite, &mut |to| {
        for field in selected.iter().flat_map(Fields::iter) {
            let field = field?;
            report.bytes += copy_message(&field, to).map_err(|e| in_field(&field, e))?;
            report.fields += 1;
        }
        Ok(())
    })?;
    Ok(report)
}

fn copy_message(field: &Field, to: &mut dyn Write) -> Result<u64> {
    let nbytes = if field.dtype()?.is_none() { field.nbytes()? } else { 0 };
    let mut part = Vec::new();
    let mut done = 0;
    while done < nbytes {
        let n = PART.min(nbytes - done);
        part.resize(n as usize, 0);
        field.read_range(done, &mut part)?;
        if done == 0 && !part.starts_with(b"GRIB") {
            break;
        }
        to.write_all(&part).map_err(|e| cannot_write("", e))?;
        done += n;
    }
    if done == 0 {
        return Err(Code::FileFormat.error("it is not a GRIB message").with_hint(
            "export arrays to netCDF: end the path in .nc; get other bytes with `fieldstone get`",
        ));
    }
    Ok(done)
}

fn in_field(field: &Field, error: Error) -> Error {
    match field.key() {
        Ok(key) => error.context(key),
        Err(_) => error,
    }
}

fn exists(path: &Path) -> Error {
    Code::TargetExists
        .error(format!("{} exists", path.display()))
        .with_hint("give overwrite=True to replace it (--overwrite)")
}

fn cannot_write(what: &str, cause: std::io::Error) -> Error {
    let code = Some(Code::of_io(&cause)).filter(|code| code.kind() == ErrorKind::Unavailable);
    code.unwrap_or(Code::IoFailed).error(format!("cannot write{what}: {cause}")).with_source(cause)
}

/// Writes a file that appears complete and durable, or not at all.
pub(crate) fn whole_file(
    path: &Path,
    overwrite: bool,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let failed = |e: std::io::Error| cannot_write(&format!(" {}", path.display()), e);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Next to the target, so that it can be renamed; removed if the write fails.
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".part-{}", std::process::id()));
    let part = folder.join(name);
    let mut outcome = File::create(&part).map_err(failed).and_then(|file| {
        let mut to = BufWriter::with_capacity(PART as usize, file);
        write(&mut to)?;
        to.flush().map_err(failed)?;
        to.get_ref().sync_all().map_err(failed)
    });
    outcome = outcome.and_then(|()| match overwrite {
        true => std::fs::rename(&part, path).map_err(failed),
        false => match std::fs::hard_link(&part, path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
            linked => linked.map_err(failed),
        },
    });
    if outcome.is_err() || !overwrite {
        let _ = std::fs::remove_file(&part);
    }
    outcome
}

/// Has the helper write netCDF files from the store's current version.
fn export_netcdf(
    store: &dyn FieldStore,
    requests: &[Request],
    path: &Path,
    options: &ExportOptions,
) -> Result<ExportReport> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| Error::invalid(e.to_string()));
    let url = store.url();
    let url = match url.contains(':') {
        true => url.to_owned(),
        false => absolute(url.as_ref())?.to_string_lossy().into_owned(),
    };
    if url.starts_with("memory:") {
        return Err(Code::WrongStore
            .error("another process cannot read a store in memory")
            .with_hint("copy it to a folder first (fieldstone::transfer::copy)"));
    }
    let texts: Vec<String> = requests.iter().map(Request::to_string).collect();
    let Value::Object(what) = json!({
        "url": url,
        "at": store.version()?,
        "requests": texts,
        "path": absolute(path)?.to_string_lossy(),
        "format": options.format,
        "overwrite": options.overwrite,
    }) else {
        return Err(Error::internal("a request that is not an object"));
    };
    Helper::start(&options.helper)?.export(&what).map(|(facts, omitted)| report_of(&facts, omitted))
}

fn report_of(facts: &Map<String, Value>, omitted: Vec<(PathBuf, String, String)>) -> ExportReport {
    let number = |name: &str| facts.get(name).and_then(Value::as_u64).unwrap_or(0);
    let files = facts.get("files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    ExportReport {
        files: files.iter().filter_map(Value::as_str).map(PathBuf::from).collect(),
        format: facts.get("format").and_then(Value::as_str).unwrap_or_default().to_owned(),
        fields: number("fields"),
        bytes: number("bytes"),
        skipped: omitted.into_iter().map(|(path, what, why)| Skipped { path, what, why }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_or_a_suffix_says_what_is_written() {
        let form = |path: &str, format| Form::of(Path::new(path), format);
        assert_eq!(form("a.NC", None).unwrap(), Form::Netcdf);
        assert_eq!(form("a.grib2", None).unwrap(), Form::Grib);
        assert_eq!(form("/", None).unwrap(), Form::Netcdf);
        assert_eq!(form("a.nc", Some("grib")).unwrap(), Form::Grib);
        assert_eq!(form("a", Some("cdf5")).unwrap(), Form::Netcdf);
        let error = form("a.dat", None).unwrap_err();
        assert_eq!(error.message(), "the name a.dat does not imply a format");
    }
}
