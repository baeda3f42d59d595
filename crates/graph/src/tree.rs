//! A lineage as a tree of lines, for people.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use fieldstone_format::graph::VertexName;

use crate::trace::Lineage;

impl Lineage {
    /// The lineage as lines, each vertex once, below the first that led to it; at most so many.
    ///
    /// ```text
    /// file:/data/a.nc
    /// └─ write job:17
    ///    └─ read file:/data/mesh.nc
    /// ```
    pub fn tree(&self, lines: usize) -> String {
        let depths: HashMap<&VertexName, u32> =
            self.vertices.iter().map(|step| (&step.name, step.depth)).collect();
        let depth = |name: &VertexName| depths.get(name).copied().unwrap_or(0);
        let mut below: HashMap<&VertexName, Vec<(&str, &VertexName)>> = HashMap::new();
        for edge in &self.edges {
            for (near, far) in [(&edge.near, &edge.far), (&edge.far, &edge.near)] {
                if depth(far) >= depth(near) {
                    below.entry(near).or_default().push((&edge.kind, far));
                }
            }
        }
        let (mut text, mut written) = (self.root.to_string(), 1);
        let mut seen = HashSet::from([&self.root]);
        // What is left of each vertex on the way down, with what stands in front of its lines.
        let mut open = vec![(further(&below, &self.root, &mut seen), String::new())];
        while let Some((left, indent)) = open.last_mut() {
            if left.is_empty() {
                open.pop();
                continue;
            }
            let (kind, far) = left.remove(0);
            let last = left.is_empty();
            if written == lines {
                let _ = write!(text, "\n… {} vertices in all", self.vertices.len());
                return text;
            }
            // Writing to a text does not fail.
            let _ = write!(text, "\n{indent}{} {kind} {far}", if last { "└─" } else { "├─" });
            written += 1;
            let indent = format!("{indent}{}", if last { "   " } else { "│  " });
            open.push((further(&below, far, &mut seen), indent));
        }
        if self.truncated {
            text.push_str("\n… cut off at the limit");
        }
        text
    }
}

/// What stands below a vertex and was not seen before.
fn further<'a>(
    below: &HashMap<&'a VertexName, Vec<(&'a str, &'a VertexName)>>,
    vertex: &'a VertexName,
    seen: &mut HashSet<&'a VertexName>,
) -> Vec<(&'a str, &'a VertexName)> {
    below.get(vertex).into_iter().flatten().filter(|(_, far)| seen.insert(far)).copied().collect()
}
