/* Opens a file with PnetCDF in a separate process or job, finds one variable and reads it.
 *
 *   [mpiexec -n P] pnetcdf_open FILE VARIABLE
 *
 * Rank 0 prints one line of JSON: seconds from the call of open to the open file (PnetCDF then holds the whole
 * header) and to the values, the slowest rank's; processor seconds, growth of the highest resident size in bytes,
 * and the first value.
 */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void check(int status)
{
    if (status != NC_NOERR) {
        fprintf(stderr, "%s\n", ncmpi_strerror(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    int rank, file, variable, dims, ids[1024];
    struct rusage before, after;
    MPI_Init(&argc, &argv);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    getrusage(RUSAGE_SELF, &before);
    double start = MPI_Wtime();
    check(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
    double opened = MPI_Wtime() - start;
    check(ncmpi_inq_varid(file, argv[2], &variable));
    check(ncmpi_inq_var(file, variable, NULL, NULL, &dims, ids, NULL));
    MPI_Offset count = 1, length;
    for (int i = 0; i < dims; i++) {
        check(ncmpi_inq_dimlen(file, ids[i], &length));
        count *= length;
    }
    float *values = malloc((size_t)count * sizeof *values);
    check(ncmpi_get_var_float_all(file, variable, values));
    double seconds = MPI_Wtime() - start;
    getrusage(RUSAGE_SELF, &after);
    double cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec)
               + 1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    MPI_Reduce(rank ? &opened : MPI_IN_PLACE, &opened, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(rank ? &seconds : MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"opened\": %.6f, \"seconds\": %.6f, \"cpu\": %.6f, \"growth\": %ld, \"value\": %g}\n", opened, seconds, cpu,
           1024 * (after.ru_maxrss - before.ru_maxrss), (double)values[0]);
    free(values);
    check(ncmpi_close(file));
    MPI_Finalize();
    return 0;
}
