//! Which takeovers of a folder count, and which logs they replace (takeovers.md, 7).
//!
//! Invariants:
//! * of each owner the newest takeover counts, and those that it lists; a reader that cannot open one of them stays with
//!   those that it had (R29, R60);
//! * a takeover replaces logs of its own owner alone: whoever names a log of another user in his takeover hides nothing;
//! * header and record are all that is read of a takeover when it is opened (R66).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fieldstone_core::env::{Disk, DiskFile, Env};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::owner::Owner;
use fieldstone_format::takeover::{HEADER_PREFIX, TAIL, TakeoverHeader, TakeoverTable, parse_file_name};
use fieldstone_format::{Id, log};

use super::layout::Layout;
use super::open_files::{OpenFiles, read_vec};
use super::store::Store;
use crate::block_cache::BlockCache;
use crate::medium::{Loss, Problem};
use crate::takeover::{Takeover, TakeoverBytes, Takeovers};

/// The user who may do anything.
const ROOT: u32 = 0;

/// The takeovers of a folder.
#[derive(Debug)]
pub struct FolderTakeovers {
    cache: Arc<BlockCache>,
    /// Those that were opened and may count, by the name of their file.
    opened: HashMap<String, Arc<Takeover>>,
    counted: Takeovers,
    problems: Vec<Problem>,
    losses: Vec<Loss>,
    /// The users with takeovers that name a log, as far as anybody asked.
    known: HashMap<Id, Vec<u32>>,
}

/// The world in which takeovers are opened.
pub struct Opener<'a> {
    pub env: &'a Env,
    pub files: &'a Arc<OpenFiles>,
    pub store: Option<&'a Store>,
}

