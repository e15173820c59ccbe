#include "platform/certificate.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cerrno>

#include "platform/files.hpp"

namespace troika::platform {
namespace {

WallTime wall_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  const std::chrono::year_month_day day{std::chrono::year{parts.tm_year + 1900},
                                        std::chrono::month{static_cast<unsigned>(parts.tm_mon + 1)},
                                        std::chrono::day{static_cast<unsigned>(parts.tm_mday)}};
  return WallTime{std::chrono::sys_days{day}} + std::chrono::hours{parts.tm_hour} +
         std::chrono::minutes{parts.tm_min} + std::chrono::seconds{parts.tm_sec};
}

Result<BioPtr> open_pem(const std::string& path) {
  TROIKA_TRY(text, read_file(path, kMaxPemFile));
  // A memory BIO that owns a copy: the text ends with this function.
  BioPtr bio{BIO_new(BIO_s_mem())};
  TROIKA_INVARIANT(bio != nullptr);
  TROIKA_INVARIANT(BIO_write(bio.get(), text.data(), static_cast<int>(text.size())) ==
                   static_cast<int>(text.size()));
  ERR_clear_error();
  return bio;
}

// Never asks at a terminal: a daemon has none.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given by OpenSSL";
  const char* const reason = ERR_reason_error_string(code);
  if (reason != nullptr) return reason;
  constexpr std::size_t kRoom = 256;
  char text[kRoom];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

Result<std::vector<CertificatePtr>> read_certificates(const std::string& path) {
  TROIKA_TRY(bio, open_pem(path));
  std::vector<CertificatePtr> certificates;
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr))
    certificates.emplace_back(one);
  const unsigned long last = ERR_peek_last_error();
  ERR_clear_error();
  const bool ended = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (certificates.empty() || !ended)
    return Error{"read the certificate", path, "not a certificate in PEM form"};
  return certificates;
}

Result<KeyPtr> read_key(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return system_error("open", path, errno);
  constexpr mode_t kOthers = S_IROTH | S_IWOTH;
  if ((facts.st_mode & kOthers) != 0)
    return Error{"use the key", path, "others than its owner may read or write it; chmod 600 is expected"};
  TROIKA_TRY(bio, open_pem(path));
  KeyPtr key{PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr)};
  ERR_clear_error();
  if (key == nullptr)
    return Error{"read the key", path, "not a private key in PEM form without a passphrase"};
  return key;
}

std::vector<std::string> troika_uris(X509* certificate) {
  std::vector<std::string> found;
  GENERAL_NAMES* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const entry = sk_GENERAL_NAME_value(names, i);
    if (entry->type != GEN_URI) continue;
    const ASN1_IA5STRING* const text = entry->d.uniformResourceIdentifier;
    std::string uri_text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                         static_cast<std::size_t>(ASN1_STRING_length(text)));
    if (uri_text.starts_with(kIdentityScheme)) found.push_back(std::move(uri_text));
  }
  GENERAL_NAMES_free(names);
  return found;
}

Result<Identity> identity_of(X509* certificate) {
  const std::vector<std::string> uris = troika_uris(certificate);
  if (uris.size() != 1)
    return Error{"read the identity", "of the certificate",
                 std::to_string(uris.size()) + " names troika://CLUSTER/ROLE/NAME where one is expected"};
  return parse_identity_uri(uris.front());
}

WallTime not_before(X509* certificate) {
  return wall_time(X509_get0_notBefore(certificate));
}
WallTime not_after(X509* certificate) {
  return wall_time(X509_get0_notAfter(certificate));
}

}  // namespace troika::platform
