! Distributed arrays for Fortran: jobs, whose ranks write and read groups of arrays together. Over the C library.
!
! All calls on jobs and groups but the views are collective: all ranks make them, in one order. What fails on one rank
! fails on all. Errors are those of the module fieldstone: `ierr`, or a stop with the message.
!
! Order: the data are Fortran arrays, whose shape is the local shape of the view. A group is of order 'F' where nothing
! else is said: the first dimension varies fastest in files, and what is a(nx, ny) here is read in C and Python as an
! array of shape (ny, nx), as with fs_archive. In a group of order 'C' the same array is one of shape (nx, ny) there;
! the library turns it round. A set whose first extent is FS_VARYING needs order 'C'.
!
! Indices count from 1, in boxes and maps; an entry 0 of a map is no element. The kinds of data are integer(4),
! integer(8), real(4), real(8), complex(4), complex(8), of any rank; what is not contiguous is copied by the compiler.
module fieldstone_arrays
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fieldstone_store, fs_store_handle, fs_finish, FS_OK, FS_INVALID
  implicit none
  private

  public :: fieldstone_job, fieldstone_group, fieldstone_set, fieldstone_comm, fieldstone_counts
  public :: fs_arrays_open, fs_arrays_close, fs_arrays_flush, fs_arrays_discard, fs_arrays_abandon
  public :: fs_arrays_run, fs_arrays_report, fs_set, fs_arrays_group, fs_arrays_declared_group
  public :: fs_group_view_block, fs_group_view_grid, fs_group_view_cyclic, fs_group_view_irregular
  public :: fs_group_view_joined, fs_group_write, fs_group_read, fs_group_local_shape
  public :: fs_group_steps, fs_group_last_step, fs_group_level, fs_group_why

  !> As the first extent of a set: another one at each step, the sum of what the ranks hold.
  integer, parameter, public :: FS_VARYING = -1

  !> A job. A copy is the same job.
  type :: fieldstone_job
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> A group of a job; it ends with the job.
  type :: fieldstone_group
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> The ranks of a job: made by the module fieldstone_mpi. Where none is given the process is alone.
  type :: fieldstone_comm
    type(c_ptr) :: address = c_null_ptr
  end type

  integer, parameter :: NAME_SIZE = 257, RANK_MAX = 32

  !> A set of a group: made by fs_set.
  type :: fieldstone_set
    private
    character(kind=c_char, len=NAME_SIZE) :: name = c_null_char, dtype = c_null_char
    integer(c_int) :: ndim = 0
    integer(c_int64_t) :: shape(RANK_MAX) = 0
    logical :: has_dims = .false., has_fill = .false.
    character(kind=c_char, len=NAME_SIZE) :: dims(RANK_MAX) = c_null_char
    integer(c_int8_t) :: fill(16) = 0
    character(len=100) :: problem = '' ! what is wrong with it; raised where the group is declared, by all ranks
  end type

  !> What this rank of a job has done since it began: bytes that it sent to others, wrote to files and read from them,
  !> files that it opened, exchanges planned, openings of the catalog, and seconds.
  type, bind(c) :: fieldstone_counts
    integer(c_int64_t) :: exchanged, written, read, opened, plans, connections
    real(c_double) :: plan_seconds, write_seconds, sync_seconds, commit_seconds, read_seconds
  end type

  !> fs_set(name, dtype, shape [, dims] [, fill]): a set; `dtype` is numpy's: 'f8', 'i4'. `fill` stands where nobody
  !> writes.
  interface fs_set
    module procedure set_of, set_of_far
  end interface

  !> fs_group_view_block(group, start, count [, halo] [, stride] [, sets] [, ierr]): this rank holds the box of `count`
  !> indices from `start` on. halo(2, n): how much wider the data are before and behind in each dimension; it is not
  !> written, and a read fills what of it lies within the array. `stride`, for reading: every so many indices.
  interface fs_group_view_block
    module procedure view_block, view_block_far
  end interface

  !> fs_group_view_irregular(group, map [, owned] [, dim] [, sets] [, ierr]): this rank holds the global indices of
  !> `map` along dimension `dim` (1 where absent), other dimensions whole; with dim=0 single elements, by their number
  !> in the order in which files have them. The first `owned` entries are written (all where absent), all are read.
  interface fs_group_view_irregular
    module procedure view_irregular, view_irregular_far
  end interface

  !> fs_group_write(group, set, step, data [, wait] [, ierr]): collective. With wait=.false. the call returns when the
  !> elements were exchanged: the data may be changed, and a thread writes them.
  interface fs_group_write
    module procedure write_i4, write_i8, write_r4, write_r8, write_c4, write_c8
  end interface

  !> fs_group_read(group, set, step, data [, ierr]): collective; by the view of the set.
  interface fs_group_read
    module procedure read_i4, read_i8, read_r4, read_r8, read_c4, read_c8
  end interface

  ! As the structures of the C header.
  type, bind(c) :: c_set
    type(c_ptr) :: name, dtype
    integer(c_int) :: ndim
    type(c_ptr) :: shape, dims, fill
    integer(c_int) :: nattrs
    type(c_ptr) :: attrs
  end type

  type, bind(c) :: c_group_options
    integer(c_int) :: level
    type(c_ptr) :: method, order
    integer(c_int) :: nattrs
    type(c_ptr) :: attrs
    integer(c_int) :: nchunks
    type(c_ptr) :: chunks, compression
  end type

  type, bind(c) :: c_job_options
    type(c_ptr) :: project
    integer(c_size_t) :: writers, readers, buffer
    type(c_ptr) :: layout
  end type

  interface
    function c_arrays_open(store, name, comm, options, job) bind(c, name='fs_arrays_open') result(status)
      import :: c_int, c_job_options, c_ptr
      type(c_ptr), value :: store
      type(c_ptr), value :: name
      type(c_ptr), value :: comm
      type(c_job_options), intent(in) :: options
      type(c_ptr), intent(out) :: job
      integer(c_int) :: status
    end function

    function c_arrays_run(job, name, capacity) bind(c, name='fs_arrays_run') result(status)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: job
      character(kind=c_char), intent(out) :: name(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_arrays_group(job, name, nsets, sets, options, group) bind(c, &
        name='fs_arrays_group') result(status)
      import :: c_char, c_group_options, c_int, c_ptr, c_set
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: nsets
      type(c_set), intent(in) :: sets(*)
      type(c_group_options), intent(in) :: options
      type(c_ptr), intent(out) :: group
      integer(c_int) :: status
    end function

    function c_arrays_declared_group(job, name, group) bind(c, name='fs_arrays_declared_group') result(status)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(out) :: group
      integer(c_int) :: status
    end function

    function c_arrays_flush(job) bind(c, name='fs_arrays_flush') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: job
      integer(c_int) :: status
    end function

    function c_arrays_discard(job) bind(c, name='fs_arrays_discard') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: job
      integer(c_int) :: status
    end function

    function c_arrays_close(job) bind(c, name='fs_arrays_close') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: job
      integer(c_int) :: status
    end function

    function c_arrays_abandon(job, message) bind(c, name='fs_arrays_abandon') result(status)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: message(*)
      integer(c_int) :: status
    end function

    function c_arrays_report(job, counts) bind(c, name='fs_arrays_report') result(status)
      import :: c_int, c_ptr, fieldstone_counts
      type(c_ptr), value :: job
      type(fieldstone_counts), intent(out) :: counts
      integer(c_int) :: status
    end function

    function c_view_block(group, nsets, sets, ndim, start, count, halo, stride) bind(c, &
        name='fs_group_view_block') result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      integer(c_int), value :: nsets
      type(c_ptr), value :: sets
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: start(*)
      integer(c_int64_t), intent(in) :: count(*)
      type(c_ptr), value :: halo
      type(c_ptr), value :: stride
      integer(c_int) :: status
    end function

    function c_view_grid(group, nsets, sets, ndim, grid, halo) bind(c, name='fs_group_view_grid') result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      integer(c_int), value :: nsets
      type(c_ptr), value :: sets
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: grid(*)
      type(c_ptr), value :: halo
      integer(c_int) :: status
    end function

    function c_view_cyclic(group, nsets, sets, ndim, grid, blocks) bind(c, &
        name='fs_group_view_cyclic') result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      integer(c_int), value :: nsets
      type(c_ptr), value :: sets
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: grid(*)
      integer(c_int64_t), intent(in) :: blocks(*)
      integer(c_int) :: status
    end function

    function c_view_irregular(group, nsets, sets, length, map, owned, dim) bind(c, &
        name='fs_group_view_irregular') result(status)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: group
      integer(c_int), value :: nsets
      type(c_ptr), value :: sets
      integer(c_size_t), value :: length
      integer(c_int64_t), intent(in) :: map(*)
      integer(c_int64_t), value :: owned
      integer(c_int), value :: dim
      integer(c_int) :: status
    end function

    function c_view_joined(group, nsets, sets, count) bind(c, name='fs_group_view_joined') result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      integer(c_int), value :: nsets
      type(c_ptr), value :: sets
      integer(c_int64_t), value :: count
      integer(c_int) :: status
    end function

    function c_local_shape(group, set, ndim, shape) bind(c, name='fs_group_local_shape') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      character(kind=c_char), intent(in) :: set(*)
      integer(c_int), intent(out) :: ndim
      integer(c_int64_t), intent(out) :: shape(*)
      integer(c_int) :: status
    end function

    function c_write(group, set, step, dtype, ndim, shape, strides, data, wait) bind(c, &
        name='fs_group_write') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      character(kind=c_char), intent(in) :: set(*)
      integer(c_int64_t), value :: step
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int64_t), intent(in) :: strides(*)
      type(c_ptr), value :: data
      integer(c_int), value :: wait
      integer(c_int) :: status
    end function

    function c_read(group, set, step, dtype, ndim, shape, strides, data) bind(c, &
        name='fs_group_read') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      character(kind=c_char), intent(in) :: set(*)
      integer(c_int64_t), value :: step
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int64_t), intent(in) :: strides(*)
      type(c_ptr), value :: data
      integer(c_int) :: status
    end function

    function c_steps(group, set, steps, capacity, count) bind(c, name='fs_group_steps') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: group
      character(kind=c_char), intent(in) :: set(*)
      integer(c_int64_t), intent(out) :: steps(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: status
    end function

    function c_last_step(group, step, found) bind(c, name='fs_group_last_step') result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      integer(c_int64_t), intent(out) :: step
      integer(c_int), intent(out) :: found
      integer(c_int) :: status
    end function

    function c_level(group, level) bind(c, name='fs_group_level') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: group
      integer(c_int), intent(out) :: level
      integer(c_int) :: status
    end function

    function c_why(group, why, capacity) bind(c, name='fs_group_why') result(status)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: group
      character(kind=c_char), intent(out) :: why(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_fail(kind, message, hint) bind(c, name='fs_fail') result(status)
      import :: c_char, c_int, c_ptr
      integer(c_int), value :: kind
      character(kind=c_char), intent(in) :: message(*)
      type(c_ptr), value :: hint
      integer(c_int) :: status
    end function
  end interface

contains

  ! ---- jobs

  !> Opens a job of a store, which each rank has opened: the run of this name, made or continued; without one a new
  !> run. Collective over `comm`. `writers` and `readers`: how many ranks write and read in an exchange; `buffer`: bytes
  !> that a rank may use for moving elements. `layout`: 'files', netCDF files that belong to the store, or 'fields', the
  !> store's own logs.
  subroutine fs_arrays_open(job, store, name, comm, project, writers, readers, buffer, layout, ierr)
    type(fieldstone_job), intent(out) :: job
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in), optional :: name, project, layout
    type(fieldstone_comm), intent(in), optional :: comm
    integer, intent(in), optional :: writers, readers
    integer(c_int64_t), intent(in), optional :: buffer
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=:), allocatable, target :: name_text, project_text, layout_text
    type(c_ptr) :: name_address, ranks
    type(c_job_options) :: options
    name_address = c_null_ptr
    if (present(name)) then
      name_text = c_text(name)
      name_address = c_loc(name_text)
    end if
    options = c_job_options(c_null_ptr, 0, 0, 0, c_null_ptr)
    if (present(layout)) then
      layout_text = c_text(layout)
      options%layout = c_loc(layout_text)
    end if
    if (present(project)) then
      project_text = c_text(project)
      options%project = c_loc(project_text)
    end if
    if (present(writers)) options%writers = int(writers, c_size_t)
    if (present(readers)) options%readers = int(readers, c_size_t)
    if (present(buffer)) options%buffer = int(buffer, c_size_t)
    ranks = c_null_ptr
    if (present(comm)) ranks = comm%address
    call fs_finish(c_arrays_open(fs_store_handle(store), name_address, ranks, options, job%handle), ierr)
  end subroutine

  !> Flushes, and closes all files; groups of the job end. Collective. The job is closed also where this fails.
  subroutine fs_arrays_close(job, ierr)
    type(fieldstone_job), intent(inout) :: job
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = job%handle
    job%handle = c_null_ptr
    call fs_finish(c_arrays_close(handle), ierr)
  end subroutine

  !> Makes all writes since the last flush durable and visible, or none of them. Collective.
  subroutine fs_arrays_flush(job, ierr)
    type(fieldstone_job), intent(in) :: job
    integer, intent(out), optional :: ierr
    call fs_finish(c_arrays_flush(job%handle), ierr)
  end subroutine

  !> Forgets all writes since the last flush. Collective.
  subroutine fs_arrays_discard(job, ierr)
    type(fieldstone_job), intent(in) :: job
    integer, intent(out), optional :: ierr
    call fs_finish(c_arrays_discard(job%handle), ierr)
  end subroutine

  !> Ends the job on this rank for an error of its own: the other ranks have it in the call that they are in or come to.
  subroutine fs_arrays_abandon(job, message, ierr)
    type(fieldstone_job), intent(inout) :: job
    character(len=*), intent(in) :: message
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = job%handle
    job%handle = c_null_ptr
    call fs_finish(c_arrays_abandon(handle, c_text(message)), ierr)
  end subroutine

  !> The name of the run. Of this rank alone.
  function fs_arrays_run(job) result(name)
    type(fieldstone_job), intent(in) :: job
    character(len=:), allocatable :: name
    character(kind=c_char) :: letters(1024)
    letters = c_null_char
    call fs_finish(c_arrays_run(job%handle, letters, size(letters, kind=c_size_t)))
    name = fortran_text(letters)
  end function

  !> What this rank has done so far.
  subroutine fs_arrays_report(job, counts, ierr)
    type(fieldstone_job), intent(in) :: job
    type(fieldstone_counts), intent(out) :: counts
    integer, intent(out), optional :: ierr
    call fs_finish(c_arrays_report(job%handle, counts), ierr)
  end subroutine

  ! ---- groups

  function set_of(name, dtype, shape, dims, fill) result(set)
    character(len=*), intent(in) :: name, dtype
    integer, intent(in) :: shape(:)
    character(len=*), intent(in), optional :: dims(:)
    real(c_double), intent(in), optional :: fill
    type(fieldstone_set) :: set
    set = set_of_far(name, dtype, int(shape, c_int64_t), dims, fill)
  end function

  function set_of_far(name, dtype, shape, dims, fill) result(set)
    character(len=*), intent(in) :: name, dtype
    integer(c_int64_t), intent(in) :: shape(:)
    character(len=*), intent(in), optional :: dims(:)
    real(c_double), intent(in), optional :: fill
    type(fieldstone_set) :: set
    integer :: i
    set%name = c_text(name)
    set%dtype = c_text(dtype)
    set%ndim = size(shape)
    set%shape(:min(size(shape), RANK_MAX)) = shape(:min(size(shape), RANK_MAX))
    if (present(dims)) then
      set%has_dims = size(dims) == size(shape)
      if (.not. set%has_dims) set%problem = 'give each dimension a name, or none of them'
      do i = 1, min(size(dims), RANK_MAX)
        set%dims(i) = c_text(dims(i))
      end do
    end if
    if (present(fill)) then
      set%has_fill = .true.
      select case (dtype)
      case ('f8')
        set%fill(:8) = transfer(fill, set%fill(:8))
      case ('f4')
        set%fill(:4) = transfer(real(fill, c_float), set%fill(:4))
      case ('i8')
        set%fill(:8) = transfer(int(fill, c_int64_t), set%fill(:8))
      case ('i4')
        set%fill(:4) = transfer(int(fill, c_int32_t), set%fill(:4))
      case ('c8')
        set%fill(:8) = transfer(cmplx(fill, 0, c_float), set%fill(:8))
      case ('c16')
        set%fill = transfer(cmplx(fill, 0, c_double), set%fill)
      case default
        set%problem = 'a fill needs one of the types f4, f8, i4, i8, c8, c16'
      end select
    end if
  end function

  !> Declares a group of sets, or takes it where it is there and says the same. Collective. `level` 1: a file per set
  !> and step; 2: per set; 3: per group; absent: by the measured cost of an open. `method`: 'direct', 'exchange' or
  !> 'view'; absent: by the views. `order`: 'F' where absent, or 'C'.
  subroutine fs_arrays_group(group, job, name, sets, level, method, order, chunks, compression, ierr)
    type(fieldstone_group), intent(out) :: group
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: name
    type(fieldstone_set), intent(in), target :: sets(:)
    integer, intent(in), optional :: level
    character(len=*), intent(in), optional :: method, order, compression
    integer, intent(in), optional :: chunks(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=:), allocatable, target :: method_text, order_text, compression_text
    integer(c_int64_t), allocatable, target :: extents(:)
    type(c_ptr), target :: dims(RANK_MAX, max(1, size(sets)))
    type(c_set) :: given(max(1, size(sets)))
    type(c_group_options) :: options
    integer :: i, d, status
    dims = c_null_ptr
    do i = 1, size(sets)
      given(i) = c_set(c_loc(sets(i)%name), c_loc(sets(i)%dtype), sets(i)%ndim, c_loc(sets(i)%shape), &
        c_null_ptr, c_null_ptr, 0, c_null_ptr)
      do d = 1, RANK_MAX
        if (sets(i)%dims(d)(1:1) /= c_null_char) dims(d, i) = c_loc(sets(i)%dims(d))
      end do
      if (sets(i)%has_dims) given(i)%dims = c_loc(dims(1, i))
      if (sets(i)%has_fill) given(i)%fill = c_loc(sets(i)%fill)
      if (sets(i)%problem /= '') given(i)%ndim = -1
    end do
    order_text = c_text('F')
    if (present(order)) order_text = c_text(order)
    options = c_group_options(0, c_null_ptr, c_loc(order_text), 0, c_null_ptr, 0, c_null_ptr, c_null_ptr)
    if (present(chunks)) then
      extents = int(chunks, c_int64_t)
      options%nchunks = size(chunks)
      options%chunks = c_loc(extents)
    end if
    if (present(compression)) then
      compression_text = c_text(compression)
      options%compression = c_loc(compression_text)
    end if
    if (present(level)) options%level = level
    if (present(method)) then
      method_text = c_text(method)
      options%method = c_loc(method_text)
    end if
    status = c_arrays_group(job%handle, c_text(name), size(sets), given, options, group%handle)
    do i = 1, size(sets)
      if (sets(i)%problem == '') cycle
      status = c_fail(FS_INVALID, c_text('group '//trim(name)//': '//sets(i)%problem), c_null_ptr)
      exit
    end do
    call fs_finish(status, ierr)
  end subroutine

  !> A group as it was declared. Collective.
  subroutine fs_arrays_declared_group(group, job, name, ierr)
    type(fieldstone_group), intent(out) :: group
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: ierr
    call fs_finish(c_arrays_declared_group(job%handle, c_text(name), group%handle), ierr)
  end subroutine

  ! ---- views: of this rank alone, for the sets named or for all

  subroutine view_block(group, start, count, halo, stride, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: start(:), count(:)
    integer, intent(in), optional :: halo(:, :), stride(:)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    call view_block_far(group, int(start, c_int64_t), int(count, c_int64_t), halo, stride, sets, ierr)
  end subroutine

  subroutine view_block_far(group, start, count, halo, stride, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer(c_int64_t), intent(in) :: start(:), count(:)
    integer, intent(in), optional :: halo(:, :), stride(:)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=NAME_SIZE), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: names(:)
    integer(c_int64_t), allocatable, target :: widths(:), strides(:)
    type(c_ptr) :: halo_address, stride_address
    integer :: n
    n = size(start)
    call named(sets, texts, names)
    call widths_of(n, halo, widths, halo_address)
    stride_address = c_null_ptr
    if (present(stride)) then
      strides = [int(stride, c_int64_t), 0_c_int64_t]
      stride_address = c_loc(strides)
    end if
    if (size(count) /= n .or. .not. fits(stride, n) .or. .not. fits_halo(halo, n)) then
      call refuse('a box whose start, count, halo and stride differ in their dimensions', ierr)
    else if (any(start < 1) .or. any(count < 0)) then
      call refuse('a box that begins before 1, or of a negative count', ierr)
    else
      call fs_finish(c_view_block(group%handle, size(texts), c_loc(names), n, start - 1, count, halo_address, &
        stride_address), ierr)
    end if
  end subroutine

  !> This rank holds its part of a balanced cut in `grid` parts a dimension; ranks go over the grid with the last
  !> dimension fastest.
  subroutine fs_group_view_grid(group, grid, halo, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: grid(:)
    integer, intent(in), optional :: halo(:, :)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=NAME_SIZE), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: names(:)
    integer(c_int64_t), allocatable, target :: widths(:)
    type(c_ptr) :: halo_address
    call named(sets, texts, names)
    call widths_of(size(grid), halo, widths, halo_address)
    if (any(grid < 0) .or. .not. fits_halo(halo, size(grid))) then
      call refuse('a grid with negative parts, or a halo of other dimensions', ierr)
    else
      call fs_finish(c_view_grid(group%handle, size(texts), c_loc(names), size(grid), int(grid, c_int64_t), &
        halo_address), ierr)
    end if
  end subroutine

  !> This rank holds blocks that are dealt out in turn in every dimension; in the data they stand side by side.
  subroutine fs_group_view_cyclic(group, grid, blocks, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: grid(:), blocks(:)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=NAME_SIZE), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: names(:)
    call named(sets, texts, names)
    if (size(grid) /= size(blocks) .or. any(grid < 0) .or. any(blocks < 0)) then
      call refuse('a grid and blocks of other dimensions, or negative ones', ierr)
    else
      call fs_finish(c_view_cyclic(group%handle, size(texts), c_loc(names), size(grid), int(grid, c_int64_t), &
        int(blocks, c_int64_t)), ierr)
    end if
  end subroutine

  subroutine view_irregular(group, map, owned, dim, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: map(:)
    integer, intent(in), optional :: owned, dim
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    call view_irregular_far(group, int(map, c_int64_t), owned, dim, sets, ierr)
  end subroutine

  subroutine view_irregular_far(group, map, owned, dim, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer(c_int64_t), intent(in) :: map(:)
    integer, intent(in), optional :: owned, dim
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=NAME_SIZE), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: names(:)
    integer(c_int64_t) :: written
    integer :: along
    call named(sets, texts, names)
    written = -1
    along = 1
    if (present(owned)) written = owned
    if (present(dim)) along = dim
    if (present(owned) .and. written < 0) then
      call refuse('a negative number of owned entries', ierr)
    else if (along < 0) then
      call refuse('a negative dimension', ierr)
    else
      call fs_finish(c_view_irregular(group%handle, size(texts), c_loc(names), size(map, kind=c_size_t), map - 1, &
        written, along - 1), ierr)
    end if
  end subroutine

  !> This rank holds `count` indices of the first dimension, which is FS_VARYING, behind those of the lower ranks.
  subroutine fs_group_view_joined(group, count, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: count
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=NAME_SIZE), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: names(:)
    call named(sets, texts, names)
    if (count < 0) then
      call refuse('a negative count', ierr)
    else
      call fs_finish(c_view_joined(group%handle, size(texts), c_loc(names), int(count, c_int64_t)), ierr)
    end if
  end subroutine

  ! ---- what a group is

  !> The shape of this rank's part of a set by its view. Of this rank alone.
  subroutine fs_group_local_shape(group, set, shape, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer(c_int64_t), allocatable, intent(out) :: shape(:)
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: extents(RANK_MAX)
    integer(c_int) :: ndim
    integer :: status
    extents = 0
    status = c_local_shape(group%handle, c_text(set), ndim, extents)
    shape = extents(:ndim)
    call fs_finish(status, ierr)
  end subroutine

  !> Steps at which a set was flushed and is whole, ascending. Collective.
  subroutine fs_group_steps(group, set, steps, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer(c_int64_t), allocatable, intent(out) :: steps(:)
    integer, intent(out), optional :: ierr
    integer(c_size_t) :: count, again
    integer :: status
    allocate (steps(0))
    status = c_steps(group%handle, c_text(set), steps, 0_c_size_t, count)
    if (status == FS_OK) then
      deallocate (steps)
      allocate (steps(count))
      status = c_steps(group%handle, c_text(set), steps, count, again)
      ! Between the two calls another job may have removed some.
      if (status == FS_OK .and. again < count) steps = steps(:again)
    end if
    call fs_finish(status, ierr)
  end subroutine

  !> The newest step at which all sets of the group were flushed and are whole; `found` is false where there is none.
  !> Collective.
  subroutine fs_group_last_step(group, step, found, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(out) :: step
    logical, intent(out) :: found
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: last
    integer(c_int) :: is_there
    integer :: status
    status = c_last_step(group%handle, last, is_there)
    found = status == FS_OK .and. is_there /= 0
    step = 0
    if (found) then
      if (abs(last) <= huge(step)) then
        step = int(last)
      else
        status = c_fail(FS_INVALID, c_text('the last step is beyond default integers'), c_null_ptr)
      end if
    end if
    call fs_finish(status, ierr)
  end subroutine

  !> The level of the group: 1, 2 or 3. Of this rank alone.
  integer function fs_group_level(group)
    type(fieldstone_group), intent(in) :: group
    integer(c_int) :: level
    call fs_finish(c_level(group%handle, level))
    fs_group_level = level
  end function

  !> Why level and method are what they are. Of this rank alone.
  function fs_group_why(group) result(why)
    type(fieldstone_group), intent(in) :: group
    character(len=:), allocatable :: why
    character(kind=c_char) :: letters(1024)
    letters = c_null_char
    call fs_finish(c_why(group%handle, letters, size(letters, kind=c_size_t)))
    why = fortran_text(letters)
  end function

  ! ---- within this module

  !> Text for C. Blanks at the end are Fortran's filling and are left out.
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

  !> Names for C, and the addresses of them; one of each where there are none, so that there is an address to give.
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

  subroutine widths_of(n, halo, widths, address)
    integer, intent(in) :: n
    integer, intent(in), optional :: halo(:, :)
    integer(c_int64_t), allocatable, target, intent(out) :: widths(:)
    type(c_ptr), intent(out) :: address
    address = c_null_ptr
    allocate (widths(2 * n + 1))
    if (.not. present(halo)) return
    if (size(halo) /= 2 * n) return
    widths(:2 * n) = reshape(int(halo, c_int64_t), [2 * n])
    address = c_loc(widths)
  end subroutine

  logical function fits(numbers, n)
    integer, intent(in), optional :: numbers(:)
    integer, intent(in) :: n
    fits = .true.
    if (present(numbers)) fits = size(numbers) == n .and. all(numbers > 0)
  end function

  logical function fits_halo(halo, n)
    integer, intent(in), optional :: halo(:, :)
    integer, intent(in) :: n
    fits_halo = .true.
    if (present(halo)) fits_halo = size(halo, 1) == 2 .and. size(halo, 2) == n .and. all(halo >= 0)
  end function

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

  subroutine write_any(group, set, step, dtype, element, address, extents, wait, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set, dtype
    integer, intent(in) :: step, element
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:)
    logical, intent(in), optional :: wait
    integer, intent(out), optional :: ierr
    integer(c_int) :: waits
    waits = 1
    if (present(wait)) waits = merge(1, 0, wait)
    call fs_finish(c_write(group%handle, c_text(set), int(step, c_int64_t), c_text(dtype), size(extents), extents, &
      strides_of(extents, element), address, waits), ierr)
  end subroutine

  subroutine read_any(group, set, step, dtype, element, address, extents, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set, dtype
    integer, intent(in) :: step, element
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:)
    integer, intent(out), optional :: ierr
    call fs_finish(c_read(group%handle, c_text(set), int(step, c_int64_t), c_text(dtype), size(extents), extents, &
      strides_of(extents, element), address), ierr)
  end subroutine

  ! ---- integer(c_int32_t): numpy's i4

  subroutine write_i4(group, set, step, data, wait, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int32_t), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'i4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, ierr)
  end subroutine

  subroutine read_i4(group, set, step, data, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int32_t), intent(inout), target, contiguous :: data(..)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'i4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      ierr)
  end subroutine

  ! ---- integer(c_int64_t): numpy's i8

  subroutine write_i8(group, set, step, data, wait, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int64_t), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'i8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, ierr)
  end subroutine

  subroutine read_i8(group, set, step, data, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    integer(c_int64_t), intent(inout), target, contiguous :: data(..)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'i8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      ierr)
  end subroutine

  ! ---- real(c_float): numpy's f4

  subroutine write_r4(group, set, step, data, wait, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_float), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'f4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, ierr)
  end subroutine

  subroutine read_r4(group, set, step, data, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_float), intent(inout), target, contiguous :: data(..)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'f4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      ierr)
  end subroutine

  ! ---- real(c_double): numpy's f8

  subroutine write_r8(group, set, step, data, wait, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_double), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'f8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, ierr)
  end subroutine

  subroutine read_r8(group, set, step, data, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    real(c_double), intent(inout), target, contiguous :: data(..)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'f8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      ierr)
  end subroutine

  ! ---- complex(c_float_complex): numpy's c8

  subroutine write_c4(group, set, step, data, wait, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_float_complex), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'c8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, ierr)
  end subroutine

  subroutine read_c4(group, set, step, data, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_float_complex), intent(inout), target, contiguous :: data(..)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'c8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      ierr)
  end subroutine

  ! ---- complex(c_double_complex): numpy's c16

  subroutine write_c8(group, set, step, data, wait, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_double_complex), intent(in), target, contiguous :: data(..)
    logical, intent(in), optional :: wait
    integer, intent(out), optional :: ierr
    integer :: d
    call write_any(group, set, step, 'c16', 16, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      wait, ierr)
  end subroutine

  subroutine read_c8(group, set, step, data, ierr)
    type(fieldstone_group), intent(in) :: group
    character(len=*), intent(in) :: set
    integer, intent(in) :: step
    complex(c_double_complex), intent(inout), target, contiguous :: data(..)
    integer, intent(out), optional :: ierr
    integer :: d
    call read_any(group, set, step, 'c16', 16, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], &
      ierr)
  end subroutine
end module
