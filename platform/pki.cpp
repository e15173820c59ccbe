#include "platform/pki.hpp"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "platform/certificate.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/time.hpp"

namespace troika::platform {
namespace {

constexpr unsigned kCertificateMode = 0644;
constexpr unsigned kKeyMode = 0600;
// Nodes' clocks differ; a certificate made now must be good on a machine that is a little behind.
constexpr std::chrono::minutes kClockSlack{5};

std::string authority_certificate(const std::string& directory) {
  return directory + "/ca.crt";
}
std::string authority_key(const std::string& directory) {
  return directory + "/ca.key";
}
std::string authority_uri(const std::string& cluster) {
  return "troika://" + cluster;
}

Error openssl_error(std::string doing, std::string subject) {
  return Error{std::move(doing), std::move(subject), openssl_reason()};
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

Result<std::string> pem(X509* certificate) {
  const BioPtr bio{BIO_new(BIO_s_mem())};
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return openssl_error("write", "a certificate");
  return text_of(bio.get());
}

Result<std::string> pem(EVP_PKEY* key) {
  // Secure memory is not needed: the key goes to a file of mode 0600 at once.
  const BioPtr bio{BIO_new(BIO_s_mem())};
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_error("write", "a key");
  return text_of(bio.get());
}

struct Extension {
  int id;
  std::string value;
};

struct Request {
  std::string common_name;
  std::vector<Extension> extensions;
  WallTime made;
  WallTime until;
};

bool set_serial(X509* certificate) {
  constexpr int kBits = 127;  // positive, at most 20 bytes, never guessed twice
  BIGNUM* const number = BN_new();
  const bool good = BN_rand(number, kBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return good;
}

bool set_time(ASN1_TIME* out, WallTime time) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  return ASN1_TIME_set(out, seconds) != nullptr;
}

bool add_extensions(X509* certificate, X509* issuer, const std::vector<Extension>& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const Extension& extension : extensions) {
    X509_EXTENSION* const made =
        X509V3_EXT_conf_nid(nullptr, &context, extension.id, extension.value.c_str());
    const bool good = made != nullptr && X509_add_ext(certificate, made, -1) == 1;
    X509_EXTENSION_free(made);
    if (!good) return false;
  }
  return true;
}

// Signed by `issuer_key`; without an issuer, by itself.
Result<CertificatePtr> make_certificate(const Request& request, EVP_PKEY* key, X509* issuer,
                                        EVP_PKEY* issuer_key) {
  CertificatePtr made{X509_new()};
  X509* const certificate = made.get();
  X509* const parent = issuer != nullptr ? issuer : certificate;
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const auto text = [&](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0) == 1;
  };
  constexpr long kVersion3 = 2;
  const bool good = X509_set_version(certificate, kVersion3) == 1 && set_serial(certificate) &&
                    set_time(X509_getm_notBefore(certificate), request.made - kClockSlack) &&
                    set_time(X509_getm_notAfter(certificate), request.until) && text("O", "Troika") &&
                    text("CN", request.common_name) && X509_set_pubkey(certificate, key) == 1 &&
                    X509_set_issuer_name(certificate, X509_get_subject_name(parent)) == 1 &&
                    add_extensions(certificate, parent, request.extensions) &&
                    X509_sign(certificate, issuer_key, EVP_sha256()) > 0;
  if (!good) return openssl_error("make the certificate", request.common_name);
  return made;
}

Result<KeyPtr> make_key() {
  KeyPtr key{EVP_EC_gen("P-256")};
  if (key == nullptr) return openssl_error("make", "a P-256 key");
  return key;
}

bool exists(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}

// The key first: a certificate without its key would look complete and be of no use.
Status write_pair(const IssuedFiles& files, X509* certificate, EVP_PKEY* key) {
  for (const std::string& path : {files.certificate, files.key})
    if (exists(path)) return Error{"create", path, "it exists, and is never overwritten"};
  TROIKA_TRY(key_text, pem(key));
  TROIKA_TRY(certificate_text, pem(certificate));
  TROIKA_CHECK(create_file_durably(files.key, key_text, kKeyMode));
  const Status written = create_file_durably(files.certificate, certificate_text, kCertificateMode);
  if (!written.ok()) std::filesystem::remove(files.key);  // made just now by this call
  return written;
}

Status check_valid(Duration valid) {
  // 100 years: later dates only come from a slip of the pen.
  constexpr Duration kLongest = std::chrono::hours{24 * 36500};
  if (valid >= std::chrono::seconds{1} && valid <= kLongest) return Done{};
  return Error{"make a certificate valid for", duration_text(valid), "1s to 36500d are allowed"};
}

WallTime end_of(WallTime now, Duration valid) {
  return now + std::chrono::duration_cast<std::chrono::milliseconds>(valid);
}

Result<CertificatePtr> read_authority(const std::string& directory) {
  auto found = read_certificates(authority_certificate(directory));
  if (!found.ok()) return found.error();
  return std::move(found->front());
}

// Why a certificate is not the authority's own work; empty: it is. The authority has signed itself.
std::string stranger(X509* certificate, const Result<CertificatePtr>& authority) {
  if (!authority.ok()) return "cannot be checked: " + authority.error().message();
  X509* const signer = authority->get();
  const bool issued = X509_check_issued(signer, certificate) == X509_V_OK &&
                      X509_verify(certificate, X509_get0_pubkey(signer)) == 1;
  ERR_clear_error();
  return issued ? "" : "not signed by ca.crt of this folder";
}

Result<std::string> cluster_of_authority(X509* authority, const std::string& directory) {
  const auto uris = troika_uris(authority);
  if (uris.size() == 1 &&
      check_name("cluster", std::string_view(uris.front()).substr(kIdentityScheme.size())).ok())
    return uris.front().substr(kIdentityScheme.size());
  return Error{"use the authority", authority_certificate(directory), "it was not made by troika pki init"};
}

}  // namespace

