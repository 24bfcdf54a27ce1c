#include "cache/prefix_tree.h"

#include <algorithm>

namespace hadal::cache {

PrefixTree::Node* PrefixTree::find(const PrefixKey& key, std::span<const int32_t> tokens,
                                   int64_t depth) const {
  const auto found = nodes_.find(key);
  if (found == nodes_.end()) {
    return nullptr;
  }
  Node& node = *found->second;
  const auto block =
      tokens.subspan(static_cast<size_t>((depth - 1) * kBlockTokens), static_cast<size_t>(kBlockTokens));
  // The hash alone decides in practice; this makes a wrong answer impossible rather than improbable.
  const bool is_same =
      node.depth == depth && std::equal(block.begin(), block.end(), node.content.tokens.begin());
  return is_same ? &node : nullptr;
}

PrefixTree::Match PrefixTree::match(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t limit) const {
  Match match;
  for (int64_t depth = 1; depth * kBlockTokens <= limit; ++depth) {
    const Node* node = find(keys.after(depth, tokens), tokens, depth);
    if (node == nullptr) {
      break;
    }
    match.present = depth * kBlockTokens;
    if (node->snapshot) {
      match.usable = match.present;
    }
  }
  return match;
}

StatePrefix PrefixTree::take(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t length) {
  StatePrefix prefix;
  ++now_;
  Node* node = nullptr;
  for (int64_t depth = 1; depth * kBlockTokens <= length; ++depth) {
    node = find(keys.after(depth, tokens), tokens, depth);
    if (node->content.block) {
      prefix.blocks.push_back(node->content.block);
    }
    prefix.context.insert(prefix.context.end(), node->content.context.begin(), node->content.context.end());
  }
  node->last_use = now_;
  prefix.snapshot = node->snapshot;
  return prefix;
}

bool PrefixTree::has_snapshot(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t length) const {
  const int64_t depth = length / kBlockTokens;
  const Node* node = find(keys.after(depth, tokens), tokens, depth);
  return node != nullptr && node->snapshot != nullptr;
}

PrefixTree::Node* PrefixTree::add(PrefixBlock block, Node* parent) {
  auto node = std::make_unique<Node>();
  const PrefixKey key = block.key;
  if (block.block) {
    block.block->freeze();
  }
  node->charge = Charge(budget_, sizeof(Node) + block.context.size() * sizeof(int32_t));
  node->content = std::move(block);
  node->parent = parent;
  node->depth = parent == nullptr ? 1 : parent->depth + 1;
  if (parent != nullptr) {
    ++parent->num_children;
  }
  return (nodes_[key] = std::move(node)).get();
}

void PrefixTree::mark(Node& node, SnapshotPointer snapshot) {
  node.snapshot = std::move(snapshot);
  node.last_use = ++now_;
  marked_.insert(&node);
}

PrefixSegment PrefixTree::insert(PrefixKeys& keys, std::span<const int32_t> tokens, int64_t length,
                                 SequenceState& state) {
  PrefixSegment segment;
  segment.parent = keys.root();
  Node* node = nullptr;
  for (int64_t depth = 1; depth * kBlockTokens <= length; ++depth) {
    const PrefixKey& key = keys.after(depth, tokens);
    Node* next = find(key, tokens, depth);
    const int64_t index = depth - 1;
    const bool has_blocks = index < state.blocks().size();
    if (next == nullptr) {
      PrefixBlock block;
      block.key = key;
      const auto first = static_cast<size_t>(index * kBlockTokens);
      std::copy_n(tokens.begin() + static_cast<ptrdiff_t>(first), kBlockTokens, block.tokens.begin());
      const auto& context = state.engram_context();
      if (context.size() >= first + static_cast<size_t>(kBlockTokens)) {
        block.context.assign(context.begin() + static_cast<ptrdiff_t>(first),
                             context.begin() + static_cast<ptrdiff_t>(first) + kBlockTokens);
      }
      block.block = has_blocks ? state.blocks().block(index) : nullptr;
      next = add(std::move(block), node);
    } else if (has_blocks && next->content.block != state.blocks().block(index)) {
      state.blocks().replace(index, next->content.block);
    }
    if (depth * kBlockTokens < length && next->snapshot) {
      segment.parent = key;
      segment.first_block = depth;
      segment.blocks.clear();
    } else {
      segment.blocks.push_back(next->content);
    }
    node = next;
  }
  segment.snapshot = state.snapshot(length);
  mark(*node, segment.snapshot);
  return segment;
}

bool PrefixTree::insert(const PrefixSegment& segment, const PrefixKey& root) {
  Node* node = nullptr;
  if (segment.parent != root) {
    const auto found = nodes_.find(segment.parent);
    if (found == nodes_.end()) {
      return false;
    }
    node = found->second.get();
  }
  for (const PrefixBlock& block : segment.blocks) {
    const auto found = nodes_.find(block.key);
    node = found != nodes_.end() ? found->second.get() : add(block, node);
  }
  if (!node->snapshot) {
    mark(*node, segment.snapshot);
  }
  return true;
}

/// Forward passes over tokens that a snapshot saves, per byte that it takes, fading with time.
double PrefixTree::value(const Node& node, bool with_blocks) const {
  size_t bytes = node.snapshot->rows.size() + sizeof(Node);
  int64_t blocks = 0;
  for (const Node* at = &node; at != nullptr && (at == &node || !at->snapshot); at = at->parent) {
    ++blocks;
  }
  if (with_blocks) {
    bytes += static_cast<size_t>(blocks) * (sizeof(Node) + block_bytes_);
  }
  const double age = static_cast<double>(now_ - node.last_use) + 1;
  return static_cast<double>(blocks) / static_cast<double>(bytes) / age;
}

bool PrefixTree::evict() {
  Node* worst = nullptr;
  bool worst_is_leaf = false;
  double worst_value = 0;
  for (Node* node : marked_) {
    // A block that a running sequence or the disk tier holds too would not be freed.
    const bool is_leaf = node->num_children == 0 && !is_held(*node);
    const double its_value = value(*node, is_leaf);
    if (worst == nullptr || (is_leaf && !worst_is_leaf) ||
        (is_leaf == worst_is_leaf &&
         (its_value < worst_value || (its_value == worst_value && node->depth < worst->depth)))) {
      worst = node;
      worst_is_leaf = is_leaf;
      worst_value = its_value;
    }
  }
  if (worst == nullptr) {
    return false;
  }
  ++evictions_;
  drop_snapshot(*worst);
  prune(worst);
  return true;
}

void PrefixTree::drop_snapshot(Node& node) {
  node.snapshot.reset();
  marked_.erase(&node);
}

/// Drops a node without use, and the nodes before it that were there for its sake alone.
void PrefixTree::prune(Node* node) {
  while (node != nullptr && node->num_children == 0 && !node->snapshot) {
    Node* parent = node->parent;
    if (parent != nullptr) {
      --parent->num_children;
    }
    nodes_.erase(PrefixKey(node->content.key));
    node = parent;
  }
}

uint64_t PrefixTree::evictable_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [key, node] : nodes_) {
    bytes += is_held(*node) ? 0 : block_bytes_;
    bytes += sizeof(Node) + node->content.context.size() * sizeof(int32_t);
    bytes += node->snapshot && node->snapshot.use_count() == 1 ? node->snapshot->rows.size() : 0;
  }
  return bytes;
}

void PrefixTree::clear() {
  nodes_.clear();
  marked_.clear();
}

}  // namespace hadal::cache
