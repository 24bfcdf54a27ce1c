#pragma once
// Processor time of calls, for the programs of this folder: what else runs on the machine does not count.

#include <algorithm>

#include <time.h>

/// Seconds of processor time that this thread has used.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The least seconds of a call, over at least `least_rounds` rounds, about `enough` seconds, and at most
/// 1000.
template <class Call>
double best_seconds(Call call, int least_rounds = 3, double enough = 0.5) {
  double best = 1e9;
  double total = 0;
  for (int round = 0; round < least_rounds || (total < enough && round < 1000); ++round) {
    const double begin = thread_seconds();
    call();
    const double taken = thread_seconds() - begin;
    best = std::min(best, taken);
    total += taken;
  }
  return best;
}
