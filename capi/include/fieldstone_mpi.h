/*
 * Fieldstone over MPI: makes a struct fs_comm from an MPI communicator. Header-only: your mpicc compiles
 * it with your program, so libfieldstone itself links no MPI and one build of it serves every MPI.
 *
 *     struct fs_comm comm;
 *     if (fs_mpi_comm(MPI_COMM_WORLD, &comm) != FS_OK) ...
 *     fs_container_create("run.nc", NULL, &comm, &container);
 *     ...
 *     fs_container_close(container);
 *     fs_mpi_comm_free(&comm);
 *
 * fs_mpi_comm_info passes the hints of an MPI_Info to every file that is opened over the
 * communicator. Its hint cb_nodes also sets the number of ranks that write for the others when
 * elements are exchanged.
 *
 * The communicator is duplicated, so that your messages and those of Fieldstone never meet.
 * Fieldstone calls MPI only inside its own calls, in the thread that made them.
 */

#ifndef FIELDSTONE_MPI_H
#define FIELDSTONE_MPI_H

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "fieldstone.h"

/* The number of errno.h for a result of MPI; 0 for success. */
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
  /* ROMIO has one class for all other system errors and names the error only in its text. */
  if (MPI_Error_string(code, said, &length) != MPI_SUCCESS) return EIO;
  for (i = 0; i < 3; i++)
    if (strstr(said, strerror(in_text[i])) != NULL) return in_text[i];
  return EIO;
}

/* The context of a struct fs_comm. The communicator is first, so that the context can be read as
   one. */
struct fs_mpi_context {
  MPI_Comm comm;
  MPI_Info info;
};

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

/* A file. A view changes the meaning of every offset of its handle, for all threads, so only a
 * second handle carries views. Collective calls with several parts use it, and the first of them
 * opens it. */
struct fs_mpi_file {
  MPI_File plain, viewed;
  int has_viewed;
  /* Arguments for opening the second handle. */
  MPI_Comm comm;
  MPI_Info info;
  int again;
  char *path;
};

/* Whether a step of an opening failed, on this rank or on any. */
static inline int fs_mpi_any(MPI_Comm comm, int failed) {
  int most = failed;
  int code = MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, comm);
  if (failed) return failed;
  return code == MPI_SUCCESS ? most : fs_mpi_errno(code);
}

/* The hints of the communicator and `count` more. */
static inline int fs_mpi_info(const struct fs_mpi_context *context, int count, const char *const *keys,
                              const char *const *values, MPI_Info *info) {
  int failed = 0, n;
  *info = MPI_INFO_NULL;
  if (context->info != MPI_INFO_NULL)
    failed = fs_mpi_errno(MPI_Info_dup(context->info, info));
  else if (count > 0)
    failed = fs_mpi_errno(MPI_Info_create(info));
  /* Some MPI versions do not declare the texts constant that they only read. */
  for (n = 0; n < count && !failed; n++)
    failed = fs_mpi_errno(MPI_Info_set(*info, (char *)keys[n], (char *)values[n]));
  return failed;
}

static inline int fs_mpi_open_with(void *context, const char *path, int mode, int count, const char *const *keys,
                                   const char *const *values, void **file) {
  static const int modes[3] = {MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_MODE_RDONLY, MPI_MODE_RDWR};
  MPI_Comm comm = *(MPI_Comm *)context;
  struct fs_mpi_file *opened = (struct fs_mpi_file *)malloc(sizeof(struct fs_mpi_file));
  char *name = (char *)malloc(strlen(path) + 1);
  MPI_Info info = MPI_INFO_NULL;
  int failed = fs_mpi_info((struct fs_mpi_context *)context, count, keys, values, &info);
  /* The ranks agree before the opening, which waits for all of them. */
  failed = fs_mpi_any(comm, opened == NULL || name == NULL ? ENOMEM : failed);
  if (!failed) {
    failed = fs_mpi_errno(MPI_File_open(comm, (char *)path, modes[mode], info, &opened->plain));
    failed = fs_mpi_any(comm, failed);
  }
  if (failed) {
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    free(name);
    free(opened);
    return failed;
  }
  opened->has_viewed = 0;
  opened->comm = comm;
  opened->info = info;
  opened->again = modes[mode] & ~(MPI_MODE_CREATE | MPI_MODE_EXCL);
  opened->path = strcpy(name, path);
  *file = opened;
  return 0;
}

