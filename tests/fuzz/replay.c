/* Runs a fuzz target over the files given as arguments: a plain program for
 * the normal test run, and for looking at one crash. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file || fseek(file, 0, SEEK_END)) {
            perror(argv[i]);
            return 1;
        }
        long size = ftell(file);
        rewind(file);
        /* of the exact size, so that the sanitizers see a read past its end */
        uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
        if (size < 0 || !data || fread(data, 1, (size_t)size, file) != (size_t)size) {
            perror(argv[i]);
            return 1;
        }
        fclose(file);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}