Status make_authority(const std::string& directory, const std::string& cluster, Duration valid) {
  TROIKA_CHECK(check_name("cluster", cluster));
  TROIKA_CHECK(check_valid(valid));
  TROIKA_CHECK(make_directories(directory));
  TROIKA_TRY(key, make_key());
  const WallTime now = wall_now();
  const Request request{"Troika authority of " + cluster,
                        {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                         {NID_key_usage, "critical,keyCertSign,cRLSign"},
                         {NID_subject_key_identifier, "hash"},
                         {NID_subject_alt_name, "URI:" + authority_uri(cluster)}},
                        now,
                        end_of(now, valid)};
  TROIKA_TRY(certificate, make_certificate(request, key.get(), nullptr, key.get()));
  return write_pair({authority_certificate(directory), authority_key(directory)}, certificate.get(),
                    key.get());
}

Result<std::string> authority_cluster(const std::string& directory) {
  TROIKA_TRY(authority, read_authority(directory));
  return cluster_of_authority(authority.get(), directory);
}

Result<IssuedFiles> issue(const std::string& directory, const Identity& identity, Duration valid) {
  return issue(directory, identity, valid, wall_now());
}

Result<IssuedFiles> issue(const std::string& directory, const Identity& identity, Duration valid,
                          WallTime now) {
  TROIKA_CHECK(parse_identity_uri(uri(identity)));
  TROIKA_CHECK(check_valid(valid));
  if (identity.name == "ca")
    return Error{"issue for", "\"ca\"", "the name is taken by the authority's own files"};
  TROIKA_TRY(authority, read_authority(directory));
  TROIKA_TRY(authority_private, read_key(authority_key(directory)));
  TROIKA_TRY(cluster, cluster_of_authority(authority.get(), directory));
  if (cluster != identity.cluster)
    return Error{"issue for cluster", identity.cluster,
                 "the authority in " + directory + " is of " + cluster};
  if (end_of(now, valid) > not_after(authority.get()))
    return Error{"issue for", uri(identity),
                 "the authority itself ends before, at " + rfc3339(not_after(authority.get()))};
  TROIKA_TRY(key, make_key());
  const Request request{identity.name,
                        {{NID_basic_constraints, "critical,CA:FALSE"},
                         {NID_key_usage, "critical,digitalSignature"},
                         {NID_ext_key_usage, "serverAuth,clientAuth"},
                         {NID_subject_key_identifier, "hash"},
                         {NID_authority_key_identifier, "keyid"},
                         {NID_subject_alt_name, "URI:" + uri(identity)}},
                        now,
                        end_of(now, valid)};
  TROIKA_TRY(certificate, make_certificate(request, key.get(), authority.get(), authority_private.get()));
  IssuedFiles files{directory + "/" + identity.name + ".crt", directory + "/" + identity.name + ".key"};
  TROIKA_CHECK(write_pair(files, certificate.get(), key.get()));
  return files;
}

Result<std::vector<CertificateFacts>> list_certificates(const std::string& directory) {
  std::error_code failed;
  std::vector<CertificateFacts> list;
  const Result<CertificatePtr> authority = read_authority(directory);
  for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string path = at->path().string();
    if (!path.ends_with(".crt")) continue;
    CertificateFacts facts;
    facts.path = path;
    if (const auto found = read_certificates(path); !found.ok()) {
      facts.problem = found.error().message();
    } else {
      X509* const certificate = found->front().get();
      const auto uris = troika_uris(certificate);
      facts.subject = uris.size() == 1 ? uris.front() : "";
      facts.problem = facts.subject.empty() ? "not made by troika pki" : stranger(certificate, authority);
      facts.valid_from = not_before(certificate);
      facts.valid_until = not_after(certificate);
    }
    list.push_back(std::move(facts));
  }
  if (failed) return Error{"list", directory, failed.message()};
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return list;
}

}  // namespace troika::platform
