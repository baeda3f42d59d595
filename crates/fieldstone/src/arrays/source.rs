//! The place of a flushed array, and the file from which ranks read it.
//!
//! Rank 0 looks the place up and sends it to the others. Ranks read a slab of a file through its checksums; each rank
//! reads an array in the store's logs on its own. The last files stay open for the next read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::distributed::files::checked::CheckedFile;
use fieldstone_array::distributed::files::direct_io;
use fieldstone_array::distributed::files::image::Extent;
use fieldstone_array::distributed::group::{ArraySource, READ};
use fieldstone_array::distributed::plan::{FileArray, PastFileEnd};
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::env::comm::{CommReader, FileMode, Team, TeamFile};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::array_source::{SourceMessage, StoredSlab};
use fieldstone_store::Field;
use fieldstone_store::api::{FieldAccess, ReadOptions};

use super::each;
use super::logged_array::LoggedArray;
use crate::Session;
use crate::Store;

/// Number of files that stay open for reading.
const OPEN: usize = 16;

/// A key of the store, as keyword and value.
pub type Key = [(String, String)];

/// A key as the store takes it.
pub fn pairs(key: &Key) -> Vec<(&str, &str)> {
    key.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str())).collect()
}

/// The field of a key, as this process sees it.
fn field(store: &Store, key: &Key, session: &Session) -> Result<Field> {
    store.get(&pairs(key), &ReadOptions { session: session.clone() })
}

/// On rank 0: the place of the array under a key.
///
/// Errors: `NotFound` if there is none; `Invalid` if the field is not an array.
pub fn locate(store: &Store, key: &Key, session: &Session) -> Result<SourceMessage> {
    let field = field(store, key, session)?;
    if let Some(stored) = field.stored_array()? {
        let path = stored
            .path
            .to_str()
            .ok_or_else(|| Code::Name.error(format!("the path {} is not UTF-8", stored.path.display())))?;
        let slab = StoredSlab {
            path: path.to_owned(),
            offset: stored.offset,
            block: stored.block,
            sums: stored.sums,
        };
        return Ok(SourceMessage { dtype: stored.dtype, shape: stored.shape, stored: Some(slab) });
    }
    match (field.dtype()?, field.shape()?) {
        (Some(dtype), Some(shape)) => Ok(SourceMessage { dtype, shape, stored: None }),
        _ => Err(Code::Dtype.error(format!("{} holds bytes that are not an array", field.key()?))),
    }
}

/// Files open for reading, the last used one at the end. The same on all ranks.
#[derive(Debug, Default)]
pub struct OpenFiles {
    files: Vec<((PathBuf, Hints), TeamFile)>,
}

impl OpenFiles {
    /// Collective: the file of this path, opened with hints besides the communicator's; and whether this call opened
    /// it.
    fn open(&mut self, team: &Team, path: &Path, hints: &Hints) -> Result<(TeamFile, bool)> {
        if let Some(known) = self.files.iter().position(|((known, with), _)| known == path && with == hints) {
            let entry = self.files.remove(known);
            let file = entry.1.clone();
            self.files.push(entry);
            return Ok((file, false));
        }
        if self.files.len() >= OPEN {
            let (_, oldest) = self.files.remove(0);
            oldest.close(READ, Ok(()))?;
        }
        let file = team.open_with(READ, path, FileMode::Read, Ok(hints))?;
        self.files.push(((path.to_owned(), hints.clone()), file.clone()));
        Ok((file, true))
    }

    /// Collective: turns rank 0's message into a file of these ranks; and whether this call opened one.
    pub fn source(
        &mut self,
        team: &Team,
        message: &SourceMessage,
        (store, key, session): (&Store, &Key, &Session),
        hints: &Hints,
    ) -> Result<(ArraySource, bool)> {
        let SourceMessage { dtype, shape, stored } = message;
        let size = dtype.size() as u64;
        let (file, begin, opened) = match stored {
            Some(slab) => {
                let path = Path::new(&slab.path);
                let (file, opened) = self.open(team, path, hints)?;
                let all = team.hints().with(hints);
                let disk = &store.backend().env().disk;
                let file = direct_io::over(&file, &**disk, path, &all, false);
                let len = shape.iter().try_fold(size, |len, extent| len.checked_mul(*extent));
                let len = len.ok_or_else(|| Error::corrupt("an array exceeds 64 bits"))?;
                let extent = Extent { offset: slab.offset, len };
                let sums: Arc<[u32]> = slab.sums.as_slice().into();
                let checked = file.and_then(|(file, _)| {
                    CheckedFile::over(&file.reader(), &slab.path, extent, slab.block, sums)
                });
                (team.agree(READ, checked)?.0, slab.offset, opened)
            }
            None => {
                // This process has not seen another rank's commit yet.
                let own = store.refresh().and_then(|()| field(store, key, session));
                let own =
                    own.and_then(|field| {
                        let same =
                            field.shape()?.as_deref() == Some(&shape[..]) && field.dtype()? == Some(*dtype);
                        match same {
                            true => Ok(LoggedArray::new(field, shape.clone(), size)),
                            false => Err(Code::Conflict
                                .error("the field was archived again while ranks looked for it")),
                        }
                    });
                (team.pseudo_file::<dyn CommReader>(Arc::new(team.agree(READ, own)?)), 0, false)
            }
        };
        let array = FileArray::dense(begin, size);
        Ok((
            ArraySource { file, array, shape: shape.clone(), dtype: *dtype, past_end: PastFileEnd::Corrupt },
            opened,
        ))
    }

    /// Collective: closes all.
    pub fn close(&mut self) -> Result<()> {
        let files = std::mem::take(&mut self.files);
        each(files.into_iter().map(|(_, file)| file.close("close", Ok(()))))
    }
}
