! A rank's part of an unstructured mesh, from a vector that gives each node its rank. Programs use
! the module fieldstone_arrays.
!
! Numbers of nodes and edges count from 1 here; ranks count from 0, in vectors as in MPI.
module fieldstone_partitions
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fs_finish, FS_OK
  use fieldstone_arrays_types
  implicit none
  private

  public :: fieldstone_edges, fieldstone_vector, fieldstone_partition_counts, fs_edges, fs_vector, fs_arrays_partition
  public :: fs_partition_info, fs_partition_nodes, fs_partition_edges, fs_partition_ends, fs_partition_source
  public :: fs_partition_ignored, fs_partition_node_view, fs_partition_edge_view, fs_partition_update
  public :: fs_partition_free

  !> The source of edges: made by fs_edges.
  type :: fieldstone_edges
    private
    integer :: count = 0
    integer(c_int64_t), allocatable :: first(:), second(:)
    character(kind=c_char, len=NAME_SIZE) :: first_name = c_null_char, second_name = c_null_char
    type(c_ptr) :: import = c_null_ptr, mesh = c_null_ptr
  end type

  !> The rank of each node: made by fs_vector.
  type :: fieldstone_vector
    private
    character(kind=c_char, len=NAME_SIZE) :: kind = c_null_char
    integer(c_int64_t), allocatable :: ranks(:)
    character(kind=c_char, len=:), allocatable :: path
  end type

  !> Size of a rank's part: nodes (own nodes, then ghosts), own nodes, edges with an own end, and
  !> edges whose first end is own, which come first.
  type, bind(c) :: fieldstone_partition_counts
    integer(c_size_t) :: nodes, owned, edges, owned_edges
  end type

  !> fs_edges(first, second): nodes at both ends of this rank's contiguous share of the edges.
  !> fs_edges(import, first, second): two variables of an import, by name. fs_edges(mesh): the edges
  !> of a mesh, or else those of its faces or volumes.
  interface fs_edges
    module procedure edges_of, edges_of_far, edges_of_import, edges_of_mesh
  end interface

  !> fs_vector(ranks [, shares]): the ranks of all nodes, equal on all ranks; with shares=.true. of
  !> this rank's contiguous share of the nodes. fs_vector(kind): 'block', contiguous ranges of
  !> nodes; 'hilbert', equal shares along a Hilbert curve through the nodes of a mesh.
  !> fs_vector('file', path): a METIS file with a line for each node.
  interface fs_vector
    module procedure vector_of, vector_of_far, vector_of_kind
  end interface

  !> fs_partition_update(partition, data [, dim] [, ierr]): updates the ghosts in an array at the
  !> nodes with their owners' values, in place. The nodes are along dimension `dim` (default: the
  !> last). Collective.
  interface fs_partition_update
    module procedure update_i4, update_i8, update_r4, update_r8, update_c4, update_c8
  end interface

  ! The structures of the C header.
  type, bind(c) :: c_edges
    integer(c_size_t) :: count
    type(c_ptr) :: first, second, import, first_name, second_name, mesh
  end type

  type, bind(c) :: c_vector
    type(c_ptr) :: kind
    integer(c_size_t) :: count
    type(c_ptr) :: ranks, path
  end type

  type, bind(c) :: c_partition_options
    integer(c_int64_t) :: nodes, base
    integer(c_int) :: no_history
    type(c_ptr) :: method
  end type

  interface
    function c_partition(job, edges, vector, options, partition) bind(c, &
        name='fs_arrays_partition') result(status)
      import :: c_edges, c_int, c_partition_options, c_ptr, c_vector
      type(c_ptr), value :: job
      type(c_edges), intent(in) :: edges
      type(c_vector), intent(in) :: vector
      type(c_partition_options), intent(in) :: options
      type(c_ptr), intent(out) :: partition
      integer(c_int) :: status
    end function

    function c_info(partition, counts) bind(c, name='fs_partition_info') result(status)
      import :: c_int, c_ptr, fieldstone_partition_counts
      type(c_ptr), value :: partition
      type(fieldstone_partition_counts), intent(out) :: counts
      integer(c_int) :: status
    end function

    function c_nodes(partition, nodes, capacity) bind(c, name='fs_partition_nodes') result(status)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: partition
      integer(c_int64_t), intent(out) :: nodes(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_numbers(partition, edges, capacity) bind(c, name='fs_partition_edges') result(status)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: partition
      integer(c_int64_t), intent(out) :: edges(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_ends(partition, ends, capacity) bind(c, name='fs_partition_ends') result(status)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: partition
      integer(c_int64_t), intent(out) :: ends(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_source(partition, text, capacity) bind(c, name='fs_partition_source') result(status)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: partition
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_ignored(partition, text, capacity) bind(c, name='fs_partition_ignored') result(status)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: partition
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), value :: capacity
      integer(c_int) :: status
    end function

    function c_node_view(partition, dim, view) bind(c, name='fs_partition_node_view') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
      integer(c_int), value :: dim
      type(c_ptr), intent(out) :: view
      integer(c_int) :: status
    end function

    function c_edge_view(partition, dim, view) bind(c, name='fs_partition_edge_view') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
      integer(c_int), value :: dim
      type(c_ptr), intent(out) :: view
      integer(c_int) :: status
    end function

    function c_update(partition, dtype, ndim, shape, strides, data) bind(c, &
        name='fs_partition_update') result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: partition
      character(kind=c_char), intent(in) :: dtype(*)
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int64_t), intent(in) :: strides(*)
      type(c_ptr), value :: data
      integer(c_int) :: status
    end function

    function c_free(partition) bind(c, name='fs_partition_free') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: partition
      integer(c_int) :: status
    end function
  end interface

contains

  ! ---- edges, vectors and options

  function edges_of(first, second) result(edges)
    integer, intent(in) :: first(:), second(:)
    type(fieldstone_edges) :: edges
    edges = edges_of_far(int(first, c_int64_t), int(second, c_int64_t))
  end function

  function edges_of_far(first, second) result(edges)
    integer(c_int64_t), intent(in) :: first(:), second(:)
    type(fieldstone_edges) :: edges
    ! One element more, so that an empty list has an address to pass.
    allocate (edges%first(size(first) + 1), edges%second(size(second) + 1))
    edges%first(:size(first)) = first
    edges%second(:size(second)) = second
    edges%count = size(first)
    if (size(second) /= size(first)) edges%count = -1
  end function

  function edges_of_import(import, first, second) result(edges)
    type(fieldstone_import), intent(in) :: import
    character(len=*), intent(in) :: first, second
    type(fieldstone_edges) :: edges
    edges%import = import%handle
    edges%first_name = c_text(first)
    edges%second_name = c_text(second)
  end function

  function edges_of_mesh(mesh) result(edges)
    type(fieldstone_mesh), intent(in) :: mesh
    type(fieldstone_edges) :: edges
    edges%mesh = mesh%handle
  end function

  function vector_of(ranks, shares) result(vector)
    integer, intent(in) :: ranks(:)
    logical, intent(in), optional :: shares
    type(fieldstone_vector) :: vector
    vector = vector_of_far(int(ranks, c_int64_t), shares)
  end function

  function vector_of_far(ranks, shares) result(vector)
    integer(c_int64_t), intent(in) :: ranks(:)
    logical, intent(in), optional :: shares
    type(fieldstone_vector) :: vector
    vector%kind = c_text('replicated')
    if (present(shares)) then
      if (shares) vector%kind = c_text('shares')
    end if
    allocate (vector%ranks(size(ranks) + 1))
    vector%ranks(:size(ranks)) = ranks
    vector%path = c_null_char
  end function

  function vector_of_kind(kind, path) result(vector)
    character(len=*), intent(in) :: kind
    character(len=*), intent(in), optional :: path
    type(fieldstone_vector) :: vector
    vector%kind = c_text(kind)
    allocate (vector%ranks(1))
    vector%path = c_null_char
    if (present(path)) vector%path = c_text(path)
  end function

  ! ---- partitions

  !> Makes this rank's part of a mesh: the nodes that the vector assigns to it, all edges with an
  !> own end, and as ghosts the nodes at the other ends of those edges. Collective. `nodes`: number
  !> of nodes, if neither vector nor mesh gives it. `base`: the number of the first node in the
  !> edges, 1 (the default) or 0; a mesh knows its own. With history=.false. the call neither uses a
  !> history of earlier runs nor keeps this partition. `method`: 'direct' or 'ring'.
  subroutine fs_arrays_partition(partition, job, edges, vector, nodes, base, history, method, ierr)
    type(fieldstone_partition), intent(out) :: partition
    type(fieldstone_job), intent(in) :: job
    type(fieldstone_edges), intent(in), target :: edges
    type(fieldstone_vector), intent(in), target :: vector
    integer, intent(in), optional :: nodes, base
    logical, intent(in), optional :: history
    character(len=*), intent(in), optional :: method
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=:), allocatable, target :: method_text
    type(c_edges) :: given
    type(c_vector) :: by
    type(c_partition_options) :: options
    given = c_edges(int(edges%count, c_size_t), c_null_ptr, c_null_ptr, edges%import, c_loc(edges%first_name), &
      c_loc(edges%second_name), edges%mesh)
    if (allocated(edges%first)) then
      given%first = c_loc(edges%first)
      given%second = c_loc(edges%second)
    end if
    by = c_vector(c_loc(vector%kind), 0, c_null_ptr, c_null_ptr)
    if (allocated(vector%ranks)) by = c_vector(c_loc(vector%kind), int(size(vector%ranks) - 1, c_size_t), &
      c_loc(vector%ranks), c_loc(vector%path))
    options = c_partition_options(0, 1, 0, c_null_ptr)
    if (c_associated(edges%mesh)) options%base = 0
    if (present(nodes)) options%nodes = nodes
    if (present(base)) options%base = base
    if (present(history)) options%no_history = merge(0, 1, history)
    if (present(method)) then
      method_text = c_text(method)
      options%method = c_loc(method_text)
    end if
    call fs_finish(c_partition(job%handle, given, by, options, partition%handle), ierr)
  end subroutine

  !> Gets the size of this rank's part. Neither this call nor the next ones are collective.
  subroutine fs_partition_info(partition, counts, ierr)
    type(fieldstone_partition), intent(in) :: partition
    type(fieldstone_partition_counts), intent(out) :: counts
    integer, intent(out), optional :: ierr
    call fs_finish(c_info(partition%handle, counts), ierr)
  end subroutine

  !> Gets the global numbers of nodes, from 1: own nodes ascending, then ghosts ascending.
  subroutine fs_partition_nodes(partition, nodes, ierr)
    type(fieldstone_partition), intent(in) :: partition
    integer(c_int64_t), allocatable, intent(out) :: nodes(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_partition_counts) :: counts
    integer :: status
    allocate (nodes(0))
    status = c_info(partition%handle, counts)
    if (status == FS_OK) then
      deallocate (nodes)
      allocate (nodes(counts%nodes))
      status = c_nodes(partition%handle, nodes, counts%nodes)
      nodes = nodes + 1
    end if
    call fs_finish(status, ierr)
  end subroutine

  !> Gets the global numbers of edges, from 1: those whose first end is own, ascending, then the
  !> others, ascending.
  subroutine fs_partition_edges(partition, edges, ierr)
    type(fieldstone_partition), intent(in) :: partition
    integer(c_int64_t), allocatable, intent(out) :: edges(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_partition_counts) :: counts
    integer :: status
    allocate (edges(0))
    status = c_info(partition%handle, counts)
    if (status == FS_OK) then
      deallocate (edges)
      allocate (edges(counts%edges))
      status = c_numbers(partition%handle, edges, counts%edges)
      edges = edges + 1
    end if
    call fs_finish(status, ierr)
  end subroutine

  !> Gets both ends of each edge as positions in the list of nodes, from 1: ends(2, edges).
  subroutine fs_partition_ends(partition, ends, ierr)
    type(fieldstone_partition), intent(in) :: partition
    integer(c_int64_t), allocatable, intent(out) :: ends(:, :)
    integer, intent(out), optional :: ierr
    type(fieldstone_partition_counts) :: counts
    integer :: status
    allocate (ends(2, 0))
    status = c_info(partition%handle, counts)
    if (status == FS_OK) then
      deallocate (ends)
      allocate (ends(2, counts%edges))
      status = c_ends(partition%handle, ends, 2 * counts%edges)
      ends = ends + 1
    end if
    call fs_finish(status, ierr)
  end subroutine

  !> The source of the partition: 'computed'; 'edges', computed from edges that an earlier run kept;
  !> 'parts', as an earlier run finished it.
  function fs_partition_source(partition) result(source)
    type(fieldstone_partition), intent(in) :: partition
    character(len=:), allocatable :: source
    character(kind=c_char) :: letters(64)
    letters = c_null_char
    call fs_finish(c_source(partition%handle, letters, size(letters, kind=c_size_t)))
    source = fortran_text(letters)
  end function

  !> Lists the history files that could not be used, with the reasons; '' if there are none.
  function fs_partition_ignored(partition) result(ignored)
    type(fieldstone_partition), intent(in) :: partition
    character(len=:), allocatable :: ignored
    character(kind=c_char) :: letters(2048)
    letters = c_null_char
    call fs_finish(c_ignored(partition%handle, letters, size(letters, kind=c_size_t)))
    ignored = fortran_text(letters)
  end function

  !> Makes a view of an array at the nodes, which are along dimension `dim` (default: the first):
  !> own nodes are written, all are read. fs_view_free frees the view.
  subroutine fs_partition_node_view(view, partition, dim, ierr)
    type(fieldstone_view), intent(out) :: view
    type(fieldstone_partition), intent(in) :: partition
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: along
    along = 1
    if (present(dim)) along = dim
    call fs_finish(c_node_view(partition%handle, along - 1, view%handle), ierr)
  end subroutine

  !> Makes a view of an array at the edges: edges whose first end is own are written, all are read.
  subroutine fs_partition_edge_view(view, partition, dim, ierr)
    type(fieldstone_view), intent(out) :: view
    type(fieldstone_partition), intent(in) :: partition
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: along
    along = 1
    if (present(dim)) along = dim
    call fs_finish(c_edge_view(partition%handle, along - 1, view%handle), ierr)
  end subroutine

  !> Frees a partition; its views and history files stay.
  subroutine fs_partition_free(partition, ierr)
    type(fieldstone_partition), intent(inout) :: partition
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = partition%handle
    partition%handle = c_null_ptr
    call fs_finish(c_free(handle), ierr)
  end subroutine

  !> The library expects nodes along the first dimension; the strides describe their real positions.
  subroutine update_any(partition, dtype, element, address, extents, dim, ierr)
    type(fieldstone_partition), intent(in) :: partition
    character(len=*), intent(in) :: dtype
    integer, intent(in) :: element
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: extents(:)
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: strides(size(extents))
    integer, allocatable :: order(:)
    integer :: along, d
    along = size(extents)
    if (present(dim)) along = dim
    strides = strides_of(extents, element)
    ! If the array lacks the requested dimension, the library gets no dimensions and refuses that on
    ! all ranks.
    allocate (order(0))
    if (along >= 1 .and. along <= size(extents)) then
      order = [along, pack([(d, d=size(extents), 1, -1)], [(d /= along, d=size(extents), 1, -1)])]
    end if
    call fs_finish(c_update(partition%handle, c_text(dtype), size(order), extents(order), strides(order), address), ierr)
  end subroutine

  ! ---- integer(c_int32_t): numpy's i4

  subroutine update_i4(partition, data, dim, ierr)
    type(fieldstone_partition), intent(in) :: partition
    integer(c_int32_t), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: d
    call update_any(partition, 'i4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], dim, ierr)
  end subroutine

  ! ---- integer(c_int64_t): numpy's i8

  subroutine update_i8(partition, data, dim, ierr)
    type(fieldstone_partition), intent(in) :: partition
    integer(c_int64_t), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: d
    call update_any(partition, 'i8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], dim, ierr)
  end subroutine

  ! ---- real(c_float): numpy's f4

  subroutine update_r4(partition, data, dim, ierr)
    type(fieldstone_partition), intent(in) :: partition
    real(c_float), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: d
    call update_any(partition, 'f4', 4, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], dim, ierr)
  end subroutine

  ! ---- real(c_double): numpy's f8

  subroutine update_r8(partition, data, dim, ierr)
    type(fieldstone_partition), intent(in) :: partition
    real(c_double), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: d
    call update_any(partition, 'f8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], dim, ierr)
  end subroutine

  ! ---- complex(c_float_complex): numpy's c8

  subroutine update_c4(partition, data, dim, ierr)
    type(fieldstone_partition), intent(in) :: partition
    complex(c_float_complex), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: d
    call update_any(partition, 'c8', 8, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], dim, ierr)
  end subroutine

  ! ---- complex(c_double_complex): numpy's c16

  subroutine update_c8(partition, data, dim, ierr)
    type(fieldstone_partition), intent(in) :: partition
    complex(c_double_complex), intent(inout), target, contiguous :: data(..)
    integer, intent(in), optional :: dim
    integer, intent(out), optional :: ierr
    integer :: d
    call update_any(partition, 'c16', 16, c_loc(data), [(size(data, d, c_int64_t), d=1, rank(data))], dim, ierr)
  end subroutine
end module
