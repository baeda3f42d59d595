//! Groups of a job: all ranks declare them alike, or take them from the catalog.

use std::sync::Arc;

use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::files::sets::check_together;
use fieldstone_array::distributed::group::{Group, GroupSettings, agreement};
use fieldstone_array::distributed::plan::Method;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::{
    ArrayGroup as GroupRecord, ArrayLayout, ArraySet, Record, RunName, merge_group,
};
use fieldstone_format::log::SideRecord;

use super::inner::JobOptions;
use super::inner::{JobInner, JobState, OpenGroup};
use super::level;
use super::marked;
use super::meshes::on_mesh;
use super::spec::{self, GroupOptions, LevelChoice};

impl JobInner {
    pub fn settings(&self, record: &GroupRecord, hints: Hints) -> Result<GroupSettings> {
        let JobOptions { writers, readers, buffer, .. } = self.options;
        let method = Method::parse(&record.method)?;
        Ok(GroupSettings { method, buffer, writers, readers, hints, memory: self.memory.clone() })
    }

    pub fn open_group(
        self: &Arc<Self>,
        state: &mut JobState,
        name: &str,
        options: Result<Option<&GroupOptions>>,
    ) -> Result<usize> {
        let said = match &options {
            Ok(Some(options)) => options.lines(name),
            _ => format!("takes group {name}"),
        };
        agreement::same_call(
            &self.team,
            "group",
            &said,
            options.as_ref().map(|_| 0).map_err(Error::replicate),
        )?;
        let on_mesh = options?.map(|options| on_mesh(self, options)).transpose()?;
        let options = on_mesh.as_ref();
        if let Some(known) = state.groups.iter().position(|open| open.record.name == name) {
            let further = options.map_or(Ok(Vec::new()), |options| {
                self.further_sets(name, &state.groups[known].record, options)
            });
            let further = self.team.agree("group", further)?;
            return match further.is_empty() {
                true => Ok(known),
                false => self.add_sets(state, known, further).map(|()| known),
            };
        }
        let (found, marked) = self.found(name, options)?;
        let (record, mut why) = self.record_of(state, name, (options, found))?;
        let declared = match (self.team.rank(), options) {
            (0, Some(_)) => self.declare_variables(&record),
            _ => Ok(()),
        };
        if why.is_empty() {
            why = match record.layout {
                ArrayLayout::Files => format!("level {}: as it was declared", record.level),
                ArrayLayout::Fields => "arrays are in the store's logs".to_owned(),
            };
        }
        let hints = options.map_or_else(|| marked.clone(), |options| marked.with(&options.hints));
        let group = spec::files_of(&record).and_then(|files| {
            let number = state.groups.len();
            let folder = self.folder.as_ref().map(|folder| folder.root.join(folder.of_group(number)));
            let disk = self.env().disk.clone();
            Group::new(
                self.team.clone(),
                disk,
                &folder.unwrap_or_default(),
                files,
                self.settings(&record, hints.clone())?,
            )
        });
        let group = self.team.agree("group", declared.and(group))?;
        // If the caller gives no options, the catalog has the group.
        let (declared, method) = (options.is_none(), String::new());
        state.groups.push(OpenGroup { record, group, declared, level: why, method, hints });
        Ok(state.groups.len() - 1)
    }

    /// Collective: the catalog's group, and the hints that the catalog has for its files. Rank 0 reads them and sends them to the
    /// others.
    fn found(&self, name: &str, options: Option<&GroupOptions>) -> Result<(Option<GroupRecord>, Hints)> {
        let look = || {
            let record = self.declared(name)?;
            let asked = options.into_iter().flat_map(|options| &options.sets).map(|set| set.name.clone());
            let known = record.iter().flat_map(|record| &record.sets).map(|set| set.variable.name.clone());
            let sets: Vec<String> = asked.chain(known).collect();
            let hints = match self.writable && self.options.layout == ArrayLayout::Files {
                true => marked::hints_of(&self.store, &self.run, &sets, &self.options.session)?,
                false => Hints::default(),
            };
            let lines = marked::lines(&hints);
            let record =
                record.map_or_else(Vec::new, |record| encode(&self.run, vec![record]).bytes.to_vec());
            Ok([&(lines.len() as u64).to_le_bytes()[..], lines.as_bytes(), &record].concat())
        };
        let said = if self.team.rank() == 0 { look() } else { Ok(Vec::new()) };
        let said = self.team.broadcast("group", 0, said)?;
        let wrong = || Error::internal("a group came from rank 0 as something else");
        let (len, rest) = said.split_first_chunk().ok_or_else(wrong)?;
        let len = usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let (lines, record) = rest.split_at_checked(len).ok_or_else(wrong)?;
        let record = if record.is_empty() { None } else { Some(decode(&self.run, record.to_vec())?) };
        Ok((record, marked::of_lines(&String::from_utf8_lossy(lines))))
    }

