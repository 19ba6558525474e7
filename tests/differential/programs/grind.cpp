// Everything that Callgrind can write: recursion (direct, mutual, through a pointer), inlined code of
// another file, calls into other objects, templates, exceptions, a switch and loops for jumps, threads.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "grind.h"
#define NOINLINE __attribute__((noinline))

NOINLINE long factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
NOINLINE int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
NOINLINE bool odd(unsigned n);
NOINLINE bool even(unsigned n) { return n == 0 || odd(n - 1); }
NOINLINE bool odd(unsigned n) { return n != 0 && even(n - 1); }

template <class T> struct Stack {
  std::vector<T> items;
  NOINLINE void push(const T &item) { items.push_back(item); }
  NOINLINE T pop() { T last = items.back(); items.pop_back(); return last; }
};

static long add(long x) { return x + 1; }
static long scale(long x) { return mix(x, 3); }
static long (*const operations[])(long) = {add, scale, labs};

NOINLINE long dispatch(int i, long x) {
  switch (i & 7) {
  case 0: x += 1; break;
  case 1: x *= 3; break;
  case 2: x ^= 0x55; break;
  case 3: x -= 9; break;
  case 4: x = mix(x & 15, i); break;
  default: x = -x;
  }
  return operations[i % 3](x & 0xffff);
}
NOINLINE int deep(int n) {
  if (n == 0) throw std::runtime_error("deep");
  return deep(n - 1) + 1;
}
NOINLINE long work(int rounds) {
  long sum = 0;
  for (int i = 0; i < rounds; i++) sum += dispatch(i, sum + i);
  Stack<std::string> stack;
  std::map<std::string, int> seen;
  for (int i = 0; i < rounds / 8; i++) stack.push(std::string(1, char('a' + i % 26)) + "x");
  while (!stack.items.empty()) seen[stack.pop()]++;
  try { deep(5); } catch (const std::runtime_error &) { sum += (long)seen.size(); }
  return sum + factorial(12) + ackermann(2, 3) + even(21);
}
int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 0;
  long sum = work(400);
  for (int i = 0; i < threads; i++) {
    std::thread thread([&sum, i] { sum += work(100 * (i + 1)); });
    thread.join();
  }
  std::printf("%ld\n", sum);
}
