//! Hints that the catalog gives: a tag `hint.KEY` on a run, or on a variable of a group, is a hint for the files of its arrays.
//!
//! So whoever tags a run says where its arrays go, such as over how many servers of a file system (`hint.striping_factor`).
//! Hints of a group's declaration and of a call win. A value that is not a valid hint is passed over: a tag must not end a job.

use fieldstone_core::Result;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::RunName;

use crate::Session;
use crate::Store;
use crate::catalog::Query;
use crate::catalog::query::{Expr, NameTest, Term};

/// The beginning of the names of such tags.
const TAGS: &str = "hint.";

/// The hints for a run and some of its variables; those of variables win.
pub fn hints_of(store: &Store, run: &RunName, variables: &[String], session: &Session) -> Result<Hints> {
    let (mut of_run, mut of_variables) = (Hints::default(), Hints::default());
    let expr = Expr::All(vec![
        Expr::Term(Term::Run(NameTest::Is(run.name.clone()))),
        Expr::Term(Term::Project(NameTest::Is(run.project.clone()))),
        Expr::Term(Term::Tag(NameTest::Glob(format!("{TAGS}*")))),
    ]);
    let query = Query { expr, session: session.clone(), ..Query::all() };
    for hit in store.catalog().stream(&query)? {
        let hit = hit?;
        let value = match &hit.value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            Value::Bool(is) => is.to_string(),
            _ => continue,
        };
        let is_whole = hit.step.is_none() && hit.region.is_none();
        let all = match hit.variable.as_deref() {
            None if is_whole => &mut of_run,
            Some(name) if is_whole && variables.iter().any(|own| own == name) => &mut of_variables,
            _ => continue,
        };
        match Hints::new([(hit.tag[TAGS.len()..].to_owned(), value)]) {
            Ok(hint) => *all = all.with(&hint),
            Err(error) => tracing::debug!(tag = %hit.tag, %error, "a tag is not a valid hint"),
        }
    }
    Ok(of_run.with(&of_variables))
}

/// Hints as lines, for other ranks.
pub fn lines(hints: &Hints) -> String {
    hints.iter().map(|(key, value)| format!("{key}\0{value}\n")).collect()
}

/// Hints from such lines.
pub fn of_lines(lines: &str) -> Hints {
    let pairs = lines.lines().filter_map(|line| line.split_once('\0'));
    Hints::given(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())))
}
