! Every procedure of the module, each kind and several ranks, and the errors that it finds itself.
program calls
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use fieldstone
  implicit none
  type(fieldstone_store) :: store
  character(len=500) :: folder

  call get_command_argument(1, folder)
  call fs_open(store, trim(folder)//'/store', mode='x', schema='simulation')
  call kinds()
  call ranks()
  call pieces()
  call opaque_bytes()
  call errors()
  call fs_archive(store, key('discarded'), 1.0)
  call fs_discard(store)
  call fs_archive(store, key('closed'), 1.0)
  call fs_close(store)
  call afterwards()

contains

  subroutine check(condition, line)
    logical, intent(in) :: condition
    integer, intent(in) :: line
    if (.not. condition) then
      write (error_unit, '(a, i0, 4a)') 'line ', line, ': last error: ', fs_error_message(), '; ', fs_error_hint()
      error stop 1
    end if
  end subroutine

  function key(variable)
    character(len=*), intent(in) :: variable
    character(len=80) :: key ! trailing blanks do not belong to the key
    key = 'run=fortran,step=0,variable='//variable
  end function

  subroutine kinds()
    integer(4) :: i4(3) = [1, -2, 3], j4(3)
    integer(8) :: i8(3) = [1_8, -2_8, 2_8**40], j8(3)
    real(4) :: r4(3) = [1.0, -2.5, 3e30], s4(3)
    real(8) :: r8(3) = [1d0, -2.5d0, 3d300], s8(3)
    complex(4) :: c4(3) = [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)], d4(3)
    complex(8) :: c8(3) = [(1d0, 2d0), (3d0, 4d0), (5d0, 6d0)], d8(3)
    integer(4), allocatable :: a_i4(:)
    integer(8), allocatable :: a_i8(:)
    real(4), allocatable :: a_r4(:)
    real(8), allocatable :: a_r8(:)
    complex(4), allocatable :: a_c4(:)
    complex(8), allocatable :: a_c8(:)
    call fs_archive(store, key('i4'), i4)
    call fs_archive(store, key('i8'), i8)
    call fs_archive(store, key('r4'), r4)
    call fs_archive(store, key('r8'), r8)
    call fs_archive(store, key('c4'), c4)
    call fs_archive(store, key('c8'), c8)
    call fs_flush(store)
    call fs_get(store, key('i4'), j4)
    call fs_get(store, key('i8'), j8)
    call fs_get(store, key('r4'), s4)
    call fs_get(store, key('r8'), s8)
    call fs_get(store, key('c4'), d4)
    call fs_get(store, key('c8'), d8)
    call check(all(i4 == j4) .and. all(i8 == j8), __LINE__)
    call check(all(r4 == s4) .and. all(r8 == s8), __LINE__)
    call check(all(c4 == d4) .and. all(c8 == d8), __LINE__)
    call fs_get_alloc(store, key('i4'), a_i4)
    call fs_get_alloc(store, key('i8'), a_i8)
    call fs_get_alloc(store, key('r4'), a_r4)
    call fs_get_alloc(store, key('r8'), a_r8)
    call fs_get_alloc(store, key('c4'), a_c4)
    call fs_get_alloc(store, key('c8'), a_c8)
    call check(all(i4 == a_i4) .and. all(i8 == a_i8), __LINE__)
    call check(all(r4 == a_r4) .and. all(r8 == a_r8), __LINE__)
    call check(all(c4 == a_c4) .and. all(c8 == a_c8), __LINE__)
    ! One element and boxes, of 64-bit numbers too.
    call fs_get(store, key('i4'), j4(:2), start=[2])
    call check(all(j4(:2) == i4(2:)), __LINE__)
    call fs_get(store, key('c8'), d8(:1), start=[3_c_int64_t])
    call check(d8(1) == c8(3), __LINE__)
  end subroutine

  subroutine ranks()
    real :: scalar, numbers(120)
    real, allocatable :: a2(:, :), a3(:, :, :), a4(:, :, :, :)
    real :: five(5, 4, 3, 2, 1)
    integer(c_int64_t), allocatable :: extents(:)
    integer :: i
    numbers = [(real(i), i=1, 120)]
    call fs_archive(store, key('scalar'), 2.5)
    call fs_archive(store, key('rank2'), reshape(numbers, [12, 10]))
    call fs_archive(store, key('rank3'), reshape(numbers, [2, 6, 10]))
    call fs_archive(store, key('rank4'), reshape(numbers, [2, 3, 4, 5]))
    call fs_archive(store, key('rank5'), reshape(numbers, [5, 4, 3, 2, 1]))
    call fs_archive(store, key('empty'), numbers(1:0))
    a2 = reshape(numbers, [12, 10])
    call fs_archive(store, key('section'), a2(1:12:3, 2:10:4)) ! not contiguous
    call fs_flush(store)
    call fs_get(store, key('scalar'), scalar)
    call check(scalar == 2.5, __LINE__)
    call fs_get_alloc(store, key('rank2'), a2)
    call fs_get_alloc(store, key('rank3'), a3)
    call fs_get_alloc(store, key('rank4'), a4)
    call check(all(shape(a2) == [12, 10]) .and. all(pack(a2, .true.) == numbers), __LINE__)
    call check(all(shape(a3) == [2, 6, 10]) .and. all(pack(a3, .true.) == numbers), __LINE__)
    call check(all(shape(a4) == [2, 3, 4, 5]) .and. all(pack(a4, .true.) == numbers), __LINE__)
    call fs_get(store, key('rank5'), five)
    call check(all(pack(five, .true.) == numbers), __LINE__)
    call fs_shape(store, key('rank5'), extents)
    call check(size(extents) == 5 .and. all(extents == [5, 4, 3, 2, 1]), __LINE__)
    call fs_get(store, key('empty'), numbers(1:0))
    a2 = 0
    call fs_get(store, key('section'), a2(1:12:3, 2:10:4)) ! into a section that is not contiguous
    call check(all(a2(1:12:3, 2:10:4) == reshape([13, 16, 19, 22, 61, 64, 67, 70, 109, 112, 115, 118], [4, 3])), &
      __LINE__)
    call check(count(a2 /= 0) == 12, __LINE__)
  end subroutine

  subroutine pieces()
    integer :: grid(3, 4), part(2, 2), i
    grid = reshape([(i, i=1, 12)], [3, 4])
    call fs_archive(store, key('grid'), grid(:, 1:2), start=[1, 1], shape=[3, 4])
    call fs_flush(store)
    call fs_archive(store, key('grid'), grid(:, 3:4), start=[1_c_int64_t, 3_c_int64_t], &
      shape=[3_c_int64_t, 4_c_int64_t])
    call fs_flush(store)
    call fs_get(store, key('grid'), part, start=[2, 2])
    call check(all(part == grid(2:3, 2:3)), __LINE__)
  end subroutine

  subroutine opaque_bytes()
    integer(c_int8_t), allocatable :: bytes(:)
    integer(c_int64_t), allocatable :: extents(:)
    integer(c_int64_t) :: nbytes
    call fs_archive_bytes(store, key('text'), 'hello ')
    call fs_archive_bytes(store, key('bytes'), [1_c_int8_t, -1_c_int8_t])
    call fs_flush(store)
    call fs_size(store, key('text'), nbytes)
    call check(nbytes == 6, __LINE__)
    call fs_get_bytes(store, key('text'), bytes)
    call check(all(bytes == [104, 101, 108, 108, 111, 32]), __LINE__)
    call fs_get_bytes(store, key('bytes'), bytes)
    call check(all(bytes == [1, -1]), __LINE__)
    call fs_shape(store, key('text'), extents)
    call check(size(extents) == 0, __LINE__)
  end subroutine

  subroutine fails(ierr, status, words, line)
    integer, intent(in) :: ierr, status, line
    character(len=*), intent(in) :: words
    call check(ierr == status .and. fs_error_kind() == status, line)
    call check(index(fs_error_message(), words) > 0, line)
  end subroutine

  subroutine errors()
    type(fieldstone_store) :: closed, other
    integer :: ierr, four(2, 2)
    real :: wrong_kind(3), r4(3)
    real, allocatable :: a2(:, :)
    integer(c_int8_t), allocatable :: bytes(:)
    integer(c_int64_t) :: nbytes
    four = 1
    call fs_flush(closed, ierr=ierr)
    call fails(ierr, FS_INVALID, 'null', __LINE__)
    call fs_open(other, trim(folder)//'/store', mode='x', ierr=ierr)
    call fails(ierr, FS_CONFLICT, 'store', __LINE__)
    call check(fs_error_code() == 'store-exists' .and. .not. fs_error_is_retryable(), __LINE__)
    call fs_open(other, trim(folder)//'/none', mode='r', ierr=ierr)
    call fails(ierr, FS_NOT_FOUND, 'none', __LINE__)
    call check(fs_error_code() == 'store-not-found', __LINE__)
    call fs_open(other, trim(folder)//'/store', mode='r', ierr=ierr)
    call check(ierr == FS_OK, __LINE__)
    call fs_archive(other, key('x'), four, ierr=ierr)
    call fails(ierr, FS_DENIED, '', __LINE__)
    call fs_close(other)
    call fs_archive(store, 'run=a/b,variable=t,step=0', four, ierr=ierr)
    call fails(ierr, FS_INVALID, 'run', __LINE__)
    call fs_get(store, key('absent'), four, ierr=ierr)
    call fails(ierr, FS_NOT_FOUND, 'absent', __LINE__)
    call fs_size(store, key('absent'), nbytes, ierr)
    call fails(ierr, FS_NOT_FOUND, 'absent', __LINE__)
    call fs_get_bytes(store, key('absent'), bytes, ierr)
    call fails(ierr, FS_NOT_FOUND, 'absent', __LINE__)
    call fs_get(store, key('i4'), wrong_kind, ierr=ierr)
    call fails(ierr, FS_INVALID, 'f4', __LINE__)
    call fs_get(store, key('r4'), r4(:2), ierr=ierr)
    call fails(ierr, FS_INVALID, 'shape', __LINE__)
    call fs_get_alloc(store, key('r4'), a2, ierr)
    call fails(ierr, FS_INVALID, 'rank 1', __LINE__)
    call check(.not. allocated(a2), __LINE__)
    call fs_archive(store, key('x'), four, start=[1, 1], ierr=ierr)
    call fails(ierr, FS_INVALID, 'start and shape need each other', __LINE__)
    call fs_archive(store, key('x'), four, start=[1], shape=[4], ierr=ierr)
    call fails(ierr, FS_INVALID, 'rank 2', __LINE__)
    call fs_archive(store, key('x'), four, start=[0, 1], shape=[4, 4], ierr=ierr)
    call fails(ierr, FS_INVALID, 'start of 0', __LINE__)
    call check(index(fs_error_hint(), 'begin at 1') > 0, __LINE__)
    call fs_archive(store, key('x'), four, start=[1, 1], shape=[4, -1], ierr=ierr)
    call fails(ierr, FS_INVALID, 'shape of -1', __LINE__)
    call fs_archive(store, key('x'), four, start=[4, 1], shape=[4, 4], ierr=ierr)
    call fails(ierr, FS_INVALID, '', __LINE__)
    call fs_get(store, key('grid'), four, start=[3, 1], ierr=ierr)
    call fails(ierr, FS_INVALID, '', __LINE__)
  end subroutine

  subroutine afterwards()
    real :: value
    integer :: ierr
    call fs_flush(store, ierr)
    call fails(ierr, FS_INVALID, 'null', __LINE__)
    call fs_open(store, trim(folder)//'/store', 'r')
    call fs_get(store, key('closed'), value)
    call check(value == 1.0, __LINE__)
    call check(len(fs_version()) >= 5, __LINE__)
    call fs_get(store, key('discarded'), value) ! no ierr: stops with the message and the kind
  end subroutine
end program
