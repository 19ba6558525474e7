/* How fast could it be?  Reads a Callgrind profile and makes a number of every
 * run of digits in its cost lines; all other lines are passed over by memchr.
 * No signs, no hexadecimal, no names, no columns, no output but three numbers.
 * Not a reader: a yardstick.
 *
 *   cc -O3 bench/bare_callgrind.c -o bare_callgrind && ./bare_callgrind profile.callgrind
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 1 << 18 };
static uint8_t buffer[WINDOW];

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const int fd = open(argv[1], O_RDONLY);
    if (fd < 0) return 1;
    uint64_t lines = 0, numbers = 0, sum = 0;
    size_t have = 0;
    for (ssize_t got; (got = read(fd, buffer + have, WINDOW - have)) > 0;) {
        have += (size_t)got;
        size_t whole = have; /* up to the last newline, which ends every loop below */
        while (whole && buffer[whole - 1] != '\n') whole--;
        const uint8_t *p = buffer, *end = buffer + whole;
        for (; p != end; lines++) {
            if (*p == '+' || *p == '-' || *p == '*' || (uint8_t)(*p - '0') < 10) {
                while (*p != '\n') {
                    const uint8_t *first = p;
                    uint64_t v = 0;
                    for (uint8_t digit; (digit = (uint8_t)(*p - '0')) < 10; p++) v = v * 10 + digit;
                    sum += v;
                    numbers += p != first;
                    p += *p != '\n';
                }
                p++;
            } else {
                p = (const uint8_t *)memchr(p, '\n', (size_t)(end - p)) + 1;
            }
        }
        have -= whole;
        memmove(buffer, end, have);
    }
    printf("%llu lines, %llu numbers, sum %llu\n", (unsigned long long)lines, (unsigned long long)numbers,
           (unsigned long long)sum);
    return 0;
}
