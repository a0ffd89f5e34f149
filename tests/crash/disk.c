/* The disk below a server, for tests: preloaded into it.
 *
 * The kernel's page cache is modelled by the files themselves, and the disk by a copy of each in the
 * directory FILESTORE_DISK. A successful fsync copies the pages that were written since the last
 * one. A failed fsync copies nothing, and its pages count as clean all the same, as on ext4 and
 * XFS: they reach the disk only if they are written again. What was written and not synced is
 * remembered in files, because the page cache outlives the process.
 *
 *   NAME         what the disk holds of the file NAME
 *   NAME.dirty   a byte for each page: 1 if it was written since the last fsync
 *   NAME.cut     the shortest length since the last fsync
 *   fail         while it exists, the next fsync of the log fails, and removes it
 *   quota        while it exists, writes fail with EDQUOT; those to the database only while there is
 *                a reserve
 *   ID.unsynced  bytes of the blob ID were written since its last fsync
 *   ID.synced    the number of bytes at the begin of the blob ID that its last fsync has made durable
 *   ID.named     a directory with the name of the blob ID was synced
 *
 * With FILESTORE_DISK_DIES_AT=n the process is killed at the n-th operation on the log.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PATHS = 4096 };

static const char DATABASE[] = "metadata.sqlite3";
static const char LOG[] = "metadata.sqlite3-wal";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long operations;

static void *real(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) abort();
    return function;
}

/* The name of the watched file behind a descriptor, or NULL. */
static const char *watched(int fd) {
    char link[64], path[PATHS];
    if (getenv("FILESTORE_DISK") == NULL) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return NULL;
    path[length] = 0;

    const char *name = strrchr(path, '/');
    if (name == NULL) return NULL;
    if (strcmp(name + 1, DATABASE) == 0) return DATABASE;
    if (strcmp(name + 1, LOG) == 0) return LOG;
    return NULL;
}

