/* Runs a fuzz target over the files given as arguments: a plain program for the normal test run, and to examine a
 * crash.  If the target has a mutator, also over its mutations of them. */
#include <stdio.h>
#include <stdlib.h>

#include "mutate.h"

enum { MUTANTS = 4, ROOM = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#pragma weak LLVMFuzzerCustomMutator

/* Replaces the functions of libFuzzer that mutators call. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max) {
    if (n < max) data[n++] = 1;
    data[n / 2] ^= 0x11;
    return n;
}

static void run_mutants(const uint8_t *data, size_t n) {
    for (unsigned seed = 0; seed < MUTANTS; seed++) {
        uint8_t *mutant = malloc(n + ROOM);
        if (!mutant) abort();
        memcpy(mutant, data, n);
        const size_t made = LLVMFuzzerCustomMutator(mutant, n, n + ROOM, seed);
        uint8_t *exact = realloc(mutant, made ? made : 1);
        if (!exact) abort();
        LLVMFuzzerTestOneInput(exact, made);
        free(exact);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file || fseek(file, 0, SEEK_END)) {
            perror(argv[i]);
            return 1;
        }
        long size = ftell(file);
        rewind(file);
        /* of the exact size, so that the sanitizers detect a read past its end */
        uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
        if (size < 0 || !data || fread(data, 1, (size_t)size, file) != (size_t)size) {
            perror(argv[i]);
            return 1;
        }
        fclose(file);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        if (LLVMFuzzerCustomMutator) run_mutants(data, (size_t)size);
        free(data);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}
