//! Many boxes of many variables in one call.

use std::sync::Arc;

use fieldstone::Result;
use fieldstone::container::{Get, NcType, Put, Selection, VarInfo};
use pyo3::prelude::*;

use super::PyContainer;
use super::variable::{Numbers, PyVar, check_size, count_of, dtype_of, selection, type_of_array};
use crate::data::{Data, NewArray};
use crate::errors::{Raise, invalid};

/// A box to read.
type Wanted<'py> = (Bound<'py, PyVar>, Numbers, Numbers);
/// A box to write, and its elements.
type Given<'py> = (Bound<'py, PyVar>, Bound<'py, PyAny>, Numbers, Numbers);

#[pymethods]
impl PyContainer {
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        wanted: Vec<Wanted<'py>>,
        collective: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut boxes: Vec<(Arc<VarInfo>, Selection)> = Vec::with_capacity(wanted.len());
        let asked: Vec<(&PyVar, Numbers, Numbers)> =
            wanted.iter().map(|(var, start, count)| (var.get(), start.clone(), count.clone())).collect();
        let choose = || -> Result<()> {
            for (var, start, count) in asked {
                let chosen = selection(var.path(), &var.lens()?, start, count, None)?;
                boxes.push((var.info()?, chosen));
            }
            Ok(())
        };
        self.call(py, |_| self.ready(collective, choose()))?;
        let mut arrays = boxes
            .iter()
            .map(|(info, chosen)| NewArray::new(py, dtype_of(info.ty).or_raise()?, &chosen.count))
            .collect::<PyResult<Vec<_>>>()?;
        let mut gets: Vec<Get<'_>> = boxes
            .iter()
            .zip(&mut arrays)
            .map(|((var, selection), array)| Get { var, selection, into: array.bytes(), ty: var.ty })
            .collect();
        self.call(py, |file| file.get_many(&mut gets, collective))?;
        drop(gets);
        Ok(arrays.into_iter().map(NewArray::done).collect())
    }

    fn put_many(&self, py: Python<'_>, given: Vec<Given<'_>>, collective: bool) -> PyResult<()> {
        let mut datas: Vec<(Data<'_>, NcType, Vec<u64>)> = Vec::with_capacity(given.len());
        for (var, values, _, _) in &given {
            let data = Data::new(values)?;
            let Some((dtype, shape)) = data.array.clone() else {
                return Err(invalid("no array", "give an array"));
            };
            datas.push((data, type_of_array(dtype, var.get().path())?, shape));
        }
        let asked: Vec<(&PyVar, Numbers, Numbers, &[u64])> = given
            .iter()
            .zip(&datas)
            .map(|((var, _, start, count), (_, _, shape))| {
                (var.get(), start.clone(), count.clone(), &shape[..])
            })
            .collect();
        let mut boxes: Vec<(Arc<VarInfo>, Selection)> = Vec::with_capacity(given.len());
        let choose = || -> Result<()> {
            for (var, start, count, shape) in asked {
                let info = var.info()?;
                let rank = info.dims.len();
                let count = count.map_or_else(|| count_of(var.path(), shape, rank), Ok)?;
                check_size(var.path(), shape, &count)?;
                boxes.push((info, selection(var.path(), &vec![0; rank], start, Some(count), None)?));
            }
            Ok(())
        };
        self.call(py, |_| self.ready(collective, choose()))?;
        let puts: Vec<Put<'_>> = boxes
            .iter()
            .zip(&datas)
            .map(|((var, selection), (data, ty, _))| Put { var, selection, data: data.bytes(), ty: *ty })
            .collect();
        self.call(py, |file| file.put_many(&puts, collective))
    }
}
