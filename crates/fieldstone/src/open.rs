//! From a URL to a store.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, Env};
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::attempt::Origin;
use fieldstone_journal::medium::posix::layout::Layout;
use fieldstone_store::api::{Compression, IfExists};
use fieldstone_store::local::{LocalOptions, LocalStore};

use crate::Session;
use crate::catalog::CatalogSettings;
use crate::own_files::FOLDERS;
use crate::{Store, scheduler};

/// The mode of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reading and archiving; the first commit makes an absent store. "a"
    #[default]
    Append,
    /// Reading only; NotFound if there is no store. "r"
    Read,
    /// Reading and archiving; NotFound if there is no store, such as below the mount point of a file system that is not
    /// mounted. "r+"
    Update,
    /// A new store; Conflict if there is one. "x"
    Create,
}

impl Mode {
    /// Reads `a`, `r`, `r+` or `x`.
    pub fn parse(text: &str) -> Result<Mode> {
        match text {
            "a" => Ok(Mode::Append),
            "r" => Ok(Mode::Read),
            "r+" => Ok(Mode::Update),
            "x" => Ok(Mode::Create),
            _ => Err(Code::Option
                .error(format!("'{text}' is not a mode of a store"))
                .with_hint("use a, r, r+ or x")),
        }
    }

    /// The mode, if [`CREATE`] allows it to make stores in folders. A call that asks for a new one may always make it.
    fn where_allowed(self) -> Result<Mode> {
        let text = std::env::var_os(CREATE).unwrap_or_default();
        match (self, text.to_str()) {
            (_, Some("" | "1")) => Ok(self),
            (Mode::Append, Some("0")) => Ok(Mode::Update),
            (_, Some("0")) => Ok(self),
            (_, _) => Err(Code::Option
                .error(format!("{CREATE}={} is not a valid value", text.to_string_lossy()))
                .with_hint("use 0 to refuse to create a missing store, 1 or unset to create it")),
        }
    }
}

/// The environment variable whose value 0 makes mode `a` mean `r+`.
const CREATE: &str = "FIELDSTONE_CREATE";

/// Options for opening a store.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The mode.
    pub mode: Mode,
    /// `simulation`, `mars`, the path of a schema file, or a schema's text (it holds a `[`). If absent, the store's
    /// own; `simulation` for a new one.
    pub schema: Option<String>,
    /// A version: opens the store as of that version, for reading.
    pub at: Option<String>,
    /// Compression of blocks, unless a call gives its own.
    pub compression: Option<Compression>,
    /// The catalog's engine: `postgresql://…`; the embedded one if absent.
    pub catalog: Option<String>,
    /// Whether every change outside transactions is durable before its call returns; concurrent changes of several
    /// threads share a commit.
    pub durable: bool,
    /// The job's attempt that writes: under a key its writes hide those of older attempts. The same on all ranks of the
    /// job, and different when the job is started again.
    pub attempt: Option<String>,
    /// This process's rank in the job; if absent, from the environment.
    pub rank: Option<u32>,
    /// How to archive a key that has a field; if absent, as the store says ([`Store::set_if_exists`]).
    pub if_exists: Option<IfExists>,
    /// The format version of a new store, the newest if absent; [`init`] pins it.
    pub format: Option<u32>,
    /// Whether a close now and then takes over a few ended logs; if absent, unless the environment variable
    /// `FIELDSTONE_CLOSING_MERGES` is 0.
    pub closing_merges: Option<bool>,
}

/// Opens the store at `url`: a folder's path, a `file:` URL, whose path is decoded (`file:///my%20store`), or `memory:`
/// for a new store in memory. If the environment variable `FIELDSTONE_CREATE` is 0, mode `a` is `r+`: only [`init`] and
/// mode `x` make a store.
pub fn open(url: &str, options: &OpenOptions) -> Result<Store> {
    let (env, outside, path) = place(url)?;
    let native = outside.is_none();
    let mode = if native { options.mode.where_allowed()? } else { options.mode };
    open_local(env, outside, native, url, &path, &OpenOptions { mode, ..options.clone() })
}

/// The disk of files outside a store, if it is not the store's.
type Outside = Option<Arc<dyn Disk>>;

