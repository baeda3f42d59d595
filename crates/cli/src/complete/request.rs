//! Completion inside a request: keywords that are not given yet, values that are there, `to` and `by`.
//!
//! ```text
//! run=a st        →  step=
//! step=0/         →  step=0/6 … step=0/to/
//! step=0/to/      →  step=0/to/6 …        only what lies behind the first
//! run=a,step=     →  run=a,step=0 …       after the last comma
//! ```

use std::collections::BTreeSet;

use fieldstone::{KeyValue, KeywordType, Quoted, Request};

use super::Candidate;
use super::live::Vocabulary;
use crate::arguments::join;

/// The candidates for the word `current` of a request, given the words before it.
pub fn candidates(store: &str, before: &[&str], current: &str) -> Vec<Candidate> {
    let Some(known) = Vocabulary::of(store) else { return Vec::new() };
    let (head, tail) = split_behind(current, ',');
    let given = given(before, head);
    match tail.split_once('=') {
        Some((keyword, values)) => {
            let (listed, start) = split_behind(values, '/');
            let kept = format!("{head}{keyword}={listed}");
            let words = values_of(&known, &given, keyword.trim(), listed, start);
            words.into_iter().map(|c| Candidate { word: format!("{kept}{}", c.word), ..c }).collect()
        }
        None => {
            let words = keywords_of(&known, &given, tail);
            words.into_iter().map(|c| Candidate { word: format!("{head}{}=", c.word), ..c }).collect()
        }
    }
}

/// The words that are complete, as a request. Words that cannot be parsed are skipped.
fn given(before: &[&str], head: &str) -> Request {
    let mut all = Request::new();
    let head = [head.trim_end_matches(',')];
    for word in before.iter().chain(head.iter()).filter(|word| !word.is_empty()) {
        for (keyword, values) in Request::parse(&join(&[word])).iter().flat_map(Request::iter) {
            all.set(keyword, values.clone());
        }
    }
    all
}

fn keywords_of(known: &Vocabulary, given: &Request, start: &str) -> Vec<Candidate> {
    let present = known.keywords();
    let mut names: Vec<(String, String)> = Vec::new();
    for (name, values) in &present {
        let values = if *values == 1 { "1 value".to_owned() } else { format!("{values} values") };
        names.push((name.to_string(), values));
    }
    for name in known.schema.keywords() {
        if !names.iter().any(|(known, _)| *known == *name) {
            let kind = known.schema.type_of(&name).map_or("", KeywordType::name);
            names.push((name.to_string(), kind.to_owned()));
        }
    }
    let wanted = names.into_iter().filter(|(name, _)| name.starts_with(start) && given.get(name).is_none());
    wanted.map(|(name, about)| Candidate::new(name, about)).collect()
}

fn values_of(
    known: &Vocabulary,
    given: &Request,
    keyword: &str,
    listed: &str,
    start: &str,
) -> Vec<Candidate> {
    let mut others = Request::new();
    for (name, values) in given.iter().filter(|(name, _)| *name != keyword) {
        others.set(name, values.clone());
    }
    let listed: Vec<&str> = listed.split('/').filter(|item| !item.is_empty()).collect();
    let kind = known.schema.type_of(keyword).unwrap_or(KeywordType::Text);
    let read = |text: &str| kind.canonical(keyword, text.trim_matches('"')).ok();
    let word = |text: &str| text.starts_with(start).then(|| Candidate::new(format!("{text}/"), ""));
    let is = |item: &&str, word: &str| item.eq_ignore_ascii_case(word);
    let ranged = matches!(
        kind,
        KeywordType::Integer
            | KeywordType::Double
            | KeywordType::Date
            | KeywordType::Time
            | KeywordType::Step
    );
    let mut found: Vec<Candidate> = Vec::new();
    match &listed[..] {
        [.., by] if is(by, "by") => return found,
        [.., to, _] if is(to, "to") => found.extend(word("by")),
        [.., from] if ranged && !is(from, "to") && !listed.iter().any(|item| is(item, "to")) => {
            found.extend(word("to"));
        }
        _ => {}
    }
    let from = match &listed[..] {
        [.., from, to] if is(to, "to") => read(from),
        _ => None,
    };
    let taken: BTreeSet<KeyValue> = listed.iter().filter_map(|item| read(item)).collect();
    let start = start.trim_start_matches('"');
    for value in known.values(keyword, &others) {
        let text = value.text();
        let fits = text.starts_with(start)
            && !taken.contains(&value)
            && from.as_ref().is_none_or(|from| value > *from);
        if fits {
            found.push(Candidate::new(Quoted(&text).to_string(), ""));
        }
    }
    found
}

