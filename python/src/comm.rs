//! Communicators from Python: implements the trait of all collective operations of Fieldstone on top of mpi4py.
//!
//! The classes of `fieldstone._mpi` make the MPI calls; this module passes bytes to them and takes bytes from them.
//! An exception from MPI becomes an error that names the call or the file. File transfers run in rounds of at most
//! [`ROUND`] bytes per rank, which ranks agree on, so that Python's copy stays small.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone::env::comm::check::check;
use fieldstone::env::comm::rounds::{Piece, in_rounds, rounds};
use fieldstone::env::comm::single::SingleComm;
use fieldstone::env::comm::{
    Comm, CommFile, CommReader, CommWriter, FileMode, Hints, Parts, PartsMut, Reduce, Teams,
};
use fieldstone::env::real::refuse_waiting;
use fieldstone::{Code, Env, Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyList, PyTuple};

use crate::errors::{Raise, Refuse, invalid};

/// The most bytes that one call moves between a file and a rank.
const ROUND: usize = 64 << 20;
/// The most parts that one call moves.
const PARTS: usize = 1 << 16;

/// The ranks of `comm`: this process alone for `None` and for a communicator of one rank, otherwise those of mpi4py's
/// communicator; any other object is `Invalid`. Collective; the calling thread must hold the interpreter's lock.
pub(crate) fn comm_from_python(comm: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Comm>> {
    let alone = || Arc::new(SingleComm::new(Env::real().disk));
    if comm.is_none() {
        return Ok(alone());
    }
    let module = comm.py().import("fieldstone._mpi")?;
    let ours = module.getattr("communicator")?.call1((comm,))?;
    let (rank, size) = (ours.getattr("rank")?.extract()?, ours.getattr("size")?.extract()?);
    if size == 1 {
        return Ok(alone());
    }
    let teams = ours.getattr("teams")?;
    let teams = match teams.cast::<SharedTeams>() {
        Ok(known) => known.get().0.clone(),
        Err(_) => {
            let teams = Arc::<Teams>::default();
            ours.setattr("teams", SharedTeams(teams.clone()))?;
            teams
        }
    };
    Ok(Arc::new(PythonComm { ours: ours.unbind(), rank, size, teams }))
}

/// The hints in a mapping, whose values may be any object with a text form; or none, for None.
pub(crate) fn hints_of(given: &Bound<'_, PyAny>) -> PyResult<Hints> {
    if given.is_none() {
        return Ok(Hints::default());
    }
    let wrong = || {
        let shown = given.repr().map_or_else(|_| String::new(), |text| text.to_string());
        invalid(format!("hints={shown}"), "give a mapping of MPI_Info's keys, such as {'cb_nodes': 2}")
    };
    let items = given.call_method0("items").or_refuse(given.py(), wrong)?;
    let mut pairs = Vec::new();
    for item in items.try_iter()? {
        let (key, value): (String, Bound<'_, PyAny>) = item?.extract().or_refuse(given.py(), wrong)?;
        // ROMIO spells booleans as true and false.
        let value = match value.cast::<PyBool>() {
            Ok(is) => is.is_true().to_string(),
            Err(_) => value.str()?.to_string(),
        };
        pairs.push((key, value));
    }
    Hints::new(pairs).or_raise()
}

/// The shared state of the containers on one communicator, stored with it.
#[pyclass(frozen, module = "fieldstone")]
struct SharedTeams(Arc<Teams>);

/// Tests every call of an mpi4py communicator, with parts of about `length` bytes and a new file `path`, which
/// remains, empty. Collective; returns the number of steps. `fails`, a rank and a step, makes that rank fail
/// deliberately at that step.
#[pyfunction]
#[pyo3(name = "_check_comm", signature = (comm, path, length=1000, fails=None))]
pub fn check_comm(
    py: Python<'_>,
    comm: &Bound<'_, PyAny>,
    path: PathBuf,
    length: usize,
    fails: Option<(usize, u64)>,
) -> PyResult<u64> {
    let comm = comm_from_python(comm)?;
    py.detach(|| check(comm, &path, length, fails)).or_raise()
}

/// The operating system's error in an MPI exception, or the exception's text.
fn cause(py: Python<'_>, error: &PyErr) -> io::Error {
    let number = || -> PyResult<Option<i32>> {
        py.import("fieldstone._mpi")?.getattr("number_of")?.call1((error.value(py),))?.extract()
    };
    match number() {
        Ok(Some(number)) => io::Error::from_raw_os_error(number),
        _ => io::Error::other(error.to_string()),
    }
}

/// The bytes of a bytearray that `fieldstone._mpi` returned.
fn taken(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    Ok(value.cast::<PyByteArray>()?.to_vec())
}

fn taken_list(value: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>> {
    value.cast::<PyList>()?.iter().map(|part| taken(&part)).collect()
}

/// The ranks of a communicator of mpi4py.
struct PythonComm {
    ours: Py<PyAny>,
    rank: usize,
    size: usize,
    teams: Arc<Teams>,
}

impl fmt::Debug for PythonComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} of mpi4py", self.rank, self.size)
    }
}

