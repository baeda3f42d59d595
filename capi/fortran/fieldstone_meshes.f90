! Unstructured meshes of a store: the ranks of a job create them, the store keeps each content once,
! and jobs open them by name. Programs use the module fieldstone_arrays.
!
! Nodes count from 1 here; 0 means no node and comes after all nodes of a row.
module fieldstone_meshes
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fs_finish, FS_OK
  use fieldstone_arrays_types
  implicit none
  private

  public :: fieldstone_mesh_counts, fs_arrays_create_mesh, fs_arrays_mesh, fs_mesh_info, fs_mesh_checksum
  public :: fs_mesh_local_shape, fs_mesh_read, fs_mesh_close

  !> The size of a mesh.
  type, bind(c) :: fieldstone_mesh_counts
    integer(c_int64_t) :: nodes, edges, faces, volumes
  end type

  !> fs_mesh_read(mesh, array, data [, view] [, ierr]): collective; reads this rank's part of an
  !> array by the view, or without one its share of a balanced cut. The arrays are 'x', 'y', 'z' of
  !> real(8), and 'edges', 'faces' and 'volumes' of integer(4) (integer(8) in a mesh of 2**31 or
  !> more nodes). Rows are along the last dimension: faces(width, count).
  interface fs_mesh_read
    module procedure read_coordinate, read_rows, read_rows_far
  end interface

  ! The structures of the C header.
  type, bind(c) :: c_rows
    integer(c_size_t) :: count, width
    type(c_ptr) :: nodes
  end type

  type, bind(c) :: c_content
    integer(c_size_t) :: nodes
    integer(c_int) :: dimensions
    type(c_ptr) :: x, y, z
    type(c_rows) :: edges, faces, volumes
    integer(c_int64_t) :: base
    integer(c_int) :: ncoordinate_attrs(3)
    type(c_ptr) :: coordinate_attrs(3)
    integer(c_int) :: nattrs
    type(c_ptr) :: attrs
  end type

  interface
    function c_create(job, name, content, order, mesh) bind(c, name='fs_arrays_create_mesh') result(status)
      import :: c_char, c_content, c_int, c_ptr
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*)
      type(c_content), intent(in) :: content
      character(kind=c_char), intent(in) :: order(*)
      type(c_ptr), intent(out) :: mesh
      integer(c_int) :: status
    end function

    function c_open(job, name, order, mesh) bind(c, name='fs_arrays_mesh') result(status)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: name(*), order(*)
      type(c_ptr), intent(out) :: mesh
      integer(c_int) :: status
    end function

    function c_info(mesh, counts) bind(c, name='fs_mesh_info') result(status)
      import :: c_int, c_ptr, fieldstone_mesh_counts
      type(c_ptr), value :: mesh
      type(fieldstone_mesh_counts), intent(out) :: counts
      integer(c_int) :: status
    end function

    function c_checksum(mesh, checksum, capacity) bind(c, name='fs_mesh_checksum') result(status)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: mesh
      character(kind=c_char), intent(out) :: checksum(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_local_shape(mesh, array, view, ndim, shape) bind(c, name='fs_mesh_local_shape') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: mesh
      character(kind=c_char), intent(in) :: array(*)
      type(c_ptr), value :: view
      integer(c_int), intent(out) :: ndim
      integer(c_int64_t), intent(out) :: shape(*)
      integer(c_int) :: status
    end function

    function c_read(mesh, array, view, dtype, ndim, shape, strides, data) bind(c, name='fs_mesh_read') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: mesh
      character(kind=c_char), intent(in) :: array(*)
      type(c_ptr), value :: view
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), value :: strides
      type(c_ptr), value :: data
      integer(c_int) :: status
    end function

    function c_close(mesh) bind(c, name='fs_mesh_close') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: mesh
      integer(c_int) :: status
    end function
  end interface

