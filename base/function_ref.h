// A reference to a function object, for a parameter that is called before the function returns. Unlike std::function it
// copies and allocates nothing.
#pragma once

#include <type_traits>
#include <utility>

namespace drun {

template <typename Signature>
class FunctionRef;

template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  // Not explicit: lambdas are passed as they are. The function object must outlive this.
  template <typename F, typename = std::enable_if_t<!std::is_same_v<F, FunctionRef> && !std::is_function_v<F>>>
  FunctionRef(const F& function)  // NOLINT(google-explicit-constructor)
      : function_(&function), call_([](const void* given, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(given))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace drun
