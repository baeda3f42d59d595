/*
 * Fieldstone over MPI: makes a struct fs_comm of an MPI communicator. Header-only: it is compiled with your
 * program by your mpicc, so libfieldstone itself links no MPI and one build of it serves every MPI.
 *
 *     struct fs_comm comm;
 *     if (fs_mpi_comm(MPI_COMM_WORLD, &comm) != FS_OK) ...
 *     fs_container_create("run.nc", NULL, &comm, &container);
 *     ...
 *     fs_container_close(container);
 *     fs_mpi_comm_free(&comm);
 *
 * The communicator is duplicated, so that messages of yours and of Fieldstone never meet. Fieldstone calls MPI
 * only within its own calls, in the thread that made them.
 */

#ifndef FIELDSTONE_MPI_H
#define FIELDSTONE_MPI_H

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "fieldstone.h"

/* The number of errno.h for what MPI returned; 0 for success. */
static inline int fs_mpi_errno(int code) {
  static const int in_text[] = {ENOSPC, EDQUOT, EFBIG};
  char said[MPI_MAX_ERROR_STRING];
  int kind = 0, length = 0, i;
  if (code == MPI_SUCCESS) return 0;
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_NO_SUCH_FILE) return ENOENT;
  if (kind == MPI_ERR_FILE_EXISTS) return EEXIST;
  if (kind == MPI_ERR_ACCESS) return EACCES;
  if (kind == MPI_ERR_READ_ONLY) return EROFS;
  if (kind == MPI_ERR_NO_SPACE) return ENOSPC;
  if (kind == MPI_ERR_QUOTA) return EDQUOT;
  if (kind == MPI_ERR_BAD_FILE) return EINVAL;
  /* ROMIO has one class for all other errors of the system, and says in its text what it was. */
  if (MPI_Error_string(code, said, &length) != MPI_SUCCESS) return EIO;
  for (i = 0; i < 3; i++)
    if (strstr(said, strerror(in_text[i])) != NULL) return in_text[i];
  return EIO;
}

static inline int fs_mpi_barrier(void *context) { return fs_mpi_errno(MPI_Barrier(*(MPI_Comm *)context)); }

static inline int fs_mpi_broadcast(void *context, int root, void *data, int length) {
  return fs_mpi_errno(MPI_Bcast(data, length, MPI_BYTE, root, *(MPI_Comm *)context));
}

static inline int fs_mpi_gather(void *context, int root, const void *send, int length, void *receive,
                                const int *lengths, const int *places) {
  MPI_Comm comm = *(MPI_Comm *)context;
  return fs_mpi_errno(
      root < 0 ? MPI_Allgatherv(send, length, MPI_BYTE, receive, lengths, places, MPI_BYTE, comm)
               : MPI_Gatherv(send, length, MPI_BYTE, receive, lengths, places, MPI_BYTE, root, comm));
}

static inline int fs_mpi_alltoall(void *context, const void *send, const int *send_lengths,
                                  const int *send_places, void *receive, const int *lengths,
                                  const int *places) {
  return fs_mpi_errno(MPI_Alltoallv(send, send_lengths, send_places, MPI_BYTE, receive, lengths, places,
                                    MPI_BYTE, *(MPI_Comm *)context));
}

static inline int fs_mpi_exscan(void *context, uint64_t *values, int count) {
  return fs_mpi_errno(
      MPI_Exscan(MPI_IN_PLACE, values, count, MPI_UINT64_T, MPI_SUM, *(MPI_Comm *)context));
}

static inline int fs_mpi_allreduce(void *context, int max, uint64_t *values, int count) {
  return fs_mpi_errno(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_UINT64_T, max ? MPI_MAX : MPI_SUM,
                                    *(MPI_Comm *)context));
}

/* A file. It is open twice: a view changes what every offset of its handle means, for all threads, so only the
 * second handle, which nothing but collective calls of several parts uses, carries views. */
struct fs_mpi_file {
  MPI_File plain, viewed;
  int has_viewed;
};

