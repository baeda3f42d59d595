//! A header that stays in its file: the name index finds objects.
//!
//! The index is a hint (C-6). An object's own entry in the header is always parsed, and trusted only if the checksum
//! of the 64 KiB around it matches. The answer that there is no such object, and the distance between records,
//! require matching checksums of the whole header. At the first disagreement of any kind, the index is discarded and
//! the whole header is read ([`LoadedHeader`]). So a file that another program has changed is read as it is now.
//!
//! Invariants: at most [`CACHED`] chunks of the header are in memory; every answer equals that of [`LoadedHeader`].

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};

use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Error, Result};
use fieldstone_format::crc;
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::parse::{self, Source, VarEntry};
use fieldstone_format::netcdf::trailer::{self, CHUNK, Kind, LOCATOR, Locator, PAGE, Places, STRIDE};
use fieldstone_format::netcdf::{Attrs, Header, Version, names};

use super::header::OpenHeader;
use super::loaded_header::{LoadedHeader, ParsedHeader, shown_attrs, shown_name};
use crate::container::access::Records;
use crate::container::model::{Counts, DimInfo, Format, Metadata, VarInfo, is_under};

/// Number of chunks and pages kept.
const CACHED: usize = 8;

/// See the module's documentation.
pub(crate) struct IndexedHeader {
    source: Arc<dyn Source + Send + Sync>,
    version: Version,
    locator: Locator,
    places: Places,
    begin: u64,
    attr_count: u64,
    pages: Vec<u32>,
    records: Arc<Records>,
    cache: Mutex<HeaderCache>,
    loaded: OnceLock<LoadedHeader>,
}

#[derive(Debug, Default)]
struct HeaderCache {
    chunks: PieceCache,
    pages: PieceCache,
    /// Whether every chunk of the header was found to match its checksum.
    sound: bool,
}

/// Pieces of a file by number, the most recently used last.
#[derive(Debug, Default)]
struct PieceCache(VecDeque<(u64, Arc<Vec<u8>>)>);

impl PieceCache {
    fn get(&mut self, number: u64) -> Option<Arc<Vec<u8>>> {
        let at = self.0.iter().position(|(other, _)| *other == number)?;
        let piece = self.0.remove(at)?;
        self.0.push_back(piece.clone());
        Some(piece.1)
    }
    fn insert(&mut self, number: u64, bytes: Arc<Vec<u8>>) {
        if self.0.len() == CACHED {
            self.0.pop_front();
        }
        self.0.push_back((number, bytes));
    }
}

/// An answer of the index; `None` means that it cannot be trusted.
type Hint<T> = Result<Option<T>>;

macro_rules! trusted {
    ($hint:expr) => {
        match $hint? {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}

impl fmt::Debug for IndexedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexedHeader").field("locator", &self.locator).field("begin", &self.begin).finish()
    }
}

