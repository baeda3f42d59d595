//! Parts shared by the verbs of the provenance graph: vertices and moments as words, and their cells.

use std::path::Path;

use clap::Args;
pub use fieldstone::graph::parse_stamp as stamp;
use fieldstone::graph::{GraphAccess, Lineage, LineageStore, LineageSubject, Relation, Vertex, VertexName};
use fieldstone::{Error, Request, Result, json};

use crate::arguments::Reading;
use crate::catalog::{moment_cell, value_cell};
use crate::output::{Done, Out, count};
use crate::table::{self, Column};

/// The store that a verb of the graph reads.
#[derive(Debug, Args)]
pub struct Graphed {
    /// The store: a folder
    pub store: String,
}

impl Graphed {
    /// Opens it for reading; NotFound where no store is.
    pub fn open(&self) -> Result<fieldstone::Store> {
        Reading { store: self.store.clone(), at: None }.open()
    }
}

/// A vertex: TYPE:ID, or the path of a file.
pub fn vertex(text: &str) -> Result<VertexName> {
    let named = text.split_once(':').filter(|(kind, id)| {
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !kind.is_empty() && !id.is_empty() && kind.chars().all(word)
    });
    if let Some((kind, id)) = named {
        return Ok(VertexName::new(kind, id));
    }
    let path = std::path::absolute(Path::new(text)).map_err(|_| {
        Error::invalid(format!("'{text}' names no vertex")).with_hint("write TYPE:ID, or the path of a file")
    })?;
    // Links and `..` are as the file's writer saw them, where it is still there.
    let path = path.canonicalize().unwrap_or(path);
    match path.to_str() {
        Some(path) => Ok(VertexName::new("file", path)),
        None => Err(Error::invalid(format!("the path {} is not UTF-8", path.display()))),
    }
}

/// The subject of a lineage: a request, in which each word has a keyword and `=`; otherwise TYPE:ID, or the path of a
/// file.
pub fn subject(words: &[String]) -> Result<LineageSubject> {
    let is_keyword = |word: &str| {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        !word.is_empty() && word.chars().all(plain)
    };
    let is_request = |word: &String| {
        word.split_once('=').is_some_and(|(keyword, _)| is_keyword(keyword.trim_start_matches('{')))
    };
    if words.iter().all(is_request) && words.iter().all(|word| !Path::new(word).exists()) {
        return Ok(LineageSubject::from(Request::parse(&words.join(","))?));
    }
    match words {
        [one] => vertex(one).map(LineageSubject::from),
        _ => Err(Error::invalid(format!("'{}' are several", words.join(" ")))
            .with_hint("write one TYPE:ID or path, or a request: KEYWORD=VALUE …; --compare takes several")),
    }
}

/// Prints vertices that were found, a line each.
pub fn print_vertices(graph: &dyn GraphAccess, found: &[Vertex], out: &mut Out) -> Done {
    let columns = [
        Column::text("vertex").least(16).rank(9),
        Column::text("user").least(4).rank(4),
        Column::text("properties").least(8).rank(5),
    ];
    let shape = |vertex: &Vertex| json::graph::vertex(vertex, &graph.user_name(vertex.user));
    table::list(out, "vertices", found.iter().map(Ok), shape, columns, |vertex| {
        let all: Vec<_> = vertex.fixed.iter().chain(&vertex.props).cloned().collect();
        let props = props_or_url(&all, vertex.archived.as_deref());
        vec![vertex.name.to_string(), graph.user_name(vertex.user), props]
    })
}