    /// Collective: the group as it is declared now, the group of the catalog, and the reason for a level that was
    /// chosen.
    fn record_of(
        &self,
        state: &mut JobState,
        name: &str,
        (options, found): (Option<&GroupOptions>, Option<GroupRecord>),
    ) -> Result<(GroupRecord, String)> {
        let (options, found) = match (options, found) {
            (None, None) => {
                let error = match self.team.rank() {
                    0 => self.catalog_run().array_group(name).map(drop),
                    _ => Ok(()),
                };
                self.team.agree("group", error)?;
                return Err(Code::VariableNotFound.error(format!("the run has no group '{name}'")));
            }
            (None, Some(record)) => return Ok((record, String::new())),
            (Some(options), found) => (options, found),
        };
        let in_files = self.options.layout == ArrayLayout::Files;
        let reachable = self.writable().and_then(|()| match in_files {
            true => self.make_store().and_then(|()| self.check_format()).and_then(|()| self.trusted_folder()),
            false => Ok(()),
        });
        self.team.agree("group", reachable)?;
        let (mut chosen, mut why) = (None, String::new());
        if in_files && options.level == LevelChoice::Auto && found.is_none() {
            let draft = self.resolve(name, options, None, None)?;
            // One set has one file in any case: there is nothing to measure.
            let open = match (draft.sets.len(), state.open_cost) {
                (0 | 1, _) => 0.0,
                (_, Some(known)) => known,
                (_, None) => {
                    let folder = self.folder()?;
                    level::cost_of_an_open(&self.team, self.env(), (&folder.root, &folder.path()))?
                }
            };
            state.open_cost = state.open_cost.or(Some(open).filter(|open| *open > 0.0));
            let choice = level::choose(&draft, open);
            (chosen, why) = (Some(choice.level.number() as u8), choice.why);
        }
        // All ranks reach the same result: they agreed on the options, and have what rank 0 found.
        let record = self.resolve(name, options, found.as_ref(), chosen)?;
        let Some(mut found) = found else { return Ok((record, why)) };
        merge_group(&mut found, &record).map_err(|what| otherwise(name, &what))?;
        Ok((found, why))
    }

    /// Checks that this job's files have a folder that no other user could remove; rank 0 looks.
    pub fn trusted_folder(&self) -> Result<()> {
        let folder = self.folder()?;
        match self.team.rank() {
            0 => folder.check_owners(self.env()),
            _ => Ok(()),
        }
    }

    /// The sets of a declaration that a group lacks.
    ///
    /// Errors: `Conflict` if the declaration contradicts the group.
    fn further_sets(
        &self,
        name: &str,
        record: &GroupRecord,
        options: &GroupOptions,
    ) -> Result<Vec<ArraySet>> {
        let mut merged = record.clone();
        let again = self.resolve(name, options, Some(record), None)?;
        merge_group(&mut merged, &again).map_err(|what| otherwise(name, &what))?;
        Ok(merged.sets.split_off(record.sets.len()))
    }

    /// Collective: adds sets to an open group; its next flush declares them.
    fn add_sets(&self, state: &mut JobState, known: usize, further: Vec<ArraySet>) -> Result<()> {
        let open = &mut state.groups[known];
        let mut record = open.record.clone();
        record.sets.extend(further);
        let decls = self.writable().and_then(|()| {
            let spec = spec::files_of(&record)?;
            match record.layout {
                ArrayLayout::Files => check_together(&spec.sets).map(|()| spec.sets),
                ArrayLayout::Fields => Ok(spec.sets),
            }
        });
        let declared = decls.and_then(|mut decls| match self.team.rank() {
            0 => self.declare_variables(&record).map(|()| decls.split_off(open.record.sets.len())),
            _ => Ok(decls.split_off(open.record.sets.len())),
        });
        let decls = self.team.agree("group", declared)?;
        open.group.add_sets(decls)?;
        (open.record, open.declared) = (record, false);
        Ok(())
    }

    /// Completes a declaration: settings that it leaves open come from the known group, or from the level that was
    /// chosen.
    fn resolve(
        &self,
        name: &str,
        options: &GroupOptions,
        found: Option<&GroupRecord>,
        chosen: Option<u8>,
    ) -> Result<GroupRecord> {
        let level = match options.level {
            LevelChoice::Is(level) => level,
            LevelChoice::Auto => Level::Three,
        };
        let mut record = options.record(name, level, self.options.layout)?;
        if options.level == LevelChoice::Auto {
            record.level = chosen.or(found.map(|found| found.level)).unwrap_or(record.level);
        }
        if let Some(found) = found {
            if record.method == "auto" {
                record.method = found.method.clone();
            }
            if record.attrs.is_empty() {
                record.attrs = found.attrs.clone();
            }
        }
        for set in &mut record.sets {
            let mut known = found.iter().flat_map(|found| &found.sets);
            match known.find(|known| known.variable == set.variable) {
                Some(known) => {
                    (set.pattern, set.view) = (known.pattern, known.view.clone());
                    spec::take_attrs(set, &record.attrs, known);
                }
                None => set.attrs = spec::shared_attrs(&record.attrs, &set.attrs),
            }
        }
        Ok(record)
    }

    /// On rank 0: the catalog's group of this name.
    pub fn declared(&self, name: &str) -> Result<Option<GroupRecord>> {
        match self.catalog_run().array_group(name) {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Encodes a group for other ranks, as the side record that keeps it.
fn encode(run: &RunName, records: Vec<GroupRecord>) -> SideRecord {
    Record::Groups(run.clone(), records).encode()
}

fn decode(run: &RunName, bytes: Vec<u8>) -> Result<GroupRecord> {
    let SideRecord { kind, .. } = encode(run, Vec::new());
    match Record::decode(&SideRecord { kind, bytes: bytes.into() })? {
        Record::Groups(_, groups) => groups.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| Error::internal("a group came from rank 0 as something else"))
}

fn otherwise(name: &str, what: &str) -> Error {
    Code::VariableDiffers
        .error(format!("group '{name}' was declared with another {what}"))
        .with_hint("use it as declared, with job.group(name), or declare a group with another name")
}
