//! Chooses the level of file organisation that pays, from the cost of an open here, and the number and size of sets.
//!
//! Level 3 needs the fewest opens. Level 2 gives each set a file of its own, which users can read, copy and remove
//! alone; it is chosen if its opens cost next to nothing.

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_core::env::comm::{FileMode, Team};
use fieldstone_core::env::{Disk, Env, create_dirs_alike};
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::ArrayGroup;

/// Maximum number of files made to measure the cost of one.
const TRIALS: usize = 3;
/// A first trial of this many nanoseconds is enough: disturbances are much smaller.
const PLAIN: u64 = 2_000_000;
/// Bytes a second that a file takes in; open costs are compared with it.
const RATE: f64 = 1e9;
/// Share of the time of writing one step that opens may take.
const SHARE: f64 = 0.01;

/// A level, and the reason.
#[derive(Debug, Clone)]
pub struct ChosenLevel {
    /// The level.
    pub level: Level,
    /// Why.
    pub why: String,
}

/// Collective: the least seconds that all ranks need to make and close a file in `folder`, of the store in `root`; the
/// files are removed.
pub fn cost_of_an_open(team: &Team, env: &Env, (root, folder): (&Path, &Path)) -> Result<f64> {
    let disk: &Arc<dyn Disk> = &env.disk;
    let made = match team.rank() {
        0 => create_dirs_alike(&**disk, root, folder).map_err(|e| Error::io("make", folder, e)),
        _ => Ok(()),
    };
    team.agree("measure", made)?;
    let mut least = u64::MAX;
    let mut slowest = 0;
    for trial in 0..TRIALS {
        let path = folder.join(format!("open-{trial}.tmp"));
        team.barrier("measure")?;
        let began = env.clock.monotonic();
        let file = team.open("measure", &path, FileMode::CreateNew)?;
        file.close("measure", Ok(()))?;
        least = least.min(env.clock.monotonic().saturating_sub(began));
        let removed = match team.rank() {
            0 => disk.unlink(&path).map_err(|e| Error::io("remove", &path, e)),
            _ => Ok(()),
        };
        let least = removed.map(|()| vec![least]);
        slowest = team.max("measure", least)?.first().copied().unwrap_or(0);
        if slowest >= PLAIN {
            break;
        }
    }
    Ok(slowest as f64 / 1e9)
}

/// The level for a group, given the seconds of an open; with one set they do not matter. All ranks get the same level.
pub fn choose(group: &ArrayGroup, open: f64) -> ChosenLevel {
    let sets = group.sets.len();
    let bytes: f64 =
        group.sets.iter().filter_map(|set| Some(set.elements()? as f64 * set.dtype.size() as f64)).sum();
    let writing = bytes / RATE;
    let opens = open * sets.saturating_sub(1) as f64;
    let megabytes = bytes / 1e6;
    let said = format!("an open costs {:.3} ms; {sets} sets of {megabytes:.3} MB a step in all", open * 1e3);
    let level = if sets < 2 || opens <= SHARE * writing { Level::Two } else { Level::Three };
    let why = match level {
        Level::Two if sets < 2 => format!("level 2: there is one set, of {megabytes:.3} MB a step"),
        Level::Two => {
            format!("level 2: a file for each set costs less than {:.0} % of a step ({said})", SHARE * 100.0)
        }
        _ => format!(
            "level 3: files for {sets} sets would cost more than {:.0} % of a step ({said})",
            SHARE * 100.0
        ),
    };
    ChosenLevel { level, why }
}
