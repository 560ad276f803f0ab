/* base/file_stamp.c — see file_stamp.h. */
#include "base/file_stamp.h"
#include <sys/stat.h>

struct file_stamp file_stamp_of(const char *path)
{
    struct stat s;
    struct file_stamp none = {0};
    if (path[0] == '\0' || stat(path, &s) != 0)
        return none;
    return (struct file_stamp){s.st_ino, (uint64_t)s.st_size, s.st_ctim};
}

bool file_stamp_renew(struct file_stamp *s, const char *path)
{
    struct file_stamp now = file_stamp_of(path);
    bool same = now.inode == s->inode && now.size == s->size &&
                now.changed.tv_sec == s->changed.tv_sec &&
                now.changed.tv_nsec == s->changed.tv_nsec;
    *s = now;
    return !same;
}
