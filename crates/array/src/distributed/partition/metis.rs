//! Files of METIS: text, with a line for each node that has the number of its part, from 0.
//!
//! Each rank reads an equal share of the bytes, and takes the lines that begin in it; so the ranks together read the
//! file once, and each holds only the entries of its lines. Empty lines are skipped.

use std::path::Path;

use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Error, Result};

use super::shares::no_rank;
use super::{STEP, with_file};

/// Bytes read at a time.
const PIECE: usize = 1 << 20;
/// Limit on the bytes of a line that are parsed: no number is longer.
const LONGEST: usize = 64;

/// Entries of a rank's lines, up to the first that is not a rank.
#[derive(Debug, Default)]
struct Lines {
    entries: Vec<u32>,
    bad: Option<String>,
}

/// Collective: the ranks of this rank's share of the nodes.
pub(super) fn read(team: &Team, path: &Path) -> Result<Vec<u32>> {
    with_file(team, path, own_entries)
}

fn own_entries(file: &TeamFile) -> Result<Vec<u32>> {
    let team = file.team();
    let (rank, size) = (team.rank() as u128, team.size() as u128);
    let lines = file.len().and_then(|length| {
        let cut = |rank: u128| (u128::from(length) * rank / size) as u64;
        read_lines(file, cut(rank)..cut(rank + 1), team.size())
    });
    let count = lines.as_ref().map_err(Error::replicate).map(|lines| vec![lines.entries.len() as u64]);
    let before = team.sums(STEP, count)?.before[0];
    let checked = lines.and_then(|Lines { entries, bad }| match bad {
        Some(text) => Err(no_rank(before + entries.len() as u64, format_args!("`{text}`"), team.size())),
        None => Ok(entries),
    });
    team.agree(STEP, checked)
}

/// The lines that begin inside `range`.
fn read_lines(file: &TeamFile, range: std::ops::Range<u64>, ranks: usize) -> Result<Lines> {
    let mut lines = Lines::default();
    if range.is_empty() {
        return Ok(lines);
    }
    // A line begins after the end of another one, which may be the byte before the range.
    let mut at = range.start.saturating_sub(1);
    let mut begin = (range.start == 0).then_some(0);
    let (mut line, mut bytes) = (Vec::new(), vec![0; PIECE]);
    loop {
        let count = file.read_at(&mut bytes, at)?;
        let ends = count == 0;
        for byte in if ends { &b"\n"[..] } else { &bytes[..count] } {
            at += 1;
            if *byte != b'\n' {
                if begin.is_some() && line.len() < LONGEST {
                    line.push(*byte);
                }
                continue;
            }
            if begin.is_some() && !lines.take(&line, ranks) {
                return Ok(lines);
            }
            line.clear();
            if at >= range.end || ends {
                return Ok(lines);
            }
            begin = Some(at);
        }
    }
}

impl Lines {
    /// Whether the line is empty or has the number of a rank.
    fn take(&mut self, line: &[u8], ranks: usize) -> bool {
        let text = String::from_utf8_lossy(line);
        match text.trim().parse::<u32>() {
            _ if text.trim().is_empty() => {}
            Ok(rank) if (rank as usize) < ranks => self.entries.push(rank),
            _ => self.bad = Some(text.trim().to_owned()),
        }
        self.bad.is_none()
    }
}
