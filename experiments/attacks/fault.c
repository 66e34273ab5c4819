/* Makes one write fail, for faults.py: preloaded into the program. Every call that changes a file below FAULT_ROOT is a point; the one with
 * the number FAULT_AT fails as FAULT_KIND says. FAULT_COUNT is a file of 8 bytes that counts the points.
 *   error  it does nothing and reports a full disk
 *   short  half of it is written, and whatever is written next to that file finds the disk full; other calls happen, and are reported as failed
 *   kill   half of it is written, and the program is killed; other calls do not happen */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic long *count;
static long wanted;
static const char *root, *kind;
static _Atomic int full = -1;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("FAULT_COUNT");
    root = getenv("FAULT_ROOT");
    kind = getenv("FAULT_KIND");
    if (path == NULL || root == NULL) return;
    wanted = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
    int (*open_)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int fd = open_(path, O_RDWR);
    if (fd < 0) abort();
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (count == MAP_FAILED) abort();
}

static int below(const char *path) {
    char whole[PATH_MAX];
    if (path[0] != '/') {
        if (getcwd(whole, sizeof whole) == NULL) return 0;
        return strncmp(whole, root, strlen(root)) == 0;
    }
    return strncmp(path, root, strlen(root)) == 0;
}

static int ours(int fd) {
    char link[64], path[PATH_MAX];
    if (count == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

static int now(void) { return atomic_fetch_add(count, 1) + 1 == wanted; }
static int is(const char *name) { return strcmp(kind, name) == 0; }
static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }
static long no_space(void) { errno = ENOSPC; return -1; }

#define NEXT(type, name, ...) static type (*next)(__VA_ARGS__); if (next == NULL) next = dlsym(RTLD_NEXT, name)

/* Of a call that writes `size` bytes; `part` does it with fewer. */
#define WRITING(fd, size, whole, part)                          \
    if (!ours(fd)) return whole;                                \
    if (atomic_load(&full) == (fd)) { atomic_store(&full, -1); return no_space(); } \
    if (!now()) return whole;                                   \
    if (is("error")) return no_space();                         \
    ssize_t written = (size) > 1 ? part : 0;                    \
    if (is("kill")) die();                                      \
    if (written <= 0) return no_space();                        \
    atomic_store(&full, fd);                                    \
    return written

ssize_t write(int fd, const void *bytes, size_t size) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    WRITING(fd, size, next(fd, bytes, size), next(fd, bytes, size / 2));
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    WRITING(fd, size, next(fd, bytes, size, at), next(fd, bytes, size / 2, at));
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return pwrite64(fd, bytes, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int parts_count) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int);
    WRITING(fd, parts_count, next(fd, parts, parts_count), next(fd, parts, parts_count / 2));
}
ssize_t copy_file_range(int in, off64_t *at_in, int out, off64_t *at_out, size_t size, unsigned flags) {
    NEXT(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    WRITING(out, 1, next(in, at_in, out, at_out, size, flags), 0);
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t size) {
    NEXT(ssize_t, "sendfile64", int, int, off64_t *, size_t);
    WRITING(out, 1, next(out, in, at, size), 0);
}

/* Of any other call. */
#define CHANGING(condition, call)                 \
    if (count == NULL || !(condition) || !now()) return call; \
    if (is("kill")) die();                        \
    if (is("short")) (void)!(call);               \
    errno = EIO;                                  \
    return -1

int fsync(int fd) { NEXT(int, "fsync", int); CHANGING(ours(fd), next(fd)); }
int fdatasync(int fd) { NEXT(int, "fdatasync", int); CHANGING(ours(fd), next(fd)); }
int ftruncate64(int fd, off64_t size) { NEXT(int, "ftruncate64", int, off64_t); CHANGING(ours(fd), next(fd, size)); }
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int rename(const char *from, const char *to) { NEXT(int, "rename", const char *, const char *); CHANGING(below(to), next(from, to)); }
int link(const char *from, const char *to) { NEXT(int, "link", const char *, const char *); CHANGING(below(to), next(from, to)); }
int unlink(const char *path) { NEXT(int, "unlink", const char *); CHANGING(below(path), next(path)); }
int mkdir(const char *path, mode_t mode) { NEXT(int, "mkdir", const char *, mode_t); CHANGING(below(path), next(path, mode)); }

/* Creating a file. */
static int opening(const char *path, int flags) { return count != NULL && (flags & O_CREAT) && below(path); }
int open64(const char *path, int flags, ...) {
    NEXT(int, "open64", const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    CHANGING(opening(path, flags), next(path, flags, mode));
}
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open64(path, flags, mode);
}