impl FolderTakeovers {
    /// None is known yet.
    pub fn new() -> FolderTakeovers {
        FolderTakeovers {
            cache: Arc::default(),
            opened: HashMap::new(),
            counted: Takeovers::default(),
            problems: Vec::new(),
            losses: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Those that count.
    pub fn counted(&self) -> &Takeovers {
        &self.counted
    }

    /// Takeovers that could not be opened.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Losses by takeovers that could not be opened, and of which nothing was known before.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Whether to look again, although the folder did not change: one could not be opened.
    pub fn is_due(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Takes the names in the folder of logs; whether others count than before.
    pub fn list(&mut self, names: &[String], opener: &Opener<'_>) -> Result<bool> {
        let mut by_owner: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (owner, number) in names.iter().filter_map(|name| parse_file_name(name)) {
            // A backup that is being brought up to date has takeovers that do not count yet.
            if opener.files.layout().last_takeover(owner).is_none_or(|last| number <= last) {
                by_owner.entry(owner).or_default().push(number);
            }
        }
        let (mut counted, mut opened) = (Vec::new(), HashMap::new());
        self.problems.clear();
        self.losses.clear();
        for (owner, mut numbers) in by_owner {
            numbers.sort_unstable();
            if let Some(all) = self.open_older(owner, &numbers, opener) {
                counted.extend(all);
                continue;
            }
            let Some(newest) = self.newest(owner, numbers, opener) else { continue };
            match self.open_owner(owner, newest, opener) {
                Ok(all) => counted.extend(all),
                Err((number, e))
                    if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::Denied) =>
                {
                    let before =
                        self.counted.all().iter().filter(|takeover| takeover.header.owner.name() == owner);
                    let before: Vec<Arc<Takeover>> = before.cloned().collect();
                    self.note(owner, (number, newest), &e, before.is_empty());
                    counted.extend(before);
                }
                Err((_, e)) => return Err(e),
            }
        }
        for takeover in &counted {
            opened.insert(takeover.shown.clone(), takeover.clone());
        }
        self.opened = opened;
        let counted = Takeovers::new(counted);
        let moved = !counted.is_same(&self.counted);
        if moved {
            self.counted = counted;
            // A log that was living may be replaced now, and one of another user may be named by its own, too.
            self.known.clear();
            self.note_condemned()?;
        }
        Ok(moved)
    }

    /// The takeovers of an owner at the older version that a backup is read at, where it still has them whole. The version may be
    /// older than all of them.
    fn open_older(&self, owner: &str, numbers: &[u64], opener: &Opener<'_>) -> Option<Vec<Arc<Takeover>>> {
        let layout = opener.files.layout();
        let old = layout.takeovers_at(owner, numbers)?;
        let found = old.into_iter().find_map(|number| self.open_owner(owner, number, opener).ok());
        found.or_else(|| layout.is_exact().then(Vec::new))
    }

    /// The newest takeover of an owner, of these numbers. Files that others made under his name are passed over, with a note:
    /// they must not hide his (R60).
    fn newest(&mut self, owner: &str, mut numbers: Vec<u64>, opener: &Opener<'_>) -> Option<u64> {
        while let Some(number) = numbers.pop() {
            let shown = format!("logs/{}", fieldstone_format::takeover::file_name(owner, number));
            let folder_owner = opener.store.map(|store| store.folder_owner);
            let is_known = self.opened.contains_key(&shown);
            if is_known
                || !is_foreign(&*opener.env.disk, opener.files.layout(), (owner, number), folder_owner)
            {
                return Some(number);
            }
            let why = "its file belongs to neither its owner nor the owner of the folder".to_owned();
            self.problems.push(Problem { file: shown, why, damage: false, skipped: true });
        }
        None
    }

    /// Notes logs that are still listed and replaced all the same: until their files go, each look would search all names
    /// for each of them.
    fn note_condemned(&mut self) -> Result<()> {
        for takeover in self.counted.all() {
            let noted = takeover.each_below(TakeoverTable::Condemned, b"logs/", |path, _| {
                let name = path.strip_prefix(b"logs/").and_then(|name| std::str::from_utf8(name).ok());
                if let Some(log) = name.and_then(log::parse_file_name) {
                    let users = self.known.entry(log).or_default();
                    if !users.contains(&takeover.user) {
                        users.push(takeover.user);
                    }
                }
                Ok(())
            });
            match noted {
                // It only spares searches.
                Err(e) if e.kind() == ErrorKind::Corrupt => {}
                noted => noted?,
            }
        }
        Ok(())
    }

    /// The takeovers of an owner that count; an error comes with the number of the one that cannot be opened.
    fn open_owner(
        &self,
        owner: &str,
        newest: u64,
        opener: &Opener<'_>,
    ) -> std::result::Result<Vec<Arc<Takeover>>, (u64, Error)> {
        let first = self.open(owner, newest, opener).map_err(|e| (newest, e))?;
        let mut all = vec![first.clone()];
        for (number, digest) in &first.header.live {
            let takeover = self.open(owner, *number, opener).map_err(|e| match e.kind() {
                ErrorKind::NotFound => {
                    let why = format!("the file is missing, and takeover {newest} lists it");
                    (*number, Code::DataGone.error(why))
                }
                _ => (*number, e),
            })?;
            if takeover.digest != *digest {
                let why = format!("takeover {number} is another one than takeover {newest} lists");
                return Err((*number, Error::corrupt(why)));
            }
            all.push(takeover);
        }
        Ok(all)
    }

    fn open(&self, owner: &str, number: u64, opener: &Opener<'_>) -> Result<Arc<Takeover>> {
        let name = fieldstone_format::takeover::file_name(owner, number);
        let shown = format!("logs/{name}");
        if let Some(known) = self.opened.get(&shown) {
            return Ok(known.clone());
        }
        let path = opener.files.layout().logs().join(&name);
        let file = opener.env.disk.open_plain(&path, false).map_err(|e| Error::io("open", &path, e))?;
        let stat = file.stat().map_err(|e| Error::io("look at", &path, e))?;
        let named = |e: Error| e.context(&shown);
        let (header, bytes) = read_header(&*file, &path, stat.len).map_err(named)?;
        let user = match header.owner {
            Owner::User(user) => user,
            Owner::Subject { .. } => return Err(named(Error::denied("it is of a subject of a server"))),
        };
        let may = [user, ROOT].contains(&stat.uid)
            || opener.store.is_some_and(|store| store.folder_owner == stat.uid);
        if !may {
            return Err(named(Error::denied(
                "its file belongs to neither its owner nor the owner of the folder",
            )));
        }
        if (header.owner.name().as_str(), header.number) != (owner, number) {
            return Err(named(Error::corrupt("it carries another takeover's name")));
        }
        if opener.store.is_some_and(|store| !store.has(header.store)) {
            return Err(named(Error::corrupt("it is of another store")));
        }
        let record = read_record(&*file, &path, &header).map_err(named)?;
        let id = header.id;
        opener.files.name_takeover(id, path.clone());
        let source = Box::new(FolderBytes { files: opener.files.clone(), id });
        let takeover = Takeover::new(
            (header, &bytes),
            &record,
            (user, shown.clone(), stat.len),
            source,
            self.cache.clone(),
        );
        takeover.map(Arc::new).map_err(named)
    }

    /// Notes a takeover that cannot be opened, the newest one or one that this lists.
    fn note(&mut self, owner: &str, (number, newest): (u64, u64), error: &Error, is_lost: bool) {
        let file = format!("logs/{}", fieldstone_format::takeover::file_name(owner, number));
        let denied = error.kind() == ErrorKind::Denied;
        let why = error.message().to_owned();
        let user = owner.strip_prefix('u').and_then(|uid| uid.parse().ok());
        if let Some(user) = user.filter(|_| is_lost && !denied) {
            let log = Id(xxhash_rust::xxh3::xxh3_128(file.as_bytes()).to_le_bytes());
            self.losses.push(Loss {
                log,
                owner: user,
                seen: 0,
                known: newest,
                file: file.clone(),
                why: why.clone(),
            });
        }
        self.problems.push(Problem { file, why, damage: !denied, skipped: denied });
    }

    /// The users with takeovers that name a log: it is replaced if its own user is among them (R60).
    pub fn users_of(&mut self, log: Id) -> Result<&[u32]> {
        if self.counted.is_empty() {
            return Ok(&[]);
        }
        if !self.known.contains_key(&log) {
            let mut users = Vec::new();
            for takeover in self.counted.all().iter() {
                match takeover.log(log) {
                    Ok(Some(_)) if !users.contains(&takeover.user) => users.push(takeover.user),
                    Ok(_) => {}
                    // The table is damaged, and `verify` says so: the log itself is read where it is still there.
                    Err(e) if e.kind() == ErrorKind::Corrupt => {}
                    Err(e) => return Err(e),
                }
            }
            self.known.insert(log, users);
        }
        Ok(self.known.get(&log).map_or(&[], Vec::as_slice))
    }
}

/// The last commit, with sequence and hash, of a log of `owner` that a takeover replaces, as its writer asks who finds its
/// file gone. `None` also where nothing can be read: then the file counts as lost.
pub fn replaced_upto(
    env: &Env,
    layout: &Layout,
    (writer, store): (Id, Id),
    owner: u32,
) -> Option<(u64, u32)> {
    let folder = layout.logs();
    let names = env.disk.list_dir(&folder).ok()?;
    let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    let store = Store { id: store, former: layout.former(), folder_owner: env.disk.stat(&folder).ok()?.uid };
    // New handles: those of before may be of files that are gone.
    let files = Arc::new(OpenFiles::new(env.disk.clone(), layout.clone()));
    let mut takeovers = FolderTakeovers::new();
    takeovers.list(&names, &Opener { env, files: &files, store: Some(&store) }).ok()?;
    let own = takeovers.counted.all().iter().filter(|takeover| takeover.user == owner);
    let mut rows = own.filter_map(|takeover| takeover.log(writer).ok().flatten());
    rows.next().map(|log| (log.row.sequence, log.row.hash))
}

/// Whether the file of a takeover certainly belongs to somebody whose takeovers do not count for the user in its name.
pub fn is_foreign(
    disk: &dyn Disk,
    layout: &Layout,
    (owner, number): (&str, u64),
    folder_owner: Option<u32>,
) -> bool {
    let user: Option<u32> = owner.strip_prefix('u').and_then(|uid| uid.parse().ok());
    let path = layout.logs().join(fieldstone_format::takeover::file_name(owner, number));
    match (user, disk.stat(&path)) {
        (Some(user), Ok(stat)) => ![user, ROOT].contains(&stat.uid) && folder_owner != Some(stat.uid),
        _ => false,
    }
}

/// Header of a takeover, from whichever copy is whole, and the bytes that it was read from.
pub fn read_header(
    file: &dyn DiskFile,
    path: &std::path::Path,
    len: u64,
) -> Result<(TakeoverHeader, Vec<u8>)> {
    let first = read_vec(file, path, 0, HEADER_PREFIX as u64)
        .and_then(|prefix| TakeoverHeader::length(&prefix))
        .and_then(|length| read_vec(file, path, 0, u64::from(length)))
        .and_then(|bytes| Ok((TakeoverHeader::decode(&bytes)?, bytes)));
    first.or_else(|e| {
        let copy = || {
            let tail = read_vec(file, path, len.saturating_sub(TAIL as u64), TAIL as u64)?;
            let length = u64::from(TakeoverHeader::length_of_tail(&tail)?);
            let bytes = read_vec(file, path, len.saturating_sub(TAIL as u64 + length), length)?;
            Ok((TakeoverHeader::decode(&bytes)?, bytes))
        };
        copy().map_err(|_: Error| e)
    })
}

/// The bytes of a takeover's record, from whichever copy is whole.
fn read_record(file: &dyn DiskFile, path: &std::path::Path, header: &TakeoverHeader) -> Result<Vec<u8>> {
    let length = u64::from(header.record_len);
    let copy = |offset: u64| {
        let bytes = read_vec(file, path, offset, length)?;
        fieldstone_format::takeover::TakeoverRecord::decode(&bytes, header).map(|_| bytes)
    };
    copy(header.record_offset).or_else(|e| copy(header.record_offset.saturating_add(length)).map_err(|_| e))
}

/// Checks both copies of header and record, for `verify`.
pub fn check_copies(disk: &dyn Disk, path: &std::path::Path) -> Result<()> {
    let file = disk.open_plain(path, false).map_err(|e| Error::io("open", path, e))?;
    let len = file.stat().map_err(|e| Error::io("look at", path, e))?.len;
    let prefix = read_vec(&*file, path, 0, HEADER_PREFIX as u64)?;
    let length = u64::from(TakeoverHeader::length(&prefix)?);
    let first = read_vec(&*file, path, 0, length)?;
    let header = TakeoverHeader::decode(&first)?;
    let tail = read_vec(&*file, path, len.saturating_sub(TAIL as u64), TAIL as u64)?;
    TakeoverHeader::length_of_tail(&tail)?;
    if read_vec(&*file, path, len.saturating_sub(TAIL as u64 + length), length)? != first {
        return Err(Error::corrupt("the two copies of its header differ"));
    }
    for copy in 0..2 {
        let offset = header.record_offset + copy * u64::from(header.record_len);
        let bytes = read_vec(&*file, path, offset, u64::from(header.record_len))?;
        fieldstone_format::takeover::TakeoverRecord::decode(&bytes, &header)?;
    }
    Ok(())
}

/// The files of a takeover in a folder.
#[derive(Debug)]
struct FolderBytes {
    files: Arc<OpenFiles>,
    id: Id,
}

impl TakeoverBytes for FolderBytes {
    fn read(&self, file: u32, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.files.read(self.id, file, buffer, offset)
    }
}
