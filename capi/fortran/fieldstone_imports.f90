! Outside files that a job reads through views: raw and netCDF files. Programs use the module
! fieldstone_arrays.
!
! Order: dimensions are in Fortran's order, which reverses those of a netCDF file: ncdump's
! xyz(node, 3) is xyz(3, nodes) here, in views and data. The catalog records path, size, time and
! variables of an import.
module fieldstone_imports
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fs_finish, FS_OK
  use fieldstone_arrays_types
  implicit none
  private

  public :: fieldstone_raw_variable, fs_raw_variable, fs_arrays_import_raw, fs_arrays_import_netcdf
  public :: fs_import_count, fs_import_variable, fs_import_local_shape, fs_import_read, fs_import_close

  !> A variable of a raw file: made by fs_raw_variable.
  type :: fieldstone_raw_variable
    private
    character(kind=c_char, len=NAME_SIZE) :: name = c_null_char, dtype = c_null_char
    integer(c_int64_t) :: offset = 0
    integer(c_int) :: ndim = 0
    integer(c_int64_t) :: shape(RANK_MAX) = 0
  end type

  !> fs_raw_variable(name, dtype, offset, shape): `dtype` is the type in the file, with its byte
  !> order: '<i4', '>f8'; `offset` is the position of the first element, in bytes from 0.
  interface fs_raw_variable
    module procedure raw_variable, raw_variable_far
  end interface

  !> fs_import_read(import, name, data [, view] [, ierr]): collective; reads this rank's part by the
  !> view, or without one its share of a balanced cut of the last dimension. The data have the
  !> variable's type, in this machine's byte order.
  interface fs_import_read
    module procedure read_i4, read_i8, read_r4, read_r8, read_c4, read_c8
  end interface

  ! The structures of the C header.
  type, bind(c) :: c_raw_variable
    type(c_ptr) :: name, dtype
    integer(c_int64_t) :: offset
    integer(c_int) :: ndim
    type(c_ptr) :: shape
  end type

  type, bind(c) :: c_import_options
    integer(c_int) :: checksum
    type(c_ptr) :: order
  end type

  integer, parameter :: DTYPE_SIZE = 32

  type, bind(c) :: c_variable_info
    character(kind=c_char) :: name(NAME_SIZE), dtype(DTYPE_SIZE)
    integer(c_int) :: ndim
    integer(c_int64_t) :: shape(RANK_MAX)
  end type

  interface
    function c_import_raw(job, path, nvariables, variables, options, import) bind(c, &
        name='fs_arrays_import_raw') result(status)
      import :: c_char, c_import_options, c_int, c_ptr, c_raw_variable
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: nvariables
      type(c_raw_variable), intent(in) :: variables(*)
      type(c_import_options), intent(in) :: options
      type(c_ptr), intent(out) :: import
      integer(c_int) :: status
    end function

    function c_import_netcdf(job, path, nnames, names, options, import) bind(c, &
        name='fs_arrays_import_netcdf') result(status)
      import :: c_char, c_import_options, c_int, c_ptr
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: nnames
      type(c_ptr), value :: names
      type(c_import_options), intent(in) :: options
      type(c_ptr), intent(out) :: import
      integer(c_int) :: status
    end function

    function c_import_count(import, count) bind(c, name='fs_import_count') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: import
      integer(c_int), intent(out) :: count
      integer(c_int) :: status
    end function

    function c_import_variable(import, number, info) bind(c, name='fs_import_variable') result(status)
      import :: c_int, c_ptr, c_variable_info
      type(c_ptr), value :: import
      integer(c_int), value :: number
      type(c_variable_info), intent(out) :: info
      integer(c_int) :: status
    end function

    function c_local_shape(import, name, view, ndim, shape) bind(c, name='fs_import_local_shape') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: import
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: view
      integer(c_int), intent(out) :: ndim
      integer(c_int64_t), intent(out) :: shape(*)
      integer(c_int) :: status
    end function

    function c_read(import, name, view, dtype, ndim, shape, strides, data) bind(c, &
        name='fs_import_read') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: import
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: view
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int64_t), intent(in) :: strides(*)
      type(c_ptr), value :: data
      integer(c_int) :: status
    end function

    function c_close(import) bind(c, name='fs_import_close') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: import
      integer(c_int) :: status
    end function
  end interface

