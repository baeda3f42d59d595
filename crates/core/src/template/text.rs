//! The text of a template, and the names that it makes.

use std::fmt;

use super::grid::ObjectGrid;
use crate::nearest;
use crate::{Error, Result};

/// Limit on the width of a number.
const WIDTH_MAX: usize = 40;

/// The content of a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hole {
    Job,
    Project,
    Run,
    Variable,
    Version,
    Step,
    /// First index of the piece along a dimension.
    Origin(usize),
    /// Number of the piece along a dimension.
    Number(usize),
    /// Position of the piece among all.
    Piece,
}

impl Hole {
    pub(super) fn is_text(self) -> bool {
        matches!(self, Hole::Job | Hole::Project | Hole::Run | Hole::Variable)
    }

    pub(super) fn may_be_negative(self) -> bool {
        matches!(self, Hole::Version | Hole::Step)
    }
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Literal(String),
    /// A hole, and the minimum number of digits.
    Hole(Hole, usize),
}

/// The parts of a name besides the piece. Texts are empty if they are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Words<'a> {
    /// The job.
    pub job: &'a str,
    /// The project.
    pub project: &'a str,
    /// The run.
    pub run: &'a str,
    /// The variable.
    pub variable: &'a str,
    /// The variable's version.
    pub version: i64,
    /// The step.
    pub step: Option<i64>,
}

/// A text with holes: `{job}` `{project}` `{run}` `{variable}` `{version}` `{step}`, a dimension's name or number for
/// the first index of the piece along it (`{x}`, `{0}`), the same with `.n` for the number of the piece along it, and
/// `{piece}` for the position of the piece among all. Numbers accept a width, such as `{step:06d}`. A literal brace
/// is doubled: `{{`, `}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    pub(super) parts: Vec<TemplatePart>,
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Template {
    /// Parses a template for variables with these dimensions; without names, they are x, y, z in this order.
    pub fn parse(text: &str, dims: &[String]) -> Result<Template> {
        let wrong = |at: usize, why: String| {
            Error::invalid(format!("template {text:?}, at character {}: {why}", text[..at].chars().count()))
        };
        let mut parts: Vec<TemplatePart> = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let doubled = text[at + c.len_utf8()..].starts_with(c);
            match c {
                '{' | '}' if doubled => {
                    literal.push(c);
                    at += 2;
                }
                '}' => {
                    return Err(
                        wrong(at, "this closing brace has no opening brace".into()).with_hint("write }}")
                    );
                }
                '{' => {
                    let Some(length) = text[at..].find('}') else {
                        return Err(wrong(at, "this brace is not closed".into())
                            .with_hint("write {{ for a literal brace"));
                    };
                    if !literal.is_empty() {
                        parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
                    }
                    let hole = hole(&text[at + 1..at + length], dims)
                        .map_err(|(why, hint)| wrong(at + 1, why).with_hint(hint))?;
                    parts.push(TemplatePart::Hole(hole.0, hole.1));
                    at += length + 1;
                }
                _ => {
                    literal.push(c);
                    at += c.len_utf8();
                }
            }
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        if parts.is_empty() {
            return Err(
                Error::invalid("the template is empty").with_hint("for example {run}/{variable}_{step}.nc")
            );
        }
        for pair in parts.windows(2) {
            let why = match pair {
                [TemplatePart::Hole(..), TemplatePart::Hole(..)] => "two holes are adjacent",
                [TemplatePart::Hole(hole, _), TemplatePart::Literal(next)]
                    if !hole.is_text() && next.starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    "a digit follows the hole of a number"
                }
                _ => continue,
            };
            return Err(Error::invalid(format!("template {text:?}: {why}, so that names cannot be parsed"))
                .with_hint("separate them by a character such as _"));
        }
        Ok(Template { text: text.to_owned(), parts })
    }

    /// Dimensions that the template names.
    pub fn dimensions(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Hole(Hole::Origin(d) | Hole::Number(d), _) => Some(*d),
            _ => None,
        })
    }

    /// Whether it names the position of the piece among all.
    pub fn has_piece(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Hole(Hole::Piece, _)))
    }

    /// Whether it names the step.
    pub fn has_step(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Hole(Hole::Step, _)))
    }

    /// The name of the object that contains the piece with these numbers.
    pub fn name(&self, words: &Words<'_>, grid: &ObjectGrid, numbers: &[u64]) -> Result<String> {
        let mut name = String::with_capacity(self.text.len() + 16);
        for part in &self.parts {
            let (hole, width) = match part {
                TemplatePart::Literal(text) => {
                    name.push_str(text);
                    continue;
                }
                TemplatePart::Hole(hole, width) => (*hole, *width),
            };
            let mut along = |d: usize, origin: bool| -> Result<()> {
                let number = numbers.get(d).copied();
                let value = match origin {
                    true => number.and_then(|n| grid.range(d, n)).map(|(first, _)| first),
                    false => number,
                };
                let value = value.ok_or_else(|| self.lacks(&format!("piece along dimension {d}")))?;
                name.push_str(&format!("{value:0width$}"));
                Ok(())
            };
            match hole {
                Hole::Origin(d) => along(d, true)?,
                Hole::Number(d) => along(d, false)?,
                Hole::Piece => name.push_str(&format!("{:0width$}", grid.place(numbers))),
                Hole::Version => name.push_str(&format!("{:0width$}", words.version)),
                Hole::Step => match words.step {
                    Some(step) => name.push_str(&format!("{step:0width$}")),
                    None => return Err(self.lacks("step")),
                },
                Hole::Job => name.push_str(self.word("job", words.job)?),
                Hole::Project => name.push_str(self.word("project", words.project)?),
                Hole::Run => name.push_str(self.word("run", words.run)?),
                Hole::Variable => name.push_str(self.word("variable", words.variable)?),
            }
        }
        Ok(name)
    }

    fn lacks(&self, what: &str) -> Error {
        Error::invalid(format!("the template {self} needs a {what}, but there is none"))
    }

    /// A text that cannot lead out of its folder.
    fn word<'a>(&self, what: &str, text: &'a str) -> Result<&'a str> {
        if text.is_empty() {
            return Err(self.lacks(what));
        }
        if text.contains('\0') || text.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(Error::invalid(format!("the {what} {text:?} cannot be part of a file name"))
                .with_hint(format!("leave {{{what}}} out of the template {self}")));
        }
        Ok(text)
    }
}