impl PythonComm {
    fn call<T>(
        &self,
        name: &str,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
        take: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T> {
        Python::attach(|py| {
            let value = self.ours.bind(py).getattr(name)?.call1(arguments(py)?)?;
            take(&value)
        })
        .map_err(|error: PyErr| {
            Code::RankFailed.error(format!("rank {} of MPI failed in {name}: {error}", self.rank))
        })
    }

    /// Runs a call that takes and returns 64-bit integers, which it passes as bytes.
    fn numbers(&self, name: &str, reduce: Option<Reduce>, values: &mut [u64]) -> Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let joined = self.call(
            name,
            |py| match reduce {
                None => (PyBytes::new(py, &bytes),).into_pyobject(py),
                Some(Reduce::Max) => ("max", PyBytes::new(py, &bytes)).into_pyobject(py),
                Some(Reduce::Sum) => ("sum", PyBytes::new(py, &bytes)).into_pyobject(py),
            },
            taken,
        )?;
        for (value, bytes) in values.iter_mut().zip(joined.chunks_exact(8)) {
            *value = bytes.try_into().map_or(*value, u64::from_ne_bytes);
        }
        Ok(())
    }
}

impl Comm for PythonComm {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }
    fn teams(&self) -> Arc<Teams> {
        self.teams.clone()
    }
    fn barrier(&self) -> Result<()> {
        self.call("barrier", |py| Ok(PyTuple::empty(py)), |_| Ok(()))
    }
    fn broadcast(&self, root: usize, data: Vec<u8>, len: usize) -> Result<Vec<u8>> {
        let data = if root == self.rank { data } else { Vec::new() };
        self.call("broadcast", |py| (root, PyBytes::new(py, &data), len).into_pyobject(py), taken)
    }
    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.call("allgather", |py| (PyBytes::new(py, data),).into_pyobject(py), taken_list)
    }
    fn gather(&self, root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.call("gather", |py| (root, PyBytes::new(py, data)).into_pyobject(py), taken_list)
    }
    fn exscan(&self, values: &mut [u64]) -> Result<()> {
        self.numbers("exscan", None, values)
    }
    fn allreduce(&self, reduce: Reduce, values: &mut [u64]) -> Result<()> {
        self.numbers("allreduce", Some(reduce), values)
    }
    fn alltoallv(&self, parts: Vec<Vec<u8>>, longest: usize) -> Result<Vec<Vec<u8>>> {
        if parts.len() != self.size {
            let given = parts.len();
            return Err(Error::invalid(format!("alltoallv with {given} parts for {} ranks", self.size)));
        }
        let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
        let incoming: Vec<usize> =
            self.call("announce", |py| (&lengths,).into_pyobject(py), |value| value.extract())?;
        let room = |length: &usize| {
            let mut part = Vec::new();
            part.try_reserve_exact(*length).ok()?;
            part.resize(*length, 0);
            Some(part)
        };
        let received: Option<Vec<Vec<u8>>> = incoming.iter().map(room).collect();
        let has_room = received.is_some();
        self.call("check_room", |py| (longest * self.size, has_room).into_pyobject(py), |_| Ok(()))?;
        let mut received = received.unwrap_or_default();
        // MPI reads and writes the parts in place: nothing else touches them before the call returns.
        let from: Vec<usize> = parts.iter().map(|part| part.as_ptr().expose_provenance()).collect();
        let to: Vec<usize> = received.iter_mut().map(|part| part.as_mut_ptr().expose_provenance()).collect();
        self.call("move", |py| ((&from, &lengths), (&to, &incoming), longest).into_pyobject(py), |_| Ok(()))?;
        Ok(received)
    }
    fn exchange(&self, sent: Parts<'_>, taken: PartsMut<'_>, longest: usize) -> Result<()> {
        let room = |lens: &[usize]| lens.iter().sum::<usize>();
        let fits = sent.lens.len() == self.size && taken.lens.len() == self.size;
        if !fits || room(sent.lens) > sent.bytes.len() || room(taken.lens) > taken.bytes.len() {
            return Err(Error::internal("parts that are longer than their bytes"));
        }
        // As above.
        let from = (sent.bytes.as_ptr().expose_provenance(), sent.bytes.len(), sent.lens);
        let to = (taken.bytes.as_mut_ptr().expose_provenance(), taken.bytes.len(), taken.lens);
        self.call("exchange", |py| (from, to, longest).into_pyobject(py), |_| Ok(()))
    }
    fn host(&self) -> Option<String> {
        self.call("host", |py| Ok(PyTuple::empty(py)), |value| value.extract()).ok()
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        self.open_with(path, mode, &Hints::default())
    }
    fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
        let (action, word) = match mode {
            FileMode::CreateNew => ("create", "create"),
            FileMode::Read => ("open", "read"),
            FileMode::ReadWrite => ("open", "write"),
        };
        Python::attach(|py| {
            let absolute = py.import("fieldstone._mpi")?.getattr("absolute")?.call1((path,))?;
            refuse_waiting(path)?;
            let hints: Vec<(&str, &str)> = hints.iter().collect();
            let file = self.ours.bind(py).getattr("open")?.call1((absolute, word, hints))?.unbind();
            let (ours, teams) = (self.ours.clone_ref(py), self.teams.clone());
            let comm = PythonComm { ours, rank: self.rank, size: self.size, teams };
            Ok(Arc::new(PythonFile { comm, file, path: path.to_owned() }) as Arc<dyn CommFile>)
        })
        .map_err(|error: PyErr| Error::io(action, path, Python::attach(|py| cause(py, &error))))
    }
}