impl IndexedHeader {
    /// The index of a file, if it has one that fits. Reads the locator, the heads of the header's lists, the chunks
    /// with the global attributes and the page checksums.
    pub fn open(source: Arc<dyn Source + Send + Sync>) -> Result<Option<IndexedHeader>> {
        let len = source.len()?;
        let Some(locator_at) = len.checked_sub(LOCATOR) else { return Ok(None) };
        let tail = trusted!(exactly(&*source, locator_at, LOCATOR));
        let Some(locator) = Locator::decode(&tail) else { return Ok(None) };
        let places = locator.places();
        let Some(begin) = places.begin(len, locator.header_len) else { return Ok(None) };
        let head = trusted!(exactly(&*source, 0, 12));
        let Some(version) = Version::from_byte(head[3]).filter(|_| head.starts_with(b"CDF")) else {
            return Ok(None);
        };
        let width = version.size_width();
        if locator.dims_at != 4 + width as u64 {
            return Ok(None);
        }
        let numrecs = number(&head[4..4 + width]);
        // All ones mean that the file's length gives the number; for numbers beyond 2^63, only the full header's
        // parser can report the error.
        if numrecs == number(&[0xff; 8][..width]) || numrecs > i64::MAX as u64 {
            return Ok(None);
        }
        let pages = trusted!(exactly(&*source, begin + places.body, places.pages * 4));
        if crc(&pages) != locator.pages_crc {
            return Ok(None);
        }
        let pages = pages.chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]));
        let mut indexed = IndexedHeader {
            source,
            version,
            locator,
            places,
            begin,
            attr_count: 0,
            pages: pages.collect(),
            records: Arc::new(Records::new(numrecs, version)),
            cache: Mutex::default(),
            loaded: OnceLock::new(),
        };
        let lists = [
            (locator.dims_at, 10, Some(locator.dims)),
            (locator.attrs_at, 12, None),
            (locator.vars_at, 11, Some(locator.vars)),
        ];
        for (at, tag, expected) in lists {
            let bytes = trusted!(indexed.header(at, 4 + width as u64));
            let (found, count) = (number(&bytes[..4]), number(&bytes[4..]));
            let fits = if count == 0 { found == 0 || found == tag } else { found == tag };
            if !fits || expected.is_some_and(|expected| u64::from(expected) != count) {
                return Ok(None);
            }
            if tag == 12 {
                indexed.attr_count = count;
            }
        }
        // A global attribute records whether names are escaped, so these attributes must be unchanged.
        let attrs = locator.vars_at - locator.attrs_at;
        Ok(indexed.checked(locator.attrs_at, attrs)?.map(|()| indexed))
    }

    /// The facts in the index about the file as a whole.
    pub fn locator(&self) -> &Locator {
        &self.locator
    }

    /// The number of records, shared with writers.
    pub fn shared_records(&self) -> Arc<Records> {
        self.records.clone()
    }

    fn cache(&self) -> MutexGuard<'_, HeaderCache> {
        self.cache.lock()
    }

    /// Bytes of the index's body, with matching page checksums.
    fn body(&self, at: u64, len: u64) -> Hint<Vec<u8>> {
        let mut bytes = Vec::new();
        for page in at / PAGE..(at + len).div_ceil(PAGE) {
            let known = self.cache().pages.get(page);
            let known = match known {
                Some(known) => known,
                None => {
                    let start = page * PAGE;
                    let size = PAGE.min(self.places.body - start);
                    let read = trusted!(exactly(&*self.source, self.begin + start, size));
                    if self.pages.get(page as usize) != Some(&crc(&read)) {
                        return Ok(None);
                    }
                    let read = Arc::new(read);
                    self.cache().pages.insert(page, read.clone());
                    read
                }
            };
            let from = at.max(page * PAGE) - page * PAGE;
            let to = (at + len - page * PAGE).min(known.len() as u64);
            let Some(part) = known.get(from as usize..to as usize) else { return Ok(None) };
            bytes.extend_from_slice(part);
        }
        Ok(Some(bytes))
    }

    fn word(&self, at: u64) -> Hint<u64> {
        let bytes = trusted!(self.body(at, 8));
        Ok(bytes.try_into().ok().map(u64::from_le_bytes))
    }

    /// A chunk of the header with a matching checksum. The first one lacks magic and number of records.
    fn chunk(&self, chunk: u64) -> Hint<Arc<Vec<u8>>> {
        if let Some(known) = self.cache().chunks.get(chunk) {
            return Ok(Some(known));
        }
        let from = (chunk * CHUNK).max(self.locator.dims_at);
        let to = ((chunk + 1) * CHUNK).min(self.locator.header_len);
        let Some(len) = to.checked_sub(from) else { return Ok(None) };
        let sum = trusted!(self.body(self.places.chunks + chunk * 4, 4));
        let bytes = trusted!(exactly(&*self.source, from, len));
        if crc(&bytes).to_le_bytes() != sum[..] {
            return Ok(None);
        }
        let bytes = Arc::new(bytes);
        self.cache().chunks.insert(chunk, bytes.clone());
        Ok(Some(bytes))
    }

    /// Bytes of the header, with matching checksums.
    fn header(&self, at: u64, len: u64) -> Hint<Vec<u8>> {
        let (Some(end), true) = (at.checked_add(len), at >= self.locator.dims_at) else { return Ok(None) };
        if end > self.locator.header_len {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        for chunk in at / CHUNK..end.div_ceil(CHUNK) {
            let known = trusted!(self.chunk(chunk));
            let first = (chunk * CHUNK).max(self.locator.dims_at);
            let (from, to) = (at.max(first) - first, end.min((chunk + 1) * CHUNK) - first);
            let Some(part) = known.get(from as usize..to as usize) else { return Ok(None) };
            bytes.extend_from_slice(part);
        }
        Ok(Some(bytes))
    }

    /// Whether the checksums of a part of the header match.
    fn checked(&self, at: u64, len: u64) -> Hint<()> {
        for chunk in at / CHUNK..(at + len).div_ceil(CHUNK) {
            trusted!(self.chunk(chunk));
        }
        Ok(Some(()))
    }

    /// Whether the checksums of the whole header match.
    fn sound(&self) -> Hint<()> {
        if self.cache().sound {
            return Ok(Some(()));
        }
        trusted!(self.checked(self.locator.dims_at, self.locator.header_len - self.locator.dims_at));
        self.cache().sound = true;
        Ok(Some(()))
    }

    /// Numbers of the objects that may have this path: those with its hash.
    fn candidates(&self, path: &str, kind: Kind) -> Hint<Vec<u32>> {
        let wanted = trailer::path_hash(path) >> 32;
        let count = u64::from(self.locator.dims) + u64::from(self.locator.vars);
        let per_page = PAGE / 8;
        let pages = count.div_ceil(per_page);
        if pages == 0 {
            return Ok(Some(Vec::new()));
        }
        let entries = |page: u64| -> Hint<Vec<u64>> {
            let from = page * per_page;
            let bytes = trusted!(self.body(from * 8, per_page.min(count - from) * 8));
            let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok().map(u64::from_le_bytes));
            Ok(Some(words.collect()))
        };
        // Hashes are evenly distributed: the entry is where its hash predicts, or a page or two away.
        let guess = ((u128::from(wanted) * u128::from(count)) >> 32) as u64;
        let mut page = (guess / per_page).min(pages - 1);
        while page > 0 {
            let first = trusted!(self.word(page * PAGE));
            if first >> 32 < wanted {
                break;
            }
            page -= 1;
        }
        let mut found = Vec::new();
        while page < pages {
            for entry in trusted!(entries(page)) {
                let (its_kind, id) = trailer::object(entry);
                if entry >> 32 > wanted {
                    return Ok(Some(found));
                }
                if entry >> 32 == wanted && its_kind == kind {
                    found.push(id);
                }
            }
            page += 1;
        }
        Ok(Some(found))
    }

    /// Bytes of the block of entries that contains object `id`, and the number of the first object in it.
    fn block(&self, kind: Kind, id: u64) -> Hint<(Vec<u8>, u64)> {
        let (offsets, count, end) = match kind {
            Kind::Dim => (self.places.dim_offsets, self.locator.dims, self.locator.attrs_at),
            Kind::Var => (self.places.var_offsets, self.locator.vars, self.locator.header_len),
        };
        if id >= u64::from(count) {
            return Ok(None);
        }
        let block = id / STRIDE;
        let from = trusted!(self.word(offsets + block * 8));
        let last = (block + 1) * STRIDE >= u64::from(count);
        let to = if last { end } else { trusted!(self.word(offsets + (block + 1) * 8)) };
        let Some(len) = to.checked_sub(from) else { return Ok(None) };
        Ok(self.header(from, len)?.map(|bytes| (bytes, block * STRIDE)))
    }

    fn dims_from(&self, from: u64, limit: usize) -> Hint<Vec<DimInfo>> {
        let count = u64::from(self.locator.dims);
        let to = from.saturating_add(limit as u64).min(count);
        let mut dims = Vec::new();
        while from + (dims.len() as u64) < to {
            let wanted = from + dims.len() as u64;
            let (bytes, first) = trusted!(self.block(Kind::Dim, wanted));
            let mut at = 0;
            for id in first..(first + STRIDE).min(to) {
                let Ok(Some((entry, len))) = parse::dim_entry(&bytes[at..], self.version) else {
                    return Ok(None);
                };
                at += len;
                if id >= wanted {
                    let Ok(name) = entry.name() else { return Ok(None) };
                    let is_record = entry.len == 0;
                    let len = if is_record { self.records.get() } else { entry.len };
                    let name = shown_name(name, self.locator.escaped).into_owned();
                    dims.push(DimInfo { id, name, len, is_record });
                }
            }
        }
        Ok(Some(dims))
    }

    fn vars_from(&self, from: u64, limit: usize) -> Hint<Vec<VarInfo>> {
        let count = u64::from(self.locator.vars);
        let to = from.saturating_add(limit as u64).min(count);
        let mut vars = Vec::new();
        while from + (vars.len() as u64) < to {
            let wanted = from + vars.len() as u64;
            let (bytes, first) = trusted!(self.block(Kind::Var, wanted));
            let mut at = 0;
            for id in first..(first + STRIDE).min(to) {
                let Ok(Some((entry, len))) = parse::var_entry(&bytes[at..], self.version) else {
                    return Ok(None);
                };
                at += len;
                if id >= wanted {
                    vars.push(trusted!(self.var_info(id, &entry)));
                }
            }
        }
        Ok(Some(vars))
    }

    /// Examines the names of all variables, but parses the rest only for those under the path.
    fn hinted_vars_of(&self, path: &str) -> Hint<Vec<VarInfo>> {
        let (count, mut found) = (u64::from(self.locator.vars), Vec::new());
        for first in (0..count).step_by(STRIDE as usize) {
            let (bytes, _) = trusted!(self.block(Kind::Var, first));
            let mut at = 0;
            for id in first..(first + STRIDE).min(count) {
                let Ok(Some((entry, len))) = parse::var_entry(&bytes[at..], self.version) else {
                    return Ok(None);
                };
                at += len;
                let Ok(name) = entry.name() else { return Ok(None) };
                if is_under(&shown_name(name, self.locator.escaped), path) {
                    found.push(trusted!(self.var_info(id, &entry)));
                }
            }
        }
        // Every entry is one for which the index was made, and their number is the header's: there are no others.
        Ok(Some(found))
    }

    fn var_info(&self, id: u64, entry: &VarEntry<'_>) -> Hint<VarInfo> {
        let mut dims = Vec::with_capacity(entry.dims().len());
        for dim in entry.dims() {
            dims.append(&mut trusted!(self.dims_from(dim, 1)));
        }
        let known = dims.len() == entry.dims().len() && entry.ty.is_in(self.version);
        if !known || dims.iter().skip(1).any(|dim: &DimInfo| dim.is_record) {
            return Ok(None);
        }
        let is_record = dims.first().is_some_and(|dim| dim.is_record);
        if is_record {
            // The distance between records depends on every record variable.
            trusted!(self.sound());
        }
        let mut attrs = Attrs::default();
        for attr in entry.attrs() {
            let Ok(attr) = attr.get() else { return Ok(None) };
            attrs.push(attr.name, attr.ty, attr.value);
        }
        let Ok(name) = entry.name() else { return Ok(None) };
        Ok(Some(VarInfo {
            id,
            name: shown_name(name, self.locator.escaped).into_owned(),
            ty: entry.ty,
            dims,
            attrs,
            begin: entry.begin,
            record_stride: if is_record { self.locator.record_size } else { 0 },
        }))
    }

    fn hinted_var(&self, path: &str) -> Hint<Option<VarInfo>> {
        for id in trusted!(self.candidates(path, Kind::Var)) {
            let var = trusted!(self.vars_from(u64::from(id), 1)).pop();
            if let Some(var) = var.filter(|var| var.name == path) {
                return Ok(Some(Some(var)));
            }
        }
        Ok(self.sound()?.map(|()| None))
    }

    fn hinted_dim(&self, path: &str) -> Hint<Option<DimInfo>> {
        for id in trusted!(self.candidates(path, Kind::Dim)) {
            let dim = trusted!(self.dims_from(u64::from(id), 1)).pop();
            if let Some(dim) = dim.filter(|dim| dim.name == path) {
                return Ok(Some(Some(dim)));
            }
        }
        Ok(self.sound()?.map(|()| None))
    }

    fn hinted_attrs(&self) -> Hint<Attrs> {
        let head = 4 + self.version.size_width() as u64;
        let from = self.locator.attrs_at + head;
        let Some(len) = self.locator.vars_at.checked_sub(from) else { return Ok(None) };
        let bytes = trusted!(self.header(from, len));
        let (mut raw, mut at) = (Attrs::default(), 0);
        for _ in 0..self.attr_count {
            let Ok(Some((entry, len))) = parse::attr_entry(&bytes[at..], self.version) else {
                return Ok(None);
            };
            let Ok(attr) = entry.get() else { return Ok(None) };
            raw.push(attr.name, attr.ty, attr.value);
            at += len;
        }
        Ok(Some(shown_attrs(&raw, self.locator.escaped)))
    }

    /// The answer of the index if it is trusted, else that of the whole header.
    fn answer<T>(
        &self,
        hint: impl FnOnce(&IndexedHeader) -> Hint<T>,
        loaded: impl FnOnce(&LoadedHeader) -> Result<T>,
    ) -> Result<T> {
        if self.loaded.get().is_none()
            && let Some(answer) = hint(self)?
        {
            return Ok(answer);
        }
        loaded(self.loaded()?)
    }

    /// The whole header; the first call reads it and discards the index.
    fn loaded(&self) -> Result<&LoadedHeader> {
        if self.loaded.get().is_none() {
            let read = ParsedHeader::from(&*self.source)?;
            self.records.raise(read.numrecs(&*self.source)?);
            let (header, layout) = read.shown();
            let _ = self.loaded.set(LoadedHeader::new(header, layout, self.records.clone()));
        }
        self.loaded.get().ok_or_else(|| Error::internal("a header that was read is not there"))
    }
}

