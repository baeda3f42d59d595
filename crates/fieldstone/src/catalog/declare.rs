//! Declarations: runs, variables, steps and tags, each checked against what is known.
//!
//! Equal to what is there: nothing is written. Otherwise than what is there: Conflict that names both.
//! Writers that do not see each other may contradict all the same; then the older one holds, and
//! [`Catalog::conflicts`](super::Catalog::conflicts) tells of the other.

use std::collections::{BTreeMap, HashMap};

use fieldstone_catalog::engine::{RunRow, RunSelect, Tables, TagRow, VariableRow};
use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    Annotate, Coordinate, Record, RunDecl, RunName, StepDecl, TagDecl, VariableDecl, VariableName,
};

use super::engine::View;
use super::inner::Inner;
use super::known::Look;
use super::{RunInfo, TagInfo, VariableInfo};

/// Names that an error suggests are sought among so many.
const SUGGESTED: usize = 10_000;

/// A run as an error shows it.
pub fn run_text(run: &RunName) -> String {
    match run.project.as_str() {
        "" => format!("'{}'", run.name),
        project => format!("'{}' of project '{project}'", run.name),
    }
}

/// A variable as an error shows it.
pub fn variable_text(variable: &VariableName) -> String {
    match variable.version {
        0 => format!("'{}'", variable.name),
        version => format!("'{}' version {version}", variable.name),
    }
}

/// The row of a run.
pub fn run_row(tables: &mut dyn Tables, run: &RunName) -> Result<Option<RunRow>> {
    let rows = tables.runs(&RunSelect::Named(run.name.clone()))?;
    Ok(rows.into_iter().find(|row| row.decl.run == *run))
}

fn variable_info(run: &RunName, row: VariableRow) -> VariableInfo {
    VariableInfo { run: run.clone(), decl: row.decl, declared: row.declared }
}

fn tag_info(row: TagRow) -> TagInfo {
    TagInfo { decl: row.decl, version: row.version }
}

impl Inner {
    /// Asks the engine as it stands, which costs no wait; then, where it does not know, after it has
    /// followed the logs.
    fn search<T>(
        &self,
        session: Option<Id>,
        mut find: impl FnMut(&mut dyn Tables) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let uncertain = self.known().deleted(session) || session.is_some();
        if !uncertain && let Some(found) = self.look(View::AsIs, &mut |index| find(index))? {
            return Ok(Some(found));
        }
        let view = if uncertain { View::All(session) } else { View::Synced };
        self.look(view, &mut |index| find(index))
    }

    /// The run, where there is one.
    pub fn find_run(&self, session: Option<Id>, run: &RunName) -> Result<Option<RunInfo>> {
        let known = self.known().run(session, run);
        if let Look::Here(info) = known {
            return Ok(Some(info));
        }
        let found = self.search(session, |tables| Ok(run_row(tables, run)?.map(RunInfo::of)));
        let found = believe(found, known)?;
        if let Some(info) = &found {
            self.known().keep_run(session, info.clone(), false);
        }
        Ok(found)
    }

    /// Refuses a run that is not there, naming those that are like it; else who may annotate it.
    pub fn need_run(&self, session: Option<Id>, run: &RunName) -> Result<Annotate> {
        let known = self.known().has_run(session, run);
        if let Look::Here(annotate) = known {
            return Ok(annotate);
        }
        match self.find_run(session, run)? {
            Some(info) => Ok(info.decl.annotate),
            None => Err(self.no_run(session, &run.name, &run_text(run))),
        }
    }

