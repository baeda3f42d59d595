//! Logs: frames that the copy has whole, and what a frame has twice (J-6).

use fieldstone_core::Result;
use fieldstone_format::log::{FOOT, FrameInfo};

use super::super::FileMedium;
use super::super::backup::log_path;
use super::super::log_reader::{LogReader, read_header};
use super::Bench;
use crate::medium::{Inspect, Tip};

/// Mends a log by its copy, of which this is the last commit.
pub fn mend_log(bench: &mut Bench, source: &FileMedium, tip: &Tip) -> Result<()> {
    let (path, upto) = (log_path(tip.writer), tip.ends.end());
    if bench.is_equal(&path, 0, upto) {
        return Ok(());
    }
    let mut frames: Vec<(FrameInfo, Option<String>)> = Vec::new();
    let walked = source.check(tip, &mut |ends, outcome| {
        frames.push((ends, outcome.err().map(|e| e.message().to_owned())));
    });
    if bench.length(&path).is_none() {
        return whole_log(bench, &path, tip, walked, &frames);
    }
    let file = bench.open(&path)?;
    let shown = bench.root().join(&path);
    let length = bench.length(&path).unwrap_or(0);
    let own = LogReader { file: &*file, path: &shown, end: length };
    for (ends, damage) in &frames {
        if bench.is_equal(&path, ends.frame, ends.end()) {
            continue;
        }
        let here = own.ends(ends.frame, Some(ends.end()));
        let is_whole = here.is_ok_and(|here| own.check_frame(&here).is_ok());
        match damage {
            _ if is_whole => bench.note_left(
                &path,
                format!("commit {} is whole here, and another one in the copy", ends.sequence),
            ),
            Some(why) => {
                bench
                    .note_left(&path, format!("commit {} is damaged in the copy, too: {why}", ends.sequence));
            }
            None if bench.equalize(&path, ends.frame, ends.end()) => {
                let how = bench.of_source(&format!("commit {}", ends.sequence));
                bench.note(None, &path, how);
            }
            None => bench.note_left(&path, format!("commit {} cannot be read in the copy", ends.sequence)),
        }
    }
    if let (Some((first, _)), Ok(())) = (frames.first(), &walked) {
        mend_header(bench, source, tip, first.frame)?;
    }
    Ok(())
}

/// A log that is not there.
fn whole_log(
    bench: &mut Bench,
    path: &str,
    tip: &Tip,
    walked: Result<()>,
    frames: &[(FrameInfo, Option<String>)],
) -> Result<()> {
    let damage = frames.iter().find_map(|(ends, why)| Some((ends.sequence, why.clone()?)));
    if let Some((sequence, why)) = damage {
        bench.note_left(path, format!("commit {sequence} is damaged in the copy, too: {why}"));
    }
    if let Err(e) = walked {
        bench.note_left(path, format!("the copy is damaged: {}", e.message()));
    }
    bench.take_file(path, tip.ends.end());
    let how = bench.of_source(&format!("the file, with {} commits", tip.record.sequence));
    bench.note(None, path, how);
    Ok(())
}

/// The header of a log, whose first frame begins at an offset.
fn mend_header(bench: &mut Bench, source: &FileMedium, tip: &Tip, first: u64) -> Result<()> {
    let path = log_path(tip.writer);
    if bench.is_equal(&path, 0, first) {
        return Ok(());
    }
    let file = bench.open(&path)?;
    let shown = bench.root().join(&path);
    let own = read_header(&*file, &shown, bench.length(&path).unwrap_or(0));
    let is_whole = matches!(&own, Ok(Some((header, _))) if header.writer == tip.writer);
    if is_whole || source.check_header(tip).is_err() || tip.header_damage.is_some() {
        let why = if is_whole {
            "the header is whole here, and another one in the copy"
        } else {
            "the header is damaged in the copy, too"
        };
        bench.note_left(&path, why.to_owned());
        return Ok(());
    }
    bench.equalize(&path, 0, first);
    let how = bench.of_source("the header");
    bench.note(None, &path, how);
    Ok(())
}

/// Mends heads, feet and records of a log's frames by what the log itself has of them: head and foot say the same, and the record
/// stands there twice.
pub fn mend_own_copies(bench: &mut Bench, medium: &FileMedium, tip: &Tip) -> Result<()> {
    let path = log_path(tip.writer);
    let mut damaged = Vec::new();
    // `verify` names what breaks the chain.
    let _ = medium.check(tip, &mut |ends, outcome| {
        if outcome.is_err() {
            damaged.push(ends);
        }
    });
    for ends in damaged {
        let file = bench.open(&path)?;
        let shown = bench.root().join(&path);
        let end = bench.length(&path).unwrap_or(0);
        let reader = LogReader { file: &*file, path: &shown, end };
        let [second, first] = ends.record_offsets();
        let length = u64::from(ends.record_len);
        let whole = [second, first].into_iter().find(|at| reader.record_copy(&ends, *at).is_ok());
        let Some(record) = whole.and_then(|at| bench.own(&path, at, length)) else { continue };
        let before = bench.changes(&path);
        bench.put(&path, ends.frame, &ends.encode_head());
        bench.put(&path, first, &record);
        bench.put(&path, second, &record);
        bench.put(&path, ends.end() - FOOT as u64, &ends.encode_foot());
        let is_changed =
            bench.changes(&path).map(|now| now.len()) != before.as_ref().map(|before| before.len());
        if is_changed {
            let how =
                format!("commit {}: what frames its content, from its second copy in the log", ends.sequence);
            bench.note(None, &path, how);
        }
    }
    Ok(())
}
