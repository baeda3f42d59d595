//! Files that a store owns besides its logs: readers and `verify` find any change in them.

use std::fs;
use std::path::{Path, PathBuf};

use fieldstone::Session;
use fieldstone::arrays::{
    ArrayJob, JobOptions, MeshArray, MeshContent, MeshCoordinate, MeshEdges, MeshRows, MeshVector,
    PartitionOptions, StoredMesh,
};
use fieldstone::container::Attrs;
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, OpenOptions, Request, Result, Store};

pub fn open(folder: &Path) -> Store {
    fieldstone::open(&folder.join("store").display().to_string(), &OpenOptions::default()).unwrap()
}

pub fn job(store: &Store) -> ArrayJob {
    ArrayJob::open(store, None, Some("r"), &JobOptions::default()).unwrap()
}

/// A strip of triangles with `nodes` nodes, under a name.
pub fn make_mesh(store: &Store, name: &str, nodes: usize) -> Result<()> {
    let x: Vec<f64> = (0..nodes).map(|i| i as f64).collect();
    let y: Vec<f64> = (0..nodes).map(|i| (i % 2) as f64).collect();
    let faces: Vec<i64> = (0..nodes as i64 - 2).flat_map(|i| [i, i + 1, i + 2]).collect();
    let coordinate = |values| MeshCoordinate { values, attrs: Attrs::default() };
    let content = MeshContent {
        name,
        coordinates: vec![coordinate(&x), coordinate(&y)],
        edges: None,
        faces: Some(MeshRows { width: 3, nodes: &faces }),
        volumes: None,
        base: 0,
        fill: None,
        attrs: Attrs::default(),
    };
    StoredMesh::create(store, &content, &[], &Session::default()).map(drop)
}

fn only_file(folder: &Path, within: &str) -> PathBuf {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder.join("store").join(within)).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.pop().unwrap()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// The result when a process that now opens the store reads a mesh.
fn read_mesh(folder: &Path) -> Result<()> {
    let store = open(folder);
    let mesh = StoredMesh::open(&store, "wing")?;
    mesh.coordinates()?;
    mesh.rows(MeshArray::Faces)?;
    mesh.verify().map(drop)
}

#[test]
fn a_flipped_bit_anywhere_in_a_mesh_is_found_by_readers_and_by_verify() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open(folder.path());
        make_mesh(&store, "wing", 60_000).unwrap();
        store.flush(None).unwrap();
    }
    read_mesh(folder.path()).unwrap();
    let path = only_file(folder.path(), "meshes");
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 1 << 20, "more than one block");
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    // In the header, between header and data, in coordinates, in faces, in the last bytes.
    for at in [20, 700, 4_090, 5_000, 1 << 19, (1 << 20) + 12, bytes.len() - 20, bytes.len() - 1] {
        flip(&path, at);
        let block = at / (1 << 20) * (1 << 20);
        let error = read_mesh(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
        let named =
            error.message().contains(&name) && error.message().contains(&format!("bytes from {block} on"));
        assert!(named, "byte {at}: {error}");
        let store = open(folder.path());
        let report = store.verify(&Request::default()).unwrap();
        let damaged: Vec<&str> = report.damaged.iter().map(|damage| &*damage.file).collect();
        assert_eq!(damaged, [format!("meshes/{name}")], "byte {at}: {report:?}");
        let partition = || -> Result<()> {
            let job = ArrayJob::open(&store, None, Some("r"), &JobOptions::default())?;
            let mesh = job.mesh("wing")?;
            let options = PartitionOptions { history: false, ..PartitionOptions::default() };
            job.partition(Ok((MeshEdges::Mesh(&mesh), MeshVector::Hilbert)), &options).map(drop)
        };
        assert_eq!(partition().unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
        fs::write(&path, &bytes).unwrap();
    }
    fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
    assert_eq!(read_mesh(folder.path()).unwrap_err().kind(), ErrorKind::Corrupt);
    fs::write(&path, &bytes).unwrap();
    let report = open(folder.path()).verify(&Request::default()).unwrap();
    assert!(report.ok() && report.notes.is_empty() && report.bytes >= bytes.len() as u64, "{report:?}");
}

#[test]
fn a_mesh_of_an_earlier_release_is_checked_by_its_content_and_gets_checksums_when_it_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = {
        let store = open(folder.path());
        make_mesh(&store, "wing", 100).unwrap();
        // As an earlier release declared it.
        let mut old = store.catalog().mesh("wing", &Session::default()).unwrap();
        store.discard(None).unwrap();
        old.sums = None;
        store.catalog().create_meshes(vec![old], &Session::default()).unwrap();
        store.flush(None).unwrap();
        only_file(folder.path(), "meshes")
    };
    let store = open(folder.path());
    assert!(store.catalog().mesh("wing", &Session::default()).unwrap().sums.is_none());
    let report = store.verify(&Request::default()).unwrap();
    assert!(report.ok() && report.notes[0].contains("was not checked"), "{report:?}");
    flip(&path, 4_200);
    assert_eq!(open(folder.path()).verify(&Request::default()).unwrap().damaged.len(), 1);
    // It cannot be made again over a damaged file, which would be mistaken for a complete one.
    assert_eq!(make_mesh(&store, "wing", 100).unwrap_err().kind(), ErrorKind::Corrupt);
    flip(&path, 4_200);
    make_mesh(&store, "wing", 100).unwrap();
    make_mesh(&store, "tail", 100).unwrap();
    store.flush(None).unwrap();
    let store = open(folder.path());
    let sums = ["wing", "tail"].map(|name| store.catalog().mesh(name, &Session::default()).unwrap().sums);
    assert!(sums[0].is_some() && sums[0] == sums[1], "{sums:?}");
    assert!(store.verify(&Request::default()).unwrap().notes.is_empty());
}

