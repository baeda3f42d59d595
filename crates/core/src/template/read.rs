//! Parses a name.

use super::grid::ObjectGrid;
use super::text::{Hole, Template, TemplatePart, Words};
use crate::geometry::IndexBox;
use crate::{Error, Result};

/// Length limit for a name.
const NAME_MAX: usize = 4096;
/// After this number of attempts, a name counts as ambiguous.
const ATTEMPTS: u32 = 100_000;

/// The contents of a parsed name. `None` for everything that the template does not name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The job.
    pub job: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// The run.
    pub run: Option<String>,
    /// The variable.
    pub variable: Option<String>,
    /// The variable's version.
    pub version: Option<i64>,
    /// The step.
    pub step: Option<i64>,
    /// Dimensions with the first index of the piece.
    pub origins: Vec<(usize, u64)>,
    /// Dimensions with the number of the piece.
    pub numbers: Vec<(usize, u64)>,
    /// Position of the piece among all.
    pub place: Option<u64>,
}

impl Reading {
    /// The piece that the name identifies. Invalid if the grid has no such piece.
    pub fn piece(&self, grid: &ObjectGrid) -> Result<IndexBox> {
        let missing =
            |what: String| Error::invalid(format!("the name contains {what}, but there is no such piece"));
        let rank = grid.shape().len();
        let mut found: Vec<Option<u64>> = vec![None; rank];
        if let Some(place) = self.place {
            let numbers = grid.at(place).ok_or_else(|| missing(format!("piece {place}")))?;
            found = numbers.into_iter().map(Some).collect();
        }
        let origins = self.origins.iter().map(|&(d, origin)| {
            let number = (d < rank && origin < grid.shape()[d]).then(|| grid.number(d, origin));
            let exact = number.filter(|n| grid.range(d, *n).is_some_and(|(first, _)| first == origin));
            (d, exact.ok_or_else(|| missing(format!("index {origin} in dimension {d}"))))
        });
        let numbers = self.numbers.iter().map(|&(d, n)| {
            let there = d < rank && grid.range(d, n).is_some();
            (d, if there { Ok(n) } else { Err(missing(format!("number {n} in dimension {d}"))) })
        });
        for (d, number) in origins.chain(numbers) {
            let number = number?;
            if found[d].is_some_and(|known| known != number) {
                return Err(missing(format!("two positions in dimension {d}")));
            }
            found[d] = Some(number);
        }
        let numbers: Vec<u64> = found
            .iter()
            .enumerate()
            .map(|(d, number)| match number {
                Some(number) => Ok(*number),
                None if grid.counts()[d] == 1 => Ok(0),
                None => Err(missing(format!("no position in dimension {d}"))),
            })
            .collect::<Result<_>>()?;
        grid.piece(&numbers)
    }

    fn text(&mut self, hole: Hole) -> Option<&mut Option<String>> {
        match hole {
            Hole::Job => Some(&mut self.job),
            Hole::Project => Some(&mut self.project),
            Hole::Run => Some(&mut self.run),
            Hole::Variable => Some(&mut self.variable),
            _ => None,
        }
    }

    /// Stores the digits of a hole; returns whether they agree with those found before.
    fn number(&mut self, hole: Hole, digits: &str) -> bool {
        let signed = digits.parse::<i64>();
        let unsigned = digits.parse::<u64>();
        let mut put = |all: fn(&mut Reading) -> &mut Vec<(usize, u64)>, d: usize| match unsigned {
            Ok(value) => {
                let known = all(self).iter().find(|(known, _)| *known == d).copied();
                if known.is_none() {
                    all(self).push((d, value));
                }
                known.is_none_or(|(_, known)| known == value)
            }
            Err(_) => false,
        };
        match hole {
            Hole::Origin(d) => put(|reading| &mut reading.origins, d),
            Hole::Number(d) => put(|reading| &mut reading.numbers, d),
            Hole::Piece => unsigned.is_ok_and(|value| *self.place.get_or_insert(value) == value),
            Hole::Version => signed.is_ok_and(|value| *self.version.get_or_insert(value) == value),
            Hole::Step => signed.is_ok_and(|value| *self.step.get_or_insert(value) == value),
            Hole::Job | Hole::Project | Hole::Run | Hole::Variable => false,
        }
    }
}

