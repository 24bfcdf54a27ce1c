// Clients of the three protocols, strict about what a stream promises.

#include <gtest/gtest.h>

#include "output_support.h"

namespace hadal::recipe::testing {

namespace {

Json data_of(const Event& event) {
  Json data = Json::parse(event.data, nullptr, false);
  EXPECT_FALSE(data.is_discarded()) << event.data;
  return data;
}

Json replay_chat(const std::vector<Event>& events) {
  Json message = Json::object();
  Json finish;
  Json usage;
  bool done = false;
  for (const Event& event : events) {
    EXPECT_EQ(event.name, "");
    const Json chunk = data_of(event);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    if (chunk.contains("usage") && !chunk["usage"].is_null()) {
      usage = chunk["usage"];
    }
    if (chunk["choices"].empty()) {
      EXPECT_TRUE(done) << "usage alone comes last";
      continue;
    }
    EXPECT_FALSE(done) << "a choice behind the finish reason";
    const Json& choice = chunk["choices"][0];
    const Json& delta = choice["delta"];
    for (const char* key : {"role", "content", "reasoning_content"}) {
      if (!delta.contains(key) || delta[key].is_null()) {
        continue;
      }
      message[key] = message.value(key, std::string()) + delta[key].get<std::string>();
    }
    if (delta.contains("tool_calls")) {
      EXPECT_EQ(delta["tool_calls"].size(), 1U);
      const Json& call = delta["tool_calls"][0];
      const auto index = call["index"].get<size_t>();
      if (call.contains("id")) {
        EXPECT_EQ(index, message.contains("tool_calls") ? message["tool_calls"].size() : 0);
        Json whole = call;
        whole.erase("index");
        message["tool_calls"].push_back(whole);
      } else {
        EXPECT_EQ(index + 1, message["tool_calls"].size()) << "arguments of a call that is over";
        Json& text = message["tool_calls"][index]["function"]["arguments"];
        text = text.get<std::string>() + call["function"]["arguments"].get<std::string>();
      }
    }
    finish = choice["finish_reason"];
    done = !finish.is_null();
  }
  EXPECT_TRUE(done);
  if (message["content"] == "" && message.contains("tool_calls")) {
    message["content"] = nullptr;
  }
  return {{"message", message}, {"finish_reason", finish}, {"usage", usage}};
}

Json replay_messages(const std::vector<Event>& events) {
  Json message;
  std::string input;
  bool open = false;
  bool stopped = false;
  for (const Event& event : events) {
    const Json data = data_of(event);
    const auto type = data["type"].get<std::string>();
    EXPECT_EQ(type, event.name);
    EXPECT_FALSE(stopped);
    if (type == "message_start") {
      EXPECT_TRUE(message.is_null());
      message = data["message"];
    } else if (type == "content_block_start") {
      EXPECT_FALSE(open);
      open = true;
      EXPECT_EQ(data["index"], message["content"].size());
      message["content"].push_back(data["content_block"]);
      input.clear();
    } else if (type == "content_block_delta") {
      EXPECT_TRUE(open);
      EXPECT_EQ(data["index"], message["content"].size() - 1);
      Json& block = message["content"].back();
      const auto kind = data["delta"]["type"].get<std::string>();
      if (kind == "input_json_delta") {
        EXPECT_EQ(block["type"], "tool_use");
        input += data["delta"]["partial_json"].get<std::string>();
      } else {
        const std::string key = kind.substr(0, kind.find('_'));
        EXPECT_TRUE(block.contains(key)) << kind;
        block[key] = block[key].get<std::string>() + data["delta"][key].get<std::string>();
      }
    } else if (type == "content_block_stop") {
      EXPECT_TRUE(open);
      EXPECT_EQ(data["index"], message["content"].size() - 1);
      open = false;
      Json& block = message["content"].back();
      if (block["type"] == "tool_use" && Json::accept(input)) {
        block["input"] = Json::parse(input);
      }
    } else if (type == "message_delta") {
      EXPECT_FALSE(open);
      message.update(data["delta"]);
      message["usage"] = data["usage"];
    } else if (type == "message_stop") {
      stopped = true;
    } else {
      EXPECT_EQ(type, "ping");
    }
  }
  EXPECT_TRUE(stopped);
  return message;
}

/// What a client has of one item that is not done.
struct OpenItem {
  Json item = {};
  std::string text = {};
  bool has_part = false;
  bool part_done = false;
};

Json replay_responses(const std::vector<Event>& events) {
  Json output = Json::array();
  Json last;
  std::optional<OpenItem> open;
  uint64_t number = 0;
  for (const Event& event : events) {
    const Json data = data_of(event);
    const auto type = data["type"].get<std::string>();
    EXPECT_EQ(type, event.name);
    EXPECT_EQ(data["sequence_number"], number++);
    EXPECT_TRUE(last.is_null()) << "an event behind the last";
    if (data.contains("output_index")) {
      EXPECT_EQ(data["output_index"], output.size());
    }
    if (data.contains("item_id")) {
      EXPECT_TRUE(open && data["item_id"] == open->item["id"]) << type;
    }
    if (type == "response.output_item.added") {
      EXPECT_FALSE(open);
      open = OpenItem{.item = data["item"]};
      EXPECT_EQ(open->item["status"], "in_progress");
    } else if (type == "response.content_part.added") {
      open->has_part = true;
    } else if (type.ends_with(".delta")) {
      open->text += data["delta"].get<std::string>();
    } else if (type == "response.content_part.done") {
      EXPECT_EQ(data["part"]["text"], open->text);
      open->part_done = true;
    } else if (type == "response.output_item.done") {
      const Json& item = data["item"];
      EXPECT_EQ(item["id"], open->item["id"]);
      EXPECT_EQ(open->has_part, open->part_done);
      if (item["type"] == "function_call") {
        EXPECT_EQ(item["arguments"], open->text);
        EXPECT_EQ(item["call_id"], open->item["call_id"]);
      } else if (item["type"] == "custom_tool_call") {
        EXPECT_EQ(item["input"], open->text);
      } else if (item["type"] == "message" || item["type"] == "reasoning") {
        EXPECT_EQ(item["content"][0]["text"], open->text);
      }
      output.push_back(item);
      open.reset();
    } else if (type.ends_with(".done")) {
      for (const char* key : {"text", "arguments", "input"}) {
        if (data.contains(key)) {
          EXPECT_EQ(data[key], open->text);
        }
      }
    } else if (type == "response.completed" || type == "response.incomplete") {
      last = data["response"];
      EXPECT_EQ("response." + last["status"].get<std::string>(), type);
      EXPECT_EQ(last["output"], output);
    } else {
      EXPECT_EQ(type, number == 1 ? "response.created" : "response.in_progress");
      EXPECT_LE(number, 2U);
    }
  }
  EXPECT_FALSE(open);
  return last;
}

}  // namespace

Json replay(Protocol protocol, const std::vector<Event>& events) {
  switch (protocol) {
    case Protocol::kMessages:
      return replay_messages(events);
    case Protocol::kResponses:
      return replay_responses(events);
    case Protocol::kChat:
      break;
  }
  return replay_chat(events);
}

}  // namespace hadal::recipe::testing
