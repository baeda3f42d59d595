! Distributed arrays for Fortran: jobs, whose ranks write and read groups of arrays together. It
! calls the C library.
!
! All calls on jobs, groups, imports, meshes and partitions are collective, except those documented
! otherwise: all ranks make them, in the same order. If a call fails on one rank, it fails on all.
! Errors are those of the module fieldstone: `ierr`, or a stop with the message.
!
! Order: the data are Fortran arrays with the local shape of the view. A group has order 'F' by
! default: the first dimension varies fastest in files, and C and Python read a(nx, ny) as an array
! of shape (ny, nx), as with fs_archive. In a group of order 'C' they read the same array with shape
! (nx, ny); the library transposes it. A set whose first extent is FS_VARYING needs order 'C'.
!
! Indices count from 1, in boxes and maps; an entry 0 of a map means no element. The kinds of data
! are integer(4), integer(8), real(4), real(8), complex(4), complex(8), of any rank. The compiler
! copies arrays that are not contiguous.
!
! Before this file, compile fieldstone.f90, fieldstone_arrays_types.f90, fieldstone_jobs.f90,
! fieldstone_views.f90, fieldstone_groups.f90, fieldstone_imports.f90, fieldstone_meshes.f90 and
! fieldstone_partitions.f90. This module exports all of them.
module fieldstone_arrays
  use fieldstone_arrays_types, only: FS_VARYING, fieldstone_job, fieldstone_group, fieldstone_view, fieldstone_import, &
    fieldstone_mesh, fieldstone_partition, fieldstone_comm, fieldstone_attr, fieldstone_hint, fs_attr, fs_hint
  use fieldstone_jobs
  use fieldstone_views
  use fieldstone_groups
  use fieldstone_imports
  use fieldstone_meshes
  use fieldstone_partitions
  implicit none
  public
end module
