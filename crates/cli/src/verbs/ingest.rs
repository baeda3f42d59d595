//! `fieldstone ingest`: adds netCDF and GRIB files, fields of an FDB, and recorded provenance to a store.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use clap::Args;
use fieldstone::helper::HelperOptions;
use fieldstone::{
    Error, ErrorKind, FdbSource, IngestOptions, IngestReport, Mode, OpenOptions, Progress, Request, StepDim,
    json,
};

use crate::arguments::{Writing, join};
use crate::ingested;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::output::{Done, EarlyEnd, Out, count, size};
use crate::progress::Bar;

const EXAMPLES: &str = "\
Examples:
  fieldstone ingest store ocean.nc atmosphere.nc
  fieldstone ingest forecasts *.grib2
  fieldstone ingest everything heap/ 'more/**/*.nc'
  fieldstone ingest store result.nc --key run=experiment-7
  fieldstone ingest store *.darshan jobs.txt events.json
  fieldstone ingest store grid.su2 --mesh wing
  fieldstone ingest store fdb:config.yaml class=rd,expver=xxxx,step=0/to/24/by/6

From netCDF it makes a field for each variable and value of its leading coordinate, with the keywords run (the file's
name), variable and step, in stores with the schema simulation. From GRIB it makes a field for each message, byte for
byte, with its MARS key, in stores with the schema mars. Stores with the schema mixed accept both. A new store gets the
schema that fits: mars for GRIB, mixed for GRIB and netCDF, else simulation, unless --schema names one.

It walks folders and leaves out names that begin with a dot. It adds either all of a file or nothing, and adding the
same file again changes nothing: after Ctrl-C, which prints the report so far, run the same command again to go on. The
report has the key of each file, the rejected files grouped by reason, and totals. Ends with 2 if it rejected a file.
Parts left out of accepted files are in the report, and are not errors.

fdb:CONFIG is an FDB, by the path of its configuration; a request after it selects fields. A new store gets the FDB's
schema. Each dataset is added whole or not at all; if you run the command again, it goes on where it stopped.

Darshan logs, the text of sacct -P with its header (times in UTC, or as --tz says), OpenLineage events and, with --tree,
directories go into the provenance graph: see `fieldstone trace`.

With --mesh it adds only the unstructured mesh of a file: UGRID, MPAS, ICON, ESMF, SCRIP, Exodus, FESOM, GEOS, SU2,
gmsh, VTK, AFLR3, Medit, Abaqus and others. The store keeps each mesh once, by its content, with nodes and cells in the
file's order: see `fieldstone mesh`.

To read the files, the program runs a Python that has the package fieldstone with netCDF4, eccodes, darshan, pyfdb,
uxarray and meshio (FIELDSTONE_PYTHON names another one).";

/// Add netCDF and GRIB files, and recorded provenance, to a store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The files, folders of files, or patterns in quotes; or fdb:CONFIG and a request
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Further keywords for every field, such as run=experiment-7
    #[arg(long)]
    key: Option<String>,
    /// Add only the unstructured mesh of the file, under this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key", "tree", "no_copy"])]
    mesh: Option<String>,
    /// Also add the directories and what they contain, as vertices of the graph
    #[arg(long)]
    tree: bool,
    /// The offset from UTC of the times that sacct printed: +01:00
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    tz: Option<String>,
    /// Add only the files directly in a folder, not those of folders below it
    #[arg(long)]
    no_recursive: bool,
    /// Split variables of netCDF files into steps along this dimension alone
    #[arg(long, value_name = "NAME")]
    step_dim: Option<String>,
    /// Do not split variables into steps: each becomes one field
    #[arg(long, conflicts_with = "step_dim")]
    no_step_dim: bool,
    /// Leave the values in their files (netCDF classic and GRIB); the store keeps offsets and checksums
    #[arg(long)]
    no_copy: bool,
}

