! Distributed arrays for Fortran: jobs, whose ranks write and read groups of arrays together. Over the C library.
!
! All calls on jobs, groups, imports, meshes and partitions but those of which it is said are collective: all ranks make
! them, in one order. What fails on one rank fails on all. Errors are those of the module fieldstone: `ierr`, or a stop
! with the message.
!
! Order: the data are Fortran arrays, whose shape is the local shape of the view. A group is of order 'F' where nothing
! else is said: the first dimension varies fastest in files, and what is a(nx, ny) here is read in C and Python as an
! array of shape (ny, nx), as with fs_archive. In a group of order 'C' the same array is one of shape (nx, ny) there;
! the library turns it round. A set whose first extent is FS_VARYING needs order 'C'.
!
! Indices count from 1, in boxes and maps; an entry 0 of a map is no element. The kinds of data are integer(4),
! integer(8), real(4), real(8), complex(4), complex(8), of any rank; what is not contiguous is copied by the compiler.
!
! Compile fieldstone.f90, fieldstone_arrays_types.f90, fieldstone_jobs.f90, fieldstone_views.f90, fieldstone_groups.f90,
! fieldstone_imports.f90, fieldstone_meshes.f90 and fieldstone_partitions.f90 before this file, which brings them together.
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