/* Opens the second handle, unless it is open. Collective. */
static inline int fs_mpi_view(struct fs_mpi_file *file) {
  int failed;
  if (file->has_viewed) return 0;
  failed = fs_mpi_errno(MPI_File_open(file->comm, file->path, file->again, file->info, &file->viewed));
  failed = fs_mpi_any(file->comm, failed);
  file->has_viewed = !failed;
  return failed;
}

static inline int fs_mpi_open(void *context, const char *path, int mode, void **file) {
  return fs_mpi_open_with(context, path, mode, 0, NULL, NULL, file);
}

/* Appends a text and its zero byte if there is room; counts it in any case. */
static inline void fs_mpi_append(const char *from, int room, char *text, int *length) {
  int bytes = (int)strlen(from) + 1;
  if (bytes <= room - *length) memcpy(text + *length, from, (size_t)bytes);
  *length += bytes;
}

/* The hints in force: keys and values in turn. */
static inline int fs_mpi_hints(void *file, int room, char *text, int *length) {
  char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
  MPI_Info info;
  int failed = fs_mpi_errno(MPI_File_get_info(((struct fs_mpi_file *)file)->plain, &info));
  int count = 0, there = 0, n;
  *length = 0;
  if (failed) return failed;
  if (info == MPI_INFO_NULL) return 0;
  failed = fs_mpi_errno(MPI_Info_get_nkeys(info, &count));
  for (n = 0; n < count && !failed; n++) {
    failed = fs_mpi_errno(MPI_Info_get_nthkey(info, n, key));
    if (!failed) failed = fs_mpi_errno(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there));
    if (failed || !there) continue;
    fs_mpi_append(key, room, text, length);
    fs_mpi_append(value, room, text, length);
  }
  MPI_Info_free(&info);
  return failed;
}