/// Prints relations, a line each. `near`: with the vertex that they are seen from, where that is not the same in all.
pub fn print_relations(graph: &dyn GraphAccess, found: &[Relation], near: bool, out: &mut Out) -> Done {
    let vertex = near.then(|| Column::text("vertex").least(16).rank(10));
    let columns = vertex.into_iter().chain([
        Column::text("type").least(8).rank(9),
        Column::text("far end").least(16).rank(8),
        Column::text("time").rank(6),
        Column::text("user").least(4).rank(4),
        Column::text("properties").least(8).rank(5),
    ]);
    let shape = |edge: &Relation| json::graph::relation(edge, &graph.user_name(edge.user));
    table::list(out, "edges", found.iter().map(Ok), shape, columns, |edge| {
        let kind = if edge.deleted { format!("{} deleted", edge.kind) } else { edge.kind.clone() };
        let vertex = near.then(|| edge.near.to_string());
        let row = vertex.into_iter().chain([
            kind,
            edge.far.to_string(),
            moment_cell(edge.time),
            graph.user_name(edge.user),
            props_or_url(&edge.props, edge.archived.as_deref()),
        ]);
        row.collect()
    })
}

/// Properties in one cell, or the store that has them.
pub fn props_or_url(props: &[(String, fieldstone::catalog::value::Value)], archived: Option<&str>) -> String {
    archived.map_or_else(|| props_cell(props), |url| format!("in {url}"))
}

/// Says which stores have properties of a lineage.
pub fn note_archived(lineage: &Lineage, out: &mut Out) {
    for (url, relations) in lineage.archived() {
        let relations = count(relations, "relation");
        out.note(format_args!("what {relations} of it said was moved to another store: {url}"));
    }
}

/// Says which other stores a lineage leads into and does not go on in.
pub fn note_left(stores: &[LineageStore], out: &mut Out) {
    for store in stores {
        let Some(why) = &store.left else { continue };
        let (commits, id) = (count(store.commits, "commit"), store.id.to_string());
        let url = store.url.as_ref().unwrap_or(&id);
        out.note(format_args!("what {commits} of the store {url} came from is not here: {why}"));
    }
}

/// Properties in one cell.
pub fn props_cell(props: &[(String, fieldstone::catalog::value::Value)]) -> String {
    let shown: Vec<String> =
        props.iter().map(|(name, value)| format!("{name}={}", value_cell(value))).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vertex_is_a_type_and_an_id_or_a_path() {
        assert_eq!(vertex("job:17").unwrap(), VertexName::new("job", "17"));
        assert_eq!(vertex("file:/data/a:b.nc").unwrap(), VertexName::new("file", "/data/a:b.nc"));
        assert_eq!(vertex("/nowhere/a.nc").unwrap(), VertexName::new("file", "/nowhere/a.nc"));
        let here = vertex("a:").unwrap();
        assert!(&*here.kind == "file" && here.id.ends_with("/a:"), "{here}");
    }

    #[test]
    fn what_is_traced_is_a_request_a_vertex_or_a_path() {
        let data = |words: &[&str]| subject(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let request = LineageSubject::from(Request::parse("run=a,step=6").unwrap());
        assert_eq!(data(&["run=a", "step=6"]).unwrap(), request);
        assert_eq!(data(&["run=a,step=6"]).unwrap(), request);
        assert_eq!(data(&["job:17"]).unwrap(), LineageSubject::Vertex(VertexName::new("job", "17")));
        assert_eq!(data(&["file:/a=b"]).unwrap(), LineageSubject::Vertex(VertexName::new("file", "/a=b")));
        assert_eq!(
            data(&["/nowhere/a=b"]).unwrap(),
            LineageSubject::Vertex(VertexName::new("file", "/nowhere/a=b"))
        );
        assert!(data(&["job:17", "job:18"]).is_err());
    }

    #[test]
    fn a_moment_is_a_date_seconds_or_a_stamp() {
        assert_eq!(stamp("1970-01-01T00:00:02").unwrap(), 2_000_000_000);
        assert_eq!(stamp("2").unwrap(), 2_000_000_000);
        assert_eq!(stamp("0.5").unwrap(), 500_000_000);
        assert_eq!(stamp("1795425693424813123").unwrap(), 1_795_425_693_424_813_123);
        for wrong in ["", "now", "-3", "nan", "1e300"] {
            assert!(stamp(wrong).unwrap_err().message().contains("not a valid time"));
        }
    }
}
