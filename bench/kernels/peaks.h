#pragma once
// What the machine can do at most: measured in the same run as the kernels that are compared with it.

#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace hadal::bench {

/// Bytes per second that all threads of the pool read together from an array much larger than the caches.
double measure_read_bandwidth(ThreadPool& pool);

/// Float32 multiply-add operations (two each) per second of all threads, from registers.
double measure_fma_peak(ThreadPool& pool, kernels::Isa isa);

/// Median of the seconds that `repeats` calls take each, after one call to warm up.
double median_seconds(int repeats, FunctionRef<void()> body);

}  // namespace hadal::bench
