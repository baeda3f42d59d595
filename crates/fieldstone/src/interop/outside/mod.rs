//! Data outside the store: a run may declare the files that hold its variables; they can be tagged, searched and read
//! as if they were fields.
//!
//! A run's declaration holds a map:
//!
//! | key | means |
//! |---|---|
//! | `template` | names of files, see [`Template`]; below `root` unless absolute |
//! | `format` | `raw` (elements in C order), `netcdf` or `hdf5` |
//! | `root` | the folder of the files |
//! | `dataset` | name of the variable in a file, with the holes of a template; `{variable}` if absent |
//! | `chunks` | extents of the pieces in files: a list, or a map from variable to list; if absent, the variable's decomposition, else its shape |
//! | `object_bytes` | chunks are cut along their first dimension into files of about this many bytes |
//! | `dtype` | element type in the files; the variable's if absent |
//! | `offset` | bytes before the elements of a raw file |
//! | `steps` | `index`: files hold all steps, the first dimension being the step |
//!
//! Invariants: the declarations alone determine the objects of a box, nothing is listed or stored; a read opens those
//! objects and no other; if a file is absent, short or not as declared, the error names it and the box that it should
//! hold.
//!
//! If files were moved, [`repoint`] records their new place.
//!
//! Raw files are read here; netCDF and HDF5 by programs that have a library for them, after [`Outside::plan`].

mod raw;
mod repoint;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::template::{Names, ObjectGrid, Template, Words};
use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result, nearest};
use fieldstone_format::catalog::{RunDecl, RunName, VariableDecl};

use crate::Session;
use crate::catalog::CatalogAccess;

pub use raw::read_raw;
pub use repoint::repoint;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Elements in C order.
    Raw,
    /// netCDF, classic or 4.
    NetCdf,
    /// HDF5.
    Hdf5,
}

impl Format {
    /// Its name in declarations.
    pub fn name(self) -> &'static str {
        match self {
            Format::Raw => "raw",
            Format::NetCdf => "netcdf",
            Format::Hdf5 => "hdf5",
        }
    }
}

/// The place of a run's variables; see the module's text.
#[derive(Debug, Clone)]
pub struct Outside {
    template: String,
    format: Format,
    root: String,
    dataset: String,
    chunks: Chunks,
    object_bytes: Option<u64>,
    dtype: Option<DType>,
    offset: u64,
    steps_in_file: bool,
}

/// Extents of pieces.
#[derive(Debug, Clone)]
enum Chunks {
    Unsaid,
    All(Vec<u64>),
    Each(Vec<(String, Vec<u64>)>),
}

/// One object's part in a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRead {
    /// The file.
    pub path: String,
    /// The variable in it; unused for raw files.
    pub dataset: String,
    /// The file's piece, in the variable's indices.
    pub piece: IndexBox,
    /// The part of it to read, in the variable's indices.
    pub part: IndexBox,
    /// Index along a first dimension that the file has and the variable lacks: the step.
    pub lead: Option<u64>,
}

/// How to read a box.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The format of the files.
    pub format: Format,
    /// Element type.
    pub dtype: DType,
    /// The box, in the variable's indices.
    pub region: IndexBox,
    /// Bytes before the elements of a raw file.
    pub offset: u64,
    /// The objects, in C order of their pieces.
    pub reads: Vec<ObjectRead>,
}

const KEYS: [&str; 9] =
    ["template", "format", "root", "dataset", "chunks", "object_bytes", "dtype", "offset", "steps"];

impl Outside {
    /// A declaration with the default of each part, and neither template nor format.
    fn unsaid() -> Outside {
        Outside {
            template: String::new(),
            format: Format::Raw,
            root: String::new(),
            dataset: "{variable}".to_owned(),
            chunks: Chunks::Unsaid,
            object_bytes: None,
            dtype: None,
            offset: 0,
            steps_in_file: false,
        }
    }