contains

  function raw_variable(name, dtype, offset, shape) result(variable)
    character(len=*), intent(in) :: name, dtype
    integer, intent(in) :: offset
    integer, intent(in) :: shape(:)
    type(fieldstone_raw_variable) :: variable
    variable = raw_variable_far(name, dtype, int(offset, c_int64_t), shape)
  end function

  function raw_variable_far(name, dtype, offset, shape) result(variable)
    character(len=*), intent(in) :: name, dtype
    integer(c_int64_t), intent(in) :: offset
    integer, intent(in) :: shape(:)
    type(fieldstone_raw_variable) :: variable
    variable%name = c_text(name)
    variable%dtype = c_text(dtype)
    variable%offset = offset
    variable%ndim = size(shape)
    variable%shape(:min(size(shape), RANK_MAX)) = shape(:min(size(shape), RANK_MAX))
  end function

  !> Imports a raw file, whose variables the caller describes. Collective. Reads none of them yet,
  !> except with `checksum`, which the catalog records. The import ends with its job.
  subroutine fs_arrays_import_raw(import, job, path, variables, checksum, ierr)
    type(fieldstone_import), intent(out) :: import
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: path
    type(fieldstone_raw_variable), intent(in), target :: variables(:)
    logical, intent(in), optional :: checksum
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=2), target :: order
    type(c_raw_variable) :: given(max(1, size(variables)))
    integer :: i
    order = c_text('F')
    do i = 1, size(variables)
      given(i) = c_raw_variable(c_loc(variables(i)%name), c_loc(variables(i)%dtype), variables(i)%offset, &
        variables(i)%ndim, c_loc(variables(i)%shape))
      ! The library refuses numbers that do not fit, and negative ones.
      if (any(variables(i)%shape < 0) .or. variables(i)%offset < 0) given(i)%ndim = -1
    end do
    call fs_finish(c_import_raw(job%handle, c_text(path), size(variables), given, options_of(checksum, order), &
      import%handle), ierr)
  end subroutine

  !> Imports variables of a netCDF classic file; all if `names` is absent. Collective.
  subroutine fs_arrays_import_netcdf(import, job, path, names, checksum, ierr)
    type(fieldstone_import), intent(out) :: import
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: path
    character(len=*), intent(in), optional :: names(:)
    logical, intent(in), optional :: checksum
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=2), target :: order
    character(kind=c_char, len=NAME_SIZE), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: addresses(:)
    order = c_text('F')
    call named(names, texts, addresses)
    call fs_finish(c_import_netcdf(job%handle, c_text(path), size(texts), c_loc(addresses), &
      options_of(checksum, order), import%handle), ierr)
  end subroutine

  function options_of(checksum, order) result(options)
    logical, intent(in), optional :: checksum
    character(kind=c_char, len=2), intent(in), target :: order
    type(c_import_options) :: options
    options = c_import_options(0, c_loc(order))
    if (present(checksum)) options%checksum = merge(1, 0, checksum)
  end function

  !> Number of variables. Not collective.
  integer function fs_import_count(import)
    type(fieldstone_import), intent(in) :: import
    integer(c_int) :: count
    call fs_finish(c_import_count(import%handle, count))
    fs_import_count = count
  end function

  !> Gets name, type in the file and shape of a variable, by its number from 1. Not collective.
  subroutine fs_import_variable(import, number, name, dtype, shape, ierr)
    type(fieldstone_import), intent(in) :: import
    integer, intent(in) :: number
    character(len=:), allocatable, intent(out), optional :: name, dtype
    integer(c_int64_t), allocatable, intent(out), optional :: shape(:)
    integer, intent(out), optional :: ierr
    type(c_variable_info) :: info
    integer :: status
    status = c_import_variable(import%handle, number - 1, info)
    if (status == FS_OK) then
      if (present(name)) name = fortran_text(info%name)
      if (present(dtype)) dtype = fortran_text(info%dtype)
      if (present(shape)) shape = info%shape(:info%ndim)
    end if
    call fs_finish(status, ierr)
  end subroutine

  !> Gets the shape of this rank's part of a variable by a view, or without one of its share.
  !> Collective.
  subroutine fs_import_local_shape(import, name, shape, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name
    integer(c_int64_t), allocatable, intent(out) :: shape(:)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: extents(RANK_MAX)
    integer(c_int) :: ndim
    integer :: status
    type(c_ptr) :: by
    by = c_null_ptr
    if (present(view)) by = view%handle
    status = c_local_shape(import%handle, c_text(name), by, ndim, extents)
    if (status /= FS_OK) ndim = 0
    shape = extents(:ndim)
    call fs_finish(status, ierr)
  end subroutine

  !> Closes the file. Collective.
  subroutine fs_import_close(import, ierr)
    type(fieldstone_import), intent(inout) :: import
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = import%handle
    import%handle = c_null_ptr
    call fs_finish(c_close(handle), ierr)
  end subroutine

  subroutine read_any(import, name, dtype, element, address, extents, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name, dtype
    integer, intent(in) :: element
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    type(c_ptr) :: by
    by = c_null_ptr
    if (present(view)) by = view%handle
    call fs_finish(c_read(import%handle, c_text(name), by, c_text(dtype), size(extents), extents, &
      strides_of(extents, element), address), ierr)
  end subroutine

  ! ---- integer(c_int32_t): numpy's i4

  subroutine read_i4(import, name, data, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(import, name, 'i4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], view, ierr)
  end subroutine

  ! ---- integer(c_int64_t): numpy's i8

  subroutine read_i8(import, name, data, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(import, name, 'i8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], view, ierr)
  end subroutine

  ! ---- real(c_float): numpy's f4

  subroutine read_r4(import, name, data, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name
    real(c_float), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(import, name, 'f4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], view, ierr)
  end subroutine

  ! ---- real(c_double): numpy's f8

  subroutine read_r8(import, name, data, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name
    real(c_double), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(import, name, 'f8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], view, ierr)
  end subroutine

  ! ---- complex(c_float_complex): numpy's c8

  subroutine read_c4(import, name, data, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name
    complex(c_float_complex), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(import, name, 'c8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], view, ierr)
  end subroutine

  ! ---- complex(c_double_complex): numpy's c16

  subroutine read_c8(import, name, data, view, ierr)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: name
    complex(c_double_complex), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(import, name, 'c16', 16, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], view, ierr)
  end subroutine
end module
