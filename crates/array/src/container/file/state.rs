//! The two modes of an open container, and the transitions between them.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use fieldstone_core::env::Env;
use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};

use super::data::{DataMode, IndexShare};
use super::defined_header::DefinedHeader;
use super::handles::Handles;
use super::loaded_header::{dim_info, var_info};
use super::options::CreateOptions;
use super::relocate;
use super::staging::{self, Staging};
use crate::container::access::Records;
use crate::container::define::{Definitions, DimColumn, VarColumns};
use crate::container::enddef::{self, EnddefOptions, check_slots};
use crate::container::model::{DimInfo, Format, Strategy, VarInfo};

/// The mode of an open container.
#[derive(Debug)]
pub(super) enum State {
    /// Define mode.
    Define(Box<DefineMode>),
    /// Data mode.
    Data(Arc<DataMode>),
    /// Unusable, and the reason.
    Ended(&'static str),
}

impl State {
    /// Removes a file that was never finished.
    pub fn discard(&self) {
        match self {
            State::Define(define) => {
                if let Some((staging, _)) = &define.target {
                    staging.discard();
                }
                if let Some(old) = &define.old {
                    old.discard();
                }
            }
            State::Data(data) => data.discard(),
            State::Ended(_) => {}
        }
    }
}

/// The state of a container in define mode.
#[derive(Debug)]
pub(super) struct DefineMode {
    pub definitions: Definitions,
    options: CreateOptions,
    /// The file of a new container, or the one to which data move.
    target: Option<(Staging, TeamFile)>,
    /// The existing container, in a redefinition.
    old: Option<Arc<DataMode>>,
    pub vars: Handles,
    pub dims: Handles,
    /// Whether all ranks agreed on the definitions and `enddef` began to write: then there is no way back after an
    /// error.
    pub writing: bool,
}

impl DefineMode {
    /// Collective: define mode of a new container.
    pub fn create(team: &Team, env: &Env, path: &Path, options: &CreateOptions) -> Result<DefineMode> {
        let given = strategy_of(options).map(|strategy| options.named_options(strategy));
        let fourth = unfinished_mark(options.format);
        let target = Some(Staging::create(team, env, path, (given, fourth))?);
        Ok(DefineMode {
            definitions: Definitions::new(options.format),
            options: *options,
            target,
            old: None,
            vars: Handles::default(),
            dims: Handles::default(),
            writing: false,
        })
    }

    /// Collective: define mode of an existing container.
    ///
    /// Errors: `Denied` if it was opened for reading; `Invalid` with the partitioned header.
    pub fn of_existing(team: &Team, data: Arc<DataMode>) -> Result<DefineMode> {
        team.agree("redef", data.may_define())?;
        // From here on it counts as changed: the new definitions overwrite this file, or replace it.
        data.changing()?;
        let numrecs = data.agree_state(team, "redef")?.numrecs;
        // The ranks that will write the header again, or move the data, are not those that wrote them.
        data.file.visibility_barrier("redef", Ok(()))?;
        let header = team.agree("redef", data.metadata.header())?;
        let mut header = header.clone();
        header.numrecs = Some(numrecs);
        let (vars, dims) = data.handles();
        let definitions = Definitions::from_header(data.metadata.format(), header);
        let (options, old) = (data.options, Some(data));
        Ok(DefineMode { definitions, options, target: None, old, vars, dims, writing: false })
    }

    /// Closes the files after a step that failed with all ranks in it.
    pub fn give_up(&self) {
        if let Some((_, file)) = &self.target {
            file.give_up();
        }
        if let Some(old) = &self.old {
            old.file.give_up();
        }
    }

    /// Collective: changes to data mode.
    pub fn end(&mut self, team: &Team, env: &Env) -> Result<DataMode> {
        let old_header = self.old.as_ref().map(|old| old.metadata.header()).transpose();
        let old_header = team.agree("enddef", old_header)?;
        let numrecs = self.definitions.header().numrecs.unwrap_or(0);
        let options = EnddefOptions {
            strategy: strategy_of(&self.options)?,
            alignment: self.options.alignment,
            indexing: self.options.indexing,
            old: old_header,
            numrecs,
            clock: &*env.clock,
        };
        let planned = enddef::plan(team, &mut self.definitions, &options)?;
        self.writing = true;
        let in_place = self.old.as_ref().filter(|_| !planned.moves()).cloned();
        let (staging, file) = self.file_to_write(team, env, in_place.as_deref(), numrecs)?;
        if in_place.is_none() {
            self.target = Some((staging.clone(), file.clone()));
        }
        let defined = planned.write(&file, &mut self.definitions, &options)?;
        let first = self.definitions.base().vars as usize;
        let version = self.definitions.header().version;
        let records = match &defined.reader {
            Some(reader) => reader.records(),
            None => Arc::new(Records::new(numrecs, version)),
        };
        let format = self.options.format;
        let definitions = std::mem::replace(&mut self.definitions, Definitions::new(format));
        let header = Arc::new(DefinedHeader {
            version,
            file: file.clone(),
            layout: defined.layout,
            counts: defined.counts,
            records: records.clone(),
            definitions: Mutex::new(definitions),
            var_ids: defined.var_ids,
            dim_ids: defined.dim_ids,
            loaded: OnceLock::new(),
            reader: defined.reader,
        });
        let (lists, escaped) = (defined.lists, defined.escaped);
        let index = defined.index.map(|part| IndexShare { part, lists, escaped });
        let mut data = DataMode::new(file, staging, self.options, header.clone(), records, defined.layout);
        data.ever_finished =
            in_place.as_ref().is_some_and(|old| old.ever_finished.load(Ordering::Acquire)).into();
        data.index = index;
        data.report = defined.report;
        data.vars = std::mem::take(&mut self.vars);
        data.dims = std::mem::take(&mut self.dims);
        data.changed = Mutex::new(true);
        if let (Some(old), None) = (&self.old, in_place) {
            let headers = old.metadata.header().and_then(|from| Ok((from, data.metadata.header()?)));
            relocate::copy(&old.file, &data.file, headers, numrecs)?;
            old.file.close("move data", Ok(()))?;
            if team.rank() == 0 {
                old.discard_temporary();
            }
        }
        data.fill_new(&header, first)?;
        Ok(data)
    }

