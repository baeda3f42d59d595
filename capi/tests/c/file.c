/*
 * Files of fieldstone_mpi.h, without the library: parts arrive at their places, calls at offsets
 * mean the same bytes after a call with several parts, and a rank without memory blocks no other
 * rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lacks;

static void *scarce(size_t length) { return lacks ? NULL : malloc(length); }

#define malloc scarce
#include "fieldstone_mpi.h"

static int bad;

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), bad++;     \
  } while (0)

/* Whether a file has a hint. */
static int has(const char *text, int length, const char *key, const char *value) {
  int at = 0;
  while (at < length) {
    const char *next = text + at + strlen(text + at) + 1;
    if (strcmp(text + at, key) == 0) return strcmp(next, value) == 0;
    at = (int)(next + strlen(next) + 1 - text);
  }
  return 0;
}

/* Hints of a communicator and of one opening reach the file; MPI ignores unknown ones. */
static void hints(const char *path) {
  static const char *const keys[2] = {"cb_nodes", "fs_unknown"}, *const values[2] = {"1", "x"};
  struct fs_comm comm;
  void *file = NULL;
  char text[8192];
  int length = 0;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_ds_write", "disable");
  CHECK(fs_mpi_comm_info(MPI_COMM_WORLD, info, &comm) == FS_OK);
  MPI_Info_free(&info);
  CHECK(comm.file_open_with(comm.context, path, 2, 2, keys, values, &file) == 0);
  CHECK(comm.file_hints(file, (int)sizeof text, text, &length) == 0 && length <= (int)sizeof text);
  CHECK(has(text, length, "cb_nodes", "1") && has(text, length, "romio_ds_write", "disable"));
  /* The length is correct even if there is no room for the text. */
  CHECK(comm.file_hints(file, 0, text, &length) == 0 && length > 20);
  CHECK(comm.file_close(file) == 0);
  fs_mpi_comm_free(&comm);
}

int main(int argc, char **argv) {
  struct fs_comm comm;
  void *file = NULL;
  uint64_t offsets[2], length = 0;
  int lengths[2] = {2, 3}, done = 0, poor;
  char out[5], in[5], text[256];
  MPI_Init(&argc, &argv);
  if (argc < 2 || fs_mpi_comm(MPI_COMM_WORLD, &comm) != FS_OK) return 1;
  poor = comm.rank == 1;
  lacks = poor;
  CHECK(comm.file_open(comm.context, argv[1], 0, &file) == ENOMEM);
  lacks = 0;
  CHECK(comm.file_open(comm.context, argv[1], 1, &file) == ENOENT);
  CHECK(comm.file_open(comm.context, argv[1], 0, &file) == 0);
  if (bad) return 1;
  offsets[0] = (uint64_t)comm.rank * 100 + 10;
  offsets[1] = offsets[0] + 20;
  memset(out, 'a' + comm.rank, sizeof out);
  CHECK(comm.file_set_length(file, 1000) == 0);
  lacks = poor;
  CHECK(comm.file_write_all(file, 1, 2, offsets, lengths, out) == (poor ? ENOMEM : 0));
  CHECK(comm.file_read_all(file, 1, 2, offsets, lengths, in) == (poor ? ENOMEM : 0));
  lacks = 0;
  CHECK(comm.file_write_all(file, 1, 2, offsets, lengths, out) == 0);
  memset(in, 0, sizeof in);
  CHECK(comm.file_read_all(file, 1, 2, offsets, lengths, in) == 0 && memcmp(in, out, sizeof in) == 0);
  /* Not collective, while the other handle still has its view. */
  CHECK(comm.file_write_at(file, out, 1, offsets[0] + 50) == 0);
  CHECK(comm.file_read_at(file, in, 2, offsets[0], &done) == 0 && done == 2 && memcmp(in, out, 2) == 0);
  CHECK(comm.file_sync(file) == 0);
  CHECK(comm.file_length(file, &length) == 0 && length == 1000);
  CHECK(comm.file_close(file) == 0);
  CHECK(comm.host(comm.context, (int)sizeof text, text) == 0 && text[0] != 0);
  fs_mpi_comm_free(&comm);
  hints(argv[1]);
  MPI_Finalize();
  return bad != 0;
}
