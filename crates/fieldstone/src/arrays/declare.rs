//! Groups of a job: declared by all ranks alike, or taken as the catalog has them.

use std::sync::Arc;

use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::group::{Group, GroupSettings, agreement};
use fieldstone_array::distributed::plan::Method;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::{ArrayGroup as GroupRecord, ArrayLayout, Record};

use super::inner::JobOptions;
use super::inner::{JobInner, JobState, OpenGroup, group_folder};
use super::level;
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
        let on_mesh = options?.map(|options| self.on_mesh(options)).transpose()?;
        let options = on_mesh.as_ref();
        if let Some(known) = state.groups.iter().position(|open| open.record.name == name) {
            let same =
                options.map_or(Ok(()), |options| {
                    let record = &state.groups[known].record;
                    let again = self.settle(name, options, Some(record), None)?;
                    record.clone().merge(&again).map_err(|what| otherwise(name, &what)).and_then(|()| {
                        match again.sets.len() <= record.sets.len() {
                            true => Ok(()),
                            false => Err(Code::VariableDiffers
                                .error(format!("group {name} is open, and is declared with further sets"))
                                .with_hint("declare all sets at once, or another group")),
                        }
                    })
                });
            return self.team.agree("group", same).map(|()| known);
        }
        // As the catalog has it: rank 0 looks, and says so to the others.
        let found = match self.team.rank() {
            0 => self.declared(name).map(|record| record.map_or_else(Vec::new, |record| self.encode(record))),
            _ => Ok(Vec::new()),
        };
        let found = self.team.broadcast("group", 0, found)?;
        let found = if found.is_empty() { None } else { Some(self.decode(found)?) };
        let mut why = String::new();
        let record = match (options, found) {
            (None, None) => {
                let error = match self.team.rank() {
                    0 => self.catalog_run().array_group(name).map(drop),
                    _ => Ok(()),
                };
                self.team.agree("group", error)?;
                return Err(Code::VariableNotFound.error(format!("the run has no group '{name}'")));
            }
            (None, Some(record)) => record,
            (Some(options), found) => {
                let in_files = self.options.layout == ArrayLayout::Files;
                let reachable = self.writable().and_then(|()| match in_files {
                    true => self.make_store().and_then(|()| self.check_format()),
                    false => Ok(()),
                });
                self.team.agree("group", reachable)?;
                let mut chosen = None;
                if in_files && options.level == LevelChoice::Auto && found.is_none() {
                    let draft = self.settle(name, options, None, None)?;
                    // One set has one file in any case: nothing is to be measured.
                    let open = match (draft.sets.len(), state.open_cost) {
                        (0 | 1, _) => 0.0,
                        (_, Some(known)) => known,
                        (_, None) => level::cost_of_an_open(&self.team, self.env(), &self.folder()?.0)?,
                    };
                    state.open_cost = state.open_cost.or(Some(open).filter(|open| *open > 0.0));
                    let choice = level::choose(&draft, open);
                    (chosen, why) = (Some(choice.level.number() as u8), choice.why);
                }
                // The same on all ranks: they have agreed on the options, and have what rank 0 found.
                let record = self.settle(name, options, found.as_ref(), chosen)?;
                match found {
                    Some(mut found) => {
                        found.merge(&record).map_err(|what| otherwise(name, &what)).map(|()| found)
                    }
                    None => Ok(record),
                }?
            }
        };
        let declared = match (self.team.rank(), options) {
            (0, Some(_)) => self.declare_variables(&record),
            _ => Ok(()),
        };
        if why.is_empty() {
            why = match record.layout {
                ArrayLayout::Files => format!("level {}: as it was declared", record.level),
                ArrayLayout::Fields => "arrays lie in the store's logs".to_owned(),
            };
        }
        let hints = options.map(|options| options.hints.clone()).unwrap_or_default();
        let group = spec::files_of(&record).and_then(|files| {
            let folder =
                self.folder.as_ref().map(|(folder, _)| folder.join(group_folder(state.groups.len())));
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
        let (declared, method) = (false, String::new());
        state.groups.push(OpenGroup { record, group, declared, level: why, method, hints });
        Ok(state.groups.len() - 1)
    }

    /// What a declaration comes to where the group is known, or a level was chosen: what it leaves open is as it was.
    fn settle(
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
            for set in &mut record.sets {
                let known = found.sets.iter().find(|known| known.variable == set.variable);
                if let Some(known) = known {
                    (set.pattern, set.view) = (known.pattern, known.view.clone());
                }
            }
        }
        Ok(record)
    }

    /// On rank 0: a group as the catalog has it.
    pub fn declared(&self, name: &str) -> Result<Option<GroupRecord>> {
        match self.catalog_run().array_group(name) {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A group on its way to other ranks: as the side record that keeps it.
    fn encode(&self, record: GroupRecord) -> Vec<u8> {
        Record::Groups(self.run.clone(), vec![record]).encode().bytes.to_vec()
    }

    fn decode(&self, bytes: Vec<u8>) -> Result<GroupRecord> {
        let kind = Record::Groups(self.run.clone(), Vec::new()).encode().kind;
        match Record::decode(&fieldstone_format::log::SideRecord { kind, bytes: bytes.into() })? {
            Record::Groups(_, groups) => groups.into_iter().next(),
            _ => None,
        }
        .ok_or_else(|| Error::internal("a group came from rank 0 as something else"))
    }
}

fn otherwise(name: &str, what: &str) -> Error {
    Code::VariableDiffers
        .error(format!("group '{name}' was declared with another {what}"))
        .with_hint("take it as it was declared, with job.group(name), or declare a group of another name")
}
