//! The checksum of a file as executions record it: `xxh3:` and the 32 hex digits of XXH3-128, as `xxhsum -H2` prints
//! them.

use std::path::Path;

use fieldstone_core::env::Env;
use fieldstone_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

/// Bytes per read.
const PART: usize = 1 << 20;

/// The checksum of a file.
pub fn checksum(env: &Env, path: &Path) -> Result<String> {
    let failed = |e| Error::io("read", path, e).with_hint("check the path and its permissions");
    let file = env.disk.open_read(path).map_err(failed)?;
    let (mut hash, mut at, mut part) = (Xxh3::new(), 0u64, vec![0; PART]);
    loop {
        let n = file.read_at(&mut part, at).map_err(failed)?;
        if n == 0 {
            return Ok(format!("xxh3:{:032x}", hash.digest128()));
        }
        hash.update(part.get(..n).unwrap_or_default());
        at += n as u64;
    }
}