impl Metadata for IndexedHeader {
    fn format(&self) -> Format {
        Format::Classic(self.version)
    }
    fn counts(&self) -> Result<Counts> {
        let stated = u64::from(self.locator.escaped);
        let counts = Counts {
            dims: u64::from(self.locator.dims),
            attrs: self.attr_count.saturating_sub(stated),
            vars: u64::from(self.locator.vars),
        };
        self.answer(|_| Ok(Some(counts)), |loaded| loaded.counts())
    }
    fn numrecs(&self) -> Result<u64> {
        Ok(self.records.get())
    }
    fn find_var(&self, path: &str) -> Result<Option<VarInfo>> {
        let find = |path: &str| self.answer(|own| own.hinted_var(path), |loaded| loaded.find_var(path));
        // As given first: other programs may have renamed it to a name that is not in NFC.
        match (find(path)?, names::nfc(path)) {
            (None, Cow::Owned(path)) => find(&path),
            (found, _) => Ok(found),
        }
    }
    fn find_dim(&self, path: &str) -> Result<Option<DimInfo>> {
        let find = |path: &str| self.answer(|own| own.hinted_dim(path), |loaded| loaded.find_dim(path));
        // As given first: other programs may have renamed it to a name that is not in NFC.
        match (find(path)?, names::nfc(path)) {
            (None, Cow::Owned(path)) => find(&path),
            (found, _) => Ok(found),
        }
    }
    fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>> {
        self.answer(|own| own.vars_from(from, limit), |loaded| loaded.vars(from, limit))
    }
    fn vars_of(&self, path: &str) -> Result<Vec<VarInfo>> {
        self.answer(|own| own.hinted_vars_of(path), |loaded| loaded.vars_of(path))
    }
    fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>> {
        self.answer(|own| own.dims_from(from, limit), |loaded| loaded.dims(from, limit))
    }
    fn attrs(&self) -> Result<Attrs> {
        self.answer(IndexedHeader::hinted_attrs, |loaded| loaded.attrs())
    }
    fn memory(&self) -> u64 {
        let cache = self.cache();
        let kept = cache.chunks.0.iter().chain(&cache.pages.0).map(|(_, bytes)| bytes.len() as u64);
        let kept = kept.sum::<u64>() + self.pages.len() as u64 * 4;
        kept + self.loaded.get().map_or(0, Metadata::memory)
    }
}

impl OpenHeader for IndexedHeader {
    /// The index lacks it: this reads the header and keeps nothing of it.
    fn layout(&self) -> Result<Layout> {
        Ok(ParsedHeader::from(&*self.source)?.layout)
    }
    fn header(&self) -> Result<&Header> {
        Ok(self.loaded()?.header())
    }
}

/// Exactly these bytes; `None` if the file ends earlier.
fn exactly(source: &dyn Source, at: u64, len: u64) -> Hint<Vec<u8>> {
    let fits = at.checked_add(len).is_some_and(|end| source.len().is_ok_and(|all| end <= all));
    if !fits {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    let read = source.read_at(&mut bytes, at)?;
    Ok((read == bytes.len()).then_some(bytes))
}

/// A big-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
