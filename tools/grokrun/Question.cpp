#include "tools/grokrun/Question.h"

#include "runtime/Executor.h"
#include "tools/cli/Numbers.h"

namespace grok::grokrun {

void addPrompt(CLI::App &command, Question &question) {
  question.promptOption =
      command.add_option("--prompt", question.prompt, "Text to continue")
          ->type_name("TEXT");
  question.idsOption = command
                           .add_option("--ids", question.ids,
                                       "Token ids to continue: 1,2,3 or a file")
                           ->type_name("IDS");
}

void addSampling(CLI::App &command, Question &question) {
  cli::addReal(command, "--temperature", question.temperature, isTemperature,
               kTemperatureExpected, "Sample at this temperature; 0: greedy")
      ->type_name("T");
  cli::addDecimal(command, "--seed", question.seed,
                  "Seed of the sampling noise")
      ->type_name("S");
  command.add_flag("--ignore-eos", question.ignoreEos,
                   "Don't stop after an end or separator id");
  command.add_flag("--stream", question.stream,
                   "Print text as it comes, character by character");
}

} // namespace grok::grokrun
