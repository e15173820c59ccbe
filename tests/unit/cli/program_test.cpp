// The program `troika` as scripts see it: exit status, one JSON document on standard output, and what a
// person is told on standard error.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "protocol/codec.hpp"
#include "tests/unit/cli/played_leader.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::cli {
namespace {

using platform::content_of;
using platform::Folder;

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

// A command line of the shell after the program's name; TMPDIR is the folder's, and the record of proofs lies
// in it.
Ran troika(const Folder& folder, const std::string& arguments) {
  const std::string out = folder / "out", err = folder / "err";
  const std::string line = "TMPDIR=" + folder.path() + " TROIKA_STATE_DIR=" + folder.path() +
                           "/state " TROIKA " " + arguments + " </dev/null";
  const int ended = std::system(("{ " + line + "; } >" + out + " 2>" + err).c_str());
  return {WIFEXITED(ended) ? WEXITSTATUS(ended) : -1, content_of(out), content_of(err)};
}

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The document of a run that could not do its work: the form of all reports, with one finding at least.
nlohmann::json trouble_of(const Ran& ran) {
  const auto json = nlohmann::json::parse(ran.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << ran.out << ran.err;
  if (!json.is_object()) return {};
  EXPECT_EQ(json.value("format", 0), 1);
  EXPECT_FALSE(json["findings"].empty());
  for (const auto& finding : json["findings"])
    EXPECT_FALSE(finding.value("code", "").empty());
  EXPECT_FALSE(ran.err.empty() && json["findings"].empty());
  return json;
}

// A shard of one tensor; header and data agree.
std::string a_shard() {
  const std::string header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + "data";
}

TEST(TroikaVerify, TellsGoodBadAndCannotTell) {
  const Folder folder, model;
  const std::string manifest = folder / "manifest.json";
  write(model / "model.safetensors", a_shard());
  write(model / "config.json", "{}");
  const Ran created = troika(folder, "manifest create --name org/m --model " + model.path());
  ASSERT_EQ(created.status, kGood) << created.err;
  write(manifest, created.out);
  const std::string arguments = "verify --model " + model.path() + " --manifest " + manifest;
  const Ran good = troika(folder, arguments + " --json");
  EXPECT_EQ(good.status, kGood) << good.err;
  const auto document = nlohmann::json::parse(good.out);
  EXPECT_EQ(document["verdict"], "ok");
  EXPECT_EQ(document["files"].size(), 2u);
  EXPECT_EQ(document["tensors"], 1);
  EXPECT_EQ(document["bytes"], a_shard().size() + 2);
  std::string wrong = a_shard();
  wrong.back() ^= 1;
  write(model / "model.safetensors", wrong);
  const Ran bad = troika(folder, arguments);
  EXPECT_EQ(bad.status, kWrong);
  EXPECT_NE(bad.out.find("HASH_MISMATCH model.safetensors"), std::string::npos) << bad.out;
  const Ran unpinned = troika(folder, "verify --json --model " + model.path());
  EXPECT_EQ(unpinned.status, kCannotTell);
  EXPECT_EQ(trouble_of(unpinned)["verdict"], "cannot_tell");
  EXPECT_EQ(troika(folder, "verify --model " + model.path() + " --manifest /nonexistent").status, kUsage);
}

// A record that cannot be used costs time and never a verdict.
TEST(TroikaVerify, ARecordThatIsNoneIsToldAndLeftAlone) {
  const Folder folder, model;
  const std::string manifest = folder / "manifest.json";
  write(model / "config.json", "{}");
  write(manifest, troika(folder, "manifest create --name org/m --model " + model.path()).out);
  ASSERT_EQ(std::system(("rm -r " + folder.path() + "/state; mkdir " + folder.path() + "/state").c_str()), 0);
  write(folder / "state/proofs.sqlite", "a letter to my aunt, which nobody may overwrite");
  const Ran ran = troika(folder, "verify --model " + model.path() + " --manifest " + manifest);
  EXPECT_EQ(ran.status, kGood);
  EXPECT_NE(ran.err.find("no proof is remembered"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("state/proofs.sqlite"), std::string::npos) << ran.err;
  EXPECT_EQ(content_of(folder / "state/proofs.sqlite"), "a letter to my aunt, which nobody may overwrite");
}

// A22 (mode 7): a downloader that hides its reason. Nothing is said of a log beside a tree that is whole.
TEST(TroikaVerify, TellsWhyFilesAreMissing) {
  const Folder folder, model;
  write(model / "model.safetensors", a_shard());
  const std::string manifest = folder / "manifest.json", log = folder / "fetch.log";
  write(manifest, troika(folder, "manifest create --name org/m --model " + model.path()).out);
  const std::string arguments =
      "verify --model " + model.path() + " --manifest " + manifest + " --fetch-log " + log;
  EXPECT_EQ(troika(folder, arguments).status, kUsage) << "there is no such log";
  write(log, std::string(3u << 20, 'x') + "\n\x1b[31mUnable to parse string as hex hash value\xff\n");
  const Ran whole = troika(folder, arguments + " --json");
  EXPECT_EQ(whole.status, kGood) << whole.err;
  EXPECT_EQ(nlohmann::json::parse(whole.out)["missing_bytes"], 0);
  write(model / "model.safetensors", a_shard().substr(0, 63));
  const Ran cut = troika(folder, arguments + " --json");
  EXPECT_EQ(cut.status, kWrong) << cut.err;
  const auto document = nlohmann::json::parse(cut.out);
  EXPECT_EQ(document["missing_bytes"], a_shard().size());
  std::vector<std::string> found;
  for (const auto& finding : document["findings"])
    found.push_back(finding["code"]);
  EXPECT_EQ(found, (std::vector<std::string>{"PARTIAL", "FETCH_AUTH"}));
  const std::string text = troika(folder, arguments).out;
  EXPECT_NE(text.find("FETCH_AUTH"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

// Where nothing can be proven, what the downloader wrote is all the more wanted.
TEST(TroikaVerify, TellsWhyTheDirectoryIsMissing) {
  const Folder folder, model;
  const std::string manifest = folder / "manifest.json", log = folder / "fetch.log";
  write(model / "model.safetensors", a_shard());
  write(manifest, troika(folder, "manifest create --name org/m --model " + model.path()).out);
  write(log, "401 Client Error\n");
  for (const std::string& arguments :
       {std::string("--model /nowhere --manifest ") + manifest, "--model " + model.path()}) {
    const Ran ran = troika(folder, "verify " + arguments + " --json --fetch-log " + log);
    EXPECT_EQ(ran.status, kWrong) << ran.err;
    std::set<std::string> found;
    const auto document = nlohmann::json::parse(ran.out);
    for (const auto& finding : document["findings"])
      found.insert(finding["code"]);
    EXPECT_EQ(found.count("FETCH_AUTH"), 1u) << arguments << ran.out;
    EXPECT_EQ(found.size(), 2u) << ran.out;
    EXPECT_NE(troika(folder, "verify " + arguments + " --fetch-log " + log).out.find("401 Client"),
              std::string::npos);
  }
}

// Without a directory it is the cluster that is meant.
TEST(TroikaVerify, OfEveryNodeNeedsALeader) {
  const Folder folder;
  const Ran ran = troika(folder, "verify --deep --json --socket " + folder.path() + "/none.sock");
  EXPECT_EQ(ran.status, kUnreachable);
  EXPECT_EQ(trouble_of(ran)["verdict"], "cannot_tell");
  EXPECT_EQ(troika(folder, "verify --manifest x").status, kUsage) << "a manifest is for a directory";
  EXPECT_EQ(troika(folder, "verify --model /nonexistent").status, kUsage);
}

// Every node would be held to it.
TEST(TroikaManifest, ABrokenDirectoryIsNotPinned) {
  const Folder folder, model;
  write(model / "model.safetensors", a_shard() + "more");
  const Ran created = troika(folder, "manifest create --name org/m --model " + model.path());
  EXPECT_EQ(created.status, kWrong);
  EXPECT_EQ(created.out, "");
  EXPECT_NE(created.err.find("model.safetensors"), std::string::npos) << created.err;
}

TEST(TroikaJson, AFileThatCannotBeReadIsADocumentToo) {
  const Folder folder;
  const Ran ran = troika(folder, "config check --json /nonexistent.toml");
  EXPECT_EQ(ran.status, kUsage);
  const auto json = trouble_of(ran);
  EXPECT_EQ(json["verdict"], "error");
  EXPECT_EQ(json["findings"][0]["code"], "UNREADABLE");
  EXPECT_EQ(json["findings"][0]["subject"], "/nonexistent.toml");
}

TEST(TroikaJson, EveryProblemOfAFileIsAFindingWithItsPlace) {
  const Folder folder;
  write(folder / "bad.toml", "[cluster]\nname = 1\n");
  const Ran ran = troika(folder, "config check --json " + (folder / "bad.toml"));
  EXPECT_EQ(ran.status, kUsage);
  const auto json = trouble_of(ran);
  EXPECT_EQ(json["verdict"], "error");
  EXPECT_EQ(json["kind"], "cluster");
  EXPECT_EQ(json["findings"].size(), json["problems"].size());
  bool seen = false;
  for (const auto& one : json["findings"]) {
    if (one["subject"] != "cluster.name") continue;
    seen = true;
    EXPECT_EQ(one["code"], "CONFIG_INVALID");
    const auto& place = one["evidence"];
    EXPECT_EQ(place["file"], folder / "bad.toml");
    EXPECT_EQ(place["line"], 2);
    EXPECT_EQ(place["key"], "cluster.name");
    EXPECT_EQ(place["value"], "1");
    EXPECT_NE(place["allowed"].get<std::string>().find("a text in quotes"), std::string::npos);
  }
  EXPECT_TRUE(seen) << ran.out;
}

TEST(TroikaJson, ATextThatIsNoTomlIsADocumentToo) {
  const Folder folder;
  write(folder / "random", "\x80\x81\x82\n");
  const Ran ran = troika(folder, "config check --json " + (folder / "random"));
  EXPECT_EQ(ran.status, kUsage);
  const auto json = trouble_of(ran);
  EXPECT_TRUE(json["kind"].is_null());
  EXPECT_EQ(json["findings"][0]["evidence"]["line"], 1);
}

TEST(TroikaJson, NobodyAtTheSocketIsADocumentWithWhatToDo) {
  const Folder folder;
  for (const char* command :
       {"status", "incidents", "incidents show 99", "start", "stop a", "failover --to a"}) {
    const Ran ran = troika(folder, "--socket " + (folder / "none.sock") + " " + command + " --json");
    SCOPED_TRACE(command);
    EXPECT_EQ(ran.status, kUnreachable);
    const auto json = trouble_of(ran);
    EXPECT_EQ(json["verdict"], "cannot_tell");
    EXPECT_NE(json["findings"][0]["remedy"].get<std::string>().find("is troikad running?"),
              std::string::npos);
    EXPECT_NE(ran.err.find("  do: is troikad running?"), std::string::npos) << ran.err;
  }
}

TEST(TroikaJson, AnIncidentThatIsNotThereIsADocumentToo) {
  const Folder folder;
  const Leader leader(saying({protocol::encode(protocol::IncidentsReply{1, {}}, 9)}));
  const Ran ran = troika(folder, "--socket " + leader.address().socket + " incidents show 99 --json");
  EXPECT_EQ(ran.status, kWrong);
  const auto json = trouble_of(ran);
  EXPECT_EQ(json["verdict"], "error");
  EXPECT_EQ(json["findings"][0]["code"], "NOT_FOUND");
}

TEST(TroikaStart, AnUnknownReplicaIsAUsageErrorThatNamesTheKnownOnes) {
  const Folder folder;
  const std::string text = "there is no replica \"zz\"; there are: a, b";
  const protocol::CommandDone done{1, Verdict::Error, text, {finding(Code::NOT_FOUND, "", "zz", text)}};
  const Leader leader(saying({protocol::encode(done, 9)}));
  for (const char* command : {"start zz", "failover --to zz"}) {
    const Ran ran = troika(folder, "--socket " + leader.address().socket + " " + command);
    EXPECT_EQ(ran.status, kUsage);
    EXPECT_NE(ran.err.find("there are: a, b"), std::string::npos) << ran.err;
    const Ran json = troika(folder, "--socket " + leader.address().socket + " " + command + " --json");
    EXPECT_EQ(json.status, kUsage);
    EXPECT_EQ(trouble_of(json)["verdict"], "error");
  }
}

TEST(TroikaLeader, AMissingCertificateOptionIsNamed) {
  const Folder folder;
  const Ran ran = troika(folder, "--leader 10.0.0.1:7443 --ca /x --key /y status");
  EXPECT_EQ(ran.status, kUsage);
  EXPECT_NE(ran.err.find("--cert"), std::string::npos) << ran.err;
}

TEST(TroikaPki, ACertificateOfAnotherAuthorityIsNotGood) {
  const Folder folder;
  const std::string ours = folder / "ours", theirs = folder / "theirs";
  for (const std::string& directory : {ours, theirs}) {
    ASSERT_EQ(troika(folder, "pki init --cluster lab --dir " + directory).status, kGood);
    ASSERT_EQ(troika(folder, "pki issue --role agent --name n1 --dir " + directory).status, kGood);
  }
  EXPECT_EQ(troika(folder, "pki list --dir " + ours).status, kGood);
  const Ran good = troika(folder, "pki list --json --dir " + ours);
  EXPECT_EQ(good.status, kGood);
  const auto listed = nlohmann::json::parse(good.out);
  EXPECT_EQ(listed["verdict"], "ok");
  ASSERT_EQ(listed["certificates"].size(), 2u);
  EXPECT_EQ(listed["certificates"][1]["subject"], "troika://lab/agent/n1");
  EXPECT_EQ(listed["certificates"][1]["state"], "good");

  write(ours + "/stranger.crt", content_of(theirs + "/n1.crt"));
  const Ran people = troika(folder, "pki list --dir " + ours);
  EXPECT_EQ(people.status, kWrong);
  EXPECT_NE(people.out.find("not signed by ca.crt of this folder"), std::string::npos) << people.out;
  const Ran bad = troika(folder, "pki list --json --dir " + ours);
  EXPECT_EQ(bad.status, kWrong);
  const auto json = trouble_of(bad);
  ASSERT_EQ(json["findings"].size(), 1u);
  EXPECT_EQ(json["findings"][0]["code"], "CERT_INVALID");
  EXPECT_EQ(json["findings"][0]["subject"], ours + "/stranger.crt");
  EXPECT_EQ(troika(folder, "pki list --json --dir " + (folder / "none")).status, kUsage);
}

TEST(TroikaOutput, WhatCannotBeWrittenIsNoSuccess) {
  const Folder folder;
  for (const char* command :
       {"--help >/dev/full", "--version >/dev/full", "--help >&-", "pki list --dir /tmp >&-"}) {
    const Ran ran = troika(folder, command);
    EXPECT_EQ(ran.status, kWrong) << command;
    EXPECT_NE(ran.err.find("cannot write to standard output"), std::string::npos)
        << command << ": " << ran.err;
  }
}

TEST(TroikaOutput, ADemoThatNobodyReadsSaysSo) {
  const Folder folder;
  const Ran ran = troika(folder, "demo --programs /nonexistent >&-");
  EXPECT_EQ(ran.status, kWrong);
  EXPECT_TRUE(ran.err.starts_with("troika: nobody reads standard output")) << ran.err;
  EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1) << ran.err;
}

}  // namespace
}  // namespace troika::cli
