! Jobs of distributed arrays, and the declarations and descriptions of their groups. Programs use
! the module fieldstone_arrays.
module fieldstone_jobs
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fieldstone_store, fs_store_handle, fs_finish, FS_OK, FS_INVALID
  use fieldstone_arrays_types
  implicit none
  private

  public :: fieldstone_set, fieldstone_counts, fs_arrays_open, fs_arrays_close, fs_arrays_flush, fs_arrays_discard
  public :: fs_arrays_abandon, fs_arrays_run, fs_arrays_report, fs_set, fs_arrays_group
  public :: fs_arrays_declared_group, fs_group_local_shape, fs_group_steps, fs_group_last_step, fs_group_level
  public :: fs_group_why

  !> A set of a group: made by fs_set.
  type :: fieldstone_set
    private
    character(kind=c_char, len=NAME_SIZE) :: name = c_null_char, dtype = c_null_char
    integer(c_int) :: ndim = 0
    integer(c_int64_t) :: shape(RANK_MAX) = 0
    logical :: has_dims = .false., has_fill = .false.
    character(kind=c_char, len=NAME_SIZE) :: dims(RANK_MAX) = c_null_char
    integer(c_int8_t) :: fill(16) = 0
    type(fieldstone_attr), allocatable :: attrs(:)
    character(len=100) :: problem = '' ! its fault; all ranks report it when they declare the group
  end type

  !> Work that this rank of a job has done since the job began: bytes sent to others, written to
  !> files and read from them, files opened, exchanges planned, connections to the catalog, and
  !> seconds.
  type, bind(c) :: fieldstone_counts
    integer(c_int64_t) :: exchanged, written, read, opened, plans, connections
    real(c_double) :: plan_seconds, write_seconds, sync_seconds, commit_seconds, read_seconds
  end type

  !> fs_set(name, dtype, shape [, dims] [, fill] [, attrs]): a set; `dtype` is numpy's: 'f8', 'i4'.
  !> `fill` is the value of unwritten elements. `attrs` are made by fs_attr.
  interface fs_set
    module procedure set_of, set_of_far
  end interface

  type :: attr_list
    type(c_attr), allocatable :: list(:)
  end type

  ! The structures of the C header.
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
    type(c_ptr) :: chunks, compression, mesh, location
    integer(c_int) :: nhints
    type(c_ptr) :: hints
  end type

  type, bind(c) :: c_job_options
    type(c_ptr) :: project
    integer(c_size_t) :: writers, readers, buffer
    type(c_ptr) :: layout
    integer(c_int) :: nhints
    type(c_ptr) :: hints
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

    function c_local_shape(group, set, ndim, shape) bind(c, name='fs_group_local_shape') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      character(kind=c_char), intent(in) :: set(*)
      integer(c_int), intent(out) :: ndim
      integer(c_int64_t), intent(out) :: shape(*)
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
  end interface