/// A file of MPI-IO.
#[derive(Debug)]
struct PythonFile {
    comm: PythonComm,
    file: Py<PyAny>,
    path: PathBuf,
}

impl PythonFile {
    fn call<T>(
        &self,
        action: &str,
        name: &str,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
        take: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T> {
        Python::attach(|py| {
            let value = self.file.bind(py).getattr(name).and_then(|method| method.call1(arguments(py)?));
            value.and_then(|value| take(&value)).map_err(|error| cause(py, &error))
        })
        .map_err(|cause| Error::io(action, &self.path, cause))
    }
}

impl CommReader for PythonFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        for chunk in buffer.chunks_mut(ROUND) {
            let at = offset.saturating_add(done as u64);
            // MPI writes the bytes in place: nothing else touches them before the call returns.
            let place = (chunk.as_mut_ptr().expose_provenance(), chunk.len());
            let read: usize =
                self.call("read", "read_at", |py| (place, at).into_pyobject(py), |value| value.extract())?;
            let n = read.min(chunk.len());
            done += n;
            if n < chunk.len() {
                break;
            }
        }
        Ok(done)
    }

    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        // MPI does not report reliably how much of the view the file held.
        let end = parts.iter().map(|(offset, part)| offset.saturating_add(part.len() as u64)).max();
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let there = match self.len() {
            Ok(len) if end.is_some_and(|end| end > len) => Err(Error::io("read", &self.path, short())),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        let lengths = parts.iter().map(|(_, part)| part.len());
        // A rank that cannot read takes part without parts, because the rounds are collective.
        let own = if there.is_ok() { rounds(lengths, ROUND, PARTS) } else { Vec::new() };
        let read = in_rounds(&self.comm, &own, |round, several| {
            let offsets: Vec<u64> = round.iter().map(|p| parts[p.part].0 + p.begin as u64).collect();
            let lengths: Vec<usize> = round.iter().map(|p| p.end - p.begin).collect();
            let data = if several {
                self.call("read", "read_parts", |py| (offsets, lengths).into_pyobject(py), taken)?
            } else {
                let (offset, length) = (offsets.first().unwrap_or(&0), lengths.first().unwrap_or(&0));
                self.call("read", "read_part", |py| (*offset, *length).into_pyobject(py), taken)?
            };
            let mut rest = &data[..];
            for Piece { part, begin, end } in round.iter().copied() {
                let (piece, after) = rest.split_at_checked(end - begin).ok_or_else(|| {
                    Error::internal(format!("MPI read too few bytes of {}", self.path.display()))
                })?;
                parts[part].1[begin..end].copy_from_slice(piece);
                rest = after;
            }
            Ok(())
        });
        there.and(read)
    }

    fn len(&self) -> Result<u64> {
        self.call("stat", "length", |py| Ok(PyTuple::empty(py)), |value| value.extract())
    }
}

