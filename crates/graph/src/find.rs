//! Vertices by what they are.

use fieldstone_core::Result;
use fieldstone_format::graph_segment::VertexPlace;

use crate::read::{self, Vertex};
use crate::state::{END, GraphState, VertexVersion, standing};
use crate::travel::VertexTest;

/// The vertices that pass a test, as they were at a moment or are, at most so many.
pub fn find(
    state: &GraphState,
    test: &VertexTest,
    at: Option<u64>,
    limit: Option<usize>,
) -> Result<Vec<Vertex>> {
    let found = starts(state, test, at.unwrap_or(END), false)?;
    let wanted = found.into_iter().take(limit.unwrap_or(usize::MAX));
    wanted.map(|place| read::vertex(state, &state.name(place)?, at)).collect()
}

/// The vertices that pass a test, in the order of their places.
pub fn starts(state: &GraphState, test: &VertexTest, at: u64, causal: bool) -> Result<Vec<VertexPlace>> {
    let mut found = Vec::new();
    match &test.named {
        Some(named) => {
            for name in named {
                let place = VertexPlace::of(name);
                if state.names(place)? && test.passes(state, name, at, causal)? {
                    found.push(place);
                }
            }
        }
        None => {
            for segment in state.segments() {
                for number in 0..segment.vertices() {
                    let name = segment.name(number)?;
                    let place = VertexPlace::of(&name);
                    if test.passes(state, &name, at, causal)? && (causal || is_there(state, place, at)?) {
                        found.push(place);
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Whether a vertex is there at a moment: somebody put it, or a relation holds at it.
fn is_there(state: &GraphState, place: VertexPlace, at: u64) -> Result<bool> {
    if !standing(&state.vertex_versions(place)?, at, VertexVersion::facts).is_empty() {
        return Ok(true);
    }
    for edge in state.edges(place, &|_, _| true)? {
        if state.current(place, &edge, at)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
