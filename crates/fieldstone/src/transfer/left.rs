//! The part of a transfer that stays behind: for the report, by kind, with counts and some names.

use std::collections::BTreeSet;

use fieldstone_core::Result;
use fieldstone_core::schema::Schema;
use fieldstone_format::catalog::RunName;

use super::arrays::Arrays;
use super::attributes::{Carrier, names};
use super::chosen::Chosen;
use super::declared::{DeclaredRun, mesh_names};
use super::fields::{CarriedField, FieldPlan};
use super::trail::Trail;
use crate::Session;
use crate::Store;

/// Number of names of one kind in a report.
const NAMED: usize = 5;

/// Items of one kind that stayed behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// "run", "step", "variable", "tag", "attribute", "group", "import", "mesh", "history", "array file", "author", "owner",
    /// "time", "version", "execution" or "vertex".
    pub kind: &'static str,
    /// Their number.
    pub count: u64,
    /// The first of their names: for steps their numbers, for attributes their tags, for owners the users.
    pub names: Vec<String>,
    /// Why.
    pub why: &'static str,
}

impl LeftBehind {
    /// Adds more of the same kind, for the same reason.
    pub fn add(&mut self, more: LeftBehind) {
        self.count += more.count;
        let new: Vec<String> = more.names.into_iter().filter(|name| !self.names.contains(name)).collect();
        self.names.extend(new);
        self.names.truncate(NAMED);
    }
}

/// Arrays whose files stay.
const IN_LOGS: &str = "the target has no files for these arrays; they are in its logs";
/// The caller wants only fields.
pub const FIELDS_ONLY: &str = "only fields were asked for";
/// Names of runs, steps and variables mean something else there.
const OTHER_NAMES: &str = "the target's schema names runs, steps and variables by other keywords";

/// Why a target cannot take the attributes of these runs of a source, their steps and variables; `None` if it can,
/// because it gives the keywords the same roles, and each run its name.
pub fn why_not<'r>(
    from: &Schema,
    to: &Schema,
    mut runs: impl Iterator<Item = &'r RunName>,
) -> Option<&'static str> {
    let known = from.catalog_roles().iter().all(|roles| to.catalog_roles().contains(roles));
    let pairs = |schema: &Schema, run: &RunName| schema.pairs_of(&run.project, &run.name).ok();
    let same = known && runs.all(|run| pairs(from, run) == pairs(to, run));
    (!same).then_some(OTHER_NAMES)
}

/// The authors of attributes, which become the caller's.
pub fn of_attributes(from: &Store, carrier: &Carrier<'_>) -> Option<LeftBehind> {
    let mut left = Left::default();
    let names = carrier.authors.iter().map(|user| from.catalog().user_name(*user)).collect();
    let count = usize::try_from(carrier.of_others).unwrap_or(usize::MAX);
    left.add("author", count, names, "attributes belong to who brings them");
    left.0.pop()
}

/// The part of the graph that stays.
pub fn of_graph(trail: &Trail, fields_only: bool) -> Option<LeftBehind> {
    let (executions, mut left) = (trail.executions(), Left::default());
    match fields_only {
        true => left.add("execution", executions.len(), executions, FIELDS_ONLY),
        false if trail.truncated => {
            left.add("vertex", 1, Vec::new(), "the lineage has more vertices than are taken")
        }
        false => {}
    }
    left.0.pop()
}

/// The part of carried fields that stays: owners, times, and older values if they are removed.
pub fn of_fields(
    from: &Store,
    to: &Store,
    fields: &FieldPlan,
    carried: &[CarriedField],
    moving: bool,
) -> Result<Vec<LeftBehind>> {
    let mut left = Left::default();
    let times = carried.iter().filter(|field| !field.keeps_place()).count();
    left.add("time", times, Vec::new(), "the target is of format 1, and has the time of the transfer");
    let me = to.catalog().user(&Session::default());
    let others: Vec<u32> =
        carried.iter().filter_map(CarriedField::owner).filter(|owner| *owner != me).collect();
    let users: BTreeSet<u32> = others.iter().copied().collect();
    let names = users.into_iter().map(|user| from.catalog().user_name(user)).collect();
    left.add("owner", others.len(), names, "fields belong to who brings them");
    if moving {
        let went: u64 = carried.iter().map(CarriedField::versions).sum();
        let older = fields.older_count()?.saturating_sub(went);
        let why = "older values stay in older versions of the source; versions takes them along";
        left.add("version", usize::try_from(older).unwrap_or(usize::MAX), Vec::new(), why);
    }
    Ok(left.0)
}

/// Arrays that are not in files any more.
pub fn of_arrays(arrays: &Arrays) -> Option<LeftBehind> {
    let ((count, groups), mut left) = (arrays.logged(), Left::default());
    left.add("array file", count, groups, IN_LOGS);
    left.0.pop()
}

/// Gathers items that stay behind.
#[derive(Default)]
pub struct Left(Vec<LeftBehind>);

impl Left {
    /// The items.
    pub fn end(self) -> Vec<LeftBehind> {
        self.0
    }

    /// Adds items, if there are any.
    pub fn add(&mut self, kind: &'static str, count: usize, names: Vec<String>, why: &'static str) {
        if count > 0 {
            let names = names.into_iter().take(NAMED).collect();
            self.0.push(LeftBehind { kind, count: count as u64, names, why });
        }
    }

    /// Everything that would be taken, by kind.
    pub fn all(
        from: &Store,
        chosen: &Chosen,
        declared: &[DeclaredRun],
        why: &'static str,
    ) -> Result<Vec<LeftBehind>> {
        let mut left = Left::default();
        let runs: Vec<String> =
            declared.iter().filter(|run| run.decl.is_some()).map(|run| run.run.name.clone()).collect();
        left.add("run", runs.len(), runs, why);
        let steps: Vec<String> =
            declared.iter().flat_map(|run| &run.steps).map(|step| step.number.to_string()).collect();
        left.add("step", steps.len(), steps, why);
        let variables = declared.iter().flat_map(|run| &run.variables);
        let variables: Vec<String> = variables.map(|decl| decl.variable.name.clone()).collect();
        left.add("variable", variables.len(), variables, why);
        let (mut count, mut tags) = (0, BTreeSet::new());
        for (run, own) in &chosen.runs {
            let scope = chosen.attributes(run, own, false);
            if names(from, &scope)?.is_empty() {
                continue;
            }
            for hit in from.catalog().stream(&super::chosen::query(scope))? {
                let hit = hit?;
                if chosen.takes(own, &hit) {
                    count += 1;
                    if !tags.contains(&*hit.tag) {
                        tags.insert(hit.tag.to_string());
                    }
                }
            }
        }
        let tags: Vec<String> = tags.into_iter().collect();
        left.add("tag", tags.len(), tags.clone(), why);
        left.add("attribute", count, tags, why);
        let groups = declared.iter().flat_map(|run| &run.groups).map(|group| group.name.clone());
        let groups: Vec<String> = groups.collect();
        left.add("group", groups.len(), groups, why);
        let imports = declared.iter().flat_map(|run| &run.imports).map(|import| import.name.clone());
        let imports: Vec<String> = imports.collect();
        left.add("import", imports.len(), imports, why);
        let named = mesh_names(declared);
        if !named.is_empty() {
            let all = from.catalog().meshes(&Session::default())?.into_iter().map(|mesh| mesh.name);
            let meshes: Vec<String> = all.filter(|name| named.contains(name)).collect();
            left.add("mesh", meshes.len(), meshes, why);
        }
        Ok(left.0)
    }
}
