//! Creates the file of a mesh.

use std::path::{Path, PathBuf};

use fieldstone_core::env::Env;
use fieldstone_core::env::comm::{FileMode, Team, TeamFile};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{FileSums, decode_sums, encode_sums, sums_block};
use fieldstone_format::netcdf::{Attrs, NcType};

use super::content::{KINDS, Measures, MeshContent};
use super::image::{MeshHead, MeshImage, SHAPES, index_type};
use super::{Mesh, MeshArray, STEP, hex};
use crate::distributed::files::group_files::make_alike;
use crate::distributed::files::image::Extent;
use crate::distributed::files::sums::{self, SummedFile};

/// Bytes written at a time.
const PIECE: usize = 1 << 20;

impl Mesh {
    /// Collective: stores a mesh in a file of the existing `folder`, and opens it. If a mesh of the same content
    /// exists already, nothing is written, and that one's name and attributes stay. A rank that failed before passes
    /// its error.
    ///
    /// `place` is called on rank 0 with the name that the content gives to the file. It returns the name that the file has
    /// or gets, and its checksums, if they are known.
    ///
    /// All reads of it are compared with checksums: those of the written bytes or, for an existing file, the known ones.
    /// If there are none, the content is first read and compared with the file's name.
    ///
    /// The file is written under a temporary name ending in `.part`, synced, and then renamed.
    ///
    /// Errors: `Invalid` for an entry that is not a node, a row with too few, or coordinates of different lengths,
    /// with rank, position and value; `Conflict` if ranks pass different names, bases or attributes.
    pub fn create(
        team: &Team,
        env: &Env,
        folder: &Path,
        content: Result<&MeshContent<'_>>,
        place: impl FnOnce(&str) -> Result<(String, Option<FileSums>)>,
    ) -> Result<Mesh> {
        let measures =
            Measures::new(team, content.as_ref().map(|content| *content).map_err(Error::replicate))?;
        let content = content?;
        let head = MeshHead {
            name: content.name.to_owned(),
            counts: measures.total,
            widths: measures.widths,
            has_z: content.coordinates.len() == 3,
            checksum: measures.checksum,
        };
        let (placed, known) = match team.rank() {
            0 => match place(&format!("{}.nc", hex(&head.checksum))) {
                Ok((name, known)) => (draft_name(env, folder, &name), known),
                Err(error) => (Err(error), None),
            },
            _ => (Ok(Vec::new()), None),
        };
        let placed = String::from_utf8_lossy(&team.broadcast(STEP, 0, placed)?).into_owned();
        let (name, draft) = placed.split_once('/').unwrap_or((&placed, ""));
        let (path, is_new) = (folder.join(name), !draft.is_empty());
        let mut sums = None;
        if is_new {
            let coordinates: Vec<Attrs> = content.coordinates.iter().map(|one| one.attrs.clone()).collect();
            let image = MeshImage::new(&head, &coordinates, &content.attrs, measures.has_shapes);
            let image = team.agree(STEP, image)?;
            let draft = folder.join(draft);
            match write_file(team, env, (&draft, &path), (content, &measures, &image)) {
                Ok(written) => sums = Some(written),
                Err(error) => {
                    if team.rank() == 0 {
                        // A leftover draft is not a mesh: nothing refers to it.
                        let _ = env.disk.unlink(&draft);
                    }
                    return Err(error);
                }
            }
        }
        let sums = match sums {
            Some(sums) => sums,
            None => known_sums(team, env, &path, known)?,
        };
        let mesh = Mesh::open(team, &*env.disk, &path, Some(&sums))?;
        let (found, made) = (&mesh.head, &head);
        let is_same = (found.counts, found.widths, found.has_z, found.checksum)
            == (made.counts, made.widths, made.has_z, made.checksum);
        match is_same {
            true => Ok(Mesh { is_new, ..mesh }),
            false => Err(Code::Corrupt
                .error(format!("the header of {} contradicts the file's name", path.display()))
                .with_hint("restore the file, or remove it: the next call creates it again")),
        }
    }
}

/// Collective: the checksums of an existing file.
fn known_sums(team: &Team, env: &Env, path: &Path, known: Option<FileSums>) -> Result<FileSums> {
    let found = known.map_or_else(Vec::new, |sums| encode_sums(&sums));
    let found = team.broadcast(STEP, 0, Ok(found))?;
    if !found.is_empty() {
        return decode_sums(&found);
    }
    let mesh = Mesh::open(team, &*env.disk, path, None)?;
    let sums = mesh.sum_file();
    let closed = mesh.close();
    sums.and_then(|sums| closed.map(|()| sums))
}

