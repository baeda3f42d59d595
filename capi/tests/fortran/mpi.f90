! Replaces the module `mpi` for an MPI that has none for Fortran, such as the wheel's: the parts
! that the examples use. It is for MPICH, whose communicators are the same integers in C and in
! Fortran.
module mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: MPI_COMM_WORLD = int(z'44000000')

  interface
    function c_init(argc, argv) bind(c, name='MPI_Init') result(failed)
      import :: c_int, c_ptr
      type(c_ptr), value :: argc, argv
      integer(c_int) :: failed
    end function

    function c_finalize() bind(c, name='MPI_Finalize') result(failed)
      import :: c_int
      integer(c_int) :: failed
    end function

    function c_rank(comm, rank) bind(c, name='MPI_Comm_rank') result(failed)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int), intent(out) :: rank
      integer(c_int) :: failed
    end function

    function c_barrier(comm) bind(c, name='MPI_Barrier') result(failed)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int) :: failed
    end function

    function c_size(comm, size) bind(c, name='MPI_Comm_size') result(failed)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int), intent(out) :: size
      integer(c_int) :: failed
    end function
  end interface

contains

  subroutine MPI_Init(ierror)
    integer, intent(out) :: ierror
    ierror = c_init(c_null_ptr, c_null_ptr)
  end subroutine

  subroutine MPI_Finalize(ierror)
    integer, intent(out) :: ierror
    ierror = c_finalize()
  end subroutine

  subroutine MPI_Comm_rank(comm, rank, ierror)
    integer, intent(in) :: comm
    integer, intent(out) :: rank, ierror
    ierror = c_rank(comm, rank)
  end subroutine

  subroutine MPI_Barrier(comm, ierror)
    integer, intent(in) :: comm
    integer, intent(out) :: ierror
    ierror = c_barrier(comm)
  end subroutine

  subroutine MPI_Comm_size(comm, size, ierror)
    integer, intent(in) :: comm
    integer, intent(out) :: size, ierror
    ierror = c_size(comm, size)
  end subroutine
end module
