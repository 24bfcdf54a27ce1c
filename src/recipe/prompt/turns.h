#pragma once
// What both prompt versions ask about the turns of a conversation.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "recipe/conversation.h"

namespace hadal::recipe {

/// The first message of the running tool loop: the one after the last user, system or reminder message.
inline size_t tool_loop_start(const Conversation& conversation) {
  const auto last =
      std::find_if(conversation.messages.rbegin(), conversation.messages.rend(), [](const Message& m) {
        return m.role == Role::kUser || m.role == Role::kSystem || m.role == Role::kLatestReminder;
      });
  return static_cast<size_t>(conversation.messages.rend() - last);
}

/// Puts the tool messages of `group` that have a call id in the order given by `rank`, stable, and leaves all
/// other messages where they are. n log n.
template <class Rank>
void sort_tool_results(std::span<Message> group, Rank rank) {
  std::vector<size_t> slots;
  for (size_t index = 0; index < group.size(); ++index) {
    if (group[index].role == Role::kTool && group[index].tool_call_id) {
      slots.push_back(index);
    }
  }
  if (slots.size() < 2) {
    return;
  }
  std::vector<std::pair<decltype(rank(group[0])), size_t>> order;
  order.reserve(slots.size());
  for (const size_t slot : slots) {
    order.emplace_back(rank(group[slot]), slot);
  }
  if (std::is_sorted(order.begin(), order.end())) {
    return;
  }
  std::sort(order.begin(), order.end());
  std::vector<Message> sorted;
  sorted.reserve(slots.size());
  for (const auto& [key, slot] : order) {
    sorted.push_back(std::move(group[slot]));
  }
  for (size_t index = 0; index < slots.size(); ++index) {
    group[slots[index]] = std::move(sorted[index]);
  }
}

/// The place of each call id among the calls of a turn. Unknown ids count as the first.
class CallOrder {
 public:
  explicit CallOrder(std::span<const ToolCall> calls) {
    ids_.reserve(calls.size());
    for (size_t index = 0; index < calls.size(); ++index) {
      ids_.emplace_back(calls[index].id, index);
    }
    std::sort(ids_.begin(), ids_.end());
  }

  size_t place(std::string_view id) const {
    const auto found = std::upper_bound(ids_.begin(), ids_.end(), std::pair(id, SIZE_MAX));
    return found != ids_.begin() && std::prev(found)->first == id ? std::prev(found)->second : 0;
  }

 private:
  std::vector<std::pair<std::string_view, size_t>> ids_;
};

}  // namespace hadal::recipe
