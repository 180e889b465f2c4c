// Text of other programs (remote commands, workers, process names, host names) for drun's own messages: no control
// character in it reaches a terminal. The functions replace by '?' each C0 control character, DEL, C1 control character
// (U+0080 to U+009F, which terminals may obey like ESC sequences) and byte that is not valid UTF-8. Pure. C++17.
//
// Two layers use them: fields of one line are cleaned where they enter drun or its agent, so that a newline in them
// can't forge a line; and each output (messages, failure box, progress line, tables, HTML) cleans what it is given
// before it adds its own colors and cursor movements.
#pragma once

#include <string>
#include <string_view>

namespace drun {

// For text of several lines. Keeps '\n' and '\t'; "\r\n" becomes '\n'.
std::string clean_text(std::string_view text);

// For a field of one line: line ends and tabs also become spaces.
std::string clean_line(std::string_view text);

// JSON text, in which the C0 control characters are escaped already, with DEL and C1 escaped, too. The text must be
// valid UTF-8.
std::string escape_controls(std::string_view json);

}  // namespace drun
