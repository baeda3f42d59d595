! A cooling plate: the heat equation on a grid. The program archives each step in pieces and flushes
! it.
!
!   heat [STORE]    (the folder heat.store by default)
!
! The grid is cut into strips as it would be between processes or images: each strip is a piece of
! the same field, and separate processes could archive the strips without any communication.
!
! The store keeps temperature(nx, ny) as it is in memory; C and Python read it as an array of shape
! (ny, nx).
program heat
  use fieldstone
  implicit none
  integer, parameter :: nx = 96, ny = 64, strips = 4, steps = 20
  double precision :: temperature(nx, ny), box(4, 2)
  double precision, allocatable :: last(:, :)
  type(fieldstone_store) :: store
  character(len=200) :: folder
  integer :: step, ierr

  folder = 'heat.store'
  if (command_argument_count() > 0) call get_command_argument(1, folder)
  call fs_open(store, folder) ! without `ierr` an error stops the program with its message

  temperature = 0
  temperature(21:44, 9:16) = 100
  call archive(0)
  do step = 1, steps
    call advance()
    call archive(step)
  end do

  ! A box of 4 by 2 of the last step, from (31, 13); only overlapping pieces are read.
  call fs_get(store, key(steps), box, start=[31, 13])
  print '(4f9.3)', box

  ! The whole field, into an array that takes its shape.
  call fs_get_alloc(store, key(steps), last)
  print '(a, i0, a, i0)', 'the field is ', size(last, 1), ' by ', size(last, 2)

  ! With `ierr` the program decides what an error means.
  call fs_get(store, key(steps + 1), temperature, ierr=ierr)
  if (ierr == FS_NOT_FOUND) print '(a)', 'no step beyond the last'

  call fs_close(store)

contains

  subroutine advance()
    double precision :: old(nx, ny)
    old = temperature
    temperature(2:nx-1, 2:ny-1) = old(2:nx-1, 2:ny-1) + 0.2d0 * (old(1:nx-2, 2:ny-1) + old(3:nx, 2:ny-1) &
      + old(2:nx-1, 1:ny-2) + old(2:nx-1, 3:ny) - 4 * old(2:nx-1, 2:ny-1))
  end subroutine

  subroutine archive(step)
    integer, intent(in) :: step
    integer :: strip, first
    do strip = 1, strips
      first = (strip - 1) * (ny / strips) + 1
      call fs_archive(store, key(step), temperature(:, first:first+ny/strips-1), &
        start=[1, first], shape=[nx, ny])
    end do
    call fs_flush(store) ! from here on all readers see the complete step
  end subroutine

  function key(step)
    integer, intent(in) :: step
    character(len=60) :: key
    write (key, '(a, i0)') 'run=heat-fortran,variable=temperature,step=', step
  end function
end program
