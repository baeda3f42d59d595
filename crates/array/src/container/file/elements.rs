//! Elements of an open container's variables, in and out.

use fieldstone_core::Result;
use fieldstone_format::netcdf::NcType;

use super::Container;
use super::data::DataMode;
use crate::container::access::{self, Get, Put, Selection, Target};
use crate::container::define::version_of;
use crate::container::model::VarInfo;

impl DataMode {
    fn target(&self) -> Target<'_> {
        Target {
            file: &self.file,
            version: version_of(self.options.format),
            records: &self.records,
            filled: self.filled.as_deref(),
            past_end: self.past_end,
        }
    }

    fn may_write(&self, path: &std::path::Path) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        Err(fieldstone_core::Code::ReadOnly
            .error(format!("{} is open for reading", path.display()))
            .with_hint("open it with mode a"))
    }
}

impl Container {
    /// Writes a box of a variable: `data` are elements of type `ty` in this machine's byte order. With
    /// `collective` all ranks call it, each for its own box, and an error is raised on all.
    ///
    /// Errors: `Invalid` for a box outside the variable or values that do not fit; `Denied` on a container
    /// that is open for reading; see [`access`].
    pub fn put(
        &self,
        var: &VarInfo,
        selection: &Selection,
        data: &[u8],
        ty: NcType,
        collective: bool,
    ) -> Result<()> {
        self.put_many(&[Put { var, selection, data, ty }], collective)
    }

    /// As [`put`](Container::put), many at once, joined into few writes. Of overlapping ones the later wins.
    pub fn put_many(&self, puts: &[Put<'_>], collective: bool) -> Result<()> {
        let mode = self.data("put")?;
        let allowed = mode.may_write(self.path()).and_then(|()| mode.changing());
        if collective {
            return access::put_all(&mode.target(), allowed.map(|()| puts));
        }
        allowed?;
        access::put(&mode.target(), puts)
    }

    /// Reads a box of a variable into `into`, as elements of type `ty` in this machine's byte order.
    ///
    /// Errors: as of [`put`](Container::put); `Corrupt` where the file ends early.
    pub fn get(
        &self,
        var: &VarInfo,
        selection: &Selection,
        into: &mut [u8],
        ty: NcType,
        collective: bool,
    ) -> Result<()> {
        self.get_many(&mut [Get { var, selection, into, ty }], collective)
    }

    /// Whether the file holds a box of a variable: to be asked where there is no memory for its elements, before
    /// the memory is blamed.
    ///
    /// Errors: as of [`get`](Container::get); `Corrupt` where the file ends before the box.
    pub fn check_held(&self, var: &VarInfo, selection: &Selection) -> Result<()> {
        access::check_held(&self.data("get")?.target(), var, selection)
    }

    /// As [`get`](Container::get), many at once, joined into few reads.
    pub fn get_many(&self, gets: &mut [Get<'_>], collective: bool) -> Result<()> {
        let mode = self.data("get")?;
        if collective {
            return access::get_all(&mode.target(), Ok(gets));
        }
        access::get(&mode.target(), gets)
    }
}
