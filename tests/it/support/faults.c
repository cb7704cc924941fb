/* Makes system calls of a program fail on purpose; loaded by LD_PRELOAD.
 *
 * PML_TEST_FAULTS is a list of `call|nth|errno|path`, separated by newlines. `call` is write, fsync, rename or
 * unlink; `nth` counts the calls on exactly `path` from 1, and 0 means each of them; an empty `path` means any.
 * Of a rename the new name counts, of a descriptor the file it leads to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define FAULTS 16
static struct { char call[16]; int nth, code, seen; char path[PATH_MAX]; } faults[FAULTS];
static int count;

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
}

/* Returns the errno to fail with, or 0. */
static int fault(const char *call, const char *path) {
    for (int i = 0; i < count; i++) {
        if (strcmp(faults[i].call, call) || (faults[i].path[0] && strcmp(faults[i].path, path)))
            continue;
        faults[i].seen++;
        if (faults[i].nth == 0 || faults[i].nth == faults[i].seen)
            return faults[i].code;
    }
    return 0;
}

static int fault_of(const char *call, int fd) {
    char name[64], path[PATH_MAX];
    int saved = errno;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    errno = saved;
    path[length < 0 ? 0 : length] = 0;
    return fault(call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_OR(code, otherwise) do { int failed = (code); if (failed) { errno = failed; return -1; } return otherwise; } while (0)

int fsync(int fd) { FAIL_OR(fault_of("fsync", fd), REAL(fsync)(fd)); }
int fdatasync(int fd) { FAIL_OR(fault_of("fsync", fd), REAL(fdatasync)(fd)); }
ssize_t write(int fd, const void *bytes, size_t length) { FAIL_OR(fault_of("write", fd), REAL(write)(fd, bytes, length)); }
int rename(const char *from, const char *to) { FAIL_OR(fault("rename", to), REAL(rename)(from, to)); }
int unlink(const char *path) { FAIL_OR(fault("unlink", path), REAL(unlink)(path)); }
