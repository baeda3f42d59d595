//! A PostgreSQL server for tests, from Debian's package: made in a temporary folder and reached by a Unix
//! socket. It stops when the process that started it ends, however that ends.
//!
//! The server refuses to run as root; root runs it as the user `postgres`, which the package creates.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::require::require;

/// A running server.
#[derive(Debug)]
pub struct Server {
    bin: PathBuf,
    folder: PathBuf,
    user: Option<(u32, u32)>,
    database: String,
    /// Reads from a pipe whose other end is in this process; at the pipe's end it stops the server and
    /// removes the folder. `None` for a server that another process started.
    _warden: Option<Child>,
}

/// The server of this test process; `None` skips the test: PostgreSQL is not installed.
///
/// Starting a server takes seconds. If `FIELDSTONE_TEST_POSTGRESQL` names the folder of a running server
/// (`python/tests/pg_server.py` sets it for the command that it runs), the process only gets a database
/// there.
pub fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let get = || match std::env::var_os("FIELDSTONE_TEST_POSTGRESQL") {
        Some(folder) => Server::attach(PathBuf::from(folder)),
        None => Server::start(),
    };
    SERVER.get_or_init(get).as_ref()
}

/// The folder of the server's programs, which Debian keeps outside PATH.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|e| e.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions.extend(std::env::split_paths(&path));
    versions.into_iter().rev().find(|p| p.join("initdb").exists() && p.join("pg_ctl").exists())
}

fn number(option: &str) -> Option<u32> {
    let out = Command::new("id").args([option, "postgres"]).output().ok()?;
    String::from_utf8(out.stdout).ok()?.trim().parse().ok()
}

fn installed() -> Option<PathBuf> {
    let bin = programs();
    let why = "PostgreSQL's server is not installed (Debian: postgresql)";
    if require("postgresql", bin.is_some(), why) { bin } else { None }
}

impl Server {
    /// A database of this process on a server that runs in `folder`.
    fn attach(folder: PathBuf) -> Option<Server> {
        let bin = installed()?;
        let database = format!("test_{}", std::process::id());
        // Only some of the programs may have links elsewhere.
        let programs = bin.join("initdb").canonicalize().unwrap();
        let mut psql = Command::new(programs.with_file_name("psql"));
        psql.args(["-qX", "-U", "postgres", "-h"]).arg(&folder);
        psql.args(["-c", &format!("DROP DATABASE IF EXISTS {database}")]);
        psql.args(["-c", &format!("CREATE DATABASE {database}")]).stdin(Stdio::null()).stderr(Stdio::null());
        let status = psql.status().unwrap();
        assert!(status.success(), "a database on the server in {}: {status}", folder.display());
        Some(Server { bin, folder, user: None, database, _warden: None })
    }

    /// A separate server, for tests that stop it.
    pub fn start() -> Option<Server> {
        let bin = installed()?;
        let root = own_user() == 0;
        let user = if root { number("-u").zip(number("-g")) } else { None };
        if !require("postgresql", !root || user.is_some(), "there is no user postgres to run it as") {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("fieldstone-pg-").tempdir().unwrap().keep();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let mut warden = Command::new("sh");
        warden
            .args(["-c", r#"read _; "$0/pg_ctl" -D "$1/data" -m immediate stop; rm -rf "$1""#])
            .arg(&bin)
            .arg(&folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if let Some((uid, gid)) = user {
            warden.uid(uid).gid(gid);
        }
        let warden = warden.spawn().unwrap();
        let server = Server { bin, folder, user, database: "postgres".to_owned(), _warden: Some(warden) };
        server.run(
            "initdb",
            &["-D", "data", "-U", "postgres", "--no-sync", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"],
        );
        server.resume();
        Some(server)
    }

    /// Starts it again after [`Server::stop`].
    pub fn resume(&self) {
        let options = format!(
            "-k {} -c listen_addresses= -c fsync=off -c max_connections=40 -c log_min_messages=fatal",
            self.folder.display()
        );
        self.run("pg_ctl", &["-D", "data", "-w", "-s", "-l", "log", "-o", &options, "start"]);
    }

    /// Stops it at once, as a crash would.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-D", "data", "-s", "-m", "immediate", "stop"]);
    }

    /// URL of its database.
    pub fn url(&self) -> String {
        format!("postgresql:///{}?host={}&user=postgres", self.database, self.folder.display())
    }

    /// The folder of the socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.bin.join(program));
        // Do not capture the output: the server would keep the pipe open.
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        let status = command.status().unwrap();
        assert!(status.success(), "{program} {arguments:?}: {status}");
    }
}

/// The user id of this process, without a library.
fn own_user() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").map_or(0, |m| m.uid())
}