/* How a step of an opening failed, on this rank or else on any. */
static inline int fs_mpi_any(MPI_Comm comm, int failed) {
  int most = failed;
  int code = MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, comm);
  if (failed) return failed;
  return code == MPI_SUCCESS ? most : fs_mpi_errno(code);
}

static inline int fs_mpi_open(void *context, const char *path, int mode, void **file) {
  static const int modes[3] = {MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_MODE_RDONLY, MPI_MODE_RDWR};
  MPI_Comm comm = *(MPI_Comm *)context;
  struct fs_mpi_file *opened = (struct fs_mpi_file *)malloc(sizeof(struct fs_mpi_file));
  int again = modes[mode] & ~(MPI_MODE_CREATE | MPI_MODE_EXCL);
  /* Agreed upon before each opening, which waits for all ranks. */
  int failed = fs_mpi_any(comm, opened == NULL ? ENOMEM : 0);
  if (!failed) {
    failed = fs_mpi_errno(MPI_File_open(comm, path, modes[mode], MPI_INFO_NULL, &opened->plain));
    failed = fs_mpi_any(comm, failed);
  }
  if (!failed) {
    failed = fs_mpi_errno(MPI_File_open(comm, path, again, MPI_INFO_NULL, &opened->viewed));
    failed = fs_mpi_any(comm, failed);
    if (failed) MPI_File_close(&opened->plain);
  }
  if (failed) {
    free(opened);
    return failed;
  }
  opened->has_viewed = 0;
  *file = opened;
  return 0;
}

static inline int fs_mpi_write_at(void *file, const void *data, int length, uint64_t offset) {
  MPI_File plain = ((struct fs_mpi_file *)file)->plain;
  return fs_mpi_errno(MPI_File_write_at(plain, (MPI_Offset)offset, data, length, MPI_BYTE, MPI_STATUS_IGNORE));
}

static inline int fs_mpi_read_at(void *file, void *data, int length, uint64_t offset, int *done) {
  MPI_File plain = ((struct fs_mpi_file *)file)->plain;
  MPI_Status status;
  int failed = fs_mpi_errno(MPI_File_read_at(plain, (MPI_Offset)offset, data, length, MPI_BYTE, &status));
  if (!failed) MPI_Get_count(&status, MPI_BYTE, done);
  return failed;
}

/* A type of `count` parts. A type of no bytes is no view: who has no part has a plain one. */
static inline int fs_mpi_parts(int count, const uint64_t *offsets, const int *lengths, MPI_Datatype *view) {
  MPI_Aint *places;
  MPI_Datatype made;
  int failed, n;
  if (count == 0) return 0;
  places = (MPI_Aint *)malloc((size_t)count * sizeof(MPI_Aint));
  if (places == NULL) return ENOMEM;
  for (n = 0; n < count; n++) places[n] = (MPI_Aint)offsets[n];
  failed = fs_mpi_errno(MPI_Type_create_hindexed(count, lengths, places, MPI_BYTE, &made));
  free(places);
  if (failed) return failed;
  failed = fs_mpi_errno(MPI_Type_commit(&made));
  if (failed) {
    MPI_Type_free(&made);
    return failed;
  }
  *view = made;
  return 0;
}

/* Writes (into NULL) or reads `count` parts. Where a rank fails before all move their bytes, the others wait for
 * it nevertheless: it takes part with no byte. */
