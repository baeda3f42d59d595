//! `fieldstone.copy`: the small text file that makes a folder a backup of a store, or a copy that was promoted to a store of
//! its own (store format, 15.7). A store that is neither has no such file.
//!
//! ```text
//! fieldstone copy\n
//! format 2\n
//! state backup\n             or promoted
//! id 0123456789abcdef0123456789abcdef\n     of the store that it is a backup of; of a promoted copy, its own
//! formerly 0123…\n           a line for each other id that its files may carry
//! version v…\n               the version that the copy shows; of a promoted copy, the one that it was promoted at
//! time 1790000000000000000\n when this file was written, nanoseconds since 1970
//! crc32c 01234567\n          over all the other lines
//! beside\n
//! 4096 1790000000000000000 arrays/a/b\n     a file of arrays, meshes or histories: bytes and change time in the source
//! ```

use std::fmt::Write;

use fieldstone_core::{Error, Result};

use crate::version::Version;
use crate::{FORMAT_VERSION, Id, crc, unknown_version};

/// Name of the file in the store's folder.
pub const FILE_NAME: &str = "fieldstone.copy";

/// The first version of the format whose readers heed the file.
pub const COPIES_SINCE: u32 = 2;

/// Whether a copy follows its source, or is a store of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyState {
    /// A backup: it shows one version of its source, and nobody writes.
    Backup,
    /// A store of its own.
    Promoted,
}

/// A file of arrays, meshes or histories that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BesideFile {
    /// Its path in the store.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// When it was changed in the source, nanoseconds since 1970.
    pub changed: i64,
}

/// The store that a folder is a copy of, and the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyMark {
    /// Backup, or store of its own.
    pub state: CopyState,
    /// The store's id: that of its source, or its own.
    pub id: Id,
    /// Other ids that logs, takeovers and end files in it may carry.
    pub former: Vec<Id>,
    /// The version that it shows.
    pub version: Version,
    /// When it was written, nanoseconds since 1970.
    pub time: i64,
    /// Files beside the logs, by path.
    pub beside: Vec<BesideFile>,
}

impl CopyMark {
    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let state = match self.state {
            CopyState::Backup => "backup",
            CopyState::Promoted => "promoted",
        };
        let mut head = format!("fieldstone copy\nformat {COPIES_SINCE}\nstate {state}\nid {}\n", self.id);
        for id in &self.former {
            let _ = writeln!(head, "formerly {id}");
        }
        let _ = write!(head, "version {}\ntime {}\n", self.version.encode(), self.time);
        let mut tail = String::from("beside\n");
        for file in &self.beside {
            let _ = writeln!(tail, "{} {} {}", file.bytes, file.changed, file.path);
        }
        let sum = crc(format!("{head}{tail}").as_bytes());
        format!("{head}crc32c {sum:08x}\n{tail}").into_bytes()
    }

    /// Decodes the file.
    pub fn decode(bytes: &[u8]) -> Result<CopyMark> {
        let bad = |rule: &str| Error::corrupt(format!("{FILE_NAME}: {rule}"));
        let text = std::str::from_utf8(bytes).map_err(|_| bad("not UTF-8"))?;
        let mut lines = text.lines().peekable();
        if lines.next() != Some("fieldstone copy") {
            return Err(bad("the line \"fieldstone copy\" is missing"));
        }
        let line = |lines: &mut std::iter::Peekable<std::str::Lines<'_>>, name: &str| {
            let found =
                lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
            found.ok_or_else(|| bad(&format!("the line \"{name} …\" is missing")))
        };
        let format: u32 =
            line(&mut lines, "format")?.parse().map_err(|_| bad("the version line is damaged"))?;
        if !(COPIES_SINCE..=FORMAT_VERSION).contains(&format) {
            return Err(unknown_version(FILE_NAME, format));
        }
        let state = match &line(&mut lines, "state")?[..] {
            "backup" => CopyState::Backup,
            "promoted" => CopyState::Promoted,
            _ => return Err(bad("its state is not known")),
        };
        let id_of = |text: &str| Id::parse(text).ok_or_else(|| bad("an id is not 32 hexadecimal digits"));
        let id = id_of(&line(&mut lines, "id")?)?;
        let mut former = Vec::new();
        while lines.peek().is_some_and(|line| line.starts_with("formerly ")) {
            former.push(id_of(&line(&mut lines, "formerly")?)?);
        }
        let version =
            Version::decode(&line(&mut lines, "version")?).map_err(|_| bad("its version is damaged"))?;
        let time = line(&mut lines, "time")?.parse().map_err(|_| bad("its time is damaged"))?;
        line(&mut lines, "crc32c")?;
        if lines.next() != Some("beside") {
            return Err(bad("the line \"beside\" is missing"));
        }
        let beside =
            lines.map(|line| BesideFile::parse(line).ok_or_else(|| bad("a line of a file is damaged")));
        let mark = CopyMark { state, id, former, version, time, beside: beside.collect::<Result<_>>()? };
        // Encode it again and compare the whole: every byte of the file counts.
        match mark.encode() == bytes {
            true => Ok(mark),
            false => Err(bad("the text does not match its checksum")),
        }
    }
}

impl BesideFile {
    fn parse(line: &str) -> Option<BesideFile> {
        let mut parts = line.splitn(3, ' ');
        let (bytes, changed) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(BesideFile { path: parts.next()?.to_owned(), bytes, changed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{OwnerName, TakeoverName};

    fn mark(state: CopyState) -> CopyMark {
        let name = TakeoverName { owner: OwnerName::User(7), number: 3, digest: 9 };
        CopyMark {
            state,
            id: Id([1; 16]),
            former: vec![Id([2; 16]), Id([3; 16])],
            version: Version::new(vec![(Id([4; 16]), 5)]).with_takeovers(vec![name]),
            time: -1,
            beside: vec![BesideFile { path: "arrays/a b/c".into(), bytes: 4096, changed: 17 }],
        }
    }

    #[test]
    fn a_mark_crosses_and_each_byte_counts() {
        for state in [CopyState::Backup, CopyState::Promoted] {
            let mark = mark(state);
            let bytes = mark.encode();
            assert_eq!(CopyMark::decode(&bytes).unwrap(), mark);
            for i in 0..bytes.len() {
                let mut other = bytes.clone();
                other[i] ^= 1;
                assert!(CopyMark::decode(&other).is_err(), "{i}");
                assert!(CopyMark::decode(&bytes[..i]).is_err(), "{i}");
            }
        }
    }
}
