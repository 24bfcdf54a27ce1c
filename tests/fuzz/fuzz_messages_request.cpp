// Arbitrary bodies of Messages requests.

#include "recipe/prepared_request.h"
#include "request_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hadal::recipe::check_request(hadal::recipe::Protocol::kMessages, data, size);
  return 0;
}
