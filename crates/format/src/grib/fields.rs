//! Messages with several fields. GRIB2 may repeat sections 2 to 7 in one message; each repetition is a field.
//! This module makes each a message of its own, with the sections that are in force for it.
//!
//! Invariant: the results have the bytes that eccodes gives with its multi-field support: the latest sections
//! 1 to 7 in order, under a length of their own; a field that refers to the bitmap of an earlier one
//! (indicator 254) gets that bitmap.

use std::borrow::Cow;
use std::ops::Range;

use super::length;

/// Indicator of a bitmap that an earlier field of the message defined.
const EARLIER: u8 = 254;

/// The fields of a message, each as a message of its own. The lengths of the message's sections must add up
/// (see [`messages`](super::messages)). An error describes repeated sections that make no fields.
pub fn fields(message: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, String> {
    let sections = sections(message);
    let data = sections.iter().filter(|(number, _)| *number == 7).count();
    if data <= 1 {
        return Ok(vec![Cow::Borrowed(message)]);
    }
    let mut latest: [Option<Range<usize>>; 8] = Default::default();
    let mut bitmap: Option<Range<usize>> = None;
    let mut found = Vec::with_capacity(data);
    let mut before = 0;
    for (number, range) in sections {
        // After its section 7 a message may continue with section 2, 3 or 4.
        let follows = if before == 7 { (2..=4).contains(&number) } else { number > before };
        if !follows {
            return Err(format!("its section {number} at byte {} is out of order", range.start));
        }
        before = number;
        if number == 6 {
            if message.get(range.start + 5) == Some(&EARLIER) {
                let Some(bitmap) = &bitmap else {
                    let at = range.start;
                    return Err(format!("its section 6 at byte {at} refers to a missing bitmap"));
                };
                latest[6] = Some(bitmap.clone());
                continue;
            }
            bitmap = Some(range.clone());
        }
        latest[usize::from(number)] = Some(range.clone());
        if number == 7 {
            if let Some(absent) = [1, 3, 4, 5, 6].into_iter().find(|n: &usize| latest[*n].is_none()) {
                return Err(format!("its field at byte {} has no section {absent}", range.start));
            }
            found.push(Cow::Owned(assemble(message, latest.iter().flatten().cloned())));
            for once in &mut latest[4..] {
                *once = None;
            }
        }
    }
    if before != 7 {
        return Err(format!("it ends in its section {before}"));
    }
    Ok(found)
}

/// Number and range of each section of a GRIB2 message; empty for other editions.
pub(super) fn sections(message: &[u8]) -> Vec<(u8, Range<usize>)> {
    let end = message.len().saturating_sub(4);
    let (mut found, mut at) = (Vec::with_capacity(7), 16);
    while message.get(7) == Some(&2) && at < end {
        let next = length(message, at, 4).filter(|len| *len >= 5).and_then(|len| at.checked_add(len));
        let (Some(next), Some(number)) = (next.filter(|next| *next <= end), message.get(at + 4)) else {
            break;
        };
        found.push((*number & 7, at..next));
        at = next;
    }
    found
}

/// Assembles a GRIB2 message from the given sections.
fn assemble(message: &[u8], sections: impl Iterator<Item = Range<usize>> + Clone) -> Vec<u8> {
    let total = 20 + sections.clone().map(|range| range.len()).sum::<usize>();
    let mut made = Vec::with_capacity(total);
    made.extend_from_slice(message.get(..8).unwrap_or_default());
    made.extend_from_slice(&(total as u64).to_be_bytes());
    for range in sections {
        made.extend_from_slice(message.get(range).unwrap_or_default());
    }
    made.extend_from_slice(b"7777");
    made
}
