! A simulation that writes three groups of arrays, each for its own purpose and at its own
! frequency, and continues from the last complete restart step, on any number of ranks: SDM's Figure
! 1 (after ASTRO3D), on a smaller cube. The C program astro3d.c does the same.
!
!   mpiexec -n 4 ./astro3d astro3d.store
!
! C and Python read r0(nx, ny, nz) as an array of shape (nz, ny, nx).
program astro3d
  use mpi
  use fieldstone
  use fieldstone_arrays
  use fieldstone_mpi
  implicit none
  integer, parameter :: n = 16, steps = 4
  type(fieldstone_store) :: store
  type(fieldstone_comm) :: comm
  type(fieldstone_job) :: job
  type(fieldstone_group) :: analysis, restart, pictures
  double precision, allocatable :: cells(:, :, :, :)
  integer(c_int64_t), allocatable :: part(:)
  integer :: grid(3), first, step, last, set, rank, ranks, ierr
  logical :: found
  character(len=200) :: folder

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  folder = 'astro3d.store'
  if (command_argument_count() > 0) call get_command_argument(1, folder)

  call fs_comm_from_mpi(comm, MPI_COMM_WORLD) ! without `ierr` an error stops the program, on all ranks
  call fs_open(store, folder)
  call fs_arrays_open(job, store, 'astro3d', comm)
  call declare(analysis, 'analysis', 'a', 6, 'f4')
  call declare(restart, 'restart', 'r', 6, 'f8')
  call declare(pictures, 'pictures', 'p', 7, 'i4')

  ! Each rank holds its part of a balanced cut: 2 x 2 x 1 for four ranks, else slabs.
  grid = [1, 1, ranks]
  if (ranks == 4) grid = [2, 2, 1]
  call fs_group_view_grid(analysis, grid)
  call fs_group_view_grid(restart, grid)
  call fs_group_view_grid(pictures, grid)
  call fs_group_local_shape(restart, 'r0', part)
  allocate (cells(part(1), part(2), part(3), 6))

  ! Continue from the last restart step, or start at the beginning.
  first = 0
  call fs_group_last_step(restart, last, found)
  if (found) then
    first = last + 1
    do set = 1, 6
      call fs_group_read(restart, name('r', set), last, cells(:, :, :, set))
    end do
    if (any(abs(cells - state(last)) > 0)) error stop 99
    if (rank == 0) print '(a, i0)', 'goes on after step ', last
  end if

  do step = first, first + steps - 1
    cells = state(step) ! the computation
    do set = 1, 6
      if (mod(step, 2) == 0) call fs_group_write(analysis, name('a', set), step, real(cells(:, :, :, set)))
      ! A thread writes these while the job computes.
      if (mod(step, 4) == 3) call fs_group_write(restart, name('r', set), step, cells(:, :, :, set), wait=.false.)
    end do
    do set = 1, 7
      call fs_group_write(pictures, name('p', set), step, int(cells(:, :, :, min(set, 6))) / 16 + set)
    end do
    call fs_arrays_flush(job) ! durable and visible, all of the step or nothing
  end do

  call fs_group_last_step(pictures, last, found)
  if (rank == 0) print '(2(a, i0))', 'level ', fs_group_level(analysis), ', pictures up to step ', last
  call fs_arrays_close(job)
  call fs_close(store)
  call fs_comm_free(comm)
  call MPI_Finalize(ierr)

contains

  subroutine declare(group, named, letter, sets, dtype)
    type(fieldstone_group), intent(out) :: group
    character(len=*), intent(in) :: named, letter, dtype
    integer, intent(in) :: sets
    integer :: i
    call fs_arrays_group(group, job, named, &
      [(fs_set(name(letter, i), dtype, [n, n, n], dims=['x', 'y', 'z']), i = 1, sets)])
  end subroutine

  function name(letter, set)
    character(len=*), intent(in) :: letter
    integer, intent(in) :: set
    character(len=3) :: name
    write (name, '(a, i0)') letter, set - 1
  end function

  !> This rank's cells at a step.
  function state(step)
    integer, intent(in) :: step
    double precision :: state(size(cells, 1), size(cells, 2), size(cells, 3), 6)
    integer :: begin(3), x, y, z, s
    ! Ranks go over the grid with its last dimension fastest; n is a multiple of 1, 2 and 4.
    begin = [rank / (grid(2) * grid(3)), mod(rank / grid(3), grid(2)), mod(rank, grid(3))] * int(part)
    do s = 1, 6
      do z = 1, size(cells, 3)
        do y = 1, size(cells, 2)
          do x = 1, size(cells, 1)
            state(x, y, z, s) = 1000 * (s - 1) + 100 * step + &
              ((begin(3) + z - 1) * n * n + (begin(2) + y - 1) * n + begin(1) + x - 1) / 64d0
          end do
        end do
      end do
    end do
  end function
end program
