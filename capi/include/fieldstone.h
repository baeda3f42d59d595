/*
 * Fieldstone for C: archive fields by key, flush, get them back.
 *
 * Generated from capi/src by `UPDATE_HEADER=1 cargo test -p fieldstone-capi --test header`; not edited by hand.
 * The guide is docs/guide/c-fortran.md.
 *
 * Rules of every call:
 *  - A call that can fail returns FS_OK or the kind of error; fs_error_message() and fs_error_hint() then
 *    tell what happened in this thread's last failed call.
 *  - Texts are UTF-8 and end in a zero byte. A key is text such as "run=a,variable=t,step=6"; values that
 *    hold one of , / * = " and the like are quoted: fs_key_text() does it.
 *  - Arrays are in C order (row-major): the last dimension varies fastest. A box is `start` and `count` per
 *    dimension, counted from 0. An element type is numpy's: "f8", "<i4", "c16", "datetime64[ns]"; without a
 *    sign it has this machine's byte order.
 *  - A handle may be used by several threads at once. A null, closed or mistaken handle is FS_INVALID.
 *  - Other pointers must be null or point to as much memory as the call's other arguments say.
 *  - Nothing that was archived is seen by anyone before fs_flush or fs_close.
 */

#ifndef FIELDSTONE_H
#define FIELDSTONE_H

#include <stddef.h>
#include <stdint.h>

/*
 Most dimensions of an array.
 */
#define FS_MAX_RANK 32

/*
 Bytes of the text of an element type, with the zero byte at its end.
 */
#define FS_DTYPE_SIZE 32

/*
 How a call ended: the numbers of the program's exit codes.
 */
typedef enum fs_status {
  /*
   All went well.
   */
  FS_OK = 0,
  /*
   A defect of Fieldstone: report it.
   */
  FS_INTERNAL = 1,
  /*
   The call itself is wrong: correct it.
   */
  FS_INVALID = 2,
  /*
   What was asked for does not exist.
   */
  FS_NOT_FOUND = 3,
  /*
   Two statements contradict each other.
   */
  FS_CONFLICT = 4,
  /*
   Stored bytes are damaged; the message names the file.
   */
  FS_CORRUPT = 5,
  /*
   The caller may not do this.
   */
  FS_DENIED = 6,
  /*
   The medium failed or is full: mend it and try again.
   */
  FS_UNAVAILABLE = 7,
} fs_status;

/*
 A key that is being put together.
 */
typedef struct fs_key fs_key;

/*
 A list that is being read.
 */
typedef struct fs_list fs_list;

/*
 An open store.
 */
typedef struct fs_store fs_store;

/*
 What a field is.
 */
typedef struct fs_field_info {
  /*
   Raw bytes of the field.
   */
  uint64_t nbytes;
  /*
   Dimensions of an array; -1 for opaque bytes.
   */
  int32_t ndim;
  /*
   1 if every element was written, else 0.
   */
  int32_t complete;
  /*
   Element type with its byte order, such as "<f8"; "" for opaque bytes.
   */
  char dtype[FS_DTYPE_SIZE];
  /*
   Extents of the array; 0 from `ndim` on.
   */
  uint64_t shape[FS_MAX_RANK];
} fs_field_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The kind of this thread's last error; FS_OK if no call of it has failed.
 */
int fs_error_kind(void);

/*
 What this thread's last failed call complained of; "" if none failed. Valid until this thread's next
 failing call.
 */
const char *fs_error_message(void);

/*
 What may be done about this thread's last error; "" where nothing is known. Valid as long as the message.
 */
const char *fs_error_hint(void);

/*
 The name of a status: "NotFound" for FS_NOT_FOUND; "Ok" for FS_OK, "" for a number that is no status.
 */
const char *fs_status_name(int status);

/*
 For bindings to other languages: makes an error of the binding this thread's last, and returns `status`.
 */
int fs_fail(int status, const char *message, const char *hint);

/*
 The version of this library, such as "0.1.0".
 */
const char *fs_version(void);

/*
 Begins a key. Never null; free it with fs_key_free.
 */
struct fs_key *fs_key_new(void);

/*
 Gives a keyword a value, in place of the one it had. The value is taken as it is: "a/b" is one value.
 */
int fs_key_set(struct fs_key *key, const char *keyword, const char *value);

/*
 Gives a keyword a whole number.
 */
int fs_key_set_int(struct fs_key *key, const char *keyword, int64_t value);

