//! Feature finders: searches in each piece of a variable while it is written (Q-19).
//!
//! A variable may be declared with finders. `run.write` then calls [`find`] on each piece, in the caller's memory, and
//! archives the features as attributes in the same commit as the field:
//!
//! | finder | attribute, on the variable at the step |
//! |---|---|
//! | `min`, `max`, `mean` | tag of that name; the box is the piece, the value the number |
//! | a test such as above 9000 | tag `above_9000`, or the name given; a box around each region of neighbouring elements that pass, its value the most extreme of them |
//!
//! Invariants: [`find`] depends on its arguments alone; NaN and "not a time" are never inside a region and do not count
//! in any number; elements that share a face are neighbours; regions end at the piece's edges; at most
//! [`Finder::limit`] regions per piece, the largest first; an attribute with the tag's name plus `.more` has the number
//! of omitted ones.
//!
//! ```
//! use fieldstone::finders::{Finder, find};
//! use fieldstone::DType;
//! use fieldstone::catalog::value::{Test, Value};
//! let data: Vec<u8> = [1.0_f64, 9.0, 8.0, 2.0, 7.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
//! let above = Finder::region(Test::Above(Value::Int(5)))?;
//! let found = find(&data, DType::F8, &[100], &[5], &[Finder::Max, above])?;
//! assert_eq!((found[0].tag.as_str(), found[0].value, found[0].count.as_slice()), ("max", 9.0, &[5][..]));
//! assert_eq!((found[1].tag.as_str(), found[1].start[0], found[1].count[0]), ("above_5", 101, 2));
//! assert_eq!((found[2].value, found[2].start[0]), (7.0, 104));
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod annotate;
mod bounds;
mod declare;
mod elements;
mod regions;

use fieldstone_core::dtype::{DType, DTypeKind};
use fieldstone_core::geometry::{byte_count, summarize};
use fieldstone_core::value::Test;
use fieldstone_core::value::ValueType;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{AttributeBatch, Boxes, Column, RunName, TagDecl, Values, VariableName};

pub use annotate::{Piece, annotate};
use bounds::Bounds;

/// Maximum number of regions kept per piece, unless a finder sets its own.
pub const LIMIT: u32 = 100;

/// A feature to search.
#[derive(Debug, Clone)]
pub enum Finder {
    /// The least number.
    Min,
    /// The greatest.
    Max,
    /// The mean.
    Mean,
    /// Regions of neighbouring elements that pass a test.
    Region {
        /// Above, at least, below, at most, between or equal, with numbers.
        test: Test,
        /// Tag of the features.
        tag: String,
        /// Maximum number of regions per piece.
        limit: u32,
    },
}

/// A feature of a piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// Its tag.
    pub tag: String,
    /// Its value.
    pub value: f64,
    /// The start of its box, in the variable's global indices.
    pub start: Vec<u64>,
    /// Extents of the box.
    pub count: Vec<u64>,
}

/// Refuses element types without an order among numbers.
pub fn check_dtype(dtype: DType) -> Result<()> {
    use DTypeKind::{Bool, DateTime, Float, Int, TimeDelta, UInt};
    match dtype.kind() {
        Bool | Int | UInt | Float => Ok(()),
        DateTime | TimeDelta | DTypeKind::Complex | DTypeKind::Bytes | DTypeKind::Unicode => Err(Code::Dtype
            .error(format!("finders cannot work on elements of {}", dtype.name()))
            .with_hint("finders work on bools, integers and floats")),
    }
}

