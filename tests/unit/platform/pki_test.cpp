#include "platform/pki.hpp"

#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "platform/certificate.hpp"
#include "platform/clock.hpp"
#include "tests/unit/platform/net.hpp"

namespace troika::platform {
namespace {

unsigned mode_of(const std::string& path) {
  struct stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 0777;
}

CertificatePtr read_one(const std::string& path) {
  auto found = read_certificates(path);
  EXPECT_TRUE(found.ok()) << found.error().message();
  return std::move(found->front());
}

TEST(Pki, TheAuthorityMaySignAndNothingElse) {
  const Folder folder;
  ASSERT_TRUE(make_authority(folder / "new/pki", "lab", kYear).ok());  // with its parents
  const auto authority = read_one(folder / "new/pki/ca.crt");
  EXPECT_EQ(X509_check_ca(authority.get()), 1);
  EXPECT_EQ(X509_get_key_usage(authority.get()), static_cast<unsigned>(KU_KEY_CERT_SIGN | KU_CRL_SIGN));
  EXPECT_EQ(X509_get_pathlen(authority.get()), 0);
  EXPECT_EQ(mode_of(folder / "new/pki/ca.key"), 0600u);
  EXPECT_EQ(mode_of(folder / "new/pki/ca.crt"), 0644u);
  const auto cluster = authority_cluster(folder / "new/pki");
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(*cluster, "lab");
}

TEST(Pki, ACertificateServesBothSidesAndSignsNothing) {
  Certificates lab("lab");
  const TlsFiles files = lab.files(Role::Agent, "spark-1", std::chrono::hours{24 * 30});
  const auto certificate = read_one(files.certificate);
  EXPECT_EQ(mode_of(files.key), 0600u);
  EXPECT_EQ(X509_check_ca(certificate.get()), 0);
  EXPECT_EQ(X509_get_key_usage(certificate.get()), static_cast<unsigned>(KU_DIGITAL_SIGNATURE));
  EXPECT_EQ(X509_get_extended_key_usage(certificate.get()),
            static_cast<unsigned>(XKU_SSL_SERVER | XKU_SSL_CLIENT));
  EXPECT_EQ(X509_get_signature_nid(certificate.get()), NID_ecdsa_with_SHA256);
  EXPECT_EQ(EVP_PKEY_get_bits(X509_get0_pubkey(certificate.get())), 256);
  const auto identity = identity_of(certificate.get());
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(*identity, (Identity{"lab", Role::Agent, "spark-1"}));
  EXPECT_LT(not_before(certificate.get()), wall_now());
  const auto left = not_after(certificate.get()) - wall_now();
  EXPECT_GT(left, std::chrono::hours{24 * 30 - 1});
  EXPECT_LE(left, std::chrono::hours{24 * 30});
}

TEST(Pki, NothingIsOverwritten) {
  Certificates lab("lab");
  const std::string& directory = lab.folder().path();
  lab.files(Role::Agent, "spark-1");
  const std::string ca = content_of(directory + "/ca.crt"), ca_key = content_of(directory + "/ca.key");
  const std::string own = content_of(directory + "/spark-1.crt"),
                    own_key = content_of(directory + "/spark-1.key");
  const Status again = make_authority(directory, "lab", kYear);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message(),
            "cannot create " + directory + "/ca.crt: it exists, and is never overwritten");
  EXPECT_FALSE(issue(directory, {"lab", Role::Leader, "spark-1"}, kYear).ok());
  EXPECT_FALSE(issue(directory, {"lab", Role::Leader, "ca"}, kYear).ok());
  EXPECT_EQ(content_of(directory + "/ca.crt"), ca);
  EXPECT_EQ(content_of(directory + "/ca.key"), ca_key);
  EXPECT_EQ(content_of(directory + "/spark-1.crt"), own);
  EXPECT_EQ(content_of(directory + "/spark-1.key"), own_key);
}

TEST(Pki, WrongRequestsAreRefused) {
  Certificates lab("lab");
  const std::string& directory = lab.folder().path();
  const auto refused = [&](const Identity& identity, Duration valid) {
    const auto issued = issue(directory, identity, valid);
    return issued.ok() ? std::string("issued") : issued.error().message();
  };
  EXPECT_NE(refused({"other", Role::Agent, "x"}, kYear).find("is of lab"), std::string::npos);
  EXPECT_NE(refused({"lab", Role::Agent, "../x"}, kYear), "issued");
  EXPECT_NE(refused({"lab", Role::Local, "x"}, kYear), "issued");
  EXPECT_NE(refused({"lab", Role::Agent, "x"}, Duration{}), "issued");
  EXPECT_NE(refused({"lab", Role::Agent, "x"}, 20 * kYear).find("the authority itself ends before"),
            std::string::npos);
  EXPECT_NE(refused({"lab", Role::Agent, "x"}, 200 * kYear).find("1s to 36500d are allowed"),
            std::string::npos);
  const Folder empty;
  const auto without = issue(empty.path(), {"lab", Role::Agent, "x"}, kYear);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().message(), "cannot open " + (empty / "ca.crt") + ": No such file or directory");
}

TEST(Pki, ListNamesEveryCertificate) {
  Certificates lab("lab");
  lab.files(Role::Agent, "spark-1");
  lab.files(Role::Leader, "leader");
  ASSERT_TRUE(write_file_durably(lab.folder() / "broken.crt", "x").ok());
  const auto list = list_certificates(lab.folder().path());
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 4u);
  EXPECT_FALSE((*list)[0].problem.empty());
  EXPECT_EQ((*list)[1].subject, "troika://lab");
  EXPECT_EQ((*list)[2].subject, "troika://lab/leader/leader");
  EXPECT_EQ((*list)[3].subject, "troika://lab/agent/spark-1");
  EXPECT_GT((*list)[3].valid_until, wall_now());
  EXPECT_FALSE(list_certificates(lab.folder() / "none").ok());
}

}  // namespace
}  // namespace troika::platform
