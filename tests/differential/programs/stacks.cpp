// Stacks for unwinders: signals, calls of libraries, deep recursion, realigned and variable frames.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile unsigned long sink;

static int compare(const void *a, const void *b) {
    for (int i = 0; i < 20; i++) sink += i;
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void sort(int n) {
    int values[300];
    for (int i = 0; i < 300; i++) values[i] = (i * 7919 + n) % 1000;
    qsort(values, 300, sizeof *values, compare);
}

static void interrupted(int) { sort(1); }

__attribute__((noinline)) static int aligned(int n) {
    alignas(64) char text[128];
    snprintf(text, sizeof text, "%d %f", n, n * 1.5);
    sort(n);
    sink += strlen(text);
    return 1;
}

__attribute__((noinline)) static int variable(int n) {
    char text[n + 16];
    memset(text, n, sizeof text);
    const int r = aligned(n) + text[n / 2];
    sink += r;
    return r;
}

__attribute__((noinline)) static int recurse(int n) {
    const int r = n ? recurse(n - 1) + 1 : variable(n + 7);
    sink += r;
    return r;
}

int main() {
    struct sigaction action = {};
    action.sa_handler = interrupted;
    sigaction(SIGALRM, &action, nullptr);
    struct itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, nullptr);
    for (int i = 0; i < 4000; i++) recurse(i % 40);
}
