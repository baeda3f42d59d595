//! The floor under `retrieve`: read every range of a list with `pread` into one reused buffer,
//! compute the CRC-32C of each, and do nothing else.
//!
//! `floor RANGES BUFFER_BYTES`: RANGES holds a line `offset<TAB>length<TAB>path` per range, in reading order.
//! Ranges fill the buffer one after another; a range that does not fit starts at the buffer's front, as
//! if a caller gave the same buffer to `readinto` again and again. The program touches the buffer before the
//! clock starts. It prints one JSON object: wall and processor seconds, ranges, bytes, and all checksums
//! folded into one number, so that no read can be optimised away.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

struct Range {
    file: usize,
    offset: u64,
    length: usize,
}

fn seconds(clock: ClockId) -> f64 {
    let t = clock_gettime(clock);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn parse(list: &str) -> Result<(Vec<File>, Vec<Range>), Box<dyn Error>> {
    let (mut files, mut ranges) = (Vec::new(), Vec::new());
    let mut known: HashMap<&str, usize> = HashMap::new();
    for line in list.lines() {
        let mut parts = line.splitn(3, '\t');
        let (Some(offset), Some(length), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("not offset<TAB>length<TAB>path: {line:?}").into());
        };
        let file = match known.get(path) {
            Some(&i) => i,
            None => {
                files.push(File::open(path).map_err(|e| format!("{path}: {e}"))?);
                known.insert(path, files.len() - 1);
                files.len() - 1
            }
        };
        ranges.push(Range { file, offset: offset.parse()?, length: length.parse()? });
    }
    Ok((files, ranges))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, list, size] = args.as_slice() else {
        return Err("usage: floor RANGES BUFFER_BYTES".into());
    };
    let (files, ranges) = parse(&std::fs::read_to_string(list)?)?;
    let mut buffer = vec![1u8; size.parse()?];
    if let Some(big) = ranges.iter().find(|r| r.length > buffer.len()) {
        return Err(format!("a range of {} bytes does not fit the buffer", big.length).into());
    }
    let (wall, cpu) = (seconds(ClockId::Monotonic), seconds(ClockId::ProcessCPUTime));
    let (mut at, mut bytes, mut folded) = (0usize, 0u64, 0u32);
    for r in &ranges {
        if at + r.length > buffer.len() {
            at = 0;
        }
        let part = &mut buffer[at..at + r.length];
        files[r.file].read_exact_at(part, r.offset)?;
        folded = folded.rotate_left(1) ^ crc32c::crc32c(part);
        at += r.length;
        bytes += r.length as u64;
    }
    let (wall, cpu) = (seconds(ClockId::Monotonic) - wall, seconds(ClockId::ProcessCPUTime) - cpu);
    println!(
        "{{\"seconds\": {wall:.9}, \"cpu\": {cpu:.9}, \"fields\": {}, \"bytes\": {bytes}, \"crc\": {folded}}}",
        ranges.len()
    );
    Ok(())
}
