//! The facets that Fieldstone's own export adds to OpenLineage events, so that it can be imported unchanged.
//!
//! `fieldstone_execution` of a run has its vertex, properties, and relations to users, jobs and programs;
//! `fieldstone_relation` of an input or output has its vertex and each version of the relation. These facets take
//! precedence over the rest of the event (G-43).

use fieldstone_core::value::Value;
use serde_json::{Map, Value as Json};

use super::props::{PropList, count};
use super::{RelationPut, VertexName};

/// Facet of a run.
pub const EXECUTION: &str = "fieldstone_execution";
/// Facet of an input or output.
pub const RELATION: &str = "fieldstone_relation";

type Parsed<T> = std::result::Result<T, String>;

/// An execution, with its properties and the relations that are neither inputs nor outputs.
#[derive(Debug, Clone)]
pub struct OwnExecution {
    pub vertex: VertexName,
    pub props: Vec<(String, Value)>,
    pub relations: Vec<RelationPut>,
}

/// The execution in a run's facets.
pub fn execution(facets: Option<&Json>) -> Parsed<Option<OwnExecution>> {
    let Some(facet) = facets.and_then(|facets| facets.get(EXECUTION)) else { return Ok(None) };
    let named = |why: String| format!("its facet {EXECUTION}: {why}");
    let vertex = pair(facet.get("vertex")).map_err(named)?;
    let props = match facet.get("props") {
        None | Some(Json::Null) => Vec::new(),
        Some(props) => pairs(props.as_object().ok_or_else(|| named("props is not a JSON object".into()))?),
    };
    let mut relations = Vec::new();
    for (member, kind, from_here) in
        [("users", "run", false), ("jobs", "contains", false), ("programs", "exe", true)]
    {
        for one in facet.get(member).and_then(Json::as_array).into_iter().flatten() {
            let far = pair(one.get("vertex")).map_err(named)?;
            let (source, target) = if from_here { (&vertex, &far) } else { (&far, &vertex) };
            relations.extend(versions(kind, source, target, one.get("versions")).map_err(named)?);
        }
    }
    Ok(Some(OwnExecution { vertex, props, relations }))
}

/// The relations in an input's or output's facets.
pub fn relations(kind: &str, near: &VertexName, facets: Option<&Json>) -> Parsed<Option<Vec<RelationPut>>> {
    let Some(facet) = facets.and_then(|facets| facets.get(RELATION)) else { return Ok(None) };
    let named = |why: String| format!("its facet {RELATION}: {why}");
    let far = pair(facet.get("vertex")).map_err(named)?;
    versions(kind, near, &far, facet.get("versions")).map(Some).map_err(named)
}

fn pair(vertex: Option<&Json>) -> Parsed<VertexName> {
    match vertex.and_then(Json::as_array).map(Vec::as_slice) {
        Some([Json::String(kind), Json::String(id)]) if !kind.is_empty() => Ok(VertexName::new(kind, id)),
        _ => Err("vertex is not a pair of texts".to_owned()),
    }
}

fn versions(
    kind: &str,
    source: &VertexName,
    target: &VertexName,
    list: Option<&Json>,
) -> Parsed<Vec<RelationPut>> {
    let mut puts = Vec::new();
    for one in list.and_then(Json::as_array).ok_or("versions is not a list")? {
        let mut put = RelationPut::new(kind, source.clone(), target.clone());
        let stamp = |name: &str| one.get(name).and_then(Json::as_u64);
        put.time = Some(stamp("stamp").ok_or("a version has no stamp")?);
        put.until = stamp("until");
        if let Some(props) = one.get("props").and_then(Json::as_object) {
            let mut list = PropList::default();
            pairs(props).iter().for_each(|(name, value)| list.set_whole(name, value.clone()));
            put.props = list.props().map_err(|error| error.to_string())?;
        }
        puts.push(put);
    }
    Ok(puts)
}

/// Members of an object as properties.
fn pairs(members: &Map<String, Json>) -> Vec<(String, Value)> {
    members.iter().map(|(name, value)| (name.clone(), typed(value))).collect()
}

/// A JSON value as a property.
fn typed(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(yes) => Value::Bool(*yes),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(typed).collect()),
        Json::Object(members) => Value::Map(pairs(members)),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(n), ..) => Value::Int(n),
            (None, Some(n), _) => count(n),
            (None, None, x) => Value::Float(x.unwrap_or(f64::NAN)),
        },
    }
}