    /// The error for a run that is not there.
    pub fn no_run(&self, session: Option<Id>, name: &str, shown: &str) -> Error {
        let error = Code::RunNotFound.error(format!("there is no run {shown}"));
        let mut names: Vec<String> = Vec::new();
        let listed = self.look(View::All(session), &mut |tables| {
            names.clear();
            tables.run_names(&mut |_, run| {
                names.push(run.name.clone());
                Ok(match names.len() < SUGGESTED {
                    true => fieldstone_catalog::engine::Flow::More,
                    false => fieldstone_catalog::engine::Flow::Stop,
                })
            })
        });
        drop(listed);
        match did_you_mean(name, names.iter().map(String::as_str)) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("make it with create_run"),
        }
    }

    /// Declares a run.
    pub fn create_run(&self, mut run: RunDecl, exist_ok: bool, session: Option<Id>) -> Result<()> {
        self.store.journal().check_writable()?;
        if run.created == 0 {
            run.created = self.env.clock.now();
        }
        Record::Runs(vec![run.clone()]).check()?;
        let _declaring = self.declaring();
        if let Some(known) = self.find_run(session, &run.run)?.filter(|known| known.declared) {
            let text = run_text(&run.run);
            if !exist_ok {
                return Err(Code::RunExists
                    .error(format!("there is a run {text} already"))
                    .with_hint("say that it may exist (exist_ok), or choose another name"));
            }
            return match run_difference(&known.decl, &run) {
                None => Ok(()),
                Some(what) => Err(Code::RunDiffers
                    .error(format!("the run {text} is there with another {what}"))
                    .with_hint("choose another name, or keep what can change in attributes")),
            };
        }
        self.need_own(session, &run.run)?;
        self.emit(session, vec![Record::Runs(vec![run.clone()])])?;
        let first = Some(self.user());
        self.known().keep_run(session, RunInfo { decl: run, declared: true, first }, true);
        Ok(())
    }

    /// Variables of a run by name: those asked for that are there.
    pub fn find_variables(
        &self,
        session: Option<Id>,
        run: &RunName,
        names: &[VariableName],
    ) -> Result<HashMap<VariableName, VariableInfo>> {
        let mut found = HashMap::new();
        let mut old = HashMap::new();
        for name in names {
            match self.known().variable(session, run, name) {
                Look::Here(info) => drop(found.insert(name.clone(), info)),
                Look::Old(info) => drop(old.insert(name.clone(), info)),
                Look::Ask => {}
            }
        }
        let missing: Vec<&VariableName> = names.iter().filter(|name| !found.contains_key(*name)).collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let mut seen = HashMap::new();
        let searched = self.search(session, |tables| {
            seen.clear();
            let Some(row) = run_row(tables, run)? else { return Ok(None) };
            for variable in tables.variables(row.id)? {
                seen.insert(variable.decl.variable.clone(), variable_info(run, variable));
            }
            Ok(missing.iter().all(|name| seen.contains_key(*name)).then_some(()))
        });
        match searched {
            Err(e) if e.kind() == fieldstone_core::ErrorKind::Unavailable && old.len() == missing.len() => {
                seen = old;
            }
            other => drop(other?),
        }
        let mut known = self.known();
        for name in missing {
            if let Some(info) = seen.get(name) {
                known.keep_variable(session, info.clone(), false);
                found.insert(name.clone(), info.clone());
            }
        }
        Ok(found)
    }

    /// The error for a variable that is not there.
    pub fn no_variable(&self, session: Option<Id>, run: &RunName, name: &VariableName) -> Error {
        let mut names: Vec<String> = Vec::new();
        let listed = self.look(View::All(session), &mut |tables| {
            names.clear();
            if let Some(row) = run_row(tables, run)? {
                names.extend(tables.variables(row.id)?.into_iter().map(|row| row.decl.variable.name));
            }
            Ok(())
        });
        drop(listed);
        let text = format!("run {} has no variable {}", run_text(run), variable_text(name));
        let error = Code::VariableNotFound.error(text);
        if names.contains(&name.name) {
            return error.with_hint("it has other versions of it");
        }
        match did_you_mean(&name.name, names.iter().map(String::as_str)) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("declare it with create_variable, or write a field of it"),
        }
    }

    /// Declares variables of a run.
    pub fn create_variables(
        &self,
        run: &RunName,
        variables: Vec<VariableDecl>,
        session: Option<Id>,
    ) -> Result<()> {
        self.store.journal().check_writable()?;
        for variable in &variables {
            check_variable(variable)?;
        }
        Record::Variables(run.clone(), variables.clone()).check()?;
        let _declaring = self.declaring();
        self.need_run(session, run)?;
        let names: Vec<VariableName> = variables.iter().map(|decl| decl.variable.clone()).collect();
        let mut there = self.find_variables(session, run, &names)?;
        let mut fresh: Vec<VariableDecl> = Vec::new();
        for decl in variables {
            if let Some(known) = there.get(&decl.variable) {
                let difference = match known.declared {
                    true => variable_difference(&known.decl, &decl),
                    false => field_difference(&known.decl, &decl),
                };
                if let Some(what) = difference {
                    let (name, run) = (variable_text(&decl.variable), run_text(run));
                    return Err(Code::VariableDiffers
                        .error(format!("variable {name} of run {run} has another {what}"))
                        .with_hint("declare it as it is, or as another version"));
                }
                if known.declared {
                    continue;
                }
            }
            let info = VariableInfo { run: run.clone(), decl: decl.clone(), declared: true };
            there.insert(decl.variable.clone(), info);
            fresh.push(decl);
        }
        if fresh.is_empty() {
            return Ok(());
        }
        self.need_own(session, run)?;
        self.emit(session, vec![Record::Variables(run.clone(), fresh.clone())])?;
        let mut known = self.known();
        for decl in fresh {
            known.keep_variable(session, VariableInfo { run: run.clone(), decl, declared: true }, true);
        }
        Ok(())
    }

    /// Declares steps of a run.
    pub fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, session: Option<Id>) -> Result<()> {
        self.store.journal().check_writable()?;
        Record::Steps(run.clone(), steps.clone()).check()?;
        let _declaring = self.declaring();
        self.need_run(session, run)?;
        let (Some(first), Some(last)) =
            (steps.iter().map(|s| s.number).min(), steps.iter().map(|s| s.number).max())
        else {
            return Ok(());
        };
        let mut there: BTreeMap<i64, Option<f64>> = BTreeMap::new();
        let view = if self.known().deleted(session) || session.is_some() {
            View::All(session)
        } else {
            View::Synced
        };
        self.look(view, &mut |tables| {
            there.clear();
            if let Some(row) = run_row(tables, run)? {
                there.extend(tables.steps(row.id, first..=last)?.into_iter().map(|row| (row.step, row.time)));
            }
            Ok(())
        })?;
        let mut fresh = Vec::new();
        for step in steps {
            let known = self.known().step(session, run, step.number);
            let known = known.or_else(|| there.get(&step.number).copied());
            match (known, step.time) {
                (Some(Some(a)), Some(b)) if a.to_bits() != b.to_bits() => {
                    return Err(Code::StepDiffers
                        .error(format!(
                            "step {} of run {} is at time {a}, not {b}",
                            step.number,
                            run_text(run)
                        ))
                        .with_hint("a step has one time: declare another step"));
                }
                // What is there already, or says less than what is there.
                (Some(Some(_)), _) => {}
                (_, time) => {
                    there.insert(step.number, time);
                    fresh.push(step);
                }
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        self.need_own(session, run)?;
        for step in &fresh {
            self.known().keep_step(session, run, step.number, step.time);
        }
        self.emit(session, vec![Record::Steps(run.clone(), fresh)])
    }

    /// Every tag of a name.
    pub fn tags_of(&self, session: Option<Id>, name: &str) -> Result<Vec<TagInfo>> {
        if let Some(tags) = self.known().tags(session, name) {
            return Ok(tags);
        }
        let view = if self.known().deleted(session) || session.is_some() {
            View::All(session)
        } else {
            View::Synced
        };
        let found = self.look(view, &mut |tables| {
            let all = tables.tags()?.into_iter().filter(|row| row.decl.name == name);
            Ok(all.map(tag_info).collect::<Vec<TagInfo>>())
        })?;
        let mut tags = found;
        let mut known = self.known();
        for tag in &tags {
            known.keep_tag(session, tag.clone(), false);
        }
        known.note_asked(session, name);
        for own in known.own_tags(session, name) {
            if tags.iter().all(|tag| tag.decl != own.decl) {
                let version = free_version(&tags, own.decl.version);
                tags.push(TagInfo { version, ..own });
            }
        }
        Ok(tags)
    }

    /// Declares tags; how they are shown.
    pub fn create_tags(&self, tags: Vec<TagDecl>, session: Option<Id>) -> Result<Vec<TagInfo>> {
        self.store.journal().check_writable()?;
        Record::Tags(tags.clone()).check()?;
        let _declaring = self.declaring();
        let mut shown = Vec::with_capacity(tags.len());
        let mut fresh = Vec::new();
        for decl in tags {
            let known = self.tags_of(session, &decl.name)?;
            if let Some(tag) = known.iter().find(|tag| tag.decl == decl) {
                shown.push(tag.clone());
                continue;
            }
            let tag = TagInfo { version: free_version(&known, decl.version), decl };
            self.known().keep_tag(session, tag.clone(), true);
            fresh.push(tag.decl.clone());
            shown.push(tag);
        }
        if !fresh.is_empty() {
            self.emit(session, vec![Record::Tags(fresh)])?;
        }
        Ok(shown)
    }

    /// The tag under which values of a type go.
    pub fn tag_for(
        &self,
        session: Option<Id>,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
    ) -> Result<TagDecl> {
        let known = self.tags_of(session, name)?;
        let asked = |tag: &&TagInfo| version.is_none_or(|version| tag.version == version);
        let mut tags: Vec<&TagInfo> = known.iter().filter(asked).collect();
        // The type itself before one that takes it, the newest version before others.
        tags.sort_by_key(|tag| (tag.decl.kind != kind, !takes(tag.decl.kind, kind), -tag.version));
        if let Some(tag) = tags.first() {
            // Whether the very values fit is checked with the values, where the error can name them.
            return Ok(tag.decl.clone());
        }
        let decl =
            TagDecl { name: name.to_owned(), version: version.unwrap_or(0), kind, unit: String::new() };
        Ok(decl)
    }
}

/// What was found; where the engine cannot be asked, what was known a while ago.
fn believe<T>(found: Result<Option<T>>, known: Look<T>) -> Result<Option<T>> {
    match (found, known) {
        (Err(e), Look::Old(old)) if e.kind() == fieldstone_core::ErrorKind::Unavailable => Ok(Some(old)),
        (found, _) => found,
    }
}

/// The number that is shown for a tag that asks for `version` after these.
pub fn free_version(tags: &[TagInfo], version: i64) -> i64 {
    let mut free = version;
    while tags.iter().any(|tag| tag.version == free) {
        free = free.saturating_add(1);
    }
    free
}

/// Whether a tag of type `tag` takes values of type `kind`, if they are exact there.
fn takes(tag: ValueType, kind: ValueType) -> bool {
    use ValueType as T;
    tag == kind
        || matches!(
            (kind, tag),
            (_, T::Json)
                | (T::Int, T::Float | T::UInt)
                | (T::UInt, T::Float | T::Int)
                | (T::IntRange, T::FloatRange)
        )
}

/// Whether two values are the same, NaN too.
fn same(a: &Value, b: &Value) -> bool {
    a.kind() == b.kind() && a.order(b).is_eq()
}

fn same_pairs(a: &[(String, Value)], b: &[(String, Value)]) -> bool {
    a.len() == b.len() && contains(a, b)
}

/// Whether all pairs of `b` stand in `a`.
fn contains(a: &[(String, Value)], b: &[(String, Value)]) -> bool {
    b.iter().all(|(name, value)| a.iter().any(|(other, known)| other == name && same(known, value)))
}

fn same_option(a: &Option<Value>, b: &Option<Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// In what a run, declared again, says otherwise than it is; what is not given says nothing.
fn run_difference(there: &RunDecl, again: &RunDecl) -> Option<String> {
    if let Some((name, _)) =
        again.params.iter().find(|pair| !contains(&there.params, std::slice::from_ref(pair)))
    {
        return Some(format!("parameter '{name}'"));
    }
    let differs = [
        (again.job.is_some() && again.job != there.job, "job"),
        (again.notes.is_some() && again.notes != there.notes, "note"),
        (again.grid.is_some() && !same_option(&again.grid, &there.grid), "grid"),
        (again.annotate != Annotate::All && again.annotate != there.annotate, "rule who annotates it"),
        (again.outside.is_some() && !same_option(&again.outside, &there.outside), "place of its data"),
    ];
    differs.iter().find(|(differs, _)| *differs).map(|(_, what)| (*what).to_owned())
}

/// In what a variable, declared again, says otherwise than it is.
fn variable_difference(there: &VariableDecl, again: &VariableDecl) -> Option<String> {
    let text = |shape: &Option<Vec<u64>>| shape.as_ref().map_or("none".into(), |s| format!("{s:?}"));
    let mut coords = (there.coords.clone(), again.coords.clone());
    coords.0.sort_by_key(|(dim, _)| *dim);
    coords.1.sort_by_key(|(dim, _)| *dim);
    let same_coords = coords.0.len() == coords.1.len()
        && coords.0.iter().zip(&coords.1).all(|((d, a), (e, b))| d == e && same_coordinate(a, b));
    let differs = [
        (there.dtype != again.dtype, "type".to_owned()),
        (there.shape != again.shape, format!("shape: {}, not {}", text(&there.shape), text(&again.shape))),
        (there.dims != again.dims, format!("dimensions: {}", there.dims.join(", "))),
        (!same_pairs(&there.attrs, &again.attrs), "attributes".to_owned()),
        (!same_coords, "coordinates".to_owned()),
        (there.decomposition != again.decomposition, "decomposition".to_owned()),
        (!same_option(&there.finders, &again.finders), "finders".to_owned()),
    ];
    differs.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

/// In what a declaration contradicts the fields that are there.
fn field_difference(fields: &VariableDecl, decl: &VariableDecl) -> Option<String> {
    if let (Some(a), Some(b)) = (fields.dtype, decl.dtype)
        && a.to_native() != b.to_native()
    {
        return Some(format!("type: its fields are {a}"));
    }
    match (&fields.shape, &decl.shape) {
        (Some(a), Some(b)) if a != b => Some(format!("shape: its fields have {a:?}")),
        _ => None,
    }
}

fn same_coordinate(a: &Coordinate, b: &Coordinate) -> bool {
    match (a, b) {
        (Coordinate::Uniform { first: a, spacing: x }, Coordinate::Uniform { first: b, spacing: y }) => {
            a.to_bits() == b.to_bits() && x.to_bits() == y.to_bits()
        }
        (Coordinate::Rectilinear(a), Coordinate::Rectilinear(b)) => a == b,
        (Coordinate::Other(a), Coordinate::Other(b)) => a == b,
        _ => false,
    }
}

/// Refuses a declaration whose parts contradict each other.
fn check_variable(decl: &VariableDecl) -> Result<()> {
    let wrong =
        |why: String| Err(Error::invalid(format!("variable {}: {why}", variable_text(&decl.variable))));
    let Some(shape) = &decl.shape else {
        return match decl.coords.is_empty() && decl.decomposition.is_none() {
            true => Ok(()),
            false => wrong("coordinates and a decomposition need a shape".into()),
        };
    };
    if let Some(extent) = shape.iter().find(|extent| i64::try_from(**extent).is_err()) {
        return wrong(format!("{extent} elements in a dimension are too many"));
    }
    if !decl.dims.is_empty() && decl.dims.len() != shape.len() {
        return wrong(format!("{} names for {} dimensions", decl.dims.len(), shape.len()));
    }
    if let Some((_, name)) = decl.dims.iter().enumerate().find(|(i, name)| decl.dims[..*i].contains(name)) {
        return wrong(format!("two dimensions are named '{name}'"));
    }
    if decl.decomposition.as_ref().is_some_and(|pieces| pieces.len() != shape.len() || pieces.contains(&0)) {
        return wrong("the decomposition needs an extent of 1 or more per dimension".into());
    }
    for (i, (dim, coordinate)) in decl.coords.iter().enumerate() {
        let Some(extent) = shape.get(*dim as usize) else {
            return wrong(format!("coordinates for dimension {dim} of {}", shape.len()));
        };
        if decl.coords[..i].iter().any(|(other, _)| other == dim) {
            return wrong(format!("dimension {dim} has coordinates twice"));
        }
        match coordinate {
            Coordinate::Uniform { first, spacing } => {
                if !first.is_finite() || !spacing.is_finite() || *spacing == 0.0 {
                    return wrong(format!("coordinates from {first} at a distance of {spacing} are none"));
                }
            }
            Coordinate::Rectilinear(at) => {
                let rising = at.windows(2).all(|two| two[0] < two[1]);
                let falling = at.windows(2).all(|two| two[0] > two[1]);
                if at.len() as u64 != *extent || !(rising || falling) || at.iter().any(|x| !x.is_finite()) {
                    return wrong(format!(
                        "coordinates of dimension {dim} must be {extent} finite numbers that rise or fall"
                    ));
                }
            }
            Coordinate::Other(_) => {}
        }
    }
    Ok(())
}
