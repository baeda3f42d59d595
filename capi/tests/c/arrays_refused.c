/*
 * If one rank passes a wrong argument to a collective call on a job or a group, all ranks get an
 * error of that rank's kind; the job goes on, and a failed write leaves nothing. A rank that ends
 * its job ends it on all.
 */
#include "check.h"

#include <inttypes.h>

#include "fieldstone_mpi.h"

enum { LENGTH = 8, WRONG_WRITES = 6, WRONG_READS = 5 };

static fs_arrays *job;
static fs_group *group;
static int rank, size;

/* Writes row `rank` of `x`, with the fault `wrong`; -1: without a fault. */
static int write_row(int wrong, const double *row, int64_t step) {
  const uint64_t other[2] = {2, LENGTH};
  return fs_group_write(group, wrong == 0 ? "absent" : wrong == 1 ? NULL : "x", step, wrong == 2 ? "q9" : "f8",
                        wrong == 3 ? -1 : 2, wrong == 3 || wrong == 4 ? other : NULL, NULL,
                        wrong == 5 ? NULL : row, 1);
}

static int read_row(int wrong, double *row, int64_t step) {
  const uint64_t other[2] = {2, LENGTH};
  return fs_group_read(group, wrong == 0 ? NULL : "x", step, wrong == 1 ? "q9" : "f8", wrong == 2 ? -1 : 2,
                       wrong == 2 || wrong == 3 ? other : NULL, NULL, wrong == 4 ? NULL : row);
}

static const fs_hint one_rank[1] = {{"cb_nodes", "1"}}, no_rank[1] = {{"cb_nodes", "0"}}, two[1] = {{"cb_nodes", "2"}};

static int write_hinted(const fs_hint *hint, const double *row, int64_t step) {
  return fs_group_write_with(group, "x", step, "f8", 0, NULL, NULL, row, 1, 1, hint);
}

/* All ranks get an error that names the rank at fault. */
static void failed(int status, int expected, int bad) {
  char named[32];
  snprintf(named, sizeof named, "rank %d", bad);
  CHECK(status == expected && fs_error_kind() == expected);
  CHECK(strstr(fs_error_message(), named));
}

static void calls(void) {
  double row[LENGTH], back[LENGTH];
  int bad, wrong, i;
  int64_t step = 0, steps[2];
  size_t count;
  for (bad = 0; bad < size; bad++) {
    for (i = 0; i < LENGTH; i++) row[i] = rank * 100 + bad * 10 + i;
    for (wrong = 0; wrong < WRONG_WRITES; wrong++) {
      i = write_row(rank == bad ? wrong : -1, row, step);
      /* Another name is another call: ranks contradict one another only if each may be right. */
      failed(i, wrong == 0 ? FS_NOT_FOUND : FS_INVALID, bad);
    }
    failed(write_hinted(rank == bad ? no_rank : one_rank, row, step), FS_INVALID, bad);
    CHECK(write_hinted(rank == bad ? two : one_rank, row, step) == FS_CONFLICT);
    CHECK(read_row(-1, back, step) == FS_NOT_FOUND);
    OK(write_row(-1, row, step));
    for (wrong = 0; wrong < WRONG_READS; wrong++) failed(read_row(rank == bad ? wrong : -1, back, step), FS_INVALID, bad);
    failed(fs_group_read_with(group, "x", step, NULL, "f8", 0, NULL, NULL, back, 1, rank == bad ? no_rank : one_rank),
           FS_INVALID, bad);
    OK(read_row(-1, back, step));
    CHECK(memcmp(row, back, sizeof row) == 0);
    failed(fs_group_steps(group, rank == bad ? NULL : "x", steps, 2, &count), FS_INVALID, bad);
    OK(fs_arrays_flush(job));
    step++;
  }
  /* Ranks at different steps, and two ranks that write one element. */
  CHECK(write_row(-1, row, 100 + rank) == FS_CONFLICT);
  {
    const int64_t map[1] = {0};
    OK(fs_group_view_irregular(group, 0, NULL, 1, map, -1, 0));
    CHECK(write_row(-1, row, 7) == FS_CONFLICT && strstr(fs_error_message(), "rank"));
    OK(fs_arrays_discard(job));
  }
}

