/*
 * Two views of arrays, after SDM's: a regular one, of blocks of a matrix with a halo, and an
 * irregular one, whose map array lists the nodes of a mesh that a rank owns, and its ghosts.
 *
 *     mpicc views.c -o views -lfieldstone && mpiexec -n 4 ./views views.store
 */
#include <stdio.h>
#include <stdlib.h>

#include "fieldstone_mpi.h"

enum { ROWS = 12, COLUMNS = 10, NODES = 60, COMPONENTS = 3 };

static void check(int status) {
  if (status == FS_OK) return;
  fprintf(stderr, "%s (%s)\n", fs_error_message(), fs_error_hint());
  MPI_Finalize();
  exit(status);
}

static void must(int holds) {
  if (!holds) MPI_Abort(MPI_COMM_WORLD, 99);
}

/* Rows of a matrix, with one more row on each side for the neighbours' values. */
static void regular(fs_arrays *job, int rank, int size) {
  const uint64_t shape[2] = {ROWS, COLUMNS}, grid[2] = {(uint64_t)size, 1}, halo[4] = {1, 1, 0, 0};
  const char *const dims[2] = {"row", "column"};
  const fs_set set = {"matrix", "f8", 2, shape, dims, NULL, 0, NULL};
  const int own = ROWS / size; /* 1, 2, 3, 4 and 6 ranks cut 12 rows evenly */
  static double memory[ROWS + 2][COLUMNS];
  fs_group *group;
  int y, x;
  check(fs_arrays_group(job, "regular", 1, &set, NULL, &group));
  check(fs_group_view_grid(group, 0, NULL, 2, grid, halo));
  for (y = 0; y < own; y++)
    for (x = 0; x < COLUMNS; x++) memory[y + 1][x] = (rank * own + y) * 100 + x;
  check(fs_group_write(group, "matrix", 0, "f8", 0, NULL, NULL, memory, 1)); /* the halo is not written */
  check(fs_group_read(group, "matrix", 0, "f8", 0, NULL, NULL, memory));     /* a read fills it */
  if (rank > 0) must(memory[0][COLUMNS - 1] == (rank * own - 1) * 100 + COLUMNS - 1);
  if (rank < size - 1) must(memory[own + 1][0] == (rank + 1) * own * 100);
}

/* Values at nodes, three components each. Node n belongs to rank 7 n mod size. */
static void irregular(fs_arrays *job, int rank, int size) {
  const uint64_t shape[2] = {NODES, COMPONENTS};
  const fs_set sets[2] = {{"velocity", "f8", 2, shape, NULL, NULL, 0, NULL},
                          {"displacement", "f8", 2, shape, NULL, NULL, 0, NULL}};
  int64_t map[NODES + 1], owned = 0;
  static double values[NODES + 1][COMPONENTS];
  fs_group *group;
  size_t length, i;
  int c;
  for (i = NODES; i-- > 0;) /* in any order */
    if ((int)(7 * i % (size_t)size) == rank) map[owned++] = (int64_t)i;
  length = (size_t)owned;
  map[length++] = (map[0] + 1) % NODES; /* a ghost, owned by another rank (or by this one, if it is alone) */

  check(fs_arrays_group(job, "irregular", 2, sets, NULL, &group));
  check(fs_group_view_irregular(group, 0, NULL, length, map, owned, 0));
  for (i = 0; i < length; i++)
    for (c = 0; c < COMPONENTS; c++) values[i][c] = i < (size_t)owned ? (double)map[i] + c / 10.0 : -1;
  check(fs_group_write(group, "velocity", 0, "f8", 0, NULL, NULL, values, 1));
  check(fs_group_write(group, "displacement", 0, "f8", 0, NULL, NULL, values, 1)); /* reuses the plan */
  check(fs_group_read(group, "velocity", 0, "f8", 0, NULL, NULL, values));
  for (i = 0; i < length; i++)
    for (c = 0; c < COMPONENTS; c++) must(values[i][c] == (double)map[i] + c / 10.0);
}

int main(int argc, char **argv) {
  fs_comm comm;
  fs_store *store;
  fs_arrays *job;
  fs_arrays_counts counts;
  MPI_Init(&argc, &argv);
  check(fs_mpi_comm(MPI_COMM_WORLD, &comm));
  check(fs_open(argc > 1 ? argv[1] : "views.store", "a", NULL, &store));
  check(fs_arrays_open(store, "views", &comm, NULL, &job));
  regular(job, comm.rank, comm.size);
  irregular(job, comm.rank, comm.size);
  check(fs_arrays_flush(job));
  check(fs_arrays_report(job, &counts));
  if (comm.rank == 0) printf("%s of files by rank 0\n", counts.written > 0 ? "bytes" : "no byte");
  check(fs_arrays_close(job));
  check(fs_close(store));
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
