! Two views of arrays, after SDM's: a regular one, of blocks of a matrix with a halo, and an
! irregular one, whose map array lists the nodes of a mesh that a rank owns, and a ghost. Then
! particles, whose number changes.
program views
  use mpi
  use fieldstone
  use fieldstone_arrays
  use fieldstone_mpi
  implicit none
  integer, parameter :: rows = 10, columns = 12, nodes = 60
  type(fieldstone_store) :: store
  type(fieldstone_comm) :: comm
  type(fieldstone_job) :: job
  integer :: rank, ranks, ierr
  character(len=200) :: folder

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  folder = 'views.store'
  if (command_argument_count() > 0) call get_command_argument(1, folder)
  call fs_comm_from_mpi(comm, MPI_COMM_WORLD)
  call fs_open(store, folder)
  call fs_arrays_open(job, store, 'views', comm)
  call regular()
  call irregular()
  call particles()
  call fs_arrays_close(job) ! flushes
  call fs_close(store)
  call fs_comm_free(comm)
  if (rank == 0) print '(a)', 'three groups'
  call MPI_Finalize(ierr)

contains

  subroutine must(holds)
    logical, intent(in) :: holds
    if (.not. holds) error stop 99
  end subroutine

  !> Columns of a matrix, with one more column on each side for the neighbours' values.
  subroutine regular()
    type(fieldstone_group) :: group
    double precision, allocatable :: a(:, :)
    integer :: own, x, y
    own = columns / ranks
    allocate (a(rows, 0:own + 1), source=-1d0)
    call fs_arrays_group(group, job, 'regular', [fs_set('matrix', 'f8', [rows, columns], dims=['row   ', 'column'])])
    call fs_group_view_grid(group, [1, ranks], halo=reshape([0, 0, 1, 1], [2, 2]))
    do x = 1, own
      a(:, x) = [(100d0 * (rank * own + x) + y, y = 1, rows)]
    end do
    call fs_group_write(group, 'matrix', 0, a) ! the halo is not written
    call fs_group_read(group, 'matrix', 0, a)  ! a read fills it
    if (rank > 0) call must(abs(a(rows, 0) - (100d0 * rank * own + rows)) < 1d-9)
    if (rank < ranks - 1) call must(abs(a(1, own + 1) - (100d0 * (rank + 1) * own + 101)) < 1d-9)

    ! A box of the matrix, counted from 1.
    call fs_group_view_block(group, [2, 3], [4, 1])
    call fs_group_read(group, 'matrix', 0, a(1:4, 1:1))
    call must(all(abs(a(1:4, 1) - [302d0, 303d0, 304d0, 305d0]) < 1d-9))
  end subroutine

  !> Three components at each node; node n belongs to rank mod(7 n, ranks).
  subroutine irregular()
    type(fieldstone_group) :: group
    double precision, allocatable :: u(:, :)
    integer, allocatable :: map(:)
    integer :: owned, n, i
    map = pack([(n, n = nodes, 1, -1)], [(mod(7 * n, ranks) == rank, n = nodes, 1, -1)])
    owned = size(map)
    map = [map, mod(map(1), nodes) + 1] ! and a ghost
    call fs_arrays_group(group, job, 'irregular', [fs_set('velocity', 'f8', [3, nodes], fill=0d0)])
    call fs_group_view_irregular(group, map, owned=owned, dim=2)
    allocate (u(3, size(map)), source=-1d0)
    do i = 1, owned
      u(:, i) = map(i) + [0.1d0, 0.2d0, 0.3d0]
    end do
    call fs_group_write(group, 'velocity', 0, u)
    call fs_group_read(group, 'velocity', 0, u)
    do i = 1, size(map)
      call must(all(abs(u(:, i) - (map(i) + [0.1d0, 0.2d0, 0.3d0])) < 1d-9))
    end do
  end subroutine

  !> Each rank has some, one more than the lower rank: x(count, 3), concatenated along the first
  !> dimension.
  subroutine particles()
    type(fieldstone_group) :: group
    real, allocatable :: x(:, :)
    call fs_arrays_group(group, job, 'particles', [fs_set('x', 'f4', [FS_VARYING, 3])], order='C')
    call fs_group_view_joined(group, rank + 1)
    allocate (x(rank + 1, 3), source=real(rank))
    call fs_group_write(group, 'x', 0, x)
    x = -1
    call fs_group_read(group, 'x', 0, x)
    call must(all(abs(x - rank) < 1e-9))
  end subroutine
end program
