//! A lineage as a tree of lines, for people.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use fieldstone_core::value::Value;
use fieldstone_format::graph::VertexName;

use crate::trace::{Lineage, Way};

/// Maximum number of characters shown of a vertex's name.
const NAME: usize = 200;

impl Lineage {
    /// The lineage as lines, each vertex once, below the first one that led to it; up to a number of lines.
    /// If several vertices were requested, each one that no other leads to begins a tree.
    ///
    /// ```text
    /// file:/data/a.nc
    /// └─ wasWrittenBy job:17
    ///    └─ read file:/data/mesh.nc
    /// ```
    pub fn tree(&self, lines: usize) -> String {
        let depths: HashMap<&VertexName, u32> =
            self.vertices.iter().map(|step| (&step.name, step.depth)).collect();
        let depth = |name: &VertexName| depths.get(name).copied().unwrap_or(0);
        let roots: HashSet<&VertexName> = self.roots.iter().collect();
        let mut below: HashMap<&VertexName, Vec<(&str, &VertexName)>> = HashMap::new();
        // Data first.
        let (programs, data): (Vec<_>, Vec<_>) = self.edges.iter().partition(|edge| edge.kind == "exe");
        for edge in data.into_iter().chain(programs) {
            let reverse = self.reverses.get(&edge.kind).unwrap_or(&edge.kind);
            for (near, kind, far) in [(&edge.near, &edge.kind, &edge.far), (&edge.far, reverse, &edge.near)] {
                let walked = is_walked(self.way, &edge.kind, near == &edge.near);
                if walked && (depth(far) >= depth(near) || roots.contains(far)) {
                    below.entry(near).or_default().push((kind, far));
                }
            }
        }
        let notes = self.notes();
        let shown = |vertex: &VertexName| match notes.get(vertex) {
            Some(note) => format!("{} ({note})", shown(vertex)),
            None => shown(vertex),
        };
        let (mut text, mut written) = (shown(&self.root), 1);
        let mut seen = HashSet::from([&self.root]);
        let mut others = self.roots.iter();
        // The remaining children of each vertex on the way down, with the indentation of their lines.
        let mut open = vec![(further(&below, &self.root, &mut seen), String::new())];
        let cut = |text: String| format!("{text}\n… {} vertices in all", self.vertices.len());
        loop {
            let Some((left, indent)) = open.last_mut() else {
                let Some(other) = others.find(|other| seen.insert(other)) else { break };
                if written == lines {
                    return cut(text);
                }
                let _ = write!(text, "\n{}", shown(other));
                written += 1;
                open.push((further(&below, other, &mut seen), String::new()));
                continue;
            };
            if left.is_empty() {
                open.pop();
                continue;
            }
            let (kind, far) = left.remove(0);
            let last = left.is_empty();
            if written == lines {
                return cut(text);
            }
            // Writing to a String does not fail.
            let _ = write!(text, "\n{indent}{} {kind} {}", if last { "└─" } else { "├─" }, shown(far));
            written += 1;
            let indent = format!("{indent}{}", if last { "   " } else { "│  " });
            open.push((further(&below, far, &mut seen), indent));
        }
        if self.truncated {
            text.push_str("\n… cut off at the limit");
        }
        text
    }

    /// Notes on commits: the number of fields in one; the request, if only a reader is known; and the store,
    /// if it is another one.
    fn notes(&self) -> HashMap<&VertexName, String> {
        let mut notes = HashMap::new();
        for edge in self.edges.iter().filter(|edge| &*edge.far.kind == "commit") {
            let get = |name: &str| edge.props.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            match (&*edge.kind, get("fields"), get("request")) {
                ("write", Some(Value::Int(1)), _) => drop(notes.insert(&edge.far, "1 field".to_owned())),
                ("write", Some(Value::Int(n)), _) => drop(notes.insert(&edge.far, format!("{n} fields"))),
                ("read", _, Some(Value::Text(asked))) => {
                    notes.entry(&edge.far).or_insert_with(|| line(asked));
                }
                _ => {}
            }
        }
        for edge in self.edges.iter().filter(|edge| edge.kind == "read" && &*edge.far.kind == "commit") {
            let url = edge.props.iter().find(|(name, _)| name == "store").map(|(_, value)| value);
            if let (Some(Value::Text(url)), Some(note)) = (url, notes.get_mut(&edge.far)) {
                let of = format!(" of {}", line(url));
                if !note.ends_with(&of) {
                    note.push_str(&of);
                }
            }
        }
        notes
    }
}

/// Whether a walk follows a relation, from its source or from its target. Upstream, no walk leads from data
/// to their readers, though it may to a job that wrote them.
fn is_walked(way: Way, kind: &str, from_source: bool) -> bool {
    match (kind, way) {
        ("exe", _) => from_source,
        ("read", Way::Up) | ("write", Way::Down) => from_source,
        // If several were requested, one may be below the job that wrote another.
        _ => true,
    }
}

/// A vertex in one line of limited length.
fn shown(vertex: &VertexName) -> String {
    line(&vertex.to_string())
}

/// A text in one line of limited length.
fn line(text: &str) -> String {
    let mut line: String =
        text.chars().take(NAME).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(NAME).is_some() {
        line.push('…');
    }
    line
}

/// The children of a vertex that were not shown before.
fn further<'a>(
    below: &HashMap<&'a VertexName, Vec<(&'a str, &'a VertexName)>>,
    vertex: &'a VertexName,
    seen: &mut HashSet<&'a VertexName>,
) -> Vec<(&'a str, &'a VertexName)> {
    below.get(vertex).into_iter().flatten().filter(|(_, far)| seen.insert(far)).copied().collect()
}
