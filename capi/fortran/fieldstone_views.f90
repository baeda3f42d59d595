! Views of distributed arrays: the part of them that each rank holds. Programs use the module
! fieldstone_arrays.
!
! A call sets the view of sets of a group directly (fs_group_view_block and the like), or makes a
! view (fs_view_block) that later calls pass to groups (fs_group_view) and to reads of groups,
! imports and meshes. No call here is collective; the next write or read checks whether a view fits.
! If `sets` is absent, a view applies to all sets of the group.
module fieldstone_views
  use, intrinsic :: iso_c_binding
  use fieldstone, only: fs_finish, FS_OK
  use fieldstone_arrays_types
  implicit none
  private

  public :: fs_view_block, fs_view_grid, fs_view_cyclic, fs_view_irregular, fs_view_joined, fs_view_free, fs_group_view
  public :: fs_group_view_block, fs_group_view_grid, fs_group_view_cyclic, fs_group_view_irregular
  public :: fs_group_view_joined

  !> fs_view_block(view, start, count [, halo] [, stride] [, ierr]): the box of `count` indices from
  !> `start`. halo(2, n): the width by which the data are larger before and after the box in each
  !> dimension. The halo is not written; a read fills the part of it that is inside the array.
  !> `stride`, for reading: every `stride`-th index.
  interface fs_view_block
    module procedure block_of, block_of_far
  end interface

  !> fs_view_irregular(view, map [, owned] [, dim] [, ierr]): the global indices of `map` along
  !> dimension `dim` (default: 1), and other dimensions whole; with dim=0 single elements, by their
  !> number in file order. The first `owned` entries (default: all) are written, all are read.
  interface fs_view_irregular
    module procedure irregular_of, irregular_of_far
  end interface

  !> fs_group_view_block(group, start, count [, halo] [, stride] [, sets] [, ierr]): as fs_view_block.
  interface fs_group_view_block
    module procedure view_block, view_block_far
  end interface

  !> fs_group_view_irregular(group, map [, owned] [, dim] [, sets] [, ierr]): as fs_view_irregular.
  interface fs_group_view_irregular
    module procedure view_irregular, view_irregular_far
  end interface

  interface
    function c_view_block(ndim, start, count, halo, stride, view) bind(c, name='fs_view_block') result(status)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: start(*), count(*)
      type(c_ptr), value :: halo, stride
      type(c_ptr), intent(out) :: view
      integer(c_int) :: status
    end function

    function c_view_grid(ndim, grid, halo, view) bind(c, name='fs_view_grid') result(status)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: grid(*)
      type(c_ptr), value :: halo
      type(c_ptr), intent(out) :: view
      integer(c_int) :: status
    end function

    function c_view_cyclic(ndim, grid, blocks, view) bind(c, name='fs_view_cyclic') result(status)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: ndim
      integer(c_int64_t), intent(in) :: grid(*), blocks(*)
      type(c_ptr), intent(out) :: view
      integer(c_int) :: status
    end function

    function c_view_irregular(length, map, owned, dim, view) bind(c, name='fs_view_irregular') result(status)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      integer(c_size_t), value :: length
      integer(c_int64_t), intent(in) :: map(*)
      integer(c_int64_t), value :: owned
      integer(c_int), value :: dim
      type(c_ptr), intent(out) :: view
      integer(c_int) :: status
    end function

    function c_view_joined(count, view) bind(c, name='fs_view_joined') result(status)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: count
      type(c_ptr), intent(out) :: view
      integer(c_int) :: status
    end function

    function c_view_free(view) bind(c, name='fs_view_free') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: view
      integer(c_int) :: status
    end function

    function c_group_view(group, nsets, sets, view) bind(c, name='fs_group_view') result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: group
      integer(c_int), value :: nsets
      type(c_ptr), value :: sets, view
      integer(c_int) :: status
    end function
  end interface

