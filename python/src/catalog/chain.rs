//! Expressions and tests as Python joins them: `a & b`, `a | b`, `~a`.
//!
//! Joining copies nothing, so a program that adds terms in a loop takes time proportional to their number. The chain
//! is assembled when it is used: parts joined by the same operator form one list.
//!
//! Invariants: a chain is no larger than [`Size::MOST`], so code may recurse over the assembled expression. The
//! chain's links can be far more numerous than its levels; they are walked and dropped without recursion.

use std::sync::Arc;

use fieldstone::catalog::query::Expr;
use fieldstone::catalog::value::{Size, Test};
use pyo3::prelude::*;

use crate::errors::Raise;

/// How parts are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    All,
    Any,
}

/// Types that can be joined.
pub trait Part: Clone {
    /// Its size.
    fn size(&self) -> Size;
    /// The parts, if this is a list joined by `joint`.
    fn list(&self, joint: Joint) -> Option<&[Self]>;
    /// Joins several parts into one.
    fn join(joint: Joint, parts: Vec<Self>) -> Self;
    /// The opposite.
    fn not(self) -> Self;
}

impl Part for Expr {
    fn size(&self) -> Size {
        Expr::size(self)
    }

    fn list(&self, joint: Joint) -> Option<&[Expr]> {
        match (self, joint) {
            (Expr::All(list), Joint::All) | (Expr::Any(list), Joint::Any) => Some(list),
            _ => None,
        }
    }

    fn join(joint: Joint, parts: Vec<Expr>) -> Expr {
        match joint {
            Joint::All => Expr::All(parts),
            Joint::Any => Expr::Any(parts),
        }
    }

    fn not(self) -> Expr {
        Expr::Not(Box::new(self))
    }
}

impl Part for Test {
    fn size(&self) -> Size {
        Test::size(self)
    }

    fn list(&self, joint: Joint) -> Option<&[Test]> {
        match (self, joint) {
            (Test::All(list), Joint::All) | (Test::Any(list), Joint::Any) => Some(list),
            _ => None,
        }
    }

    fn join(joint: Joint, parts: Vec<Test>) -> Test {
        match joint {
            Joint::All => Test::All(parts),
            Joint::Any => Test::Any(parts),
        }
    }

    fn not(self) -> Test {
        Test::Not(Box::new(self))
    }
}

/// Everything joined so far. Clones share it.
#[derive(Debug)]
pub struct Chain<T>(Arc<Link<T>>);

#[derive(Debug)]
struct Link<T> {
    kind: Kind<T>,
    size: Size,
}

#[derive(Debug)]
enum Kind<T> {
    One(T),
    /// The links to two chains; empty while they are being dropped.
    Joined(Joint, Vec<Chain<T>>),
    Not(Option<Chain<T>>),
}

impl<T> Clone for Chain<T> {
    fn clone(&self) -> Chain<T> {
        Chain(self.0.clone())
    }
}

impl<T: Part> Chain<T> {
    /// A chain of one part.
    pub fn of(part: T) -> PyResult<Chain<T>> {
        let size = part.size();
        Chain::new(Kind::One(part), size)
    }

    fn new(kind: Kind<T>, size: Size) -> PyResult<Chain<T>> {
        size.check().or_raise()?;
        Ok(Chain(Arc::new(Link { kind, size })))
    }

    /// Joins two chains by "and" or "or".
    pub fn joined(&self, joint: Joint, other: &Chain<T>) -> PyResult<Chain<T>> {
        // An empty list under the same operator is neutral, so the other side is the result.
        match (self.is_empty(joint), other.is_empty(joint)) {
            (true, _) => return Ok(other.clone()),
            (_, true) => return Ok(self.clone()),
            _ => {}
        }
        let size = self.size_in(joint).beside(other.size_in(joint));
        Chain::new(Kind::Joined(joint, vec![self.clone(), other.clone()]), size)
    }

    /// Joins several chains by "and".
    pub fn all(several: Vec<Chain<T>>) -> PyResult<Chain<T>> {
        let mut several = several.into_iter();
        let Some(first) = several.next() else { return Chain::of(T::join(Joint::All, Vec::new())) };
        several.try_fold(first, |before, next| before.joined(Joint::All, &next))
    }

    /// The negation; negating twice gives the original.
    pub fn not(&self) -> PyResult<Chain<T>> {
        match &self.0.kind {
            Kind::Not(Some(inner)) => Ok(inner.clone()),
            _ => Chain::new(Kind::Not(Some(self.clone())), self.0.size.within()),
        }
    }

    /// Whether joining this by `joint` changes nothing.
    fn is_empty(&self, joint: Joint) -> bool {
        matches!(&self.0.kind, Kind::One(part) if part.list(joint).is_some_and(<[T]>::is_empty))
    }

    /// The size as a part of a list: parts joined by the same operator do not add a level.
    fn size_in(&self, joint: Joint) -> Size {
        let same = match &self.0.kind {
            Kind::One(part) => part.list(joint).is_some(),
            Kind::Joined(own, _) => *own == joint,
            Kind::Not(_) => false,
        };
        if same { self.0.size } else { self.0.size.within() }
    }

    /// Assembles the expression.
    pub fn made(&self) -> T {
        let joint = match &self.0.kind {
            Kind::One(part) => return part.clone(),
            Kind::Not(inner) => return inner.as_ref().map_or_else(|| unjoined(), Chain::made).not(),
            Kind::Joined(joint, _) => *joint,
        };
        let (mut parts, mut left) = (Vec::new(), vec![self]);
        // Walks the links with a stack, in order: a loop of joins makes more links than recursion could follow.
        while let Some(next) = left.pop() {
            match &next.0.kind {
                Kind::Joined(own, chains) if *own == joint => left.extend(chains.iter().rev()),
                Kind::One(part) => match part.list(joint) {
                    Some(list) => parts.extend_from_slice(list),
                    None => parts.push(part.clone()),
                },
                _ => parts.push(next.made()),
            }
        }
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                T::join(joint, parts)
            }
        }
    }
}

/// The neutral expression, which is always true.
fn unjoined<T: Part>() -> T {
    T::join(Joint::All, Vec::new())
}

impl<T> Link<T> {
    fn take_chains(&mut self, into: &mut Vec<Chain<T>>) {
        match &mut self.kind {
            Kind::One(_) => {}
            Kind::Joined(_, chains) => into.append(chains),
            Kind::Not(inner) => into.extend(inner.take()),
        }
    }
}

impl<T> Drop for Link<T> {
    fn drop(&mut self) {
        let mut left = Vec::new();
        self.take_chains(&mut left);
        // Drops links one by one: recursion over a long chain would overflow the stack. Shared links stay.
        while let Some(chain) = left.pop() {
            if let Some(mut link) = Arc::into_inner(chain.0) {
                link.take_chains(&mut left);
            }
        }
    }
}
