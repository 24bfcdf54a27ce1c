// The subcommands but serve, as programs: output, errors and exit codes.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "program.h"

namespace hadal::cli::testing {
namespace {

using Json = nlohmann::ordered_json;

const std::string kTiny = HADAL_MODELS "/tiny";

Json generate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"generate", "--model", kTiny, "--json"});
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  return Json::parse(outcome.out, nullptr, false);
}

TEST(Program, UsageErrorsExitWith2AndOneLine) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {},
           {"nonsense"},
           {"serve", "--port", "70000"},
           {"serve", "--nonsense"},
           {"serve"},
           {"generate"},
           {"generate", "--prompt", "a", "--chat", "b", "--model", kTiny},
           {"generate", "--prompt", "a", "--model", kTiny, "--top-p", "0"},
           {"generate", "--prompt", "a", "--model", kTiny, "--precision", "f16"},
           {"generate", "--prompt", "a", "--model", kTiny, "--top-k", "0"},
           {"generate", "--prompt", "a", "--model", kTiny, "--seed=-1"},
           {"generate", "--prompt", "a", "--model", kTiny, "--seed", "18446744073709551616"},
           {"logits", "--model", kTiny},
           {"recipe"},
           {"recipe", "render", "--tokenizer", "v5=x"},
           {"tokenize"}}) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.error.starts_with("hadal: ")) << outcome.error;
    EXPECT_EQ(outcome.error.find('\n'), outcome.error.size() - 1) << outcome.error;
  }
}

TEST(Program, AnUnknownCommandIsNamedTogetherWithThoseThereAre) {
  const Outcome outcome = run_program({"fly"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.error.find("unknown command 'fly'"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("serve"), std::string::npos) << outcome.error;
}

TEST(Program, FailuresExitWith1AndOneLine) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"generate", "--prompt", "a", "--model", "/nonexistent/model"},
           {"inspect", "/nonexistent/model"},
           {"inspect", "nobody/nothing"},
           {"serve", "--model", "/nonexistent/model", "--port", "0"},
           {"tokenize", "--tokenizer", "/nonexistent.json"},
           {"generate", "--token-ids", "1,99999999", "--model", kTiny},
           {"logits", "--token-ids", "1,2", "--out", "/nonexistent/folder/x", "--model", kTiny}}) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.error;
    EXPECT_TRUE(outcome.error.starts_with("hadal: ")) << outcome.error;
    EXPECT_EQ(outcome.error.find('\n'), outcome.error.size() - 1) << outcome.error;
  }
}

TEST(Program, HelpAndVersionExitWith0) {
  EXPECT_NE(run_program({"--help"}).out.find("generate"), std::string::npos);
  EXPECT_TRUE(run_program({"--version"}).out.starts_with("hadal "));
  EXPECT_EQ(run_program({"serve", "--help"}).exit_code, 0);
}

TEST(Program, PrintsItsConfig) {
  const Outcome outcome = run_program({"serve", "--print-config", "--port", "81"}, "",
                                      {"HADAL_THREADS=3", "HADAL_API_KEY=sk-secret", "HF_HOME=/hf"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("server.port                  = 81                       # flag --port"),
            std::string::npos);
  EXPECT_NE(outcome.out.find("# environment HADAL_THREADS"), std::string::npos);
  EXPECT_NE(outcome.out.find("/hf/hub"), std::string::npos);
  EXPECT_EQ(outcome.out.find("sk-secret"), std::string::npos);
}

TEST(Program, WarnsOfVariablesThatNothingReads) {
  const Outcome outcome = run_program({"serve", "--print-config"}, "", {"HADAL_PROT=81"});
  EXPECT_NE(outcome.error.find("HADAL_PROT"), std::string::npos);
}

TEST(Generate, GivesTheSameTokensWithAnyThreadsAndInstructions) {
  const std::vector<std::string> base{"--prompt",     "The sea", "--temperature", "0",
                                      "--max-tokens", "12",      "--ignore-eos"};
  const Json first = generate(base);
  ASSERT_TRUE(first.is_object());
  EXPECT_EQ(first.at("token_ids").size(), 12U);
  EXPECT_EQ(first.at("finish_reason"), "length");
  EXPECT_EQ(first.at("usage").at("completion_tokens"), 12);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--threads", "1"}, {"--isa", "scalar"}, {"--max-num-batched-tokens", "64"}}) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(generate(arguments).at("token_ids"), first.at("token_ids")) << more[0];
  }
  const Json seeded = generate({"--prompt", "The sea", "--seed", "5", "--max-tokens", "12", "--ignore-eos"});
  EXPECT_EQ(
      generate({"--prompt", "The sea", "--seed", "5", "--max-tokens", "12", "--ignore-eos"}).at("token_ids"),
      seeded.at("token_ids"));
}

TEST(Generate, TakesTokenIds) {
  const Json answer =
      generate({"--token-ids", "0,11,12", "--temperature", "0", "--max-tokens", "3", "--ignore-eos"});
  EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 3);
  EXPECT_EQ(answer.at("token_ids").size(), 3U);
}

TEST(Generate, BosIsAChoice) {
  const auto prompt_tokens = [](const std::string& bos) {
    return generate({"--prompt", "a", "--max-tokens", "1", "--bos", bos})
        .at("usage")
        .at("prompt_tokens")
        .get<int>();
  };
  EXPECT_EQ(prompt_tokens("on"), prompt_tokens("off") + 1);
  EXPECT_EQ(prompt_tokens("auto"), prompt_tokens("off"));  // models/tiny is "native"
}

