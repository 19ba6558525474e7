/* Counts the distinct words of a text.  -DSLOW starts its searches in fewer slots. */
#include <stdio.h>
#include <string.h>

enum {
    SLOTS = 2048,
#ifdef SLOW
    FIRST = 820,
#else
    FIRST = SLOTS,
#endif
};
static char words[SLOTS][16];
static unsigned counts[SLOTS];

static unsigned hash(const char *word) {
    unsigned h = 2166136261u;
    while (*word) h = (h ^ (unsigned char)*word++) * 16777619u;
    return h;
}

static unsigned find(const char *word) {
    unsigned i = hash(word) % FIRST;
    while (words[i][0] && strcmp(words[i], word) != 0) i = (i + 1) % SLOTS;
    return i;
}

static void count(const char *word) {
    unsigned i = find(word);
    if (!words[i][0]) strcpy(words[i], word);
    counts[i]++;
}

static unsigned next_word(unsigned seed, char *word) {
    unsigned length = 2 + seed % 3;
    for (unsigned i = 0; i < length; i++) {
        seed = seed * 1664525u + 1013904223u;
        word[i] = (char)('a' + (seed >> 24) % 5);
    }
    word[length] = 0;
    return seed;
}

int main(void) {
    char word[16];
    unsigned seed = 1, distinct = 0;
    for (int i = 0; i < 3000; i++) {
        seed = next_word(seed, word);
        count(word);
    }
    for (unsigned i = 0; i < SLOTS; i++) distinct += counts[i] > 0;
    printf("%u distinct words\n", distinct);
    return 0;
}