/// Ingests, and prints a line for each file added and for each part left out.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let key = match &arguments.key {
        Some(key) => Request::parse(key)?.single_pairs()?,
        None => Vec::new(),
    };
    let source = arguments.fdb()?;
    let store = arguments.open(source.as_ref())?;
    let (bar, begun) = (Bar::new(out), Cell::new(None));
    let stop = Interrupt::watch();
    let progress = |p: &Progress<'_>| {
        if stop.is_asked() {
            return Err(Error::invalid("interrupted"));
        }
        show(p, &begun, &bar, out);
        Ok(())
    };
    let options = IngestOptions {
        key,
        external: arguments.no_copy,
        mesh: arguments.mesh.clone(),
        tree: arguments.tree,
        ahead: arguments.tz.as_deref().map(fieldstone::lineage::utc_offset).transpose()?.unwrap_or(0),
        shallow: arguments.no_recursive,
        step_dim: match (&arguments.step_dim, arguments.no_step_dim) {
            (Some(name), _) => StepDim::Named(name.clone()),
            (None, true) => StepDim::Nothing,
            (None, false) => StepDim::Leading,
        },
        progress: Some(&progress),
        ..IngestOptions::default()
    };
    let mut report = IngestReport::default();
    let outcome = match &source {
        Some(source) => fieldstone::ingest_fdb(&store, source, &options).map(|done| report = done),
        None => fieldstone::ingest_into(&store, &arguments.files, &options, &mut report),
    };
    let interrupted = outcome.is_err() && stop.is_asked();
    drop(bar);
    if let Some(undated) = store.undated() {
        out.note(undated);
    }
    if outcome.is_ok() {
        store.close()?;
    }

    // The files added before an error stay, and are reported.
    if outcome.is_ok() || report.done > 0 || interrupted {
        match out.json() {
            true => out.document(&json::moved::ingested(&report, interrupted))?,
            false => ingested::print(&report, arguments.mesh.is_some(), out)?,
        }
    }
    if interrupted {
        out.note("interrupted; the same command goes on: what was taken stays and is not taken twice");
        return Err(EarlyEnd::Exit(stop.code().unwrap_or(INTERRUPTED)));
    }
    outcome?;
    match report.missed() {
        0 => Ok(()),
        n => Err(Error::invalid(format!("{n} of {} could not be taken", count(report.files as u64, "file")))
            .with_hint("the report on stdout has the reasons")
            .into()),
    }
}

impl Arguments {
    /// The FDB that the arguments name, if they name one: `fdb:CONFIG`, and a request in one or several words.
    fn fdb(&self) -> Done<Option<FdbSource>> {
        let Some(config) = self.files.first().and_then(|first| FdbSource::config_of(first)) else {
            return Ok(None);
        };
        if self.no_copy {
            return Err(Error::invalid("the fields of an FDB cannot stay where they are")
                .with_hint("leave out --no-copy")
                .into());
        }
        let words: Vec<_> = self.files.iter().skip(1).map(|word| word.to_string_lossy()).collect();
        Ok(Some(FdbSource { config, request: Request::parse(&join(&words))? }))
    }

    /// Opens the store; a new one gets the schema that fits the files.
    fn open(&self, source: Option<&FdbSource>) -> Done<fieldstone::Store> {
        let url = &self.store.store;
        let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        let is_new = self.store.schema.is_none()
            && matches!(fieldstone::open(url, &reading), Err(e) if e.kind() == ErrorKind::NotFound);
        if is_new && self.store.must_exist {
            return Ok(self.store.open()?);
        }
        let schema = match is_new {
            true => Some(match source {
                Some(source) => fieldstone::fdb_schema(&source.config, &HelperOptions::default())?,
                None => fieldstone::suggest_schema(&self.files).to_owned(),
            }),
            false => self.store.schema.clone(),
        };
        let compression = self.store.compression.clone();
        Ok(Writing { store: url.clone(), schema, compression, must_exist: self.store.must_exist }.open()?)
    }
}

/// Progress on stderr: a bar on a terminal, otherwise a line when a file begins.
fn show(p: &Progress<'_>, begun: &Cell<Option<usize>>, bar: &Bar<'_>, out: &Out) {
    let name = p.path.file_name().map_or_else(|| p.path.display(), |name| Path::new(name).display());
    let which = p.index + 1;
    if !bar.is_seen() {
        if begun.replace(Some(p.index)) != Some(p.index) {
            out.note(format_args!("reading {name} ({which} of {})", p.files));
        }
        return;
    }
    let amount = || format!("{} of {}  {which} of {}: {name}", size(p.done), size(p.of), p.files);
    bar.show(p.index, p.done, p.of, amount);
}