/// The environment, the disk for outside files and the folder for a URL.
fn place(url: &str) -> Result<(Env, Outside, PathBuf)> {
    if url == "memory:" {
        // Files taken without copying are still on this machine's disk.
        return Ok((SimWorld::memory(), Some(Env::real().disk), "/store".into()));
    }
    let path = local_path(url)?;
    if path.as_os_str().is_empty() {
        return Err(Code::Url.error("the URL of the store is empty").with_hint("give a folder, or memory:"));
    }
    Ok((Env::real(), None, path))
}

/// The path that a URL of this machine names: a literal path, with `~` for the home folder, or a `file:` URL, whose
/// path is decoded.
///
/// ```
/// assert_eq!(fieldstone::local_path("file://localhost/my%20store")?.to_str(), Some("/my store"));
/// assert!(fieldstone::local_path("file://elsewhere/store").is_err());
/// # Ok::<(), fieldstone::Error>(())
/// ```
pub fn local_path(url: &str) -> Result<PathBuf> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file")) {
        return file_url(url, &url["file:".len()..]);
    }
    match url.split_once("://") {
        Some((scheme, _)) => Err(Code::Url
            .error(format!("the scheme {scheme}:// does not reach a store"))
            .with_hint("give a folder, or memory:")),
        None => at_home(url),
    }
}

/// The path of a `file:` URL, from the text after its scheme: `/path`, `///path`, `//localhost/path`, or a path
/// relative to the working folder.
fn file_url(url: &str, rest: &str) -> Result<PathBuf> {
    let wrong = |what: String| {
        Err(Code::Url.error(format!("{url}: {what}")).with_hint("write file:///PATH, or the path"))
    };
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return wrong(format!("a file: URL does not reach files of the host '{host}'"));
            }
            path
        }
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = digits.filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|byte| *byte != 0) {
            Some(byte) => bytes.push(byte),
            None => {
                return wrong(
                    "two hexadecimal digits must follow a %; write %25 for the % itself".to_owned(),
                );
            }
        }
        rest = &after[2..];
    }
    match String::from_utf8(bytes) {
        Ok(path) => at_home(&path),
        Err(error) => Ok(OsString::from_vec(error.into_bytes()).into()),
    }
}

/// Replaces a leading `~` by the user's home folder, as a shell would, which does not see the arguments of library
/// calls. (A folder of that name is `./~`.)
fn at_home(path: &str) -> Result<PathBuf> {
    let Some(rest) = path.strip_prefix('~') else { return Ok(path.into()) };
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (home, rest.strip_prefix('/')) {
        (Some(home), Some(below)) => Ok(Path::new(&home).join(below.trim_start_matches('/'))),
        (Some(home), None) if rest.is_empty() => Ok(home.into()),
        _ => Err(Code::Url
            .error(format!("cannot find the home folder in {path}"))
            .with_hint("write the whole path; ~/ uses the variable HOME")),
    }
}

/// Makes a store without fields, with its schema, if there is none; an existing store stays unchanged. Conflict if it
/// has another schema than the requested one. A requested format version is pinned, so that older releases can also
/// write the store, until its owner calls [`Store::upgrade`]; Conflict if the store has another version.
///
/// ```
/// use fieldstone::prelude::*;
/// use fieldstone::{OpenOptions, Request, init};
/// # let folder = tempfile::tempdir().map_err(|e| fieldstone::Error::internal(e.to_string()))?;
/// # let url = folder.path().join("store").display().to_string();
/// init(&url, &OpenOptions { schema: Some("mars".into()), ..OpenOptions::default() })?;
/// let store = fieldstone::open(&url, &OpenOptions::default())?;
/// assert_eq!(store.schema().name(), Some("mars"));
/// # Ok::<(), fieldstone::Error>(())
/// ```
pub fn init(url: &str, options: &OpenOptions) -> Result<Store> {
    let (env, outside, path) = place(url)?;
    let native = outside.is_none();
    let store = open_local(env, outside, native, url, &path, options)?;
    store.backend().create()?;
    if let Some(version) = options.format {
        store.backend().pin_format(version, &Session::default())?;
    }
    Ok(store)
}

/// Readable and writable by user and group, with files that inherit the group; only a file's maker can remove it.
const SHARED: u32 = 0o3775;

