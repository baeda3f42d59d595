//! Finds vertices by their type, the values of their properties, and words.

use fieldstone_core::value::{Test, Value};
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Props, VertexName};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use crate::described::described;
use crate::read::{self, Vertex};
use crate::segment::index::{each_text, words};
use crate::state::{END, GraphState, VertexVersion, standing};

/// The property that names a vertex; its words are searched without a declaration.
const NAME: &str = "name";

/// A test of vertices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VertexTest {
    /// One of these; any if absent.
    pub named: Option<Vec<VertexName>>,
    /// Of this type.
    pub kind: Option<String>,
    /// All of these properties pass, whether static or the user's.
    pub tests: Vec<(String, Test)>,
    /// A version between these stamps passes, both included; `None`: the version that holds.
    pub versions: Option<(u64, u64)>,
}

impl VertexTest {
    /// Whether a vertex passes. By cause, a deleted vertex counts in its state before the deletion.
    pub fn passes(&self, state: &GraphState, name: &VertexName, at: u64, causal: bool) -> Result<bool> {
        let named = self.named.as_ref().is_none_or(|named| named.contains(name));
        if !named || self.kind.as_ref().is_some_and(|kind| **kind != *name.kind) {
            return Ok(false);
        }
        if self.tests.is_empty() && self.versions.is_none() {
            return Ok(true);
        }
        let versions = state.vertex_versions(VertexPlace::of(name))?;
        if let Some((from, to)) = self.versions {
            let within = |version: &&VertexVersion| {
                !version.deleted && (from..=to).contains(&version.stamp) && version.stamp <= at
            };
            // A version in another store may still decide the test, but only if no local one passes.
            for version in versions.iter().filter(within).filter(|version| !version.archived) {
                let fixed = version.fixed.as_ref();
                if pass(&self.tests, |name| either(fixed, &version.props, name))? {
                    return Ok(true);
                }
            }
            return match versions.iter().filter(within).find_map(|version| state.vertex_archived_in(version))
            {
                Some(_) if self.tests.is_empty() => Ok(true),
                Some(url) => Err(read::moved(name, &url)),
                None => Ok(false),
            };
        }
        let holding = standing(&versions, at, VertexVersion::facts);
        let put = |version: &&VertexVersion| !version.deleted && version.stamp <= at;
        // By cause, a deleted vertex shows what it was before.
        let holding: Vec<&VertexVersion> = match holding.is_empty() && causal {
            true => versions.iter().filter(put).collect(),
            false => holding,
        };
        let Some(newest) = holding.first() else { return Ok(false) };
        let fixed = holding.iter().find(|version| version.fixed.is_some());
        let asked = [Some(newest), fixed].into_iter().flatten();
        // The test may depend on properties that are in another store.
        if let Some(url) = asked.into_iter().find_map(|version| state.vertex_archived_in(version)) {
            return Err(read::moved(name, &url));
        }
        let fixed = fixed.and_then(|version| version.fixed.as_ref());
        let props = described(&holding)?;
        let own = |name: &str| props.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        pass(&self.tests, |name| match own(name) {
            Some(value) => Ok(Some(value)),
            None => fixed.map_or(Ok(None), |fixed| fixed.get(name)),
        })
    }
}

