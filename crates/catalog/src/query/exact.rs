//! Queries for changes and removals: a typed name means exactly that name, and a pattern counts only if it
//! was requested as one, so that nothing is removed that nobody named.

use super::{Expr, NameTest, Query, Term};

impl Query {
    /// The same query with each typed name and text taken literally, for changes and removals.
    #[must_use]
    pub fn exact(&self) -> Query {
        Query { expr: self.expr.exact(), ..self.clone() }
    }

    /// The runs that it names without a project, including those in alternatives and negations.
    pub(crate) fn runs_without_project(&self) -> Vec<&str> {
        let (mut runs, mut projects) = (Vec::new(), false);
        let mut left = vec![&self.expr];
        while let Some(expr) = left.pop() {
            match expr {
                Expr::All(list) | Expr::Any(list) => left.extend(list),
                Expr::Not(inner) => left.push(inner),
                Expr::Term(Term::Run(name)) => name.named(&mut runs),
                Expr::Term(Term::Project(_)) => projects = true,
                Expr::Term(_) | Expr::Related(..) => {}
            }
        }
        if projects { Vec::new() } else { runs }
    }

    /// Its tests of tags, among terms that all must hold; `None` if it names no tag.
    pub(crate) fn of_tags_alone(&self) -> Option<Query> {
        let mut terms = Vec::new();
        let mut left = vec![&self.expr];
        while let Some(expr) = left.pop() {
            match expr {
                Expr::All(list) => left.extend(list),
                Expr::Term(term @ (Term::Tag(_) | Term::TagVersion(_) | Term::Unit(_))) => terms.push(term),
                _ => {}
            }
        }
        let named = terms.iter().any(|term| matches!(term, Term::Tag(_)));
        let expr = Expr::All(terms.into_iter().cloned().map(Expr::Term).collect());
        named.then(|| Query { expr, session: self.session.clone(), ..Query::all() })
    }

    /// The first name or text in it that is a pattern for reads but not for changes.
    pub fn typed(&self) -> Option<&str> {
        self.expr.typed()
    }
}

impl Expr {
    fn exact(&self) -> Expr {
        let all = |list: &[Expr]| list.iter().map(Expr::exact).collect();
        match self {
            Expr::All(list) => Expr::All(all(list)),
            Expr::Any(list) => Expr::Any(all(list)),
            Expr::Not(inner) => Expr::Not(Box::new(inner.exact())),
            Expr::Related(place, inner) => Expr::Related(*place, Box::new(inner.exact())),
            Expr::Term(term) => Expr::Term(term.exact()),
        }
    }

    fn typed(&self) -> Option<&str> {
        match self {
            Expr::All(list) | Expr::Any(list) => list.iter().find_map(Expr::typed),
            Expr::Not(inner) | Expr::Related(_, inner) => inner.typed(),
            Expr::Term(term) => term.name().and_then(NameTest::typed),
        }
    }
}

impl Term {
    fn exact(&self) -> Term {
        match self {
            Term::Run(name) => Term::Run(name.exact()),
            Term::Project(name) => Term::Project(name.exact()),
            Term::Job(name) => Term::Job(name.exact()),
            Term::Variable(name) => Term::Variable(name.exact()),
            Term::Tag(name) => Term::Tag(name.exact()),
            Term::Unit(name) => Term::Unit(name.exact()),
            Term::Param(name, test) => Term::Param(name.clone(), test.exact()),
            Term::Attr(name, test) => Term::Attr(name.clone(), test.exact()),
            Term::Keyword(name, test) => Term::Keyword(name.clone(), test.exact()),
            Term::Value(test) => Term::Value(test.exact()),
            Term::User(name) => Term::User(name.exact()),
            Term::Writer(part, test) => Term::Writer(*part, test.exact()),
            other => other.clone(),
        }
    }

    fn name(&self) -> Option<&NameTest> {
        match self {
            Term::Run(name)
            | Term::Project(name)
            | Term::Job(name)
            | Term::Variable(name)
            | Term::Tag(name)
            | Term::Unit(name)
            | Term::User(name) => Some(name),
            _ => None,
        }
    }
}

impl NameTest {
    fn exact(&self) -> NameTest {
        match self {
            NameTest::Typed(name) => NameTest::Is(name.clone()),
            NameTest::Any(tests) => NameTest::Any(tests.iter().map(NameTest::exact).collect()),
            other => other.clone(),
        }
    }

    fn typed(&self) -> Option<&str> {
        match self {
            NameTest::Typed(name) => Some(name),
            NameTest::Any(tests) => tests.iter().find_map(NameTest::typed),
            _ => None,
        }
    }

    fn named<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            NameTest::Is(name) => names.push(name),
            NameTest::Any(tests) => tests.iter().for_each(|test| test.named(names)),
            NameTest::Typed(_) | NameTest::Glob(_) => {}
        }
    }
}