/// Opens a store's folder, and its contents, to the folder's group, durably: members of the group can then write. The
/// folder is made if it is absent. Later files of writers get the same permissions.
///
/// Errors: `Invalid` for a store in memory; `Denied` for users other than the owner.
pub fn share(url: &str) -> Result<()> {
    let (_, outside, path) = place(url)?;
    if outside.is_some() {
        return Err(
            Error::invalid("other processes cannot reach a store in memory").with_hint("name a folder")
        );
    }
    std::fs::create_dir_all(&path).map_err(|e| Error::io("create", &path, e))?;
    let open = |folder: &Path| {
        std::fs::set_permissions(folder, Permissions::from_mode(SHARED))
            .map_err(|e| Error::io("open to the group", folder, e))
    };
    open(&path)?;
    Layout::new(&path)
        .of_all_writers()
        .filter(|folder| folder.is_dir())
        .try_for_each(|folder| open(&folder))?;
    // The maker of a folder may remove other users' files in it: so the store's owner makes these.
    for folder in FOLDERS.map(|folder| path.join(folder)) {
        Env::real().disk.create_dir_alike(&folder).map_err(|e| Error::io("make", &folder, e))?;
        match open(&folder) {
            // If a member's job made one before, it belongs to that member.
            Err(error) if error.kind() == ErrorKind::Denied => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// Opens the store in the folder `path` of an environment: for tests and simulations.
pub fn open_in(env: Env, url: &str, path: &Path, options: &OpenOptions) -> Result<Store> {
    open_local(env, None, false, url, path, options)
}

fn open_local(
    env: Env,
    outside: Outside,
    native: bool,
    url: &str,
    path: &Path,
    options: &OpenOptions,
) -> Result<Store> {
    let schema = options.schema.as_deref().map(|text| find_schema(&env, text)).transpose()?;
    let durable = options.durable && options.mode != Mode::Read && options.at.is_none();
    let settings = CatalogSettings { engine: options.catalog.clone() };
    let options = LocalOptions {
        url: url.to_owned(),
        writable: options.mode != Mode::Read && options.at.is_none(),
        must_exist: matches!(options.mode, Mode::Read | Mode::Update) || options.at.is_some(),
        must_be_new: options.mode == Mode::Create,
        schema,
        at: options.at.clone(),
        compression: options.compression,
        outside,
        native,
        origin: origin(options),
        if_exists: options.if_exists,
        format: options.format,
        closing_merges: native && options.closing_merges.unwrap_or_else(merges_on_close),
        ..LocalOptions::default()
    };
    let fields = LocalStore::open(env, path, options)?;
    Ok(Store::of(fields, settings, durable))
}

/// Whether a close may take over ended logs: unless the environment variable `FIELDSTONE_CLOSING_MERGES` is 0.
fn merges_on_close() -> bool {
    std::env::var_os("FIELDSTONE_CLOSING_MERGES").is_none_or(|value| value != "0")
}

/// The origin of writes: the job's attempt, if there is one.
fn origin(options: &OpenOptions) -> Origin {
    let Some(attempt) = &options.attempt else { return Origin::default() };
    let rank = || scheduler::rank(scheduler::own).and_then(|rank| u32::try_from(rank).ok());
    Origin {
        attempt: attempt.clone(),
        job: scheduler::job(scheduler::own).unwrap_or_default(),
        rank: options.rank.or_else(rank),
    }
}

fn find_schema(env: &Env, text: &str) -> Result<Schema> {
    if text.contains('[') {
        return Schema::parse(text);
    }
    if let Some(schema) = Schema::builtin(text) {
        return Ok(schema);
    }
    let path = Path::new(text);
    let read = || -> std::io::Result<Vec<u8>> {
        let file = env.disk.open_read(path)?;
        let mut bytes = vec![0; file.stat()?.len.min(16 << 20) as usize];
        fieldstone_core::env::read_exact_at(&*file, &mut bytes, 0)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|e| {
        Error::io("read the schema", path, e)
            .with_hint("use simulation, mars, a schema file's path, or its text")
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::invalid(format!("the schema {} is not UTF-8", path.display())))?;
    Schema::parse(&text).map_err(|e| e.context(path.display()))
}
