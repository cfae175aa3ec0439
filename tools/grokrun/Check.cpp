// grokrun check: what a checkpoint is, and what is wrong with it.
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/Config/Config.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/Survey.h"
#include "tools/cli/Printable.h"
#include "tools/grokrun/Commands.h"

namespace grok::grokrun {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string checkpoint, config;
};

/// The config that was named, else one that lies with the weights; empty: there
/// is none. Beside ckpt-0 and a single file it lies one folder up.
std::string findConfig(const Arguments &args) {
  if (!args.config.empty())
    return args.config;
  fs::path path(args.checkpoint);
  if (!path.has_filename())
    path = path.parent_path(); // a slash at the end
  std::error_code error;
  std::vector<fs::path> folders = {path};
  if (path.filename() == "ckpt-0" || fs::is_regular_file(path, error))
    folders.push_back(path.parent_path());
  for (const fs::path &folder : folders)
    if (fs::path file = folder / "config.json";
        fs::exists(fs::symlink_status(file, error)))
      return file.string();
  return "";
}

void line(const char *what, const std::string &text) {
  std::cout << absl::StreamFormat("%-10s %s\n", what, cli::printable(text));
}

std::string amount(const Survey::Amount &a) {
  return absl::StrCat(a.tensors, a.tensors == 1 ? " tensor, " : " tensors, ",
                      a.bytes, " bytes");
}

/// `source`: where the model is from.
void printModel(const Survey &survey, const std::string &source) {
  const ModelConfig &m = survey.model;
  std::string text = absl::StrCat(
      m.numLayers, m.numLayers == 1 ? " layer, " : " layers, ", m.numExperts,
      " experts of width ", m.expertWidth, ", hidden width ", m.hiddenSize,
      ", vocabulary ", m.vocabSize);
  if (m.denseWidth)
    absl::StrAppend(&text, ", dense MLP of width ", m.denseWidth);
  absl::StrAppend(&text, m.hash ? ", no router" : ", learned router",
                  m.tiedHead ? ", tied head" : ", own head");
  line("model", text);
  line("", source);
}

/// A heading with the number, and the first few, without the place that all
/// share.
void list(const char *what, const Listing &listing, const std::string &place) {
  line(what, listing.count ? absl::StrCat(listing.count) : "none");
  for (const std::string &item : listing.first)
    std::cout << "  "
              << cli::printable(
                     item.starts_with(place) ? item.substr(place.size()) : item)
              << "\n";
  if (listing.count > listing.first.size())
    std::cout << "  ... and " << listing.count - listing.first.size()
              << " more\n";
}

absl::Status verdict(const Survey &survey) {
  const Mismatches &m = survey.mismatches;
  if (!survey.spelling)
    return absl::InvalidArgumentError(absl::StrCat(
        survey.place, ": found ",
        survey.all.tensors
            ? absl::StrCat("tensors named like ", inQuotes(survey.firstName))
            : "no tensor",
        ", expected a spelling of docs/checkpoints.md; these are not the "
        "weights of such a model"));
  size_t problems = m.missing.count + m.wrong.count + m.extra.count;
  if (problems)
    return absl::InvalidArgumentError(
        absl::StrCat(survey.place, ": found ", m.missing.count, " missing, ",
                     m.wrong.count, " wrong and ", m.extra.count,
                     " extra tensors, expected none; see the lines above"));
  return survey.contradiction;
}

absl::Status checkCommand(const Arguments &args) {
  std::string config = findConfig(args), source;
  std::optional<ModelConfig> model;
  absl::Status readable; // a config that is no use is named after the weights
  if (config.empty()) {
    source = "as the tensors show; there is no config.json";
  } else if (auto parsed = readConfig(config); parsed.ok()) {
    model = parsed->model;
    source = absl::StrCat("as ", config, " says");
  } else {
    readable = parsed.status();
    source = absl::StrCat("as the tensors show; ", config, " is no use");
  }
  absl::StatusOr<Survey> survey =
      surveyCheckpoint(args.checkpoint, model ? &*model : nullptr);
  if (!survey.ok())
    return survey.status();
  line("layout", survey->layout);
  if (survey->spelling)
    line("spelling", std::string(spellingExample(*survey->spelling)));
  line("weights",
       absl::StrCat(amount(survey->all), " in ", survey->files,
                    survey->files == 1 ? " file" : " files",
                    survey->unreadable.ok() ? "" : ", up to the error below"));
  for (const auto &[type, a] : survey->types)
    line("", absl::StrCat(type, ": ", amount(a)));
  if (survey->misplaced.count > 1) // one is in the error
    list("misplaced", survey->misplaced, "");
  if (!survey->unreadable.ok())
    return survey->unreadable;
  if (survey->spelling) {
    printModel(*survey, source);
    std::string place = survey->place + ": ";
    list("missing", survey->mismatches.missing, place);
    list("wrong", survey->mismatches.wrong, place);
    list("extra", survey->mismatches.extra, place);
  }
  for (const std::string &note : survey->notes)
    line("note", note);
  return readable.ok() ? verdict(*survey) : readable;
}

} // namespace

Action addCheck(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "check", "Say what a checkpoint is, and what is missing or wrong in it");
  command
      ->add_option("CKPT", args->checkpoint,
                   "The checkpoint's directory, or a .gguf file")
      ->required();
  command
      ->add_option("--config", args->config,
                   "config.json (default: the one beside the "
                   "weights, if any)")
      ->type_name("C");
  return [args] { return checkCommand(*args); };
}

} // namespace grok::grokrun
