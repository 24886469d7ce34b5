// I/O calls of a process that fail, or kill it, on demand. Preloaded (LD_PRELOAD) into the driver of the crash tests.
//
// Calls count if they concern a file below the root that `fault_arm` was given and belong to the armed kinds of calls.
// At the call of the given number, the fault happens once or from then on. Paths of descriptors come from /proc/self/fd,
// so duplicates and descriptors from before the arming count as well.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

// Kinds of calls; `tests/crash/shim.py` has the same numbers.
enum { OPEN = 1, CREATE = 2, WRITE = 4, SYNC = 8, NAME = 16, REMOVE = 32, MAP = 64, READ = 128 };
// What happens at the call. A short write takes half of the bytes; later writes fail.
enum { NOTHING, KILL_BEFORE, KILL_AFTER, FAIL, SHORT };

static char root[PATH_MAX];
static size_t root_length;
static int action, error_number, kinds, lasting;
static long fault_at; // counted from 1; 0 never comes
static atomic_long calls, happened;
static int log_fd = -1;

void fault_arm(const char *path, int what, int error, int mask, long number, int from_then_on) {
    action = NOTHING;
    snprintf(root, sizeof root, "%s", path);
    root_length = strlen(root);
    error_number = error, kinds = mask, fault_at = number, lasting = from_then_on;
    atomic_store(&calls, 0);
    atomic_store(&happened, 0);
    action = what;
}

void fault_disarm(void) { action = NOTHING; root_length = 0; }
long fault_calls(void) { return atomic_load(&calls); }
long fault_happened(void) { return atomic_load(&happened); }
void fault_log(int fd) { log_fd = fd; }

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
}

static void absolute(int folder, const char *given, char *path) {
    if (given[0] == '/') {
        snprintf(path, PATH_MAX, "%s", given);
        return;
    }
    char base[PATH_MAX];
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) base[0] = 0;
    } else {
        path_of(folder, base);
    }
    if (strlen(base) + strlen(given) + 2 > PATH_MAX) {
        path[0] = 0;
        return;
    }
    strcpy(path, base);
    strcat(path, "/");
    strcat(path, given);
}

