//! Properties as they are collected, bounded in size, and the two versions that a source gives of an execution.
//!
//! An execution is put as it began, with what was known then, and as it ended, with all that is known: a listing
//! taken while it runs and one taken afterwards say the same of its beginning, and the second adds its end.

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_graph::described::SOURCE;

use super::{GraphRows, Props, RelationPut, VertexName, VertexPut};
use crate::secrets;

/// Longest text of a property in bytes; longer ones are cut, which an ellipsis shows.
pub const TEXT: usize = 4096;

/// Names with values, in order; of equal names the last counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PropList(Vec<(String, Value)>);

impl PropList {
    /// Those that a source other than Fieldstone says, by which they add to what was recorded.
    pub fn of_source(source: &str) -> PropList {
        PropList(vec![(SOURCE.to_owned(), Value::Text(source.to_owned()))])
    }

    /// Gives a property this value, of which a long text is cut.
    pub fn set(&mut self, name: &str, value: Value) {
        let value = match value {
            Value::Text(text) => Value::Text(clip(&text)),
            other => other,
        };
        self.set_whole(name, value);
    }

    /// Gives a property this value, which is one of a graph, whatever its length.
    pub fn set_whole(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, held)) => *held = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// As [`set`](PropList::set), where there is a value.
    pub fn set_some(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds those of `more`, which count where names are equal.
    pub fn merge(&mut self, more: &PropList) {
        more.0.iter().for_each(|(name, value)| self.set_whole(name, value.clone()));
    }

    /// Takes one away.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// As the graph takes them: without what looks like a secret, whoever recorded it.
    pub fn props(&self) -> Result<Props> {
        let shown = secrets::shown(&self.0);
        Props::of(shown.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// As one value.
    pub fn map(self) -> Value {
        Value::Map(self.0)
    }
}

/// A text that is not longer than [`TEXT`].
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

/// A count, which a property holds signed where that is possible.
pub fn count(n: u64) -> Value {
    i64::try_from(n).map_or(Value::UInt(n), Value::Int)
}

/// A moment; none beyond the year 2262.
pub fn moment(nanoseconds: u64) -> Option<Value> {
    i64::try_from(nanoseconds).ok().map(Value::DateTime)
}

/// When an execution began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub begin: u64,
    pub end: Option<u64>,
}

/// The versions of an execution: as it began, and, where that is known, as it ended, with `ended` added.
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
    // Times of whole seconds: what ended in the second it began has one version, which says all.
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
