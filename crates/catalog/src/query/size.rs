//! The size of an expression: measured and dropped without recursion, whoever built the expression.

use fieldstone_core::value::{Measure, Size, Test};

use super::{Expr, NameTest, Term};

/// A part of an expression.
enum ExprPart<'a> {
    Expr(&'a Expr),
    Name(&'a NameTest),
}

impl Expr {
    /// Its size, including the tests and values of its terms.
    pub fn size(&self) -> Size {
        Measure::of(ExprPart::Expr(self), |part, levels, measure| match part {
            ExprPart::Expr(Expr::All(list) | Expr::Any(list)) => {
                measure.inside(list.iter().map(ExprPart::Expr), levels + 1);
            }
            ExprPart::Expr(Expr::Not(inner) | Expr::Related(_, inner)) => {
                measure.inside([ExprPart::Expr(inner)], levels + 1);
            }
            ExprPart::Expr(Expr::Term(term)) => match asked(term) {
                Asked::Name(name) => measure.inside([ExprPart::Name(name)], levels),
                Asked::Test(test) => measure.add(test.size(), levels),
                Asked::Several(parts) => measure.add(Size { parts, levels: 0 }, levels),
            },
            ExprPart::Name(NameTest::Any(names)) => {
                measure.inside(names.iter().map(ExprPart::Name), levels + 1)
            }
            ExprPart::Name(NameTest::Is(_) | NameTest::Glob(_) | NameTest::Typed(_)) => {}
        })
    }

    /// Moves its parts out of it.
    fn take_parts(&mut self, into: &mut Vec<Expr>) {
        match self {
            Expr::All(list) | Expr::Any(list) => into.append(list),
            Expr::Not(inner) | Expr::Related(_, inner) => {
                into.push(std::mem::replace(inner, Expr::All(Vec::new())));
            }
            Expr::Term(_) => {}
        }
    }
}

impl Drop for Expr {
    fn drop(&mut self) {
        let mut left = Vec::new();
        self.take_parts(&mut left);
        while let Some(mut part) = left.pop() {
            part.take_parts(&mut left);
        }
    }
}

/// The parts of a term.
enum Asked<'a> {
    Name(&'a NameTest),
    Test(&'a Test),
    /// This many numbers or ranges.
    Several(usize),
}

fn asked(term: &Term) -> Asked<'_> {
    match term {
        Term::Run(name)
        | Term::Project(name)
        | Term::Job(name)
        | Term::Variable(name)
        | Term::Tag(name)
        | Term::Unit(name)
        | Term::User(name) => Asked::Name(name),
        Term::Param(_, test)
        | Term::Attr(_, test)
        | Term::Created(test)
        | Term::Time(test)
        | Term::Value(test)
        | Term::Extent(_, test)
        | Term::Volume(test)
        | Term::Keyword(_, test)
        | Term::Writer(_, test) => Asked::Test(test),
        Term::Step(ranges) | Term::Level(ranges) => Asked::Several(ranges.len()),
        Term::VariableVersion(versions) | Term::TagVersion(versions) => Asked::Several(versions.len()),
        Term::Region(ranges, _) => Asked::Several(ranges.len()),
        Term::Scope(_) => Asked::Several(0),
    }
}
