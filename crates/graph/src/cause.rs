//! The relations that a walk by cause takes, and the time at which it continues (G-14).
//!
//! | relation, from the walk's present vertex | course | moves the time |
//! |---|---|---|
//! | `wasWrittenBy`, `read` | up: to earlier vertices | to the relation's end, if that is earlier |
//! | `write`, `wasReadBy` | down: to later vertices | to the relation's beginning, if that is later |
//! | `exe` | up | to the relation's beginning, if that is earlier: a program is read when it starts |
//! | all others | none: taken at any time | no |

use fieldstone_core::Result;
use fieldstone_format::graph_segment::VertexPlace;

use crate::state::{END, Edge, EdgeVersion, GraphState, standing};
use crate::vocabulary::Direction;

/// The direction of a relation in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// To earlier vertices.
    Up,
    /// To later vertices.
    Down,
}

/// The direction of a relation in time from one of its ends; `None` if time does not matter.
pub fn course(direction: &Direction) -> Option<Course> {
    match (&*direction.kind, direction.reverse) {
        ("write", true) | ("read" | "exe", false) => Some(Course::Up),
        ("write", false) | ("read", true) => Some(Course::Down),
        _ => None,
    }
}

/// Versions of a relation that count by cause, newest first, each with the time when one of its ends was
/// deleted.
pub fn counting(
    state: &GraphState,
    place: VertexPlace,
    edge: &Edge,
    at: u64,
) -> Result<Vec<(EdgeVersion, Option<u64>)>> {
    let mut counting = Vec::new();
    for version in standing(&edge.versions, at, EdgeVersion::facts) {
        counting.push((*version, state.ended(version, [place, edge.far], at)?));
    }
    Ok(counting)
}

/// The write that hides others at a time, among the ascending times at which a vertex was replaced: upstream
/// the last one that began by then, downstream the next one.
pub fn hiding(replacing: &[u64], time: u64, course: Course) -> Option<u64> {
    let later = replacing.partition_point(|stamp| *stamp <= time);
    match course {
        Course::Up => later.checked_sub(1).map(|last| replacing[last]),
        Course::Down => replacing.get(later).copied(),
    }
}

/// The time at which a walk continues after a version of a relation; `None` if it does not take the relation.
pub fn goes_on(
    direction: &Direction,
    course: Course,
    (version, ended): (&EdgeVersion, Option<u64>),
    time: u64,
    hiding: Option<u64>,
) -> Option<u64> {
    // If the walk is at data, a write that replaced the data hides older ones.
    let of_data = direction.reverse;
    let end = version.end().min(ended.unwrap_or(END));
    let taken = match course {
        Course::Up => {
            // A relation that ended with a vertex counts only for earlier times.
            ended.is_none_or(|ended| time < ended)
                && version.stamp <= time
                && !(of_data && hiding.is_some_and(|last| version.stamp < last))
        }
        Course::Down => end >= time && !(of_data && hiding.is_some_and(|next| version.stamp > next)),
    };
    taken.then_some(match course {
        Course::Up if &*direction.kind == "exe" => time.min(version.stamp),
        Course::Up => time.min(end),
        Course::Down => time.max(version.stamp),
    })
}
