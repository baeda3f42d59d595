/*
 * Checks the communicator of fieldstone_mpi.h: first without failures; then, with "fail" as the
 * second argument, each step of each rank fails once.
 *
 * The program measures how fast errors arrive, from the beginning of the check on this rank, which
 * is before any rank fails. A busy machine may stop a rank for longer than a second. Checks with
 * and without a failure therefore alternate, and an error may take a second or, if that is longer,
 * ten times the slowest check without a failure. A rank that waits for one that has given up would
 * wait forever.
 */
#include <stdio.h>
#include <string.h>

#include "fieldstone_mpi.h"

static struct fs_comm comm;
static const char *folder;

/* The seconds of one check on the slowest rank. */
static double check(const char *name, size_t length, int rank, uint64_t step, uint64_t *steps, int *status) {
  char path[4096];
  double seconds = MPI_Wtime();
  snprintf(path, sizeof path, "%s/%s-%d-%d", folder, name, rank, (int)step);
  *status = fs_comm_check(&comm, path, length, rank, step, steps);
  seconds = MPI_Wtime() - seconds;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

int main(int argc, char **argv) {
  char expected[64], absent[4096];
  uint64_t steps = 0, step;
  double seconds, well = 0, slowest = 0;
  int rank, status, length, bad = 0, tried = 0;
  MPI_Init(&argc, &argv);
  if (argc < 2 || fs_mpi_comm(MPI_COMM_WORLD, &comm) != FS_OK) return 1;
  folder = argv[1];
  for (length = 0; length <= 100000; length = length * 10 + 10) {
    check("well", (size_t)length, -1, (uint64_t)length, &steps, &status);
    if (status != FS_OK) fprintf(stderr, "%s\n", fs_error_message()), bad++;
  }
  for (rank = 0; argc > 2 && rank < comm.size; rank++)
    for (step = 1; step <= steps; step++) {
      if (step % 9 == 1) {
        seconds = check("between", 100, rank, steps + step, NULL, &status);
        if (seconds > well) well = seconds;
      }
      seconds = check("fails", 100, rank, step, NULL, &status);
      snprintf(expected, sizeof expected, "rank %d: step", rank);
      if (status != FS_UNAVAILABLE || strncmp(fs_error_message(), expected, strlen(expected)) != 0)
        fprintf(stderr, "rank %d, step %d: %d %s\n", rank, (int)step, status, fs_error_message()), bad++;
      if (seconds > slowest) slowest = seconds;
      tried++;
    }
  if (slowest > 1 && slowest > 10 * well)
    fprintf(stderr, "an error took %.3f s, a check without one %.3f s\n", slowest, well), bad++;
  snprintf(absent, sizeof absent, "%s/absent/f", folder);
  if (fs_comm_check(&comm, absent, 1, -1, 0, NULL) != FS_NOT_FOUND) fprintf(stderr, "absent\n"), bad++;
  if (comm.rank == 0) printf("%d failures, %.3f s at most; without one %.3f s\n", tried, slowest, well);
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return bad ? 1 : 0;
}