/* The path behind a descriptor; false if there is none or nothing is simulated. */
static int path_of(int fd, char *path) {
    char link[64];
    if (getenv("FILESTORE_DISK") == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATHS - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

/* Tells if a path lies in the staging directory or among the blobs, or is one of the two. */
static int holds_blobs(const char *path) {
    const char *data = strstr(path, "/data/");
    return data != NULL && (strncmp(data, "/data/staging", 13) == 0 || strncmp(data, "/data/blobs", 11) == 0);
}

/* Tells if a write below the data directory exceeds the quota. */
static int exceeds_quota(int fd, const char *watched_name) {
    char path[PATHS], file[PATHS];
    if (!path_of(fd, path)) return 0;
    snprintf(file, sizeof file, "%s/quota", getenv("FILESTORE_DISK"));
    char *data = strstr(path, "/data/");
    if (data == NULL || access(file, F_OK) != 0) return 0;
    if (watched_name == NULL) return 1;
    snprintf(file, sizeof file, "%.*s/data/reserve", (int)(data - path), path);
    return access(file, F_OK) == 0;
}

static int model(const char *name, const char *suffix, int flags) {
    char path[PATHS];
    snprintf(path, sizeof path, "%s/%s%s", getenv("FILESTORE_DISK"), name, suffix);
    return open(path, flags | O_CLOEXEC, 0600);
}

static int must(int fd) {
    if (fd < 0) abort();
    return fd;
}

/* Called with the lock held, before each operation. */
static void count(const char *name) {
    const char *dies_at = getenv("FILESTORE_DISK_DIES_AT");
    if (dies_at != NULL && name == LOG && ++operations == atol(dies_at)) raise(SIGKILL);
}

static ssize_t put(int fd, const void *bytes, size_t length, off_t offset) {
    ssize_t (*write_at)(int, const void *, size_t, off_t) = real("pwrite64");
    return write_at(fd, bytes, length, offset);
}

static void cut(int fd, off_t length) {
    int (*truncate_to)(int, off_t) = real("ftruncate64");
    if (truncate_to(fd, length) != 0) abort();
}

static void note_write(const char *name, off_t offset, ssize_t length) {
    if (length <= 0) return;
    int map = must(model(name, ".dirty", O_WRONLY | O_CREAT));
    for (off_t page = offset / PAGE; page <= (offset + length - 1) / PAGE; page++)
        if (put(map, "\1", 1, page) != 1) abort();
    close(map);
}

static void note_cut(const char *name, off_t length) {
    off_t shortest = length;
    int file = must(model(name, ".cut", O_RDWR | O_CREAT));
    if (pread(file, &shortest, sizeof shortest, 0) == sizeof shortest && shortest < length)
        length = shortest;
    if (put(file, &length, sizeof length, 0) != sizeof length) abort();
    close(file);
}

static void forget(const char *name, const char *suffix) {
    char path[PATHS];
    snprintf(path, sizeof path, "%s/%s%s", getenv("FILESTORE_DISK"), name, suffix);
    unlink(path);
}

/* The durable length of a blob. */
static long long synced_length(const char *id) {
    char text[32] = "";
    int file = model(id, ".synced", O_RDONLY);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atoll(text) : 0;
}

static void note_synced(const char *id, long long length) {
    char text[32];
    int file = must(model(id, ".synced", O_WRONLY | O_CREAT | O_TRUNC));
    int size = snprintf(text, sizeof text, "%lld", length);
    if (put(file, text, size, 0) != size) abort();
    close(file);
}

/* Called with the lock held, after bytes of a blob were written up to its position. */
static void note_blob(int fd, ssize_t written) {
    char path[PATHS];
    if (written <= 0 || !path_of(fd, path) || !holds_blobs(path)) return;
    const char *id = strrchr(path, '/') + 1;
    close(must(model(id, ".unsynced", O_WRONLY | O_CREAT)));

    long long start = (long long)lseek(fd, 0, SEEK_CUR) - written;
    if (start < synced_length(id)) note_synced(id, start);
}

/* Called with the lock held, before a blob or a directory of blobs is synced. */
static void sync_blobs(int fd) {
    char path[PATHS];
    struct stat file;
    if (!path_of(fd, path) || !holds_blobs(path) || fstat(fd, &file) != 0) return;
    if (!S_ISDIR(file.st_mode)) {
        forget(strrchr(path, '/') + 1, ".unsynced");
        note_synced(strrchr(path, '/') + 1, file.st_size);
        return;
    }

    DIR *directory = opendir(path);
    if (directory == NULL) return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (entry->d_type == DT_REG && entry->d_name[0] != '.')
            close(must(model(entry->d_name, ".named", O_WRONLY | O_CREAT)));
    closedir(directory);
}

/* Makes the disk hold what was written since the last fsync. */
static void write_back(const char *name, int fd) {
    int disk = must(model(name, "", O_WRONLY | O_CREAT));
    off_t length;
    int noted = model(name, ".cut", O_RDONLY);
    struct stat on_disk, now;

    if (noted >= 0) {
        if (pread(noted, &length, sizeof length, 0) != sizeof length) abort();
        if (fstat(disk, &on_disk) != 0) abort();
        if (length < on_disk.st_size) cut(disk, length);
        close(noted);
    }

    int map = model(name, ".dirty", O_RDONLY);
    char dirty, page[PAGE];
    for (off_t at = 0; map >= 0 && pread(map, &dirty, 1, at) == 1; at++) {
        if (!dirty) continue;
        ssize_t got = pread(fd, page, PAGE, at * PAGE);
        if (got < 0 || put(disk, page, got, at * PAGE) != got) abort();
    }
    if (map >= 0) close(map);

    if (fstat(fd, &now) != 0) abort();
    cut(disk, now.st_size);
    close(disk);
    forget(name, ".dirty");
    forget(name, ".cut");
}

static int synced(int fd, const char *function) {
    int (*sync)(int) = real(function);
    const char *name = watched(fd);
    if (name == NULL) {
        pthread_mutex_lock(&lock);
        sync_blobs(fd);
        pthread_mutex_unlock(&lock);
        return sync(fd);
    }

    pthread_mutex_lock(&lock);
    count(name);
    char fail[PATHS];
    snprintf(fail, sizeof fail, "%s/fail", getenv("FILESTORE_DISK"));
    int result = 0;
    if (name == LOG && unlink(fail) == 0) {
        forget(name, ".dirty");
        errno = EIO;
        result = -1;
    } else {
        write_back(name, fd);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return synced(fd, "fsync"); }

int fdatasync(int fd) { return synced(fd, "fdatasync"); }

static ssize_t written(int fd, const void *bytes, size_t length, off_t offset) {
    const char *name = watched(fd);
    if (exceeds_quota(fd, name)) {
        errno = EDQUOT;
        return -1;
    }
    if (name == NULL) return put(fd, bytes, length, offset);

    pthread_mutex_lock(&lock);
    count(name);
    ssize_t result = put(fd, bytes, length, offset);
    note_write(name, offset, result);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return written(fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return written(fd, bytes, length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t (*write_next)(int, const void *, size_t) = real("write");
    const char *name = watched(fd);
    if (exceeds_quota(fd, name)) {
        errno = EDQUOT;
        return -1;
    }
    pthread_mutex_lock(&lock);
    if (name == NULL) {
        ssize_t result = write_next(fd, bytes, length);
        note_blob(fd, result);
        pthread_mutex_unlock(&lock);
        return result;
    }

    count(name);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t result = write_next(fd, bytes, length);
    note_write(name, offset, result);
    pthread_mutex_unlock(&lock);
    return result;
}

static int truncated(int fd, off_t length) {
    int (*truncate_to)(int, off_t) = real("ftruncate64");
    const char *name = watched(fd);
    if (name == NULL) return truncate_to(fd, length);

    pthread_mutex_lock(&lock);
    count(name);
    int result = truncate_to(fd, length);
    if (result == 0) note_cut(name, length);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int fd, off_t length) { return truncated(fd, length); }

int ftruncate64(int fd, off64_t length) { return truncated(fd, length); }