/// A hole and its width; else the error and its hint.
fn hole(text: &str, dims: &[String]) -> std::result::Result<(Hole, usize), (String, String)> {
    let (name, spec) = text.split_once(':').map_or((text, None), |(name, spec)| (name, Some(spec)));
    let plain = ["job", "project", "run", "variable", "version", "step", "piece"];
    let default = ["x", "y", "z"].map(str::to_owned);
    let dims = if dims.is_empty() { &default[..] } else { dims };
    let dimension = |name: &str| {
        let number = || name.parse::<usize>().ok().filter(|d| *d < crate::geometry::MAX_RANK);
        dims.iter().position(|dim| dim == name).or_else(number)
    };
    let hole = match name {
        "job" => Hole::Job,
        "project" => Hole::Project,
        "run" => Hole::Run,
        "variable" => Hole::Variable,
        "version" => Hole::Version,
        "step" => Hole::Step,
        "piece" => Hole::Piece,
        _ => match (name.strip_suffix(".n").and_then(dimension), dimension(name)) {
            (_, Some(d)) => Hole::Origin(d),
            (Some(d), None) => Hole::Number(d),
            (None, None) => {
                let known = plain.iter().copied().chain(dims.iter().map(String::as_str));
                let all =
                    || format!("use {}, {}, or the number of a dimension", plain.join(", "), dims.join(", "));
                let hint = nearest::did_you_mean(name, known).unwrap_or_else(all);
                return Err((format!("{{{name}}} is unknown"), hint));
            }
        },
    };
    let Some(spec) = spec else { return Ok((hole, 0)) };
    let digits = spec.strip_suffix('d').unwrap_or(spec);
    let width = digits.strip_prefix('0').unwrap_or("").parse::<usize>().ok();
    match width {
        Some(width) if !hole.is_text() && width <= WIDTH_MAX => Ok((hole, width)),
        None if !hole.is_text() && digits.is_empty() => Ok((hole, 0)),
        _ => {
            Err((format!("{spec:?} is not a width"), "only numbers have a width, such as {step:06d}".into()))
        }
    }
}