    /// Collective: the file to which the container is written, marked as unfinished; `in_place` is the existing file,
    /// with `numrecs` records.
    fn file_to_write(
        &self,
        team: &Team,
        env: &Env,
        in_place: Option<&DataMode>,
        numrecs: u64,
    ) -> Result<(Staging, TeamFile)> {
        let mark = unfinished_mark(self.options.format);
        match (&self.target, &self.old, in_place) {
            (Some((staging, file)), _, _) => Ok((staging.clone(), file.clone())),
            (None, Some(old), None) => {
                let path = old.staging().absolute().to_owned();
                // All ranks opened it with the same options.
                Staging::create(team, env, &path, (Ok(Vec::new()), mark))
            }
            (None, _, Some(old)) => {
                let root = team.rank() == 0;
                team.agree("enddef", if root { staging::mark(&old.file, mark) } else { Ok(()) })?;
                // New variables must not show a name index, or other bytes after the data.
                old.file.set_len("enddef", old.data_end(numrecs))?;
                old.finished.store(false, Ordering::Release);
                Ok((old.staging().clone(), old.file.clone()))
            }
            (None, None, None) => Err(Error::internal("define mode without a file to write to")),
        }
    }

    /// Defines many variables; their dimensions' numbers are those that callers hold.
    pub fn def_many(&mut self, columns: &VarColumns<'_>) -> Result<Range<u32>> {
        let ids: Vec<u32>;
        let mut columns = *columns;
        match columns.dims {
            _ if self.dims.is_same() => {}
            DimColumn::Ids(held, ends) => {
                ids = held.iter().map(|dim| self.dims.local(*dim)).collect();
                columns.dims = DimColumn::Ids(&ids, ends);
            }
            DimColumn::SameIds(held) => {
                ids = held.iter().map(|dim| self.dims.local(*dim)).collect();
                columns.dims = DimColumn::SameIds(&ids);
            }
            _ => {}
        }
        self.definitions.def_many(&columns)
    }

    /// A variable of this rank, as defined so far; it has no offset yet.
    pub fn var(&self, handle: u32) -> Result<VarInfo> {
        let (local, known) = (self.vars.local(handle), self.definitions.counts().vars);
        if u64::from(local) >= known {
            return Err(Code::VariableNotFound
                .error(format!("no variable number {handle}; {known} are defined on this rank")));
        }
        self.described(local as usize)
    }

    /// A variable by its local number, which is valid.
    pub fn described(&self, local: usize) -> Result<VarInfo> {
        let header = self.definitions.listed();
        let info = var_info(header, local, 0, header.numrecs.unwrap_or(0));
        Ok(VarInfo { attrs: self.definitions.attrs_of(local as u32)?, ..info })
    }

    /// As [`var`](DefineMode::var), by path.
    pub fn find_var(&mut self, path: &str) -> Result<Option<VarInfo>> {
        let local = self.definitions.find_var(path);
        local.map(|local| self.described(local as usize)).transpose()
    }

    /// A dimension of this rank, by path.
    pub fn find_dim(&mut self, path: &str) -> Option<DimInfo> {
        let local = self.definitions.find_dim(path)?;
        let header = self.definitions.listed();
        Some(dim_info(header, local as usize, header.numrecs.unwrap_or(0)))
    }
}

/// The strategy that the options select.
fn strategy_of(options: &CreateOptions) -> Result<Strategy> {
    match (options.format, options.strategy) {
        (Format::Classic(_), None) => Ok(Strategy::Scalable),
        (Format::Classic(_), Some(Strategy::Partitioned)) => Err(Code::ContainerFormat
            .error("strategy partitioned makes containers of format partitioned only")
            .with_hint("leave the strategy out, or give the format partitioned")),
        (Format::Classic(_), Some(strategy)) => check_slots(strategy).map(|()| strategy),
        (Format::Partitioned, None | Some(Strategy::Partitioned)) => Ok(Strategy::Partitioned),
        (Format::Partitioned, Some(_)) => Err(Code::ContainerFormat
            .error("a container of format partitioned has strategy partitioned only")
            .with_hint("leave the strategy out, or give the format cdf5")),
    }
}

/// The fourth byte of an unfinished file of this format.
fn unfinished_mark(format: Format) -> u8 {
    match format {
        Format::Classic(version) => version as u8,
        Format::Partitioned => b'P',
    }
}
