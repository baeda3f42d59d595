//! The link by which a process finds the execution that started it: the variable `FIELDSTONE_EXECUTION`.
//!
//! ```text
//! {"job": "17.0", "process": "17.0/node1-4711", "store": "/data/forecast.store", "id": "5f0c…"}
//! ```
//! `job` is the id of the job, `process` that of the process that started this one (absent if that is the job itself),
//! `store` the store that records the job (absent if no other process can open it), `id` that store's id. Unknown names
//! are ignored; any other text counts as absent.

use fieldstone_format::Id;
use serde_json::{Map, Value};

/// The name of the variable.
pub const VARIABLE: &str = "FIELDSTONE_EXECUTION";

/// An execution, in the form for child processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionLink {
    /// The id of the job.
    pub job: String,
    /// The id of the process, if it is not the job itself.
    pub process: Option<String>,
    /// The URL of the store.
    pub store: Option<String>,
    /// The id of the store.
    pub id: Option<Id>,
}

impl ExecutionLink {
    /// The text of the variable.
    pub fn encode(&self) -> String {
        let mut map = Map::new();
        map.insert("job".into(), Value::String(self.job.clone()));
        for (name, value) in
            [("process", &self.process), ("store", &self.store), ("id", &self.id.map(|id| id.to_string()))]
        {
            map.extend(value.clone().map(|value| (name.to_owned(), Value::String(value))));
        }
        Value::Object(map).to_string()
    }

    /// Reads the text of the variable.
    pub fn decode(text: &str) -> Option<ExecutionLink> {
        let map: Map<String, Value> = serde_json::from_str(text).ok()?;
        let get = |name: &str| map.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let is_fit = |text: &String| text.len() < 4096 && !text.contains(char::is_control);
        Some(ExecutionLink {
            job: get("job").filter(is_fit)?,
            process: get("process").filter(is_fit),
            store: get("store"),
            id: get("id").and_then(|text| Id::parse(&text)),
        })
    }

    /// The link that this process was given.
    pub fn of_environment() -> Option<ExecutionLink> {
        ExecutionLink::decode(&std::env::var(VARIABLE).ok()?)
    }
}

/// A store's URL for a process in another folder; `None` for a store in memory.
pub fn reachable(url: &str) -> Option<String> {
    if url == "memory:" {
        return None;
    }
    let Ok(path) = crate::open::local_path(url) else { return Some(url.to_owned()) };
    std::path::absolute(path).ok()?.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_was_written() {
        for process in [None, Some("17.0/n-1".to_owned())] {
            let link = ExecutionLink {
                job: "17.0".into(),
                process,
                store: Some("/a b \"c\"".into()),
                id: Some(Id([7; 16])),
            };
            assert_eq!(ExecutionLink::decode(&link.encode()), Some(link));
        }
    }

    #[test]
    fn what_is_no_link_counts_for_nothing() {
        for text in ["", "17", "{}", "[1]", r#"{"job": ""}"#, r#"{"job": 17}"#, "{\"job\": \"a\\nb\"}"] {
            assert_eq!(ExecutionLink::decode(text), None, "{text}");
        }
        let link = ExecutionLink::decode(r#"{"job": "a", "later": [1]}"#);
        assert_eq!(link, Some(ExecutionLink { job: "a".into(), process: None, store: None, id: None }));
    }

    #[test]
    fn a_store_is_reached_from_any_folder() {
        assert_eq!(reachable("memory:"), None);
        assert_eq!(reachable("file:/a").as_deref(), Some("/a"));
        assert!(reachable("a").unwrap().ends_with("/a"));
    }
}