/// The text up to and with the last `sign` outside quotes, and what follows it.
fn split_behind(text: &str, sign: char) -> (&str, &str) {
    let (mut quoted, mut escaped, mut at) = (false, false, 0);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == sign && !quoted => at = i + c.len_utf8(),
            _ => {}
        }
    }
    text.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone::prelude::*;
    use fieldstone::{ArchiveOptions, OpenOptions, Value};

    /// A folder with a store of three runs.
    fn store() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let url = folder.path().join("store").display().to_string();
        let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
        for (run, variable, steps) in
            [("a1", "t", [0, 6, 12]), ("a2", "wind speed", [0, 6, 24]), ("b", "t", [1, 2, 3])]
        {
            for step in steps {
                let key = [("run", run), ("variable", variable), ("step", &step.to_string())];
                store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
            }
        }
        store.close().unwrap();
        (folder, url)
    }

    fn words(url: &str, before: &[&str], current: &str) -> Vec<String> {
        candidates(url, before, current).into_iter().map(|c| c.word).collect()
    }

    #[test]
    fn values_are_those_that_the_store_has_under_the_rest() {
        let (_folder, url) = store();
        for (before, current, expected) in [
            (&[][..], "run=", &["run=a1", "run=a2", "run=b"][..]),
            (&[], "run=a", &["run=a1", "run=a2"]),
            (&["variable=t"], "run=", &["run=a1", "run=b"]),
            (&["run=b"], "step=", &["step=1", "step=2", "step=3"]),
            (&[], "run=b,step=", &["run=b,step=1", "run=b,step=2", "run=b,step=3"]),
            (&["run=a1"], "step=0/", &["step=0/to/", "step=0/6", "step=0/12"]),
            (&["run=a1"], "step=0/to/", &["step=0/to/6", "step=0/to/12"]),
            (&["run=a1"], "step=6/to/", &["step=6/to/12"]),
            (&["run=a1"], "step=0/to/12/", &["step=0/to/12/by/", "step=0/to/12/6"]),
            (&["run=a1"], "step=0/to/12/by/", &[]),
            (&["run=a2"], "variable=", &["variable=\"wind speed\""]),
            (&["run=a2"], "variable=\"wi", &["variable=\"wind speed\""]),
            (&["run=zz"], "step=", &[]),
            (&["run=a1/a2", "step=6"], "variable=", &["variable=t", "variable=\"wind speed\""]),
            (&[], "member=", &[]),
        ] {
            assert_eq!(words(&url, before, current), expected, "{before:?} {current}");
        }
    }

    #[test]
    fn keywords_are_those_not_given_yet() {
        let (_folder, url) = store();
        assert_eq!(words(&url, &[], ""), ["run=", "variable=", "step=", "project="]);
        assert_eq!(words(&url, &["run=a1", "variable=t"], "s"), ["step="]);
        assert_eq!(words(&url, &[], "run=a1,v"), ["run=a1,variable="]);
        assert_eq!(words(&url, &["run=a1"], "r"), [""; 0]);
        assert_eq!(words("mars", &[], "ste"), ["step="], "a schema by its name");
        assert_eq!(words("/no/such/store", &[], ""), [""; 0]);
    }
}
