// A program whose threads know where their time goes: each measures what it spends in do_read, do_sleep, do_lock,
// do_hold, do_compute and do_other, between the lines "begin" and "end" on its input, and prints it.
//
// usage: shares FILE   (FILE: at least 32 MiB, read at random places, dropped from the page cache before each reading)
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define BLOCK 65536
#define BLOCKS 512

enum { READ, SLEEP, LOCK, HOLD, COMPUTE, OTHER, PARTS };
static const char *part_names[PARTS] = {"do_read", "do_sleep", "do_lock", "do_hold", "do_compute", "do_other"};

struct worker {
    const char *name;
    void (*round)(struct worker *);
    uint64_t random;
    uint64_t ns[PARTS]; // written by its thread, read by main
    FILE *file;
    unsigned char block[BLOCK] __attribute__((aligned(4096)));
};

static const char *path;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t pick(struct worker *w, uint64_t from, uint64_t to) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return from + w->random % (to - from);
}

static inline __attribute__((always_inline)) uint64_t inner_step(uint64_t x) {
    for (int i = 0; i < 400; i++) x = x * 6364136223846793005u + (x >> 29);
    return x;
}

// By the processor time of the thread, so that a busy host makes it take longer, as real work would.
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

NOINLINE static void do_compute(uint64_t us) {
    uint64_t end = cpu_ns() + us * 1000, x = sink;
    while (cpu_ns() < end) for (int i = 0; i < 50; i++) x = inner_step(x);
    sink = x;
}

NOINLINE static void do_other(uint64_t us) {
    uint64_t end = cpu_ns() + us * 1000, x = sink;
    while (cpu_ns() < end) for (int i = 0; i < 20000; i++) x ^= x << 7 ^ i;
    sink = x;
}

// Its frame has a size that is known at run time only, so its caller is found through the frame pointer.
NOINLINE static void do_sleep(uint64_t us) {
    char *room = alloca(64 + us % 512);
    room[0] = (char)us;
    struct timespec t = {0, (long)us * 1000};
    nanosleep(&t, NULL);
    sink += (uint64_t)room[0];
}

NOINLINE static void do_hold(uint64_t us) {
    usleep(us);
    sink++;
}

NOINLINE static void do_lock(void) {
    pthread_mutex_lock(&mutex);
    sink++;
}

NOINLINE static void do_read(struct worker *w) {
    long at = (long)pick(w, 0, BLOCKS) * BLOCK;
    posix_fadvise(fileno(w->file), at, BLOCK, POSIX_FADV_DONTNEED);
    if (fseek(w->file, at, SEEK_SET) != 0 || fread(w->block, 1, BLOCK, w->file) != BLOCK) exit(3);
    sink += w->block[0];
}

#define MEASURE(part, call) do { uint64_t from = now_ns(); call; \
    __atomic_fetch_add(&w->ns[part], now_ns() - from, __ATOMIC_RELAXED); } while (0)

NOINLINE static void reader_round(struct worker *w) {
    for (int i = 0; i < 4; i++) MEASURE(READ, do_read(w));
    MEASURE(COMPUTE, do_compute(pick(w, 100, 400)));
}

NOINLINE static void sleeper_round(struct worker *w) {
    MEASURE(SLEEP, do_sleep(pick(w, 1000, 8000)));
    MEASURE(COMPUTE, do_compute(pick(w, 300, 1500)));
}

NOINLINE static void locker_round(struct worker *w) {
    MEASURE(LOCK, do_lock());
    MEASURE(HOLD, do_hold(pick(w, 500, 3000)));
    pthread_mutex_unlock(&mutex);
    MEASURE(SLEEP, do_sleep(pick(w, 500, 2000)));
}

NOINLINE static void mixed_round(struct worker *w) {
    MEASURE(READ, do_read(w));
    MEASURE(SLEEP, do_sleep(pick(w, 500, 4000)));
    MEASURE(LOCK, do_lock());
    pthread_mutex_unlock(&mutex);
    MEASURE(COMPUTE, do_compute(pick(w, 500, 3000)));
}

NOINLINE static void busy_round(struct worker *w) {
    MEASURE(COMPUTE, do_compute(pick(w, 1000, 3000)));
    MEASURE(OTHER, do_other(pick(w, 500, 1500)));
}

static void *work(void *argument) {
    struct worker *w = argument;
    pthread_setname_np(pthread_self(), w->name);
    w->file = fopen(path, "rb");
    if (!w->file) exit(2);
    setvbuf(w->file, NULL, _IONBF, 0);
    // From the disk itself, where the file system can do that.
    fcntl(fileno(w->file), F_SETFL, fcntl(fileno(w->file), F_GETFL) | O_DIRECT);
    for (;;) w->round(w);
    return NULL;
}

static struct worker workers[] = {
    {.name = "reader", .round = reader_round, .random = 11}, {.name = "sleeper", .round = sleeper_round, .random = 22}, {.name = "locker-a", .round = locker_round, .random = 33},
    {.name = "locker-b", .round = locker_round, .random = 44}, {.name = "mixed", .round = mixed_round, .random = 55}, {.name = "busy", .round = busy_round, .random = 66},
};
#define WORKERS (sizeof workers / sizeof workers[0])

int main(int argc, char **argv) {
    if (argc != 2) return 1;
    path = argv[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, &workers[i]);
    }
    puts("ready");
    char line[64];
    uint64_t begun = 0, before[WORKERS][PARTS] = {0};
    while (fgets(line, sizeof line, stdin)) {
        int end = strncmp(line, "end", 3) == 0;
        uint64_t wall = now_ns() - begun;
        for (size_t i = 0; i < WORKERS; i++)
            for (int part = 0; part < PARTS; part++) {
                uint64_t ns = __atomic_load_n(&workers[i].ns[part], __ATOMIC_RELAXED);
                if (end) printf("%s %s %.5f\n", workers[i].name, part_names[part], (double)(ns - before[i][part]) / wall);
                before[i][part] = ns;
            }
        if (end) puts("done");
        begun = now_ns();
    }
    return 0;
}
