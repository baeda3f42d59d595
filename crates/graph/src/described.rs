//! The description of a vertex, from several sources.
//!
//! A version whose property `recorded_by` names a source holds the facts of that source: a version that
//! `fieldstone run` recorded of a job names none, a row of SLURM's accounting names `sacct`. Sources add up,
//! and none hides another:
//!
//! * of the versions without a source, the newest counts, as a whole: it is the description;
//! * versions of one source add up by name, and the newer value counts;
//! * facts of a source that the description lacks are added to it, and a map under the source's name holds
//!   everything from that source;
//! * if only one source describes a vertex, its facts are the description.

use std::collections::BTreeMap;

use fieldstone_core::Result;
use fieldstone_core::value::Value;

use crate::state::VertexVersion;

/// The property that names the source of a version.
pub const SOURCE: &str = "recorded_by";

/// Properties by name.
pub type Properties = Vec<(String, Value)>;

/// The source that a version names.
pub(crate) fn source(version: &VertexVersion) -> Result<Option<String>> {
    Ok(match version.props.get(SOURCE)? {
        Some(Value::Text(source)) if !source.is_empty() => Some(source),
        _ => None,
    })
}

/// The properties of a vertex from its valid versions, newest first.
pub fn described(holding: &[&VertexVersion]) -> Result<Properties> {
    let mut own = None;
    let mut sources: BTreeMap<String, Properties> = BTreeMap::new();
    let mut newest = None;
    for version in holding {
        match source(version)? {
            None if own.is_none() => own = Some(version.props.pairs()?),
            None => {}
            Some(source) => {
                newest.get_or_insert_with(|| source.clone());
                add(sources.entry(source).or_default(), version.props.pairs()?);
            }
        }
    }
    let mut all = match (own, newest) {
        (Some(own), _) => own,
        (None, Some(newest)) => sources.remove(&newest).unwrap_or_default(),
        (None, None) => return Ok(Vec::new()),
    };
    for (source, mut of_source) in sources {
        of_source.retain(|(name, _)| name != SOURCE);
        add(&mut all, of_source.clone());
        add(&mut all, vec![(source, Value::Map(of_source))]);
    }
    Ok(all)
}

/// Adds properties whose names are missing, also inside maps.
fn add(all: &mut Properties, more: Properties) {
    for (name, value) in more {
        match (all.iter_mut().find(|(known, _)| *known == name), value) {
            (None, value) => all.push((name, value)),
            (Some((_, Value::Map(held))), Value::Map(more)) => add(held, more),
            (Some(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldstone_format::graph::Props;
    use fieldstone_format::graph_segment::CommitKnown;

    use super::*;

    fn version(stamp: u64, props: &[(&str, &str)]) -> VertexVersion {
        let values: Vec<Value> = props.iter().map(|(_, value)| Value::Text((*value).to_owned())).collect();
        let pairs = props.iter().zip(&values).map(|((name, _), value)| (*name, value));
        VertexVersion {
            stamp,
            time: 0,
            known: CommitKnown { since: 1, stamp: 1 },
            user: 0,
            deleted: false,
            archived: false,
            fixed: None,
            props: Props::of(pairs).unwrap(),
        }
    }

    fn shown(versions: &[VertexVersion]) -> Vec<String> {
        let all = described(&versions.iter().collect::<Vec<_>>()).unwrap();
        all.iter().map(|(name, value)| format!("{name}={value}").replace('"', "")).collect()
    }

    #[test]
    fn sources_add_up_and_none_hides_another() {
        let run = version(2, &[("argv", "a"), ("name", "sh")]);
        let sacct = version(9, &[("recorded_by", "sacct"), ("name", "model"), ("state", "TIMEOUT")]);
        let older = version(1, &[("recorded_by", "sacct"), ("name", "before"), ("cwd", "/w")]);
        let both = shown(&[sacct.clone(), run.clone(), older.clone()]);
        assert_eq!(both[..4], ["argv=a", "name=sh", "state=TIMEOUT", "cwd=/w"]);
        let expected = shown(&[version(9, &[("name", "model"), ("state", "TIMEOUT"), ("cwd", "/w")])]);
        assert!(expected.iter().all(|fact| both[4].contains(fact.split('=').nth(1).unwrap())), "{both:?}");
        assert!(both[4].starts_with("sacct=") && both.len() == 5, "{both:?}");
        let alone = ["recorded_by=sacct", "name=model", "state=TIMEOUT", "cwd=/w"];
        assert_eq!(shown(&[sacct.clone(), older]), alone);
        let ended = version(12, &[("argv", "b")]);
        assert_eq!(shown(&[ended, sacct, run])[..3], ["argv=b", "name=model", "state=TIMEOUT"]);
        assert!(shown(&[]).is_empty());
    }
}