impl CommWriter for PythonFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        data.chunks(ROUND).enumerate().try_for_each(|(n, chunk)| {
            let at = offset.saturating_add((n * ROUND) as u64);
            // MPI reads the bytes in place.
            let place = (chunk.as_ptr().expose_provenance(), chunk.len());
            self.call("write", "write_at", |py| (place, at).into_pyobject(py), |_| Ok(()))
        })
    }

    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        let own = rounds(parts.iter().map(|(_, data)| data.len()), ROUND, PARTS);
        in_rounds(&self.comm, &own, |round, several| {
            let data: Vec<u8> =
                round.iter().flat_map(|p| &parts[p.part].1[p.begin..p.end]).copied().collect();
            let offsets: Vec<u64> = round.iter().map(|p| parts[p.part].0 + p.begin as u64).collect();
            if !several {
                let offset = offsets.first().copied().unwrap_or(0);
                return self.call(
                    "write",
                    "write_part",
                    |py| (offset, PyBytes::new(py, &data)).into_pyobject(py),
                    |_| Ok(()),
                );
            }
            let lengths: Vec<usize> = round.iter().map(|p| p.end - p.begin).collect();
            self.call(
                "write",
                "write_parts",
                |py| (offsets, lengths, PyBytes::new(py, &data)).into_pyobject(py),
                |_| Ok(()),
            )
        })
    }
}

impl CommFile for PythonFile {
    fn set_len(&self, len: u64) -> Result<()> {
        self.call("set the length of", "set_length", |py| (len,).into_pyobject(py), |_| Ok(()))
    }

    fn taken_hints(&self) -> Result<Hints> {
        let pairs = |value: &Bound<'_, PyAny>| value.extract::<Vec<(String, String)>>();
        self.call("ask for the hints of", "hints", |py| Ok(PyTuple::empty(py)), pairs).map(Hints::given)
    }

    fn make_durable(&self) -> Result<()> {
        self.call("sync", "make_durable", |py| Ok(PyTuple::empty(py)), |_| Ok(()))
    }

    fn sync(&self) -> Result<()> {
        self.call("sync", "sync", |py| Ok(PyTuple::empty(py)), |_| Ok(()))
    }

    fn close(&self) -> Result<()> {
        self.call("close", "close", |py| Ok(PyTuple::empty(py)), |_| Ok(()))
    }
}
