#include "engine/native/service/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <filesystem>

namespace troika::native {
namespace {

Error usage(std::string option, std::string reason) {
  return Error{"use", std::move(option), std::move(reason)};
}

Result<LayerRange> parse_layers(std::string_view text) {
  LayerRange range;
  const auto colon = text.find(':');
  const auto number = [](std::string_view digits, std::uint32_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
  };
  if (colon == std::string_view::npos || !number(text.substr(0, colon), range.begin) ||
      !number(text.substr(colon + 1), range.end) || range.begin >= range.end) {
    return usage("--layers " + std::string(text), "must be BEGIN:END with BEGIN below END");
  }
  return range;
}

bool loopback(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

struct Texts {
  std::string layers, link_listen, link_next, api;
};

Status take(StageOptions& o, const Texts& texts) {
  TROIKA_CHECK(check_name("cluster", o.cluster));
  TROIKA_CHECK(check_name("replica", o.replica));
  if (o.rank >= o.ranks) return usage("--rank " + std::to_string(o.rank), "must be below --ranks");
  if (!texts.layers.empty()) {
    TROIKA_TRY(range, parse_layers(texts.layers));
    o.layers = range;
  } else if (o.ranks > 1) {
    return usage("--ranks", "needs --layers");
  }
  if (o.ranks > 1) {
    if (texts.link_listen.empty() || texts.link_next.empty() || o.link_key_file.empty()) {
      return usage("--ranks", "above 1 needs --link-listen, --link-next and --link-key-file");
    }
    TROIKA_TRY(listen, parse_host_port(texts.link_listen));
    TROIKA_TRY(next, parse_host_port(texts.link_next));
    o.link_listen = listen;
    o.link_next = next;
  }
  if (o.first() == texts.api.empty())
    return usage("--api", o.first() ? "rank 0 needs it" : "only rank 0 has an API");
  if (o.first()) {
    TROIKA_TRY(api, parse_host_port(texts.api));
    // Plain HTTP without authentication: the agent relays to it.
    if (!loopback(api.host)) return usage("--api " + texts.api, "must be a loopback address");
    o.api = api;
  }
  return Done{};
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  StageOptions o;
  Texts texts;
  CLI::App app{"One stage of a pipeline: runs a range of layers of a DeepSeek V3 model."};
  app.set_version_flag("--version", std::string("troika-stage ") + TROIKA_VERSION);
  app.add_option("--model", o.model, "model directory")->required();
  app.add_option("--cluster", o.cluster, "name of the cluster");
  app.add_option("--replica", o.replica, "name of the replica");
  app.add_option("--rank", o.rank, "position in the pipeline, from 0");
  app.add_option("--ranks", o.ranks, "stages of the replica")->check(CLI::Range(1, 1024));
  app.add_option("--epoch", o.epoch, "number of this start of the replica");
  app.add_option("--layers", texts.layers, "BEGIN:END, END not included");
  app.add_option("--link-listen", texts.link_listen, "HOST:PORT where the previous rank dials");
  app.add_option("--link-next", texts.link_next, "HOST:PORT of the next rank (of rank 0 for the last)");
  app.add_option("--link-key-file", o.link_key_file, "file with the links' key: 64 hex digits");
  app.add_option("--api", texts.api, "HOST:PORT of the HTTP API, on loopback; rank 0 only");
  app.add_option("--context-length", o.context_length,
                 "tokens of prompt and output; default: as the model allows");
  app.add_option("--chunked-prefill", o.chunked_prefill, "token rows of a step")->check(CLI::Range(1, 65536));
  app.add_option("--max-running", o.max_running, "sequences at a time")->check(CLI::Range(1, 1024));
  app.add_option("--kv-budget-bytes", o.kv_budget_bytes,
                 "bytes of the KV cache; default: enough, at most 256 MiB");
  app.add_option("--served-model-name", o.served_model_name, "name in the API; default: the directory's");
  app.add_option("--threads", o.threads, "threads that compute")->check(CLI::Range(1, 256));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, app.exit(error) == 0 ? 0 : 2};
  }
  if (const auto taken = take(o, texts); !taken.ok()) {
    std::fprintf(stderr, "troika-stage: %s\n", taken.error().message().c_str());
    return {std::nullopt, 2};
  }
  return {o, 0};
}

Status complete(StageOptions& o, const ModelConfig& config) {
  if (!o.layers) o.layers = LayerRange{0, config.layers};
  const auto layers = std::to_string(o.layers->begin) + ":" + std::to_string(o.layers->end);
  if (o.layers->end > config.layers) {
    return usage("--layers " + layers, "the model has layers 0:" + std::to_string(config.layers));
  }
  if (o.first() != (o.layers->begin == 0) || o.last() != (o.layers->end == config.layers)) {
    return usage("--layers " + layers, "rank 0 alone begins at layer 0, the last rank alone ends at layer " +
                                           std::to_string(config.layers));
  }
  if (o.context_length == 0) o.context_length = config.max_position;
  if (o.context_length > config.max_position) {
    return usage("--context-length " + std::to_string(o.context_length),
                 "the model's max_position_embeddings is " + std::to_string(config.max_position));
  }
  if (o.served_model_name.empty()) {
    auto path = std::filesystem::path(o.model).lexically_normal();
    o.served_model_name =
        path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  }
  if (kv_tokens(o, config) == 0) return usage("--kv-budget-bytes", "below one page of 16 tokens");
  return Done{};
}

std::uint64_t kv_tokens(const StageOptions& o, const ModelConfig& config) {
  const auto token_bytes = std::uint64_t{o.layers->size()} * config.kv_entry() * sizeof(float);
  const auto whole = [](std::uint64_t tokens) { return tokens / kPageTokens * kPageTokens; };
  if (o.kv_budget_bytes != 0) return whole(o.kv_budget_bytes / token_bytes);
  const auto context = (std::uint64_t{o.context_length} + kPageTokens - 1) / kPageTokens * kPageTokens;
  return whole(std::min(context * o.max_running, kDefaultKvBytes / token_bytes));
}

}  // namespace troika::native
