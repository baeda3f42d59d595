//! Audits: the actions of a user, or everybody who had to do with a file and with everything that came from
//! it.
//!
//! A walk begins at the vertex of the user or the file and reads the relations there and at adjacent
//! executions, so its cost depends on the result and not on the size of the graph. A job's audit includes its
//! processes.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::{Code, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use crate::dossier::{newest, turned};
use crate::read::{Relation, relation};
use crate::state::{END, Edge, EdgeVersion, GraphState, standing};
use crate::trace::{TraceOptions, Way, trace};

/// The actions of executions on data.
const ACTIONS: [&str; 3] = ["exe", "read", "write"];

/// The subject of an audit: a user, a file, or a user's actions on a file.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditOptions {
    /// A user's id: the uid, as text.
    pub user: Option<String>,
    /// A file or other data.
    pub file: Option<VertexName>,
    /// Actions that ended before this stamp are left out.
    pub since: Option<u64>,
    /// Actions that began after this stamp are left out.
    pub until: Option<u64>,
    /// Maximum number of rows, and of vertices that came from the file.
    pub limit: usize,
}

impl Default for AuditOptions {
    fn default() -> AuditOptions {
        AuditOptions { user: None, file: None, since: None, until: None, limit: usize::MAX }
    }
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// The stamp at which it began.
    pub stamp: u64,
    /// The clock of the user who recorded it, nanoseconds since 1970.
    pub time: i64,
    /// Name of the user who ran the execution, or else of the user who recorded the action.
    pub user: String,
    /// The job or process; for an action of neither, the commit.
    pub execution: VertexName,
    /// `run`, `exe`, `read` or `write`; for commits without an execution `archive`, `declare`, `annotate`,
    /// `delete`, `wipe`, `erase`, `retain`, `hide`, `unhide`, `lock`, `unlock`, `overlay`, `end-overlay`, `hand-over`, `accept`, `repoint`, `end`,
    /// `commit`, `abort` or `activate`, and `unreadable` if damage hides the action of a commit.
    pub action: String,
    /// The object of the action: for `run` the execution itself.
    pub object: VertexName,
}

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The actions, by stamp.
    pub rows: Vec<AuditRow>,
    /// For a file: everything that came from it, by cause, including executions; the nearest first.
    pub derived: Vec<VertexName>,
    /// Whether it was cut off at the limit.
    pub truncated: bool,
}

/// Makes an audit. Invalid if neither a user nor a file is given, NotFound if the graph lacks them.
pub fn audit(
    state: &GraphState,
    options: &AuditOptions,
    named: &dyn Fn(u32) -> String,
    limits: &mut Limits,
) -> Result<Audit> {
    let (users, rows, truncated) = (BTreeMap::new(), Vec::new(), false);
    let mut auditor = Auditor { state, options, named, limits, users, rows, truncated };
    let mut derived = Vec::new();
    match (&options.file, &options.user) {
        (Some(file), _) => {
            auditor.exists(file)?;
            auditor.of_data(file)?;
            derived = auditor.derived(file)?;
        }
        (None, Some(user)) => {
            let user = VertexName::new("user", user);
            auditor.exists(&user)?;
            auditor.of_user(&user)?;
        }
        (None, None) => {
            return Err(Code::Argument
                .error("an audit needs a user or a file")
                .with_hint("give a user, by name or uid, or a file"));
        }
    }
    let Auditor { mut rows, mut truncated, .. } = auditor;
    rows.sort_by(|a, b| {
        let key = |row: &AuditRow| (row.stamp, row.action != "run", row.execution.clone());
        // A run comes before what it did at the same stamp.
        (key(a), &a.action, &a.object).cmp(&(key(b), &b.action, &b.object))
    });
    truncated |= rows.len() > options.limit || derived.len() > options.limit;
    rows.truncate(options.limit);
    derived.truncate(options.limit);
    Ok(Audit { rows, derived, truncated })
}

