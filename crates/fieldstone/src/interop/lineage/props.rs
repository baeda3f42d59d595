//! Properties while they are collected, bounded in size, and the two versions of an execution from one source.
//!
//! A source gives an execution's beginning, with the facts known then, and its end, with all facts: a listing taken
//! while it runs and one taken afterwards agree on its beginning, and the second adds its end.

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_graph::described::SOURCE;

use super::{GraphRows, Props, RelationPut, VertexName, VertexPut};
use crate::secrets;

/// Maximum length of a property's text in bytes; longer ones are cut and end in an ellipsis.
pub const TEXT: usize = 4096;

/// Names with values, in order; of equal names the last counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PropList(Vec<(String, Value)>);

impl PropList {
    /// Properties from a source other than Fieldstone; they add to recorded facts.
    pub fn of_source(source: &str) -> PropList {
        PropList(vec![(SOURCE.to_owned(), Value::Text(source.to_owned()))])
    }

    /// Sets a property, and cuts a long text.
    pub fn set(&mut self, name: &str, value: Value) {
        let value = match value {
            Value::Text(text) => Value::Text(clip(&text)),
            other => other,
        };
        self.set_whole(name, value);
    }

    /// Sets a property to a value of a graph, whatever its length.
    pub fn set_whole(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, held)) => *held = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// As [`set`](PropList::set), if there is a value.
    pub fn set_some(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds those of `more`, which take precedence.
    pub fn merge(&mut self, more: &PropList) {
        more.0.iter().for_each(|(name, value)| self.set_whole(name, value.clone()));
    }

    /// Removes a property.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// Number of properties.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// As the graph takes them: without values that look like a secret, whatever the source.
    pub fn props(&self) -> Result<Props> {
        let shown = secrets::shown(&self.0);
        Props::of(shown.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// All as one value.
    pub fn map(self) -> Value {
        Value::Map(self.0)
    }
}

/// A text cut to [`TEXT`] bytes.
pub fn clip(text: &str) -> String {
    if text.len() <= TEXT {
        return text.to_owned();
    }
    let mut end = TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// A count as a property: signed if it fits.
pub fn count(n: u64) -> Value {
    i64::try_from(n).map_or(Value::UInt(n), Value::Int)
}

/// A time; none beyond the year 2262.
pub fn moment(nanoseconds: u64) -> Option<Value> {
    i64::try_from(nanoseconds).ok().map(Value::DateTime)
}

/// Beginning and end of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub begin: u64,
    pub end: Option<u64>,
}

/// The versions of an execution: its beginning, and its end with `ended` added, if known.
pub fn put_execution(
    rows: &mut GraphRows,
    vertex: &VertexName,
    span: Span,
    mut begun: PropList,
    ended: &PropList,
) -> Result<()> {
    let mut put = |props: &PropList, time: u64| -> Result<()> {
        let (vertex, props) = (vertex.clone(), props.props()?);
        rows.vertices.push(VertexPut { vertex, fixed: None, props, time: Some(time) });
        Ok(())
    };
    begun.set_some("start", moment(span.begin));
    // Times in whole seconds: an execution that ended in its first second has one version with all facts.
    let end = span.end.map(|end| end.max(span.begin));
    if end != Some(span.begin) {
        put(&begun, span.begin)?;
    }
    if let Some(end) = end {
        begun.set_some("end", moment(end));
        begun.merge(ended);
        put(&begun, end)?;
    }
    Ok(())
}

/// A relation with its times.
pub fn relation(kind: &str, source: &VertexName, target: &VertexName, span: Span) -> RelationPut {
    let mut put = RelationPut::new(kind, source.clone(), target.clone());
    put.time = Some(span.begin);
    put.until = span.end.map(|end| end.max(span.begin));
    put
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clip(&"a".repeat(TEXT)).len(), TEXT);
        let cut = clip(&format!("a{}", "é".repeat(TEXT)));
        assert!(cut.ends_with("é…") && cut.len() <= TEXT + 3, "{}", cut.len());
    }

    #[test]
    fn an_execution_has_a_version_of_its_beginning_and_one_of_its_end() {
        let job = VertexName::new("job", "1");
        let (mut begun, mut ended) = (PropList::default(), PropList::default());
        begun.set("name", Value::Text("x".into()));
        ended.set("exit", Value::Int(0));
        let versions = |span| {
            let mut rows = GraphRows::default();
            put_execution(&mut rows, &job, span, begun.clone(), &ended).unwrap();
            let facts = |put: &VertexPut| (put.time, put.props.get("exit").unwrap());
            rows.vertices.iter().map(facts).collect::<Vec<_>>()
        };
        assert_eq!(versions(Span { begin: 5, end: None }), [(Some(5), None)]);
        let exit = Some(Value::Int(0));
        assert_eq!(versions(Span { begin: 5, end: Some(9) }), [(Some(5), None), (Some(9), exit.clone())]);
        assert_eq!(versions(Span { begin: 5, end: Some(5) }), [(Some(5), exit)]);
    }
}