TEST(Generate, ChatsWithAndWithoutThinking) {
  const Json plain = generate({"--chat", "Who are you?", "--temperature", "0", "--max-tokens", "40"});
  ASSERT_TRUE(plain.is_object());
  EXPECT_FALSE(plain.contains("reasoning"));
  EXPECT_EQ(plain.at("text").get<std::string>().find("<｜"), std::string::npos);
  const Json thinking =
      generate({"--chat", "Who are you?", "--temperature", "0", "--max-tokens", "40", "--thinking", "on"});
  EXPECT_TRUE(thinking.contains("reasoning"));
  const Outcome text = run_program(
      {"generate", "--model", kTiny, "--chat", "Who are you?", "--temperature", "0", "--max-tokens", "40"});
  EXPECT_EQ(text.out, plain.at("text").get<std::string>() + "\n");
  EXPECT_EQ(text.error, "");
}

TEST(Generate, StopsAtText) {
  const Json whole = generate({"--chat", "Who are you?", "--temperature", "0", "--max-tokens", "40"});
  const std::string text = whole.at("text");
  ASSERT_GT(text.size(), 8U);
  const std::string stop = text.substr(4, 3);
  const Json cut =
      generate({"--chat", "Who are you?", "--temperature", "0", "--max-tokens", "40", "--stop", stop});
  EXPECT_EQ(cut.at("text"), text.substr(0, text.find(stop)));
  EXPECT_EQ(cut.at("finish_reason"), "stop");
}

TEST(Chat, AnswersLinesAndCommands) {
  const Outcome outcome =
      run_program({"chat", "--model", kTiny, "--temperature", "0", "--max-tokens", "20", "--thinking", "off"},
                  "Who are you?\n/reset\n\n/what\nWho are you?\n/exit\nnever read\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("there is no command /what"), std::string::npos);
  // The same answer twice: /reset forgets the first turn.
  const std::string first = outcome.out.substr(0, outcome.out.find('\n') + 1);
  EXPECT_NE(outcome.out.find(first, first.size()), std::string::npos) << outcome.out;
}

TEST(Logits, AreTheSameInChunksAndWithCaptures) {
  const std::string folder = ::testing::TempDir();
  const auto logits = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"logits", "--model",    kTiny, "--token-ids", "0,11,12,13,14,15,16",
                                       "--out",  folder + name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    auto file = checkpoint::SafetensorsFile::open(folder + name);
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  };
  const auto whole = logits("whole.safetensors", {});
  const auto chunked =
      logits("chunked.safetensors", {"--chunk", "3", "--capture", "hidden,router", "--capture", "index"});
  const auto expected = whole.tensor("logits").value();
  const auto actual = chunked.tensor("logits").value();
  EXPECT_EQ(expected.shape, (std::vector<int64_t>{7, 2048}));
  ASSERT_EQ(actual.bytes, expected.bytes);
  EXPECT_EQ(std::memcmp(actual.data, expected.data, expected.bytes), 0);
  EXPECT_TRUE(chunked.tensor("streams"));
  EXPECT_TRUE(chunked.tensor("experts"));
  EXPECT_FALSE(whole.tensor("streams"));
}

TEST(Tokenize, FiltersLines) {
  const std::string file = kTiny + "/tokenizer.json";
  const Outcome ids = run_program({"tokenize", "--tokenizer", file, "--special"},
                                  "{\"id\":1,\"text\":\"Hello <think>\"}\n\n{\"id\":2,\"text\":5}\n");
  EXPECT_EQ(ids.exit_code, 0) << ids.error;
  std::istringstream lines(ids.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json first = Json::parse(line);
  EXPECT_EQ(first.at("ids").back(), 2032);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(Json::parse(line).contains("error"));
  EXPECT_FALSE(std::getline(lines, line));
  const Outcome text = run_program({"detokenize", "--tokenizer", file}, first.dump() + "\n");
  EXPECT_EQ(Json::parse(text.out).at("text"), "Hello <think>");
}

TEST(Recipe, RendersAndParsesLines) {
  const std::string file = kTiny + "/tokenizer.json";
  const Json request{{"model", "DeepSeek-V4.1-Flash"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  const Outcome rendered =
      run_program({"recipe", "render", "--tokenizer", "v41=" + file},
                  Json{{"id", "a"}, {"protocol", "chat"}, {"request", request}}.dump() + "\nnonsense\n");
  EXPECT_EQ(rendered.exit_code, 0) << rendered.error;
  const size_t end = rendered.out.find('\n');
  EXPECT_NE(Json::parse(rendered.out.substr(0, end)).at("result").at("prompt").get<std::string>().find("hi"),
            std::string::npos);
  EXPECT_TRUE(Json::parse(rendered.out.substr(end + 1)).contains("error"));
  EXPECT_TRUE(Json::parse(run_program({"recipe", "parse"}, "nonsense\n").out).contains("error"));
}

TEST(Inspect, DescribesTheCheckpointAndTheMachine) {
  const Outcome outcome = run_program({"inspect", kTiny, "--sequences", "4", "--context", "256"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  for (const char* part :
       {"DeepSeek-V4.1", "routed experts", "memory for 4 sequences of 256 tokens", "kernels: "}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(run_program({"inspect", kTiny, "--context", "100000000"}).exit_code, 1);
}

}  // namespace
}  // namespace hadal::cli::testing
