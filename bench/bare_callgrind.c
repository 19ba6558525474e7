/* How fast could it be?  Reads a Callgrind profile and makes a number of every
 * run of digits in it, names included: no lines, no signs, no hexadecimal, no
 * names, no columns, no output but three numbers.  Not a reader: a yardstick.
 *
 *   cc -O3 bench/bare_callgrind.c -o bare_callgrind && ./bare_callgrind profile.callgrind
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { WINDOW = 1 << 18 };
static uint8_t buffer[WINDOW];

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const int fd = open(argv[1], O_RDONLY);
    if (fd < 0) return 1;
    uint64_t lines = 0, numbers = 0, sum = 0, v = 0;
    int in = 0;
    for (ssize_t got; (got = read(fd, buffer, WINDOW)) > 0;)
        for (ssize_t i = 0; i < got; i++) {
            const uint8_t digit = (uint8_t)(buffer[i] - '0');
            if (digit < 10) {
                v = v * 10 + digit;
                in = 1;
                continue;
            }
            sum += v;
            numbers += (uint64_t)in;
            v = 0;
            in = 0;
            lines += buffer[i] == '\n';
        }
    printf("%llu lines, %llu numbers, sum %llu\n", (unsigned long long)lines, (unsigned long long)numbers,
           (unsigned long long)sum);
    return 0;
}
