#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/maker/model_maker.hpp"

namespace troika::maker {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

std::string finish(EVP_MD_CTX* context) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context, digest, &length);
  std::string hex;
  for (unsigned i = 0; i < length; ++i)
    hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

struct Digest {
  std::uint64_t bytes = 0;
  std::string sha256;
};

Result<Digest> digest_of(const std::string& path, EVP_MD_CTX* context, const EVP_MD* algorithm) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("open", path, errno);
  Digest digest;
  EVP_DigestInit_ex(context, algorithm, nullptr);
  std::vector<char> buffer(1U << 20U);
  for (;;) {
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int reason = errno;
      ::close(fd);
      return system_error("read", path, reason);
    }
    if (got == 0) break;
    EVP_DigestUpdate(context, buffer.data(), static_cast<std::size_t>(got));
    digest.bytes += static_cast<std::uint64_t>(got);
  }
  ::close(fd);
  digest.sha256 = finish(context);
  return digest;
}

}  // namespace

Result<std::string> manifest_of(const std::string& directory, const std::string& model) {
  const std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> algorithm(EVP_MD_fetch(nullptr, "SHA256", nullptr),
                                                                  EVP_MD_free);
  const Context context(EVP_MD_CTX_new());
  if (!algorithm || !context) return Error{"use", "SHA-256", "OpenSSL does not provide it"};
  std::map<std::string, Digest> digests;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with('.') || !entry.is_regular_file()) continue;
    TROIKA_TRY(digest, digest_of(entry.path().string(), context.get(), algorithm.get()));
    digests[name] = digest;
  }
  if (error) return Error{"read", directory, error.message()};
  EVP_DigestInit_ex(context.get(), algorithm.get(), nullptr);
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& [name, digest] : digests) {
    const auto line = fmt::format("{} {} {}\n", digest.sha256, digest.bytes, name);
    EVP_DigestUpdate(context.get(), line.data(), line.size());
    files[name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  }
  const nlohmann::ordered_json manifest = {
      {"format", 1}, {"model", model}, {"revision", finish(context.get()).substr(0, 40)}, {"files", files}};
  return manifest.dump(2) + "\n";
}

}  // namespace troika::maker
