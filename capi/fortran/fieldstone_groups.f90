! Writes and reads of groups, one procedure for each kind. Programs use the module fieldstone_arrays.
module fieldstone_groups
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fs_finish
  use fieldstone_arrays_types
  implicit none
  private

  public :: fs_group_write, fs_group_read

  !> fs_group_write(group, set, step, data [, wait] [, hints] [, ierr]): collective. With
  !> wait=.false. the call returns after the exchange of elements: the program may change the data,
  !> and a thread writes the elements to files. `hints` apply to this call, in addition to the
  !> group's.
  interface fs_group_write
    module procedure write_i4, write_i8, write_r4, write_r8, write_c4, write_c8
  end interface

  !> fs_group_read(group, set, step, data [, view] [, hints] [, ierr]): collective; reads by the
  !> view, or without one by the set's.
  interface fs_group_read
    module procedure read_i4, read_i8, read_r4, read_r8, read_c4, read_c8
  end interface

  interface
    function c_write(group, set, step, dtype, ndim, shape, strides, data, wait, nhints, hints) bind(c, &
        name='fs_group_write_with') result(status)
      import :: c_char, c_hint, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      character(kind=c_char), intent(in) :: set(*)
      integer(c_int64_t), value :: step
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int64_t), intent(in) :: strides(*)
      type(c_ptr), value :: data
      integer(c_int), value :: wait, nhints
      type(c_hint), intent(in) :: hints(*)
      integer(c_int) :: status
    end function

    function c_read(group, set, step, view, dtype, ndim, shape, strides, data, nhints, hints) bind(c, &
        name='fs_group_read_with') result(status)
      import :: c_char, c_hint, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      character(kind=c_char), intent(in) :: set(*)
      integer(c_int64_t), value :: step
      type(c_ptr), value :: view
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int64_t), intent(in) :: strides(*)
      type(c_ptr), value :: data
      integer(c_int), value :: nhints
      type(c_hint), intent(in) :: hints(*)
      integer(c_int) :: status
    end function
  end interface

contains

  subroutine write_any(group, set, step, dtype, element, address, extents, wait, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set, dtype
    integer, intent(in) :: step, element
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:)
    logical, intent(in), optional :: wait
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    type(c_hint), allocatable :: list(:)
    integer(c_int) :: waits, count
    waits = 1
    if (present(wait)) waits = merge(1, 0, wait)
    call listed_hints(hints, list, count)
    call fs_finish(c_write(group%handle, c_text(set), int(step, c_int64_t), c_text(dtype), size(extents), extents, &
      strides_of(extents, element), address, waits, count, list), ierr)
  end subroutine

  subroutine read_any(group, set, step, dtype, element, address, extents, view, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set, dtype
    integer, intent(in) :: step, element
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:)
    type(fieldstone_view), intent(in), optional :: view
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    type(c_hint), allocatable :: list(:)
    type(c_ptr) :: by
    integer(c_int) :: count
    by = c_null_ptr
    if (present(view)) by = view%handle
    call listed_hints(hints, list, count)
    call fs_finish(c_read(group%handle, c_text(set), int(step, c_int64_t), by, c_text(dtype), size(extents), extents, &
      strides_of(extents, element), address, count, list), ierr)
  end subroutine

  ! ---- integer(c_int32_t): numpy's i4

  subroutine write_i4(group, set, step, data, wait, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int32_t), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'i4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, hints, ierr)
  end subroutine

  subroutine read_i4(group, set, step, data, view, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int32_t), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'i4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      view, hints, ierr)
  end subroutine

  ! ---- integer(c_int64_t): numpy's i8

  subroutine write_i8(group, set, step, data, wait, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int64_t), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'i8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, hints, ierr)
  end subroutine

  subroutine read_i8(group, set, step, data, view, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int64_t), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'i8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      view, hints, ierr)
  end subroutine

  ! ---- real(c_float): numpy's f4

  subroutine write_r4(group, set, step, data, wait, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_float), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'f4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, hints, ierr)
  end subroutine

  subroutine read_r4(group, set, step, data, view, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_float), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'f4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      view, hints, ierr)
  end subroutine

  ! ---- real(c_double): numpy's f8

  subroutine write_r8(group, set, step, data, wait, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_double), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'f8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, hints, ierr)
  end subroutine

  subroutine read_r8(group, set, step, data, view, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_double), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'f8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      view, hints, ierr)
  end subroutine

  ! ---- complex(c_float_complex): numpy's c8

  subroutine write_c4(group, set, step, data, wait, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_float_complex), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'c8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, hints, ierr)
  end subroutine

  subroutine read_c4(group, set, step, data, view, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_float_complex), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'c8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      view, hints, ierr)
  end subroutine

  ! ---- complex(c_double_complex): numpy's c16

  subroutine write_c8(group, set, step, data, wait, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_double_complex), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'c16', 16, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, hints, ierr)
  end subroutine

  subroutine read_c8(group, set, step, data, view, hints, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_double_complex), intent(inout), target, contiguous :: data(..)
    type(fieldstone_view), intent(in), optional :: view
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'c16', 16, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      view, hints, ierr)
  end subroutine
end module
