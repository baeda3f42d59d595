//! Why a request finds nothing, with a command that shows more.

use fieldstone::explain::{self, Look};
use fieldstone::{FieldStore, Request};

pub use fieldstone::explain::{some_of, without};

/// Why `request` finds nothing in a store, or not all that it lists, with a command that shows more. `None` where
/// nothing can be said.
pub fn why(store: &dyn FieldStore, request: &Request) -> Option<String> {
    let (url, none) = (store.url(), Request::new());
    let show = |look: &Look| match look {
        Look::Status => format!("try: {}", command("status", url, &none)),
        Look::Axes(request) => format!("try: {}", command("axes", url, request)),
        Look::List(request) => format!("try: {}", command("list", url, request)),
    };
    explain::why(store, request).map(|why| why.hint(show))
}

/// `fieldstone VERB STORE REQUEST` as a shell reads it.
pub fn command(verb: &str, store: &str, request: &Request) -> String {
    let mut text = format!("fieldstone {verb} {}", shell_word(store));
    if !request.is_empty() {
        text.push(' ');
        text.push_str(&shell_word(&request.to_string()));
    }
    text
}

/// A word that a shell takes as one and does not change.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_./:=,+-@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone::prelude::*;
    use fieldstone::{ArchiveOptions, OpenOptions, Value};

    fn store() -> fieldstone::Store {
        let store = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
        for (run, variable, steps) in [("a", "temperature", 0..20), ("b", "wind speed", 40..42)] {
            for step in steps {
                let key = [("run", run), ("variable", variable), ("step", &step.to_string())];
                store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
            }
        }
        store.flush(None).unwrap();
        store
    }

    #[test]
    fn what_is_not_there_is_named_beside_what_is() {
        let store = store();
        for (request, reason, command) in [
            (
                "varable=t",
                "the schema has no keyword `varable`: did you mean `variable`?",
                "fieldstone axes memory:",
            ),
            (
                "member=1",
                "no field has the keyword `member`: the fields have run, variable, step",
                "fieldstone axes memory:",
            ),
            (
                "run=a,variable=temprature",
                "no field has variable=temprature: did you mean `temperature`?",
                "fieldstone axes memory: run=a",
            ),
            (
                "run=a,step=0/99",
                "no field has step=99: there is step=0/1/2/3/4/5/…/41 (22 values)",
                "fieldstone axes memory: run=a",
            ),
            (
                "step=100/to/200",
                "no field has step=100/to/200: there is step=0/1/2/3/4/5/…/41 (22 values)",
                "fieldstone axes memory:",
            ),
            (
                "run=b,variable=\"wind speed\",step=3",
                "with run=b,variable=\"wind speed\" there is step=40/41",
                "fieldstone list memory: 'run=b,variable=\"wind speed\"'",
            ),
            (
                "run=b,variable=temperature",
                "with run=b there is variable=\"wind speed\"",
                "fieldstone list memory: run=b",
            ),
        ] {
            let found = why(&store, &Request::parse(request).unwrap()).unwrap();
            let end = if reason.ends_with('?') { "" } else { ";" };
            assert_eq!(found, format!("{reason}{end} try: {command}"), "{request}");
        }
        assert_eq!(why(&store, &Request::new()), None);
    }

    #[test]
    fn an_empty_store_says_so() {
        let store = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
        let found = why(&store, &Request::parse("run=a").unwrap()).unwrap();
        assert_eq!(found, "the store holds no fields; try: fieldstone status memory:");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_word("run=a,step=0/to/6"), "run=a,step=0/to/6");
        assert_eq!(shell_word("my store"), "'my store'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
