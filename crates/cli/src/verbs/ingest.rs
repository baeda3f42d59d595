//! `fieldstone ingest`: netCDF and GRIB files, fields of an FDB, and recorded provenance, into a store.

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
use crate::output::{Done, Out, Stop, count, size};
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

netCDF: a field per variable and value of its leading coordinate, under run (the file's name), variable
and step, for stores of schema simulation. GRIB: a field per message, byte for byte, under its MARS keys,
for stores of schema mars. Stores of schema mixed take both. A new store gets the schema that fits: mars for GRIB,
mixed for GRIB and netCDF, else simulation; --schema says otherwise.

Folders are walked; names that begin with a dot are left out. A file is taken whole or not at all, and a file taken
twice adds nothing: after Ctrl-C, which prints the report so far, the same command goes on. The report has the key of
each file, what could not be taken by reasons, and totals. Ends with 2 where a file could not be taken; what was left
out of the others is reported and is no error.

fdb:CONFIG is an FDB, by the path of its configuration; a request after it selects fields. A new store gets
the FDB's schema. Each of its datasets is taken whole or not at all; run again, it goes on where it broke off.

Darshan logs, text of sacct -P with its header (times in UTC, or as --tz says), OpenLineage events and, with --tree, directories go into
the provenance graph: see `fieldstone trace`.

With --mesh the unstructured mesh of a file is taken, and nothing else of it: UGRID, MPAS, ICON, ESMF, SCRIP, Exodus,
FESOM, GEOS, SU2, gmsh, VTK, AFLR3, Medit, Abaqus and others. It is kept once, by its content, with nodes and cells in
the file's order: see `fieldstone mesh`.

The files are read by a Python that has the package fieldstone with netCDF4, eccodes,
darshan, pyfdb, uxarray and meshio (FIELDSTONE_PYTHON names another one).";

/// Take netCDF and GRIB files, and recorded provenance, into a store
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
    /// Take the unstructured mesh of the file, under this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key", "tree", "no_copy"])]
    mesh: Option<String>,
    /// Take directories, too: what stands in them, as vertices of the graph
    #[arg(long)]
    tree: bool,
    /// Where sacct ran, local time was so far ahead of UTC: +01:00
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    tz: Option<String>,
    /// Take of a folder only its own files, and none of the folders below it
    #[arg(long)]
    no_recursive: bool,
    /// Split variables of netCDF files into steps along this dimension alone
    #[arg(long, value_name = "NAME")]
    step_dim: Option<String>,
    /// Split no variable into steps: each is one field
    #[arg(long, conflicts_with = "step_dim")]
    no_step_dim: bool,
    /// Leave the values in their files (netCDF classic and GRIB); the store keeps places and checksums
    #[arg(long)]
    no_copy: bool,
}

/// Ingests, and prints a line per file taken and per thing left out.
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

    // What was taken before an error stays, and is reported.
    if outcome.is_ok() || report.done > 0 || interrupted {
        match out.json() {
            true => out.document(&json::moved::ingested(&report, interrupted))?,
            false => ingested::print(&report, arguments.mesh.is_some(), out)?,
        }
    }
    if interrupted {
        out.note("interrupted; the same command goes on: what was taken stays and is not taken twice");
        return Err(Stop::Exit(stop.code().unwrap_or(INTERRUPTED)));
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
    /// The FDB that is meant, where it is one: `fdb:CONFIG` and a request in one or several words.
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
        if is_new && self.store.existing {
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
        Ok(Writing { store: url.clone(), schema, compression, existing: self.store.existing }.open()?)
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
