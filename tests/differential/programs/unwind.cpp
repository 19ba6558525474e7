// Frames left by exceptions and longjmp have no exit record.
#include <csetjmp>
#include <stdexcept>
#ifdef NOTHING   // a program without one instrumented call
#define NOINLINE __attribute__((noinline, xray_never_instrument))
#else
#define NOINLINE __attribute__((noinline))
#endif
static jmp_buf back;
NOINLINE int thrower(int depth) { if (depth == 0) throw std::runtime_error("deep"); int r = thrower(depth - 1); asm volatile("" : "+r"(r)); return r; }
NOINLINE int jumper(int depth) { if (depth == 0) longjmp(back, 1); int r = jumper(depth - 1); asm volatile("" : "+r"(r)); return r; }
NOINLINE int catcher(int depth) { try { return thrower(depth); } catch (const std::runtime_error &) { return depth; } }
NOINLINE int landing(int depth) { if (setjmp(back)) return depth; return jumper(depth); }
#ifdef NOTHING
[[clang::xray_never_instrument]]
#endif
int main() { int n = 0; for (int i = 0; i < 6; ++i) n += catcher(i) + landing(i); return n == 0; }
