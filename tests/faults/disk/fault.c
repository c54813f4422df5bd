// A disk that fails: preloaded into the process under test, it looks before each write and each flush of a database
// file whether the folder FAULTS_DISK holds a file that says how it is to fail.
//
//   full          every write fails with ENOSPC
//   flush         every flush fails with EIO
//   flush-log     every flush of the write-ahead log fails with EIO
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
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

// Whether the file behind `fd` ends like this.
static int ends(int fd, const char *end) {
    char link[64], path[4096];
    ssize_t length;
    size_t wanted = strlen(end);
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    errno = saved;
    return length >= (ssize_t)wanted && strncmp(path + length - wanted, end, wanted) == 0;
}

static int is_database(int fd) { return ends(fd, ".db") || ends(fd, ".db-wal"); }

static int write_fails(int fd) {
    if (!told("full") || !is_database(fd)) return 0;
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

int fsync(int fd) { return flush_fails(fd) ? -1 : (NEXT(fsync))(fd); }

int fdatasync(int fd) { return flush_fails(fd) ? -1 : (NEXT(fdatasync))(fd); }
