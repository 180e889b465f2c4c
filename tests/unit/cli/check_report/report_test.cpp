#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clean_text.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/check_report/codes.h"
#include "cli/check_report/figures.h"
#include "cli/check_report/markup.h"
#include "cli/check_report/report.h"
#include "cli/check_report/view.h"
#include "tests/unit/cli/check_report/samples.h"

namespace drun::cli {
namespace {

std::size_t occurrences(const std::string& text, const std::string& of) {
  std::size_t n = 0;
  for (auto at = text.find(of); at != std::string::npos; at = text.find(of, at + of.size())) ++n;
  return n;
}

// Expects the output of `check-page NAME HOSTS text` that is kept in golden/.
void expect_golden(const check::CheckResult& result, const std::string& name) {
  const auto golden = read_file(std::string(DRUN_GOLDEN_DIR) + "/" + name + ".txt");
  ASSERT_TRUE(golden.has_value()) << golden.error().message();
  EXPECT_EQ(check_text(result, {}), *golden);
}

TEST(CheckText, TwoHealthyHosts) { expect_golden(samples::healthy(2), "healthy-2"); }
TEST(CheckText, OneOfFourIsSlow) { expect_golden(samples::one_slow(4), "one-slow-4"); }
TEST(CheckText, FortyHostsShowTheirWorstLinks) { expect_golden(samples::troubled(40), "troubled-40"); }
TEST(CheckText, OneCanNotBeReached) { expect_golden(samples::one_unreachable(8), "one-unreachable-8"); }
TEST(CheckText, NothingCanBeReached) { expect_golden(samples::nothing_reachable(2), "nothing-reachable-2"); }

TEST(CheckText, EightHostsFitIntoEightyColumns) {
  for (const auto& result : {samples::healthy(8), samples::troubled(8)}) {
    const std::string text = check_text(result, {});
    for (const auto line : split(text, '\n')) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(CheckText, HasNoEscapesWithoutColor) {
  const std::string text = check_text(samples::hostile(), {});
  EXPECT_EQ(clean_text(text), text);
  EXPECT_EQ(text.find("\n  | forged"), std::string::npos) << text;
}

TEST(CheckText, ColorsAddNothingButEscapes) {
  TextStyle colored;
  colored.color = true;
  const std::string text = check_text(samples::one_slow(4), colored);
  EXPECT_NE(text.find("\033[1;31m"), std::string::npos);  // the slow links
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033')
      i = text.find('m', i);
    else
      plain += text[i];
  }
  EXPECT_EQ(plain, check_text(samples::one_slow(4), {}));
}

TEST(CheckText, WhatIsComparedStandsSideBySideOrBelow) {
  const auto result = samples::one_slow(4);
  EXPECT_NE(check_text(result, {}).find("  gpu1 to gpu3: 9.4 Mb/s   gpu1 to gpu2: 941 Mb/s\n"), std::string::npos);
  TextStyle narrow;
  narrow.width = 40;
  const std::string text = check_text(result, narrow);
  EXPECT_NE(text.find("  gpu3 to gpu1: 9.4 Mb/s\n  others, measured the same way:\n    gpu1 to gpu2: 941 Mb/s\n"),
            std::string::npos)
      << text;
}

TEST(CheckText, LeavesOutAColumnThatIsEmpty) {
  auto result = samples::healthy(2);
  EXPECT_NE(check_text(result, {}).find("LINE"), std::string::npos);
  for (auto& host : result.hosts) host.interfaces[0].speed_mbps = 0;
  EXPECT_EQ(check_text(result, {}).find("LINE"), std::string::npos);
  EXPECT_EQ(check_html(result).find(">Line, "), std::string::npos);
  result.hosts[1].interfaces[0].speed_mbps = 10000;  // one host's alone
  EXPECT_NE(check_text(result, {}).find("LINE"), std::string::npos);
  EXPECT_NE(check_html(result).find(">Line, "), std::string::npos);
}

// The text around a matrix and every figure of the page have the unit of the matrix.
TEST(CheckFigures, AReportHasOneUnit) {
  const std::string slow = check_text(samples::one_slow(4), {});
  EXPECT_EQ(slow.find("Gb/s"), std::string::npos);
  const std::string fast = check_text(samples::healthy(4), {});
  EXPECT_EQ(fast.find("Mb/s"), std::string::npos);
  EXPECT_EQ(check_html(samples::healthy(4)).find("Mb/s"), std::string::npos);
  auto mixed = samples::healthy(4);
  for (auto& link : mixed.links.links) {
    if (link.b != 3) continue;
    for (auto& rate : link.forward.rates) rate.bits_per_second = 9.44e6;
  }
  const std::string text = check_text(mixed, {});
  EXPECT_EQ(text.find("Gb/s"), std::string::npos) << text;
  EXPECT_NE(text.find(" 9.44\n"), std::string::npos) << text;
  EXPECT_EQ(check_html(mixed).find("Gb/s"), std::string::npos);
}

TEST(CheckFigures, ThePaceIsAFigureOfTheMatrix) {
  const auto pair = samples::uneven_pair();
  const Figures figures(pair);
  EXPECT_EQ(prediction_sentence(pair, figures),
            "an allreduce of 14 GB takes about 7.13 s on these 2 hosts; the slower direction, gpu2 to gpu1 at "
            "6.84 Gb/s, sets the pace");
  for (const std::string& report : {check_text(pair, {}), check_html(pair)}) {
    EXPECT_EQ(report.find("15.7"), std::string::npos);
    EXPECT_EQ(report.find("slowest"), std::string::npos);
  }
  EXPECT_EQ(prediction_sentence(samples::healthy(2), Figures(samples::healthy(2))),
            "an allreduce of 100 MB takes about 88 ms on these 2 hosts");

  auto four = samples::one_slow(4);
  EXPECT_NE(prediction_sentence(four, Figures(four)).find("; the link gpu1 to gpu3, at 9.44 Mb/s, sets the pace;"),
            std::string::npos);
  four.predicted->slowest_to = 1;  // its link is as fast as others when measured alone: only the ring shows it as slow
  EXPECT_NE(
      prediction_sentence(four, Figures(four)).find("; with all hosts at once the link gpu1 to gpu2 sets the pace"),
      std::string::npos);
}

TEST(CheckFigures, TwoHostsHaveNoMedian) {
  const auto pair = samples::uneven_pair();
  EXPECT_EQ(check_text(pair, {}).find("median"), std::string::npos);
  EXPECT_NE(check_html(pair).find("<b>6.84 to 10 Gb/s</b>"), std::string::npos);
  EXPECT_EQ(check_html(pair).find(", median"), std::string::npos);
  EXPECT_NE(check_html(samples::healthy(3)).find("Bandwidth, median"), std::string::npos);
}

TEST(CheckFigures, NoLinkSetsThePaceOfWhatMemoryTakes) {
  auto result = samples::one_slow(4);
  for (auto& point : result.predicted->curve) point.seconds *= 3.5;
  result.predicted->seconds *= 3.5;
  EXPECT_EQ(prediction_sentence(result, Figures(result)).find("pace"), std::string::npos);
}

TEST(CheckFigures, SharesAreTheSameInEveryReport) {
  const auto result = samples::uneven_pair();
  const std::string words = "4 % of the ideal speed";
  EXPECT_NE(check_text(result, {}).find("with steps of 300 ms: " + words), std::string::npos) << check_text(result, {});
  EXPECT_NE(check_html(result).find(words + " with steps of 300 ms</span>"), std::string::npos);
  const auto json = nlohmann::json::parse(check_json(result));
  EXPECT_NEAR(json["prediction"]["efficiency"].get<double>(), 0.04, 0.001);
}

TEST(CheckView, OneBadHostOfThreeIsNotWhatIsNormal) {
  const auto bandwidth = bandwidth_matrix(samples::one_slow(3));
  EXPECT_GT(bandwidth.median, 900e6);
  EXPECT_EQ(bandwidth_heat(bandwidth, 0, 1), Heat::kNormal);
  EXPECT_EQ(bandwidth_heat(bandwidth, 0, 2), Heat::kAwful);
  EXPECT_EQ(bandwidth_heat(bandwidth, 2, 1), Heat::kAwful);
  EXPECT_EQ(bandwidth_heat(bandwidth, 1, 1), Heat::kNone);
}

TEST(CheckView, RoundTripsThatDifferLittleAreAlike) {
  auto result = samples::healthy(3);
  result.links.links[0].rtt_median_us = 170;  // twice the others, but by less than 100 us
  EXPECT_EQ(latency_heat(latency_matrix(result), 0, 1), Heat::kNormal);
  result.links.links[0].rtt_median_us = 500;
  EXPECT_EQ(latency_heat(latency_matrix(result), 0, 1), Heat::kAwful);
}

TEST(CheckView, TheSecondPassCounts) {
  auto result = samples::healthy(3);
  auto again = result.links.links[0];
  for (auto& rate : again.forward.rates) rate.bits_per_second = 5e9;
  result.links.second_pass.push_back(again);
  EXPECT_EQ(bandwidth_matrix(result).at(0, 1).value, 5e9);
}

TEST(CheckView, OfSeveralMeasurementsOfTheSecondPassTheBestCounts) {
  auto result = samples::healthy(3);
  auto again = result.links.links[0];
  for (const double rate : {5e9, 7e9, 6e9}) {
    for (auto& r : again.forward.rates) r.bits_per_second = rate;
    result.links.second_pass.push_back(again);
  }
  EXPECT_EQ(bandwidth_matrix(result).at(0, 1).value, 7e9);
}

TEST(CheckView, OfTwoRoundTripsTheBetterCounts) {
  auto result = samples::healthy(3);
  auto again = result.links.links[0];
  const double first = again.rtt_median_us;
  again.rtt_median_us = 900;
  result.links.second_pass.push_back(again);
  EXPECT_DOUBLE_EQ(latency_matrix(result).at(1, 0).value, first * 1e-6);
  result.links.second_pass[0].rtt_median_us = 20;
  EXPECT_DOUBLE_EQ(latency_matrix(result).at(0, 1).value, 20e-6);
}

TEST(CheckView, AFailureIsForgottenOnceItWorked) {
  auto result = samples::healthy(2);
  auto failed = result.links.links[0];
  failed.forward = {};
  failed.forward.error = "timed out";
  const auto good = result.links.links[0];
  result.links.links = {failed};
  EXPECT_EQ(bandwidth_heat(bandwidth_matrix(result), 0, 1), Heat::kFailed);
  result.links.second_pass = {good};
  EXPECT_EQ(bandwidth_heat(bandwidth_matrix(result), 0, 1), Heat::kNormal);
}

TEST(CheckView, LinksOfHostsThatAreNotThereAreIgnored) {
  auto result = samples::healthy(2);
  auto stray = result.links.links[0];
  stray.b = 7;
  result.links.links.push_back(stray);
  EXPECT_EQ(bandwidth_matrix(result).cells.size(), 4u);
}

TEST(CheckView, NamesLoseADomainOnlyIfTheyStayDifferent) {
  auto result = samples::healthy(2);
  result.hosts[0].name = "a.x.org";
  result.hosts[1].name = "b.x.org";
  EXPECT_EQ(short_names(result), (std::vector<std::string>{"a", "b"}));
  result.hosts[1].name = "a.y.org";
  EXPECT_EQ(short_names(result), (std::vector<std::string>{"a.x.org", "a.y.org"}));
  result.hosts[0].name = "10.0.0.1";
  result.hosts[1].name = "10.0.0.2";
  EXPECT_EQ(short_names(result), (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
}

TEST(CheckJson, HasUnitsAndNullsWhereNothingWasMeasured) {
  const auto json = nlohmann::json::parse(check_json(samples::one_unreachable(3)));
  EXPECT_EQ(json["drun_check"], 1);
  EXPECT_EQ(json["verdict"], "not_ready");
  EXPECT_EQ(json["depth"], "default");
  ASSERT_EQ(json["hosts"].size(), 3u);
  EXPECT_EQ(json["hosts"][0]["interface"], "enp3s0");
  EXPECT_EQ(json["hosts"][0]["address"], "10.0.0.1");
  EXPECT_EQ(json["hosts"][0]["interfaces"][0]["line_bits_per_second"], 10000000000);
  EXPECT_EQ(json["hosts"][0]["interfaces"][0]["addresses"][0], "10.0.0.1/24");
  EXPECT_TRUE(json["hosts"][0]["interfaces"][1]["line_bits_per_second"].is_null());
  EXPECT_EQ(json["hosts"][0]["rejected"][0]["interface"], "docker0");
  EXPECT_EQ(json["hosts"][0]["facts"]["versions"]["glibc"], "2.36");
  EXPECT_TRUE(json["hosts"][0]["error"].is_null());
  EXPECT_TRUE(json["hosts"][1]["interface"].is_null());
  EXPECT_TRUE(json["hosts"][1]["connect_seconds"].is_null());
  EXPECT_TRUE(json["hosts"][1]["facts"].is_null());
  EXPECT_EQ(json["hosts"][1]["error"]["hint"], "ssh -p 12345 gpu2 true");
  EXPECT_EQ(json["findings"][0]["code"], "host-unreachable");
  EXPECT_EQ(json["findings"][0]["hosts"][0], "gpu2");
  ASSERT_EQ(json["links"].size(), 1u);
  EXPECT_EQ(json["links"][0]["a"], "gpu1");
  EXPECT_EQ(json["links"][0]["b"], "gpu3");
  EXPECT_GT(json["links"][0]["a_to_b"]["rates"][1]["bits_per_second"], 9e9);
  EXPECT_EQ(json["links"][0]["a_to_b"]["path_mtu_bytes"], 1500);
  EXPECT_GT(json["links"][0]["round_trip_median_microseconds"], 50);
  EXPECT_EQ(json["reached"][0][2], true);
  EXPECT_TRUE(json["reached"][0][1].is_null());
  EXPECT_TRUE(json["ring"].is_null());
  EXPECT_EQ(json["prediction"]["gradient_bytes"], 100000000);
  EXPECT_TRUE(json["prediction"]["efficiency"].is_null());
  EXPECT_EQ(json["prediction"]["curve"][0]["bytes"], 4);
}

TEST(CheckJson, HasTheFiguresOfTheOtherReports) {
  const auto json = nlohmann::json::parse(check_json(samples::uneven_pair()));
  EXPECT_TRUE(json["bandwidth_median_bits_per_second"].is_null());
  EXPECT_TRUE(json["round_trip_median_microseconds"].is_null());
  EXPECT_EQ(json["hosts"][0]["sends_bits_per_second"], 10e9);
  EXPECT_EQ(json["hosts"][0]["receives_bits_per_second"], 6.84e9);
  EXPECT_EQ(json["prediction"]["slowest_bits_per_second"], 15.7e9);
  EXPECT_EQ(json["prediction"]["slowest_measured_bits_per_second"], 10e9);
  const auto slow = nlohmann::json::parse(check_json(samples::one_slow(4)));
  EXPECT_NEAR(slow["bandwidth_median_bits_per_second"].get<double>(), 919e6, 1e6);
  EXPECT_NEAR(slow["round_trip_median_microseconds"].get<double>(), 183, 1);
  EXPECT_EQ(slow["findings"][0]["comparison"][0], "gpu1 to gpu2: 941 Mb/s");
  EXPECT_EQ(slow["findings"][0]["details"].size(), 2u);
  EXPECT_TRUE(slow["findings"][1]["comparison"].empty());
  const auto nothing = nlohmann::json::parse(check_json(samples::nothing_reachable(2)));
  EXPECT_TRUE(nothing["bandwidth_median_bits_per_second"].is_null());
  EXPECT_TRUE(nothing["hosts"][0]["sends_bits_per_second"].is_null());
}

TEST(CheckJson, IsValidWhateverHostsSay) {
  auto result = samples::hostile();
  result.hosts[0].host_name = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(check_json(result)));
  const auto nothing = nlohmann::json::parse(check_json(samples::nothing_reachable(2)));
  EXPECT_TRUE(nothing["prediction"].is_null() || nothing["prediction"].is_object());
  EXPECT_TRUE(nothing["reached"].is_null());
}

TEST(CheckHtml, HasACellForEveryDirectedPair) {
  const std::string page = check_html(samples::healthy(4));
  EXPECT_EQ(occurrences(page, "<rect class='c "), 2u * 12);
  EXPECT_EQ(occurrences(page, "<tr class='row"), 4u);
  EXPECT_EQ(occurrences(page, "<article class='finding"), 0u);
  EXPECT_NE(page.find("Nothing wrong was found"), std::string::npos);
}

TEST(CheckHtml, ShowsEveryFinding) {
  const auto result = samples::one_slow(4);
  const std::string page = check_html(result);
  EXPECT_EQ(occurrences(page, "<article class='finding"), result.findings.size());
  EXPECT_NE(page.find("gpu3 enp3s0"), std::string::npos);
  EXPECT_NE(page.find("ssh gpu3 ethtool enp3s0"), std::string::npos);
  EXPECT_NE(page.find("class='host warn'"), std::string::npos);
}

// Returns the text between two marks, both of which the page must contain.
std::string between(const std::string& page, const std::string& begin, const std::string& end) {
  const auto from = page.find(begin);
  const auto to = page.find(end, from);
  EXPECT_NE(to, std::string::npos) << begin;
  return to == std::string::npos ? "" : page.substr(from, to - from);
}

TEST(CheckHtml, FoldsNotesAtTheEnd) {
  const std::string page = check_html(samples::one_slow(4));
  const std::string findings = between(page, "<section id='findings'", "</section>");
  EXPECT_EQ(occurrences(findings, "<article class='finding warn'"), 1u);
  EXPECT_EQ(occurrences(findings, "<article"), 1u);
  EXPECT_NE(findings.find("<a href='#notes'>1 note</a>"), std::string::npos);
  const std::string notes = between(page, "<section id='notes'", "</section>");
  EXPECT_EQ(occurrences(notes, "<article class='finding note'"), 1u);
  EXPECT_EQ(notes.find("<section id='notes'><details><summary>"), 0u);
  for (const char* before : {"id='hosts'", "id='bandwidth'", "id='latency'", "id='cost'", "id='topology'"}) {
    EXPECT_LT(page.find(before), page.find("id='notes'")) << before;
  }
  EXPECT_EQ(check_html(samples::healthy(2)).find("id='notes'"), std::string::npos);
}

TEST(CheckHtml, ComparesInTwoColumns) {
  const std::string evidence = between(check_html(samples::one_slow(4)), "<div class='evidence'>", "</div>");
  EXPECT_EQ(occurrences(evidence, "<table>"), 2u);
  EXPECT_LT(evidence.find("gpu3 to gpu1"), evidence.find("others, measured the same way"));
  EXPECT_GT(evidence.find("<td>gpu1 to gpu2</td><td class='num'>941 Mb/s</td>"),
            evidence.find("others, measured the same way"));
}

TEST(CheckHtml, SaysHowTheCheckWentAtItsFoot) {
  const std::string page = check_html(samples::troubled(4));
  EXPECT_EQ(occurrences(page, "hecked 4 hosts in"), 1u);
  EXPECT_GT(page.find("Checked 4 hosts in"), page.find("<footer>"));
  EXPECT_GT(page.find("The ring of all hosts at once was left out"), page.find("<footer>"));
  EXPECT_EQ(occurrences(page, "<a class='tile'"), 3u);
}

TEST(CheckHtml, LinksEveryCodeToItsMeaning) {
  const std::string page = check_html(samples::one_slow(4));
  for (const char* code : {"link-slow", "versions-differ"}) {
    EXPECT_EQ(occurrences(page, std::string("<a href='#code-") + code + "'"), 1u) << code;
    EXPECT_EQ(occurrences(page, std::string("<dt id='code-") + code + "'"), 1u) << code;
  }
  EXPECT_EQ(occurrences(page, "<dt "), 2u);
  EXPECT_NE(page.find("<code>ethtool eth1</code> shows the speed"), std::string::npos);
  auto unknown = samples::one_slow(4);
  unknown.findings[0].code = "no-such-code";
  EXPECT_EQ(check_html(unknown).find("#code-no-such-code"), std::string::npos);
  EXPECT_EQ(check_html(samples::healthy(2)).find("id='codes'"), std::string::npos);
}

TEST(CheckCodes, EveryMeaningStandsAlone) {
  const auto codes = explained_codes();
  EXPECT_GT(codes.size(), 60u);
  for (const auto& code : codes) {
    const std::string meaning = code_meaning(code);
    EXPECT_GT(meaning.size(), 20u) << code;
    EXPECT_EQ(meaning.find('\n'), std::string::npos) << code;
    for (const char* words : {"The same", "As above", "The other way"}) {
      EXPECT_EQ(meaning.find(words), std::string::npos) << code << ": " << meaning;
    }
  }
  EXPECT_EQ(code_meaning("link-slo"), "");
  EXPECT_EQ(code_meaning(""), "");
}

TEST(CheckHtml, TheMarkerLiesOnTheCurveWhichReachesIt) {
  const std::string page = check_html(samples::uneven_pair());
  const std::string circle = between(page, "<circle class='asked'", " r=");
  const auto number = [&](const std::string& name) {
    const auto at = circle.find(name + "='") + name.size() + 2;
    return circle.substr(at, circle.find('\'', at) - at);
  };
  // The last point of a path: "L614.2 28.4'".
  for (const char* curve : {"used", "ring", "tree"}) {
    const std::string path = between(page, std::string("<path class='curve ") + curve, "/>");
    const std::string last = path.substr(path.rfind('L') + 1);
    EXPECT_EQ(last.substr(0, last.find(' ')), number("cx")) << curve;
    if (std::string(curve) == "used") {
      EXPECT_EQ(last.substr(0, last.size() - 1), number("cx") + " " + number("cy"));
    }
  }
}

TEST(CheckHtml, SaysWhatTheLinesOfTheChartAre) {
  const std::string eight = check_html(samples::uneven_pair());
  EXPECT_NE(eight.find("The thick line is the time that libdrun takes"), std::string::npos);
  EXPECT_NE(eight.find("up to 8 ranks add up their data in memory"), std::string::npos);
  auto result = samples::uneven_pair();
  for (auto& host : result.hosts) host.slots = 1;
  EXPECT_EQ(check_html(result).find("ranks add up"), std::string::npos);
}

TEST(CheckHtml, EscapesAllThatComesFromOutside) {
  const std::string page = check_html(samples::hostile());
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<svg onload"), std::string::npos);
  EXPECT_EQ(clean_text(page), page);
  EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt;"), std::string::npos);
}

TEST(CheckHtml, AsksForNothingElse) {
  for (const auto& name : samples::names()) {
    const std::string page = check_html(samples::by_name(name, 6));
    for (const char* part : {"http://", "https://", "<link rel='stylesheet", "@import", "url("}) {
      EXPECT_EQ(page.find(part), std::string::npos) << name << " " << part;
    }
  }
}

TEST(CheckHtml, LeavesOutWhatWasNotMeasured) {
  auto result = samples::nothing_reachable(3);
  result.predicted.reset();
  const std::string page = check_html(result);
  EXPECT_EQ(page.find("id='bandwidth'"), std::string::npos);
  EXPECT_EQ(page.find("id='cost'"), std::string::npos);
  EXPECT_EQ(occurrences(page, "<tr class='row bad"), 3u);
}

TEST(Markup, WritesCoordinatesShortly) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(-0.26), "-0.3");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(1999.96), "2000");
}

TEST(Markup, EscapesTextForElementsAndAttributes) {
  EXPECT_EQ(escape("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
  EXPECT_EQ(escape(std::string("a\0b\033c\n", 6)), "a?b?c ");
  EXPECT_EQ(escape("gr\u00fcn"), "gr\u00fcn");
}

}  // namespace
}  // namespace drun::cli
