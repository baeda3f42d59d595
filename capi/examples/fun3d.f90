! An unstructured mesh, after SDM's FUN3D: edges and data come from a file of another program, a
! METIS partitioning vector gives each node its rank, and each rank gets its nodes, ghosts and
! edges. The program computes values at the nodes from their edges, step by step, and writes them by
! global node number. The store keeps the partition: a later start finds it, even with another
! number of ranks, and continues from the last step. The C program fun3d.c does the same.
!
!   mpiexec -n 4 ./fun3d fun3d.store uns3d.msh
program fun3d
  use, intrinsic :: iso_c_binding, only: c_int64_t
  use mpi
  use fieldstone
  use fieldstone_arrays
  use fieldstone_mpi
  implicit none
  integer, parameter :: nx = 6, ny = 5, nz = 4, nodes = nx * ny * nz, steps = 2
  type(fieldstone_store) :: store
  type(fieldstone_comm) :: comm
  type(fieldstone_job) :: job
  integer :: rank, ranks, edges, ierr
  character(len=200) :: folder, path, vector

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  folder = 'fun3d.store'
  path = 'uns3d.msh'
  if (command_argument_count() > 0) call get_command_argument(1, folder)
  if (command_argument_count() > 1) call get_command_argument(2, path)
  write (vector, '(2a, i0)') trim(path), '.part.', ranks
  call prepare()
  call fs_comm_from_mpi(comm, MPI_COMM_WORLD)
  call fs_open(store, folder)
  call fs_arrays_open(job, store, 'fun3d', comm)
  call solve()
  call fs_arrays_close(job)
  call fs_close(store)
  call fs_comm_free(comm)
  call MPI_Finalize(ierr)

contains

  ! ---- files of other programs: the mesh, and METIS's vector

  !> Makes both files unless they exist: a rewritten file counts as another file, for which no
  !> history is kept. edge1, edge2: node numbers from 1; area: of each edge; volume: of each node;
  !> xyz(3, nodes): coordinates.
  subroutine prepare()
    integer, parameter :: to(3, 4) = reshape([1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0], [3, 4])
    integer :: ends(2, 4 * nodes), at(3), n, k, unit
    logical :: is_there
    edges = 0
    do n = 1, nodes
      at = place(n)
      do k = 1, 4
        if (any(at + to(:, k) >= [nx, ny, nz])) cycle
        edges = edges + 1
        ends(:, edges) = [n, n + to(1, k) + nx * (to(2, k) + ny * to(3, k))]
      end do
    end do
    if (rank == 0) then
      inquire (file=path, exist=is_there)
      if (.not. is_there) then
        open (newunit=unit, file=path, access='stream', form='unformatted', action='write')
        write (unit) ends(1, :edges), ends(2, :edges)
        write (unit) [(dble(1 + mod(n, 3)) / 64, n = 1, edges)]
        write (unit) [(merge(0.5d0, 1d0, mod(n, 2) == 0), n = 1, nodes)]
        write (unit) [(dble(place(n)), n = 1, nodes)]
        close (unit)
      end if
      open (newunit=unit, file=vector, action='write')
      write (unit, '(i0)') [(mod(n - 1, nx) * ranks / nx, n = 1, nodes)]
      close (unit)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine

  !> Coordinates of a node.
  function place(n) result(at)
    integer, intent(in) :: n
    integer :: at(3)
    at = [mod(n - 1, nx), mod((n - 1) / nx, ny), (n - 1) / (nx * ny)]
  end function

  ! ---- the solver

  subroutine solve()
    type(fieldstone_import) :: mesh
    type(fieldstone_partition) :: part
    type(fieldstone_partition_counts) :: have
    type(fieldstone_view) :: at_nodes, at_edges, columns
    type(fieldstone_group) :: results
    integer(c_int64_t), allocatable :: ends(:, :)
    double precision, allocatable :: area(:), volume(:), q(:), residual(:), xyz(:, :)
    integer :: first, last, step, of_nodes
    logical :: found

    ! Reads nothing yet: only a view says which part is this rank's.
    of_nodes = 16 * edges
    call fs_arrays_import_raw(mesh, job, path, [fs_raw_variable('edge1', '<i4', 0, [edges]), &
      fs_raw_variable('edge2', '<i4', 4 * edges, [edges]), fs_raw_variable('area', '<f8', 8 * edges, [edges]), &
      fs_raw_variable('volume', '<f8', of_nodes, [nodes]), fs_raw_variable('xyz', '<f8', of_nodes + 8 * nodes, [3, nodes])])
    call fs_arrays_partition(part, job, fs_edges(mesh, 'edge1', 'edge2'), fs_vector('file', vector))
    call fs_partition_info(part, have)
    call fs_partition_ends(part, ends)
    call fs_partition_node_view(at_nodes, part)
    call fs_partition_edge_view(at_edges, part)
    call fs_partition_node_view(columns, part, dim=2) ! of xyz(3, nodes)

    allocate (area(have%edges), volume(have%nodes), q(have%nodes), residual(have%nodes), xyz(3, have%nodes))
    call fs_import_read(mesh, 'area', area, at_edges)
    call fs_import_read(mesh, 'volume', volume, at_nodes)
    call fs_import_read(mesh, 'xyz', xyz, columns)
    call fs_import_close(mesh)

    call fs_arrays_group(results, job, 'results', [fs_set('q', 'f8', [nodes], attrs=[fs_attr('units', 'kg')]), &
      fs_set('residual', 'f8', [nodes])], attrs=[fs_attr('solver', 'explicit'), fs_attr('box', [nx, ny, nz])])
    call fs_group_view(results, at_nodes) ! own nodes are written, ghosts are read
    q = 64 * xyz(1, :)
    first = 0
    call fs_group_last_step(results, last, found)
    if (found) then
      call fs_group_read(results, 'q', last, q)
      first = last + 1
    end if
    do step = first, first + steps - 1
      residual = q
      call advance(ends, area, volume, int(have%owned), q)
      call fs_partition_update(part, q)
      residual = q - residual
      call fs_group_write(results, 'q', step, q, wait=.false.)
      call fs_group_write(results, 'residual', step, residual, wait=.false.) ! reuses the plan
      call fs_arrays_flush(job)
    end do
    if (rank == 0) print '(3a, i0, a, i0)', 'partition: ', fs_partition_source(part), '; ', nodes, ' nodes, up to step ', &
      first + steps - 1
    call fs_view_free(at_nodes)
    call fs_view_free(at_edges)
    call fs_view_free(columns)
    call fs_partition_free(part)
  end subroutine

  !> Each edge carries the difference of its ends. Own nodes have all their edges here.
  subroutine advance(ends, area, volume, owned, q)
    integer(c_int64_t), intent(in) :: ends(:, :)
    double precision, intent(in) :: area(:), volume(:)
    integer, intent(in) :: owned
    double precision, intent(inout) :: q(:)
    double precision :: flux(size(q)), carried
    integer :: e
    flux = 0
    do e = 1, size(ends, 2)
      carried = area(e) * (q(ends(2, e)) - q(ends(1, e)))
      flux(ends(1, e)) = flux(ends(1, e)) + carried
      flux(ends(2, e)) = flux(ends(2, e)) - carried
    end do
    q(:owned) = q(:owned) + volume(:owned) * flux(:owned)
  end subroutine
end program
