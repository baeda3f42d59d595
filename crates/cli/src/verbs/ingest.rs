//! `fieldstone ingest`: netCDF and GRIB files, fields of an FDB, and recorded provenance, into a store.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use fieldstone::helper::HelperOptions;
use fieldstone::{
    Error, ErrorKind, FdbSource, IngestOptions, IngestReport, Mode, OpenOptions, Progress, Request,
};
use serde_json::{Value, json};

use crate::arguments::{Writing, join};
use crate::output::{Done, Out, count};

/// Characters of the progress bar.
const BAR: u64 = 30;

const EXAMPLES: &str = "\
Examples:
  fieldstone ingest store ocean.nc atmosphere.nc
  fieldstone ingest forecasts *.grib2
  fieldstone ingest store result.nc --key run=experiment-7
  fieldstone ingest store *.darshan jobs.txt events.json
  fieldstone ingest store grid.su2 --mesh wing
  fieldstone ingest store fdb:config.yaml class=rd,expver=xxxx,step=0/to/24/by/6

netCDF: a field per variable and value of its leading coordinate, under run (the file's name), variable
and step, for stores of schema simulation. GRIB: a field per message, byte for byte, under its MARS keys,
for stores of schema mars. A new store gets the schema that fits its first file. A file is taken whole
or not at all, and a file taken twice adds nothing. Ends with 2 where a file could not be taken; what was
left out of the others is reported and is no error.

fdb:CONFIG is an FDB, by the path of its configuration; a request after it selects fields. A new store gets
the FDB's schema. Each of its datasets is taken whole or not at all; run again, it goes on where it broke off.

Darshan logs, text of sacct -P with its header (times in UTC), OpenLineage events and, with --tree, directories go into
the provenance graph: see `fieldstone trace`.

With --mesh the unstructured mesh of a file is taken, and nothing else of it: UGRID, MPAS, ICON, ESMF, SCRIP, Exodus,
FESOM, GEOS, SU2, gmsh, AFLR3. It is kept once, by its content: see `fieldstone mesh`.

The files are read by a Python that has the package fieldstone with netCDF4, eccodes,
darshan, pyfdb, uxarray and meshio (FIELDSTONE_PYTHON names another one).";

/// Take netCDF and GRIB files, and recorded provenance, into a store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The files; or fdb:CONFIG and a request
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
    /// Leave the values in their files (netCDF classic only); the store keeps places and checksums
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
    let bar = Bar { on_terminal: std::io::stderr().is_terminal(), file: Cell::new(None) };
    let progress = |p: &Progress<'_>| {
        bar.show(p, out);
        Ok(())
    };
    let options = IngestOptions {
        key,
        external: arguments.no_copy,
        mesh: arguments.mesh.clone(),
        tree: arguments.tree,
        progress: Some(&progress),
        ..IngestOptions::default()
    };
    let outcome = match &source {
        Some(source) => fieldstone::ingest_fdb(&*store, source, &options),
        None => fieldstone::ingest(&store, &arguments.files, &options),
    };
    bar.clear(out);
    let report = outcome?;
    store.close()?;

    if out.json() {
        out.document(&document(&report))?;
    } else {
        for taken in &report.taken {
            let what = match arguments.mesh {
                Some(_) => "a mesh".to_owned(),
                None => count(taken.fields, "field"),
            };
            write!(out, "taken    {}: {what}, {} bytes", taken.path.display(), taken.bytes)?;
            if taken.relations > 0 {
                write!(out, ", {} of the graph", count(taken.relations, "row"))?;
            }
            if taken.unchanged > 0 {
                write!(out, ", {} there already", taken.unchanged)?;
            }
            out.write_all(b"\n")?;
        }
        for skipped in &report.skipped {
            writeln!(out, "skipped  {skipped}")?;
        }
    }
    let all = if source.is_some() { 1 } else { arguments.files.len() };
    match all.saturating_sub(report.taken.len()) {
        0 => Ok(()),
        n => Err(Error::invalid(format!("{n} of {all} files could not be taken"))
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
        let schema = match is_new {
            true => Some(match source {
                Some(source) => fieldstone::fdb_schema(&source.config, &HelperOptions::default())?,
                None => fieldstone::suggest_schema(&self.files).to_owned(),
            }),
            false => self.store.schema.clone(),
        };
        let compression = self.store.compression.clone();
        Ok(Writing { store: url.clone(), schema, compression }.open()?)
    }
}

fn document(report: &IngestReport) -> Value {
    let taken = |t: &fieldstone::Taken| {
        json!({
            "file": t.path.to_string_lossy(),
            "fields": t.fields,
            "bytes": t.bytes,
            "unchanged": t.unchanged,
            "meshes": t.meshes,
        })
    };
    let skipped =
        |s: &fieldstone::Skipped| json!({"file": s.path.to_string_lossy(), "what": s.what, "why": s.why});
    json!({
        "taken": report.taken.iter().map(taken).collect::<Vec<_>>(),
        "skipped": report.skipped.iter().map(skipped).collect::<Vec<_>>(),
    })
}

/// Progress on stderr: a bar on a terminal, otherwise a line when a file begins.
struct Bar {
    on_terminal: bool,
    file: Cell<Option<usize>>,
}

impl Bar {
    fn show(&self, p: &Progress<'_>, out: &Out) {
        let name = p.path.file_name().map_or_else(|| p.path.display(), |name| Path::new(name).display());
        let first = self.file.replace(Some(p.index)) != Some(p.index);
        let which = p.index + 1;
        if !self.on_terminal {
            if first {
                out.note(format_args!("reading {name} ({which} of {})", p.files));
            }
            return;
        }
        let filled = p.done.saturating_mul(BAR).checked_div(p.of).unwrap_or(BAR).min(BAR);
        let (done, rest) = ("█".repeat(filled as usize), "·".repeat((BAR - filled) as usize));
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let amount = format!("{:.1}/{:.1} MiB", mebibytes(p.done), mebibytes(p.of));
        out.status(format_args!("{done}{rest} {amount}  {which} of {}: {name}", p.files));
    }

    fn clear(&self, out: &Out) {
        if self.on_terminal && self.file.get().is_some() {
            out.status("");
        }
    }
}