static int is_below(const char *path) {
    return root_length && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

// The fault of this call; it is NOTHING for all calls that do not count.
static int fault(const char *name, int kind, const char *path) {
    if (!is_below(path)) return NOTHING;
    if (action == NOTHING || !(kinds & kind)) return NOTHING;
    if (log_fd >= 0) dprintf(log_fd, "%s\t%s\n", name, path + root_length);
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (!fault_at || number < fault_at || (number > fault_at && !lasting)) return NOTHING;
    atomic_fetch_add(&happened, 1);
    if (action == KILL_BEFORE) kill(getpid(), SIGKILL), pause();
    return action == SHORT && number > fault_at ? FAIL : action;
}

static int fault_at_path(const char *name, int kind, int folder, const char *given) {
    if (!root_length) return NOTHING;
    char path[PATH_MAX];
    absolute(folder, given, path);
    return fault(name, kind, path);
}

static int fault_at_fd(const char *name, int kind, int fd) {
    if (!root_length || fd < 0) return NOTHING;
    int before = errno;
    char path[PATH_MAX];
    path_of(fd, path);
    errno = before;
    return fault(name, kind, path);
}

static void finish(int what) {
    if (what == KILL_AFTER) kill(getpid(), SIGKILL), pause();
}

// The call with its fault: fails, or is made and followed by the death of the process.
#define CALL(type, failed, what, made) \
    int what_ = (what); \
    if (what_ == FAIL || what_ == SHORT) { errno = error_number; return failed; } \
    type result_ = (made); \
    finish(what_); \
    return result_

static int opening(int flags) { return flags & (O_CREAT | O_TRUNC) ? CREATE : OPEN; }

#define OPENING(name) \
int name(const char *path, int flags, ...) { \
    REAL(name); \
    va_list values; va_start(values, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(values, mode_t) : 0; va_end(values); \
    CALL(int, -1, fault_at_path("open", opening(flags), AT_FDCWD, path), real(path, flags, mode)); \
}
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
int name(int folder, const char *path, int flags, ...) { \
    REAL(name); \
    va_list values; va_start(values, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(values, mode_t) : 0; va_end(values); \
    CALL(int, -1, fault_at_path("open", opening(flags), folder, path), real(folder, path, flags, mode)); \
}
OPENING_AT(openat)
OPENING_AT(openat64)

#define CREATING(name) \
int name(const char *path, mode_t mode) { REAL(name); CALL(int, -1, fault_at_path("open", CREATE, AT_FDCWD, path), real(path, mode)); }
CREATING(creat)
CREATING(creat64)

#define STREAM(name) \
FILE *name(const char *path, const char *mode) { \
    REAL(name); CALL(FILE *, NULL, fault_at_path("open", mode[0] == 'r' ? OPEN : CREATE, AT_FDCWD, path), real(path, mode)); \
}
STREAM(fopen)
STREAM(fopen64)

static size_t taken(int what, size_t bytes) { return what == SHORT && bytes > 1 ? bytes / 2 : bytes; }

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(write);
    int what = fault_at_fd("write", WRITE, fd);
    if (what == FAIL) { errno = error_number; return -1; }
    ssize_t result = real(fd, bytes, taken(what, count));
    finish(what);
    return result;
}

#define WRITING_AT(name, type) \
ssize_t name(int fd, const void *bytes, size_t count, type offset) { \
    REAL(name); \
    int what = fault_at_fd("write", WRITE, fd); \
    if (what == FAIL) { errno = error_number; return -1; } \
    ssize_t result = real(fd, bytes, taken(what, count), offset); \
    finish(what); \
    return result; \
}
WRITING_AT(pwrite, off_t)
WRITING_AT(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    CALL(ssize_t, -1, fault_at_fd("write", WRITE, fd), real(fd, parts, count));
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file) {
    REAL(fwrite);
    int what = fault_at_fd("write", WRITE, fileno(file));
    if (what == FAIL) { errno = error_number; return 0; }
    size_t result = real(bytes, size, taken(what, count), file);
    finish(what);
    return result;
}

int fflush(FILE *file) {
    REAL(fflush);
    CALL(int, EOF, file ? fault_at_fd("write", WRITE, fileno(file)) : NOTHING, real(file));
}

// A failing close has closed the file.
int fclose(FILE *file) {
    REAL(fclose);
    int what = fault_at_fd("write", WRITE, fileno(file));
    int result = real(file);
    finish(what);
    if (what == FAIL) { errno = error_number; return EOF; }
    return result;
}

// What `shutil.copyfile` and `os.copy_file_range` call.
ssize_t sendfile64(int to, int from, off64_t *offset, size_t count) {
    REAL(sendfile64);
    CALL(ssize_t, -1, fault_at_fd("write", WRITE, to), real(to, from, offset, count));
}
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t count, unsigned flags) {
    REAL(copy_file_range);
    CALL(ssize_t, -1, fault_at_fd("write", WRITE, to), real(from, from_offset, to, to_offset, count, flags));
}

#define READING(name, parameters, given) ssize_t name parameters { REAL(name); CALL(ssize_t, -1, fault_at_fd("read", READ, fd), real given); }
READING(read, (int fd, void *bytes, size_t count), (fd, bytes, count))
READING(pread, (int fd, void *bytes, size_t count, off_t offset), (fd, bytes, count, offset))
READING(pread64, (int fd, void *bytes, size_t count, off64_t offset), (fd, bytes, count, offset))

int fsync(int fd) { REAL(fsync); CALL(int, -1, fault_at_fd("sync", SYNC, fd), real(fd)); }
int fdatasync(int fd) { REAL(fdatasync); CALL(int, -1, fault_at_fd("sync", SYNC, fd), real(fd)); }

#define SIZING(name, type) int name(int fd, type length) { REAL(name); CALL(int, -1, fault_at_fd("resize", WRITE, fd), real(fd, length)); }
SIZING(ftruncate, off_t)
SIZING(ftruncate64, off64_t)

// posix_fallocate returns the error instead of setting errno.
#define ALLOCATING(name, type) \
int name(int fd, type offset, type length) { \
    REAL(name); CALL(int, error_number, fault_at_fd("resize", WRITE, fd), real(fd, offset, length)); \
}
ALLOCATING(posix_fallocate, off_t)
ALLOCATING(posix_fallocate64, off64_t)

int rename(const char *from, const char *to) {
    REAL(rename);
    CALL(int, -1, fault_at_path("rename", NAME, AT_FDCWD, to), real(from, to));
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(renameat);
    CALL(int, -1, fault_at_path("rename", NAME, to_folder, to), real(from_folder, from, to_folder, to));
}
int link(const char *from, const char *to) {
    REAL(link);
    CALL(int, -1, fault_at_path("link", NAME, AT_FDCWD, to), real(from, to));
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    REAL(linkat);
    CALL(int, -1, fault_at_path("link", NAME, to_folder, to), real(from_folder, from, to_folder, to, flags));
}
int mkdir(const char *path, mode_t mode) { REAL(mkdir); CALL(int, -1, fault_at_path("mkdir", NAME, AT_FDCWD, path), real(path, mode)); }
int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(mkdirat);
    CALL(int, -1, fault_at_path("mkdir", NAME, folder, path), real(folder, path, mode));
}
int unlink(const char *path) { REAL(unlink); CALL(int, -1, fault_at_path("unlink", REMOVE, AT_FDCWD, path), real(path)); }
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    CALL(int, -1, fault_at_path("unlink", REMOVE, folder, path), real(folder, path, flags));
}
int rmdir(const char *path) { REAL(rmdir); CALL(int, -1, fault_at_path("rmdir", REMOVE, AT_FDCWD, path), real(path)); }

#define MAPPING(name, type) \
void *name(void *address, size_t length, int protection, int flags, int fd, type offset) { \
    REAL(name); \
    CALL(void *, MAP_FAILED, flags & MAP_ANONYMOUS ? NOTHING : fault_at_fd("map", MAP, fd), \
         real(address, length, protection, flags, fd, offset)); \
}
MAPPING(mmap, off_t)
MAPPING(mmap64, off64_t)
