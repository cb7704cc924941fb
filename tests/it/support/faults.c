/* Makes system calls of a program fail on purpose, and sets its clock; loaded by LD_PRELOAD.
 *
 * PML_TEST_FAULTS is a list of `call|nth|errno|path`, separated by newlines. `call` is write, fsync, rename, unlink,
 * open (to write), look (open to read), truncate, link, mkdir, mode, map or `any` of these but look; `nth` counts the calls on exactly `path` from 1, and 0 means each
 * of them; a `path` that ends in `/` means everything below it, an empty one anything. An `errno` of 0 kills the
 * program by SIGKILL instead. Of a rename and a link the new name counts, of a descriptor the file it leads to.
 *
 * PML_TEST_FAULT_MET names a file that is created when a fault happens.
 * PML_TEST_CLOCK names a file that holds how many seconds the wall clock is ahead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FAULTS 16
static struct { char call[16]; int nth, code, seen; char path[PATH_MAX]; } faults[FAULTS];
static int count;
static const char *met, *clock_file;

__attribute__((constructor)) static void read_faults(void) {
    const char *text = getenv("PML_TEST_FAULTS");
    while (text && *text && count < FAULTS) {
        const char *end = strchrnul(text, '\n');
        char line[PATH_MAX + 64];
        snprintf(line, sizeof line, "%.*s", (int)(end - text), text);
        if (sscanf(line, "%15[^|]|%d|%d|%4095[^\n]", faults[count].call, &faults[count].nth,
                   &faults[count].code, faults[count].path) >= 3)
            count++;
        text = *end ? end + 1 : end;
    }
    met = getenv("PML_TEST_FAULT_MET");
    clock_file = getenv("PML_TEST_CLOCK");
}

static int is_meant(const char *meant, const char *path) {
    size_t length = strlen(meant);
    if (length && meant[length - 1] == '/')
        return !strncmp(meant, path, length);
    return !length || !strcmp(meant, path);
}

/* Returns the errno to fail with, or 0. */
static int fault(const char *call, const char *path) {
    for (int i = 0; i < count; i++) {
        int any = !strcmp(faults[i].call, "any") && strcmp(call, "look");
        if ((strcmp(faults[i].call, call) && !any) || !is_meant(faults[i].path, path))
            continue;
        int seen = __atomic_add_fetch(&faults[i].seen, 1, __ATOMIC_SEQ_CST);
        if (faults[i].nth != 0 && faults[i].nth != seen)
            continue;
        if (met) {
            int mark = syscall(SYS_openat, AT_FDCWD, met, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
            dprintf(mark, "%s %s\n", call, path);
            syscall(SYS_close, mark);
        }
        if (faults[i].code == 0)
            kill(getpid(), SIGKILL);
        return faults[i].code;
    }
    return 0;
}

static int fault_of(const char *call, int fd) {
    char name[64], path[PATH_MAX];
    int saved = errno;
    if (!count)
        return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    errno = saved;
    path[length < 0 ? 0 : length] = 0;
    return fault(call, path);
}

static int fault_at(const char *call, int directory, const char *path) {
    char whole[PATH_MAX * 2], base[PATH_MAX] = "";
    int saved = errno;
    if (!count)
        return 0;
    if (path[0] == '/')
        return fault(call, path);
    if (directory == AT_FDCWD) {
        if (!getcwd(base, sizeof base))
            base[0] = 0;
    } else {
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", directory);
        ssize_t length = readlink(name, base, sizeof base - 1);
        base[length < 0 ? 0 : length] = 0;
    }
    errno = saved;
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    return fault(call, whole);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_OR(code, failing, otherwise) do { int failed = (code); if (failed) { errno = failed; return failing; } return otherwise; } while (0)
#define HERE(call, path) fault_at(call, AT_FDCWD, path)

int fsync(int fd) { FAIL_OR(fault_of("fsync", fd), -1, REAL(fsync)(fd)); }
int fdatasync(int fd) { FAIL_OR(fault_of("fsync", fd), -1, REAL(fdatasync)(fd)); }
ssize_t write(int fd, const void *bytes, size_t length) { FAIL_OR(fault_of("write", fd), -1, REAL(write)(fd, bytes, length)); }
ssize_t writev(int fd, const struct iovec *parts, int number) { FAIL_OR(fault_of("write", fd), -1, REAL(writev)(fd, parts, number)); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { FAIL_OR(fault_of("write", fd), -1, REAL(pwrite)(fd, bytes, length, at)); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { FAIL_OR(fault_of("write", fd), -1, REAL(pwrite64)(fd, bytes, length, at)); }
int ftruncate(int fd, off_t length) { FAIL_OR(fault_of("truncate", fd), -1, REAL(ftruncate)(fd, length)); }
int ftruncate64(int fd, off64_t length) { FAIL_OR(fault_of("truncate", fd), -1, REAL(ftruncate64)(fd, length)); }
int fchmod(int fd, mode_t mode) { FAIL_OR(fault_of("mode", fd), -1, REAL(fchmod)(fd, mode)); }
int chmod(const char *path, mode_t mode) { FAIL_OR(HERE("mode", path), -1, REAL(chmod)(path, mode)); }
int rename(const char *from, const char *to) { FAIL_OR(HERE("rename", to), -1, REAL(rename)(from, to)); }
int renameat(int a, const char *from, int b, const char *to) { FAIL_OR(fault_at("rename", b, to), -1, REAL(renameat)(a, from, b, to)); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { FAIL_OR(fault_at("rename", b, to), -1, REAL(renameat2)(a, from, b, to, flags)); }
int link(const char *from, const char *to) { FAIL_OR(HERE("link", to), -1, REAL(link)(from, to)); }
int linkat(int a, const char *from, int b, const char *to, int flags) { FAIL_OR(fault_at("link", b, to), -1, REAL(linkat)(a, from, b, to, flags)); }
int unlink(const char *path) { FAIL_OR(HERE("unlink", path), -1, REAL(unlink)(path)); }
int unlinkat(int directory, const char *path, int flags) { FAIL_OR(fault_at("unlink", directory, path), -1, REAL(unlinkat)(directory, path, flags)); }
int rmdir(const char *path) { FAIL_OR(HERE("unlink", path), -1, REAL(rmdir)(path)); }
int mkdir(const char *path, mode_t mode) { FAIL_OR(HERE("mkdir", path), -1, REAL(mkdir)(path, mode)); }

#define OPEN(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT) ? "open" : "look")
#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE(flags) FAIL_OR(HERE(OPEN(flags), path), -1, REAL(open)(path, flags, mode)); }
int open64(const char *path, int flags, ...) { MODE(flags) FAIL_OR(HERE(OPEN(flags), path), -1, REAL(open64)(path, flags, mode)); }
int openat(int directory, const char *path, int flags, ...) { MODE(flags) FAIL_OR(fault_at(OPEN(flags), directory, path), -1, REAL(openat)(directory, path, flags, mode)); }
int openat64(int directory, const char *path, int flags, ...) { MODE(flags) FAIL_OR(fault_at(OPEN(flags), directory, path), -1, REAL(openat64)(directory, path, flags, mode)); }

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t at) {
    FAIL_OR(fd >= 0 && (flags & MAP_SHARED) ? fault_of("map", fd) : 0, MAP_FAILED, REAL(mmap)(address, length, protection, flags, fd, at));
}
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t at) {
    FAIL_OR(fd >= 0 && (flags & MAP_SHARED) ? fault_of("map", fd) : 0, MAP_FAILED, REAL(mmap64)(address, length, protection, flags, fd, at));
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int outcome = syscall(SYS_clock_gettime, clock, now);
    if (outcome == 0 && clock == CLOCK_REALTIME && clock_file) {
        char text[32] = "";
        int file = syscall(SYS_openat, AT_FDCWD, clock_file, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            syscall(SYS_read, file, text, sizeof text - 1);
            syscall(SYS_close, file);
            now->tv_sec += atol(text);
        }
    }
    return outcome;
}