/// Finds features of a piece: `data` holds its elements in C order, `start` and `count` give its box. Features come in
/// the order of the finders, regions from the largest to the smallest.
pub fn find(
    data: &[u8],
    dtype: DType,
    start: &[u64],
    count: &[u64],
    finders: &[Finder],
) -> Result<Vec<Feature>> {
    check_dtype(dtype)?;
    if start.len() != count.len() || byte_count(count, dtype.size())? != data.len() {
        return Err(Code::BufferSize.error(format!(
            "a piece has {} bytes, with start {start:?} and count {count:?} of {dtype}",
            data.len()
        )));
    }
    let mut found = Vec::new();
    if data.is_empty() || finders.is_empty() {
        return Ok(found);
    }
    let summary = summarize(dtype, data, None).ok_or_else(|| Error::internal("elements have no order"))?;
    let of_piece = |tag: &str, value: f64| Feature {
        tag: tag.to_owned(),
        value,
        start: start.to_vec(),
        count: count.to_vec(),
    };
    for finder in finders {
        match finder {
            Finder::Min => found.extend(summary.min.map(|least| of_piece("min", least.as_f64()))),
            Finder::Max => found.extend(summary.max.map(|most| of_piece("max", most.as_f64()))),
            Finder::Mean => {
                let mean = elements::mean(dtype, data);
                found.extend(mean.filter(|mean| !mean.is_nan()).map(|mean| of_piece("mean", mean)));
            }
            Finder::Region { test, tag, limit } => {
                let bounds = Bounds::of(test)?;
                // The summary excludes most pieces at a fraction of the cost.
                let (Some(least), Some(most)) = (summary.min, summary.max) else { continue };
                if !bounds.may_hold(least, most) {
                    continue;
                }
                let mut regions = elements::regions(dtype, data, count, &bounds);
                regions.sort_by(|a, b| b.elements.cmp(&a.elements).then_with(|| a.first.cmp(&b.first)));
                let more = regions.len().saturating_sub(*limit as usize);
                regions.truncate(*limit as usize);
                found.extend(regions.into_iter().map(|region| Feature {
                    tag: tag.clone(),
                    value: if bounds.wants_least() { region.least } else { region.most },
                    start: region.first.iter().zip(start).map(|(first, start)| first + start).collect(),
                    count: region.end.iter().zip(&region.first).map(|(end, first)| end - first).collect(),
                }));
                if more > 0 {
                    found.push(of_piece(&format!("{tag}.more"), more as f64));
                }
            }
        }
    }
    Ok(found)
}

/// The declaration of a finder's tag: floats, in the unit of the variable.
pub fn tag(name: &str) -> TagDecl {
    TagDecl { name: name.to_owned(), version: 0, kind: ValueType::Float, unit: String::new() }
}

/// The features of a variable's piece, as attributes: one batch per tag.
pub fn annotations(
    run: &RunName,
    variable: &VariableName,
    step: Option<i64>,
    found: &[Feature],
) -> Vec<AttributeBatch> {
    let mut batches: Vec<AttributeBatch> = Vec::new();
    for feature in found {
        let rank = feature.start.len();
        let at = batches.iter().position(|batch| batch.tag.name == feature.tag).unwrap_or_else(|| {
            batches.push(AttributeBatch {
                keywords: Vec::new(),
                run: run.clone(),
                tag: tag(&feature.tag),
                rows: 0,
                step: step.map(Column::One),
                variables: vec![variable.clone()],
                variable: Column::One(0),
                boxes: (rank > 0).then(|| Boxes { rank, start: Vec::new(), count: Vec::new(), cells: None }),
                values: Values::Float(Vec::new()),
                one_value: false,
                continues: false,
                singles: false,
            });
            batches.len() - 1
        });
        let batch = &mut batches[at];
        batch.rows += 1;
        if let Values::Float(values) = &mut batch.values {
            values.push(feature.value);
        }
        if let Some(boxes) = &mut batch.boxes {
            // Lengths of arrays in memory fit into 63 bits.
            boxes.start.extend(feature.start.iter().map(|&i| i64::try_from(i).unwrap_or(i64::MAX)));
            boxes.count.extend(feature.count.iter().map(|&i| i64::try_from(i).unwrap_or(i64::MAX)));
        }
    }
    batches
}
