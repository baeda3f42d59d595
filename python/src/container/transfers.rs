//! Transfers many boxes of many variables in one call.

use std::sync::Arc;

use fieldstone::container::{Get, NcType, Put, Selection, VarInfo};
use pyo3::prelude::*;

use super::PyContainer;
use super::variable::{Asked, PyVar, array_of, check_size, count_of, selection, type_of_array};
use crate::data::{Data, NewArray};
use crate::errors::{Raise, invalid};
use crate::sequence::Several;

/// A box to read.
type Wanted<'py> = (Bound<'py, PyVar>, Asked, Asked);
/// A box to write, and its elements.
type Given<'py> = (Bound<'py, PyVar>, Bound<'py, PyAny>, Asked, Asked);
/// A box to read, and the array that receives its elements.
type Reading<'py> = (Arc<VarInfo>, Selection, NewArray<'py>);
/// A box to write, its elements and their type.
type Writing<'py> = (Arc<VarInfo>, Selection, Data<'py>, NcType);

#[pymethods]
impl PyContainer {
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        wanted: &Bound<'py, PyAny>,
        collective: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = wanted.extract::<Several<Wanted<'py>>>();
        let found = found.and_then(|wanted| wanted.0.into_iter().map(|one| reading(py, one)).collect());
        let mut readings: Vec<Reading<'py>> = self.file.ready(py, collective, found)?;
        let mut gets: Vec<Get<'_>> = readings
            .iter_mut()
            .map(|(var, selection, array)| Get { var, selection, into: array.bytes(), ty: var.ty })
            .collect();
        self.call(py, |file| file.elements().get_many(&mut gets, collective))?;
        drop(gets);
        Ok(readings.into_iter().map(|(_, _, array)| array.done()).collect())
    }

    fn put_many<'py>(&self, py: Python<'py>, given: &Bound<'py, PyAny>, collective: bool) -> PyResult<()> {
        let found = given.extract::<Several<Given<'py>>>();
        let found = found.and_then(|given| given.0.into_iter().map(|one| writing(py, one)).collect());
        let writings: Vec<Writing<'py>> = self.file.ready(py, collective, found)?;
        let puts: Vec<Put<'_>> = writings
            .iter()
            .map(|(var, selection, data, ty)| Put { var, selection, data: data.bytes(), ty: *ty })
            .collect();
        self.call(py, |file| file.elements().put_many(&puts, collective))
    }
}

/// Checks everything that can be wrong with a box on this rank alone, before the ranks meet.
fn reading<'py>(py: Python<'py>, (var, start, count): Wanted<'py>) -> PyResult<Reading<'py>> {
    let var = var.get();
    let (info, lens) = py.detach(|| Ok((var.info()?, var.lens()?))).or_raise()?;
    let chosen =
        selection(var.path(), &lens, start.map(Several::all), count.map(Several::all), None).or_raise()?;
    let array = array_of(py, var.container(), (&info, &chosen), info.ty)?;
    Ok((info, chosen, array))
}

/// As [`reading`].
fn writing<'py>(py: Python<'py>, (var, values, start, count): Given<'py>) -> PyResult<Writing<'py>> {
    let var = var.get();
    let data = Data::new(&values)?;
    let (dtype, shape) = data.array.clone().ok_or_else(|| invalid("no array", "give an array"))?;
    let ty = type_of_array(dtype, var.path())?;
    let info = py.detach(|| var.info()).or_raise()?;
    let rank = info.dims.len();
    let count =
        count.map_or_else(|| count_of(var.path(), &shape, rank), |count| Ok(count.all())).or_raise()?;
    check_size(var.path(), &shape, &count).or_raise()?;
    let chosen =
        selection(var.path(), &vec![0; rank], start.map(Several::all), Some(count), None).or_raise()?;
    Ok((info, chosen, data, ty))
}