    /// Reads a run's declaration.
    pub fn parse(declared: &Value) -> Result<Outside> {
        let wrong = |what: String| Error::invalid(format!("outside: {what}"));
        let Value::Map(parts) = declared else {
            return Err(
                wrong(format!("{declared} is not a map")).with_hint("give template and format at least")
            );
        };
        let mut new = Outside::unsaid();
        let mut format = None;
        for (key, value) in parts {
            let bad = |hint: &str| wrong(format!("{key} is {value}")).with_hint(hint.to_owned());
            match (key.as_str(), value) {
                (_, Value::Null) => {}
                ("template", Value::Text(text)) => new.template.clone_from(text),
                ("root", Value::Text(text)) => new.root.clone_from(text),
                ("dataset", Value::Text(text)) => new.dataset.clone_from(text),
                ("format", Value::Text(text)) => {
                    format =
                        [Format::Raw, Format::NetCdf, Format::Hdf5].into_iter().find(|f| f.name() == text);
                    format.ok_or_else(|| bad("use raw, netcdf or hdf5"))?;
                }
                ("chunks", Value::Map(each)) => {
                    let each = each.iter().map(|(name, value)| {
                        let extents =
                            extents(value).ok_or_else(|| bad("give each variable a list of extents"))?;
                        Ok((name.clone(), extents))
                    });
                    new.chunks = Chunks::Each(each.collect::<Result<_>>()?);
                }
                ("chunks", value) => {
                    new.chunks = Chunks::All(
                        extents(value).ok_or_else(|| bad("give a list of extents, such as [64, 64]"))?,
                    );
                }
                ("object_bytes", value) => {
                    let bytes = whole(value).filter(|n| *n > 0);
                    new.object_bytes =
                        Some(bytes.ok_or_else(|| bad("give the bytes of a file, at least 1"))?);
                }
                ("dtype", Value::Text(text)) => new.dtype = Some(DType::parse(text)?),
                ("offset", value) => new.offset = whole(value).ok_or_else(|| bad("bytes, 0 or more"))?,
                ("steps", Value::Text(text)) if text == "index" || text == "file" => {
                    new.steps_in_file = text == "index";
                }
                ("steps", _) => return Err(bad("use index or file")),
                (known, _) if KEYS.contains(&known) => return Err(bad("give a text")),
                (unknown, _) => {
                    let hint = nearest::did_you_mean(unknown, KEYS)
                        .unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
                    return Err(wrong(format!("{unknown:?} is unknown")).with_hint(hint));
                }
            }
        }
        if new.template.is_empty() {
            return Err(
                wrong("the template is missing".into()).with_hint("such as {run}/{variable}_{step:06d}.nc")
            );
        }
        new.format = format
            .ok_or_else(|| wrong("the format is missing".into()).with_hint("use raw, netcdf or hdf5"))?;
        Ok(new)
    }

    /// The format of the files.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Names of the objects of a variable, for any step.
    pub fn names(&self, variable: &VariableDecl) -> Result<Names> {
        let name = &variable.variable.name;
        let shape = variable.shape.clone().ok_or_else(|| {
            Error::invalid(format!("variable {name} has no shape to derive its files from"))
                .with_hint("declare it: create_variable(name, dtype, shape)")
        })?;
        let chunks = match &self.chunks {
            Chunks::All(chunks) => Some(chunks.clone()),
            Chunks::Each(each) => {
                each.iter().find(|(known, _)| known == name).map(|(_, chunks)| chunks.clone())
            }
            Chunks::Unsaid => None,
        };
        let whole = || shape.iter().map(|extent| (*extent).max(1)).collect();
        let chunks = chunks.or_else(|| variable.decomposition.clone()).unwrap_or_else(whole);
        let grid = match self.object_bytes {
            Some(bytes) => ObjectGrid::sized(shape, chunks, self.dtype(variable)?.size(), bytes),
            None => ObjectGrid::new(shape, chunks),
        };
        let grid = grid.map_err(|e| e.context(format!("variable {name}")))?;
        Names::new(Template::parse(&self.template, &variable.dims)?, grid)
    }

