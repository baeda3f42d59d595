//! Arrays of a transfer that are in files of the source: they go to files of the target, at the level of their group.
//!
//! An array goes to a file if its group is declared with the same type and shape, and the target can have files. Every other
//! one goes to the target's logs, where jobs read it as well.

use std::collections::BTreeMap;

use fieldstone_core::Result;
use fieldstone_core::key::FieldKey;
use fieldstone_core::schema::Schema;
use fieldstone_format::catalog::{ArrayGroup, ArrayLayout, RunName};
use fieldstone_store::Field;
use fieldstone_store::api::{ArchiveOptions, FieldAccess};

use super::content::{Archived, Content};
use super::declared::DeclaredRun;
use super::places::further_of;
use crate::Store;
use crate::arrays::{CarriedFiles, CarriedPlace};

/// A place, by numbers: of the run, of its group, the step, and the set.
pub type PlaceNumber = (usize, usize, i64, usize);

/// The groups of a transfer, and the files of their arrays in the target.
pub struct Arrays {
    schema: Schema,
    runs: Vec<(RunName, Vec<ArrayGroup>)>,
    numbers: BTreeMap<RunName, usize>,
    files: Option<CarriedFiles>,
    /// Names of groups of which arrays went from files to logs, with the number of these arrays.
    logged: BTreeMap<String, usize>,
}

impl Arrays {
    /// The arrays of runs that are declared in the target, too.
    pub fn of(from: &Store, to: &Store, declared: Option<&[DeclaredRun]>) -> Result<Arrays> {
        let in_files = |of: &&DeclaredRun| of.groups.iter().any(|group| group.layout == ArrayLayout::Files);
        let runs = declared.unwrap_or_default().iter().filter(in_files);
        let runs: Vec<_> = runs.map(|of| (of.run.clone(), of.groups.clone())).collect();
        let numbers = runs.iter().enumerate().map(|(number, (run, _))| (run.clone(), number)).collect();
        let files = if runs.is_empty() { None } else { CarriedFiles::of(to)? };
        Ok(Arrays { schema: from.schema(), runs, numbers, files, logged: BTreeMap::new() })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The place at which a job would have written the field of a key.
    pub fn place_of(&self, key: &FieldKey) -> Option<PlaceNumber> {
        let (project, name) = self.schema.run_of(key)?;
        let run = RunName { project, name };
        let number = *self.numbers.get(&run)?;
        let (variable, step) = (self.schema.variable_of(key)?, self.schema.step_of(key)?);
        if !further_of(&self.schema, &run, key).is_empty() {
            return None;
        }
        let set_of = |group: &ArrayGroup| group.sets.iter().position(|set| set.variable.name == variable);
        let mut groups = self.runs[number].1.iter().enumerate();
        groups.find_map(|(group, of)| Some((number, group, step, set_of(of)?)))
    }

    /// Contents of the field at a place, newest first; the newest as an array for a file, if it can be one.
    pub fn contents(
        &mut self,
        field: Field,
        place: Option<PlaceNumber>,
        versions: bool,
    ) -> Result<Vec<Content>> {
        let Some((run, group, _, set)) = place else { return Content::with_older(field, versions, false) };
        let group = &self.runs[run].1[group];
        let contents = Content::with_older(field.clone(), versions, self.files.is_some())?;
        let in_file = contents[0].array_in_file();
        if in_file.is_some_and(|(dtype, shape)| CarriedFiles::fits(group, set, dtype, shape)) {
            return Ok(contents);
        }
        if group.layout == ArrayLayout::Files && field.stored_array()?.is_some() {
            *self.logged.entry(group.name.clone()).or_default() += 1;
        }
        match in_file {
            None => Ok(contents),
            Some(_) => Content::with_older(field, versions, false),
        }
    }

    /// Writes the array at a place into a file of the target.
    pub fn archive(
        &mut self,
        (run, group, step, set): PlaceNumber,
        content: &Content,
        key: &[(&str, &str)],
        lift: Option<u64>,
        options: &ArchiveOptions,
    ) -> Result<Option<Archived>> {
        let (Some(files), Some(array)) = (&mut self.files, content.carried_array(key, lift, options)) else {
            return Ok(None);
        };
        let (run, groups) = &self.runs[run];
        let place = CarriedPlace { run, group: &groups[group], set, step };
        let mut damage = None;
        let written = files.write(place, array, |take| match content.read_parts(take)? {
            Ok(sum) => Ok(sum),
            Err(error) => Err(damage.insert(error).replicate()),
        });
        match (written, damage) {
            // Nothing of it stays in the file.
            (Err(_), Some(error)) => Ok(Some(Archived::Unreadable(error))),
            (written, _) => Ok(Some(Archived::Whole(written?))),
        }
    }

    /// Gives the written arrays to the target.
    pub fn finish(&mut self) -> Result<()> {
        self.files.as_mut().map_or(Ok(()), CarriedFiles::finish)
    }

    /// Groups of which arrays went to logs, with their number.
    pub fn logged(&self) -> (usize, Vec<String>) {
        (self.logged.values().sum(), self.logged.keys().cloned().collect())
    }

    /// Ends the files, whose transaction was decided; else removes them.
    pub fn end(self, decided: bool) {
        match self.files {
            Some(files) if decided => files.show(),
            Some(files) => files.discard(),
            None => {}
        }
    }
}