/// The search for the ways in which a name can be parsed.
struct NameReader<'a> {
    parts: &'a [TemplatePart],
    found: Vec<Reading>,
    attempts: u32,
}

impl NameReader<'_> {
    fn read(&mut self, at: usize, rest: &str, mut so_far: Reading) {
        if self.attempts == 0 || self.found.len() > 1 {
            return;
        }
        self.attempts -= 1;
        let parts = self.parts;
        let Some(part) = parts.get(at) else {
            if rest.is_empty() && !self.found.contains(&so_far) {
                self.found.push(so_far);
            }
            return;
        };
        match part {
            TemplatePart::Literal(text) => {
                if let Some(rest) = rest.strip_prefix(text.as_str()) {
                    self.read(at + 1, rest, so_far);
                }
            }
            TemplatePart::Hole(hole, width) if !hole.is_text() => {
                let sign = usize::from(hole.may_be_negative() && rest.starts_with('-'));
                let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
                let (number, rest) = rest.split_at(sign + digits);
                // Only the form that would be written: no zeros beyond the width, and none missing.
                let canonical = number.parse::<i128>().is_ok_and(|n| format!("{n:0width$}") == number);
                if canonical && so_far.number(*hole, number) {
                    self.read(at + 1, rest, so_far);
                }
            }
            TemplatePart::Hole(hole, _) => {
                let known = so_far.text(*hole).and_then(|known| known.clone());
                if let Some(known) = known {
                    if let Some(rest) = rest.strip_prefix(known.as_str()) {
                        self.read(at + 1, rest, so_far);
                    }
                    return;
                }
                for (end, c) in rest.char_indices() {
                    let end = end + c.len_utf8();
                    let next = match parts.get(at + 1) {
                        Some(TemplatePart::Literal(next)) => rest[end..].starts_with(next.as_str()),
                        _ => end == rest.len(),
                    };
                    let whole = rest[..end].split('/').all(|part| !matches!(part, "" | "." | ".."));
                    if next && whole {
                        let mut reading = so_far.clone();
                        if let Some(place) = reading.text(*hole) {
                            *place = Some(rest[..end].to_owned());
                        }
                        self.read(at + 1, &rest[end..], reading);
                    }
                }
            }
        }
    }
}

impl Template {
    /// Parses a name. Texts of `known` that are not empty must match; Invalid if the name does not fit this template,
    /// or is ambiguous.
    pub fn read(&self, name: &str, known: &Words<'_>) -> Result<Reading> {
        let foreign = || Error::invalid(format!("{name:?} is not a name of the template {self}"));
        if name.len() > NAME_MAX {
            return Err(Error::invalid(format!("a name of {} bytes", name.len())));
        }
        let mut start = Reading::default();
        for (hole, text) in [
            (Hole::Job, known.job),
            (Hole::Project, known.project),
            (Hole::Run, known.run),
            (Hole::Variable, known.variable),
        ] {
            let named = self.parts.iter().any(|part| matches!(part, TemplatePart::Hole(h, _) if *h == hole));
            if let Some(place) = start.text(hole).filter(|_| named && !text.is_empty()) {
                *place = Some(text.to_owned());
            }
        }
        let mut reader = NameReader { parts: &self.parts, found: Vec::new(), attempts: ATTEMPTS };
        reader.read(0, name, start);
        let exhausted = reader.attempts == 0;
        match (reader.found.pop(), reader.found.is_empty()) {
            (Some(reading), true) if !exhausted => Ok(reading),
            (None, _) if !exhausted => Err(foreign()),
            _ => Err(Error::invalid(format!("the name {name:?} is ambiguous under the template {self}"))
                .with_hint("state its run and its variable")),
        }
    }
}