    fn dtype(&self, variable: &VariableDecl) -> Result<DType> {
        self.dtype.or(variable.dtype).ok_or_else(|| {
            Error::invalid(format!("variable {} has no dtype", variable.variable.name))
                .with_hint("declare it: create_variable(name, dtype, shape), or give dtype in outside")
        })
    }

    /// How to read a box of a variable at a step; without a box, all of it.
    pub fn plan(
        &self,
        run: &RunDecl,
        variable: &VariableDecl,
        step: Option<i64>,
        region: Option<&IndexBox>,
    ) -> Result<Plan> {
        let names = self.names(variable)?;
        let region = match region {
            Some(region) => region.clone(),
            None => IndexBox::whole(names.grid().shape())?,
        };
        region.check_within(names.grid().shape())?;
        let words = Words {
            job: run.job.as_deref().unwrap_or(""),
            project: &run.run.project,
            run: &run.run.name,
            variable: &variable.variable.name,
            version: variable.variable.version,
            step,
        };
        let lead = match (self.steps_in_file, step) {
            (false, _) => None,
            (true, Some(step)) if step >= 0 => Some(step.unsigned_abs()),
            (true, step) => {
                return Err(Error::invalid(format!(
                    "step {step:?} is not an index into the files of run {}",
                    run.run.name
                ))
                .with_hint("steps count from 0 if the files hold all of them"));
            }
        };
        let dataset = Template::parse(&self.dataset, &variable.dims)?;
        let one = ObjectGrid::new(Vec::new(), Vec::new())?;
        let dataset = dataset.name(&words, &one, &[])?;
        let mut reads = Vec::new();
        for object in names.objects(&words, &region)? {
            let object = object?;
            let path = match object.name.starts_with('/') || self.root.is_empty() {
                true => object.name,
                false => format!("{}/{}", self.root.trim_end_matches('/'), object.name),
            };
            let dataset = dataset.clone();
            reads.push(ObjectRead { path, dataset, piece: object.piece, part: object.part, lead });
        }
        let (format, offset) = (self.format, self.offset);
        Ok(Plan { format, dtype: self.dtype(variable)?, region, offset, reads })
    }
}

/// The objects of a box of a variable at a step, for reading or writing, as its run declares with `outside`. If `start`
/// or `count` is absent the box begins at 0, or reaches the end. `None` if the run declares nothing. This looks at no
/// files.
///
/// Errors: NotFound for a run or variable that does not exist; Invalid for a box outside the variable, for a variable
/// without a shape, and for a template that does not distinguish its objects.
pub fn plan_of(
    catalog: &dyn CatalogAccess,
    run: &RunName,
    (variable, version): (&str, Option<i64>),
    step: Option<i64>,
    (start, count): (Option<Vec<u64>>, Option<Vec<u64>>),
    session: &Session,
) -> Result<Option<Plan>> {
    let info = catalog.run(Some(&run.project), &run.name, session)?;
    let Some(declared) = &info.decl.outside else { return Ok(None) };
    let variable = catalog.variable(run, variable, version, session)?;
    let outside = Outside::parse(declared)?;
    let shape = outside.names(&variable.decl)?.grid().shape().to_vec();
    let start = start.unwrap_or_else(|| vec![0; shape.len()]);
    let count = count.unwrap_or_else(|| {
        let from = start.iter().chain(std::iter::repeat(&0));
        shape.iter().zip(from).map(|(extent, from)| extent.saturating_sub(*from)).collect()
    });
    let region = IndexBox::new(start, count, &shape)?;
    outside.plan(&info.decl, &variable.decl, step, Some(&region)).map(Some)
}

/// A box of a variable in words, for errors.
fn holds(read: &ObjectRead) -> String {
    format!("{}, which should hold box {}", read.path, read.piece)
}

fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Int(i) => u64::try_from(*i).ok(),
        Value::UInt(u) => Some(*u),
        _ => None,
    }
}

fn extents(value: &Value) -> Option<Vec<u64>> {
    match value {
        Value::List(list) | Value::Array(list) => list.iter().map(whole).collect(),
        one => whole(one).map(|n| vec![n]),
    }
}
