//! Converts the lists, arrays and mappings that Python passes to `def_many` into columns of the facade.
//!
//! Each list is walked once, here, without running Python code for a text, a number or a tuple. Columns of other
//! kinds (numpy, Arrow, pandas) become lists first, by their own fast conversion.

use std::collections::HashMap;

use fieldstone::container::{Attrs, DimColumn, Names, NcType, RECORD, Types, VarColumns};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple};

use crate::data::{Data, is_numpy_array};
use crate::errors::{Refuse, exception, invalid};
use crate::request::type_name;
use crate::sequence::{each, is_mapping, pairs};

const NAMES: &str = "give a list of texts, a numpy array of texts or an Arrow column";
const DIMS: &str =
    "give one tuple of names for all, a list with a tuple each, or a numpy array or a range of numbers";
const ATTRS: &str = "give a mapping, a list with a mapping each, or a mapping of columns";

/// The number of dimension names looked up together: small enough for their texts to stay in the cache.
const PIECE: usize = 8192;

/// Finds dimensions by name, for the variables from a given number on, as [`Container::resolve_dims`] does.
///
/// [`Container::resolve_dims`]: fieldstone::container::Container::resolve_dims
pub type Find<'a> = &'a mut dyn FnMut((&Names, usize), (&Names, &[u64]), &mut Vec<u32>) -> PyResult<bool>;

/// Columns that own their contents.
pub struct Columns {
    names: Names,
    types: TypeCells,
    dims: DimCells,
    attrs: Option<(Attrs, Vec<u64>)>,
}

enum TypeCells {
    One(NcType),
    Each(Vec<NcType>),
}

enum DimCells {
    Same(Names),
    Names(Names, Vec<u64>),
    Ids(Vec<u32>, Vec<u64>),
}

impl Columns {
    /// Converts the arguments of `def_many`.
    pub fn new(
        names: &Bound<'_, PyAny>,
        types: &Bound<'_, PyAny>,
        dims: &Bound<'_, PyAny>,
        attrs: &Bound<'_, PyAny>,
        find: Find<'_>,
    ) -> PyResult<Columns> {
        let names = texts(names, "names")?;
        let count = names.len();
        let columns = Columns {
            types: type_cells(types)?,
            dims: dim_cells(dims, &names, find)?,
            attrs: attr_cells(attrs, count)?,
            names,
        };
        columns.view().check_fill_values().map_err(exception)?;
        Ok(columns)
    }

    /// Borrows the columns in the form that the facade takes.
    pub fn view(&self) -> VarColumns<'_> {
        VarColumns {
            names: &self.names,
            types: match &self.types {
                TypeCells::One(ty) => Types::One(*ty),
                TypeCells::Each(types) => Types::Each(types),
            },
            dims: match &self.dims {
                DimCells::Same(names) => DimColumn::SameNames(names),
                DimCells::Names(names, ends) => DimColumn::Names(names, ends),
                DimCells::Ids(ids, ends) => DimColumn::Ids(ids, ends),
            },
            attrs: self.attrs.as_ref().map(|(attrs, ends)| (attrs, &ends[..])),
        }
    }
}

/// A column as a list: the list itself, or the result of an array's own conversion.
fn list<'py>(column: &Bound<'py, PyAny>, what: &str, hint: &str) -> PyResult<Bound<'py, PyList>> {
    if let Ok(list) = column.cast::<PyList>() {
        return Ok(list.clone());
    }
    if column.is_instance_of::<PyString>() || column.is_instance_of::<PyBytes>() {
        return Err(invalid(format!("{what} is one text, not a column"), hint));
    }
    // Catches Arrow columns with nulls, which would become NaN among numpy's numbers.
    if column.hasattr("to_pylist")? && column.hasattr("null_count")? && column.getattr("null_count")?.gt(0)? {
        return Ok(column.call_method0("to_pylist")?.cast_into::<PyList>()?);
    }
    if column.hasattr("__array__")? {
        let array = column.py().import("numpy")?.call_method1("asarray", (column,))?;
        return Ok(array.call_method0("tolist")?.cast_into::<PyList>()?);
    }
    let wrong = || invalid(format!("{what} is {}, not a column", type_name(column)), hint);
    let items = column.try_iter().or_refuse(column.py(), wrong)?;
    PyList::new(column.py(), each(items.as_any(), Ok)?)
}

