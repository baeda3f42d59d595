! Imports, meshes and partitions in one process: each procedure and kind, and the errors that the modules find.
program meshes
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use fieldstone
  use fieldstone_arrays
  implicit none
  integer, parameter :: nodes = 6, edges = 7
  ! Two adjacent squares.
  integer, parameter :: first(edges) = [1, 2, 4, 5, 1, 2, 3], second(edges) = [2, 3, 5, 6, 4, 5, 6]
  type(fieldstone_store) :: store
  type(fieldstone_job) :: job
  type(fieldstone_mesh) :: plate
  character(len=500) :: folder

  call get_command_argument(1, folder)
  call make_file()
  call fs_open(store, trim(folder)//'/store')
  call fs_arrays_open(job, store, 'm', hints=[fs_hint('cb_nodes', 1)])
  call imports()
  call mesh()
  call on_mesh()
  call partitions()
  call errors()
  call fs_arrays_close(job)
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

  !> first, second; xy(2, nodes) of each kind.
  subroutine make_file()
    integer :: unit, n
    integer(c_int32_t) :: i4(2 * nodes)
    i4 = [(n, n = 1, 2 * nodes)]
    open (newunit=unit, file=trim(folder)//'/m.raw', access='stream', form='unformatted', action='write')
    write (unit) first, second, i4, int(i4, c_int64_t), real(i4, c_float), real(i4, c_double)
    write (unit) cmplx(i4, -i4, c_float_complex), cmplx(i4, -i4, c_double_complex)
    close (unit)
    open (newunit=unit, file=trim(folder)//'/m.part', action='write')
    write (unit, '(i0)') [(0, n = 1, nodes)]
    close (unit)
  end subroutine

  subroutine open_file(import)
    type(fieldstone_import), intent(out) :: import
    integer, parameter :: at = 8 * edges, s(2) = [2, nodes]
    call fs_arrays_import_raw(import, job, trim(folder)//'/m.raw', [fs_raw_variable('a', '<i4', 0, [edges]), &
      fs_raw_variable('b', '<i4', 4 * edges, [edges]), fs_raw_variable('i4', '<i4', at, s), &
      fs_raw_variable('i8', '<i8', at + 48, s), fs_raw_variable('r4', '<f4', at + 144, s), &
      fs_raw_variable('r8', '<f8', at + 192, s), fs_raw_variable('c4', '<c8', at + 288, s), &
      fs_raw_variable('c8', '<c16', int(at + 384, c_int64_t), s)], checksum=.true.)
  end subroutine

  subroutine imports()
    type(fieldstone_import) :: import
    type(fieldstone_view) :: column
    integer(c_int32_t) :: i4(2, nodes)
    integer(c_int64_t) :: i8(2, nodes)
    real(c_float) :: r4(2, nodes)
    real(c_double) :: r8(2, nodes), two(2, 2)
    complex(c_float_complex) :: c4(2, nodes)
    complex(c_double_complex) :: c8(2, nodes)
    character(len=:), allocatable :: name, dtype
    integer(c_int64_t), allocatable :: extents(:)
    integer :: expected(2, nodes), n, ierr
    expected = reshape([(n, n = 1, 2 * nodes)], [2, nodes])
    call open_file(import)
    call check(fs_import_count(import) == 8, __LINE__)
    call fs_import_variable(import, 6, name, dtype, extents)
    call check(name == 'r8' .and. dtype == '<f8' .and. all(extents == [2, nodes]), __LINE__)
    call fs_import_read(import, 'i4', i4)
    call fs_import_read(import, 'i8', i8)
    call fs_import_read(import, 'r4', r4)
    call fs_import_read(import, 'r8', r8)
    call fs_import_read(import, 'c4', c4)
    call fs_import_read(import, 'c8', c8)
    call check(all(i4 == expected) .and. all(i8 == expected), __LINE__)
    call check(all(r4 == expected) .and. all(r8 == expected), __LINE__)
    call check(all(c4 == cmplx(expected, -expected)) .and. all(c8 == cmplx(expected, -expected, c_double)), __LINE__)
    call fs_view_irregular(column, [6, 1], dim=2)
    call fs_import_local_shape(import, 'r8', extents, column)
    call check(all(extents == [2, 2]), __LINE__)
    call fs_import_read(import, 'r8', two, column)
    call check(all(two == reshape([11, 12, 1, 2], [2, 2])), __LINE__)
    call fs_view_free(column)
    call fs_view_block(column, [2, 3], [1, 2])
    call fs_import_read(import, 'r8', two(:1, :), column)
    call check(all(two(1, :) == [6, 8]), __LINE__)
    call fs_view_free(column)
    call fs_import_variable(import, 9, ierr=ierr)
    call check(ierr == FS_NOT_FOUND, __LINE__)
    call fs_import_read(import, 'r8', i4, ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), 'not int32') > 0, __LINE__)
    call fs_import_close(import)
    call fs_import_close(import, ierr) ! nothing to close
    call check(ierr == FS_OK, __LINE__)
    call fs_arrays_import_raw(import, job, trim(folder)//'/m.raw', [fs_raw_variable('a', '<i4', 0, [-1])], ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_arrays_import_netcdf(import, job, trim(folder)//'/absent.nc', ['t'], ierr=ierr)
    call check(ierr == FS_NOT_FOUND, __LINE__)
  end subroutine

  subroutine mesh()
    type(fieldstone_mesh) :: again
    type(fieldstone_mesh_counts) :: counts
    type(fieldstone_view) :: view
    integer(c_int64_t), allocatable :: extents(:)
    double precision :: x(nodes), y(nodes), back(nodes)
    integer :: faces(4, 3), rows(4, 3), row(4, 1), ierr
    x = [0, 1, 2, 0, 1, 2]
    y = [0, 0, 0, 1, 1, 1]
    faces = reshape([1, 2, 5, 4, 2, 3, 6, 0, 2, 6, 5, 0], [4, 3]) ! a square and two triangles
    call fs_arrays_create_mesh(plate, job, 'plate', x, y, faces=faces, attrs=[fs_attr('long_name', 'a plate')], &
      y_attrs=[fs_attr('units', 'furlongs')])
    call fs_mesh_info(plate, counts)
    call check(counts%nodes == nodes .and. counts%edges == 0 .and. counts%faces == 3, __LINE__)
    call fs_mesh_read(plate, 'y', back)
    call check(all(back == y), __LINE__)
    call fs_mesh_local_shape(plate, 'faces', extents)
    call check(all(extents == [4, 3]), __LINE__)
    call fs_mesh_read(plate, 'faces', rows)
    call check(all(rows == faces), __LINE__)
    call fs_view_block(view, [1, 3], [4, 1])
    call fs_mesh_read(plate, 'faces', row, view)
    call check(all(row(:, 1) == faces(:, 3)), __LINE__)
    call fs_view_free(view)
    call fs_arrays_mesh(again, job, 'plate')
    call check(fs_mesh_checksum(again) == fs_mesh_checksum(plate) .and. len(fs_mesh_checksum(again)) == 32, __LINE__)
    call fs_mesh_close(again)
    call fs_arrays_mesh(again, job, 'absent', ierr)
    call check(ierr == FS_NOT_FOUND, __LINE__)
    faces(1, 1) = 7
    call fs_arrays_create_mesh(again, job, 'b', x, y, faces=faces, ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), 'is 7, but nodes are 1 to 6') > 0, __LINE__)
    call fs_arrays_create_mesh(again, job, 'b', x, y(2:), ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    ! In space, with nodes from 0.
    call fs_arrays_create_mesh(again, job, 'line', x, y, x + y, edges=reshape([0, 1, 1, 2], [2, 2]), base=0)
    call fs_mesh_info(again, counts)
    call check(counts%edges == 2, __LINE__)
    call fs_mesh_read(again, 'z', back)
    call check(all(back == x + y), __LINE__)
    call fs_mesh_close(again)
  end subroutine

  !> A group on a mesh has its extent along the first dimension.
  subroutine on_mesh()
    type(fieldstone_group) :: group
    type(fieldstone_partition) :: part
    type(fieldstone_view) :: view
    integer(c_int64_t), allocatable :: extents(:)
    double precision :: p(nodes), back(nodes)
    integer :: ierr
    call fs_arrays_group(group, job, 'state', [fs_set('p', 'f8', [integer ::]), fs_set('q', 'f8', [nodes, 2])], &
      mesh='plate', location='node', hints=[fs_hint('striping_unit', '1048576')])
    call fs_group_local_shape(group, 'p', extents)
    call check(all(extents == [nodes]), __LINE__)
    call fs_arrays_partition(part, job, fs_edges(plate), fs_vector('hilbert'))
    call fs_partition_node_view(view, part)
    call fs_group_view(group, view, ['p'])
    call fs_partition_free(part)
    p = [1, 2, 3, 4, 5, 6] / 4d0
    call fs_group_write(group, 'p', 0, p, hints=[fs_hint('cb_nodes', 1), fs_hint('romio_cb_write', 'enable')])
    call fs_group_read(group, 'p', 0, back, view, [fs_hint('cb_nodes', 1)])
    call check(all(back == p), __LINE__)
    call check(index(fs_group_why(group), 'romio_cb_write=enable') > 0, __LINE__)
    call check(index(fs_group_why(group), 'striping_unit=1048576') > 0, __LINE__)
    call fs_group_write(group, 'p', 0, p, hints=[fs_hint('cb_nodes', 'many')], ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_view_free(view)
    call fs_arrays_group(group, job, 'other', [fs_set('r', 'f8', [nodes])], mesh='plate', location='corner', ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_arrays_flush(job)
  end subroutine

  subroutine partitions()
    type(fieldstone_import) :: import
    type(fieldstone_partition) :: part
    type(fieldstone_partition_counts) :: counts
    type(fieldstone_view) :: view
    integer(c_int64_t), allocatable :: numbers(:), ends(:, :)
    integer(c_int32_t) :: i4(nodes)
    integer(c_int64_t) :: i8(2, nodes)
    real(c_float) :: r4(nodes)
    real(c_double) :: r8(nodes, 2)
    complex(c_float_complex) :: c4(nodes)
    complex(c_double_complex) :: c8(nodes)
    integer :: zero(nodes), n
    zero = 0
    call fs_arrays_partition(part, job, fs_edges(plate), fs_vector('hilbert'))
    call check(fs_partition_source(part) == 'parts' .and. fs_partition_ignored(part) == '', __LINE__)
    call fs_partition_free(part)
    call fs_arrays_partition(part, job, fs_edges(first, second), fs_vector(zero), method='ring', history=.false.)
    call check(fs_partition_source(part) == 'computed', __LINE__)
    call fs_partition_info(part, counts)
    call check(counts%nodes == nodes .and. counts%owned == nodes, __LINE__)
    call check(counts%edges == edges .and. counts%owned_edges == edges, __LINE__)
    call fs_partition_nodes(part, numbers)
    call check(all(numbers == [(n, n = 1, nodes)]), __LINE__)
    call fs_partition_edges(part, numbers)
    call check(all(numbers == [(n, n = 1, edges)]), __LINE__)
    call fs_partition_ends(part, ends)
    call check(all(ends(1, :) == first) .and. all(ends(2, :) == second), __LINE__)
    i4 = 1; i8 = 2; r4 = 3; r8 = 4; c4 = 5; c8 = 6 ! without ghosts nothing changes
    call fs_partition_update(part, i4)
    call fs_partition_update(part, i8)
    call fs_partition_update(part, r4)
    call fs_partition_update(part, r8, dim=1)
    call fs_partition_update(part, c4)
    call fs_partition_update(part, c8)
    call check(all(i4 == 1) .and. all(i8 == 2) .and. all(r4 == 3) .and. all(r8 == 4), __LINE__)
    call check(all(c4 == 5) .and. all(c8 == 6), __LINE__)
    call fs_partition_edge_view(view, part)
    call fs_view_free(view)
    call fs_partition_free(part)
    call fs_arrays_partition(part, job, fs_edges(int(first, c_int64_t), int(second, c_int64_t)), &
      fs_vector(int(zero, c_int64_t), shares=.true.))
    call fs_arrays_partition(part, job, fs_edges(first - 1, second - 1), fs_vector('block'), nodes=nodes, base=0)
    call open_file(import)
    call fs_arrays_partition(part, job, fs_edges(import, 'a', 'b'), fs_vector('file', trim(folder)//'/m.part'))
    call fs_partition_ends(part, ends)
    call check(all(ends(1, :) == first) .and. all(ends(2, :) == second), __LINE__)
  end subroutine

  subroutine errors()
    type(fieldstone_partition) :: part
    type(fieldstone_view) :: view
    integer(c_int64_t), allocatable :: ends(:, :)
    real(c_double) :: r8(nodes, 2)
    integer :: zero(nodes), ierr
    zero = 0
    call fs_arrays_partition(part, job, fs_edges(first, second(2:)), fs_vector(zero), ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_arrays_partition(part, job, fs_edges(first, second), fs_vector('best'), ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), "'best'") > 0, __LINE__)
    call fs_arrays_partition(part, job, fs_edges(first, second), fs_vector(zero - 1), ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_arrays_partition(part, job, fs_edges(first, second), fs_vector(zero), base=0, ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), 'nodes are 0 to 5') > 0, __LINE__)
    call fs_partition_ends(part, ends, ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_arrays_partition(part, job, fs_edges(first, second), fs_vector(zero), history=.false.)
    call fs_partition_update(part, r8, ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_partition_update(part, r8, dim=3, ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), '0 dimensions') > 0, __LINE__)
    call fs_partition_node_view(view, part, dim=0, ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_view_block(view, [1], [1, 1], ierr=ierr)
    call check(ierr == FS_INVALID .and. index(fs_error_message(), 'dimensions') > 0, __LINE__)
    call fs_view_grid(view, [-1], ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_view_cyclic(view, [1], [1, 1], ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
    call fs_view_joined(view, -1, ierr=ierr)
    call check(ierr == FS_INVALID, __LINE__)
  end subroutine
end program
