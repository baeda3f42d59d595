//! The calls of a store that are about its catalog: each hands over to the function of its name in
//! `fieldstone._catalog`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::PyCatalog;
use crate::store::Store;

fn call<'py>(
    store: &Bound<'py, Store>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = store.py();
    let all = std::iter::once(store.clone().into_any()).chain(args.iter());
    let all = PyTuple::new(py, all.collect::<Vec<_>>())?;
    py.import("fieldstone._catalog")?.getattr(name)?.call(all, options)
}

#[pymethods]
impl Store {
    /// Declares a run: a name, unique within its project, with parameters. Returns a Run.
    ///
    /// `params` is a dict of values; `job` the name that the batch system gave; `created` a datetime (now
    /// if absent); `grid` and `notes` are free; `outside` says where the run's data lie, if not in the
    /// store; `txn` is the id of a transaction to belong to. Conflict where the run is declared already,
    /// unless ``exist_ok=True`` and it says the same; Denied where its fields are another user's. Visible to
    /// this process at once, to all at flush. The run is its maker's: others annotate it under their own
    /// names and no more; with ``annotate="owner"`` not even that.
    #[pyo3(signature = (*args, **options), text_signature = "($self, name, *, params=None, project=None, job=None, created=None, grid=None, notes=None, outside=None, exist_ok=False, annotate='all', txn=None)")]
    fn create_run<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "create_run", args, options)
    }

    /// The Run of this name, declared or named by fields. NotFound where there is none, Invalid where
    /// several projects have one and `project` is not given; ``project=""`` is the run of no project.
    #[pyo3(signature = (*args, **options), text_signature = "($self, name, *, project=None, txn=None)")]
    fn run<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "run", args, options)
    }

    /// Declares a tag: a named kind of metadata, shared by all runs. Returns a Tag.
    ///
    /// `type` is bool, int, uint, float, text, bytes, datetime, int_range, float_range, array or json.
    /// The same again is no error. A tag of the name with another type or unit stays, and this one gets a
    /// version of its own: the Tag returned has it.
    #[pyo3(signature = (*args, **options), text_signature = "($self, name, *, type, unit=None, version=0, txn=None)")]
    fn create_tag<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "create_tag", args, options)
    }

    /// Declares many tags, as ``create_tag`` one; `type`, `unit` and `version` are one for all or one each.
    #[pyo3(signature = (*args, **options), text_signature = "($self, names, *, type, unit=None, version=0, txn=None)")]
    fn create_tags<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "create_tags", args, options)
    }

    /// The attributes for which all terms hold, as Hits: lazy, asked when they are used.
    ///
    /// Terms: run project job params created step time variable version tag tag_version unit value scope
    /// box extent volume also without, and txn order limit pick. Names are text, a pattern with ``*``, ``?``
    /// or ``[``, a list, or a test; values are tested by ``fieldstone.above`` and its like; `box` is a dict
    /// of slices by dimension. `where` is a condition made by ``fieldstone.where``, or text. With `comm`, an
    /// mpi4py communicator, all ranks call together, the query runs once, and each rank gets the hits that
    /// overlap its own `box`.
    #[pyo3(signature = (*args, **options), text_signature = "($self, where=None, /, *, comm=None, **terms)")]
    fn attributes<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "attributes", args, options)
    }

    /// The runs, as Rows of Run. With a tag, value or box term those that matching attributes stand on;
    /// without one those that exist. Terms are those of ``attributes``.
    #[pyo3(signature = (*args, **options), text_signature = "($self, where=None, /, **terms)")]
    fn runs<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "runs", args, options)
    }

    /// The steps, as Rows of Step: ``.run``, ``.step``, ``.time``. Terms work as in ``runs``.
    #[pyo3(signature = (*args, **options), text_signature = "($self, where=None, /, **terms)")]
    fn steps<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "steps", args, options)
    }

    /// The variables, as Rows of Variable: ``.run``, ``.name``, ``.dtype``, ``.shape`` … Terms work as in
    /// ``runs``.
    #[pyo3(signature = (*args, **options), text_signature = "($self, where=None, /, **terms)")]
    fn variables<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "variables", args, options)
    }

    /// The tags, as Rows of Tag: ``.name``, ``.version``, ``.type``, ``.unit``. Terms work as in ``runs``.
    #[pyo3(signature = (*args, **options), text_signature = "($self, where=None, /, **terms)")]
    fn tags<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "tags", args, options)
    }

    /// Count, least, greatest and mean number of the attributes for which the terms hold, as a Table;
    /// `by` groups by "run", "step", "variable", "tag" or several of these.
    #[pyo3(signature = (*args, **options), text_signature = "($self, where=None, /, *, by=(), **terms)")]
    fn aggregate<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "aggregate", args, options)
    }

    /// The attributes that a query in text selects, as Hits:
    /// ``store.find("tag=maximum and value>9000 and box=z:50:100")``. Invalid points at the character.
    #[pyo3(signature = (*args, **options), text_signature = "($self, text, /, *, txn=None)")]
    fn find<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "find", args, options)
    }

    /// Deletes from the catalog and returns a DeleteReport; without ``doit=True`` it only counts.
    ///
    /// What goes is the deepest that is named: of `run` alone the run with all below it; with `step` the
    /// step; with `variable` the variable; of `tag` alone the tag with its attributes in all runs; of `tag`
    /// with others, of `variable` with `step`, and with `where`, the attributes for which they hold. ``fields=True`` removes the
    /// fields of deleted runs, steps and variables, too. Older versions of the store still have all of it.
    ///
    /// Runs, steps and variables of other users are Denied, and a tag that others declared or use in their
    /// runs. Of attributes, those go that this user wrote, and all in his own runs; ``others`` of the report
    /// counts the rest, and where there is nothing else it is Denied.
    #[pyo3(signature = (*args, **options), text_signature = "($self, *, run=None, variable=None, tag=None, step=None, where=None, project=None, fields=False, doit=False, txn=None)")]
    fn delete<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "delete", args, options)
    }

    /// The rows of a read-only SQL statement over the documented views, as a Table.
    #[pyo3(signature = (*args, **options), text_signature = "($self, statement)")]
    fn sql<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "sql", args, options)
    }

    /// Makes the catalog's index again from the store's logs, and returns a RebuildReport. No answer changes.
    #[pyo3(signature = (*args, **options), text_signature = "($self)")]
    fn rebuild<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "rebuild", args, options)
    }

    /// Contradicting definitions that the logs hold, in words: of each the older one counts.
    #[pyo3(signature = (*args, **options), text_signature = "($self)")]
    fn conflicts<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(slf, "conflicts", args, options)
    }

    /// The catalog; the functions above call it.
    fn _catalog(slf: &Bound<'_, Self>) -> PyResult<PyCatalog> {
        Ok(PyCatalog::new(slf.get().handle()?, slf.clone().unbind()))
    }
}
