//! The choice of a dimension whose indices become the steps of fields.

/// The dimension along which a variable of a netCDF file is split into one field for each step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StepDim {
    /// The first one, if it is time or a level (`spec/netcdf-header.md`).
    #[default]
    Leading,
    /// The first one, if it has this name.
    Named(String),
    /// None: each variable is one field.
    Nothing,
}
