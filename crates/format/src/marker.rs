//! `fieldstone.store`: the small text file that makes a folder a store. The first commit writes it once,
//! whole. Every log repeats identity and schema, so that a store with a damaged marker stays readable.
//!
//! ```text
//! fieldstone store\n
//! format 1\n
//! id 0123456789abcdef0123456789abcdef\n
//! crc32c 01234567\n          over all the other lines
//! schema\n
//! …the schema's text to the end of the file
//! ```

use fieldstone_core::{Error, Result};

use crate::{FIRST_VERSION, Id, crc, unknown_version};

/// Name of the file in the store's folder.
pub const FILE_NAME: &str = "fieldstone.store";

/// Identity and schema of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The store's id.
    pub id: Id,
    /// The text of its schema.
    pub schema: String,
}

impl Marker {
    /// Encodes the file.
    pub fn encode(&self) -> Vec<u8> {
        let head = self.head();
        let tail = format!("schema\n{}", self.schema);
        let sum = crc(format!("{head}{tail}").as_bytes());
        format!("{head}crc32c {sum:08x}\n{tail}").into_bytes()
    }

    fn head(&self) -> String {
        format!("fieldstone store\nformat {FIRST_VERSION}\nid {}\n", self.id)
    }

    /// Decodes the file.
    pub fn decode(bytes: &[u8]) -> Result<Marker> {
        let bad = |rule: &str| Error::corrupt(format!("{FILE_NAME}: {rule}"));
        let text = std::str::from_utf8(bytes).map_err(|_| bad("not UTF-8"))?;
        let mut lines = text.splitn(6, '\n');
        let mut line = |prefix: &str| -> Result<&str> {
            lines
                .next()
                .and_then(|l| l.strip_prefix(prefix))
                .ok_or_else(|| bad(&format!("the line \"{prefix}…\" is missing")))
        };
        line("fieldstone store")?;
        if let Some(version) = foreign(bytes) {
            return Err(unknown_version(FILE_NAME, version));
        }
        if line("format ")? != FIRST_VERSION.to_string() {
            return Err(bad("the version line is damaged"));
        }
        let id = Id::parse(line("id ")?).ok_or_else(|| bad("the id is not 32 hexadecimal digits"))?;
        let sum = line("crc32c ")?.to_owned();
        line("schema")?;
        let schema = lines.next().ok_or_else(|| bad("the schema is missing"))?.to_owned();
        let marker = Marker { id, schema };
        // Encode it again and compare the whole: every byte of the file counts.
        if marker.encode() != bytes {
            return Err(bad(&format!("the text does not match its checksum {sum}")));
        }
        Ok(marker)
    }
}

/// Whether a marker's content has arrived. Another host may see the file's name first, then its length, and
/// its content last.
pub fn is_filled(bytes: &[u8]) -> bool {
    !bytes.is_empty() && !bytes.contains(&0)
}

/// The version of an intact marker whose version is not ours. Every version keeps the first two lines, and a
/// line with the checksum of all others.
pub fn foreign(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    (lines.next()? == "fieldstone store").then_some(())?;
    let version = lines.next()?.strip_prefix("format ")?;
    let (head, rest) = text.split_once("\ncrc32c ")?;
    let (sum, tail) = rest.split_once('\n')?;
    let whole = format!("{:08x}", crc(format!("{head}\n{tail}").as_bytes())) == sum;
    (whole && version != FIRST_VERSION.to_string()).then_some(version)
}
