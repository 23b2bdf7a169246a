/* A wall clock that is set while a process runs: wall_clock.py says how it is used.

   What reads the wall clock gets the nanoseconds added that the file named by WALL_CLOCK_OFFSET holds, as one
   number of this machine. No other clock is touched, and no wait: those that are in the wall clock's time go by
   the true one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;
static const volatile int64_t *offset_ns;

__attribute__((constructor)) static void find_offset(void) {
    const char *path = getenv("WALL_CLOCK_OFFSET");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *offset_ns, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) offset_ns = page;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, now);
    if (status == 0 && offset_ns && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int64_t set = now->tv_sec * SECOND + now->tv_nsec + *offset_ns;
        now->tv_sec = set / SECOND;
        now->tv_nsec = set % SECOND;
    }
    return status;
}

int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    struct timespec exact;
    int status = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return status;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
