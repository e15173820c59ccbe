#include "platform/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>

#include "platform/certificate.hpp"
#include "platform/clock.hpp"
#include "vocabulary/time.hpp"

namespace troika::platform {
namespace {

// An authority and the peer's own certificate: no intermediates are made, and none are needed.
constexpr int kVerifyDepth = 2;

Status check_times(X509* certificate, const std::string& path) {
  const WallTime now_wall = wall_now();
  const WallTime from = not_before(certificate);
  const WallTime until = not_after(certificate);
  const std::string times = "valid from " + rfc3339(from) + " to " + rfc3339(until) + ", and it is " +
                            rfc3339(now_wall) + " on this machine";
  if (now_wall < from) return Error{"use the certificate", path, "not yet valid: " + times};
  if (now_wall > until) return Error{"use the certificate", path, "expired: " + times};
  return Done{};
}

Status check_signed(X509* certificate, const std::vector<CertificatePtr>& authorities,
                    const TlsFiles& files) {
  const StorePtr store{X509_STORE_new()};
  const std::unique_ptr<X509_STORE_CTX, OpensslFree> attempt{X509_STORE_CTX_new()};
  TROIKA_INVARIANT(store != nullptr && attempt != nullptr);
  for (const CertificatePtr& authority : authorities)
    TROIKA_INVARIANT(X509_STORE_add_cert(store.get(), authority.get()) == 1);
  TROIKA_INVARIANT(X509_STORE_CTX_init(attempt.get(), store.get(), certificate, nullptr) == 1);
  if (X509_verify_cert(attempt.get()) == 1) return Done{};
  const std::string reason = X509_verify_cert_error_string(X509_STORE_CTX_get_error(attempt.get()));
  ERR_clear_error();
  return Error{"use the certificate", files.certificate, "not signed by " + files.ca + ": " + reason};
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::load(const TlsFiles& files) {
  TROIKA_TRY(authorities, read_certificates(files.ca));
  TROIKA_TRY(chain, read_certificates(files.certificate));
  TROIKA_TRY(key, read_key(files.key));
  X509* const own = chain.front().get();
  for (const CertificatePtr& authority : authorities)
    TROIKA_CHECK(check_times(authority.get(), files.ca));
  TROIKA_CHECK(check_times(own, files.certificate));
  ERR_clear_error();
  if (X509_check_private_key(own, key.get()) != 1) {
    ERR_clear_error();
    return Error{"use the key", files.key, "it does not belong to the certificate " + files.certificate};
  }
  TROIKA_CHECK(check_signed(own, authorities, files));
  auto identity = identity_of(own);
  if (!identity.ok()) return Error{"use the certificate", files.certificate, identity.error().reason};

  auto context = std::make_unique<boost::asio::ssl::context>(boost::asio::ssl::context::tls);
  SSL_CTX* const raw = context->native_handle();
  bool good = SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) == 1 &&
              SSL_CTX_use_certificate(raw, own) == 1 && SSL_CTX_use_PrivateKey(raw, key.get()) == 1;
  for (const CertificatePtr& authority : authorities)
    good = good && X509_STORE_add_cert(SSL_CTX_get_cert_store(raw), authority.get()) == 1;
  if (!good) return Error{"use the certificate", files.certificate, openssl_reason()};
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(raw, kVerifyDepth);
  // A resumed session would skip the check of the certificate: none are kept, and no tickets are sent.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  // Every frame has a length, so that a cut is seen without TLS's own end.
  SSL_CTX_set_options(raw, SSL_OP_IGNORE_UNEXPECTED_EOF);
  return std::make_shared<TlsContext>(std::move(context), *std::move(identity));
}

TlsContext::TlsContext(std::unique_ptr<boost::asio::ssl::context> context, Identity identity)
    : context_(std::move(context)), identity_(std::move(identity)) {}

TlsContext::~TlsContext() = default;

}  // namespace troika::platform
