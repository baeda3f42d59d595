//! Gathers attributes that are given one at a time into few records.
//!
//! Single attributes of one run and tag become rows of one batch, each a call of its own
//! ([`AttributeBatch::singles`]). Their order matters only at the same place, and a place belongs to one tag,
//! so batches of several tags may grow side by side.

use fieldstone_format::catalog::{AttributeBatch, Boxes, Column, Record, Values, split_batch};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::participant::Growing;

/// Batches that grow side by side in one session.
const BATCHES: usize = 64;
/// Maximum number of rows of a batch.
const ROWS: usize = 8192;
/// Maximum number of variables of a batch.
const VARIABLES: usize = 64;

/// The growing batches of one session.
#[derive(Debug, Default)]
pub struct AttributeBatches {
    /// Attributes in them.
    rows: u64,
    /// The batches, in their order.
    batches: Vec<AttributeBatch>,
}

impl AttributeBatches {
    /// Adds one attribute; returns batches that grow no further.
    pub fn add(&mut self, single: AttributeBatch) -> Option<AttributeBatches> {
        self.rows += 1;
        let ended = grow(&mut self.batches, single);
        let rows = ended.iter().map(|batch| batch.rows as u64).sum();
        self.rows -= rows;
        (!ended.is_empty()).then_some(AttributeBatches { rows, batches: ended })
    }
}

impl Growing for AttributeBatches {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn into_records(self) -> Vec<SideRecord> {
        let parts = self.batches.into_iter().flat_map(split_batch);
        parts.map(|part| Record::Attributes(part).encode()).collect()
    }
}

/// Adds one attribute to batches that grow side by side; returns those that grow no further.
fn grow(growing: &mut Vec<AttributeBatch>, single: AttributeBatch) -> Vec<AttributeBatch> {
    // From the back: most attributes belong to the tag that came last.
    if let Some(at) = growing.iter().rposition(|batch| takes(batch, &single)) {
        push(&mut growing[at], single);
        return if growing[at].rows >= ROWS { vec![growing.remove(at)] } else { Vec::new() };
    }
    // A batch of the same run and tag that cannot take it ends here: later attributes must come after it.
    let same = |batch: &AttributeBatch| batch.tag == single.tag && batch.run == single.run;
    let mut ended: Vec<AttributeBatch> = growing.extract_if(.., |batch| same(batch)).collect();
    // Writing all of them needs no record of which were used last.
    if growing.len() >= BATCHES {
        ended.append(growing);
    }
    growing.push(begin(single));
    ended
}

/// Whether a batch has room for a single attribute.
fn takes(batch: &AttributeBatch, single: &AttributeBatch) -> bool {
    let rank = |batch: &AttributeBatch| {
        let cells_along = |boxes: &Boxes| boxes.cells.as_ref().map(|cells| cells.dim);
        batch.boxes.as_ref().map(|boxes| (boxes.rank, cells_along(boxes)))
    };
    let known = match single.variables.first() {
        Some(name) => batch.variables.len() < VARIABLES || batch.variables.contains(name),
        None => true,
    };
    batch.tag == single.tag
        && batch.run == single.run
        && batch.step.is_some() == single.step.is_some()
        && batch.variables.is_empty() == single.variables.is_empty()
        && rank(batch) == rank(single)
        && batch
            .keywords
            .iter()
            .map(|column| &column.keyword)
            .eq(single.keywords.iter().map(|one| &one.keyword))
        // A column has values of one type.
        && std::mem::discriminant(&batch.values) == std::mem::discriminant(&single.values)
        && known
}

/// The first row of a batch: every column has one value a row.
fn begin(mut single: AttributeBatch) -> AttributeBatch {
    if let Some(Column::One(step)) = single.step {
        single.step = Some(Column::Each(vec![step]));
    }
    single.variable = Column::Each(vec![0]);
    single.variables.truncate(1);
    single.one_value = false;
    single.continues = false;
    single.singles = true;
    single
}

