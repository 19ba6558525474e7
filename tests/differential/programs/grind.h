// Inlined into grind.cpp: its lines are between fi= and fe= there.
inline long mix(long a, long b) {
  long h = a * 31 + b;
  if (h & 1) h ^= h >> 3;
  return h + 7;
}