/// Whether an execution of a user wrote a commit, or an execution without users that this user recorded.
pub fn is_written_by(state: &GraphState, commit: &VertexName, user: &str) -> Result<bool> {
    for write in newest(state, commit, "write", END)? {
        let users = users_of(state, &write.near)?;
        if users.contains(user) || users.is_empty() && write.user.to_string() == user {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Ids of the users who ran an execution, or its job.
fn users_of(state: &GraphState, execution: &VertexName) -> Result<BTreeSet<String>> {
    let ids = |runs: Vec<Relation>| runs.into_iter().map(|run| run.near.id.to_string());
    let mut users: BTreeSet<String> = ids(newest(state, execution, "run", END)?).collect();
    // A process belongs to the users of its job if nobody ran it directly.
    if users.is_empty() && &*execution.kind == "process" {
        for job in newest(state, execution, "contains", END)? {
            users.extend(ids(newest(state, &job.near, "run", END)?));
        }
    }
    Ok(users)
}

struct Auditor<'a> {
    state: &'a GraphState,
    options: &'a AuditOptions,
    named: &'a dyn Fn(u32) -> String,
    limits: &'a mut Limits,
    /// Ids of the users of executions.
    users: BTreeMap<VertexName, BTreeSet<String>>,
    rows: Vec<AuditRow>,
    truncated: bool,
}

impl Auditor<'_> {
    fn exists(&self, vertex: &VertexName) -> Result<()> {
        if self.state.names(VertexPlace::of(vertex))? {
            return Ok(());
        }
        let hint = match &*vertex.kind {
            "user" => "users become vertices when they run an execution; give the name or the uid",
            _ => "write the whole id, such as the full path of a file",
        };
        Err(Code::VertexNotFound.error(format!("the graph has no vertex {vertex}")).with_hint(hint))
    }

    /// Versions of a relation in the requested time, without deleted ones.
    fn versions<'e>(&self, edge: &'e Edge) -> Vec<&'e EdgeVersion> {
        let mut versions = standing(&edge.versions, self.options.until.unwrap_or(END), EdgeVersion::facts);
        versions.retain(|version| version.end() >= self.options.since.unwrap_or(0));
        versions
    }

    /// Adds the actions in one relation.
    fn take(&mut self, vertex: &VertexName, edge: &Edge) -> Result<()> {
        self.limits.step()?;
        let kind = edge.direction.kind.to_string();
        let versions = self.versions(edge);
        let mut reader = self.state.reader();
        let rows = reader.rows(VertexPlace::of(vertex), edge, versions.iter().copied())?;
        for (version, row) in versions.into_iter().zip(rows) {
            let done = turned(relation(&mut reader, vertex, edge, version, row)?, &kind);
            let (execution, object) = match &*done.kind {
                "run" => (&done.far, &done.far),
                _ => (&done.near, &done.far),
            };
            let ids = match &*done.kind {
                "run" => BTreeSet::from([done.near.id.to_string()]),
                _ => self.users_of(execution)?,
            };
            // Executions without a known user count for the user who recorded the action.
            if self.options.user.as_ref().is_some_and(|user| !ids.is_empty() && !ids.contains(user)) {
                continue;
            }
            if ids.is_empty() && self.options.user.as_ref().is_some_and(|user| *user != done.user.to_string())
            {
                continue;
            }
            let names: Vec<String> =
                ids.iter().map(|id| id.parse().map_or_else(|_| id.clone(), self.named)).collect();
            let user = if names.is_empty() { (self.named)(done.user) } else { names.join(", ") };
            self.rows.push(AuditRow {
                stamp: done.stamp,
                time: done.time,
                user,
                execution: execution.clone(),
                action: done.kind.clone(),
                object: object.clone(),
            });
        }
        Ok(())
    }

    /// Ids of the users who ran an execution, or its job.
    fn users_of(&mut self, execution: &VertexName) -> Result<BTreeSet<String>> {
        if let Some(known) = self.users.get(execution) {
            return Ok(known.clone());
        }
        let users = users_of(self.state, execution)?;
        self.users.insert(execution.clone(), users.clone());
        Ok(users)
    }

    /// Adds the actions of executions on data.
    fn of_data(&mut self, file: &VertexName) -> Result<()> {
        let wanted = |kind: &str, reverse: bool| reverse && ACTIONS.contains(&kind);
        for edge in self.state.edges(VertexPlace::of(file), &wanted)? {
            self.take(file, &edge)?;
        }
        Ok(())
    }

    /// Adds the executions of a user, and their actions.
    fn of_user(&mut self, user: &VertexName) -> Result<()> {
        let place = VertexPlace::of(user);
        let mut done: BTreeSet<VertexPlace> = BTreeSet::new();
        for edge in self.state.edges(place, &|kind, reverse| kind == "run" && !reverse)? {
            if standing(&edge.versions, self.options.until.unwrap_or(END), EdgeVersion::facts).is_empty() {
                continue;
            }
            self.take(user, &edge)?;
            let mut open = vec![edge.far];
            while let Some(execution) = open.pop() {
                if !done.insert(execution) {
                    continue;
                }
                self.limits.step()?;
                if self.rows.len() > self.options.limit {
                    self.truncated = true;
                    return Ok(());
                }
                let name = self.state.name(execution)?;
                let wanted =
                    |kind: &str, reverse: bool| !reverse && (ACTIONS.contains(&kind) || kind == "contains");
                for edge in self.state.edges(execution, &wanted)? {
                    if &*edge.direction.kind == "contains" {
                        // A process that another user ran in this user's job belongs to this user.
                        open.push(edge.far);
                    } else {
                        self.take(&name, &edge)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Everything that came from data, including executions.
    fn derived(&mut self, file: &VertexName) -> Result<Vec<VertexName>> {
        let AuditOptions { since, until, limit, .. } = *self.options;
        // One vertex more than the limit, to notice that there are more; the file itself is the first.
        let limit = limit.saturating_add(1);
        let options = TraceOptions { way: Way::Down, since, at: until, limit, ..TraceOptions::default() };
        let lineage = trace(self.state, file, &options, self.limits)?;
        self.truncated |= lineage.truncated;
        Ok(lineage.vertices.into_iter().skip(1).map(|step| step.name).collect())
    }
}
