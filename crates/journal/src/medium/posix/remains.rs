//! Signs that a folder was a store whose folder of logs is gone: a file system that is not mounted, a backup that
//! is half restored. Without logs a store seems empty, and a job that is started again would begin at zero.
//!
//! Invariant (J-35): of a store that is being made, at whatever moment, nothing remains without its folder of logs, because
//! that is made before all that is looked for here ([`create_store`](super::create::create_store)). So the folder is
//! looked for last.

use fieldstone_core::env::Disk;
use fieldstone_format::{data, marker};

use super::layout::Layout;
use super::linked::is_absent;
use crate::medium::LogsGone;

/// A sign of a store that lost its folder of logs; `None` where it has that folder, or there is no store.
pub fn without_logs(disk: &dyn Disk, layout: &Layout) -> Option<LogsGone> {
    let remains = remains(disk, layout)?;
    let store = || layout.root().display().to_string();
    is_absent(disk, &layout.logs()).then(|| LogsGone { store: store(), remains })
}

/// Files that are made after the folder of logs. Empty folders do not count.
fn remains(disk: &dyn Disk, layout: &Layout) -> Option<String> {
    if disk.stat(&layout.marker()).is_ok() {
        return Some(marker::FILE_NAME.to_owned());
    }
    layout.of_all_writers().filter(|folder| *folder != layout.logs()).find_map(|folder| {
        let name = folder.file_name()?.to_str()?;
        let names = disk.list_dir(&folder).ok()?;
        // A folder of the user's may be called the same.
        let ours = |file: &&str| match name {
            "boards" => file.ends_with(".board"),
            "data" => data::parse_file_name(file).is_some(),
            // `arrays/RUN/RANDOM`
            "arrays" => {
                disk.list_dir(&folder.join(file)).is_ok_and(|jobs| jobs.iter().any(|(job, _)| is_drawn(job)))
            }
            _ => is_drawn(file),
        };
        names.iter().map(|(file, _)| file.as_str()).filter(ours).min().map(|file| format!("{name}/{file}"))
    })
}

/// Whether a name begins with digits that a store draws, or takes from a checksum.
fn is_drawn(name: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.len() >= 16 && name.bytes().take(16).all(digit)
}
