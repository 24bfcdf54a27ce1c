# One place for the flags that every target gets.
#
# No fast-math and no floating-point contraction anywhere: results must not depend on what the
# optimizer chooses to fuse. No global -m flags: instruction sets are chosen per kernel source.
add_library(hadal_flags INTERFACE)
target_compile_options(hadal_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Wnull-dereference -Werror -ffp-contract=off -fno-math-errno -fvisibility=hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these through inlined standard library code at -O2/-O3.
  target_compile_options(hadal_flags INTERFACE -Wno-null-dereference -Wno-maybe-uninitialized
    -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-stringop-overread -Wno-free-nonheap-object)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own std::stable_sort uses a function that it marks as deprecated.
  target_compile_options(hadal_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(HADAL_SANITIZE)
  add_compile_options(-fsanitize=${HADAL_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${HADAL_SANITIZE})
  if(HADAL_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(HADAL_FUZZ)
  # Coverage feedback for libFuzzer in every object; the targets themselves add the driver.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g1)
  add_link_options(-fsanitize=address,undefined)
endif()
