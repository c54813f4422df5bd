// A disk that fails: preloaded into the process under test, it looks before each write and each flush whether the folder
// FAULTS_DISK holds a file that says how it is to fail.
//
//   full            every write to an embedded database fails with ENOSPC
//   full-tables     every write to a table or an index of PostgreSQL fails with ENOSPC
//   full-log        every write to its write-ahead log fails with ENOSPC
//   full-warehouse  every write to a file of the warehouse fails with ENOSPC
//   flush           every flush of an embedded database fails with EIO
//   flush-log       every flush of its write-ahead log fails with EIO
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <stdlib.h>

static int told(const char *fault) {
    const char *folder = getenv("FAULTS_DISK");
    char path[4096];
    struct stat found;
    int saved = errno, is_told;
    if (!folder) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, fault);
    is_told = stat(path, &found) == 0;
    errno = saved;
    return is_told;
}

// The path of the file behind `fd`; its length, or a negative number where there is none.
static ssize_t path_of(int fd, char *path, size_t size) {
    char link[64];
    ssize_t length;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, size - 1);
    errno = saved;
    if (length >= 0) path[length] = 0;
    return length;
}

// Whether the file behind `fd` ends like this.
static int ends(int fd, const char *end) {
    char path[4096];
    ssize_t length = path_of(fd, path, sizeof path), wanted = strlen(end);
    return length >= wanted && strcmp(path + length - wanted, end) == 0;
}

// Whether the file behind `fd` lies in a folder of this name.
static int lies_in(int fd, const char *folder) {
    char path[4096];
    return path_of(fd, path, sizeof path) >= 0 && strstr(path, folder) != NULL;
}

static int is_database(int fd) { return ends(fd, ".db") || ends(fd, ".db-wal"); }

static int write_fails(int fd) {
    if (!(told("full") && is_database(fd)) && !(told("full-tables") && lies_in(fd, "/base/")) &&
        !(told("full-log") && lies_in(fd, "/pg_wal/")) && !(told("full-warehouse") && lies_in(fd, "/warehouse/")))
        return 0;
    errno = ENOSPC;
    return 1;
}

static int flush_fails(int fd) {
    if (!(told("flush") && is_database(fd)) && !(told("flush-log") && ends(fd, ".db-wal"))) return 0;
    errno = EIO;
    return 1;
}

#define NEXT(name) (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t count) {
    return write_fails(fd) ? -1 : (NEXT(write))(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return write_fails(fd) ? -1 : (NEXT(pwrite))(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return write_fails(fd) ? -1 : (NEXT(pwrite64))(fd, bytes, count, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    return write_fails(fd) ? -1 : (NEXT(pwritev))(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    return write_fails(fd) ? -1 : (NEXT(pwritev64))(fd, parts, count, at);
}

int fsync(int fd) { return flush_fails(fd) ? -1 : (NEXT(fsync))(fd); }

int fdatasync(int fd) { return flush_fails(fd) ? -1 : (NEXT(fdatasync))(fd); }