/* A map with an index out of range: the error names rank, position and value, and the rank's
   correct map works again. */
static void maps(void) {
  const int64_t beyond[] = {size, -2, INT64_MAX, INT64_MIN};
  const int64_t right[2] = {rank, -1};
  double rows[2][LENGTH], back[2][LENGTH];
  int bad, n, i;
  for (i = 0; i < LENGTH; i++) rows[0][i] = rank + i / 8.0, rows[1][i] = -1;
  OK(fs_group_view_irregular(group, 0, NULL, 2, right, -1, 0));
  OK(fs_group_write(group, "x", 50, "f8", 0, NULL, NULL, rows, 1));
  for (bad = 0; bad < size; bad++) {
    for (n = 0; n < (int)(sizeof beyond / sizeof *beyond); n++) {
      const int64_t wrong[2] = {rank, beyond[n]};
      char named[64];
      snprintf(named, sizeof named, "map[1] is %" PRId64 ",", beyond[n]);
      OK(fs_group_view_irregular(group, 0, NULL, 2, rank == bad ? wrong : right, -1, 0));
      failed(fs_group_write(group, "x", 51, "f8", 0, NULL, NULL, rows, 1), FS_INVALID, bad);
      CHECK(strstr(fs_error_message(), named));
      failed(fs_group_read(group, "x", 50, "f8", 0, NULL, NULL, back), FS_INVALID, bad);
      CHECK(strstr(fs_error_message(), named));
    }
    /* More owned entries than entries, and a dimension that does not exist. */
    OK(fs_group_view_irregular(group, 0, NULL, 2, right, rank == bad ? 3 : -1, 0));
    failed(fs_group_write(group, "x", 51, "f8", 0, NULL, NULL, rows, 1), FS_INVALID, bad);
    OK(fs_group_view_irregular(group, 0, NULL, 2, right, -1, rank == bad ? 2 : 0));
    failed(fs_group_write(group, "x", 51, "f8", 0, NULL, NULL, rows, 1), FS_INVALID, bad);
  }
  OK(fs_group_view_irregular(group, 0, NULL, 2, right, -1, 0));
  memset(back, 0, sizeof back);
  back[1][0] = 7;
  OK(fs_group_read(group, "x", 50, "f8", 0, NULL, NULL, back));
  /* A read skips an entry of no element. */
  CHECK(memcmp(back[0], rows[0], sizeof rows[0]) == 0 && back[1][0] == 7);
  OK(fs_arrays_flush(job));
}

static void declare(void) {
  const uint64_t shape[2] = {(uint64_t)size, LENGTH}, grid[2] = {(uint64_t)size, 1};
  const fs_set right = {"x", "f8", 2, shape, NULL, NULL, 0, NULL}, wrong = {"x", "q9", 2, shape, NULL, NULL, 0, NULL};
  int bad;
  for (bad = 0; bad < size; bad++)
    failed(fs_arrays_group(job, "g", 1, rank == bad ? &wrong : &right, NULL, &group), FS_INVALID, bad);
  OK(fs_arrays_group(job, "g", 1, &right, NULL, &group));
  OK(fs_group_view_grid(group, 0, NULL, 2, grid, NULL));
}

int main(int argc, char **argv) {
  struct fs_comm comm;
  fs_store *store;
  MPI_Init(&argc, &argv);
  CHECK(argc == 2 && fs_mpi_comm(MPI_COMM_WORLD, &comm) == FS_OK);
  rank = comm.rank, size = comm.size;
  OK(fs_open(argv[1], "a", NULL, &store));
  failed(fs_arrays_open(rank == 1 ? NULL : store, "r", &comm, NULL, &job), FS_INVALID, 1);
  OK(fs_arrays_open(store, "r", &comm, NULL, &job));
  declare();
  calls();
  maps();
  if (rank == 0) {
    OK(fs_arrays_abandon(job, "no more"));
  } else {
    CHECK(fs_arrays_flush(job) != FS_OK && strstr(fs_error_message(), "no more"));
    OK(fs_arrays_abandon(job, "nor I"));
  }
  OK(fs_close(store));
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
