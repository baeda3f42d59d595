/* The yardstick: one process writes the same bytes in pieces of 4 MiB into one file, step after step, then fsync.
 *
 *   mpicc -O2 -o arrays_sequential arrays_sequential.c && ./arrays_sequential grid FOLDER STEPS EDGE 1 1 1
 */
#include "arrays.h"

#define PIECE (4 << 20)
static int file;

static void open_all(array_share *own, int writing) {
  char path[4096];
  snprintf(path, sizeof path, "%s/steps", own->folder);
  file = open(path, writing ? O_RDWR | O_CREAT : O_RDONLY, 0644);
  if (file < 0) stop("open");
}

static void write_step(array_share *own, int step, const double *values) {
  (void)step;
  const char *bytes = (const char *)values;
  for (int64_t left = own->total * 8; left > 0; left -= PIECE, bytes += PIECE) {
    size_t piece = left < PIECE ? (size_t)left : PIECE;
    if (write(file, bytes, piece) != (ssize_t)piece) stop("write");
  }
}

static void read_step(array_share *own, int step, double *values) {
  (void)step;
  char *bytes = (char *)values;
  for (int64_t left = own->total * 8; left > 0; left -= PIECE, bytes += PIECE) {
    size_t piece = left < PIECE ? (size_t)left : PIECE;
    if (read(file, bytes, piece) != (ssize_t)piece) stop("read");
  }
}

static void sync_all(array_share *own) {
  (void)own;
  if (fsync(file)) stop("fsync");
}

static void close_all(array_share *own) {
  (void)own;
  close(file);
}

int main(int argc, char **argv) {
  static const struct peer peer = {open_all, write_step, sync_all, read_step, close_all};
  array_share own;
  MPI_Init(&argc, &argv);
  int steps = arguments(argc, argv, &own);
  course(&own, steps, &peer);
  MPI_Finalize();
  return 0;
}
