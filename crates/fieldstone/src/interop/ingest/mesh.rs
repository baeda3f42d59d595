//! Takes the unstructured mesh of a file, read by the helper, into the store, which keeps each content once.
//!
//! A file's mesh is durable and declared when it is reported as taken. An equal mesh under the name is not declared
//! again, whatever the file's format: attributes are not part of the content.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::helper::Request;

use super::{IngestOptions, IngestReport, Progress, Skipped, Taken, WHOLE_FILE};
use crate::Session;
use crate::Store;
use crate::arrays::{MeshContent, MeshCoordinate, MeshRows, StoredMesh, netcdf_attrs};
use crate::interop::helper::{Helper, HelperEvent, MeshFrame, MeshFrameArray, Reply, failure};

/// The result of reading a file.
enum Read {
    Mesh(MeshContents),
    Refused(Error),
}

/// The mesh of a file, and the parts of the file that it lacks, each with the reason.
struct MeshContents {
    frame: MeshFrame,
    payload: Vec<u8>,
    omitted: Vec<(String, String)>,
}

/// Takes the mesh of each file under a name: the meshes of several files must be equal.
pub fn ingest<P: AsRef<Path>>(
    store: &Store,
    paths: &[P],
    name: &str,
    options: &IngestOptions<'_>,
    report: &mut IngestReport,
) -> Result<()> {
    if options.external || options.tree || !options.key.is_empty() {
        return Err(Code::Option
            .error("take a mesh by itself")
            .with_hint("leave out the key, copy=False (--no-copy) and tree=True (--tree)"));
    }
    report.of_meshes = true;
    let sizes: Vec<u64> =
        paths.iter().map(|path| std::fs::metadata(path).map_or(0, |facts| facts.len())).collect();
    let of = sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size));
    let mut before = 0u64;
    for (index, (path, size)) in paths.iter().zip(&sizes).enumerate() {
        let path = path.as_ref();
        let progress = |done: u64| match options.progress {
            Some(show) => show(&Progress { path, index, files: paths.len(), done: done.min(of), of }),
            None => Ok(()),
        };
        progress(before)?;
        let outcome = match read(path, options)? {
            Read::Refused(why) => Err(why),
            Read::Mesh(read) => match keep(store, path, name, &read.frame, &read.payload) {
                Err(error) if !is_of_the_file(&error) => return Err(error.context(path.display())),
                outcome => outcome.map(|taken| (taken, read.omitted)),
            },
        };
        let mut skip = |what: String, why: String| {
            report.skipped.push(Skipped { path: path.to_owned(), what, why });
        };
        match outcome {
            Ok((taken, omitted)) => {
                omitted.into_iter().for_each(|(what, why)| skip(what, why));
                report.taken.push(taken);
            }
            Err(why) => skip(WHOLE_FILE.to_owned(), why.to_string()),
        }
        before = before.saturating_add(*size);
        progress(before)?;
        report.done += 1;
    }
    Ok(())
}

/// Whether the error concerns the mesh, or its name belongs to another, rather than the store.
fn is_of_the_file(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Conflict | ErrorKind::Corrupt)
        && error.code() != Code::Option
}

fn read(path: &Path, options: &IngestOptions<'_>) -> Result<Read> {
    let absolute = std::path::absolute(path).map_err(|e| Error::io("name", path, e))?;
    let mut helper = Helper::start(&options.helper)?;
    helper.send(&Request::Mesh { path: absolute.as_os_str().as_bytes() }, &[])?;
    let (mut found, mut omitted) = (None, Vec::new());
    loop {
        match helper.next()? {
            HelperEvent::Reply(Reply::Mesh(frame), payload) => found = Some((frame, payload)),
            HelperEvent::Reply(Reply::Skipped { what, why }, _) => omitted.push((what, why)),
            HelperEvent::Reply(Reply::Done, _) => {
                return Ok(match found {
                    Some((frame, payload)) => Read::Mesh(MeshContents { frame, payload, omitted }),
                    None => Read::Refused(Error::internal("the helper read no mesh")),
                });
            }
            HelperEvent::Reply(Reply::Failed { code, message, hint }, _) => {
                return Ok(Read::Refused(failure(code, message, hint)));
            }
            HelperEvent::Reply(..) => {}
            HelperEvent::Died(how) => {
                return Ok(Read::Refused(Code::HelperFailed.error(format!("reader {how}"))));
            }
        }
    }
}

/// A file's metadata as attributes; only texts and numbers are kept.
fn attributes(said: &serde_json::Map<String, serde_json::Value>) -> Vec<(String, Value)> {
    let value = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Some(Value::Text(text.clone())),
        serde_json::Value::Number(number) => {
            number.as_i64().map(Value::Int).or(number.as_f64().map(Value::Float))
        }
        _ => None,
    };
    said.iter().filter_map(|(name, said)| Some((name.clone(), value(said)?))).collect()
}

fn keep(store: &Store, path: &Path, name: &str, frame: &MeshFrame, payload: &[u8]) -> Result<Taken> {
    let mut rest = payload;
    let mut arrays = Vec::new();
    for array in &frame.arrays {
        let bytes = array.shape.iter().try_fold(8u64, |bytes, extent| bytes.checked_mul(*extent));
        let own = bytes.and_then(|bytes| rest.split_at_checked(usize::try_from(bytes).ok()?));
        let (own, others) = own.ok_or_else(|| Error::internal("the helper's frame of a mesh is short"))?;
        arrays.push((array, own));
        rest = others;
    }
    let columns: Vec<(&MeshFrameArray, Vec<f64>)> = ["x", "y", "z"]
        .iter()
        .filter_map(|axis| arrays.iter().find(|(array, _)| array.name == *axis))
        .map(|(array, own)| {
            (*array, own.as_chunks().0.iter().map(|word| f64::from_le_bytes(*word)).collect())
        })
        .collect();
    let rows = |kind: &str| {
        let (array, own) = arrays.iter().find(|(array, _)| array.name == kind)?;
        let width = usize::try_from(*array.shape.get(1)?).ok()?;
        let nodes: Vec<i64> = own.as_chunks().0.iter().map(|word| i64::from_le_bytes(*word)).collect();
        Some((width, nodes))
    };
    let (edges, faces, volumes) = (rows("edges"), rows("faces"), rows("volumes"));
    let attrs = attributes(&frame.attrs);
    let coordinates = columns
        .iter()
        .map(|(array, values)| Ok(MeshCoordinate { values, attrs: netcdf_attrs(&attributes(&array.attrs))? }))
        .collect::<Result<_>>()?;
    let content = MeshContent {
        name,
        coordinates,
        edges: edges.as_ref().map(|(width, nodes)| MeshRows { width: *width, nodes }),
        faces: faces.as_ref().map(|(width, nodes)| MeshRows { width: *width, nodes }),
        volumes: volumes.as_ref().map(|(width, nodes)| MeshRows { width: *width, nodes }),
        base: 0,
        fill: None,
        attrs: netcdf_attrs(&attrs)?,
    };
    let transaction = store.transaction()?;
    let (_, is_new) =
        match StoredMesh::create(store, &content, &attrs, &Session::from(transaction.writing()?)) {
            Ok(made) => made,
            Err(error) => {
                let _ = transaction.abort();
                return Err(error);
            }
        };
    let mut taken = Taken::nothing(path);
    if is_new {
        transaction.commit()?;
        (taken.meshes, taken.bytes) = (1, payload.len() as u64);
    } else {
        transaction.abort()?;
        taken.unchanged = 1;
    }
    Ok(taken)
}
