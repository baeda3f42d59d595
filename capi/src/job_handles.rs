//! Handles of a job's groups, imports, meshes and partitions, which end with the job (B-15).

use std::sync::{Arc, Mutex};

use fieldstone::arrays::{ArrayGroup, ArrayJob, JobImport, JobMesh, JobPartition};
use fieldstone::catalog::StorageOrder;
use fieldstone::{Code, Error, Result};

use crate::handles::{Handle, fs_group, fs_import, fs_mesh, fs_partition, give, lock, take};
use crate::job::{JobHandle, OpenFile, OpenJob, OpenPartition};

/// A file that all ranks have to close.
pub enum FileToClose {
    Import(Arc<OpenFile<JobImport>>),
    Mesh(Arc<OpenFile<JobMesh>>),
}

fn pointer<H>(number: usize) -> *const H {
    std::ptr::without_provenance(number)
}

impl OpenJob {
    pub fn new(job: ArrayJob) -> OpenJob {
        OpenJob { job, handles: Mutex::default() }
    }

    fn give<H: Handle>(&self, object: H::Target, kind: impl FnOnce(usize) -> JobHandle) -> *mut H
    where
        H::Target: Sized,
    {
        let handle: *mut H = give(Arc::new(object));
        lock(&self.handles).push(kind(handle.addr()));
        handle
    }

    /// A handle of a group.
    pub fn give_group(&self, group: ArrayGroup) -> *mut fs_group {
        self.give(group, JobHandle::Group)
    }

    /// A handle of an import.
    pub fn give_import(self: &Arc<Self>, import: JobImport, order: StorageOrder) -> *mut fs_import {
        self.give(OpenFile { owner: self.clone(), order, file: Mutex::new(Some(import)) }, JobHandle::Import)
    }

    /// A handle of a mesh.
    pub fn give_mesh(self: &Arc<Self>, mesh: JobMesh, order: StorageOrder) -> *mut fs_mesh {
        self.give(OpenFile { owner: self.clone(), order, file: Mutex::new(Some(mesh)) }, JobHandle::Mesh)
    }

    /// A handle of a partition.
    pub fn give_partition(self: &Arc<Self>, part: JobPartition) -> *mut fs_partition {
        self.give(OpenPartition { owner: self.clone(), part }, JobHandle::Partition)
    }

    fn forget(&self, number: usize) {
        lock(&self.handles).retain(|handle| {
            let (JobHandle::Group(known)
            | JobHandle::Import(known)
            | JobHandle::Mesh(known)
            | JobHandle::Partition(known)) = *handle;
            known != number
        });
    }

    /// Ends all handles; returns the files that are still open.
    pub fn end(&self) -> Vec<FileToClose> {
        let handles = std::mem::take(&mut *lock(&self.handles));
        let ended = |handle| match handle {
            JobHandle::Group(number) => {
                drop(take(pointer::<fs_group>(number)));
                None
            }
            JobHandle::Partition(number) => {
                drop(take(pointer::<fs_partition>(number)));
                None
            }
            JobHandle::Import(number) => take(pointer::<fs_import>(number)).ok().map(FileToClose::Import),
            JobHandle::Mesh(number) => take(pointer::<fs_mesh>(number)).ok().map(FileToClose::Mesh),
        };
        handles.into_iter().filter_map(ended).collect()
    }

    /// Collective: ends all handles and closes all files. Returns the first error.
    pub fn close_files(&self) -> Result<()> {
        let mut first = Ok(());
        for file in self.end() {
            let closed = match file {
                FileToClose::Import(file) => file.close(JobImport::close),
                FileToClose::Mesh(file) => file.close(JobMesh::close),
            };
            first = first.and(closed);
        }
        first
    }
}

impl<T> OpenFile<T> {
    /// Uses the file. A thread that closes it at the same time waits.
    pub fn with<R>(&self, act: impl FnOnce(&T) -> Result<R>) -> Result<R> {
        let file = lock(&self.file);
        match &*file {
            Some(file) => act(file),
            None => Err(self.was_closed()),
        }
    }

    fn close(&self, close: impl FnOnce(T) -> Result<()>) -> Result<()> {
        let file = lock(&self.file).take();
        close(file.ok_or_else(|| self.was_closed())?)
    }

    /// The error for a file that another thread closed. Other ranks need no report: they close the file, too.
    fn was_closed(&self) -> Error {
        Code::Closed.error("the file was closed")
    }
}

/// Collective: closes an import. Does nothing with null.
pub fn close_import(handle: *mut fs_import) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let file = take(handle)?;
    file.owner.forget(handle.addr());
    file.close(JobImport::close)
}

/// Collective: closes a mesh. Does nothing with null.
pub fn close_mesh(handle: *mut fs_mesh) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let file = take(handle)?;
    file.owner.forget(handle.addr());
    file.close(JobMesh::close)
}

/// Frees a partition. Does nothing with null.
pub fn free_partition(handle: *mut fs_partition) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let part = take(handle)?;
    part.owner.forget(handle.addr());
    Ok(())
}