fn text<'a>(item: &'a Bound<'_, PyAny>, what: &str, row: usize, hint: &str) -> PyResult<&'a str> {
    match item.cast::<PyString>() {
        Ok(text) => text.to_str(),
        Err(_) => Err(invalid(format!("{what} has {} in row {row}", type_name(item)), hint)),
    }
}

/// A column of names.
pub fn texts(column: &Bound<'_, PyAny>, what: &str) -> PyResult<Names> {
    let mut names = Names::default();
    for (row, item) in list(column, what, NAMES)?.iter().enumerate() {
        names.push(text(&item, what, row, NAMES)?);
    }
    Ok(names)
}

/// The type given as numpy's text, a dtype or a Python type.
pub fn type_of(given: &Bound<'_, PyAny>, what: &str) -> PyResult<NcType> {
    if let Ok(text) = given.cast::<PyString>()
        && let Some(ty) = NcType::from_numpy(text.to_str()?)
    {
        return Ok(ty);
    }
    let module = given.py().import("fieldstone.container._values")?;
    let text = module.getattr("type_of")?.call1((given, what))?.extract::<String>()?;
    NcType::from_numpy(&text).ok_or_else(|| invalid(format!("{what}: {text} is not a type"), "such as f4"))
}

fn type_cells(column: &Bound<'_, PyAny>) -> PyResult<TypeCells> {
    let is_column = column.is_instance_of::<PyList>()
        || column.is_instance_of::<PyTuple>()
        || is_numpy_array(column)?
        || (column.hasattr("__array__")? && column.hasattr("__len__")?);
    if !is_column {
        return Ok(TypeCells::One(type_of(column, "dtypes")?));
    }
    let column = list(column, "dtypes", "give one dtype, or a list of them")?;
    let mut known: HashMap<usize, NcType> = HashMap::new();
    let mut types = Vec::with_capacity(column.len());
    for item in column.iter() {
        // The list keeps its items alive, so an address identifies one object.
        let address = item.as_ptr() as usize;
        let ty = match known.get(&address) {
            Some(ty) => *ty,
            None => type_of(&item, "dtypes")?,
        };
        if known.len() < 64 {
            known.insert(address, ty);
        }
        types.push(ty);
    }
    Ok(TypeCells::Each(types))
}

fn dim_cells(column: &Bound<'_, PyAny>, vars: &Names, find: Find<'_>) -> PyResult<DimCells> {
    if let Ok(one) = column.cast::<PyString>() {
        let mut names = Names::default();
        names.push(one.to_str()?);
        return Ok(DimCells::Same(names));
    }
    if let Ok(tuple) = column.cast::<PyTuple>() {
        if tuple.len() == 2 && is_numpy_array(&tuple.get_item(0)?)? && is_numpy_array(&tuple.get_item(1)?)? {
            let (ids, _) = numbers(&tuple.get_item(0)?)?;
            let (ends, _) = numbers(&tuple.get_item(1)?)?;
            return Ok(DimCells::Ids(ids, ends.into_iter().map(u64::from).collect()));
        }
        let mut names = Names::default();
        for (place, item) in tuple.iter().enumerate() {
            names.push(text(&item, "dims", place, DIMS)?);
        }
        return Ok(DimCells::Same(names));
    }
    if column.is_instance_of::<PyRange>() {
        let (ids, each) = numbers(&column.py().import("numpy")?.call_method1("asarray", (column,))?)?;
        return Ok(DimCells::Ids(ids, (1..=vars.len() as u64).map(|row| row * each).collect()));
    }
    if is_numpy_array(column)? && column.getattr("dtype")?.getattr("kind")?.extract::<String>()? != "O" {
        let kind = column.getattr("dtype")?.getattr("kind")?.extract::<String>()?;
        if kind == "i" || kind == "u" {
            let (ids, each) = numbers(column)?;
            return Ok(DimCells::Ids(ids, (1..=vars.len() as u64).map(|row| row * each).collect()));
        }
    }
    dim_rows(&list(column, "dims", DIMS)?, vars, find)
}

