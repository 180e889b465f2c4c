// The classes of CLI11 that headers name. A source that uses them includes CLI/CLI.hpp, which compiles 60 KB of code
// and 190 KB of debug information into it, and validators that each source constructs at the start.
#pragma once

namespace CLI {

class App;
class Option;
class ParseError;
class Validator;

}  // namespace CLI