/// Adds a row to a batch that [`takes`] it.
fn push(batch: &mut AttributeBatch, single: AttributeBatch) {
    let step = match single.step {
        Some(Column::One(step)) => Some(step),
        Some(Column::Each(steps)) => steps.first().copied(),
        None => None,
    };
    if let (Some(Column::Each(steps)), Some(step)) = (&mut batch.step, step) {
        steps.push(step);
    }
    let index = single.variables.into_iter().next().map_or(0, |name| {
        // From the back: most attributes belong to the variable that came last.
        batch.variables.iter().rposition(|known| *known == name).unwrap_or_else(|| {
            batch.variables.push(name);
            batch.variables.len() - 1
        })
    });
    if let Column::Each(indexes) = &mut batch.variable {
        indexes.push(index as u32);
    }
    if let (Some(boxes), Some(Boxes { start, count, cells, .. })) = (&mut batch.boxes, single.boxes) {
        boxes.start.extend(start);
        boxes.count.extend(count);
        if let (Some(all), Some(own)) = (&mut boxes.cells, cells) {
            all.sets.extend(own.sets);
        }
    }
    for (all, own) in batch.keywords.iter_mut().zip(single.keywords) {
        all.values.extend(own.values.into_iter().next());
    }
    match (&mut batch.values, single.values) {
        (Values::Bool(all), Values::Bool(one)) => all.extend(one),
        (Values::Int(all), Values::Int(one)) => all.extend(one),
        (Values::UInt(all), Values::UInt(one)) => all.extend(one),
        (Values::Float(all), Values::Float(one)) => all.extend(one),
        (Values::Text(all), Values::Text(one)) => all.extend(one),
        (Values::Any(all), Values::Any(one)) => all.extend(one),
        _ => {}
    }
    batch.rows += 1;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use fieldstone_core::value::ValueType;
    use fieldstone_format::catalog::{KeywordColumn, RunName, TagDecl, VariableName, check_batch};

    fn single(tag: &str, step: Option<i64>, variable: Option<&str>, value: f64) -> AttributeBatch {
        let tag = TagDecl { name: tag.into(), version: 0, kind: ValueType::Float, unit: String::new() };
        let name = |name: &str| VariableName { name: name.into(), version: 0 };
        AttributeBatch {
            keywords: Vec::new(),
            run: RunName { project: String::new(), name: "a".into() },
            tag,
            rows: 1,
            step: step.map(Column::One),
            variables: variable.map(name).into_iter().collect(),
            variable: Column::One(0),
            boxes: variable.map(|_| Boxes { rank: 1, start: vec![2], count: vec![3], cells: None }),
            values: Values::Float(vec![value]),
            one_value: true,
            continues: false,
            singles: false,
        }
    }

    #[test]
    fn singles_of_a_tag_become_one_batch() {
        let mut gather = AttributeBatches::default();
        for step in 0..3 {
            assert!(gather.add(single("x", Some(step), Some("t"), step as f64)).is_none());
            assert!(gather.add(single("y", Some(step), Some("u"), 0.5)).is_none());
        }
        assert!(gather.add(single("x", Some(9), Some("u"), 9.0)).is_none());
        let AttributeBatches { batches, rows } = std::mem::take(&mut gather);
        assert_eq!(rows, 7);
        assert_eq!(batches.len(), 2);
        let x = &batches[0];
        assert_eq!((x.rows, x.singles, x.one_value), (4, true, false));
        assert_eq!(x.step, Some(Column::Each(vec![0, 1, 2, 9])));
        assert_eq!(x.variable, Column::Each(vec![0, 0, 0, 1]));
        assert_eq!(x.boxes.as_ref().unwrap().start, [2; 4]);
        assert!(matches!(&x.values, Values::Float(v) if *v == [0.0, 1.0, 2.0, 9.0]));
    }

    #[test]
    fn members_of_an_ensemble_become_one_batch() {
        let mut gather = AttributeBatches::default();
        let member = |number: &str| AttributeBatch {
            keywords: vec![KeywordColumn { keyword: "number".into(), values: vec![number.into()] }],
            ..single("x", Some(1), Some("t"), 1.0)
        };
        for number in ["1", "2", "10"] {
            assert!(gather.add(member(number)).is_none());
        }
        assert!(gather.add(single("x", Some(1), Some("t"), 1.0)).is_some(), "without the keyword");
        let batch = &std::mem::take(&mut gather).batches[0];
        assert_eq!(batch.rows, 1);
        gather.add(member("1"));
        gather.add(member("2"));
        let batch = &std::mem::take(&mut gather).batches[0];
        check_batch(batch).unwrap();
        let of_row = |row: usize| batch.keywords_of(row).map(|(_, v)| v.to_string()).collect::<Vec<_>>();
        assert_eq!((of_row(0), of_row(1)), (vec!["1".to_owned()], vec!["2".to_owned()]));
    }

    #[test]
    fn another_form_of_the_same_tag_ends_the_batch_before() {
        let mut gather = AttributeBatches::default();
        gather.add(single("x", Some(1), None, 1.0));
        let ended = gather.add(single("x", None, None, 2.0)).unwrap();
        assert_eq!((ended.batches.len(), ended.rows), (1, 1), "records of one tag keep their order");
        assert_eq!(gather.batches.len(), 1);
    }
}
