/* Distribution of an unstructured mesh's edges as codes do it by hand: rank 0 reads and broadcasts, and each rank
 * passes over all edges twice, to count its own and to take them. Then a set at the edges in the same way.
 *
 *   mpicc -O2 -o arrays_edges arrays_edges.c && mpiexec -n 4 ./arrays_edges EDGES-FILE EDGES NODES VECTOR-FILE
 *
 * The file has the first ends, the second ends (4 bytes each) and a set at edges (8 bytes each). Each rank finally has
 * the same part as from Fieldstone: own nodes ascending, then ghosts; own edges, then the others; their ends as places
 * in nodes.
 */
#include "arrays.h"

#define PIECE (16 << 20)

static void broadcast(int file, int64_t offset, char *into, int64_t bytes) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int64_t done = 0; done < bytes; done += PIECE) {
    int piece = (int)(bytes - done < PIECE ? bytes - done : PIECE);
    if (rank == 0 && pread(file, into + done, (size_t)piece, offset + done) != piece) stop("the edges cannot be read");
    must(MPI_Bcast(into + done, piece, MPI_BYTE, 0, MPI_COMM_WORLD), "bcast");
  }
}

int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5) stop("EDGES-FILE EDGES NODES VECTOR-FILE");
  int64_t edges = atoll(argv[2]), nodes = atoll(argv[3]), firsts = 0, seconds = 0, owned = 0, ghosts = 0;
  unsigned char *vector = room((size_t)nodes);
  int given = open(argv[4], O_RDONLY), file = rank == 0 ? open(argv[1], O_RDONLY) : -1;
  if (given < 0 || read(given, vector, (size_t)nodes) != nodes) stop("the vector cannot be read");

  double used = processor(), start = begin();
  int32_t *a = room((size_t)edges * 4), *b = room((size_t)edges * 4);
  broadcast(file, 0, (char *)a, edges * 4);
  broadcast(file, edges * 4, (char *)b, edges * 4);
  double imported = since(start);

  start = begin();
  for (int64_t e = 0; e < edges; e++) {
    firsts += vector[a[e]] == rank;
    seconds += vector[a[e]] != rank && vector[b[e]] == rank;
  }
  int64_t *mine = room((size_t)(firsts + seconds) * 8), own = 0, other = firsts;
  for (int64_t e = 0; e < edges; e++) {
    if (vector[a[e]] == rank)
      mine[own++] = e;
    else if (vector[b[e]] == rank)
      mine[other++] = e;
  }
  int32_t *place = calloc((size_t)nodes, sizeof *place);
  for (int64_t n = 0; n < nodes; n++) owned += vector[n] == rank;
  for (int64_t k = 0; k < other; k++) place[a[mine[k]]] = place[b[mine[k]]] = 1;
  for (int64_t n = 0; n < nodes; n++) ghosts += place[n] && vector[n] != rank;
  int64_t *held = room((size_t)(owned + ghosts) * 8), next = 0, ghost = owned;
  for (int64_t n = 0; n < nodes; n++) {
    if (vector[n] == rank) {
      place[n] = (int32_t)next;
      held[next++] = n;
    } else if (place[n]) {
      place[n] = (int32_t)ghost;
      held[ghost++] = n;
    }
  }
  int64_t(*ends)[2] = room((size_t)other * sizeof *ends);
  for (int64_t k = 0; k < other; k++) {
    ends[k][0] = place[a[mine[k]]];
    ends[k][1] = place[b[mine[k]]];
  }
  double partitioned = since(start);

  start = begin();
  double *all = room((size_t)edges * 8), *set = room((size_t)other * 8);
  broadcast(file, edges * 8, (char *)all, edges * 8);
  for (int64_t k = 0; k < other; k++) set[k] = all[mine[k]];
  double data = since(start);
  used = reduced(processor() - used, MPI_SUM);

  double sums[4] = {(double)other, (double)ghosts, 0, 0}, totals[4];
  for (int64_t k = 0; k < other; k++) {
    sums[2] += (double)(held[ends[k][0]] + held[ends[k][1]]);
    sums[3] += set[k];
  }
  MPI_Reduce(sums, totals, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"import\": %.6f, \"distribution\": %.6f, \"seconds\": %.6f, ", imported, partitioned, imported + partitioned);
    printf("\"data\": %.6f, \"cpu\": %.6f, ", data, used);
    printf("\"check\": [%.0f, %.0f, %.0f, %.0f]}\n", totals[0], totals[1], totals[2], totals[3]);
  }
  MPI_Finalize();
  return 0;
}
