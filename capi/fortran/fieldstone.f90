! Fieldstone for Fortran: archive arrays by key, flush, get them back. It calls the C library of
! capi/.
!
! Errors: every call takes an optional `ierr`. If it is present, it becomes one of the FS_ numbers
! below, FS_OK for success, and fs_error_message() describes the error. If it is absent, an error
! stops the program with its message.
!
! Order: the store keeps the memory of a Fortran array as it is and transposes nothing. Fortran's
! first dimension varies fastest, and so does the store's last one. An array a(nx, ny) is therefore
! stored as an array of shape (ny, nx), and C and Python read it so. Everything in this module is in
! Fortran's order.
!
! Boxes: `start` counts from 1, as Fortran does, and `shape` is the shape of the whole array. The
! store itself, C and Python count from 0; this module converts. Both are default integers, or
! integer(c_int64_t) for arrays that need more.
!
! The kinds of fs_archive and fs_get are integer(4), integer(8), real(4), real(8), complex(4),
! complex(8), of any rank. The compiler copies arrays that are not contiguous. Below, each kind has
! the same five procedures.
module fieldstone
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private

  public :: fieldstone_store
  public :: fs_open, fs_close, fs_flush, fs_discard
  public :: fs_archive, fs_archive_bytes, fs_get, fs_get_alloc, fs_get_bytes, fs_size, fs_shape
  public :: fs_error_kind, fs_error_code, fs_error_is_retryable, fs_error_message, fs_error_hint, fs_version
  public :: fs_store_handle, fs_finish

  !> Result of a call.
  integer, parameter, public :: FS_OK = 0, FS_INTERNAL = 1, FS_INVALID = 2, FS_NOT_FOUND = 3, &
    FS_CONFLICT = 4, FS_CORRUPT = 5, FS_DENIED = 6, FS_UNAVAILABLE = 7

  !> An open store. A copy is the same store.
  type :: fieldstone_store
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> fs_archive(store, key, data [, start, shape] [, ierr]): archives a whole array, or with `start`
  !> and `shape` a piece of an array whose other pieces come from elsewhere.
  interface fs_archive
    module procedure archive_i4, archive_i8, archive_r4, archive_r8, archive_c4, archive_c8, &
      archive_far_i4, archive_far_i8, archive_far_r4, archive_far_r8, archive_far_c4, archive_far_c8
  end interface

  !> fs_archive_bytes(store, key, data [, ierr]): archives opaque bytes, a character variable or
  !> integer(1) array.
  interface fs_archive_bytes
    module procedure archive_text, archive_i1
  end interface

  !> fs_get(store, key, data [, start] [, ierr]): reads the whole array into `data`, which must have
  !> its kind and shape; with `start`, the box that begins there and has the shape of `data`.
  interface fs_get
    module procedure get_i4, get_i8, get_r4, get_r8, get_c4, get_c8, &
      get_far_i4, get_far_i8, get_far_r4, get_far_r8, get_far_c4, get_far_c8
  end interface

  !> fs_get_alloc(store, key, data [, ierr]): reads the whole array into an allocatable one of rank
  !> 1 to 4.
  interface fs_get_alloc
    module procedure get_alloc_i4, get_alloc_i8, get_alloc_r4, get_alloc_r8, get_alloc_c4, get_alloc_c8
  end interface

  !> The struct fs_field_info of the C header.
  type, bind(c) :: field_info
    integer(c_int64_t) :: nbytes
    integer(c_int32_t) :: ndim, complete
    character(kind=c_char) :: dtype(32)
    integer(c_int64_t) :: shape(32)
  end type

  interface
    function c_open(url, mode, schema, store) bind(c, name='fs_open') result(status)
      import :: c_char, c_int, c_ptr
      character(kind=c_char), intent(in) :: url(*), mode(*)
      type(c_ptr), value :: schema
      type(c_ptr), intent(out) :: store
      integer(c_int) :: status
    end function

    function c_close(store) bind(c, name='fs_close') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: store
      integer(c_int) :: status
    end function

    function c_flush(store) bind(c, name='fs_flush') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: store
      integer(c_int) :: status
    end function

    function c_discard(store) bind(c, name='fs_discard') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: store
      integer(c_int) :: status
    end function

    function c_archive_bytes(store, key, data, length) bind(c, name='fs_archive_bytes') result(status)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: store, data
      character(kind=c_char), intent(in) :: key(*)
      integer(c_size_t), value :: length
      integer(c_int) :: status
    end function

    function c_archive_array(store, key, dtype, ndim, shape, data) bind(c, name='fs_archive_array') &
        result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: store, data
      character(kind=c_char), intent(in) :: key(*), dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int) :: status
    end function

    function c_archive_piece(store, key, dtype, ndim, shape, start, count, data) &
        bind(c, name='fs_archive_piece') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: store, data
      character(kind=c_char), intent(in) :: key(*), dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*), start(*), count(*)
      integer(c_int) :: status
    end function

    function c_info(store, key, info) bind(c, name='fs_info') result(status)
      import :: c_char, c_int, c_ptr, field_info
      type(c_ptr), value :: store
      character(kind=c_char), intent(in) :: key(*)
      type(field_info), intent(out) :: info
      integer(c_int) :: status
    end function

    function c_get(store, key, buffer, capacity, nbytes) bind(c, name='fs_get') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: store, buffer
      character(kind=c_char), intent(in) :: key(*)
      integer(c_size_t), value :: capacity
      integer(c_int64_t), intent(out) :: nbytes
      integer(c_int) :: status
    end function

    function c_get_array(store, key, dtype, ndim, shape, buffer) bind(c, name='fs_get_array') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: store, buffer
      character(kind=c_char), intent(in) :: key(*), dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int) :: status
    end function

    function c_get_piece(store, key, dtype, ndim, start, count, buffer) bind(c, name='fs_get_piece') &
        result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: store, buffer
      character(kind=c_char), intent(in) :: key(*), dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: start(*), count(*)
      integer(c_int) :: status
    end function

    function c_fail(status, message, hint) bind(c, name='fs_fail') result(same)
      import :: c_char, c_int
      integer(c_int), value :: status
      character(kind=c_char), intent(in) :: message(*), hint(*)
      integer(c_int) :: same
    end function

    function c_error_kind() bind(c, name='fs_error_kind') result(status)
      import :: c_int
      integer(c_int) :: status
    end function

    function c_error_code() bind(c, name='fs_error_code') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_error_is_retryable() bind(c, name='fs_error_is_retryable') result(yes)
      import :: c_int
      integer(c_int) :: yes
    end function

    function c_error_message() bind(c, name='fs_error_message') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_error_hint() bind(c, name='fs_error_hint') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_version() bind(c, name='fs_version') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_strlen(text) bind(c, name='strlen') result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  ! ---- stores

  !> Opens a store: `url` is a folder, or 'memory:'. `mode` is 'a' (to read and archive, the
  !> default), 'r', 'r+' (to read and archive in an existing store) or 'x' (to create a new store).
  !> `schema` is 'simulation', 'mars', a file or the text of a schema.
  subroutine fs_open(store, url, mode, schema, ierr)
    type(fieldstone_store), intent(out) :: store
    character(len=*), intent(in) :: url
    character(len=*), intent(in), optional :: mode, schema
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=:), allocatable :: mode_text
    character(kind=c_char, len=:), allocatable, target :: schema_text
    type(c_ptr) :: schema_address
    mode_text = c_text('a')
    if (present(mode)) mode_text = c_text(mode)
    schema_address = c_null_ptr
    if (present(schema)) then
      schema_text = c_text(schema)
      schema_address = c_loc(schema_text)
    end if
    call finish(c_open(c_text(url), mode_text, schema_address, store%handle), ierr)
  end subroutine

  !> Flushes and closes the store. It is closed even if this fails.
  subroutine fs_close(store, ierr)
    type(fieldstone_store), intent(inout) :: store
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = store%handle
    store%handle = c_null_ptr
    call finish(c_close(handle), ierr)
  end subroutine

  !> Makes all fields archived through this store durable and visible, all or nothing.
  subroutine fs_flush(store, ierr)
    type(fieldstone_store), intent(in) :: store
    integer, intent(out), optional :: ierr
    call finish(c_flush(store%handle), ierr)
  end subroutine

  !> Discards all fields archived through this store and not flushed.
  subroutine fs_discard(store, ierr)
    type(fieldstone_store), intent(in) :: store
    integer, intent(out), optional :: ierr
    call finish(c_discard(store%handle), ierr)
  end subroutine

  ! ---- bytes

  subroutine archive_text(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    character(kind=c_char, len=*), intent(in), target :: data
    integer, intent(out), optional :: ierr
    call finish(c_archive_bytes(store%handle, c_text(key), c_loc(data), len(data, c_size_t)), ierr)
  end subroutine

  subroutine archive_i1(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int8_t), intent(in), target, contiguous :: data(:)
    integer, intent(out), optional :: ierr
    call finish(c_archive_bytes(store%handle, c_text(key), c_loc(data), size(data, kind=c_size_t)), ierr)
  end subroutine

  !> Reads the raw bytes of a field of either kind.
  subroutine fs_get_bytes(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int8_t), allocatable, target, intent(out) :: data(:)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: nbytes, again
    integer :: status
    call fs_size(store, key, nbytes, status)
    if (status == FS_OK) then
      allocate (data(nbytes))
      status = c_get(store%handle, c_text(key), c_loc(data), int(nbytes, c_size_t), again)
      ! Between the two calls another process may have flushed a shorter version.
      if (status == FS_OK .and. again < nbytes) data = data(:again)
    end if
    call finish(status, ierr)
  end subroutine

  ! ---- description of fields

  !> Gets the number of raw bytes of a field.
  subroutine fs_size(store, key, nbytes, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int64_t), intent(out) :: nbytes
    integer, intent(out), optional :: ierr
    type(field_info) :: info
    integer :: status
    status = c_info(store%handle, c_text(key), info)
    nbytes = info%nbytes
    call finish(status, ierr)
  end subroutine

  !> Gets the shape of an array, in Fortran's order; of rank 0 for opaque bytes.
  subroutine fs_shape(store, key, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int64_t), allocatable, intent(out) :: shape(:)
    integer, intent(out), optional :: ierr
    type(field_info) :: info
    integer :: status
    status = c_info(store%handle, c_text(key), info)
    allocate (shape(max(0, info%ndim)))
    shape = info%shape(size(shape):1:-1)
    call finish(status, ierr)
  end subroutine

  ! ---- errors

  !> The number of this thread's last error; FS_OK if it had none.
  integer function fs_error_kind()
    fs_error_kind = c_error_kind()
  end function

  !> The code of this thread's last error, such as 'store-not-found', for a program that reacts to
  !> particular errors.
  function fs_error_code() result(text)
    character(len=:), allocatable :: text
    text = fortran_text(c_error_code())
  end function

  !> Whether the failed call may succeed later without any change.
  logical function fs_error_is_retryable()
    fs_error_is_retryable = c_error_is_retryable() /= 0
  end function

  !> The message of this thread's last failed call.
  function fs_error_message() result(text)
    character(len=:), allocatable :: text
    text = fortran_text(c_error_message())
  end function

  !> A remedy for that error; empty if none is known.
  function fs_error_hint() result(text)
    character(len=:), allocatable :: text
    text = fortran_text(c_error_hint())
  end function

  !> The version of the library.
  function fs_version() result(text)
    character(len=:), allocatable :: text
    text = fortran_text(c_version())
  end function

  ! ---- for the other modules

  !> The C library's handle of the store.
  function fs_store_handle(store) result(handle)
    type(fieldstone_store), intent(in) :: store
    type(c_ptr) :: handle
    handle = store%handle
  end function

  !> Returns the status in `ierr`; without `ierr`, an error stops the program.
  subroutine fs_finish(status, ierr)
    integer, intent(in) :: status
    integer, intent(out), optional :: ierr
    call finish(status, ierr)
  end subroutine

  ! ---- internal procedures

  subroutine finish(status, ierr)
    integer, intent(in) :: status
    integer, intent(out), optional :: ierr
    if (present(ierr)) then
      ierr = status
    else if (status /= FS_OK) then
      write (error_unit, '(2a)') 'fieldstone: ', fs_error_message()
      if (len(fs_error_hint()) > 0) write (error_unit, '(2a)') 'hint: ', fs_error_hint()
      error stop status
    end if
  end subroutine

  !> Text for C. Blanks at the end are Fortran's padding and are left out.
  function c_text(text) result(c)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: c
    c = trim(text)//c_null_char
  end function

  function fortran_text(address) result(text)
    type(c_ptr), intent(in) :: address
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(address, letters, [c_strlen(address)])
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  !> Default integers as 64-bit ones; an empty list for an absent one.
  function wide(numbers)
    integer, intent(in), optional :: numbers(:)
    integer(c_int64_t), allocatable :: wide(:)
    if (present(numbers)) then
      allocate (wide(size(numbers)))
      wide(:) = numbers
    else
      allocate (wide(0))
    end if
  end function

  !> Whether `start` and `shape` fit an array of these extents; if not, sets `status` and the last
  !> error.
  logical function fits(key, extents, start, shape, status)
    character(len=*), intent(in) :: key
    integer(c_int64_t), intent(in) :: extents(:), start(:), shape(:)
    integer, intent(out) :: status
    character(len=80) :: what
    status = FS_OK
    if (size(start) /= size(extents) .or. size(shape) /= size(extents)) then
      write (what, '(3(a, i0))') 'data of rank ', size(extents), ' with start of ', size(start), &
        ' and shape of ', size(shape)
      status = c_fail(FS_INVALID, c_text(key//': '//trim(what)), c_text('give one number for each dimension'))
    else if (any(start < 1)) then
      write (what, '(a, i0)') 'a start of ', minval(start)
      status = c_fail(FS_INVALID, c_text(key//': '//trim(what)), c_text('in Fortran boxes begin at 1'))
    else if (any(shape < 0)) then
      write (what, '(a, i0)') 'a shape of ', minval(shape)
      status = c_fail(FS_INVALID, c_text(key//': '//trim(what)), c_text('give the shape of the whole array'))
    end if
    fits = status == FS_OK
  end function

  subroutine archive_any(store, key, dtype, address, extents, start, has_start, shape, has_shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key, dtype
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:), start(:), shape(:)
    logical, intent(in) :: has_start, has_shape
    integer, intent(out), optional :: ierr
    integer :: n, status
    n = size(extents)
    if (has_start .neqv. has_shape) then
      status = c_fail(FS_INVALID, c_text(key//': start and shape need each other'), &
        c_text('give both for a piece, neither for a whole array'))
    else if (.not. has_start) then
      status = c_archive_array(store%handle, c_text(key), c_text(dtype), n, extents(n:1:-1), address)
    else if (fits(key, extents, start, shape, status)) then
      status = c_archive_piece(store%handle, c_text(key), c_text(dtype), n, shape(n:1:-1), &
        start(n:1:-1) - 1, extents(n:1:-1), address)
    end if
    call finish(status, ierr)
  end subroutine

  subroutine get_any(store, key, dtype, address, extents, start, has_start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key, dtype
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:), start(:)
    logical, intent(in) :: has_start
    integer, intent(out), optional :: ierr
    integer :: n, status
    n = size(extents)
    if (.not. has_start) then
      status = c_get_array(store%handle, c_text(key), c_text(dtype), n, extents(n:1:-1), address)
    else if (fits(key, extents, start, extents, status)) then
      status = c_get_piece(store%handle, c_text(key), c_text(dtype), n, start(n:1:-1) - 1, &
        extents(n:1:-1), address)
    end if
    call finish(status, ierr)
  end subroutine

  !> The extents of an array of the wanted rank; true, after reporting the error, if it has another
  !> rank.
  logical function extents_differ(store, key, wanted, extents, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer, intent(in) :: wanted
    integer(c_int64_t), intent(out) :: extents(4)
    integer, intent(out), optional :: ierr
    type(field_info) :: info
    integer :: status
    character(len=80) :: what
    extents = 0
    status = c_info(store%handle, c_text(key), info)
    if (status == FS_OK .and. (info%ndim /= wanted .or. wanted < 1 .or. wanted > 4)) then
      write (what, '(2(a, i0))') 'a field of rank ', info%ndim, ' for an allocatable of rank ', wanted
      status = c_fail(FS_INVALID, c_text(key//': '//trim(what)), &
        c_text('ranks 1 to 4 are possible; ask fs_shape'))
    end if
    if (status == FS_OK) extents(:wanted) = info%shape(wanted:1:-1)
    extents_differ = status /= FS_OK
    call finish(status, ierr)
  end function

  ! ---- integer(c_int32_t): numpy's i4

  subroutine archive_i4(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int32_t), intent(in), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'i4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), wide(shape), present(shape), ierr)
  end subroutine

  subroutine archive_far_i4(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int32_t), intent(in), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'i4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., shape, .true., ierr)
  end subroutine

  subroutine get_i4(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int32_t), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'i4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), ierr)
  end subroutine

  subroutine get_far_i4(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int32_t), intent(inout), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'i4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., ierr)
  end subroutine

  subroutine get_alloc_i4(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int32_t), allocatable, intent(out) :: data(..)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: e(4)
    if (extents_differ(store, key, rank(data), e, ierr)) return
    select rank (data)
    rank (1)
      allocate (data(e(1)))
      call get_i4(store, key, data, ierr=ierr)
    rank (2)
      allocate (data(e(1), e(2)))
      call get_i4(store, key, data, ierr=ierr)
    rank (3)
      allocate (data(e(1), e(2), e(3)))
      call get_i4(store, key, data, ierr=ierr)
    rank (4)
      allocate (data(e(1), e(2), e(3), e(4)))
      call get_i4(store, key, data, ierr=ierr)
    end select
  end subroutine

  ! ---- integer(c_int64_t): numpy's i8

  subroutine archive_i8(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int64_t), intent(in), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'i8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), wide(shape), present(shape), ierr)
  end subroutine

  subroutine archive_far_i8(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int64_t), intent(in), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'i8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., shape, .true., ierr)
  end subroutine

  subroutine get_i8(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int64_t), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'i8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), ierr)
  end subroutine

  subroutine get_far_i8(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int64_t), intent(inout), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'i8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., ierr)
  end subroutine

  subroutine get_alloc_i8(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    integer(c_int64_t), allocatable, intent(out) :: data(..)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: e(4)
    if (extents_differ(store, key, rank(data), e, ierr)) return
    select rank (data)
    rank (1)
      allocate (data(e(1)))
      call get_i8(store, key, data, ierr=ierr)
    rank (2)
      allocate (data(e(1), e(2)))
      call get_i8(store, key, data, ierr=ierr)
    rank (3)
      allocate (data(e(1), e(2), e(3)))
      call get_i8(store, key, data, ierr=ierr)
    rank (4)
      allocate (data(e(1), e(2), e(3), e(4)))
      call get_i8(store, key, data, ierr=ierr)
    end select
  end subroutine

  ! ---- real(c_float): numpy's f4

  subroutine archive_r4(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_float), intent(in), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'f4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), wide(shape), present(shape), ierr)
  end subroutine

  subroutine archive_far_r4(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_float), intent(in), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'f4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., shape, .true., ierr)
  end subroutine

  subroutine get_r4(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_float), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'f4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), ierr)
  end subroutine

  subroutine get_far_r4(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_float), intent(inout), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'f4', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., ierr)
  end subroutine

  subroutine get_alloc_r4(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_float), allocatable, intent(out) :: data(..)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: e(4)
    if (extents_differ(store, key, rank(data), e, ierr)) return
    select rank (data)
    rank (1)
      allocate (data(e(1)))
      call get_r4(store, key, data, ierr=ierr)
    rank (2)
      allocate (data(e(1), e(2)))
      call get_r4(store, key, data, ierr=ierr)
    rank (3)
      allocate (data(e(1), e(2), e(3)))
      call get_r4(store, key, data, ierr=ierr)
    rank (4)
      allocate (data(e(1), e(2), e(3), e(4)))
      call get_r4(store, key, data, ierr=ierr)
    end select
  end subroutine

  ! ---- real(c_double): numpy's f8

  subroutine archive_r8(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_double), intent(in), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'f8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), wide(shape), present(shape), ierr)
  end subroutine

  subroutine archive_far_r8(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_double), intent(in), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'f8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., shape, .true., ierr)
  end subroutine

  subroutine get_r8(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_double), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'f8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), ierr)
  end subroutine

  subroutine get_far_r8(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_double), intent(inout), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'f8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., ierr)
  end subroutine

  subroutine get_alloc_r8(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    real(c_double), allocatable, intent(out) :: data(..)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: e(4)
    if (extents_differ(store, key, rank(data), e, ierr)) return
    select rank (data)
    rank (1)
      allocate (data(e(1)))
      call get_r8(store, key, data, ierr=ierr)
    rank (2)
      allocate (data(e(1), e(2)))
      call get_r8(store, key, data, ierr=ierr)
    rank (3)
      allocate (data(e(1), e(2), e(3)))
      call get_r8(store, key, data, ierr=ierr)
    rank (4)
      allocate (data(e(1), e(2), e(3), e(4)))
      call get_r8(store, key, data, ierr=ierr)
    end select
  end subroutine

  ! ---- complex(c_float_complex): numpy's c8

  subroutine archive_c4(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_float_complex), intent(in), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'c8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), wide(shape), present(shape), ierr)
  end subroutine

  subroutine archive_far_c4(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_float_complex), intent(in), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'c8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., shape, .true., ierr)
  end subroutine

  subroutine get_c4(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_float_complex), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'c8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), ierr)
  end subroutine

  subroutine get_far_c4(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_float_complex), intent(inout), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'c8', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., ierr)
  end subroutine

  subroutine get_alloc_c4(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_float_complex), allocatable, intent(out) :: data(..)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: e(4)
    if (extents_differ(store, key, rank(data), e, ierr)) return
    select rank (data)
    rank (1)
      allocate (data(e(1)))
      call get_c4(store, key, data, ierr=ierr)
    rank (2)
      allocate (data(e(1), e(2)))
      call get_c4(store, key, data, ierr=ierr)
    rank (3)
      allocate (data(e(1), e(2), e(3)))
      call get_c4(store, key, data, ierr=ierr)
    rank (4)
      allocate (data(e(1), e(2), e(3), e(4)))
      call get_c4(store, key, data, ierr=ierr)
    end select
  end subroutine

  ! ---- complex(c_double_complex): numpy's c16

  subroutine archive_c8(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_double_complex), intent(in), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'c16', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), wide(shape), present(shape), ierr)
  end subroutine

  subroutine archive_far_c8(store, key, data, start, shape, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_double_complex), intent(in), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:), shape(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call archive_any(store, key, 'c16', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., shape, .true., ierr)
  end subroutine

  subroutine get_c8(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_double_complex), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'c16', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wide(start), present(start), ierr)
  end subroutine

  subroutine get_far_c8(store, key, data, start, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_double_complex), intent(inout), target, contiguous :: data(..)
    integer(c_int64_t), intent(in) :: start(:)
    integer, intent(out), optional :: ierr
    integer :: d
    call get_any(store, key, 'c16', c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      start, .true., ierr)
  end subroutine

  subroutine get_alloc_c8(store, key, data, ierr)
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in) :: key
    complex(c_double_complex), allocatable, intent(out) :: data(..)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: e(4)
    if (extents_differ(store, key, rank(data), e, ierr)) return
    select rank (data)
    rank (1)
      allocate (data(e(1)))
      call get_c8(store, key, data, ierr=ierr)
    rank (2)
      allocate (data(e(1), e(2)))
      call get_c8(store, key, data, ierr=ierr)
    rank (3)
      allocate (data(e(1), e(2), e(3)))
      call get_c8(store, key, data, ierr=ierr)
    rank (4)
      allocate (data(e(1), e(2), e(3), e(4)))
      call get_c8(store, key, data, ierr=ierr)
    end select
  end subroutine
end module fieldstone
