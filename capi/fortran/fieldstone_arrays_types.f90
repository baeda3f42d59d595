! Distributed arrays for Fortran, internal: types, structures of the C header, texts. Programs use
! the module fieldstone_arrays, which exports everything public.
module fieldstone_arrays_types
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fs_finish, FS_INVALID
  implicit none
  public

  !> As the first extent of a set: the extent differs from step to step and is the sum over all
  !> ranks.
  integer, parameter :: FS_VARYING = -1

  !> A job. A copy is the same job, and so with the types below. The library owns the object behind
  !> a handle.
  type :: fieldstone_job
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> A group of a job; it ends with the job, as do imports, meshes and partitions.
  type :: fieldstone_group
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> The part of arrays that a rank holds: made by the fs_view_ calls, and by partitions.
  type :: fieldstone_view
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> An outside file that all ranks have open.
  type :: fieldstone_import
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> An unstructured mesh that all ranks have open.
  type :: fieldstone_mesh
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> A rank's part of a mesh.
  type :: fieldstone_partition
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> The ranks of a job: made by the module fieldstone_mpi. Without one the process is alone.
  type :: fieldstone_comm
    type(c_ptr) :: address = c_null_ptr
  end type

  integer, parameter :: NAME_SIZE = 257, RANK_MAX = 32, HINT_SIZE = 1025

  !> An attribute: made by fs_attr. gfortran 12 does not free its bytes if it was in an array
  !> constructor.
  type :: fieldstone_attr
    character(kind=c_char, len=NAME_SIZE) :: name = c_null_char, dtype = c_null_char
    integer :: count = 0
    integer(c_int8_t), allocatable :: bytes(:)
  end type

  !> A hint: made by fs_hint.
  type :: fieldstone_hint
    character(kind=c_char, len=NAME_SIZE) :: key = c_null_char
    character(kind=c_char, len=HINT_SIZE) :: value = c_null_char
  end type

  !> fs_attr(name, value): an attribute of a group, a set or a mesh. The value is a text, or a
  !> number or rank-1 array of integer(4), integer(8), real(4) or real(8).
  interface fs_attr
    module procedure attr_text, attr_i4, attr_i8, attr_r4, attr_r8, attr_row_i4, attr_row_i8, attr_row_r4, attr_row_r8
  end interface

  !> fs_hint(key, value): a hint of MPI_Info, such as fs_hint('cb_nodes', 4), for the files of a job
  !> or a group, or for one call.
  interface fs_hint
    module procedure hint_of, hint_of_number
  end interface

  ! The structures of the C header.
  type, bind(c) :: c_attr
    type(c_ptr) :: name, dtype
    integer(c_size_t) :: count
    type(c_ptr) :: values
  end type

  type, bind(c) :: c_hint
    type(c_ptr) :: key, value
  end type

  interface
    function c_fail(kind, message, hint) bind(c, name='fs_fail') result(status)
      import :: c_char, c_int, c_ptr
      integer(c_int), value :: kind
      character(kind=c_char), intent(in) :: message(*)
      type(c_ptr), value :: hint
      integer(c_int) :: status
    end function
  end interface

