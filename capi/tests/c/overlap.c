/*
 * Ranks read overlapping bytes of one file in one call, as halos do: one part for each rank, and
 * several. Some versions of Open MPI leave out bytes in such collective reads. Without the library.
 */
#include <stdio.h>

#include "fieldstone_mpi.h"

#define LENGTH 20000
#define PARTS 40

static unsigned char content(uint64_t at) { return (unsigned char)(at * 7 + at / 251); }

static unsigned next(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

int main(int argc, char **argv) {
  static unsigned char all[LENGTH], in[LENGTH];
  struct fs_comm comm;
  void *file = NULL;
  uint64_t offsets[PARTS], at;
  int lengths[PARTS], count, n, round, several, bad = 0;
  unsigned state;
  MPI_Init(&argc, &argv);
  if (argc < 2 || fs_mpi_comm(MPI_COMM_WORLD, &comm) != FS_OK) return 1;
  if (comm.file_open(comm.context, argv[1], 0, &file) != 0) return 1;
  for (at = 0; at < LENGTH; at++) all[at] = content(at);
  offsets[0] = 0;
  lengths[0] = comm.rank == 0 ? LENGTH : 0;
  if (comm.file_write_all(file, 0, comm.rank == 0, offsets, lengths, all) != 0) return 1;
  if (comm.file_sync(file) != 0) return 1;
  state = 1 + (unsigned)comm.rank;
  for (round = 0; round < 40; round++) {
    several = round % 2;
    at = next(&state) % 9000;
    for (count = 0; count < (several ? PARTS : 1) && at < LENGTH; count++) {
      uint64_t most = several ? 600 : LENGTH;
      uint64_t length = 1 + next(&state) % most;
      offsets[count] = at;
      lengths[count] = (int)(length < LENGTH - at ? length : LENGTH - at);
      at += (uint64_t)lengths[count] + 1 + next(&state) % 300;
    }
    memset(in, 0, sizeof in);
    if (comm.file_read_all(file, several, count, offsets, lengths, in) != 0) bad++;
    for (n = 0, at = 0; n < count; at += (uint64_t)lengths[n++])
      if (memcmp(in + at, all + offsets[n], (size_t)lengths[n]) != 0) bad++;
  }
  if (bad) fprintf(stderr, "rank %d: %d parts are not what the file holds\n", comm.rank, bad);
  if (comm.file_close(file) != 0) bad++;
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return bad != 0;
}