#[test]
fn a_mesh_whose_file_was_lost_is_made_again_with_other_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    make_mesh(&store, "wing", 100).unwrap();
    make_mesh(&store, "tail", 100).unwrap();
    store.flush(None).unwrap();
    fs::remove_file(only_file(folder.path(), "meshes")).unwrap();
    assert!(!open(folder.path()).verify(&Request::default()).unwrap().ok());
    // The file contains its first name, so its bytes differ.
    make_mesh(&store, "tail", 100).unwrap();
    store.flush(None).unwrap();
    let store = open(folder.path());
    for name in ["tail", "wing"] {
        StoredMesh::open(&store, name).unwrap().verify().unwrap();
    }
}

pub fn partition(store: &Store) -> Vec<String> {
    let job = job(store);
    let mesh = job.mesh("wing").unwrap();
    let given = Ok((MeshEdges::Mesh(&mesh), MeshVector::Block));
    let part = job.partition(given, &PartitionOptions::default()).unwrap();
    let ignored = part.ignored().to_vec();
    job.close().unwrap();
    ignored
}

#[test]
fn a_flipped_bit_anywhere_in_a_kept_partition_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    make_mesh(&store, "wing", 300).unwrap();
    assert!(partition(&store).is_empty());
    let files: Vec<PathBuf> = fs::read_dir(folder.path().join("store/histories"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for path in &files {
        let bytes = fs::read(path).unwrap();
        for at in (0..128).step_by(9).chain([130, 170]).chain((176..bytes.len()).step_by(997)) {
            flip(path, at);
            let report = store.verify(&Request::default()).unwrap();
            let file = format!("histories/{}", path.file_name().unwrap().to_str().unwrap());
            assert_eq!(report.damaged.len(), 1, "{file}, byte {at}: {report:?}");
            assert_eq!(report.damaged[0].file, file);
            fs::write(path, &bytes).unwrap();
        }
        fs::write(path, [&bytes[..], b"more"].concat()).unwrap();
        assert!(!store.verify(&Request::default()).unwrap().ok());
        fs::write(path, &bytes).unwrap();
    }
    // A job skips a damaged one, names it, and makes it again.
    for path in &files {
        flip(path, 300);
    }
    let ignored = partition(&open(folder.path()));
    assert!(ignored[0].contains("bytes from") && ignored[0].contains("histories"), "{ignored:?}");
    assert!(open(folder.path()).verify(&Request::default()).unwrap().ok());
    fs::remove_file(&files[0]).unwrap();
    let report = open(folder.path()).verify(&Request::default()).unwrap();
    assert!(report.ok() && report.notes[0].contains("is missing"), "{report:?}");
}