/// Dimensions of each variable by name, as numbers if `find` knows them.
fn dim_rows(rows: &Bound<'_, PyList>, vars: &Names, find: Find<'_>) -> PyResult<DimCells> {
    let (mut names, mut ends) = (Names::default(), Vec::with_capacity(rows.len()));
    let (mut ids, mut first, mut here) = (Vec::new(), 0, Vec::new());
    // `def_many` reports columns of different lengths and names that change when they are stored.
    let mut in_pieces = rows.len() == vars.len() && vars.text().is_ascii();
    for (row, item) in rows.iter().enumerate() {
        if let Ok(tuple) = item.cast::<PyTuple>() {
            for item in tuple.iter() {
                names.push(text(&item, "dims", row, DIMS)?);
            }
        } else if let Ok(several) = item.cast::<PyList>() {
            for item in several.iter() {
                names.push(text(&item, "dims", row, DIMS)?);
            }
        } else {
            names.push(text(&item, "dims", row, DIMS)?);
        }
        ends.push((ids.len() + names.len()) as u64);
        if !in_pieces || names.len() < PIECE && row + 1 < rows.len() {
            continue;
        }
        here.clear();
        here.extend(ends[first..].iter().map(|end| end - ids.len() as u64));
        in_pieces = find((vars, first), (&names, &here), &mut ids)?;
        if in_pieces {
            names.clear();
            first = row + 1;
        } else if first > 0 {
            return Err(invalid("another thread redefined the container during the call", "define it again"));
        }
    }
    Ok(if in_pieces { DimCells::Ids(ids, ends) } else { DimCells::Names(names, ends) })
}

/// The dimension numbers in an array of one or two dimensions, and the length of a row.
fn numbers(array: &Bound<'_, PyAny>) -> PyResult<(Vec<u32>, u64)> {
    let wide = array.call_method1("astype", ("i8",))?;
    let data = Data::new(&wide)?;
    let each = match data.array.as_ref().map(|(_, shape)| &shape[..]) {
        Some([_]) => 1,
        Some([_, each]) => *each,
        _ => return Err(invalid("dims is an array of more than two dimensions", DIMS)),
    };
    let number = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        let number = i64::from_ne_bytes(word);
        u32::try_from(number).map_err(|_| invalid(format!("dims holds {number}"), DIMS))
    };
    Ok((data.bytes().chunks_exact(8).map(number).collect::<PyResult<_>>()?, each))
}

fn attr_cells(given: &Bound<'_, PyAny>, count: usize) -> PyResult<Option<(Attrs, Vec<u64>)>> {
    if given.is_none() {
        return Ok(None);
    }
    let (mut attrs, mut ends) = (Attrs::default(), Vec::with_capacity(count));
    if let Ok(rows) = given.cast::<PyList>() {
        for item in rows.iter() {
            if !item.is_none() {
                one_row(&mut attrs, &item)?;
            }
            ends.push(attrs.len() as u64);
        }
        return Ok(Some((attrs, ends)));
    }
    let columns = by_name(given)?;
    let columns: Vec<Column<'_>> =
        columns.iter().map(|(name, values)| Column::new(name, values, count)).collect::<PyResult<_>>()?;
    for row in 0..count {
        for column in &columns {
            column.push(&mut attrs, row)?;
        }
        ends.push(attrs.len() as u64);
    }
    Ok(Some((attrs, ends)))
}

fn by_name<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let wrong = || invalid(format!("attrs holds {}", type_name(mapping)), ATTRS);
    if !is_mapping(mapping)? {
        return Err(wrong());
    }
    pairs(mapping, |name, value| Ok((name.extract()?, value)))
}

/// The attributes of one variable.
fn one_row(attrs: &mut Attrs, item: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(row) = item.cast::<PyDict>() {
        // Copies the items: converting a value may run the program's code, which may change the dict.
        for pair in row.items() {
            let (name, value) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let name = text(&name, "attrs", 0, ATTRS)?.to_owned();
            push_value(attrs, &name, &value)?;
        }
        return Ok(());
    }
    by_name(item)?.iter().try_for_each(|(name, value)| push_value(attrs, name, value))
}

