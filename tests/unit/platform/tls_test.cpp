// What a TLS context says about files that are not as they must be.
#include "platform/tls.hpp"

#include <sys/stat.h>

#include "tests/unit/platform/net.hpp"

namespace troika::platform {
namespace {

std::string refusal(const TlsFiles& files) {
  const auto context = TlsContext::load(files);
  return context.ok() ? "loaded" : context.error().message();
}

class TlsFilesTest : public testing::Test {
 protected:
  Certificates lab_{"lab"};
  TlsFiles good_ = lab_.files(Role::Agent, "spark-1");
};

TEST_F(TlsFilesTest, GoodFilesGiveTheIdentity) {
  const auto context = TlsContext::load(good_);
  ASSERT_TRUE(context.ok()) << context.error().message();
  EXPECT_EQ((*context)->identity(), (Identity{"lab", Role::Agent, "spark-1"}));
}

TEST_F(TlsFilesTest, MissingAndMalformedFilesAreNamed) {
  const std::string none = lab_.folder() / "none", text = lab_.folder() / "text";
  ASSERT_TRUE(write_file_durably(text, "hello\n", 0600).ok());
  EXPECT_EQ(refusal({none, good_.certificate, good_.key}),
            "cannot open " + none + ": No such file or directory");
  EXPECT_EQ(refusal({good_.ca, none, good_.key}), "cannot open " + none + ": No such file or directory");
  EXPECT_EQ(refusal({good_.ca, good_.certificate, none}),
            "cannot open " + none + ": No such file or directory");
  EXPECT_EQ(refusal({text, good_.certificate, good_.key}),
            "cannot read the certificate " + text + ": not a certificate in PEM form");
  EXPECT_EQ(refusal({good_.ca, text, good_.key}),
            "cannot read the certificate " + text + ": not a certificate in PEM form");
  EXPECT_EQ(refusal({good_.ca, good_.certificate, text}),
            "cannot read the key " + text + ": not a private key in PEM form without a passphrase");
  EXPECT_EQ(refusal({good_.ca, good_.certificate, good_.certificate}).find("cannot use the key"), 0u);
}

TEST_F(TlsFilesTest, AKeyThatOthersMayReadIsRefused) {
  ASSERT_EQ(::chmod(good_.key.c_str(), 0644), 0);
  EXPECT_EQ(refusal(good_), "cannot use the key " + good_.key +
                                ": others than its owner may read or write it; chmod 600 is expected");
}

TEST_F(TlsFilesTest, AKeyOfAnotherCertificateIsRefused) {
  const TlsFiles other = lab_.files(Role::Agent, "spark-2");
  EXPECT_EQ(
      refusal({good_.ca, good_.certificate, other.key}),
      "cannot use the key " + other.key + ": it does not belong to the certificate " + good_.certificate);
}

TEST_F(TlsFilesTest, ACertificateOfAnotherAuthorityIsRefused) {
  Certificates other("lab");
  const std::string said = refusal({other.ca(), good_.certificate, good_.key});
  EXPECT_EQ(said.find("cannot use the certificate " + good_.certificate + ": not signed by " + other.ca()),
            0u)
      << said;
}

TEST_F(TlsFilesTest, AnExpiredCertificateIsRefusedWithBothTimes) {
  const std::string said = refusal(lab_.expired_files(Role::Agent, "spark-3"));
  EXPECT_NE(said.find("expired: valid from 2"), std::string::npos) << said;
  EXPECT_NE(said.find(" on this machine"), std::string::npos) << said;
}

// The authority's own certificate has no role: nobody may speak with it.
TEST_F(TlsFilesTest, TheAuthorityIsNoPeer) {
  const std::string said = refusal({good_.ca, good_.ca, lab_.folder() / "ca.key"});
  EXPECT_NE(said.find("troika://CLUSTER/ROLE/NAME is expected"), std::string::npos) << said;
}

}  // namespace
}  // namespace troika::platform
