//! Moves the elements of an open container's variables in and out.

use fieldstone_core::Result;
use fieldstone_format::netcdf::NcType;

use super::Container;
use super::data::DataMode;
use crate::container::access::views::{self, VarView};
use crate::container::access::{self, Get, Put, Selection, Target};
use crate::container::define::version_of;
use crate::container::model::VarInfo;
use crate::distributed::plan::{MoveReport, Settings};
use crate::distributed::view::View;

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

/// Reads and writes elements of variables.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    pub(super) container: &'a Container,
}

impl Elements<'_> {
    /// Writes a box of a variable: `data` are elements of type `ty` in this machine's byte order. With
    /// `collective` all ranks call it, each for its own box, and an error is raised on all.
    ///
    /// Errors: `Invalid` for a box outside the variable or values that do not fit; `Denied` on a container open for
    /// reading; see [`access`].
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

    /// As [`put`](Self::put), with many requests at a time, joined into few writes. If they overlap, the later
    /// one wins.
    pub fn put_many(&self, puts: &[Put<'_>], collective: bool) -> Result<()> {
        let mode = self.container.data("put")?;
        let allowed = mode.may_write(self.container.path()).and_then(|()| mode.changing());
        if collective {
            return access::put_all(&mode.target(), allowed.map(|()| puts));
        }
        allowed?;
        access::put(&mode.target(), puts)
    }

    /// Reads a box of a variable into `into`, as elements of type `ty` in this machine's byte order.
    ///
    /// Errors: as for [`put`](Self::put); `Corrupt` if the file ends early.
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

    /// Checks that the file contains a box of a variable: call it before reporting that memory does not suffice for
    /// the elements.
    ///
    /// Errors: as for [`get`](Self::get); `Corrupt` if the file ends before the box.
    pub fn check_held(&self, var: &VarInfo, selection: &Selection) -> Result<()> {
        access::check_held(&self.container.data("get")?.target(), var, selection)
    }

    /// As [`get`](Self::get), with many requests at a time, joined into few reads.
    pub fn get_many(&self, gets: &mut [Get<'_>], collective: bool) -> Result<()> {
        let mode = self.container.data("get")?;
        if collective {
            return access::get_all(&mode.target(), Ok(gets));
        }
        access::get(&mode.target(), gets)
    }

    /// Collective: resolves a view of a variable, for this rank and this moment: for the next
    /// [`put_view`](Self::put_view) (`writes`) or [`get_view`](Self::get_view). With `record`, the view
    /// covers only that record. The record dimension extends as far as the views of a put; for a get, it has the
    /// existing records.
    ///
    /// Errors: `Invalid`, on all ranks, for a view that does not fit; `Denied` for a write to a container open for
    /// reading.
    pub fn view(&self, var: &VarInfo, view: &View, record: Option<u64>, writes: bool) -> Result<VarView> {
        let mode = self.container.data(if writes { "put" } else { "get" })?;
        let allowed = match writes {
            true => mode.may_write(self.container.path()).and_then(|()| mode.changing()),
            false => Ok(()),
        };
        views::resolve(&mode.target(), var, (view, record), writes, allowed)
    }

    /// Collective: writes this rank's part of a variable. `data` has elements of type `ty` in this machine's byte
    /// order, in C order of the view's local shape.
    ///
    /// Errors: `Conflict` if ranks write different values to one element; others as for [`put`](Self::put).
    pub fn put_view(
        &self,
        var: &VarInfo,
        view: &VarView,
        data: (&[u8], NcType),
        settings: Settings,
    ) -> Result<MoveReport> {
        views::put(
            &self.container.data("put")?.target(),
            &self.container.planner,
            (var, view),
            data,
            settings,
        )
    }

    /// Collective: reads this rank's part of a variable. Elements of `into` outside the view stay as they are.
    ///
    /// Errors: as for [`get`](Self::get).
    pub fn get_view(
        &self,
        var: &VarInfo,
        view: &VarView,
        into: (&mut [u8], NcType),
        settings: Settings,
    ) -> Result<MoveReport> {
        views::get(
            &self.container.data("get")?.target(),
            &self.container.planner,
            (var, view),
            into,
            settings,
        )
    }
}
