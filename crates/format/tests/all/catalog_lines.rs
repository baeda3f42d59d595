//! Records of the catalog as lines of an exported file: they survive a round trip, and damaged lines are
//! refused.

use fieldstone_core::ErrorKind;
use fieldstone_format::catalog::{Record, line_of, record_of};
use proptest::prelude::*;

use super::catalog::{record, said};

/// The content of records that lines keep, including the keywords of attributes.
fn all(record: &Record) -> String {
    match record {
        Record::Attributes(batch) => {
            let keywords = (0..batch.rows).map(|row| batch.keywords_of(row).collect::<Vec<_>>());
            format!("{} {:?}", said(record), keywords.collect::<Vec<_>>())
        }
        // The state of a run has its own line.
        Record::Runs(runs) => {
            let runs = runs.iter().cloned().map(|mut decl| {
                decl.state = None;
                said(&Record::Runs(vec![decl]))
            });
            runs.collect()
        }
        Record::Variables(run, all) => {
            all.iter().map(|decl| said(&Record::Variables(run.clone(), vec![decl.clone()]))).collect()
        }
        Record::Tags(all) => all.iter().map(|tag| said(&Record::Tags(vec![tag.clone()]))).collect(),
        Record::States(all) => all.iter().map(|state| said(&Record::States(vec![state.clone()]))).collect(),
        record => said(record),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn lines_give_the_records_back(record in record()) {
        let lines = line_of(&record);
        let back: Vec<Record> = lines.iter().map(|line| record_of(line).unwrap()).collect();
        let again: Vec<String> = back.iter().flat_map(line_of).collect();
        prop_assert_eq!(&again, &lines);
        prop_assert!(lines.iter().all(|line| !line.contains('\n')));
        if !lines.is_empty() {
            prop_assert_eq!(back.iter().map(all).collect::<String>(), all(&record));
        }
    }

    #[test]
    fn damage_of_a_line_is_named_or_harmless(record in record(), at in any::<usize>(), with in ".{0,3}") {
        for line in line_of(&record) {
            let mut chars: Vec<char> = line.chars().collect();
            let at = at % chars.len();
            chars.splice(at..at + 1, with.chars());
            match record_of(&chars.into_iter().collect::<String>()) {
                Ok(sound) => sound.check().unwrap(),
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
        }
    }
}

#[test]
fn lines_say_what_they_may_not() {
    for (line, why) in [
        ("{", "no JSON"),
        ("[]", "no object"),
        (r#"{"kind":"song"}"#, "the kind \"song\" is unknown"),
        (r#"{"kind":"tag","name":"","version":0,"type":"float","unit":""}"#, "tag"),
        (r#"{"kind":"steps","run":["","a"],"numbers":[1,2],"times":[null]}"#, "differ in length"),
        (r#"{"kind":"run","run":["a"]}"#, "a run needs a project and a name"),
    ] {
        let error = record_of(line).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains(why), "{error}");
    }
    let deep = format!(
        r#"{{"kind":"run","run":["","a"],"params":[["x",{}1{}]]}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    assert_eq!(record_of(&deep).unwrap_err().kind(), ErrorKind::Corrupt);
}