contains

  !> Creates a mesh from the ranks' contiguous shares, and declares it under a name. `x`, `y` and,
  !> in space, `z` are coordinates of nodes; edges(2, n), faces(width, n), volumes(width, n) have a
  !> column of nodes for each, for volumes in UGRID's order. `base`: the number of the first node, 1
  !> (the default) or 0 (then -1 means no node). `attrs` are the mesh's, `x_attrs`, `y_attrs`,
  !> `z_attrs` those of coordinates, such as fs_attr('units', 'm'). Collective. The handle ends with
  !> its job; the store keeps the mesh.
  subroutine fs_arrays_create_mesh(mesh, job, name, x, y, z, edges, faces, volumes, base, attrs, x_attrs, y_attrs, &
      z_attrs, ierr)
    type(fieldstone_mesh), intent(out) :: mesh
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: name
    real(c_double), intent(in), target, contiguous :: x(:), y(:)
    real(c_double), intent(in), target, contiguous, optional :: z(:)
    integer, intent(in), optional :: edges(:, :), faces(:, :), volumes(:, :), base
    type(fieldstone_attr), intent(in), optional :: attrs(:), x_attrs(:), y_attrs(:), z_attrs(:)
    integer, intent(out), optional :: ierr
    type(c_attr), allocatable, target :: of_x(:), of_y(:), of_z(:)
    integer(c_int64_t), allocatable, target :: two(:), flat(:), solid(:)
    type(c_attr), allocatable, target :: list(:)
    type(c_content) :: content
    logical :: alike
    content%nodes = size(x)
    content%dimensions = 2
    content%x = c_null_ptr
    content%y = c_null_ptr
    content%z = c_null_ptr
    if (size(x) > 0) content%x = c_loc(x)
    if (size(y) > 0) content%y = c_loc(y)
    alike = size(y) == size(x)
    if (present(z)) then
      content%dimensions = 3
      if (size(z) > 0) content%z = c_loc(z)
      alike = alike .and. size(z) == size(x)
    end if
    ! The library refuses this, on all ranks.
    if (.not. alike) content%dimensions = -1
    content%base = 1
    if (present(base)) content%base = base
    call listed_rows(edges, content%base, two, content%edges)
    call listed_rows(faces, content%base, flat, content%faces)
    call listed_rows(volumes, content%base, solid, content%volumes)
    call listed_attrs(x_attrs, of_x, content%ncoordinate_attrs(1))
    call listed_attrs(y_attrs, of_y, content%ncoordinate_attrs(2))
    call listed_attrs(z_attrs, of_z, content%ncoordinate_attrs(3))
    content%coordinate_attrs = [c_loc(of_x), c_loc(of_y), c_loc(of_z)]
    call listed_attrs(attrs, list, content%nattrs)
    content%attrs = c_loc(list)
    call fs_finish(c_create(job%handle, c_text(name), content, c_text('F'), mesh%handle), ierr)
  end subroutine

  !> Opens a mesh of the store by name. Collective.
  subroutine fs_arrays_mesh(mesh, job, name, ierr)
    type(fieldstone_mesh), intent(out) :: mesh
    type(fieldstone_job), intent(in) :: job
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: ierr
    call fs_finish(c_open(job%handle, c_text(name), c_text('F'), mesh%handle), ierr)
  end subroutine

  !> Counts its nodes, edges, faces and volumes. Not collective.
  subroutine fs_mesh_info(mesh, counts, ierr)
    type(fieldstone_mesh), intent(in) :: mesh
    type(fieldstone_mesh_counts), intent(out) :: counts
    integer, intent(out), optional :: ierr
    call fs_finish(c_info(mesh%handle, counts), ierr)
  end subroutine

  !> Checksum of its content: meshes with equal content have equal checksums. Not collective.
  function fs_mesh_checksum(mesh) result(checksum)
    type(fieldstone_mesh), intent(in) :: mesh
    character(len=:), allocatable :: checksum
    character(kind=c_char) :: letters(64)
    letters = c_null_char
    call fs_finish(c_checksum(mesh%handle, letters, size(letters, kind=c_size_t)))
    checksum = fortran_text(letters)
  end function

  !> Gets the shape of this rank's part of an array by a view, or without one of its share.
  !> Collective.
  subroutine fs_mesh_local_shape(mesh, array, shape, view, ierr)
    type(fieldstone_mesh), intent(in) :: mesh
    character(len=*), intent(in) :: array
    integer(c_int64_t), allocatable, intent(out) :: shape(:)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: extents(RANK_MAX)
    integer(c_int) :: ndim
    integer :: status
    type(c_ptr) :: by
    by = c_null_ptr
    if (present(view)) by = view%handle
    status = c_local_shape(mesh%handle, c_text(array), by, ndim, extents)
    if (status /= FS_OK) ndim = 0
    shape = extents(:ndim)
    call fs_finish(status, ierr)
  end subroutine

  !> Closes the mesh; the store keeps it. Collective.
  subroutine fs_mesh_close(mesh, ierr)
    type(fieldstone_mesh), intent(inout) :: mesh
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = mesh%handle
    mesh%handle = c_null_ptr
    call fs_finish(c_close(handle), ierr)
  end subroutine

  ! ---- internal procedures

  !> Rows for C, where -1 means no node.
  subroutine listed_rows(nodes, base, list, rows)
    integer, intent(in), optional :: nodes(:, :)
    integer(c_int64_t), intent(in) :: base
    integer(c_int64_t), allocatable, target, intent(out) :: list(:)
    type(c_rows), intent(out) :: rows
    rows = c_rows(0, 0, c_null_ptr)
    if (.not. present(nodes)) return
    list = [reshape(int(nodes, c_int64_t), [size(nodes)]), 0_c_int64_t]
    if (base == 1) where (list == 0) list = -1
    rows = c_rows(size(nodes, 2, c_size_t), size(nodes, 1, c_size_t), c_loc(list))
  end subroutine

  integer function read_any(mesh, array, dtype, address, extents, view) result(status)
    type(fieldstone_mesh), intent(in) :: mesh
    character(len=*), intent(in) :: array, dtype
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:)
    type(fieldstone_view), intent(in), optional :: view
    type(c_ptr) :: by
    by = c_null_ptr
    if (present(view)) by = view%handle
    status = c_read(mesh%handle, c_text(array), by, c_text(dtype), size(extents), extents, c_null_ptr, address)
  end function

  subroutine read_coordinate(mesh, array, data, view, ierr)
    type(fieldstone_mesh), intent(in) :: mesh
    character(len=*), intent(in) :: array
    real(c_double), intent(inout), target, contiguous :: data(:)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    call fs_finish(read_any(mesh, array, 'f8', c_loc(data), [size(data, kind=c_int64_t)], view), ierr)
  end subroutine

  subroutine read_rows(mesh, array, data, view, ierr)
    type(fieldstone_mesh), intent(in) :: mesh
    character(len=*), intent(in) :: array
    integer(c_int32_t), intent(inout), target, contiguous :: data(:, :)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: status
    status = read_any(mesh, array, 'i4', c_loc(data), shape(data, c_int64_t), view)
    if (status == FS_OK) data = data + 1
    call fs_finish(status, ierr)
  end subroutine

  subroutine read_rows_far(mesh, array, data, view, ierr)
    type(fieldstone_mesh), intent(in) :: mesh
    character(len=*), intent(in) :: array
    integer(c_int64_t), intent(inout), target, contiguous :: data(:, :)
    type(fieldstone_view), intent(in), optional :: view
    integer, intent(out), optional :: ierr
    integer :: status
    status = read_any(mesh, array, 'i8', c_loc(data), shape(data, c_int64_t), view)
    if (status == FS_OK) data = data + 1
    call fs_finish(status, ierr)
  end subroutine
end module