contains

  ! ---- jobs

  !> Opens a job of a store, which each rank has opened before. The job creates or continues the run
  !> of this name; without a name it creates a new run. Collective over `comm`. `writers` and
  !> `readers`: number of ranks that write and read in an exchange. `buffer`: bytes that a rank may
  !> use to move elements. `layout`: 'files', netCDF files that belong to the store, or 'fields',
  !> the store's own logs. `hints`, made by fs_hint, apply to all its files.
  subroutine fs_arrays_open(job, store, name, comm, project, writers, readers, buffer, layout, hints, ierr)
    type(fieldstone_job), intent(out) :: job
    type(fieldstone_store), intent(in) :: store
    character(len=*), intent(in), optional :: name, project, layout
    type(fieldstone_comm), intent(in), optional :: comm
    integer, intent(in), optional :: writers, readers
    integer(c_int64_t), intent(in), optional :: buffer
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    type(c_hint), allocatable, target :: list(:)
    character(kind=c_char, len=:), allocatable, target :: name_text, project_text, layout_text
    type(c_ptr) :: name_address, ranks
    type(c_job_options) :: options
    name_address = c_null_ptr
    if (present(name)) then
      name_text = c_text(name)
      name_address = c_loc(name_text)
    end if
    options = c_job_options(c_null_ptr, 0, 0, 0, c_null_ptr, 0, c_null_ptr)
    call listed_hints(hints, list, options%nhints)
    options%hints = c_loc(list)
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

  !> Flushes, and closes all files; groups of the job end. Collective. The job is closed even if
  !> this fails.
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

  !> Discards all writes since the last flush. Collective.
  subroutine fs_arrays_discard(job, ierr)
    type(fieldstone_job), intent(in) :: job
    integer, intent(out), optional :: ierr
    call fs_finish(c_arrays_discard(job%handle), ierr)
  end subroutine

  !> Ends the job on this rank because of an error of its own: the current or next collective call
  !> of the other ranks fails with this message.
  subroutine fs_arrays_abandon(job, message, ierr)
    type(fieldstone_job), intent(inout) :: job
    character(len=*), intent(in) :: message
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = job%handle
    job%handle = c_null_ptr
    call fs_finish(c_arrays_abandon(handle, c_text(message)), ierr)
  end subroutine

  !> The name of the run. Not collective.
  function fs_arrays_run(job) result(name)
    type(fieldstone_job), intent(in) :: job
    character(len=:), allocatable :: name
    character(kind=c_char) :: letters(1024)
    letters = c_null_char
    call fs_finish(c_arrays_run(job%handle, letters, size(letters, kind=c_size_t)))
    name = fortran_text(letters)
  end function

  !> Gets the work that this rank has done so far. Not collective.
  subroutine fs_arrays_report(job, counts, ierr)
    type(fieldstone_job), intent(in) :: job
    type(fieldstone_counts), intent(out) :: counts
    integer, intent(out), optional :: ierr
    call fs_finish(c_arrays_report(job%handle, counts), ierr)
  end subroutine

  ! ---- groups

  function set_of(name, dtype, shape, dims, fill, attrs) result(set)
    character(len=*), intent(in) :: name, dtype
    integer, intent(in) :: shape(:)
    character(len=*), intent(in), optional :: dims(:)
    real(c_double), intent(in), optional :: fill
    type(fieldstone_attr), intent(in), optional :: attrs(:)
    type(fieldstone_set) :: set
    set = set_of_far(name, dtype, int(shape, c_int64_t), dims, fill, attrs)
  end function

  function set_of_far(name, dtype, shape, dims, fill, attrs) result(set)
    character(len=*), intent(in) :: name, dtype
    integer(c_int64_t), intent(in) :: shape(:)
    character(len=*), intent(in), optional :: dims(:)
    real(c_double), intent(in), optional :: fill
    type(fieldstone_attr), intent(in), optional :: attrs(:)
    type(fieldstone_set) :: set
    integer :: i
    set%name = c_text(name)
    set%dtype = c_text(dtype)
    set%ndim = size(shape)
    if (present(attrs)) set%attrs = attrs
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

  !> Declares a group of sets, or opens an equal one that is declared. Collective. `level` is 1: a
  !> file for each set and step; 2: for each set; 3: for each group; absent: chosen by the measured
  !> cost of opening a file. `method`: 'direct', 'exchange' or 'view'; absent: chosen by the views.
  !> `order`: 'F' (the default) or 'C'. `attrs` are the group's, made by fs_attr; `hints`, made by
  !> fs_hint, are for its files. With `mesh` and `location` ('node', 'edge', 'face', 'volume') its
  !> sets belong to a mesh of the store, along their first dimension; a shape [integer ::] means
  !> that dimension alone.
  subroutine fs_arrays_group(group, job, name, sets, level, method, order, chunks, compression, attrs, mesh, location, &
      hints, ierr)
    type(fieldstone_group), intent(out) :: group
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: name
    type(fieldstone_set), intent(in), target :: sets(:)
    integer, intent(in), optional :: level
    character(len=*), intent(in), optional :: method, order, compression, mesh, location
    integer, intent(in), optional :: chunks(:)
    type(fieldstone_attr), intent(in), optional :: attrs(:)
    type(fieldstone_hint), intent(in), optional :: hints(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=:), allocatable, target :: method_text, order_text, compression_text, mesh_text
    character(kind=c_char, len=:), allocatable, target :: location_text
    type(c_attr), allocatable, target :: of_group(:)
    type(c_hint), allocatable, target :: list(:)
    type(attr_list), target :: of_sets(max(1, size(sets)))
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
      if (allocated(sets(i)%attrs)) then
        call listed_attrs(sets(i)%attrs, of_sets(i)%list, given(i)%nattrs)
        given(i)%attrs = c_loc(of_sets(i)%list)
      end if
      if (sets(i)%has_fill) given(i)%fill = c_loc(sets(i)%fill)
      if (sets(i)%problem /= '') given(i)%ndim = -1
    end do
    order_text = c_text('F')
    if (present(order)) order_text = c_text(order)
    options = c_group_options(0, c_null_ptr, c_loc(order_text), 0, c_null_ptr, 0, c_null_ptr, c_null_ptr, c_null_ptr, &
      c_null_ptr, 0, c_null_ptr)
    call listed_attrs(attrs, of_group, options%nattrs)
    options%attrs = c_loc(of_group)
    call listed_hints(hints, list, options%nhints)
    options%hints = c_loc(list)
    if (present(mesh)) then
      mesh_text = c_text(mesh)
      options%mesh = c_loc(mesh_text)
    end if
    if (present(location)) then
      location_text = c_text(location)
      options%location = c_loc(location_text)
    end if
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

  !> Opens a declared group. Collective.
  subroutine fs_arrays_declared_group(group, job, name, ierr)
    type(fieldstone_group), intent(out) :: group
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: ierr
    call fs_finish(c_arrays_declared_group(job%handle, c_text(name), group%handle), ierr)
  end subroutine

  ! ---- description of groups

  !> Gets the shape of this rank's part of a set by its view. Not collective.
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

  !> Gets the steps at which a set is flushed and complete, ascending. Collective.
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

  !> Gets the newest step at which all sets of the group are flushed and complete; `found` is false
  !> if there is none. Collective.
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
        status = c_fail(FS_INVALID, c_text('the last step does not fit a default integer'), c_null_ptr)
      end if
    end if
    call fs_finish(status, ierr)
  end subroutine

  !> The organisation level of the group: 1, 2 or 3. Not collective.
  integer function fs_group_level(group)
    type(fieldstone_group), intent(in) :: group
    integer(c_int) :: level
    call fs_finish(c_level(group%handle, level))
    fs_group_level = level
  end function

  !> Explains the choice of level and method. Not collective.
  function fs_group_why(group) result(why)
    type(fieldstone_group), intent(in) :: group
    character(len=:), allocatable :: why
    character(kind=c_char) :: letters(1024)
    letters = c_null_char
    call fs_finish(c_why(group%handle, letters, size(letters, kind=c_size_t)))
    why = fortran_text(letters)
  end function
end module