contains

  !> Text for C. Blanks at the end are Fortran's padding and are left out.
  function c_text(text) result(c)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: c
    c = trim(text)//c_null_char
  end function

  function fortran_text(letters) result(text)
    character(kind=c_char), intent(in) :: letters(:)
    character(len=:), allocatable :: text
    integer :: i, length
    length = 0
    do while (letters(length + 1) /= c_null_char)
      length = length + 1
    end do
    allocate (character(len=length) :: text)
    do i = 1, length
      text(i:i) = letters(i)
    end do
  end function

  !> Names for C, and their addresses; at least one of each, so that there is an address to pass.
  subroutine named(sets, texts, names)
    character(len=*), intent(in), optional :: sets(:)
    character(kind=c_char, len=NAME_SIZE), allocatable, target, intent(out) :: texts(:)
    type(c_ptr), allocatable, target, intent(out) :: names(:)
    integer :: i, n
    n = 0
    if (present(sets)) n = size(sets)
    allocate (texts(n), names(max(1, n)))
    names = c_null_ptr
    do i = 1, n
      texts(i) = c_text(sets(i))
      names(i) = c_loc(texts(i))
    end do
  end subroutine

  subroutine refuse(what, ierr)
    character(len=*), intent(in) :: what
    integer, intent(out), optional :: ierr
    call fs_finish(c_fail(FS_INVALID, c_text(what), c_null_ptr), ierr)
  end subroutine

  !> Bytes from one element to the next, of contiguous data with these extents.
  function strides_of(extents, element) result(strides)
    integer(c_int64_t), intent(in) :: extents(:)
    integer, intent(in) :: element
    integer(c_int64_t) :: strides(size(extents))
    integer :: d
    if (size(extents) > 0) strides(1) = element
    do d = 2, size(extents)
      strides(d) = strides(d - 1) * max(1_c_int64_t, extents(d - 1))
    end do
  end function

  function attr_text(name, value) result(attr)
    character(len=*), intent(in) :: name, value
    type(fieldstone_attr) :: attr
    attr = attr_of(name, 'S1', len(value), transfer(value, [0_c_int8_t], len(value)))
  end function

  function attr_i4(name, value) result(attr)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: value
    type(fieldstone_attr) :: attr
    attr = attr_row_i4(name, [value])
  end function

  function attr_row_i4(name, value) result(attr)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: value(:)
    type(fieldstone_attr) :: attr
    attr = attr_of(name, 'i4', size(value), transfer(value, [0_c_int8_t], 4 * size(value)))
  end function

  function attr_i8(name, value) result(attr)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in) :: value
    type(fieldstone_attr) :: attr
    attr = attr_row_i8(name, [value])
  end function

  function attr_row_i8(name, value) result(attr)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in) :: value(:)
    type(fieldstone_attr) :: attr
    attr = attr_of(name, 'i8', size(value), transfer(value, [0_c_int8_t], 8 * size(value)))
  end function

  function attr_r4(name, value) result(attr)
    character(len=*), intent(in) :: name
    real(c_float), intent(in) :: value
    type(fieldstone_attr) :: attr
    attr = attr_row_r4(name, [value])
  end function

  function attr_row_r4(name, value) result(attr)
    character(len=*), intent(in) :: name
    real(c_float), intent(in) :: value(:)
    type(fieldstone_attr) :: attr
    attr = attr_of(name, 'f4', size(value), transfer(value, [0_c_int8_t], 4 * size(value)))
  end function

  function attr_r8(name, value) result(attr)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: value
    type(fieldstone_attr) :: attr
    attr = attr_row_r8(name, [value])
  end function

  function attr_row_r8(name, value) result(attr)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: value(:)
    type(fieldstone_attr) :: attr
    attr = attr_of(name, 'f8', size(value), transfer(value, [0_c_int8_t], 8 * size(value)))
  end function

  function attr_of(name, dtype, count, bytes) result(attr)
    character(len=*), intent(in) :: name, dtype
    integer, intent(in) :: count
    integer(c_int8_t), intent(in) :: bytes(:)
    type(fieldstone_attr) :: attr
    attr%name = c_text(name)
    attr%dtype = c_text(dtype)
    attr%count = count
    attr%bytes = bytes
  end function

  function hint_of(key, value) result(hint)
    character(len=*), intent(in) :: key, value
    type(fieldstone_hint) :: hint
    hint%key = c_text(key)
    hint%value = c_text(value)
  end function

  function hint_of_number(key, value) result(hint)
    character(len=*), intent(in) :: key
    integer, intent(in) :: value
    type(fieldstone_hint) :: hint
    character(len=12) :: digits
    write (digits, '(i0)') value
    hint = hint_of(key, digits)
  end function

  !> Hints for C: a list of the addresses of their texts, and their number.
  subroutine listed_hints(hints, list, count)
    type(fieldstone_hint), intent(in), optional, target :: hints(:)
    type(c_hint), allocatable, target, intent(out) :: list(:)
    integer(c_int), intent(out) :: count
    integer :: i
    count = 0
    if (present(hints)) count = size(hints)
    allocate (list(max(1, count)))
    list = c_hint(c_null_ptr, c_null_ptr)
    do i = 1, count
      list(i) = c_hint(c_loc(hints(i)%key), c_loc(hints(i)%value))
    end do
  end subroutine

  !> Attributes for C, like hints.
  subroutine listed_attrs(attrs, list, count)
    type(fieldstone_attr), intent(in), optional, target :: attrs(:)
    type(c_attr), allocatable, target, intent(out) :: list(:)
    integer(c_int), intent(out) :: count
    integer :: i
    count = 0
    if (present(attrs)) count = size(attrs)
    allocate (list(max(1, count)))
    list = c_attr(c_null_ptr, c_null_ptr, 0, c_null_ptr)
    do i = 1, count
      list(i) = c_attr(c_loc(attrs(i)%name), c_loc(attrs(i)%dtype), int(attrs(i)%count, c_size_t), c_null_ptr)
      if (size(attrs(i)%bytes) > 0) list(i)%values = c_loc(attrs(i)%bytes)
    end do
  end subroutine
end module
