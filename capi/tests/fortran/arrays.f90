! Distributed arrays in one process: each kind, each view, the descriptions of a job, and the errors
! that the module finds.
program arrays
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use fieldstone
  use fieldstone_arrays
  implicit none
  type(fieldstone_store) :: store
  type(fieldstone_job) :: job
  type(fieldstone_group) :: group
  character(len=500) :: folder

  call get_command_argument(1, folder)
  call fs_open(store, trim(folder)//'/store')
  call fs_arrays_open(job, store, 'f', project='p', writers=1, readers=1, buffer=1000000_c_int64_t)
  call fs_arrays_group(group, job, 'kinds', [fs_set('i4', 'i4', [2, 3], attrs=[fs_attr('units', 'K'), &
    fs_attr('valid', [1, 12])]), fs_set('i8', 'i8', [2_c_int64_t, 3_c_int64_t]), &
    fs_set('r4', 'f4', [2, 3], fill=-1d0), fs_set('r8', 'f8', [2, 3]), fs_set('c4', 'c8', [2, 3]), &
    fs_set('c8', 'c16', [2, 3])], level=2, method='exchange', attrs=[fs_attr('title', 'each kind'), fs_attr('i4', 7), &
    fs_attr('i8', 8_c_int64_t), fs_attr('r4', 0.5), fs_attr('r8', 0.25d0), fs_attr('rows', [1_c_int64_t, 2_c_int64_t]), &
    fs_attr('reals', [0.5, 1.5]), fs_attr('doubles', [0.25d0, 0.75d0])])
  call kinds()
  call views()
  call asked()
  call errors()
  call fs_arrays_close(job)
  call fs_arrays_open(job, store)
  call check(index(fs_arrays_run(job), 'run-') == 1, __LINE__)
  call fs_arrays_abandon(job, 'no more')
  call fs_close(store)

contains

  subroutine check(condition, line)
    logical, intent(in) :: condition
    integer, intent(in) :: line
    if (.not. condition) then
      write (error_unit, '(a, i0, 4a)') 'line ', line, ': last error: ', fs_error_message(), '; ', fs_error_hint()
      error stop 1
    end if
  end subroutine

  !> Rows of a larger array, which are not contiguous.
  subroutine kinds()
    integer(c_int32_t) :: i4(4, 3), i4b(2, 3)
    integer(c_int64_t) :: i8(4, 3), i8b(2, 3)
    real(c_float) :: r4(4, 3), r4b(2, 3)
    real(c_double) :: r8(4, 3), r8b(2, 3)
    complex(c_float_complex) :: c4(4, 3), c4b(2, 3)
    complex(c_double_complex) :: c8(4, 3), c8b(2, 3)
    integer :: i
    i4 = reshape([(i, i = 1, 12)], [4, 3])
    i8 = i4; r4 = real(i4); r8 = i4; c4 = cmplx(i4, -i4); c8 = cmplx(i4, -i4, c_double)
    call fs_group_write(group, 'i4', 0, i4(1:4:2, :))
    call fs_group_write(group, 'i8', 0, i8(1:4:2, :), wait=.false.)
    call fs_group_write(group, 'r4', 0, r4(1:4:2, :))
    call fs_group_write(group, 'r8', 0, r8(1:4:2, :))
    call fs_group_write(group, 'c4', 0, c4(1:4:2, :))
    call fs_group_write(group, 'c8', 0, c8(1:4:2, :))
    call fs_group_read(group, 'i4', 0, i4b)
    call fs_group_read(group, 'i8', 0, i8b)
    call fs_group_read(group, 'r4', 0, r4b)
    call fs_group_read(group, 'r8', 0, r8b)
    call fs_group_read(group, 'c4', 0, c4b)
    call fs_group_read(group, 'c8', 0, c8b)
    call check(all(i4b == i4(1:4:2, :)) .and. all(i8b == i8(1:4:2, :)), __LINE__)
    call check(all(r4b == r4(1:4:2, :)) .and. all(r8b == r8(1:4:2, :)), __LINE__)
    call check(all(c4b == c4(1:4:2, :)) .and. all(c8b == c8(1:4:2, :)), __LINE__)
    call fs_arrays_flush(job)
    call fs_group_write(group, 'i4', 6, i4b)
    call fs_arrays_discard(job)
  end subroutine

  !> Of [1 5 9; 3 7 11].
  subroutine views()
    integer(c_int32_t) :: row(1, 2), some(3), wide(2, 5)
    type(fieldstone_view) :: view
    call fs_group_view_block(group, [2, 1], [1, 2], stride=[1, 2])
    call fs_group_read(group, 'i4', 0, row)
    call check(all(row == reshape([3, 11], [1, 2])), __LINE__)
    call fs_group_view_irregular(group, [6, 0, 1], dim=0, sets=['i4'])
    some = -1
    call fs_group_read(group, 'i4', 0, some)
    call check(some(1) == 11 .and. some(2) == -1 .and. some(3) == 1, __LINE__)
    call fs_group_view_irregular(group, [3_c_int64_t, 1_c_int64_t], owned=1, dim=2)
    call fs_group_read(group, 'i4', 0, wide(:, 1:2))
    call check(all(wide(1, 1:2) == [9, 1]) .and. all(wide(2, 1:2) == [11, 3]), __LINE__)
    call fs_group_view_cyclic(group, [1, 1], [1, 2])
    call fs_group_view_grid(group, [1, 1], halo=reshape([0, 0, 1, 1], [2, 2]))
    wide = -1
    call fs_group_read(group, 'i4', 0, wide)
    call check(all(wide(1, :) == [-1, 1, 5, 9, -1]), __LINE__)
    call fs_group_view_grid(group, [1, 1])

    ! Views as objects, for a group or for one read.
    call fs_view_grid(view, [1, 1], halo=reshape([0, 0, 1, 1], [2, 2]))
    wide = -1
    call fs_group_read(group, 'i4', 0, wide, view)
    call check(all(wide(1, :) == [-1, 1, 5, 9, -1]), __LINE__)
    call fs_view_free(view)
    call fs_view_cyclic(view, [1, 1], [1, 2])
    call fs_group_view(group, view, ['i4', 'i8'])
    call fs_view_free(view)
    call fs_view_free(view) ! nothing to free
    call fs_group_view_grid(group, [1, 1])
  end subroutine

  subroutine asked()
    integer(c_int64_t), allocatable :: shape(:), steps(:)
    type(fieldstone_counts) :: counts
    type(fieldstone_group) :: again
    integer :: step
    logical :: found
    call fs_group_local_shape(group, 'r8', shape)
    call check(all(shape == [2, 3]), __LINE__)
    call fs_group_steps(group, 'i8', steps)
    call check(size(steps) == 1 .and. all(steps == 0), __LINE__)
    call fs_group_last_step(group, step, found)
    call check(found .and. step == 0, __LINE__)
    call check(fs_group_level(group) == 2 .and. index(fs_group_why(group), 'level 2') > 0, __LINE__)
    call check(fs_arrays_run(job) == 'f', __LINE__)
    call fs_arrays_report(job, counts)
    call check(counts%written > 0 .and. counts%opened > 0 .and. counts%write_seconds > 0, __LINE__)
    call fs_arrays_declared_group(again, job, 'kinds')
    call check(fs_group_level(again) == 2, __LINE__)
  end subroutine

  subroutine errors()
    type(fieldstone_group) :: other
    integer(c_int32_t) :: few(3), more(2, 3), back(2, 3)
    integer :: ierr
    ! A set that the open group lacks is added, with the group's level and attributes.
    more = reshape([1, 2, 3, 4, 5, 6], [2, 3])
    call fs_arrays_group(other, job, 'kinds', [fs_set('more', 'i4', [2, 3])])
    call fs_group_write(other, 'more', 5, more)
    call fs_group_read(group, 'more', 5, back)
    call check(all(back == more), __LINE__)
    call fs_arrays_group(other, job, 'a', [fs_set('x', 'f8', [2, 2], dims=['x'])], ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), 'each dimension') > 0, __LINE__)
    call fs_arrays_group(other, job, 'a', [fs_set('x', 'u1', [2], fill=0d0)], ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), 'a fill') > 0, __LINE__)
    call fs_arrays_group(other, job, 'a', [fs_set('x', 'f8', [FS_VARYING])], ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_hint(), 'order="C"') > 0, __LINE__)
    call fs_arrays_declared_group(other, job, 'absent', ierr)
    call check(ierr == FS_NOT_FOUND, __LINE__)
    call fs_group_view_block(group, [0, 1], [1, 1], ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), 'before 1') > 0, __LINE__)
    call fs_group_view_block(group, [1, 1], [1], ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_group_view_grid(group, [1, 1], halo=reshape([1, 1], [2, 1]), ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_group_view_irregular(group, [1], owned=-1, ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_group_view_joined(group, -1, ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_group_view_grid(group, [1, 1], sets=['absent'], ierr=ierr)
    call check(ierr == FS_NOT_FOUND, __LINE__)
    call fs_group_write(group, 'i4', 1, few, ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), '1 dimensions') > 0, __LINE__)
    call fs_group_read(group, 'i4', 99, few, ierr=ierr)
    call check(ierr == FS_NOT_FOUND, __LINE__)
  end subroutine
end program
