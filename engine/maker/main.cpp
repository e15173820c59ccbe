// troika-model-maker: writes a small DeepSeek V3 model. Exit codes: 0 written, 1 not, 2 usage.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "engine/maker/model_maker.hpp"
#include "engine/maker/shard_writer.hpp"

namespace {

int fail(const troika::Error& error) {
  std::fprintf(stderr, "troika-model-maker: %s\n", error.message().c_str());
  return 1;
}

// The tiny model's figures must be in place before the other options are read over them.
bool wants_tiny(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--tiny") return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace troika;
  auto o = wants_tiny(argc, argv) ? maker::tiny_model() : maker::MakerOptions{};
  std::string out;
  std::string manifest;
  CLI::App app{"Writes a small DeepSeek V3 model with seeded weights into an empty directory."};
  app.set_version_flag("--version", std::string("troika-model-maker ") + TROIKA_VERSION);
  app.option_defaults()->always_capture_default();
  app.add_option("--out", out, "directory to write to")->required()->capture_default_str();
  app.add_option("--manifest", manifest, "also write the manifest of the files here");
  bool tiny = false;
  app.add_flag("--tiny", tiny, "5 layers, hidden 32: for tests");
  app.add_option("--seed", o.seed, "the same seed gives the same bytes");
  app.add_option("--name", o.name, "the model's name in the manifest");
  app.add_option("--layers", o.layers, "num_hidden_layers");
  app.add_option("--shards", o.shards, "safetensors files, at most layers + 3");
  app.add_option("--hidden", o.hidden, "hidden_size");
  app.add_option("--heads", o.heads, "num_attention_heads");
  app.add_option("--q-lora", o.q_lora, "q_lora_rank, 0 for none");
  app.add_option("--kv-lora", o.kv_lora, "kv_lora_rank");
  app.add_option("--nope", o.nope, "qk_nope_head_dim");
  app.add_option("--rope", o.rope, "qk_rope_head_dim");
  app.add_option("--v-head", o.v_head, "v_head_dim");
  app.add_option("--intermediate", o.intermediate, "intermediate_size");
  app.add_option("--moe-intermediate", o.moe_intermediate, "moe_intermediate_size");
  app.add_option("--experts", o.experts, "n_routed_experts");
  app.add_option("--experts-per-token", o.experts_per_token, "num_experts_per_tok");
  app.add_option("--shared-experts", o.shared_experts, "n_shared_experts");
  app.add_option("--groups", o.groups, "n_group");
  app.add_option("--topk-groups", o.topk_groups, "topk_group");
  app.add_option("--first-dense", o.first_dense, "first_k_dense_replace");
  app.add_option("--merges", o.merges, "merges of the tokenizer, at most");
  app.add_option("--yarn", o.yarn, "rope_scaling yarn or none");
  app.add_option("--yarn-factor", o.yarn_factor, "rope_scaling.factor");
  app.add_option("--original-max-position", o.original_max_position,
                 "rope_scaling.original_max_position_embeddings");
  app.add_option("--max-position", o.max_position, "max_position_embeddings");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto made = maker::make_model(out, o, [&](std::uint32_t done, std::uint32_t all) {
    if (terminal) std::fprintf(stderr, "\r%u/%u shards%s", done, all, done == all ? "\n" : "");
  });
  if (!made.ok()) return fail(made.error());
  if (!manifest.empty()) {
    const auto text = maker::manifest_of(out, o.name);
    if (!text.ok()) return fail(text.error());
    if (const auto written = maker::write_file(manifest, *text); !written.ok()) return fail(written.error());
  }
  std::printf("%s: %u files, %llu bytes\n", out.c_str(), made->files,
              static_cast<unsigned long long>(made->bytes));
  return 0;
}
