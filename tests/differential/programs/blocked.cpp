// Threads that still wait in an instrumented call, holding their buffers, when the program exits.
// A thread that ends meanwhile returns its buffer to the queue's first slot, which is not its own:
// its buffer is in the log twice.
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
// Never destroyed: a condition variable with waiters blocks in its destructor.
std::mutex &m = *new std::mutex; std::condition_variable &cv = *new std::condition_variable; int waiting = 0;
NOINLINE unsigned busy(unsigned n) { for (unsigned i = 0; i < n * 20; ++i) asm volatile("" : "+r"(n)); return n; }
NOINLINE void waitForever() { std::unique_lock<std::mutex> l(m); ++waiting; cv.notify_all(); cv.wait(l, [] { return waiting < 0; }); }
NOINLINE void blockedThread(int id) { for (int i = 0; i < 10 + id; ++i) busy(5); waitForever(); }
int main() {
  for (int t = 0; t < 3; ++t) std::thread(blockedThread, t).detach();
  { std::unique_lock<std::mutex> l(m); cv.wait(l, [] { return waiting == 3; }); }
  std::thread([] { for (int i = 0; i < 400; ++i) busy(5); }).join();
  exit(0);   // before the threads end
}