/// One attribute of all variables.
enum Column<'py> {
    /// One value for all variables.
    One(&'py str, NcType, Vec<u8>),
    /// One value for each variable; None for a variable without one.
    Each(&'py str, Bound<'py, PyList>),
    /// Numbers: their type, and their external bytes one after another.
    Numbers(&'py str, NcType, Vec<u8>),
}

impl<'py> Column<'py> {
    fn new(name: &'py str, values: &'py Bound<'py, PyAny>, count: usize) -> PyResult<Column<'py>> {
        let fits = |found: usize| match found == count {
            true => Ok(()),
            false => Err(invalid(
                format!("attribute `{name}` has {found} values for {count} variables"),
                "give one value, or one for each",
            )),
        };
        if is_numpy_array(values)? && values.getattr("ndim")?.eq(1)? {
            let kind = values.getattr("dtype")?.getattr("kind")?.extract::<String>()?;
            fits(values.len()?)?;
            if "iufb".contains(&kind) {
                let (ty, bytes) = converted(name, values)?;
                return Ok(Column::Numbers(name, ty, bytes));
            }
            return Ok(Column::Each(name, list(values, "attrs", ATTRS)?));
        }
        let is_one = values.is_instance_of::<PyTuple>()
            || values.is_instance_of::<PyString>()
            || is_numpy_array(values)?
            || !(values.is_instance_of::<PyList>()
                || values.hasattr("__array__")? && values.hasattr("__len__")?);
        if is_one {
            let (ty, bytes) = converted(name, values)?;
            return Ok(Column::One(name, ty, bytes));
        }
        let each = list(values, "attrs", ATTRS)?;
        fits(each.len())?;
        Ok(Column::Each(name, each))
    }

    fn push(&self, attrs: &mut Attrs, row: usize) -> PyResult<()> {
        match self {
            Column::One(name, ty, value) => attrs.push(name, *ty, value),
            Column::Each(name, values) => push_value(attrs, name, &values.get_item(row)?)?,
            Column::Numbers(name, ty, bytes) => {
                attrs.push(name, *ty, &bytes[row * ty.size()..(row + 1) * ty.size()]);
            }
        }
        Ok(())
    }
}

fn push_value(attrs: &mut Attrs, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.is_none() {
        return Ok(());
    }
    if let Ok(text) = value.cast_exact::<PyString>()
        && let Ok(text) = text.to_str()
    {
        attrs.push(name, NcType::Char, text.as_bytes());
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        attrs.push(name, NcType::Double, &number.extract::<f64>()?.to_be_bytes());
    } else if let Ok(number) = value.cast_exact::<PyInt>()
        && let Ok(number) = number.extract::<i32>()
    {
        attrs.push(name, NcType::Int, &number.to_be_bytes());
    } else {
        let (ty, bytes) = converted(name, value)?;
        attrs.push(name, ty, &bytes);
    }
    Ok(())
}

/// Type and external bytes of any value, by the package's rules.
fn converted(name: &str, value: &Bound<'_, PyAny>) -> PyResult<(NcType, Vec<u8>)> {
    let module = value.py().import("fieldstone.container._values")?;
    let made = module.getattr("attribute")?.call1((value, format!("attribute `{name}`")))?;
    let (text, bytes) = made.extract::<(String, Bound<'_, PyBytes>)>()?;
    let ty = NcType::from_numpy(&text);
    let ty = ty.ok_or_else(|| invalid(format!("attribute `{name}`: {text} is not a type"), ATTRS))?;
    Ok((ty, bytes.as_bytes().to_vec()))
}

/// The length of a dimension.
pub fn length(given: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    if let Ok(number) = given.cast_exact::<PyInt>()
        && let Ok(number) = number.extract::<u64>()
    {
        return Ok(number);
    }
    let number = given.call_method0("__index__").and_then(|number| number.extract::<u64>());
    number.or_refuse(given.py(), || {
        let shown = given.repr().map_or_else(|_| type_name(given), |text| text.to_string());
        invalid(
            format!("dimension `{name}`: the length {shown:.60}"),
            "give a whole number of at least 0, or None for the record dimension",
        )
    })
}

/// Lengths of many dimensions: one for all, or one each.
pub fn lengths(given: &Bound<'_, PyAny>, count: usize) -> PyResult<Vec<u64>> {
    let cell = |item: &Bound<'_, PyAny>| match item.is_none() {
        true => Ok(RECORD),
        // Columns mark the record dimension by this number, so it is not a valid length.
        false => match length(item, "lengths")? {
            RECORD => Err(invalid(
                format!("lengths holds {RECORD}; the limit is {}", i64::MAX),
                "give None for the record dimension",
            )),
            len => Ok(len),
        },
    };
    if given.is_none() || given.hasattr("__index__")? && !given.hasattr("__len__")? {
        return Ok(vec![cell(given)?; count]);
    }
    let hint = "give one length for all, or a list with one for each name";
    let column = list(given, "lengths", hint)?;
    if column.len() != count {
        let message = format!("{} lengths for {count} names of dimensions", column.len());
        return Err(invalid(message, hint));
    }
    column.iter().map(|item| cell(&item)).collect()
}
