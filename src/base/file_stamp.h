/*
 * base/file_stamp.h — has a file been replaced since it was last read?
 *
 * A file counts as changed when its inode, size or time of change differs; one that is not there,
 * or has no name, has the stamp of none. A stat that may block as a local disk's does. Any thread.
 */
#ifndef BASE_FILE_STAMP_H
#define BASE_FILE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct file_stamp {
    uint64_t inode, size;
    struct timespec changed;
};

struct file_stamp file_stamp_of(const char *path);
/* Takes the file's stamp of now into S. Is it another one? */
bool file_stamp_renew(struct file_stamp *s, const char *path);

#endif
