//! Writes the name index: each rank writes its entries, rank 0 the checksums and the locator.
//!
//! Invariants: the bytes do not depend on the number of ranks; the file ends where the index ends; the locator is
//! written after everything to which it refers.

use std::borrow::Cow;

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::{Error, Result};
use fieldstone_format::bytes::Put;
use fieldstone_format::crc;
use fieldstone_format::netcdf::trailer::{self, IndexPart, Kind, Locator, PAGE, STRIDE, Sums};
use fieldstone_format::netcdf::{Header, write};

/// Number of entries converted to bytes at a time.
const PIECE: usize = 1 << 16;

/// Collective: writes the index of a file whose data end at `data_end`. `locator` lacks only the checksum of the page
/// checksums.
pub(super) fn write_index(
    file: &TeamFile,
    part: &IndexPart,
    mut locator: Locator,
    data_end: Result<u64>,
) -> Result<()> {
    let (team, root) = (file.team(), file.team().rank() == 0);
    let begin = data_end.and_then(trailer::begin_after);
    let lens = [part.entries.len(), part.dim_offsets.len(), part.var_offsets.len()];
    let lens = begin.as_ref().map(|_| lens.map(|len| len as u64).to_vec()).map_err(copy);
    let sums = team.sums("name index", lens)?;
    let begin = begin?;
    let places = locator.places();
    let expected = [
        u64::from(locator.dims) + u64::from(locator.vars),
        u64::from(locator.dims).div_ceil(STRIDE),
        u64::from(locator.vars).div_ceil(STRIDE),
    ];
    let mut pages = Sums::new(PAGE);
    let mut written = Ok(());
    if sums.total != expected {
        written = Err(Error::internal(format!(
            "the name index would hold {:?} entries and offsets, but the header has {expected:?}",
            sums.total
        )));
    }
    let parts = [
        (0, &part.entries),
        (places.dim_offsets, &part.dim_offsets),
        (places.var_offsets, &part.var_offsets),
    ];
    for ((at, words), before) in parts.into_iter().zip(&sums.before) {
        let mut at = at + before * 8;
        for piece in words.chunks(PIECE) {
            let bytes = trailer::words(piece);
            pages.add(at, &bytes);
            written = written.and_then(|()| file.write_at(&bytes, begin + at));
            at += bytes.len() as u64;
        }
    }
    let mut packed = Vec::new();
    packed.put_bytes(&part.header.pack());
    packed.put_bytes(&pages.pack());
    let gathered = team.gather("name index", 0, written.map(|()| packed))?;
    let end = begin + places.len();
    // The file's length is set before the locator is written, so that no file ends inside a locator.
    file.set_len("name index", Ok(end))?;
    let mut written = Ok(());
    if root {
        written = finish(file, &gathered, &mut locator, begin);
    }
    team.agree("name index", written)
}

/// Combines the checksums of the ranks, and writes the parts that depend on them.
fn finish(file: &TeamFile, gathered: &[Vec<u8>], locator: &mut Locator, begin: u64) -> Result<()> {
    let (mut header, mut pages) = (Sums::new(trailer::CHUNK), Sums::new(PAGE));
    for part in gathered {
        let mut cursor = fieldstone_format::bytes::Cursor::new(part);
        header.unpack(cursor.bytes()?)?;
        pages.unpack(cursor.bytes()?)?;
    }
    let places = locator.places();
    let unfit = || Error::internal("the parts of the header that ranks wrote do not form one header");
    let chunks = trailer::join(&header, locator.dims_at, locator.header_len).ok_or_else(unfit)?;
    let chunks: Vec<u8> = chunks.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    pages.add(places.chunks, &chunks);
    let pages = trailer::join(&pages, 0, places.body).ok_or_else(unfit)?;
    let pages: Vec<u8> = pages.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    locator.pages_crc = crc(&pages);
    let tail = [chunks, pages, locator.encode().to_vec()].concat();
    file.write_at(&tail, begin + places.chunks)
}

/// The part of an index that one rank makes alone, without the checksums of the header's bytes and the offsets of the
/// three lists. `raw` has names as they are in the file; `shown` gives the path for a name.
pub(super) fn part_of(raw: &Header, shown: impl Fn(&str) -> Cow<'_, str>) -> (IndexPart, [u64; 3]) {
    let mut part = IndexPart::default();
    for (kind, names) in [(Kind::Dim, &raw.dims.names), (Kind::Var, &raw.vars.names)] {
        let hashed = names.iter().map(|name| trailer::path_hash(&shown(name)));
        part.entries.extend(hashed.zip(0u32..).map(|(hash, id)| trailer::entry(hash, kind, id)));
    }
    part.entries.sort_unstable();
    let version = raw.version;
    let dims_at = write::head_size(version);
    let mut at = dims_at + write::list_head_size(version);
    for (i, dim) in raw.dims.iter().enumerate() {
        if (i as u64).is_multiple_of(STRIDE) {
            part.dim_offsets.push(at);
        }
        at += write::dim_size(version, dim.name, false);
    }
    let attrs_at = at;
    let vars_at = attrs_at + write::attrs_size(version, &raw.attrs, false);
    at = vars_at + write::list_head_size(version);
    for var in raw.vars.iter() {
        if (var.id() as u64).is_multiple_of(STRIDE) {
            part.var_offsets.push(at);
        }
        at += write::var_size(version, var, false);
    }
    (part, [dims_at, attrs_at, vars_at])
}

fn copy(error: &Error) -> Error {
    Error::new(error.code(), error.message())
}
