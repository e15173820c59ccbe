// Errors as values: what was tried, on what, and the system's reason.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace troika {

struct Error {
  std::string doing;    // what was tried: "open the manifest"
  std::string subject;  // on what: "/srv/models/x/manifest.json"
  std::string reason;   // why it failed: "No such file or directory"

  std::string message() const;  // "cannot DOING SUBJECT: REASON"
};

// Error from errno (or a value of it): reason is the system's text.
Error system_error(std::string doing, std::string subject, int errno_value);

// Prints the message and aborts: for invariants that only a bug can break.
[[noreturn]] void broken_invariant(const char* what, const char* file, int line);

#define TROIKA_INVARIANT(condition)                                               \
  do {                                                                            \
    if (!(condition)) ::troika::broken_invariant(#condition, __FILE__, __LINE__); \
  } while (false)

// A value or an Error. Reading the wrong side is a broken invariant.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    TROIKA_INVARIANT(!ok());
    return std::get<1>(state_);
  }

 private:
  void check() const { TROIKA_INVARIANT(ok()); }
  std::variant<T, Error> state_;
};

struct Done {};  // success without a value: Status ok = Done{};
using Status = Result<Done>;

// TROIKA_TRY(name, expression): on error returns it from this function, else binds the value to `name`.
#define TROIKA_TRY(name, ...)                            \
  auto name##_result = (__VA_ARGS__);                    \
  if (!name##_result.ok()) return name##_result.error(); \
  auto& name = name##_result.value()

// TROIKA_CHECK(expression): on error returns it from this function.
#define TROIKA_CHECK(...)                                                       \
  do {                                                                          \
    if (auto checked_ = (__VA_ARGS__); !checked_.ok()) return checked_.error(); \
  } while (false)

}  // namespace troika
