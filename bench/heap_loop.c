#include <stdlib.h>
static void *kept[4096];
#define F(n) __attribute__((noinline)) void f##n(int i) { int k = (i * 7 + n * 131) & 4095; free(kept[k]); kept[k] = malloc(16 + (i * 13 + n) % 200); free(malloc(8 * n + i % 31)); }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
__attribute__((noinline)) void deep(int d, int i) { if (d > 0) { deep(d - 1, i); return; } f1(i); f2(i); f3(i); f4(i); f5(i); f6(i); f7(i); f8(i); }
int main(int c, char **v) { for (int i = 0; i < atoi(v[1]); i++) deep(i % 20, i); }
