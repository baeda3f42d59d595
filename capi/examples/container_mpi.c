/*
 * Samples of a detector, which all ranks of an MPI job write into one netCDF file. Each rank
 * defines its own events, with sizes that no other rank knows; the time axis and the calibration
 * are shared.
 *
 *   mpicc container_mpi.c -o container_mpi -lfieldstone && mpiexec -n 4 ./container_mpi events.nc
 */
#include <stdio.h>
#include <stdlib.h>

#include "fieldstone_mpi.h"

#define EVENTS 3
#define CHANNELS 8

/* Ends the job with the error's message. All ranks get every error, so each ends by itself. */
static void check(int status) {
  if (status == FS_OK) return;
  fprintf(stderr, "%s (%s)\n", fs_error_message(), fs_error_hint());
  MPI_Finalize();
  exit(status);
}

int main(int argc, char **argv) {
  struct fs_comm comm;
  fs_container *file;
  char path[64];
  int rank, event, i;
  uint64_t start[2] = {0, 0}, count[2], records = 0, vars = 0;
  float hits[64];
  double gain[CHANNELS], back[CHANNELS];
  MPI_Init(&argc, &argv);
  check(fs_mpi_comm(MPI_COMM_WORLD, &comm));
  rank = comm.rank;

  check(fs_container_create(argc > 1 ? argv[1] : "events.nc", "cdf5", &comm, &file));
  /* The same on all ranks: the file has it once. */
  {
    const char *dims[2] = {"time", "channel"};
    uint32_t var;
    check(fs_container_def_dim(file, "time", FS_RECORD));
    check(fs_container_def_dim(file, "channel", CHANNELS));
    check(fs_container_def_var(file, "gain", "f8", 2, dims, &var));
    check(fs_container_put_att(file, var, "units", "S1", 2, "mV"));
    check(fs_container_put_att(file, FS_GLOBAL, "title", "S1", 7, "samples"));
  }
  /* Only on this rank. Fieldstone looks "hits" up in the path of the variable. */
  for (event = 0; event < EVENTS; event++) {
    const char *dims[1] = {"hits"};
    double energy = 1.5 * rank + event;
    uint32_t var;
    snprintf(path, sizeof path, "event_%d/hits", rank * EVENTS + event);
    check(fs_container_def_dim(file, path, (uint64_t)(10 + rank * EVENTS + event)));
    snprintf(path, sizeof path, "event_%d/charge", rank * EVENTS + event);
    check(fs_container_def_var(file, path, "f4", 1, dims, &var));
    check(fs_container_put_att(file, var, "energy", "f8", 1, &energy));
  }
  check(fs_container_enddef(file));

  /* Independent: each rank its own events. */
  for (event = 0; event < EVENTS; event++) {
    count[0] = (uint64_t)(10 + rank * EVENTS + event);
    for (i = 0; i < (int)count[0]; i++) hits[i] = (float)(100 * (rank * EVENTS + event) + i);
    snprintf(path, sizeof path, "event_%d/charge", rank * EVENTS + event);
    check(fs_container_put(file, path, "f4", 1, start, count, NULL, hits, 0));
  }
  /* Collective: each rank one record. */
  for (i = 0; i < CHANNELS; i++) gain[i] = rank + i / 10.0;
  start[0] = (uint64_t)rank;
  count[0] = 1;
  count[1] = CHANNELS;
  check(fs_container_put(file, "gain", "f8", 2, start, count, NULL, gain, 1));
  check(fs_container_close(file));

  /* Every rank reads the record of the next one. */
  check(fs_container_open(argc > 1 ? argv[1] : "events.nc", "r", &comm, &file));
  check(fs_container_inq(file, NULL, &vars, NULL, &records));
  start[0] = (uint64_t)((rank + 1) % comm.size);
  check(fs_container_get(file, "gain", "f8", 2, start, count, NULL, back, 1));
  for (i = 0; i < CHANNELS; i++)
    if (back[i] != (double)start[0] + i / 10.0) MPI_Abort(MPI_COMM_WORLD, 99);
  check(fs_container_close(file));
  if (rank == 0)
    printf("%llu variables, %llu records\n", (unsigned long long)vars, (unsigned long long)records);
  fs_mpi_comm_free(&comm);
  MPI_Finalize();
  return 0;
}
