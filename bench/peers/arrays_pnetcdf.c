/* Steps of a cube through PnetCDF: a variable over an unlimited dimension in a CDF-5 file, put and got collectively.
 *
 *   mpicc -O2 -o arrays_pnetcdf arrays_pnetcdf.c -I$PNETCDF_DIR/include -L$PNETCDF_DIR/lib -lpnetcdf -lm
 *   mpiexec -n 4 ./arrays_pnetcdf grid FOLDER STEPS EDGE A B C
 */
#include "arrays.h"

#include <pnetcdf.h>

static int file, variable;

static void check(int status) {
  if (status != NC_NOERR) stop(ncmpi_strerror(status));
}

static void open_all(array_share *own, int writing) {
  static const char *const names[3] = {"z", "y", "x"};
  char path[4096];
  int dims[4];
  snprintf(path, sizeof path, "%s/steps.nc", own->folder);
  if (!writing) {
    check(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    check(ncmpi_inq_varid(file, "u", &variable));
    return;
  }
  check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  check(ncmpi_def_dim(file, "step", NC_UNLIMITED, &dims[0]));
  for (int d = 0; d < 3; d++) check(ncmpi_def_dim(file, names[d], own->edge, &dims[d + 1]));
  check(ncmpi_def_var(file, "u", NC_DOUBLE, 4, dims, &variable));
  check(ncmpi_enddef(file));
}

static void box(array_share *own, int step, MPI_Offset *start, MPI_Offset *count) {
  start[0] = step;
  count[0] = 1;
  for (int d = 0; d < 3; d++) {
    start[d + 1] = own->start[d];
    count[d + 1] = own->extent[d];
  }
}

static void write_step(array_share *own, int step, const double *values) {
  MPI_Offset start[4], count[4];
  box(own, step, start, count);
  check(ncmpi_put_vara_double_all(file, variable, start, count, values));
}

static void read_step(array_share *own, int step, double *values) {
  MPI_Offset start[4], count[4];
  box(own, step, start, count);
  check(ncmpi_get_vara_double_all(file, variable, start, count, values));
}

static void sync_all(array_share *own) {
  (void)own;
  check(ncmpi_sync(file));
}

static void close_all(array_share *own) {
  (void)own;
  check(ncmpi_close(file));
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