/*
 The key as text, for all calls that take one. Valid until the key is set again or freed; null for what
 is no key, so that the call that takes it is FS_INVALID.
 */
const char *fs_key_text(const struct fs_key *key);

/*
 Frees a key. Null is nothing to free.
 */
int fs_key_free(struct fs_key *key);

/*
 Opens a store. `url` is a folder's path, or "memory:" for a new store in memory. `mode` is "a" to read and
 archive (also where null), "r" to read, or "x" for a new store. `schema` is "simulation", "mars", a
 schema file's path or a schema's text; where null the store's own, "simulation" for a new one.
 */
int fs_open(const char *url, const char *mode, const char *schema, struct fs_store **store);

/*
 Makes all that was archived through this handle durable and visible, all or nothing.
 */
int fs_flush(struct fs_store *store);

/*
 Forgets what was archived through this handle and not flushed.
 */
int fs_discard(struct fs_store *store);

/*
 Flushes and closes. The handle is gone also where this fails. Null is nothing to close.
 */
int fs_close(struct fs_store *store);

/*
 Archives opaque bytes. The store has its own copy when this returns.
 */
int fs_archive_bytes(struct fs_store *store, const char *key, const void *data, size_t length);

/*
 Archives a whole array of `shape`; `data` holds all its elements.
 */
int fs_archive_array(struct fs_store *store,
                     const char *key,
                     const char *dtype,
                     int ndim,
                     const uint64_t *shape,
                     const void *data);

/*
 Archives a piece of an array of `shape`: the box of `start` and `count`; `data` holds the box's elements.
 The other pieces may come from other calls, flushes and processes.
 */
int fs_archive_piece(struct fs_store *store,
                     const char *key,
                     const char *dtype,
                     int ndim,
                     const uint64_t *shape,
                     const uint64_t *start,
                     const uint64_t *count,
                     const void *data);

/*
 Starts an array field afresh: pieces archived before are hidden once this is flushed. `fill` is one element
 for what nobody writes (null: the type's missing value), `chunks` the extents of the chunks that pieces
 are cut by (null: chosen by size).
 */
int fs_create_field(struct fs_store *store,
                    const char *key,
                    const char *dtype,
                    int ndim,
                    const uint64_t *shape,
                    const void *fill,
                    const uint64_t *chunks);

/*
 Tells what the field of a key is.
 */
int fs_info(struct fs_store *store, const char *key, struct fs_field_info *info);

/*
 The raw bytes of the field of a key.
 */
int fs_size(struct fs_store *store, const char *key, uint64_t *nbytes);

/*
 Reads a field, whatever it is, into a buffer of `capacity` bytes. `nbytes` becomes the bytes that it has,
 also where they do not fit, which is FS_INVALID.
 */
int fs_get(struct fs_store *store, const char *key, void *buffer, size_t capacity, uint64_t *nbytes);

/*
 Reads a box of an array into a buffer of `capacity` bytes. `nbytes` becomes the bytes that the box has,
 also where they do not fit, which is FS_INVALID.
 */
int fs_get_box(struct fs_store *store,
               const char *key,
               int ndim,
               const uint64_t *start,
               const uint64_t *count,
               void *buffer,
               size_t capacity,
               uint64_t *nbytes);

/*
 Reads a whole array that has this element type and shape; another one is FS_INVALID.
 */
int fs_get_array(struct fs_store *store,
                 const char *key,
                 const char *dtype,
                 int ndim,
                 const uint64_t *shape,
                 void *buffer);

/*
 Reads a box of an array that has this element type; another one is FS_INVALID.
 */
int fs_get_piece(struct fs_store *store,
                 const char *key,
                 const char *dtype,
                 int ndim,
                 const uint64_t *start,
                 const uint64_t *count,
                 void *buffer);

/*
 Begins a list of the fields that a request selects, such as "run=a,step=0/to/24/by/6"; all for null or "".
 */
int fs_list_open(struct fs_store *store, const char *request, struct fs_list **list);

/*
 The next field: its key, which all calls take as it is, and its raw bytes. After the last one `key` becomes
 null, with FS_OK. The text is valid until the next call for this list.
 */
int fs_list_next(struct fs_list *list, const char **key, uint64_t *nbytes);

/*
 Ends a list. Null is nothing to end.
 */
int fs_list_close(struct fs_list *list);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FIELDSTONE_H */
