/* Shifts the wall clock of a process that preloads this: the offset in nanoseconds is 8 bytes of a file that is mapped,
 * named by SETCLOCK_FILE. A change is seen by the next call. The steady clocks stay as they are. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

static volatile int64_t none = 0;
static volatile int64_t *offset_ns = &none;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("SETCLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped;

    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (file < 0)
        return;
    mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        offset_ns = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed;
    int64_t ns;

    if (!real_clock_gettime)
        real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    failed = real_clock_gettime(clock, now);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return failed;
    ns = now->tv_sec * NS_PER_S + now->tv_nsec + *offset_ns;
    now->tv_sec = ns / NS_PER_S;
    now->tv_nsec = ns % NS_PER_S;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec shifted;
    int failed = clock_gettime(CLOCK_REALTIME, &shifted);

    (void)zone;
    now->tv_sec = shifted.tv_sec;
    now->tv_usec = shifted.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *now)
{
    struct timespec shifted;

    clock_gettime(CLOCK_REALTIME, &shifted);
    if (now)
        *now = shifted.tv_sec;
    return shifted.tv_sec;
}