static inline int fs_mpi_host(void *context, int room, char *name) {
  char host[MPI_MAX_PROCESSOR_NAME + 1];
  int length = 0;
  int failed = fs_mpi_errno(MPI_Get_processor_name(host, &length));
  (void)context;
  if (failed) return failed;
  if (length >= room) length = room - 1;
  memcpy(name, host, (size_t)length);
  name[length] = 0;
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

/* A type of `count` parts. MPI rejects a view of no bytes, so a rank without parts gets a plain
   one. */
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

/* Whether ranks must read with calls of their own where they would read together: Open MPI 4.1.0 to
 * 4.1.4 leaves out bytes that several ranks read in one collective call of OMPIO. */
static inline int fs_mpi_reads_apart(void) {
#ifdef OPEN_MPI
  static const char affected[] = "Open MPI v4.1.";
  char said[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (MPI_Get_library_version(said, &length) != MPI_SUCCESS) return 1;
  return strncmp(said, affected, sizeof affected - 1) == 0 && atoi(said + sizeof affected - 1) < 5;
#else
  return 0;
#endif
}

static inline int fs_mpi_read_part(MPI_File file, MPI_Offset offset, void *into, int length) {
  return fs_mpi_errno(fs_mpi_reads_apart()
                          ? MPI_File_read_at(file, offset, into, length, MPI_BYTE, MPI_STATUS_IGNORE)
                          : MPI_File_read_at_all(file, offset, into, length, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* Reads the parts of a view. */
static inline int fs_mpi_read_parts(MPI_File file, void *into, int length) {
  return fs_mpi_errno(fs_mpi_reads_apart()
                          ? MPI_File_read(file, into, length, MPI_BYTE, MPI_STATUS_IGNORE)
                          : MPI_File_read_all(file, into, length, MPI_BYTE, MPI_STATUS_IGNORE));
}

/* Writes (if `into` is NULL) or reads `count` parts. If a rank fails before all move their bytes,
 * the others still wait for it: it takes part with no bytes. */
static inline int fs_mpi_all(struct fs_mpi_file *file, int several, int count, const uint64_t *offsets,
                             const int *lengths, const void *from, void *into) {
  MPI_Datatype view = MPI_BYTE;
  int failed, set, moved, total = 0, n;
  if (!several) {
    MPI_Offset offset = count ? (MPI_Offset)offsets[0] : 0;
    int length = count ? lengths[0] : 0;
    if (into) return fs_mpi_read_part(file->plain, offset, into, length);
    return fs_mpi_errno(
        MPI_File_write_at_all(file->plain, offset, from, length, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  failed = fs_mpi_view(file);
  if (failed) return failed;
  failed = fs_mpi_parts(count, offsets, lengths, &view);
  set = fs_mpi_errno(MPI_File_set_view(file->viewed, 0, MPI_BYTE, view, "native", MPI_INFO_NULL));
  failed = failed ? failed : set;
  for (n = 0; n < count && !failed; n++) total += lengths[n];
  moved = into ? fs_mpi_read_parts(file->viewed, into, total)
               : fs_mpi_errno(
                     MPI_File_write_all(file->viewed, from, total, MPI_BYTE, MPI_STATUS_IGNORE));
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
  /* All ranks have the second handle, or none does. */
  int viewed = both->has_viewed ? fs_mpi_errno(MPI_File_sync(both->viewed)) : 0;
  return failed ? failed : viewed;
}

static inline int fs_mpi_close(void *file) {
  struct fs_mpi_file *both = (struct fs_mpi_file *)file;
  int viewed = both->has_viewed ? fs_mpi_errno(MPI_File_close(&both->viewed)) : 0;
  int failed = fs_mpi_errno(MPI_File_close(&both->plain));
  if (both->info != MPI_INFO_NULL) MPI_Info_free(&both->info);
  free(both->path);
  free(both);
  return failed ? failed : viewed;
}

/* Fills `comm` from a communicator. All its files are opened with the hints of `info`
 * (MPI_INFO_NULL for none), which is copied. Collective. FS_OK or FS_UNAVAILABLE. */
static inline int fs_mpi_comm_info(MPI_Comm from, MPI_Info info, struct fs_comm *comm) {
  struct fs_mpi_context *own = (struct fs_mpi_context *)malloc(sizeof(struct fs_mpi_context));
  if (own == NULL || MPI_Comm_dup(from, &own->comm) != MPI_SUCCESS) {
    free(own);
    return FS_UNAVAILABLE;
  }
  own->info = MPI_INFO_NULL;
  if (info != MPI_INFO_NULL && MPI_Info_dup(info, &own->info) != MPI_SUCCESS) {
    MPI_Comm_free(&own->comm);
    free(own);
    return FS_UNAVAILABLE;
  }
  MPI_Comm_set_errhandler(own->comm, MPI_ERRORS_RETURN);
  comm->context = own;
  MPI_Comm_rank(own->comm, &comm->rank);
  MPI_Comm_size(own->comm, &comm->size);
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
  comm->file_open_with = fs_mpi_open_with;
  comm->file_hints = fs_mpi_hints;
  comm->host = fs_mpi_host;
  return FS_OK;
}

/* Fills `comm` from a communicator. Collective. FS_OK or FS_UNAVAILABLE. */
static inline int fs_mpi_comm(MPI_Comm from, struct fs_comm *comm) {
  return fs_mpi_comm_info(from, MPI_INFO_NULL, comm);
}

/* Frees the duplicate. Collective; call it after the last container and job that use it are closed.
   */
static inline void fs_mpi_comm_free(struct fs_comm *comm) {
  struct fs_mpi_context *own = (struct fs_mpi_context *)comm->context;
  MPI_Comm_free(&own->comm);
  if (own->info != MPI_INFO_NULL) MPI_Info_free(&own->info);
  free(own);
  comm->context = NULL;
}

#endif /* FIELDSTONE_MPI_H */