/// The name of the file, and after `/` its name while it is written, unless the file exists already.
fn draft_name(env: &Env, folder: &Path, name: &str) -> Result<Vec<u8>> {
    let path = folder.join(name);
    match env.disk.stat(&path) {
        Ok(_) => Ok(name.as_bytes().to_vec()),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            let mut random = [0; 8];
            env.rand.fill(&mut random);
            let number = u64::from_le_bytes(random);
            Ok(format!("{name}/{name}.{number:016x}.{}.part", env.identity.writer_name()).into_bytes())
        }
        Err(cause) => Err(Error::io("look for", &path, cause)),
    }
}

fn write_file(
    team: &Team,
    env: &Env,
    (draft, path): (&Path, &PathBuf),
    (content, measures, image): (&MeshContent<'_>, &Measures, &MeshImage),
) -> Result<FileSums> {
    let file = team.open(STEP, draft, FileMode::CreateNew)?;
    let size = image.size();
    let block = sums_block(size);
    let whole = Extent { offset: 0, len: size };
    let (through, summed) = SummedFile::by_blocks(&file, whole, block);
    let written = match team.rank() {
        0 => make_alike(&*env.disk, draft),
        _ => Ok(()),
    };
    let written = written.and_then(|()| write_share(&through, content, measures, image));
    let outcome = file.sync(STEP, written).and_then(|()| {
        let sums = sums::collect(team, &[(summed, file.clone(), 0)])?.pop().unwrap_or_default();
        let sums = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        team.broadcast(STEP, 0, Ok(sums))
    });
    let sums = match outcome {
        Ok(sums) => sums,
        Err(error) => {
            file.give_up();
            return Err(error);
        }
    };
    file.close(STEP, Ok(()))?;
    let renamed = match team.rank() {
        0 => {
            let done = env.disk.rename(draft, path);
            let folder = path.parent().unwrap_or(Path::new("."));
            done.and_then(|()| env.disk.sync_dir(folder)).map_err(|cause| Error::io("rename to", path, cause))
        }
        _ => Ok(()),
    };
    team.agree(STEP, renamed)?;
    let sums = sums.as_chunks().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
    Ok(FileSums { size, block, sums })
}

/// Writes this rank's part; the first rank also writes the header.
fn write_share(
    file: &TeamFile,
    content: &MeshContent<'_>,
    measures: &Measures,
    image: &MeshImage,
) -> Result<()> {
    if file.team().rank() == 0 {
        // Including the zeros that no other rank writes: before the data, and after the shapes of volumes. So all
        // bytes are checksummed.
        let mut header = image.header();
        header.resize(image.begin(MeshArray::X)? as usize, 0);
        file.write_at(&header, 0)?;
        let gap = image.shapes.map_or(0, |begin| image.topology - begin - measures.total[3]);
        // The topology's value means nothing; its attributes carry the information.
        file.write_at(&vec![0; gap as usize + NcType::Int.size()], image.topology - gap)?;
    }
    for (array, coordinate) in
        [MeshArray::X, MeshArray::Y, MeshArray::Z].into_iter().zip(&content.coordinates)
    {
        let mut out = Output::new(file, image.begin(array)? + measures.before[0] * 8);
        coordinate.values.iter().try_for_each(|value| out.put(&value.to_be_bytes()))?;
        out.end()?;
    }
    let index = index_type(measures.total[0]);
    for (place, (array, _)) in KINDS.into_iter().enumerate() {
        if measures.total[place + 1] == 0 {
            continue;
        }
        let (width, before) = (measures.widths[place], measures.before[place + 1]);
        let mut out = Output::new(file, image.begin(array)? + before * width * index.size() as u64);
        for row in content.rows(array) {
            let entries = row.chain(std::iter::repeat(-1)).take(width as usize);
            entries.into_iter().try_for_each(|node| out.put_index(node, index))?;
        }
        out.end()?;
    }
    if let Some(begin) = image.shapes {
        let mut out = Output::new(file, begin + measures.before[3]);
        for row in content.rows(MeshArray::Volumes) {
            let nodes = row.count() as u64;
            let shape = SHAPES.iter().position(|(count, _)| *count == nodes).unwrap_or(0);
            out.put(&[shape as u8])?;
        }
        out.end()?;
    }
    Ok(())
}

/// Consecutive bytes of a file.
struct Output<'a> {
    file: &'a TeamFile,
    at: u64,
    bytes: Vec<u8>,
}

impl<'a> Output<'a> {
    fn new(file: &'a TeamFile, at: u64) -> Output<'a> {
        Output { file, at, bytes: Vec::with_capacity(PIECE) }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.bytes.len() + bytes.len() > PIECE {
            self.write()?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn put_index(&mut self, node: i64, ty: NcType) -> Result<()> {
        let bytes = node.to_be_bytes();
        self.put(&bytes[bytes.len() - ty.size()..])
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_at(&self.bytes, self.at)?;
        self.at += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { self.write() }
    }
}
