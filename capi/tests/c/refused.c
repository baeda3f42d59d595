/*
 * If one rank passes a wrong argument to a collective put or get, all ranks get an error of that
 * rank's kind, and the container stays usable: afterwards all ranks put, get, sync and close as
 * usual.
 */
#include "check.h"

#include "fieldstone_mpi.h"

enum { WRONG = 5, LENGTH = 8 };

static struct fs_container *file;
static int rank, size;

/* Puts or gets row `rank` of `x`, with the fault `wrong`; -1: without a fault. */
static int access_row(int put, int wrong, double *row) {
  uint64_t start[2] = {(uint64_t)rank, 0}, count[2] = {1, LENGTH};
  const char *path = wrong == 0 ? "absent" : "x", *dtype = wrong == 1 ? "q9" : "f8";
  const uint64_t *starts = wrong == 2 ? NULL : start;
  int ndim = wrong == 3 ? -1 : 2;
  if (wrong == 4) row = NULL;
  if (put) return fs_container_put(file, path, dtype, ndim, starts, count, NULL, row, 1);
  return fs_container_get(file, path, dtype, ndim, starts, count, NULL, row, 1);
}

int main(int argc, char **argv) {
  const char *const dims[2] = {"rank", "n"};
  double row[LENGTH], back[LENGTH];
  struct fs_comm comm;
  char named[32];
  int bad, put, wrong, i, expected;
  MPI_Init(&argc, &argv);
  CHECK(argc == 2 && fs_mpi_comm(MPI_COMM_WORLD, &comm) == FS_OK);
  rank = comm.rank, size = comm.size;
  OK(fs_container_create(argv[1], "cdf5", &comm, &file));
  OK(fs_container_def_dim(file, "rank", (uint64_t)size));
  OK(fs_container_def_dim(file, "n", LENGTH));
  OK(fs_container_def_var(file, "x", "f8", 2, dims, NULL));
  OK(fs_container_enddef(file));
  for (bad = 0; bad < size; bad++)
    for (put = 0; put < 2; put++) {
      for (i = 0; i < LENGTH; i++) row[i] = rank * 100 + bad * 10 + put + i;
      for (wrong = 0; wrong < WRONG; wrong++) {
        expected = wrong == 0 ? FS_NOT_FOUND : FS_INVALID;
        snprintf(named, sizeof named, "rank %d: ", bad);
        i = access_row(put, rank == bad ? wrong : -1, put ? row : back);
        CHECK(i == expected && fs_error_kind() == expected);
        CHECK(size == 1 || strstr(fs_error_message(), named) != NULL);
      }
      /* All ranks go on together. */
      OK(access_row(1, -1, row));
      OK(access_row(0, -1, back));
      CHECK(memcmp(row, back, sizeof row) == 0);
    }
  /* An independent call involves no other rank. */
  if (rank == 0) CHECK(fs_container_put(file, "x", "q9", 2, NULL, NULL, NULL, NULL, 0) == FS_INVALID);
  OK(fs_container_sync(file));
  OK(fs_container_close(file));
  OK(fs_container_open(argv[1], "r", &comm, &file));
  OK(access_row(0, -1, back));
  CHECK(memcmp(row, back, sizeof row) == 0);
  OK(fs_container_close(file));
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
