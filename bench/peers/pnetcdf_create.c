/* Creation of the paper's data set by PnetCDF, by an application whose ranks do not know what other ranks create:
 * each rank packs its own definitions, all ranks exchange them, each defines everything, enddef.
 *
 *   mpicc -O2 -o pnetcdf_create pnetcdf_create.c -I$PNETCDF_DIR/include -L$PNETCDF_DIR/lib -lpnetcdf -lm
 *   mpiexec -n 4 ./pnetcdf_create VARIABLES HASH_SIZE FILE
 *
 * HASH_SIZE 0 leaves the library's default; other sizes need PnetCDF 1.13 or newer. Prints one line of JSON: seconds
 * and processor seconds from the first definition to the end of enddef (the largest of all ranks), its phases, close,
 * and the highest resident size of rank 0 and of the other ranks. Names and shapes are those of bench/creation.py.
 */
#include <inttypes.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void check(int status, const char *call)
{
    if (status != NC_NOERR) {
        fprintf(stderr, "%s: %s\n", call, ncmpi_strerror(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The mixing function that both generators share. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9E3779B97F4A7C15);
    return x ^ x >> 29;
}

static const char *const PARTS[8] = { "x", "y", "edge_index", "nhits", "charge", "plane_u_id", "label", "vtx" };

struct packed {
    char *bytes;
    size_t used, room;
};

static void append(struct packed *to, const void *bytes, size_t count)
{
    if (to->used + count > to->room) {
        to->room = 2 * (to->used + count);
        to->bytes = realloc(to->bytes, to->room);
        if (to->bytes == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memcpy(to->bytes + to->used, bytes, count);
    to->used += count;
}

static void append_name(struct packed *to, const char *name)
{
    uint16_t length = (uint16_t)strlen(name);
    append(to, &length, sizeof length);
    append(to, name, length);
}

static const char *take_name(const char *from, char *name)
{
    uint16_t length;
    memcpy(&length, from, sizeof length);
    memcpy(name, from + sizeof length, length);
    name[length] = '\0';
    return from + sizeof length + length;
}

static void pack(struct packed *to, int64_t first, int64_t end)
{
    char name[NC_MAX_NAME + 1];
    for (int64_t i = first; i < end; i++) {
        uint8_t dims = (uint8_t)(1 + i % 2);
        snprintf(name, sizeof name, "event_%07" PRId64 ".node.%s.%06" PRIx64, i / 8, PARTS[i % 8], mix(i + 7) & 0xffffff);
        append_name(to, name);
        append(to, &dims, 1);
        for (int k = 0; k < dims; k++) {
            int64_t length = 4 + (int64_t)(mix(2 * i + k) % 61);
            snprintf(name, sizeof name, "dim_%08" PRId64 "_%d.%016" PRIx64 ".pad", i, k, mix(i));
            append_name(to, name);
            append(to, &length, sizeof length);
        }
    }
}

static void define(int file, const char *from, const char *end)
{
    char name[NC_MAX_NAME + 1], dim[NC_MAX_NAME + 1];
    while (from < end) {
        int ids[2], variable;
        from = take_name(from, name);
        uint8_t dims = (uint8_t)*from++;
        for (int k = 0; k < dims; k++) {
            int64_t length;
            from = take_name(from, dim);
            memcpy(&length, from, sizeof length);
            from += sizeof length;
            check(ncmpi_def_dim(file, dim, length, &ids[k]), "ncmpi_def_dim");
        }
        check(ncmpi_def_var(file, name, NC_FLOAT, dims, ids, &variable), "ncmpi_def_var");
    }
}

static double processor(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static double resident(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return 1024.0 * (double)use.ru_maxrss;
}

static double largest(double value)
{
    double all;
    MPI_Reduce(&value, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    int rank, ranks, file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    int64_t variables = atoll(argv[1]);
    const char *hash = argv[2], *path = argv[3];

    struct packed own = { 0 };
    pack(&own, variables * rank / ranks, variables * (rank + 1) / ranks);
    MPI_Info hints;
    MPI_Info_create(&hints);
    if (strcmp(hash, "0") != 0) {
        MPI_Info_set(hints, "nc_hash_size_dim", hash);
        MPI_Info_set(hints, "nc_hash_size_var", hash);
    }
    check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, hints, &file), "ncmpi_create");
    double resident_before = resident();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), processor_before = processor();

    int mine = (int)own.used, *counts = malloc(ranks * sizeof *counts), *starts = malloc(ranks * sizeof *starts);
    MPI_Allgather(&mine, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    size_t total = 0;
    for (int r = 0; r < ranks; r++) {
        starts[r] = (int)total;
        total += (size_t)counts[r];
    }
    char *all = malloc(total);
    MPI_Allgatherv(own.bytes, mine, MPI_BYTE, all, counts, starts, MPI_BYTE, MPI_COMM_WORLD);
    double exchanged = MPI_Wtime();
    define(file, all, all + total);
    double defined = MPI_Wtime();
    check(ncmpi_enddef(file), "ncmpi_enddef");
    double ended = MPI_Wtime(), processor_used = processor() - processor_before, resident_after = resident();
    MPI_Offset header;
    check(ncmpi_inq_header_size(file, &header), "ncmpi_inq_header_size");
    check(ncmpi_close(file), "ncmpi_close");
    double closed = MPI_Wtime();

    double seconds = largest(ended - start), exchange = largest(exchanged - start), definition = largest(defined - exchanged);
    double write = largest(ended - defined), close = largest(closed - ended), cpu = largest(processor_used);
    double peak = largest(resident_after), before = largest(resident_before);
    if (rank == 0) {
        printf("{\"seconds\": %.6f, \"exchange\": %.6f, \"definition\": %.6f, \"header write\": %.6f, \"close\": %.6f, \"cpu\": %.6f, "
               "\"peak\": %.0f, \"before\": %.0f, \"header\": %lld, \"library\": \"%.30s\"}\n",
               seconds, exchange, definition, write, close, cpu, peak, before, (long long)header, ncmpi_inq_libvers());
    }
    MPI_Info_free(&hints);
    MPI_Finalize();
    return 0;
}
