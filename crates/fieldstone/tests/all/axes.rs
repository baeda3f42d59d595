//! Axes of keywords that a key has at several levels: the deepest value counts, as in the key itself.
use fieldstone::prelude::*;
use fieldstone::{OpenOptions, ReadOptions, Request, Value};

#[test]
fn the_deepest_value_of_a_keyword_counts() {
    let schema = "date: Date; [ run, date:YearMonth [ variable [ date:Date, step? ] ] ]";
    let options = OpenOptions { schema: Some(schema.to_owned()), ..Default::default() };
    let store = fieldstone::open("memory:", &options).unwrap();
    for date in ["20240102", "20240103", "20240204"] {
        let key = [("run", "a"), ("variable", "t"), ("date", date)];
        store.archive(&key, Value::Bytes(b"x"), &Default::default()).unwrap();
        store.flush(None).unwrap();
    }
    for request in ["", "run=a"] {
        let axes = store.axes(&Request::parse(request).unwrap(), &ReadOptions::default()).unwrap();
        let (_, dates) = axes.iter().find(|(name, _)| &**name == "date").unwrap();
        let texts: Vec<_> = dates.iter().map(|date| date.text().into_owned()).collect();
        assert_eq!(texts, ["20240102", "20240103", "20240204"], "{request}");
    }
}
