#include "agent/stage/stage_file.hpp"

#include <nlohmann/json.hpp>

#include "platform/files.hpp"

namespace troika::agent {

using Json = nlohmann::json;

std::string write(const StageFile& file) {
  const Json json{{"format", 1},
                  {"engine", file.engine},
                  {"stage", text(file.plan.stage)},
                  {"epoch", file.plan.epoch.count},
                  {"model", file.plan.model},
                  {"context_length", file.plan.context_length.count},
                  {"chunked_prefill", file.plan.chunked_prefill.count},
                  {"max_running", file.plan.max_running},
                  {"layers", file.plan.layers},
                  {"next_link", file.plan.next_link},
                  {"api", file.api},
                  {"link", file.link}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<StageFile> read_stage_file(const std::string& path) {
  TROIKA_TRY(content, platform::read_file(path, Bytes{1u << 20}));
  const Error bad{"read the stage's file", path, "not in the form that was written"};
  try {
    const Json json = Json::parse(content);
    if (json.at("format") != 1) return bad;
    TROIKA_TRY(stage, parse_stage_id(json.at("stage").get<std::string>()));
    StageFile file;
    file.engine = json.at("engine").get<std::string>();
    file.plan.stage = stage;
    file.plan.epoch = Epoch{json.at("epoch").get<std::uint64_t>()};
    file.plan.model = json.at("model").get<std::string>();
    file.plan.context_length = Tokens{json.at("context_length").get<std::uint64_t>()};
    file.plan.chunked_prefill = Tokens{json.at("chunked_prefill").get<std::uint64_t>()};
    file.plan.max_running = json.at("max_running").get<std::uint32_t>();
    file.plan.layers = json.at("layers").get<std::vector<std::uint32_t>>();
    file.plan.next_link = json.at("next_link").get<std::string>();
    file.api = json.at("api").get<std::string>();
    file.link = json.at("link").get<std::string>();
    return file;
  } catch (const Json::exception&) {
    return bad;
  }
}

}  // namespace troika::agent
