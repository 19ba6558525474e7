// Forks while records are still in the buffer; parent and child both continue, the child through exit.
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
NOINLINE unsigned before(unsigned n) { for (unsigned i = 0; i < n * 50; ++i) asm volatile("" : "+r"(n)); return n; }
NOINLINE unsigned inChild(unsigned n) { return before(n) + 1; }
NOINLINE unsigned inParent(unsigned n) { return before(n) + 2; }
NOINLINE int forking() {
  for (int i = 0; i < 5; ++i) before(3);
  pid_t child = fork();
  if (child == 0) { for (int i = 0; i < 4; ++i) inChild(2); exit(0); }
  for (int i = 0; i < 4; ++i) inParent(2);
  int status; waitpid(child, &status, 0);
  for (int i = 0; i < 4; ++i) inParent(2);
  return status;
}
int main() { return forking(); }
