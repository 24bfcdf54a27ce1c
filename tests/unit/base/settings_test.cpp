#include "base/settings.h"

#include <set>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/setting_values.h"

namespace hadal {
namespace {

using namespace std::chrono_literals;

LoadedSettings load(const TextMap& environment, const TextMap& flags = {}) {
  auto loaded = load_settings(environment, flags);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? *loaded : LoadedSettings{};
}

std::string error_of(const TextMap& environment, const TextMap& flags = {}) {
  const auto loaded = load_settings(environment, flags);
  return loaded ? "" : loaded.error().message;
}

std::string source_of(const LoadedSettings& settings, std::string_view name) {
  for (const auto& entry : settings.entries) {
    if (entry.info.name == name) {
      return entry.source;
    }
  }
  return "none";
}

TEST(Settings, DefaultsAreValidAndSensible) {
  const LoadedSettings settings = load({});
  EXPECT_EQ(settings.values.server.host, "127.0.0.1");
  EXPECT_EQ(settings.values.server.port, 8000);
  EXPECT_EQ(settings.values.server.max_body_bytes, 64U << 20U);
  EXPECT_EQ(settings.values.server.keep_alive_interval, 10s);
  EXPECT_TRUE(settings.values.server.default_thinking);
  EXPECT_EQ(settings.values.model.model, "");
  EXPECT_EQ(settings.values.log.level, "info");
  for (const auto& entry : settings.entries) {
    EXPECT_EQ(entry.source, "default") << entry.info.name;
  }
}

TEST(Settings, AFlagWinsOverTheEnvironmentAndThatOverTheDefault) {
  const TextMap environment{{"HADAL_PORT", "81"}, {"HADAL_THREADS", "3"}, {"HADAL_HOST", ""}};
  const LoadedSettings settings = load(environment, {{"--port", "82"}});
  EXPECT_EQ(settings.values.server.port, 82);
  EXPECT_EQ(source_of(settings, "server.port"), "flag --port");
  EXPECT_EQ(settings.values.threads.compute, 3);
  EXPECT_EQ(source_of(settings, "threads.compute"), "environment HADAL_THREADS");
  EXPECT_EQ(settings.values.server.host, "127.0.0.1");  // empty counts as unset
}

TEST(Settings, NamesOfTheReferenceAreAliases) {
  const LoadedSettings settings = load({{"DEEPINFER_HF_MODEL_DIR", "/m"},
                                        {"DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE", "compact"},
                                        {"DEEPINFER_YOCO_PREFILL_KEEP_TOKENS", "150"},
                                        {"DEEPINFER_NCCL_NUM_SMS", "32"},
                                        {"HADAL_PROT", "80"}});
  EXPECT_EQ(settings.values.model.model, "/m");
  EXPECT_EQ(settings.values.model.replay, "compact");
  EXPECT_EQ(settings.values.model.replay_keep, 150);
  EXPECT_EQ(settings.unused_environment, (std::vector<std::string>{"DEEPINFER_NCCL_NUM_SMS", "HADAL_PROT"}));
  EXPECT_EQ(load({{"DEEPINFER_HF_MODEL_DIR", "/m"}, {"HADAL_MODEL", "/n"}}).values.model.model, "/n");
}

TEST(Settings, ErrorsNameVariableValueAndForm) {
  EXPECT_EQ(error_of({{"HADAL_PORT", "70000"}}), "HADAL_PORT: '70000' is not a whole number from 0 to 65535");
  EXPECT_EQ(error_of({}, {{"--port", "x"}}), "--port: 'x' is not a whole number from 0 to 65535");
  EXPECT_EQ(error_of({{"HADAL_REPLAY", "on"}}), "HADAL_REPLAY: 'on' is not one of off, mask, compact");
  EXPECT_EQ(error_of({{"HADAL_PIN_THREADS", "maybe"}}), "HADAL_PIN_THREADS: 'maybe' is not on or off");
  EXPECT_EQ(error_of({{"DEEPINFER_YOCO_PREFILL_KEEP_TOKENS", "-1"}}).substr(0, 40),
            "DEEPINFER_YOCO_PREFILL_KEEP_TOKENS: '-1'");
  for (const SettingInfo& info : setting_infos()) {
    // Free text, such as a key, has no wrong form.
    if (info.form.starts_with("a whole number") || info.form == kSizeForm || info.form == kDurationForm ||
        info.is_switch) {
      const std::string error = error_of({{info.environment, "?"}});
      EXPECT_TRUE(error.starts_with(info.environment + ": ")) << info.name << ": " << error;
    }
  }
}

TEST(Settings, TheKeyIsNeverShown) {
  const LoadedSettings settings = load({{"HADAL_API_KEY", "sk-secret"}});
  EXPECT_EQ(settings.values.server.api_key, "sk-secret");
  EXPECT_EQ(print_settings(settings).find("sk-secret"), std::string::npos);
  EXPECT_NE(print_settings(settings).find("(set)"), std::string::npos);
  const std::string error = error_of({{"HADAL_API_KEY", "sk-\nsecret"}});
  EXPECT_TRUE(error.starts_with("HADAL_API_KEY: ")) << error;
  EXPECT_EQ(error.find("secret"), std::string::npos);
}

TEST(Settings, TheHubCacheFollowsTheRulesOfHuggingFace) {
  const TextMap home{{"HOME", "/home/u"}};
  std::string variable;
  EXPECT_EQ(hub_cache_directory(home, variable), "/home/u/.cache/huggingface/hub");
  EXPECT_EQ(variable, "");
  TextMap environment = home;
  environment["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(hub_cache_directory(environment, variable), "/x/huggingface/hub");
  environment["HF_HOME"] = "~/hf";
  EXPECT_EQ(hub_cache_directory(environment, variable), "/home/u/hf/hub");
  environment["HF_HUB_CACHE"] = "/hub";
  EXPECT_EQ(hub_cache_directory(environment, variable), "/hub");
  EXPECT_EQ(variable, "HF_HUB_CACHE");
  const LoadedSettings settings = load(environment);
  EXPECT_EQ(settings.values.model.hub_cache, "/hub");
  EXPECT_EQ(source_of(settings, "model.hub_cache"), "environment HF_HUB_CACHE");
  EXPECT_EQ(load(environment, {{"--hub-cache", "/mine"}}).values.model.hub_cache, "/mine");
}

TEST(Settings, NamesAreUniqueAndDocumented) {
  const auto docs = read_text_file(HADAL_MODELS "/../docs/settings.md", 1 << 20);
  ASSERT_TRUE(docs) << docs.error().message;
  std::set<std::string> seen;
  for (const SettingInfo& info : setting_infos()) {
    std::vector<std::string> names = info.aliases;
    names.insert(names.end(), {info.name, info.flag, info.environment});
    for (const std::string& name : names) {
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_NE(docs->find("`" + name + "`"), std::string::npos) << "docs/settings.md lacks " << name;
    }
    EXPECT_FALSE(info.help.empty());
    EXPECT_FALSE(info.form.empty()) << info.name;
    EXPECT_TRUE(info.default_text.empty() || docs->find(info.default_text) != std::string::npos) << info.name;
  }
}

TEST(SettingValues, ReadsSizes) {
  EXPECT_EQ(parse_size_setting("0").value(), 0U);
  EXPECT_EQ(parse_size_setting("5").value(), 5U);
  EXPECT_EQ(parse_size_setting("2K").value(), 2048U);
  EXPECT_EQ(parse_size_setting("64 MiB").value(), 64U << 20U);
  EXPECT_EQ(parse_size_setting("3T").value(), uint64_t{3} << 40U);
  for (const char* bad : {"", "-1", "1.5G", "MiB", "1X", "99999999999999999999", "9999999999T", "1 M iB"}) {
    EXPECT_FALSE(parse_size_setting(bad)) << bad;
  }
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{1024}, uint64_t{1536}, uint64_t{64} << 20U, uint64_t{5} << 40U}) {
    EXPECT_EQ(parse_size_setting(print_size_setting(bytes)).value(), bytes);
  }
}

TEST(SettingValues, ReadsDurations) {
  EXPECT_EQ(parse_duration_setting("30").value(), 30s);
  EXPECT_EQ(parse_duration_setting("1.5").value(), 1500ms);
  EXPECT_EQ(parse_duration_setting("250ms").value(), 250ms);
  EXPECT_EQ(parse_duration_setting("2 m").value(), 2min);
  EXPECT_EQ(parse_duration_setting("1h").value(), 1h);
  for (const char* bad : {"", "-1", "x", "1d", "1e9h", "nan", "inf", "721h"}) {
    EXPECT_FALSE(parse_duration_setting(bad)) << bad;
  }
}

TEST(SettingValues, ReadsLists) {
  EXPECT_EQ(parse_list_setting("a, b,c").value(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(parse_list_setting(" ").value().empty());
  EXPECT_FALSE(parse_list_setting("a,,b"));
  EXPECT_FALSE(parse_list_setting(","));
}

TEST(SettingValues, ReadsSwitches) {
  EXPECT_TRUE(parse_switch_setting("on").value());
  EXPECT_FALSE(parse_switch_setting("False").value());
  EXPECT_FALSE(parse_switch_setting("").value());
  EXPECT_FALSE(parse_switch_setting("2"));
}

}  // namespace
}  // namespace hadal
