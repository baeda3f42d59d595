//! Text for Graphviz: all vertices and relations, with arrows in the direction of the data flow.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fieldstone_core::value::Value;
use fieldstone_graph::dossier::{Dossier, is_execution};

use super::names::{base, short, stamp_text};
use crate::interop::lineage::VertexName;

/// Characters of a label's line.
const LABEL: usize = 40;
/// Characters of a tip, which a viewer shows under the mouse pointer.
const TIP: usize = 4000;

/// A text in quotes. A backslash begins an escape in a label, so backslashes are doubled and quotes are escaped; `\n`
/// joins the lines.
fn quoted(lines: &[&str], most: usize) -> String {
    let escaped = |line: &&str| short(line, most).replace('\\', "\\\\").replace('"', "\\\"");
    let lines: Vec<String> = lines.iter().map(escaped).collect();
    format!("\"{}\"", lines.join("\\n"))
}

/// The text.
pub fn text(dossier: &Dossier) -> String {
    let mut text = String::from(
        "digraph lineage {\n  rankdir=LR;\n  node [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11];\n  \
         edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=9, color=\"#5b6770\", fontcolor=\"#5b6770\"];\n",
    );
    let roots: BTreeSet<&VertexName> = dossier.lineage.roots.iter().collect();
    let mut numbers: BTreeMap<VertexName, usize> = BTreeMap::new();
    let users = dossier.runs.iter().map(|run| &run.near);
    for vertex in dossier.vertices().chain(users) {
        let number = numbers.len();
        if numbers.contains_key(vertex) {
            continue;
        }
        numbers.insert(vertex.clone(), number);
        let name = match dossier.prop(vertex, "name") {
            Some(Value::Text(name)) if !name.is_empty() => name,
            _ if &*vertex.kind == "user" => dossier.user(&vertex.id),
            _ => base(vertex),
        };
        let look = match &*vertex.kind {
            kind if is_execution(kind) => "shape=box, style=filled, fillcolor=\"#fdf0dc\", color=\"#b7791f\"",
            "user" => "shape=oval, style=filled, fillcolor=\"#eeeeee\", color=\"#777777\"",
            _ => "shape=box, style=\"rounded,filled\", fillcolor=\"#e8f1fa\", color=\"#3b76af\"",
        };
        let root = if roots.contains(vertex) { ", penwidth=2.5" } else { "" };
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "  n{number} [label={}, tooltip={}, {look}{root}];",
            quoted(&[name, &vertex.kind], LABEL),
            quoted(&[&vertex.to_string()], TIP),
        );
    }
    for edge in dossier.relations() {
        let (Some(near), Some(far)) = (numbers.get(&edge.near), numbers.get(&edge.far)) else { continue };
        let (from, to) = if matches!(edge.kind.as_str(), "read" | "exe") { (far, near) } else { (near, far) };
        let line = match edge.kind.as_str() {
            "read" | "write" => "",
            _ => ", style=dashed",
        };
        let tip = format!("{} {}", edge.kind, stamp_text(edge.stamp));
        let (label, tip) = (quoted(&[&edge.kind], LABEL), quoted(&[&tip], TIP));
        let _ = writeln!(text, "  n{from} -> n{to} [label={label}, edgetooltip={tip}{line}];");
    }
    if dossier.lineage.truncated {
        text.push_str("  label=\"cut off at the limit\";\n");
    }
    text.push_str("}\n");
    text
}