static inline int fs_mpi_all(struct fs_mpi_file *file, int several, int count, const uint64_t *offsets,
                             const int *lengths, const void *from, void *into) {
  MPI_Datatype view = MPI_BYTE;
  int failed, set, moved, total = 0, n;
  if (!several) {
    MPI_Offset offset = count ? (MPI_Offset)offsets[0] : 0;
    int length = count ? lengths[0] : 0;
    return fs_mpi_errno(
        into ? MPI_File_read_at_all(file->plain, offset, into, length, MPI_BYTE, MPI_STATUS_IGNORE)
             : MPI_File_write_at_all(file->plain, offset, from, length, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  file->has_viewed = 1;
  failed = fs_mpi_parts(count, offsets, lengths, &view);
  set = fs_mpi_errno(MPI_File_set_view(file->viewed, 0, MPI_BYTE, view, "native", MPI_INFO_NULL));
  failed = failed ? failed : set;
  for (n = 0; n < count && !failed; n++) total += lengths[n];
  moved = fs_mpi_errno(into ? MPI_File_read_all(file->viewed, into, total, MPI_BYTE, MPI_STATUS_IGNORE)
                            : MPI_File_write_all(file->viewed, from, total, MPI_BYTE, MPI_STATUS_IGNORE));
  if (view != MPI_BYTE) MPI_Type_free(&view);
  return failed ? failed : moved;
}

static inline int fs_mpi_write_all(void *file, int several, int count, const uint64_t *offsets,
                                   const int *lengths, const void *data) {
  return fs_mpi_all((struct fs_mpi_file *)file, several, count, offsets, lengths, data, NULL);
}

static inline int fs_mpi_read_all(void *file, int several, int count, const uint64_t *offsets,
                                  const int *lengths, void *data) {
  return fs_mpi_all((struct fs_mpi_file *)file, several, count, offsets, lengths, NULL, data);
}

static inline int fs_mpi_length(void *file, uint64_t *length) {
  MPI_Offset size = 0;
  int failed = fs_mpi_errno(MPI_File_get_size(((struct fs_mpi_file *)file)->plain, &size));
  *length = (uint64_t)size;
  return failed;
}

static inline int fs_mpi_set_length(void *file, uint64_t length) {
  return fs_mpi_errno(MPI_File_set_size(((struct fs_mpi_file *)file)->plain, (MPI_Offset)length));
}

static inline int fs_mpi_sync(void *file) {
  struct fs_mpi_file *both = (struct fs_mpi_file *)file;
  int failed = fs_mpi_errno(MPI_File_sync(both->plain));
  /* A handle that was never used has nothing to hand over; all ranks used it or none did. */
  int viewed = both->has_viewed ? fs_mpi_errno(MPI_File_sync(both->viewed)) : 0;
  return failed ? failed : viewed;
}

static inline int fs_mpi_close(void *file) {
  struct fs_mpi_file *both = (struct fs_mpi_file *)file;
  int viewed = fs_mpi_errno(MPI_File_close(&both->viewed));
  int failed = fs_mpi_errno(MPI_File_close(&both->plain));
  free(both);
  return failed ? failed : viewed;
}

/* Fills `comm` from a communicator. Collective. FS_OK or FS_UNAVAILABLE. */
static inline int fs_mpi_comm(MPI_Comm from, struct fs_comm *comm) {
  MPI_Comm *own = (MPI_Comm *)malloc(sizeof(MPI_Comm));
  if (own == NULL || MPI_Comm_dup(from, own) != MPI_SUCCESS) {
    free(own);
    return FS_UNAVAILABLE;
  }
  MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
  comm->context = own;
  MPI_Comm_rank(*own, &comm->rank);
  MPI_Comm_size(*own, &comm->size);
  comm->barrier = fs_mpi_barrier;
  comm->broadcast = fs_mpi_broadcast;
  comm->gather = fs_mpi_gather;
  comm->alltoall = fs_mpi_alltoall;
  comm->exscan = fs_mpi_exscan;
  comm->allreduce = fs_mpi_allreduce;
  comm->file_open = fs_mpi_open;
  comm->file_write_at = fs_mpi_write_at;
  comm->file_read_at = fs_mpi_read_at;
  comm->file_write_all = fs_mpi_write_all;
  comm->file_read_all = fs_mpi_read_all;
  comm->file_length = fs_mpi_length;
  comm->file_set_length = fs_mpi_set_length;
  comm->file_sync = fs_mpi_sync;
  comm->file_close = fs_mpi_close;
  return FS_OK;
}

/* Gives the duplicate back. Collective; after the last container that used it was closed. */
static inline void fs_mpi_comm_free(struct fs_comm *comm) {
  MPI_Comm_free((MPI_Comm *)comm->context);
  free(comm->context);
  comm->context = NULL;
}

#endif /* FIELDSTONE_MPI_H */
