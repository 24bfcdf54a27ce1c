#include "recipe/parse/output_parser.h"

#include <utility>

#include "recipe/parse/machine.h"

namespace hadal::recipe {

OutputParser::OutputParser(ParserSettings settings, std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : machine_(std::make_unique<Machine>(std::move(settings), std::move(tokenizer))) {}

OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;

void OutputParser::push_text(std::string_view text) {
  machine_->push_text(text);
}
void OutputParser::push_tokens(std::span<const int32_t> ids) {
  machine_->push_tokens(ids);
}
void OutputParser::finish() {
  machine_->finish();
}

std::vector<Piece> OutputParser::take() {
  return machine_->queue().take();
}
const std::optional<std::string>& OutputParser::stop_sequence() const {
  return machine_->stop_sequence();
}
bool OutputParser::call_cut_off() const {
  return machine_->call_cut_off();
}
uint64_t OutputParser::num_reasoning_tokens() const {
  return machine_->queue().num_reasoning_tokens();
}
const OutputFaults& OutputParser::faults() const {
  return machine_->faults();
}

}  // namespace hadal::recipe
