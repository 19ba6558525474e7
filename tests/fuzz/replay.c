/* Runs a fuzz target over the files given, without a fuzzer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            perror(argv[i]);
            return 1;
        }
        size_t n = 0, cap = 1 << 16;
        uint8_t *p = malloc(cap);
        for (size_t got; (got = fread(p + n, 1, cap - n, f)) > 0;) {
            n += got;
            if (n == cap) p = realloc(p, cap *= 2);
        }
        fclose(f);
        LLVMFuzzerTestOneInput(p, n);
        free(p);
    }
    return 0;
}
