// X.509 certificates by OpenSSL: owning pointers, and what Troika reads from them. For platform/ only.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "platform/tls.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::platform {

struct OpensslFree {
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
  void operator()(BIO* p) const { BIO_free_all(p); }
};
using CertificatePtr = std::unique_ptr<X509, OpensslFree>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree>;
using StorePtr = std::unique_ptr<X509_STORE, OpensslFree>;
using BioPtr = std::unique_ptr<BIO, OpensslFree>;

// Certificates, keys and their chains are a few KiB.
inline constexpr Bytes kMaxPemFile{1u << 20};

// The oldest entry of OpenSSL's error queue as text; empties the queue.
std::string openssl_reason();

// Errors name the file. At least one certificate; the first is the file's own.
Result<std::vector<CertificatePtr>> read_certificates(const std::string& path);
// Refused if others than the owner may read or write the file. Keys with a passphrase are refused.
Result<KeyPtr> read_key(const std::string& path);

// The URI names of the subject alternative names that begin with troika://.
std::vector<std::string> troika_uris(X509* certificate);
// Of exactly one URI; a certificate with several could be two peers at once.
Result<Identity> identity_of(X509* certificate);

WallTime not_before(X509* certificate);
WallTime not_after(X509* certificate);

}  // namespace troika::platform
