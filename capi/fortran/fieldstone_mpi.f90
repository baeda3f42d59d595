! Communicators of MPI for Fieldstone's Fortran modules. Compile fieldstone_mpi_f.c with your mpicc and link it with
! your program: Fieldstone itself links no MPI. With the module `mpi` a communicator is an integer; with `mpi_f08` it
! is `comm%MPI_VAL`.
module fieldstone_mpi
  use, intrinsic :: iso_c_binding
  use fieldstone, only: FS_OK, fs_error_message
  use fieldstone_arrays, only: fieldstone_comm
  implicit none
  private

  public :: fieldstone_comm, fs_comm_from_mpi, fs_comm_free

  interface
    function c_comm_from_fortran(from, comm) bind(c, name='fs_mpi_comm_from_fortran') result(status)
      import :: c_int, c_ptr
      integer(c_int), value :: from
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: status
    end function

    subroutine c_comm_free(comm) bind(c, name='fs_mpi_comm_free_fortran')
      import :: c_ptr
      type(c_ptr), value :: comm
    end subroutine
  end interface

contains

  !> Makes the ranks of an MPI communicator, which is duplicated. Collective.
  subroutine fs_comm_from_mpi(comm, from, ierr)
    type(fieldstone_comm), intent(out) :: comm
    integer, intent(in) :: from
    integer, intent(out), optional :: ierr
    integer :: status
    status = c_comm_from_fortran(int(from, c_int), comm%address)
    if (present(ierr)) then
      ierr = status
    else if (status /= FS_OK) then
      print '(2a)', 'fieldstone: ', fs_error_message()
      error stop status
    end if
  end subroutine

  !> Frees the duplicate; call it after the last job that used it is closed. Collective.
  subroutine fs_comm_free(comm)
    type(fieldstone_comm), intent(inout) :: comm
    call c_comm_free(comm%address)
    comm%address = c_null_ptr
  end subroutine
end module