/// Whether all tests pass, given the properties from `value`.
pub fn pass(tests: &[(String, Test)], value: impl Fn(&str) -> Result<Option<Value>>) -> Result<bool> {
    for (name, test) in tests {
        if !value(name)?.is_some_and(|value| test.matches(&value)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A property of the user's, or else a static one.
fn either(fixed: Option<&Props>, props: &Props, name: &str) -> Result<Option<Value>> {
    match props.get(name)? {
        Some(value) => Ok(Some(value)),
        None => fixed.map_or(Ok(None), |fixed| fixed.get(name)),
    }
}

/// The vertices that pass a test, at a moment or now, up to a limit.
pub fn find(
    state: &GraphState,
    test: &VertexTest,
    at: Option<u64>,
    limit: Option<usize>,
    limits: &mut Limits,
) -> Result<Vec<Vertex>> {
    let found = starts(state, test, at.unwrap_or(END), false, limits)?;
    let mut vertices = Vec::new();
    for place in found.into_iter().take(limit.unwrap_or(usize::MAX)) {
        limits.step()?;
        vertices.push(read::shown(state, &state.name(place)?, at)?);
    }
    Ok(vertices)
}

/// The vertices that pass a test, in the order of their places.
pub fn starts(
    state: &GraphState,
    test: &VertexTest,
    at: u64,
    causal: bool,
    limits: &mut Limits,
) -> Result<Vec<VertexPlace>> {
    let mut found = Vec::new();
    if let Some(named) = &test.named {
        for name in named {
            limits.step()?;
            let place = VertexPlace::of(name);
            if state.names(place)? && test.passes(state, name, at, causal)? {
                found.push(place);
            }
        }
    } else {
        // The present version is never moved to another store, so indexes are complete for it.
        let now = at == END && !causal && test.versions.is_none();
        for place in candidates(state, test, now, limits)? {
            limits.step()?;
            let name = state.name(place)?;
            if test.passes(state, &name, at, causal)? && (causal || is_there(state, place, at)?) {
                found.push(place);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The candidates for a test: by an indexed property, or else by type, or else all. No index has the
/// properties of versions that were moved to another store; `now`: moved versions do not count.
fn candidates(
    state: &GraphState,
    test: &VertexTest,
    now: bool,
    limits: &mut Limits,
) -> Result<Vec<VertexPlace>> {
    let all_here = now || state.archives().next().is_none();
    let indexed = test.tests.iter().find(|(name, _)| match &test.kind {
        Some(kind) => all_here && state.vocabulary().indexes(kind, name),
        None => false,
    });
    let mut places = Vec::new();
    for segment in state.segments() {
        let numbers = match (indexed, &test.kind) {
            (Some((name, test)), _) => segment.values_of(name)?.candidates(test),
            (None, Some(kind)) => segment.of_kind(kind)?.to_vec(),
            (None, None) => (0..segment.vertices()).collect(),
        };
        for number in numbers {
            limits.step()?;
            places.push(segment.place(number)?);
        }
    }
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// Whether a vertex exists at a moment: somebody put it, or a relation is valid there.
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

/// A searched word, and whether it matches any word that begins like it.
type Wanted = (String, bool);

/// The words of a search. A `*` after a word matches any end.
fn wanted(text: &str) -> Result<Vec<Wanted>> {
    let mut all = Vec::new();
    for part in text.split_whitespace() {
        let prefix = part.ends_with('*');
        let mut of_part: Vec<Wanted> = words(part).map(|word| (word, false)).collect();
        // The last word of `a-b*` is the one that may go on.
        if let Some(last) = of_part.last_mut() {
            last.1 = prefix;
        }
        all.append(&mut of_part);
    }
    if all.is_empty() {
        return Err(Error::invalid(format!("'{text}' has no words"))
            .with_hint("give words, or the beginning of a word and a *: plasma tur*"));
    }
    Ok(all)
}

/// The vertices that have all these words now, in their ids, names or declared texts; by type and id.
pub fn search(
    state: &GraphState,
    text: &str,
    kind: Option<&str>,
    limit: Option<usize>,
    limits: &mut Limits,
) -> Result<Vec<Vertex>> {
    let wanted = wanted(text)?;
    let names = state.vocabulary().texts(NAME);
    let mut lists = Vec::new();
    for (word, prefix) in &wanted {
        // A vertex may have one word in one segment and another in the next, in other versions.
        let mut places = Vec::new();
        for segment in state.segments() {
            for number in segment.words_of(&names)?.candidates(word, *prefix) {
                limits.step()?;
                places.push(segment.place(number)?);
            }
        }
        places.sort_unstable();
        places.dedup();
        lists.push(places);
    }
    // Start with the rarest word, and look the others up.
    lists.sort_by_key(Vec::len);
    let (first, others) = lists.split_first().map_or((&[][..], &[][..]), |(first, rest)| (&**first, rest));
    let has = |place: &&VertexPlace| others.iter().all(|list| list.binary_search(place).is_ok());
    let places: Vec<VertexPlace> = first.iter().filter(has).copied().collect();
    let mut found = Vec::new();
    for place in places {
        limits.step()?;
        let name = state.name(place)?;
        if kind.is_some_and(|kind| *kind != *name.kind) || !is_there(state, place, END)? {
            continue;
        }
        // Indexes hold old versions, too: check the present words.
        let vertex = read::vertex(state, &name, None)?;
        if has_all(&vertex, &wanted, &names) {
            found.push(vertex);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found.truncate(limit.unwrap_or(usize::MAX));
    Ok(found)
}

fn has_all(vertex: &Vertex, wanted: &[Wanted], names: &[String]) -> bool {
    let mut all: Vec<String> = words(&vertex.name.id).collect();
    let text = |(name, _): &&(String, Value)| names.contains(name);
    for (_, value) in vertex.fixed.iter().chain(&vertex.props).filter(text) {
        each_text(value, &mut |text| all.extend(words(text)));
    }
    wanted.iter().all(|(word, prefix)| {
        all.iter().any(|known| known == word || (*prefix && known.starts_with(word.as_str())))
    })
}
