//! The statements that read ranges of attr, one for each shape of probe. Each takes any number of probes as
//! arrays, so a query with a hundred ranges of the curve needs one round trip.

use super::super::{NO_STEP, Probe};
use postgres::types::ToSql;

/// Maximum number of probes in one statement, which limits its arrays.
const MOST: usize = 4096;

/// The shape of a probe, which determines the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// A range of steps.
    Steps,
    /// A variable at a step.
    Variable,
    /// A range of the curve of a variable at a step.
    Curve,
    /// A range of numbers.
    Number,
    /// Texts between two.
    Text,
    /// Texts from one on.
    TextFrom,
}

impl Shape {
    pub(super) fn of(probe: &Probe) -> Shape {
        match probe {
            Probe::Key { curve: Some(_), .. } => Shape::Curve,
            Probe::Key { variable: Some(_), .. } => Shape::Variable,
            Probe::Key { .. } => Shape::Steps,
            Probe::Number { .. } => Shape::Number,
            Probe::Text { to: Some(_), .. } => Shape::Text,
            Probe::Text { .. } => Shape::TextFrom,
        }
    }

    /// The statement. The inner query has its own order, so that the server reads one range after the other,
    /// in the given order.
    pub(super) fn sql(self) -> String {
        const KEY: &str = "a.run, a.tag, a.step, a.variable, a.curve, a.batch, a.row";
        let (arrays, names, test, order) = match self {
            Shape::Steps => (
                "$1::int8[], $2::int8[], $3::int8[], $4::int8[]",
                "run, tag, lo, hi",
                "a.step BETWEEN p.lo AND p.hi",
                KEY.to_owned(),
            ),
            Shape::Variable => (
                "$1::int8[], $2::int8[], $3::int8[], $4::int8[]",
                "run, tag, step, variable",
                "a.step = p.step AND a.variable = p.variable",
                KEY.to_owned(),
            ),
            Shape::Curve => (
                "$1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[]",
                "run, tag, step, variable, lo, hi",
                "a.step = p.step AND a.variable = p.variable AND a.curve BETWEEN p.lo AND p.hi",
                KEY.to_owned(),
            ),
            Shape::Number => (
                "$1::int8[], $2::int8[], $3::float8[], $4::float8[]",
                "run, tag, lo, hi",
                "a.num IS NOT NULL AND a.num BETWEEN p.lo AND p.hi",
                "a.num".to_owned(),
            ),
            Shape::Text => (
                "$1::int8[], $2::int8[], $3::text[], $4::text[]",
                "run, tag, lo, hi",
                "a.payload_text IS NOT NULL AND a.payload_text >= p.lo COLLATE \"C\" AND a.payload_text <= p.hi COLLATE \"C\"",
                "a.payload_text".to_owned(),
            ),
            Shape::TextFrom => (
                "$1::int8[], $2::int8[], $3::text[]",
                "run, tag, lo",
                "a.payload_text IS NOT NULL AND a.payload_text >= p.lo COLLATE \"C\"",
                "a.payload_text".to_owned(),
            ),
        };
        let columns = super::ATTR_COLUMNS;
        format!(
            "SELECT a.* FROM unnest({arrays}) AS p({names}) CROSS JOIN LATERAL (SELECT {columns} FROM attr a \
             WHERE a.run = p.run AND a.tag = p.tag AND {test} ORDER BY {order}) AS a"
        )
    }

    /// The number of its arrays.
    pub(super) fn arrays(self) -> usize {
        match self {
            Shape::TextFrom => 3,
            Shape::Steps | Shape::Variable | Shape::Number | Shape::Text => 4,
            Shape::Curve => 6,
        }
    }
}

/// Consecutive probes of one shape, as the arrays of its statement.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) shape: Shape,
    whole: Vec<Vec<i64>>,
    real: Vec<Vec<f64>>,
    text: Vec<Vec<String>>,
}

impl Group {
    /// Splits probes into groups of equal shape.
    pub(super) fn split(probes: &[Probe]) -> Vec<Group> {
        let mut groups: Vec<(Group, usize)> = Vec::new();
        for probe in probes {
            let shape = Shape::of(probe);
            match groups.last_mut() {
                Some((group, n)) if group.shape == shape && *n < MOST => {
                    group.add(probe);
                    *n += 1;
                }
                _ => {
                    let (whole, real, text) = match shape {
                        Shape::Number => (2, 2, 0),
                        Shape::Text => (2, 0, 2),
                        Shape::TextFrom => (2, 0, 1),
                        shape => (shape.arrays(), 0, 0),
                    };
                    let mut group = Group {
                        shape,
                        whole: vec![Vec::new(); whole],
                        real: vec![Vec::new(); real],
                        text: vec![Vec::new(); text],
                    };
                    group.add(probe);
                    groups.push((group, 1));
                }
            }
        }
        groups.into_iter().map(|(group, _)| group).collect()
    }

    fn add(&mut self, probe: &Probe) {
        let mut whole = |values: &[i64]| {
            for (column, value) in self.whole.iter_mut().zip(values) {
                column.push(*value);
            }
        };
        match probe {
            Probe::Key { run, tag, steps, variable: None, .. } => {
                whole(&[*run, *tag, *steps.start(), *steps.end()]);
            }
            Probe::Key { run, tag, steps, variable: Some(variable), curve: None } => {
                whole(&[*run, *tag, *steps.start(), *variable]);
            }
            Probe::Key { run, tag, steps, variable: Some(variable), curve: Some(curve) } => {
                whole(&[*run, *tag, *steps.start(), *variable, *curve.start(), *curve.end()]);
            }
            Probe::Number { run, tag, numbers } => {
                whole(&[*run, *tag]);
                self.real[0].push(*numbers.start());
                self.real[1].push(*numbers.end());
            }
            Probe::Text { run, tag, from, to } => {
                whole(&[*run, *tag]);
                self.text[0].push(super::cells::escaped(from).into_owned());
                if let (Some(column), Some(to)) = (self.text.get_mut(1), to) {
                    column.push(super::cells::escaped(to).into_owned());
                }
            }
        }
    }

    /// The statement's parameters.
    pub(super) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        let whole = self.whole.iter().map(|c| c as &(dyn ToSql + Sync));
        let real = self.real.iter().map(|c| c as &(dyn ToSql + Sync));
        let text = self.text.iter().map(|c| c as &(dyn ToSql + Sync));
        whole.chain(real).chain(text).collect()
    }
}

/// A probe for everything of one run and tag, for plans.
pub(super) fn sample(shape: Shape) -> Probe {
    let (run, tag, steps) = (1, 1, NO_STEP..=i64::MAX);
    match shape {
        Shape::Steps => Probe::Key { run, tag, steps, variable: None, curve: None },
        Shape::Variable => Probe::Key { run, tag, steps: 1..=1, variable: Some(1), curve: None },
        Shape::Curve => Probe::Key { run, tag, steps: 1..=1, variable: Some(1), curve: Some(0..=9) },
        Shape::Number => Probe::Number { run, tag, numbers: 0.0..=1.0 },
        Shape::Text => Probe::Text { run, tag, from: "a".into(), to: Some("b".into()) },
        Shape::TextFrom => Probe::Text { run, tag, from: "a".into(), to: None },
    }
}