contains

  ! ---- views as objects

  subroutine block_of(view, start, count, halo, stride, ierr)
    type(fieldstone_view), intent(out) :: view
    integer, intent(in) :: start(:), count(:)
    integer, intent(in), optional :: halo(:, :), stride(:)
    integer, intent(out), optional :: ierr
    call block_of_far(view, int(start, c_int64_t), int(count, c_int64_t), halo, stride, ierr)
  end subroutine

  subroutine block_of_far(view, start, count, halo, stride, ierr)
    type(fieldstone_view), intent(out) :: view
    integer(c_int64_t), intent(in) :: start(:), count(:)
    integer, intent(in), optional :: halo(:, :), stride(:)
    integer, intent(out), optional :: ierr
    integer(c_int64_t), allocatable, target :: widths(:), strides(:)
    type(c_ptr) :: halo_address, stride_address
    integer :: n
    n = size(start)
    call widths_of(n, halo, widths, halo_address)
    stride_address = c_null_ptr
    if (present(stride)) then
      strides = [int(stride, c_int64_t), 0_c_int64_t]
      stride_address = c_loc(strides)
    end if
    if (size(count) /= n .or. .not. fits(stride, n) .or. .not. fits_halo(halo, n)) then
      call refuse('start, count, halo and stride of a box differ in their dimensions', ierr)
    else if (any(start < 1) .or. any(count < 0)) then
      call refuse('a box begins before 1 or has a negative count', ierr)
    else
      call fs_finish(c_view_block(n, start - 1, count, halo_address, stride_address, view%handle), ierr)
    end if
  end subroutine

  !> This rank's part of a balanced cut into `grid` parts in each dimension; ranks go over the grid
  !> with the last dimension fastest.
  subroutine fs_view_grid(view, grid, halo, ierr)
    type(fieldstone_view), intent(out) :: view
    integer, intent(in) :: grid(:)
    integer, intent(in), optional :: halo(:, :)
    integer, intent(out), optional :: ierr
    integer(c_int64_t), allocatable, target :: widths(:)
    type(c_ptr) :: halo_address
    call widths_of(size(grid), halo, widths, halo_address)
    if (any(grid < 0) .or. .not. fits_halo(halo, size(grid))) then
      call refuse('a grid has negative parts, or its halo has other dimensions', ierr)
    else
      call fs_finish(c_view_grid(size(grid), int(grid, c_int64_t), halo_address, view%handle), ierr)
    end if
  end subroutine

  !> Blocks that are dealt out in turn in every dimension; in the data they are side by side.
  subroutine fs_view_cyclic(view, grid, blocks, ierr)
    type(fieldstone_view), intent(out) :: view
    integer, intent(in) :: grid(:), blocks(:)
    integer, intent(out), optional :: ierr
    if (size(grid) /= size(blocks) .or. any(grid < 0) .or. any(blocks < 0)) then
      call refuse('grid and blocks have different dimensions or negative numbers', ierr)
    else
      call fs_finish(c_view_cyclic(size(grid), int(grid, c_int64_t), int(blocks, c_int64_t), view%handle), ierr)
    end if
  end subroutine

  subroutine irregular_of(view, map, owned, dim, ierr)
    type(fieldstone_view), intent(out) :: view
    integer, intent(in) :: map(:)
    integer, intent(in), optional :: owned, dim
    integer, intent(out), optional :: ierr
    call irregular_of_far(view, int(map, c_int64_t), owned, dim, ierr)
  end subroutine

  subroutine irregular_of_far(view, map, owned, dim, ierr)
    type(fieldstone_view), intent(out) :: view
    integer(c_int64_t), intent(in) :: map(:)
    integer, intent(in), optional :: owned, dim
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: written
    integer :: along
    written = -1
    along = 1
    if (present(owned)) written = owned
    if (present(dim)) along = dim
    if (present(owned) .and. written < 0) then
      call refuse('the number of owned entries is negative', ierr)
    else if (along < 0) then
      call refuse('a negative dimension', ierr)
    else
      call fs_finish(c_view_irregular(size(map, kind=c_size_t), map - 1, written, along - 1, view%handle), ierr)
    end if
  end subroutine

  !> `count` indices of the first dimension, which is FS_VARYING, after those of the lower ranks.
  subroutine fs_view_joined(view, count, ierr)
    type(fieldstone_view), intent(out) :: view
    integer, intent(in) :: count
    integer, intent(out), optional :: ierr
    if (count < 0) then
      call refuse('a negative count', ierr)
    else
      call fs_finish(c_view_joined(int(count, c_int64_t), view%handle), ierr)
    end if
  end subroutine

  !> Frees a view; groups that use it keep it.
  subroutine fs_view_free(view, ierr)
    type(fieldstone_view), intent(inout) :: view
    integer, intent(out), optional :: ierr
    type(c_ptr) :: handle
    handle = view%handle
    view%handle = c_null_ptr
    call fs_finish(c_view_free(handle), ierr)
  end subroutine

  ! ---- views of groups

  !> This rank holds the part that the view says.
  subroutine fs_group_view(group, view, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    type(fieldstone_view), intent(in) :: view
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    character(kind=c_char, len=NAME_SIZE), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: names(:)
    call named(sets, texts, names)
    call fs_finish(c_group_view(group%handle, size(texts), c_loc(names), view%handle), ierr)
  end subroutine

  !> Passes a new view to a group, if `status` is FS_OK, and then frees it.
  subroutine hand_over(group, view, status, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    type(fieldstone_view), intent(inout) :: view
    integer, intent(in) :: status
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    integer :: given
    given = status
    if (given == FS_OK) call fs_group_view(group, view, sets, given)
    if (c_associated(view%handle)) call fs_view_free(view)
    call fs_finish(given, ierr)
  end subroutine

  subroutine view_block(group, start, count, halo, stride, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: start(:), count(:)
    integer, intent(in), optional :: halo(:, :), stride(:)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_view) :: view
    integer :: status
    call block_of(view, start, count, halo, stride, status)
    call hand_over(group, view, status, sets, ierr)
  end subroutine

  subroutine view_block_far(group, start, count, halo, stride, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer(c_int64_t), intent(in) :: start(:), count(:)
    integer, intent(in), optional :: halo(:, :), stride(:)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_view) :: view
    integer :: status
    call block_of_far(view, start, count, halo, stride, status)
    call hand_over(group, view, status, sets, ierr)
  end subroutine

  !> As fs_view_grid.
  subroutine fs_group_view_grid(group, grid, halo, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: grid(:)
    integer, intent(in), optional :: halo(:, :)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_view) :: view
    integer :: status
    call fs_view_grid(view, grid, halo, status)
    call hand_over(group, view, status, sets, ierr)
  end subroutine

  !> As fs_view_cyclic.
  subroutine fs_group_view_cyclic(group, grid, blocks, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: grid(:), blocks(:)
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_view) :: view
    integer :: status
    call fs_view_cyclic(view, grid, blocks, status)
    call hand_over(group, view, status, sets, ierr)
  end subroutine

  subroutine view_irregular(group, map, owned, dim, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: map(:)
    integer, intent(in), optional :: owned, dim
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_view) :: view
    integer :: status
    call irregular_of(view, map, owned, dim, status)
    call hand_over(group, view, status, sets, ierr)
  end subroutine

  subroutine view_irregular_far(group, map, owned, dim, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer(c_int64_t), intent(in) :: map(:)
    integer, intent(in), optional :: owned, dim
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_view) :: view
    integer :: status
    call irregular_of_far(view, map, owned, dim, status)
    call hand_over(group, view, status, sets, ierr)
  end subroutine

  !> As fs_view_joined.
  subroutine fs_group_view_joined(group, count, sets, ierr)
    type(fieldstone_group), intent(in) :: group
    integer, intent(in) :: count
    character(len=*), intent(in), optional :: sets(:)
    integer, intent(out), optional :: ierr
    type(fieldstone_view) :: view
    integer :: status
    call fs_view_joined(view, count, status)
    call hand_over(group, view, status, sets, ierr)
  end subroutine

  ! ---- internal procedures

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
end module
